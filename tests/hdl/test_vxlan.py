"""VXLAN: the tunnel's own parts, and the whole parser of a build that looks into tunnels."""

import random
from functools import cache

import pytest

from rocetap.spec.classes import FrameClass as C
from rocetap_hdl.header import HEADER_OCTETS
from rocetap_hdl.vxlan import (
    FIRST_UDP_OCTET,
    INNER_IP_STARTS,
    TUNNEL_OCTETS,
    Tunnel,
    TunnelChoice,
    TunnelState,
)
from support.classify import Arrival, classify
from support.frames import (
    bth,
    ethernet,
    ipv4,
    ipv6,
    mac_control,
    pad,
    pfc,
    roce,
    udp,
    vxlan,
    with_fcs,
)
from support.parser_bench import parse
from support.simulate import simulate

WIDTHS = (1, 8, 64)
EIGHTEEN = bytes(range(0x12))
NOPS = bytes([1, 1, 1, 0])
TWO_TAGS = ((0x88A8, 0xA064), (0x8100, 0x60C8))
INNER = roce(EIGHTEEN, psn=1)


def good(octets):
    return Arrival(with_fcs(pad(octets)))


def sliced(octets, count):
    return Arrival(octets[:count] + bytes(4), sliced=True)


def tunnel(inner, *, version=4, tags=(), ip=None, **fields):
    """A frame with `inner` in VXLAN, without padding and FCS."""
    layer3, ethertype = (ipv4, 0x0800) if version == 4 else (ipv6, 0x86DD)
    return ethernet(ethertype, layer3(vxlan(inner, **fields), **(ip or {})), tags=tags)


def inside(inner, **how):
    return good(tunnel(inner, **how))


DEEPEST = tunnel(roce(EIGHTEEN, psn=9, ip={"options": NOPS * 10}, tags=TWO_TAGS),
                 ip={"options": NOPS * 10}, tags=((0x9100, 1), (0x8100, 2)))

