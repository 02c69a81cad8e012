import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocetap.ipfix.errors import FramingLostError
from rocetap.ipfix.framing import Deframer, MessageHeader
from support.ipfix_tools import message


def _all(deframer, pieces):
    return [bytes(found) for piece in pieces for found in deframer.feed(piece)]


@settings(deadline=None)
@given(st.lists(st.integers(0, 70), min_size=1, max_size=6), st.integers(1, 40))
def test_messages_come_out_whole_wherever_the_stream_is_split(sizes, step):
    messages = [message(bytes(size)) for size in sizes]
    stream = b"".join(messages)
    pieces = [stream[at:at + step] for at in range(0, len(stream), step)]
    assert _all(Deframer(), pieces) == messages


def test_octet_by_octet():
    stream = message(b"abcd") + message(b"")
    deframer = Deframer()
    assert _all(deframer, [stream[at:at + 1] for at in range(len(stream))]) == [
        message(b"abcd"), message(b"")]
    assert deframer.held == 0


def test_the_longest_message():
    longest = message(bytes(65_535 - 16))
    assert _all(Deframer(), [longest[:30_000], longest[30_000:]]) == [longest]


def test_two_and_a_half_messages_in_one_piece():
    one = message(b"12345678")
    deframer = Deframer()
    assert _all(deframer, [one + one + one[:10]]) == [one, one]
    assert deframer.held == 10
    assert _all(deframer, [one[10:]]) == [one]


@pytest.mark.parametrize("length", [0, 15])
def test_a_length_below_the_header_loses_framing(length):
    deframer = Deframer()
    stream = message(b"ok  ") + message(b"", length=length)
    found = deframer.feed(stream)
    assert bytes(next(found)) == message(b"ok  ")
    with pytest.raises(FramingLostError) as caught:
        next(found)
    assert str(caught.value) == (
        f"message at octet 20 has length {length}, must be 16 or more")


@pytest.mark.parametrize("version", [0, 5, 9, 11])
def test_another_version_loses_framing(version):
    with pytest.raises(FramingLostError) as caught:
        list(Deframer().feed(message(b"", version=version)))
    assert str(caught.value) == f"message at octet 0 has version {version}, must be 10"


def test_the_header_goes_there_and_back():
    header = MessageHeader(16, 1_700_000_000, 0xFFFF_FFFF, 0x8000_0001)
    assert MessageHeader.unpack(header.pack()) == header
    assert header.pack() == bytes.fromhex("000a0010 6553f100 ffffffff 80000001")
