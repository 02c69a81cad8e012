"""Ip: fields and flags of both versions, whole and cut."""

import pytest

from rocetap_hdl.ethernet import PACKET_OCTETS
from rocetap_hdl.ip import IPV6_EXTENSIONS, UPPER_OCTETS, Ip
from support.frames import ipv4, ipv6
from support.simulate import fields, simulate

UPPER = bytes(range(100, 160))
FLAGS = ("bad_version", "fragment", "extension", "other", "udp")


def read_all(packets, *, version=4, captured=None):
    """The header of each packet, one a clock; `captured`: how many octets the tap got, else all."""
    dut = Ip()

    async def drive(ctx):
        ctx.set(dut.i.valid, 1)
        for packet in packets:
            ctx.set(dut.i.payload, {
                f"ipv{version}": 1, "sliced": captured is not None,
                "available": len(packet) if captured is None else captured, "tags": 2,
                "packet": int.from_bytes(packet[:PACKET_OCTETS], "little")})
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(2)
    return [fields(header) for header in simulate(dut, drive, dut.o)[0]]


def read(packet, **how):
    [header] = read_all([packet], **how)
    return header


def flags(header):
    return {name for name in FLAGS if header[name]}


@pytest.mark.parametrize("words", range(11))
def test_ipv4_fields(words):
    header = read(ipv4(UPPER, options=bytes(range(4 * words))))
    assert flags(header) == {"udp"}
    assert (header["words"], header["length"], header["tags"]) == (5 + words, 80 + 4 * words, 2)
    assert (header["source"], header["destination"]) == (0xC0000201, 0xC6336402)
    whole = (bytes(range(4 * words)) + UPPER)[:UPPER_OCTETS]
    assert header["upper"].to_bytes(UPPER_OCTETS, "little") == whole


def test_ipv6_fields():
    header = read(ipv6(UPPER, length=0xFFFF), version=6)
    assert flags(header) == {"udp"}
    assert (header["words"], header["length"], header["ipv6"]) == (10, 0xFFFF + 40, 1)
    assert header["source"] == 0x20010DB8 << 96 | 1
    assert header["destination"] == 0x20010DB8 << 96 | 2


@pytest.mark.parametrize(("field", "fragment"), [
    (0x0000, False), (0x4000, False), (0x8000, False), (0xC000, False), (0x2000, True),
    (0x6000, True), (0x0001, True), (0x1000, True), (0x1FFF, True)])
def test_ipv4_fragment_field(field, fragment):
    assert ("fragment" in flags(read(ipv4(UPPER, flags=field)))) == fragment


@pytest.mark.parametrize("ihl", range(16))
@pytest.mark.parametrize("version", [0, 4, 5, 6])
def test_ipv4_version_and_ihl(version, ihl):
    bad = version != 4 or ihl < 5
    assert ("bad_version" in flags(read(ipv4(UPPER, version=version, ihl=ihl)))) == bad


@pytest.mark.parametrize("version", range(16))
def test_ipv6_version(version):
    header = read(ipv6(UPPER, version=version), version=6)
    assert ("bad_version" in flags(header)) == (version != 6)


def test_every_ipv4_protocol():
    headers = read_all([ipv4(UPPER, protocol=number) for number in range(256)])
    assert [flags(header) for header in headers] == [
        {"udp"} if number == 17 else {"other"} for number in range(256)]


def test_every_ipv6_next_header():
    kinds = {17: {"udp"}, 44: {"fragment"}, **{n: {"extension"} for n in IPV6_EXTENSIONS}}
    headers = read_all([ipv6(UPPER, next_header=number) for number in range(256)], version=6)
    assert [flags(header) for header in headers] == [
        kinds.get(number, {"other"}) for number in range(256)]


@pytest.mark.parametrize(("octets", "version", "need", "flag"), [
    (ipv4(UPPER, ihl=4), 4, 1, "bad_version"),
    (ipv4(UPPER, flags=1), 4, 8, "fragment"),
    (ipv4(UPPER, protocol=6), 4, 10, "other"),
    (ipv4(UPPER), 4, 10, "udp"),
    (ipv4(UPPER), 4, 4, "length_known"),
    (ipv6(UPPER, version=5), 6, 1, "bad_version"),
    (ipv6(UPPER, next_header=44), 6, 7, "fragment"),
    (ipv6(UPPER, next_header=0), 6, 7, "extension"),
    (ipv6(UPPER, next_header=6), 6, 7, "other"),
    (ipv6(UPPER), 6, 7, "udp"),
    (ipv6(UPPER), 6, 6, "length_known"),
])
def test_no_flag_rests_on_octets_that_are_not_there(octets, version, need, flag):
    assert not read(octets, version=version, captured=need - 1)[flag]
    assert read(octets, version=version, captured=need)[flag]