CASES = {
    "port 4789": (inside(INNER), C.ELIGIBLE_REQUEST),
    "port 8472": (inside(INNER, port=8472), C.ELIGIBLE_REQUEST),
    "VNI all ones": (inside(INNER, vni=0xFFFFFF), C.ELIGIBLE_REQUEST),
    "VNI 0": (inside(INNER, vni=0), C.ELIGIBLE_REQUEST),
    "over IPv6": (inside(INNER, version=6), C.ELIGIBLE_REQUEST),
    "IPv6 in IPv4": (inside(roce(EIGHTEEN, version=6)), C.ELIGIBLE_REQUEST),
    "IPv6 in IPv6 under tags": (inside(
        roce(EIGHTEEN, version=6, tags=TWO_TAGS), version=6, tags=TWO_TAGS), C.ELIGIBLE_REQUEST),
    "tag outside": (inside(INNER, tags=((0x8100, 5),)), C.ELIGIBLE_REQUEST),
    "tag inside": (inside(roce(psn=4, tags=((0x8100, 0x6ABC),))), C.ELIGIBLE_REQUEST),
    "two tags inside": (inside(roce(psn=4, tags=TWO_TAGS)), C.ELIGIBLE_REQUEST),
    "options and tags everywhere": (good(DEEPEST), C.ELIGIBLE_REQUEST),
    **{f"IHL {words}": (inside(INNER, ip={"options": NOPS * (words - 5)}), C.ELIGIBLE_REQUEST)
       for words in range(6, 16)},
    "DF and a low TTL": (inside(INNER, ip={"ttl": 1, "flags": 0x4000}), C.ELIGIBLE_REQUEST),
    "reserved flags": (inside(INNER, flags=0xFF), C.ELIGIBLE_REQUEST),
    "group policy flag": (inside(INNER, flags=0x88), C.ELIGIBLE_REQUEST),
    "inner frame below 60 octets": (inside(roce(psn=2)), C.ELIGIBLE_REQUEST),
    "inner frame padded": (inside(pad(roce(psn=2))), C.ELIGIBLE_REQUEST),
    "inner UDP source port of VXLAN": (inside(roce(psn=2, sport=4789)), C.ELIGIBLE_REQUEST),
    "wrong inner ICRC": (inside(roce(EIGHTEEN, wrong_icrc=True)), C.BAD_ICRC),
    "wrong inner ICRC, IPv6": (inside(roce(EIGHTEEN, version=6, wrong_icrc=True)), C.BAD_ICRC),
    "inner TVer 1": (inside(roce(tver=1)), C.MALFORMED_ROCE),
    "inner READ": (inside(roce(bytes(16), opcode=0x0C)), C.UNSUPPORTED_REQUEST),
    "inner ACK": (inside(roce(bytes(4), opcode=0x11)), C.RESPONSE),
    "inner CNP": (inside(roce(bytes(16), opcode=0x81)), C.CNP),
    "inner fragment": (inside(ethernet(0x0800, ipv4(udp(bth(bytes(8))), flags=0x2000))),
                       C.IP_FRAGMENT),
    "inner extension header": (inside(ethernet(0x86DD, ipv6(bytes(40), next_header=0))),
                               C.IPV6_EXTENSION),
    "inner three tags": (inside(roce(tags=((0x8100, 5),) * 3)), C.TAGS_TOO_DEEP),
    "inner RoCEv1": (inside(ethernet(0x8915, bytes(60))), C.ROCEV1),
    "inner ARP": (inside(ethernet(0x0806, bytes(28))), C.NOT_ROCE),
    "inner TCP": (inside(ethernet(0x0800, ipv4(bytes(30), protocol=6))), C.NOT_ROCE),
    "inner PFC": (inside(pfc({3: 0xFFFF})), C.NOT_ROCE),
    "inner PAUSE": (inside(mac_control(0x0001)), C.NOT_ROCE),
    "VXLAN in VXLAN": (inside(tunnel(INNER, vni=7)), C.TUNNELLED),
    "I flag clear": (inside(INNER, flags=0xF7), C.TUNNELLED),
    "flags zero": (inside(INNER, flags=0), C.TUNNELLED),
    # Lengths.
    "UDP length one short": (inside(INNER, length=8 + 8 + len(INNER) - 1), C.MALFORMED_IP),
    "UDP length one long": (inside(INNER, length=8 + 8 + len(INNER) + 1), C.MALFORMED_IP),
    "UDP length 0": (inside(INNER, length=0), C.MALFORMED_IP),
    "room for 13 octets": (inside(INNER[:13]), C.MALFORMED_IP),
    "inner Ethernet header alone": (inside(INNER[:14]), C.MALFORMED_IP),
    "inner ARP header alone": (inside(ethernet(0x0806, b"")), C.NOT_ROCE),
    **{f"inner frame of {count} octets, tagged": (
        inside(roce(tags=TWO_TAGS)[:count]), C.MALFORMED_IP) for count in (14, 17, 18, 21, 22)},
    "inner frame ends inside its first tag": (
        Arrival(with_fcs(pad(tunnel(ethernet(0x8100, b"\0\x05\x08"), tags=TWO_TAGS), 100))),
        C.MALFORMED_IP),
    "inner packet goes on in the padding": (Arrival(with_fcs(
        ethernet(0x0800, ipv4(vxlan(INNER[:-1]))) + INNER[-1:])), C.MALFORMED_IP),
    "inner IP length too short for a BTH": (
        inside(ethernet(0x0800, ipv4(udp(bth(bytes(8))), length=39))), C.MALFORMED_IP),
    "outer fragment": (inside(INNER, ip={"flags": 0x2000}), C.IP_FRAGMENT),
    "outer IP length beyond the frame": (inside(INNER, ip={"length": 200}), C.MALFORMED_IP),
    # What is no VXLAN: as in any build.
    "plain": (good(INNER), C.ELIGIBLE_REQUEST),
    "plain IPv6 under two tags": (good(roce(EIGHTEEN, version=6, tags=TWO_TAGS)),
                                  C.ELIGIBLE_REQUEST),
    "plain, wrong ICRC": (good(roce(EIGHTEEN, wrong_icrc=True)), C.BAD_ICRC),
    "plain PFC": (good(pfc({3: 9, 5: 0})), C.PFC),
    "UDP from 4789": (good(roce(EIGHTEEN, sport=4789)), C.ELIGIBLE_REQUEST),
    "VXLAN-GPE": (inside(INNER, port=4790), C.NOT_ROCE),
    "GRE": (good(ethernet(0x0800, ipv4(
        bytes.fromhex("00006558") + INNER, protocol=47))), C.NOT_ROCE),
    "ERSPAN II": (good(ethernet(0x0800, ipv4(
        bytes.fromhex("100088be00000001") + bytes.fromhex("1001000500000000") + INNER,
        protocol=47))), C.NOT_ROCE),
    "wrong FCS": (Arrival(with_fcs(tunnel(INNER), wrong=True)), C.BAD_FCS),
    "error": (Arrival(with_fcs(tunnel(INNER)), error=True), C.MAC_ERROR),
    "runt": (Arrival(with_fcs(tunnel(INNER)[:59])), C.RUNT),
    "lost": (Arrival(b"\0", lost=True), C.LOST),
    # Frames that the tap cut.
    "sliced behind the inner BTH": (sliced(tunnel(INNER), 104), C.ELIGIBLE_REQUEST),
    "sliced one short of it": (sliced(tunnel(INNER), 103), C.SLICED_SHORT),
    "sliced, I flag clear": (sliced(tunnel(INNER, flags=0), 43), C.TUNNELLED),
    "sliced before the flags": (sliced(tunnel(INNER, flags=0), 42), C.SLICED_SHORT),
    "sliced, room for 13 octets": (sliced(tunnel(INNER[:13]), 55), C.MALFORMED_IP),
    "sliced, room for 14 octets": (sliced(tunnel(INNER[:14]), 55), C.SLICED_SHORT),
    "sliced, wrong inner ICRC": (sliced(tunnel(roce(EIGHTEEN, wrong_icrc=True)), 128),
                                 C.ELIGIBLE_REQUEST),
}

