"""The five messages: octets by hand, round trips, and each wrong form by its one error."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocetap.link.errors import LinkLocalError, LinkRemoteError
from rocetap.link.messages import (
    Credit,
    Read,
    RecordMessage,
    Reply,
    Write,
    decode_from_board,
    decode_from_host,
)
from rocetap.spec.wire import Status

U16 = st.integers(0, 0xFFFF)
WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=32).map(tuple)
FROM_HOST = st.one_of(
    st.builds(Read, U16, U16, st.integers(1, 32)), st.builds(Write, U16, U16, WORDS),
    st.builds(Credit, U16, U16))
FROM_BOARD = st.one_of(
    st.builds(Reply, U16, st.sampled_from(Status), st.one_of(st.just(()), WORDS)),
    st.builds(RecordMessage, U16, st.binary(min_size=88, max_size=88)))


@pytest.mark.parametrize(("message", "octets"), [
    (Read(0x0201, 0x0403, 5), "01 0102 0304 05"),
    (Write(0x0201, 0x0403, (0x0807060504030201, 9)),
     "02 0102 0304 02 0102030405060708 0900000000000000"),
    (Credit(0x0201, 0x0403), "03 0102 0304"),
])
def test_octets_from_the_host(message, octets):
    assert message.encode() == bytes.fromhex(octets)
    assert decode_from_host(bytes.fromhex(octets)) == message


@pytest.mark.parametrize(("message", "octets"), [
    (Reply(0x0201, Status.REFUSED), "81 0102 02 00"),
    (Reply(0x0201, Status.OK, (0x0807060504030201,)), "81 0102 00 01 0102030405060708"),
    (RecordMessage(0x0201, bytes(range(88))), "82 0102" + bytes(range(88)).hex()),
])
def test_octets_from_the_board(message, octets):
    assert message.encode() == bytes.fromhex(octets)
    assert decode_from_board(bytes.fromhex(octets)) == message


@given(FROM_HOST)
def test_round_trip_from_the_host(message):
    octets = message.encode()
    assert decode_from_host(octets) == message
    for cut in range(len(octets)):
        with pytest.raises(LinkRemoteError):
            decode_from_host(octets[:cut])
    with pytest.raises(LinkRemoteError):
        decode_from_host(octets + b"\0")


@given(FROM_BOARD)
def test_round_trip_from_the_board(message):
    octets = message.encode()
    assert decode_from_board(octets) == message
    for cut in range(len(octets)):
        with pytest.raises(LinkRemoteError):
            decode_from_board(octets[:cut])
    with pytest.raises(LinkRemoteError):
        decode_from_board(octets + b"\0")


@given(st.binary(max_size=300), st.sampled_from([b"", b"\1", b"\2", b"\3", b"\x81", b"\x82"]))
def test_any_octets_parse_or_raise_the_remote_error(octets, kind):
    for decode in (decode_from_board, decode_from_host):
        try:
            message = decode(kind + octets)
        except LinkRemoteError:
            continue
        assert message.encode() == kind + octets


@pytest.mark.parametrize(("octets", "text"), [
    ("", "empty message"),
    ("55", "unknown message type 0x55"),
    ("01 0000 0000 01", "unknown message type 0x01"),
    ("82 0000", "RECORD message is 3 octets, must be 91"),
    ("81 0000 00", "REPLY message is 4 octets, must be 5"),
    ("81 0000 00 01", "REPLY message is 5 octets, must be 13"),
    ("81 0000 03 00", "REPLY has status 3, must be 0 to 2"),
    ("81 0000 00 21" + "00" * 264, "REPLY has 33 registers, must be at most 32"),
])
def test_errors_from_the_board(octets, text):
    with pytest.raises(LinkRemoteError, match=f"^{text}$"):
        decode_from_board(bytes.fromhex(octets))


@pytest.mark.parametrize(("octets", "text"), [
    ("", "empty message"),
    ("82", "unknown message type 0x82"),
    ("03 0000 00", "CREDIT message is 4 octets, must be 5"),
    ("01 0000 0000", "READ message is 5 octets, must be 6"),
    ("01 0000 0000 00", "READ has 0 registers, must be 1 to 32"),
    ("02 0000 0000 21", "WRITE has 33 registers, must be 1 to 32"),
    ("02 0000 0000 01", "WRITE message is 6 octets, must be 14"),
])
def test_errors_from_the_host(octets, text):
    with pytest.raises(LinkRemoteError, match=f"^{text}$"):
        decode_from_host(bytes.fromhex(octets))


@pytest.mark.parametrize(("message", "text"), [
    (Read(0x10000, 0, 1), "sequence is 65536, must fit 16 bits"),
    (Read(0, -1, 1), "address is -1, must fit 16 bits"),
    (Read(0, 0, 0), "burst is 0 registers, must be 1 to 32"),
    (Read(0, 0, 33), "burst is 33 registers, must be 1 to 32"),
    (Write(0, 0, ()), "burst is 0 registers, must be 1 to 32"),
    (Write(0, 0, (2**64,)), f"register value is {2**64}, must fit 64 bits"),
    (Credit(0, 0x10000), "amount is 65536, must fit 16 bits"),
    (Reply(0, Status.OK, (0,) * 33), "burst is 33 registers, must be 1 to 32"),
    (RecordMessage(0, b"abc"), "record is 3 octets, must be 88"),
])
def test_fields_out_of_range_are_the_callers_mistake(message, text):
    with pytest.raises(LinkLocalError, match=f"^{re.escape(text)}$"):
        message.encode()
