"""Transport: where UDP and BTH are, all opcodes, and which rule comes first."""

import pytest

from rocetap.spec.classes import FrameClass as C
from rocetap.spec.opcodes import CNP, ELIGIBLE_REQUESTS, RC_RESPONSES, extended_header_octets
from rocetap_hdl.ip import UPPER_OCTETS
from rocetap_hdl.transport import Transport
from support.frames import bth, udp
from support.simulate import fields, simulate


def packet(datagram, *, words=5, length=None, **flags):
    """What layer 3 says of an IP packet with this datagram."""
    whole = 4 * words + len(datagram)
    return {
        "words": words, "length": whole if length is None else length, "available": whole,
        "length_known": 1, "udp": 1,
        "upper": int.from_bytes((bytes(4 * words - 20) + datagram)[:UPPER_OCTETS], "little"),
        **flags}


def read_all(*packets):
    """Class and fields of each packet, one a clock."""
    dut = Transport()

    async def drive(ctx):
        ctx.set(dut.i.valid, 1)
        for one in packets:
            ctx.set(dut.i.payload, one)
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(Transport.LATENCY + 1)
    return [fields(header) for header in simulate(dut, drive, dut.o)[0]]


def classes(*packets):
    return [C(header["frame_class"]) for header in read_all(*packets)]


def roce(payload=4, **how):
    return udp(bth(bytes(payload), **how))


def test_fields_behind_every_header_length():
    datagram = udp(bth(bytes(4), opcode=0x0A, psn=0x123456, qp=0xFEDCBA, pkey=0x8765))
    for header in read_all(*(packet(datagram, words=words) for words in range(5, 16))):
        assert (header["opcode"], header["psn"], header["qp"], header["pkey"]) == (
            0x0A, 0x123456, 0xFEDCBA, 0x8765)


@pytest.mark.parametrize("short", [0, 1])
def test_every_opcode_with_just_enough_octets_and_one_less(short):
    """The shortest UDP length is 8, BTH, extended headers and ICRC."""
    found = classes(*(
        packet(roce(extended_header_octets(opcode) + 4 - short, opcode=opcode))
        for opcode in range(256)))
    for opcode, frame_class in enumerate(found):
        if opcode in RC_RESPONSES:
            assert frame_class is C.RESPONSE
        elif opcode == CNP:
            assert frame_class is C.CNP
        elif short:
            assert frame_class is C.MALFORMED_ROCE
        else:
            assert frame_class is (
                C.ELIGIBLE_REQUEST if opcode in ELIGIBLE_REQUESTS else C.UNSUPPORTED_REQUEST)


@pytest.mark.parametrize("pad_count", range(4))
def test_pad_needs_room_too(pad_count):
    assert classes(
        packet(roce(4 + pad_count, pad_count=pad_count)),
        packet(roce(3 + pad_count, pad_count=pad_count)),
    ) == [C.ELIGIBLE_REQUEST, C.MALFORMED_ROCE]


def test_transport_version():
    assert classes(*(packet(roce(tver=version)) for version in range(16))) == [
        C.ELIGIBLE_REQUEST, *[C.MALFORMED_ROCE] * 15]


def test_ports():
    ports = (4791, 4790, 4789, 8472, 0, 53, 4791 ^ 0x8000)
    assert classes(*(packet(udp(bth(bytes(4)), destination=port)) for port in ports)) == [
        C.ELIGIBLE_REQUEST, C.NOT_ROCE, C.TUNNELLED, C.TUNNELLED, *[C.NOT_ROCE] * 3]


@pytest.mark.parametrize("words", [5, 10, 15])
def test_ip_length_at_each_bound(words):
    head = 4 * words
    at = {
        head - 1: C.MALFORMED_IP, head: C.MALFORMED_IP, head + 7: C.MALFORMED_IP,
        head + 19: C.MALFORMED_IP, head + 20: C.MALFORMED_ROCE, head + 24: C.ELIGIBLE_REQUEST,
        head + 25: C.MALFORMED_IP}
    assert classes(*(packet(roce(), words=words, length=length) for length in at)) == [*at.values()]


def test_ip_length_of_other_ports_and_protocols():
    other = udp(bytes(16), destination=53)
    assert classes(
        packet(other, length=27), packet(other, length=28),
        packet(other, length=20, udp=0, other=1), packet(other, length=19, udp=0, other=1),
    ) == [C.MALFORMED_IP, C.NOT_ROCE, C.NOT_ROCE, C.MALFORMED_IP]


def test_udp_length_at_each_bound():
    at = {0: C.MALFORMED_ROCE, 19: C.MALFORMED_ROCE, 20: C.MALFORMED_ROCE, 23: C.MALFORMED_ROCE,
          24: C.ELIGIBLE_REQUEST, 25: C.MALFORMED_ROCE, 65535: C.MALFORMED_ROCE}
    assert classes(*(packet(udp(bth(bytes(4)), length=length)) for length in at)) == [*at.values()]


def test_udp_length_other_than_the_ip_length_leaves():
    """Both have room for everything: only their difference is wrong."""
    lengths = (27, 28, 29)
    assert classes(*(packet(udp(bth(bytes(8)), length=length)) for length in lengths)) == [
        C.MALFORMED_ROCE, C.ELIGIBLE_REQUEST, C.MALFORMED_ROCE]


def test_order_of_the_rules():
    """Each packet breaks a rule and every later one."""
    bad = udp(bth(tver=1), destination=53)
    assert classes(
        packet(bad, bad_version=1, fragment=1, extension=1, other=1),
        packet(bad, length=0, fragment=1, extension=1, other=1),
        packet(bad, fragment=1, extension=1, other=1),
        packet(bad, extension=1, other=1),
        packet(bad, other=1, udp=0),
        packet(bad),
    ) == [C.MALFORMED_IP, C.MALFORMED_IP, C.IP_FRAGMENT, C.IPV6_EXTENSION, C.NOT_ROCE, C.NOT_ROCE]


@pytest.mark.parametrize("words", [5, 15])
def test_cut_anywhere_in_udp_and_bth(words):
    """Ports decide at 4 octets of UDP, the BTH at 20; UDP's length only with the whole BTH."""
    def cut(datagram, count, **ip):
        return packet(datagram, words=words, sliced=1, available=4 * words + count, **ip)

    assert classes(*(cut(roce(), count) for count in range(24))) == [
        *[C.SLICED_SHORT] * 20, *[C.ELIGIBLE_REQUEST] * 4]
    other = udp(bytes(16), destination=53)
    assert classes(*(cut(other, count) for count in range(8))) == [
        *[C.SLICED_SHORT] * 4, *[C.NOT_ROCE] * 4]
    stub = udp(bth(bytes(4)), length=19)
    assert classes(*(cut(stub, count) for count in range(24))) == [
        *[C.SLICED_SHORT] * 20, *[C.MALFORMED_ROCE] * 4]
    assert classes(*(cut(stub, count, length=4 * words + 19) for count in range(8))) == [
        *[C.SLICED_SHORT] * 4, *[C.MALFORMED_IP] * 4]
