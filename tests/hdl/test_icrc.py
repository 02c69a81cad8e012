"""InvariantCheck alone: own vectors, scapy's packets, and what masks leave covered."""

import random

import pytest
from scapy.contrib.roce import AETH, BTH, CNPPadding
from scapy.layers.inet import IP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

from rocetap_hdl.icrc import InvariantCheck
from support.classify import Arrival
from support.frames import icrc, roce, with_fcs
from support.parser_bench import beats
from support.simulate import simulate

WIDTHS = (1, 8, 64)
EIGHTEEN = bytes(range(0x12))
NOPS = bytes([1, 1, 1, 0])

VECTORS = {
    "V1 IPv4": (roce(EIGHTEEN, psn=1), 78, "d62bc474"),
    "V2 one tag": (roce(EIGHTEEN, psn=1, tags=((0x8100, 0x600A),)), 82, "d62bc474"),
    "V3 masked fields": (roce(EIGHTEEN, psn=1, fecn=True, becn=True, ip={
        "ttl": 7, "tos": 0x63}), 78, "d62bc474"),
    "V4 IPv6": (roce(EIGHTEEN, psn=1, version=6), 98, "066d3c82"),
    "V5 masked fields": (roce(EIGHTEEN, psn=1, version=6, ip={
        "traffic_class": 0xA5, "flow": 0xABCDE, "hops": 3}), 98, "066d3c82"),
    "V6 no payload": (roce(psn=2), 58, "107c1095"),
    "V7 options": (roce(EIGHTEEN, psn=1, ip={"options": NOPS}), 82, "00a4a5e4"),
    "V8 CNP": (roce(bytes(16), opcode=0x81, becn=True, ip={"tos": 0xC2}), 74, "7a91d846"),
}


def geometry(frame):
    """What layer 3 knows of a frame."""
    tags = 0
    while frame[12 + 4 * tags:14 + 4 * tags] in (b"\x81\x00", b"\x88\xa8", b"\x91\x00"):
        tags += 1
    packet = frame[14 + 4 * tags:]
    ipv6 = packet[0] >> 4 == 6
    return {
        "place": tags, "ipv6": ipv6, "words": 10 if ipv6 else packet[0] & 15,
        "length": 40 + int.from_bytes(packet[4:6], "big") if ipv6
        else int.from_bytes(packet[2:4], "big")}


def check(frames, width, *, gap=0.0):
    """What the component says of frames without FCS; the frame behind the packet is junk."""
    dut = InvariantCheck(width)
    rng = random.Random(f"icrc {width} {gap}")

    async def drive(ctx):
        for frame in frames:
            known = geometry(frame)
            for index, beat in enumerate(beats(Arrival(with_fcs(frame)), width, rng)):
                while rng.random() < gap:
                    ctx.set(dut.beats.valid, 0)
                    await ctx.tick()
                ctx.set(dut.beats.valid, 1)
                ctx.set(dut.beats.payload, {"beat": beat, "index": index, **known})
                await ctx.tick()
        ctx.set(dut.beats.valid, 0)
        await ctx.tick().repeat(InvariantCheck.LATENCY + 1)
    return simulate(dut, drive, dut.results)[0]


@pytest.mark.parametrize("name", VECTORS)
def test_own_vectors_are_what_the_builder_makes(name):
    frame, octets, check_octets = VECTORS[name]
    assert (len(frame), frame[-4:].hex()) == (octets, check_octets)


@pytest.mark.parametrize("width", WIDTHS)
def test_own_vectors(width):
    """Each one as it is, padded, and with its last bit wrong."""
    frames = []
    for frame, _, _ in VECTORS.values():
        frames += [frame, frame + b"\xaa\x55\xff", frame[:-1] + bytes([frame[-1] ^ 0x80])]
    assert check(frames, width) == [1, 1, 0] * len(VECTORS)


