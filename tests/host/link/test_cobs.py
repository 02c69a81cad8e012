"""COBS on the host: the paper's rules, and any octets either decode or raise CobsError."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocetap.link import cobs

RUN = bytes(range(1, 255))
PACKETS = st.one_of(
    st.binary(max_size=700),
    st.lists(st.sampled_from([b"\0", b"\1", b"\xff", RUN, RUN[:-1], RUN + b"\7"]),
             max_size=5).map(b"".join))


@pytest.mark.parametrize(("packet", "encoded"), [
    (b"", b"\1"),
    (b"\0", b"\1\1"),
    (b"\0\0", b"\1\1\1"),
    (b"\x11\x22\x00\x33", b"\x03\x11\x22\x02\x33"),
    (b"\x11\x00\x00\x00", b"\x02\x11\x01\x01\x01"),
    (RUN, b"\xff" + RUN),
    (b"\0" + RUN, b"\1\xff" + RUN),
    (RUN + b"\0", b"\xff" + RUN + b"\1\1"),
    (RUN + b"\xff", b"\xff" + RUN + b"\2\xff"),
    (RUN[:-1] + b"\0", b"\xfe" + RUN[:-1] + b"\1"),
])
def test_known_encodings(packet, encoded):
    assert cobs.encode(packet) == encoded
    assert cobs.decode(encoded) == packet


def test_an_empty_group_behind_a_full_one_is_understood():
    assert cobs.decode(b"\xff" + RUN + b"\1") == RUN


@given(PACKETS)
def test_round_trip(packet):
    encoded = cobs.encode(packet)
    assert 0 not in encoded
    assert len(encoded) <= cobs.encoded_octets_at_most(len(packet))
    assert cobs.decode(encoded) == packet


@given(st.binary(max_size=600))
def test_any_octets_decode_or_raise_cobs_error(octets):
    try:
        packet = cobs.decode(octets)
    except cobs.CobsError:
        return
    assert len(packet) < len(octets)
    assert cobs.decode(cobs.encode(packet)) == packet


@pytest.mark.parametrize(("octets", "message"), [
    (b"", "empty encoding"),
    (b"\2\0", "zero octet at 1"),
    (b"\5abc", "group at octet 0 is 4 octets, 3 are there"),
    (b"\2a\3", "group at octet 2 is 2 octets, 0 are there"),
])
def test_errors(octets, message):
    with pytest.raises(cobs.CobsError, match=f"^{message}$"):
        cobs.decode(octets)