GOOD = inside(roce(EIGHTEEN, psn=0xABCDEF, qp=0xFEDCBA, pkey=0x8001, tags=((0x8100, 0x6FED),)),
              vni=0x123456, tags=((0x8100, 0x7),))
FOUND = classify(GOOD, vxlan=True)


@cache
def verdicts_of_cases(width):
    """All cases in one run, back to back, a good frame before and behind each."""
    arrivals = [GOOD]
    for arrival, _ in CASES.values():
        arrivals += [arrival, GOOD]
    verdicts = parse(arrivals, width, vxlan=True)
    return {name: verdicts[2 * i:2 * i + 3] for i, name in enumerate(CASES)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("width", WIDTHS)
def test_case(name, width):
    arrival, frame_class = CASES[name]
    expected = classify(arrival, vxlan=True)
    assert expected.frame_class is frame_class
    assert verdicts_of_cases(width)[name] == [FOUND, expected, FOUND]


def test_good_frame_is_read_to_the_bit():
    """The key has the inner frame's addresses and VLAN id, and nothing of the outer packet."""
    assert FOUND.frame_class is C.ELIGIBLE_REQUEST
    assert (FOUND.psn, FOUND.opcode) == (0xABCDEF, 4)
    assert FOUND.key == {
        "qp": 0xFEDCBA, "pkey": 0x8001, "outer_vid": 0xFED, "inner_vid": 0, "ipv6": 0,
        "source": 0xC0000201, "destination": 0xC6336402, "vni": 0x123456}


ENCAPSULATED = {  # one queue pair number inside and outside
    "outer flow": (good(roce(EIGHTEEN, psn=1)), C.ELIGIBLE_REQUEST, C.ELIGIBLE_REQUEST),
    "VXLAN, VNI 5000": (inside(INNER, ip={"source": "203.0.113.1"}),
                        C.TUNNELLED, C.ELIGIBLE_REQUEST),
    "old port": (inside(INNER, port=8472), C.TUNNELLED, C.ELIGIBLE_REQUEST),
    "GRE": (CASES["GRE"][0], C.NOT_ROCE, C.NOT_ROCE),
    "ERSPAN": (CASES["ERSPAN II"][0], C.NOT_ROCE, C.NOT_ROCE),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("build", [False, True])
def test_rocev2_inside_vxlan_or_mirror_headers(width, build):
    """Known cases of taps and mirrors in clouds: never an outer packet read as a BTH; with the
    build option the inner PSN under a key with the VNI, and its ICRC right."""
    assert len(tunnel(INNER)) == 128
    found = parse([arrival for arrival, *_ in ENCAPSULATED.values()], width, vxlan=build)
    assert [one.frame_class for one in found] == [
        classes[build] for _, *classes in ENCAPSULATED.values()]
    if build:
        plain, new, old = found[:3]
        assert plain.psn == new.psn == old.psn == 1
        assert plain.key | {"vni": 5000} == new.key == old.key
        assert "vni" not in plain.key


@pytest.mark.parametrize(("width", "name"), [
    (1, "port 4789"), (8, "IPv6 in IPv6 under tags"), (8, "options and tags everywhere"),
    (64, "IPv6 in IPv6 under tags"), (64, "options and tags everywhere")])
def test_cut_at_every_octet(name, width):
    octets = CASES[name][0].octets
    frames = [sliced(octets, count) for count in range(len(octets) - 3)]
    expected = [classify(frame, vxlan=True) for frame in frames]
    assert {found.frame_class for found in expected} == {C.SLICED_SHORT, C.ELIGIBLE_REQUEST}
    assert parse(frames, width, vxlan=True) == expected


@pytest.mark.parametrize(("width", "step"), [(1, 9), (8, 1), (64, 1)])
def test_each_octet_of_the_inner_packet_counts(width, step):
    """One bit flipped in every octet of inner BTH and payload: BAD_ICRC, but for masked bits."""
    frame = DEEPEST
    first = len(frame) - 4 - len(EIGHTEEN) - 2 - 12
    frames = [good(frame[:place] + bytes([frame[place] ^ 0x40]) + frame[place + 1:])
              for place in range(first, len(frame), step)]
    expected = [classify(one, vxlan=True) for one in frames]
    assert sum(found.frame_class is C.BAD_ICRC for found in expected) >= len(frames) - 4
    assert parse(frames, width, vxlan=True) == expected


def random_frame(rng):
    """VXLAN of any shape, most of it whole; now and then something else between."""
    def tags():
        return tuple((rng.choice((0x8100, 0x88A8, 0x9100)), rng.getrandbits(16))
                     for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 2, 3))))

    def layer3():
        version = rng.choice((4, 6))
        return version, {"options": rng.randbytes(4 * rng.randrange(11))} if version == 4 else {
            "traffic_class": rng.getrandbits(8), "flow": rng.getrandbits(20),
            "hops": rng.getrandbits(8)}

    version, ip = layer3()
    payload = rng.randbytes(rng.choice((0, 4, rng.randrange(64), rng.randrange(256))))
    kind = rng.random()
    if kind < 0.8:
        inner = roce(payload, version=version, tags=tags(), ip=ip, psn=rng.getrandbits(24),
                     qp=rng.getrandbits(24), pkey=rng.getrandbits(16), sport=rng.getrandbits(16),
                     wrong_icrc=rng.random() < 0.1, tver=rng.choice((0,) * 15 + (1,)),
                     opcode=rng.choice((rng.randrange(12), rng.randrange(256))))
    elif kind < 0.85:
        inner = tunnel(INNER)
    else:
        inner = ethernet(rng.choice((0x0800, 0x86DD, 0x8808, 0x8915, 0x0806)), payload,
                         tags=tags())
    if rng.random() < 0.1:
        inner = inner[:rng.randrange(14, len(inner) + 1)]
    version, ip = layer3()
    octets = inner if rng.random() < 0.2 else tunnel(
        inner, version=version, ip=ip, tags=tags(), vni=rng.getrandbits(24),
        flags=rng.choice((8, 8, 8, rng.getrandbits(8))), port=rng.choice((4789, 4789, 8472)))
    octets = pad(octets)
    if rng.random() < 0.25:
        place = rng.randrange(min(len(octets), TUNNEL_OCTETS))
        octets = (octets[:place] + bytes([octets[place] ^ (1 << rng.randrange(8))])
                  + octets[place + 1:])
    if rng.random() < 0.15:
        return sliced(octets, rng.randrange(len(octets) + 1))
    return Arrival(with_fcs(octets, wrong=rng.random() < 0.05))