def scapy_frame(rng):
    """A RoCEv2 frame and its ICRC by scapy."""
    layer2 = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    for _ in range(rng.randrange(3)):
        layer2 /= Dot1Q(vlan=rng.getrandbits(12), prio=rng.getrandbits(3), dei=rng.getrandbits(1))
    if rng.random() < 0.5:
        layer3 = IPv6(src=f"2001:db8::{rng.getrandbits(16):x}", dst="2001:db8:1::9",
                      tc=rng.getrandbits(8), fl=rng.getrandbits(20), hlim=rng.getrandbits(8))
    else:
        layer3 = IP(src="192.0.2.7", dst=f"198.51.100.{rng.getrandbits(8)}", ttl=rng.getrandbits(8),
                    tos=rng.getrandbits(8), id=rng.getrandbits(16), flags=rng.choice(("DF", 0)),
                    options=[IPOption_NOP()] * rng.choice((0, 0, 4, 40)))
    kind = rng.randrange(3)
    fields = {"dqpn": rng.getrandbits(24), "psn": rng.getrandbits(24),
              "pkey": rng.getrandbits(16), "fecn": rng.getrandbits(1), "becn": rng.getrandbits(1),
              "solicited": rng.getrandbits(1), "migreq": rng.getrandbits(1)}
    if kind == 0:
        upper = BTH(opcode=0x81, **fields) / CNPPadding()
    elif kind == 1:
        upper = BTH(opcode=0x11, **fields) / AETH(syndrome=rng.getrandbits(8), msn=7)
    else:
        upper = BTH(opcode=0x04, **fields) / Raw(rng.randbytes(4 * rng.randrange(70)))
    return bytes(layer2 / layer3 / UDP(sport=rng.getrandbits(16), dport=4791) / upper)


@pytest.mark.parametrize("gap", [0.0, 0.3])
@pytest.mark.parametrize("width", WIDTHS)
def test_scapy_agrees(width, gap):
    rng = random.Random(f"scapy {width} {gap}")
    frames = [scapy_frame(rng) for _ in range(10 if width == 1 else 60)]
    assert check(frames, width, gap=gap) == [1] * len(frames)


def covered(frame):
    """Places of the packet's octets that the ICRC must notice, by A17.3.3."""
    known = geometry(frame)
    start = 14 + 4 * known["place"]
    end = start + known["length"]
    masked = {1, 2, 3, 7} if known["ipv6"] else {1, 8, 10, 11}
    udp = 4 * known["words"]
    masked |= {udp + 6, udp + 7, udp + 12}
    return [place for place in range(start, end) if place - start not in masked], [
        start + place for place in sorted(masked)]


@pytest.mark.parametrize(("width", "name"), [
    (1, "V2 one tag"), (8, "V4 IPv6"), (8, "V7 options"), (64, "V4 IPv6"), (64, "V7 options")])
def test_each_octet_counts_or_does_not(name, width):
    """One bit of each octet flipped: found where covered, unseen where masked."""
    frame = VECTORS[name][0]
    must, may = covered(frame)
    # The fields that place the layers, and an IPv6 version, would change the geometry.
    start = 14 + 4 * geometry(frame)["place"]
    must = [place for place in must if place > start + 5]

    def flipped(place):
        return frame[:place] + bytes([frame[place] ^ 0x10]) + frame[place + 1:]
    assert check([flipped(place) for place in must + may], width) == (
        [0] * len(must) + [1] * len(may))


@pytest.mark.parametrize("width", WIDTHS)
def test_short_length_of_a_frame_before_does_not_end_the_sum(width):
    """While a frame's length has not come, an earlier frame's stands in its place."""
    dut = InvariantCheck(width)
    frame = VECTORS["V4 IPv6"][0]
    known = geometry(frame)

    async def drive(ctx):
        ctx.set(dut.beats.valid, 1)
        for stale in range(32):
            for index, beat in enumerate(beats(Arrival(with_fcs(frame)), width)):
                octets = (index + 1) * width
                length = known["length"] if octets >= 20 else stale
                ctx.set(dut.beats.payload, {
                    "beat": beat, "index": index, **known, "length": length})
                await ctx.tick()
        ctx.set(dut.beats.valid, 0)
        await ctx.tick().repeat(InvariantCheck.LATENCY + 1)
    assert simulate(dut, drive, dut.results) == [[1] * 32]


@pytest.mark.parametrize("width", WIDTHS)
def test_frame_that_ends_before_its_packet(width):
    """A good frame's result is not left standing for the next one."""
    whole = VECTORS["V1 IPv4"][0]
    assert check([whole, whole[:60], whole], width) == [1, 0, 1]


def test_options_are_covered():
    """A17.3.3 masks no options: another option is another ICRC."""
    first, second = (roce(EIGHTEEN, psn=1, ip={"options": bytes([1, 1, n, 0])}) for n in (1, 0))
    assert first[-4:] != second[-4:]
    assert icrc(first[14:-4]) == first[-4:]
