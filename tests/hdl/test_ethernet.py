"""Ethernet: tags, EtherTypes, and what a cut frame still says."""

import pytest

from rocetap_hdl.ethernet import PACKET_OCTETS, TPIDS, Ethernet
from rocetap_hdl.header import HEADER_OCTETS
from support.frames import PFC_MAC, ethernet
from support.simulate import fields, simulate

PAYLOAD = bytes(range(200, 200 + 48)) + bytes(60)
NAMES = ("ipv4", "ipv6", "mac_control", "rocev1")


def read(*frames, captured=None):
    """Each frame's header; `captured`: how many octets the tap got, else all."""
    dut = Ethernet()

    async def drive(ctx):
        ctx.set(dut.heads.valid, 1)
        for frame in frames:
            octets = len(frame) if captured is None else captured
            ctx.set(dut.heads.payload, {
                "octets": int.from_bytes(frame[:HEADER_OCTETS], "little"),
                "last_octet": octets + 4 - 1, "sliced": captured is not None})
            await ctx.tick()
        ctx.set(dut.heads.valid, 0)
        await ctx.tick().repeat(Ethernet.LATENCY + 1)
    return [fields(header) for header in simulate(dut, drive, dut.headers)[0]]


@pytest.mark.parametrize("tpids", [(), *[(a,) for a in TPIDS],
                                   *[(a, b) for a in TPIDS for b in TPIDS]])
def test_tags(tpids):
    vids = (0xABC, 0x123)
    frame = ethernet(0x0800, PAYLOAD, tags=[
        (tpid, 0xF000 | vid) for tpid, vid in zip(tpids, vids, strict=False)])
    [header] = read(frame)
    assert header["tags"] == len(tpids)
    assert (header["outer_vid"], header["inner_vid"]) == (*vids[:len(tpids)], 0, 0)[:2]
    assert header["available"] == len(PAYLOAD)
    assert [name for name in NAMES if header[name]] == ["ipv4"]
    packet = header["packet"].to_bytes(PACKET_OCTETS, "little")
    assert packet == PAYLOAD[:PACKET_OCTETS]
    assert not header["too_deep"]
    assert not header["short"]


@pytest.mark.parametrize("tpid", TPIDS)
def test_third_tag(tpid):
    [header] = read(ethernet(0x0800, PAYLOAD, tags=[(0x8100, 1), (0x8100, 2), (tpid, 3)]))
    assert header["too_deep"]
    assert not any(header[name] for name in NAMES)


@pytest.mark.parametrize(("ethertype", "name"), [
    (0x0800, "ipv4"), (0x86DD, "ipv6"), (0x8808, "mac_control"), (0x8915, "rocev1"),
    (0x0806, None), (0x8101, None), (46, None)])
def test_ethertypes_one_a_clock(ethertype, name):
    tags = [(), ((0x88A8, 5),), ((0x88A8, 5), (0x8100, 6))]
    for header in read(*(ethernet(ethertype, PAYLOAD, tags=some) for some in tags)):
        assert [one for one in NAMES if header[one]] == [name] * (name is not None)


@pytest.mark.parametrize("bit", [None, 0, 7, 40, 47])
def test_pfc_address_to_the_bit(bit):
    address = int.from_bytes(PFC_MAC, "big") ^ (0 if bit is None else 1 << bit)
    [header] = read(ethernet(0x8808, PAYLOAD, destination=address.to_bytes(6, "big")))
    assert header["pfc_address"] == (bit is None)


@pytest.mark.parametrize("tags", [0, 1, 2])
def test_cut_before_the_ethertype(tags):
    frame = ethernet(0x0800, PAYLOAD, tags=[(0x8100, 1)] * tags)
    need = 14 + 4 * tags
    for captured in range(need + 3):
        [header] = read(frame, captured=captured)
        assert header["short"] == (captured < need)
        if captured >= need:
            assert header["available"] == captured - need
