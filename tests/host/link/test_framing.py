"""FrameDecoder: every split, every cut, any noise; a bounded buffer; one count a dropped frame."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocetap.link import cobs
from rocetap.link.errors import LinkLocalError
from rocetap.link.framing import MAX_FRAME_OCTETS, FrameDecoder, encode_frame
from rocetap.spec.wire import MAX_MESSAGE_OCTETS

MESSAGES = [b"\x81\x01\x00\x00\x00", b"a", bytes(91), bytes(range(1, 256)),
            bytes(MAX_MESSAGE_OCTETS), b"\xff" * MAX_MESSAGE_OCTETS]
STREAM = b"".join(map(encode_frame, MESSAGES))


def counts(decoder):
    return decoder.crc_errors, decoder.format_errors, decoder.oversize_errors


def test_the_frame_of_a_message():
    assert encode_frame(b"123456789") == b"\x0e123456789\x26\x39\xf4\xcb\x00"


def test_every_split_in_two():
    for position in range(len(STREAM) + 1):
        decoder = FrameDecoder()
        messages = decoder.receive(STREAM[:position]) + decoder.receive(STREAM[position:])
        assert messages == MESSAGES
        assert counts(decoder) == (0, 0, 0)


def test_octet_by_octet():
    decoder = FrameDecoder()
    assert [message for octet in STREAM for message in decoder.receive(bytes([octet]))] == MESSAGES


@pytest.mark.parametrize("bit", range(8))
def test_any_bit_wrong_is_counted_once_or_splits_the_frame(bit):
    frame = encode_frame(b"some message\0of octets")
    for position in range(len(frame) - 1):
        wrong = bytearray(frame)
        wrong[position] ^= 1 << bit
        decoder = FrameDecoder()
        assert decoder.receive(bytes(wrong) + frame) == [b"some message\0of octets"]
        dropped = 2 if wrong[position] == 0 and position else 1
        assert sum(counts(decoder)) == dropped


@pytest.mark.parametrize(("octets", "expected"), [
    (b"\0\0\0", (0, 0, 0)),
    (b"\1\0", (0, 1, 0)),
    (b"\5abc\0", (0, 1, 0)),
    (cobs.encode(bytes(4)) + b"\0", (0, 1, 0)),
    (cobs.encode(b"abcde") + b"\0", (1, 0, 0)),
    (b"\xff" * 5000 + b"\0", (0, 0, 1)),
    (cobs.encode(b"x" * 263 + zlib.crc32(b"x" * 263).to_bytes(4, "little")) + b"\0", (0, 0, 1)),
])
def test_dropped_frames_are_counted_by_kind(octets, expected):
    decoder = FrameDecoder()
    assert decoder.receive(encode_frame(b"a") + octets + encode_frame(b"b")) == [b"a", b"b"]
    assert counts(decoder) == expected


def test_the_buffer_is_bounded_whatever_the_pieces():
    for size in (1, 7, 269, 4096):
        decoder = FrameDecoder()
        for _ in range(-(-20_000 // size)):
            assert decoder.receive(b"\x33" * size) == []
            assert decoder.partial_octets <= MAX_FRAME_OCTETS
        assert counts(decoder) == (0, 0, 1)
        assert decoder.receive(b"\0" + encode_frame(b"next")) == [b"next"]


def test_abandon_drops_and_counts_the_frame_begun():
    decoder = FrameDecoder()
    frame = encode_frame(b"message")
    decoder.receive(frame[:4])
    decoder.abandon()
    decoder.abandon()
    assert counts(decoder) == (0, 1, 0)
    assert decoder.receive(frame) == [b"message"]


@given(st.lists(st.one_of(
    st.binary(max_size=400),
    st.sampled_from([b"\0", STREAM, encode_frame(b"x"), encode_frame(b"x")[:-1], b"\xff" * 270]))))
def test_any_octets_parse_or_count(pieces):
    decoder = FrameDecoder()
    for piece in pieces:
        for message in decoder.receive(piece):
            assert 1 <= len(message) <= MAX_MESSAGE_OCTETS
        assert decoder.partial_octets <= MAX_FRAME_OCTETS
    decoder.receive(b"\0")
    assert decoder.receive(encode_frame(b"good")) == [b"good"]
    frames = sum(1 for piece in b"".join(pieces).split(b"\0") if piece)
    assert sum(counts(decoder)) <= frames


@given(st.lists(st.binary(min_size=1, max_size=MAX_MESSAGE_OCTETS), max_size=6),
       st.integers(1, 300))
def test_messages_arrive_whatever_the_pieces(messages, size):
    stream = b"".join(map(encode_frame, messages))
    decoder = FrameDecoder()
    received = [message for start in range(0, len(stream), size)
                for message in decoder.receive(stream[start:start + size])]
    assert received == messages
    assert counts(decoder) == (0, 0, 0)


@pytest.mark.parametrize("size", [0, MAX_MESSAGE_OCTETS + 1])
def test_messages_that_have_no_frame(size):
    with pytest.raises(LinkLocalError, match=f"^message is {size} octets, must be 1 to 262$"):
        encode_frame(bytes(size))