@pytest.mark.parametrize(("width", "count"), [(1, 15), (8, 100), (64, 300)])
@pytest.mark.parametrize(("gap", "seed"), [(0.0, 1), (0.3, 2)])
def test_random_frames(width, count, gap, seed):
    rng = random.Random(f"vxlan {seed} {width} {gap}")
    frames = [random_frame(rng) for _ in range(count)]
    expected = [classify(frame, vxlan=True) for frame in frames]
    assert width == 1 or {C.ELIGIBLE_REQUEST, C.BAD_ICRC, C.TUNNELLED, C.MALFORMED_IP} <= {
        found.frame_class for found in expected if not found.key or "vni" in found.key}
    assert parse(frames, width, gap=gap, seed=seed, vxlan=True) == expected


@pytest.mark.parametrize("width", WIDTHS)
def test_frames_without_fcs(width):
    frames = [Arrival(pad(octets)) for octets in (
        tunnel(INNER), DEEPEST, tunnel(roce(psn=2, wrong_icrc=True)), INNER)]
    assert parse(frames, width, vxlan=True, has_fcs=False) == [
        classify(good(frame.octets), vxlan=True) for frame in frames]


def test_wrong_inner_icrc_with_the_check_off():
    wrong = inside(roce(EIGHTEEN, wrong_icrc=True))
    assert [one.frame_class for one in parse([wrong], 8, vxlan=True, check_icrc=False)] == [
        C.ELIGIBLE_REQUEST]


# The parts.

def test_octets_that_are_kept():
    assert TUNNEL_OCTETS == 14 + 2 * 4 + 60 + 8 + 8 + HEADER_OCTETS == 200
    assert (INNER_IP_STARTS[0], INNER_IP_STARTS[-1]) == (64, 120)
    assert FIRST_UDP_OCTET == 34


@pytest.mark.parametrize("tags", [0, 1, 2])
@pytest.mark.parametrize("words", range(5, 16))
def test_tunnel_finds_the_inner_frame(tags, words):
    rng = random.Random(f"tunnel {tags} {words}")
    dut = Tunnel()
    start = 4 * (tags + words - 5)
    rest = bytearray(rng.randbytes(TUNNEL_OCTETS - FIRST_UDP_OCTET))
    rest[start + 4:start + 6] = (100).to_bytes(2, "big")
    rest[start + 8] |= 8

    async def drive(ctx):
        ctx.set(dut.packets.valid, 1)
        ctx.set(dut.packets.payload, {
            "tags": tags, "words": words, "length": 4 * words + 100, "available": 1000})
        ctx.set(dut.octets, int.from_bytes(rest, "little"))
        await ctx.tick()
        ctx.set(dut.packets.valid, 0)
        ctx.set(dut.octets, 0)
        await ctx.tick().repeat(Tunnel.LATENCY + 1)
    [found] = simulate(dut, drive, dut.o)[0]
    assert found["state"] is TunnelState.OPEN
    assert found["vni"] == int.from_bytes(rest[start + 12:start + 15], "big")
    assert found["place"] == tags + words - 5
    assert found["head"]["octets"].to_bytes(HEADER_OCTETS, "little") == bytes(
        rest[start + 16:start + 16 + HEADER_OCTETS])
    assert found["head"]["last_octet"] == 100 - 16 - 1


@pytest.mark.parametrize("state", TunnelState)
@pytest.mark.parametrize("outer", [C.TUNNELLED, C.NOT_ROCE])
def test_choice(outer, state):
    dut = TunnelChoice()

    async def drive(ctx):
        for stream, frame_class, psn in ((dut.outer, outer, 1), (dut.inner, C.CNP, 2)):
            ctx.set(stream.valid, 1)
            ctx.set(stream.payload, {"frame_class": frame_class, "psn": psn})
        ctx.set(dut.state, state)
        ctx.set(dut.vni, 7)
        ctx.set(dut.inner_icrc, 1)
        await ctx.tick()
        ctx.set(dut.outer.valid, 0)
        assert ctx.get(dut.icrc) == (outer is C.TUNNELLED)
        await ctx.tick()
    [found] = simulate(dut, drive, dut.o)[0]
    inner = outer is C.TUNNELLED
    assert (found["psn"], found["key"]["tunnelled"], found["key"]["vni"]) == (
        (2, 1, 7) if inner else (1, 0, 0))
    assert found["frame_class"] == ({
        TunnelState.OPEN: C.CNP, TunnelState.CLOSED: C.TUNNELLED,
        TunnelState.MALFORMED: C.MALFORMED_IP, TunnelState.SHORT: C.SLICED_SHORT}[state]
        if inner else outer)
