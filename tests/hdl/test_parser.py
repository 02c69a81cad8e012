"""The whole parser, at every width: named cases, each between two good frames; random frames."""

import random
from collections import Counter
from dataclasses import replace
from functools import cache

import dpkt
import pytest

from rocetap.spec.classes import FrameClass as C
from rocetap_hdl.parser import MAX_OCTETS, Parser
from support.captures import REAL_CAPTURES
from support.classify import Arrival, Finding, classify
from support.frames import (
    DESTINATION_MAC,
    bth,
    ethernet,
    icrc,
    ipv4,
    ipv6,
    mac_control,
    pad,
    pfc,
    roce,
    udp,
    with_fcs,
)
from support.parser_bench import parse
from support.refuses import refuses

WIDTHS = (1, 8, 64)
EIGHTEEN = bytes(range(0x12))


def good(octets, **how):
    return Arrival(with_fcs(pad(octets)), **how)


def sliced(octets, count):
    return Arrival(octets[:count] + bytes(4), sliced=True)


def request(psn=7, **how):
    return good(roce(EIGHTEEN, psn=psn, **how))


def raw(payload, **how):
    """IPv4 with the payload as it is: no ICRC is put in."""
    return good(ethernet(0x0800, ipv4(payload, **how)))


def raw6(payload, **how):
    return good(ethernet(0x86DD, ipv6(payload, **how)))


def with_icrc(packet, ethertype=0x0800):
    return good(ethernet(ethertype, packet[:-4] + icrc(packet[:-4])))


def tagged(*tags):
    return roce(EIGHTEEN, psn=7, tags=tags)


NOPS = bytes([1, 1, 1, 0])
LOOKS_LIKE_ROCE = udp(bth(bytes(8), psn=777))
VXLAN = bytes.fromhex("0800000000138800") + roce(EIGHTEEN, psn=1)
SMALL = roce(psn=2)                              # 58 octets
WRITE = roce(bytes(range(256)) * 4, opcode=0x06, psn=0x010203)
RC_OPCODES = (*range(0x0C, 0x0D), 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x1C, 0x1D, 0x1F)

CASES = {
    # Tags: all three TPIDs, priority tags, DEI, too deep.
    "untagged": (request(), C.ELIGIBLE_REQUEST),
    "802.1Q pcp 3": (good(tagged((0x8100, 0x600A))), C.ELIGIBLE_REQUEST),
    "802.1Q DEI": (good(tagged((0x8100, 0x100A))), C.ELIGIBLE_REQUEST),
    "priority tag": (good(tagged((0x8100, 0xE000))), C.ELIGIBLE_REQUEST),
    "802.1ad and 802.1Q": (good(tagged((0x88A8, 0xA064), (0x8100, 0x60C8))), C.ELIGIBLE_REQUEST),
    "two 802.1Q": (good(tagged((0x8100, 0x0001), (0x8100, 0x0FFF))), C.ELIGIBLE_REQUEST),
    "0x9100 and 802.1Q": (good(tagged((0x9100, 0x0002), (0x8100, 0x0003))), C.ELIGIBLE_REQUEST),
    "three tags": (good(tagged(*[(0x8100, 5)] * 3)), C.TAGS_TOO_DEEP),
    "four tags": (good(tagged(*[(0x88A8, 5)] * 4)), C.TAGS_TOO_DEEP),
    # Ends of packets.
    **{f"{count} octets of payload": (good(roce(bytes(range(count)), psn=count)),
                                      C.ELIGIBLE_REQUEST) for count in (0, 1, 2, 3, 4, 18)},
    "padding that is not zero": (
        Arrival(with_fcs(SMALL + b"\xaa\x55" * 20)), C.ELIGIBLE_REQUEST),
    "1024 octets of payload": (good(WRITE), C.ELIGIBLE_REQUEST),
    # IPv4.
    "DF clear": (request(ip={"flags": 0}), C.ELIGIBLE_REQUEST),
    "IHL 6": (request(ip={"options": NOPS}), C.ELIGIBLE_REQUEST),
    "IHL 15": (request(ip={"options": NOPS * 10}), C.ELIGIBLE_REQUEST),
    "IHL 15 under two tags": (good(roce(EIGHTEEN, psn=9, ip={"options": NOPS * 10}, tags=(
        (0x88A8, 1), (0x8100, 2)))), C.ELIGIBLE_REQUEST),
    "IHL 4": (raw(LOOKS_LIKE_ROCE, ihl=4), C.MALFORMED_IP),
    "version 5 in IPv4": (raw(LOOKS_LIKE_ROCE, version=5), C.MALFORMED_IP),
    "total length below the header": (raw(LOOKS_LIKE_ROCE, length=19), C.MALFORMED_IP),
    "total length 0": (raw(LOOKS_LIKE_ROCE, length=0), C.MALFORMED_IP),
    "total length one beyond the frame": (raw(LOOKS_LIKE_ROCE, length=49), C.MALFORMED_IP),
    "total length 65535": (raw(LOOKS_LIKE_ROCE, length=65535), C.MALFORMED_IP),
    "total length without a whole UDP header": (raw(LOOKS_LIKE_ROCE, length=27), C.MALFORMED_IP),
    "total length without a whole BTH": (raw(LOOKS_LIKE_ROCE, length=39), C.MALFORMED_IP),
    "first fragment": (raw(LOOKS_LIKE_ROCE, flags=0x2000), C.IP_FRAGMENT),
    "later fragment at 1480": (raw(LOOKS_LIKE_ROCE, flags=185), C.IP_FRAGMENT),
    "fragment of TCP": (raw(bytes(30), flags=0x2001, protocol=6), C.IP_FRAGMENT),
    "TCP": (raw(bytes(30), protocol=6), C.NOT_ROCE),
    "GRE": (raw(bytes(30), protocol=47), C.NOT_ROCE),
    # IPv6.
    "IPv6": (request(version=6), C.ELIGIBLE_REQUEST),
    "IPv6 under two tags": (
        good(roce(EIGHTEEN, version=6, tags=((0x9100, 1), (0x8100, 2)))), C.ELIGIBLE_REQUEST),
    "IPv6 other hop limit": (request(version=6, ip={
        "traffic_class": 0xFF, "flow": 0xFFFFF, "hops": 1}), C.ELIGIBLE_REQUEST),
    "version 4 in IPv6": (raw6(LOOKS_LIKE_ROCE, version=4), C.MALFORMED_IP),
    "IPv6 payload length 0": (raw6(LOOKS_LIKE_ROCE, length=0), C.MALFORMED_IP),
    "IPv6 payload length beyond the frame": (raw6(LOOKS_LIKE_ROCE, length=29), C.MALFORMED_IP),
    "IPv6 without a whole BTH": (raw6(LOOKS_LIKE_ROCE, length=19), C.MALFORMED_IP),
    "IPv6 fragment": (raw6(LOOKS_LIKE_ROCE, next_header=44), C.IP_FRAGMENT),
    **{f"IPv6 next header {number}": (raw6(bytes(40), next_header=number), C.IPV6_EXTENSION)
       for number in (0, 43, 50, 51, 60, 135, 139, 140, 253, 254)},
    **{f"IPv6 next header {number}": (raw6(bytes(40), next_header=number), C.NOT_ROCE)
       for number in (6, 58, 59, 1, 45)},
    # UDP.
    "UDP to another port": (raw(udp(bth(bytes(8)), destination=4790)), C.NOT_ROCE),
    "UDP from 4791": (raw(udp(bth(bytes(8)), source=4791, destination=53)), C.NOT_ROCE),
    "UDP from 0": (request(sport=0), C.ELIGIBLE_REQUEST),
    "UDP from 69": (request(sport=69), C.ELIGIBLE_REQUEST),
    "UDP from VXLAN's port": (request(sport=4789), C.ELIGIBLE_REQUEST),
    "VXLAN": (raw(udp(VXLAN, destination=4789)), C.TUNNELLED),
    "VXLAN, old port": (raw(udp(VXLAN, destination=8472)), C.TUNNELLED),
    "VXLAN over IPv6": (raw6(udp(VXLAN, destination=4789)), C.TUNNELLED),
    "UDP length 0": (raw(udp(bth(bytes(8)), length=0)), C.MALFORMED_ROCE),
    "UDP length without a whole BTH": (raw(udp(bth(bytes(8)), length=19)), C.MALFORMED_ROCE),
    "IPv6 UDP length 0": (raw6(udp(bth(bytes(8)), length=0)), C.MALFORMED_ROCE),
    # BTH.
    "UDP length one short": (with_icrc(ipv4(udp(bth(bytes(8)), length=27))), C.MALFORMED_ROCE),
    "UDP length one long": (with_icrc(ipv4(udp(bth(bytes(8)), length=29))), C.MALFORMED_ROCE),
    "TVer 1": (request(tver=1), C.MALFORMED_ROCE),
    "no room for the ICRC": (with_icrc(ipv4(udp(bth()))), C.MALFORMED_ROCE),
    "pad beyond the payload": (good(roce(psn=3, pad_count=1)), C.MALFORMED_ROCE),
    "no room for the RETH": (good(roce(bytes(12), opcode=0x0A)), C.MALFORMED_ROCE),
    "room for the RETH only": (good(roce(bytes(16), opcode=0x0A)), C.ELIGIBLE_REQUEST),
    "RETH, immediate, one octet short": (
        good(roce(bytes(20), opcode=0x0B, pad_count=1)), C.MALFORMED_ROCE),
    "wrong ICRC": (request(wrong_icrc=True), C.BAD_ICRC),
    "wrong ICRC, IPv6": (request(version=6, wrong_icrc=True), C.BAD_ICRC),
    "wrong ICRC, READ": (good(roce(bytes(16), opcode=0x0C, wrong_icrc=True)), C.BAD_ICRC),
    "ICRC as if over the frame": (Arrival(with_fcs(
        SMALL[:-4] + b"\0\0" + icrc(SMALL[14:-4] + b"\0\0"))), C.BAD_ICRC),
    **{f"opcode {code:#04x}": (good(roce(bytes(40), opcode=code, psn=code)), C.ELIGIBLE_REQUEST)
       for code in range(0x0C)},
    **{f"opcode {code:#04x}": (good(roce(bytes(40), opcode=code, psn=code)),
                               C.UNSUPPORTED_REQUEST)
       for code in (*RC_OPCODES, 0x24, 0x44, 0x64, 0x80, 0x82, 0xA0, 0xC0, 0xFF)},
    **{f"opcode {code:#04x}": (good(roce(bytes(40), opcode=code, psn=code)), C.RESPONSE)
       for code in range(0x0D, 0x13)},
    "ACK": (good(roce(bytes.fromhex("1f000001"), opcode=0x11, psn=10)), C.RESPONSE),
    "ACK with TVer 3 and a wrong ICRC": (good(roce(
        bytes(4), opcode=0x11, tver=3, wrong_icrc=True)), C.RESPONSE),
    "CNP": (good(roce(bytes(16), opcode=0x81, becn=True, ip={"tos": 0xC2})), C.CNP),
    "CNP without its reserved octets": (good(roce(opcode=0x81, wrong_icrc=True)), C.CNP),
    "CM on QP 1": (good(roce(bytes(264), opcode=0x64, qp=1)), C.UNSUPPORTED_REQUEST),
    # Other EtherTypes.
    "RoCEv1": (good(ethernet(0x8915, bytes(60))), C.ROCEV1),
    "ARP": (good(ethernet(0x0806, bytes(28))), C.NOT_ROCE),
    "LLC": (good(ethernet(46, bytes(46))), C.NOT_ROCE),
    # MAC Control.
    "PFC XOFF": (good(pfc({3: 0xFFFF})), C.PFC),
    "PFC XON": (good(pfc({3: 0})), C.PFC),
    "PFC both": (good(pfc({0: 1, 3: 0, 7: 0x0100})), C.PFC),
    "PFC all": (good(pfc(dict.fromkeys(range(8), 0xFFFF))), C.PFC),
    "PFC empty vector": (good(pfc({}, others=0xFFFF)), C.PFC),
    "PFC reserved bits": (good(pfc({5: 9}, reserved=0xFF)), C.PFC),
    "PFC times of clear priorities": (good(pfc({1: 0}, others=77)), C.PFC),
    "PFC from address zero": (good(pfc({3: 0xFFFF}, source=bytes(6))), C.PFC),
    "PFC longer": (good(pfc({3: 0xFFFF}) + bytes(40)), C.PFC),
    "PFC to a unicast address": (
        good(pfc({3: 0xFFFF}, destination=DESTINATION_MAC)), C.BAD_PFC),
    "PFC to the next address": (
        good(pfc({3: 1}, destination=bytes.fromhex("0180c2000000"))), C.BAD_PFC),
    "PFC tagged": (good(pfc({3: 0xFFFF}, tags=((0x8100, 0x6000),))), C.TAGGED_PFC),
    "PFC of 63 octets": (Arrival(with_fcs(pfc({3: 1})[:59])), C.RUNT),
    "PFC of 46 octets": (Arrival(with_fcs(pfc({3: 1})[:42])), C.RUNT),
    "PFC with a wrong FCS": (Arrival(with_fcs(pfc({3: 1}), wrong=True)), C.BAD_FCS),
    "PFC that the MAC calls bad": (good(pfc({3: 1}), error=True), C.MAC_ERROR),
    "PFC that the tap cut": (sliced(pfc({3: 1}), 40), C.BAD_PFC),
    "PFC cut before its opcode": (sliced(pfc({3: 1}), 14), C.MAC_CONTROL),
    "PAUSE": (good(mac_control(0x0001, bytes.fromhex("ffff"))), C.PAUSE),
    "PAUSE tagged": (good(mac_control(0x0001, tags=((0x8100, 1),))), C.PAUSE),
    "MAC Control 0x0102": (good(mac_control(0x0102, bytes(18))), C.MAC_CONTROL),
    # Receive errors: each moves one class.
    "wrong FCS": (Arrival(with_fcs(pad(SMALL), wrong=True)), C.BAD_FCS),
    "63 octets, FCS right": (Arrival(with_fcs(SMALL.ljust(59, b"\0"))), C.RUNT),
    "63 octets, FCS wrong": (Arrival(with_fcs(SMALL.ljust(59, b"\0"), wrong=True)), C.RUNT),
    "10 octets": (Arrival(bytes(range(10))), C.RUNT),
    "1 octet": (Arrival(b"\x55"), C.RUNT),
    "error, FCS right": (Arrival(with_fcs(pad(SMALL)), error=True), C.MAC_ERROR),
    "error, FCS wrong": (Arrival(with_fcs(pad(SMALL), wrong=True), error=True), C.MAC_ERROR),
    "error in a runt": (Arrival(bytes(20), error=True), C.MAC_ERROR),
    "one octet after the FCS": (Arrival(with_fcs(pad(SMALL)) + b"\0"), C.BAD_FCS),
    "lost": (Arrival(b"\0", lost=True), C.LOST),
    "lost with every other mark": (Arrival(b"\0", lost=True, error=True), C.LOST),
    # Frames that the tap cut.
    **{f"sliced to {count}": (sliced(WRITE, count), C.ELIGIBLE_REQUEST) for count in (54, 58, 64)},
    **{f"sliced to {count}": (sliced(WRITE, count), C.SLICED_SHORT)
       for count in (0, 1, 13, 14, 20, 45, 53)},
    "sliced under two tags": (sliced(tagged((0x88A8, 1), (0x8100, 2)), 62), C.ELIGIBLE_REQUEST),
    "sliced one short under two tags": (
        sliced(tagged((0x88A8, 1), (0x8100, 2)), 61), C.SLICED_SHORT),
    "sliced, wrong ICRC": (
        sliced(roce(EIGHTEEN, psn=8, wrong_icrc=True), 78), C.ELIGIBLE_REQUEST),
    "sliced IPv6": (sliced(roce(EIGHTEEN, version=6), 74), C.ELIGIBLE_REQUEST),
    "sliced IPv6 one short": (sliced(roce(EIGHTEEN, version=6), 73), C.SLICED_SHORT),
    "sliced ARP": (sliced(ethernet(0x0806, bytes(28)), 14), C.NOT_ROCE),
    "sliced TCP": (sliced(ethernet(0x0800, ipv4(bytes(30), protocol=6)), 24), C.NOT_ROCE),
    "sliced UDP to another port": (
        sliced(ethernet(0x0800, ipv4(udp(bytes(30), destination=53))), 38), C.NOT_ROCE),
    "sliced fragment": (
        sliced(ethernet(0x0800, ipv4(bytes(30), flags=0x2000)), 22), C.IP_FRAGMENT),
    "sliced inside the second tag": (
        sliced(tagged((0x88A8, 1), (0x8100, 2)), 20), C.SLICED_SHORT),
    "sliced three tags": (sliced(tagged(*[(0x8100, 5)] * 3), 22), C.TAGS_TOO_DEEP),
}

GOOD = request(psn=0xABCDEF, qp=0xFEDCBA, pkey=0x8001, tags=((0x8100, 0x6FED),))
FOUND = classify(GOOD)


def cases_of(width):
    """At one octet a beat clocks are dear: the opcodes, which no width matters to, are left out."""
    return [name for name in CASES if width > 1 or not name.startswith("opcode")]


@cache
def verdicts_of_cases(width):
    """All cases in one run, back to back, a good frame before and behind each."""
    arrivals = [GOOD]
    for name in cases_of(width):
        arrivals += [CASES[name][0], GOOD]
    verdicts = parse(arrivals, width)
    return {name: verdicts[2 * i:2 * i + 3] for i, name in enumerate(cases_of(width))}


@pytest.mark.parametrize(("width", "name"), [
    (width, name) for width in WIDTHS for name in cases_of(width)])
def test_case(name, width):
    arrival, frame_class = CASES[name]
    expected = classify(arrival)
    assert expected.frame_class is frame_class
    assert verdicts_of_cases(width)[name] == [FOUND, expected, FOUND]


def test_cases_reach_every_class():
    assert {frame_class for _, frame_class in CASES.values()} == set(C) - {C.OVERSIZE}


def test_good_frame_is_read_to_the_bit():
    assert Finding(C.ELIGIBLE_REQUEST, psn=0xABCDEF, opcode=4, key={
        "qp": 0xFEDCBA, "pkey": 0x8001, "outer_vid": 0xFED, "inner_vid": 0, "ipv6": 0,
        "source": 0xC0000201, "destination": 0xC6336402}) == FOUND


@pytest.mark.parametrize("width", WIDTHS)
def test_frames_without_fcs(width):
    """Cases, their last four octets taken off, are what they would be with the right FCS."""
    stripped = [replace(arrival, octets=arrival.octets[:-4])
                for arrival, _ in CASES.values() if len(arrival.octets) > 4]
    stripped = stripped[::10 if width == 1 else 1]
    whole = [replace(arrival, octets=arrival.octets + bytes(4) if arrival.sliced
                     else with_fcs(arrival.octets)) for arrival in stripped]
    lost = [Arrival(b"\0", lost=True)]
    expected = [classify(arrival) for arrival in whole + lost]
    assert width == 1 or {
        found.frame_class for found in expected} == set(C) - {C.OVERSIZE, C.BAD_FCS}
    assert parse(stripped + lost, width, has_fcs=False) == expected


@pytest.mark.parametrize("width", WIDTHS)
def test_lengths_without_fcs_count_it(width):
    sizes = [59, 60, 95, 96, 97, 60]
    frames = [Arrival(SMALL.ljust(size, b"\0")) for size in sizes]
    assert [found.frame_class for found in parse(
        frames, width, max_octets=100, has_fcs=False)] == [
            C.RUNT, C.ELIGIBLE_REQUEST, C.ELIGIBLE_REQUEST, C.ELIGIBLE_REQUEST, C.OVERSIZE,
            C.ELIGIBLE_REQUEST]


@pytest.mark.parametrize("width", WIDTHS)
def test_icrc_switched_off(width):
    wrong = request(wrong_icrc=True)
    assert [found.frame_class for found in parse([wrong, wrong], width, check_icrc=False)] == [
        C.ELIGIBLE_REQUEST] * 2


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("limit", [64, 100, 130])
def test_longest_frame(width, limit):
    sizes = [limit - 1, limit, limit + 1, limit, limit + 2, limit]
    frames = [Arrival(with_fcs(pad(SMALL, size - 4))) for size in sizes]
    frames.append(Arrival(with_fcs(pad(SMALL, limit - 3), wrong=True)))
    expected = [classify(frame, max_octets=limit) for frame in frames]
    assert [found.frame_class for found in expected] == [
        C.RUNT if size < 64 else C.OVERSIZE if size > limit else C.ELIGIBLE_REQUEST
        for size in [*sizes, limit + 1]]
    assert parse(frames, width, max_octets=limit) == expected


JUMBO = [  # WRITE FIRST and WRITE ONLY with immediate of 4096 octets, and whole MTUs of 9216
    roce(bytes(16 + 4096), opcode=0x06),
    roce(bytes(16 + 4096), opcode=0x06, version=6),
    roce(bytes(20 + 4096), opcode=0x0B, version=6),
    roce(bytes(20 + 4096), opcode=0x0B, version=6, tags=((0x8100, 1),)),
    roce(bytes(20 + 4096), opcode=0x0B, version=6, tags=((0x88A8, 1), (0x8100, 2))),
    *(roce(bytes(size - 62)) for size in (9018, 9022, 9026)),
    roce(bytes(9216 - 44), tags=((0x88A8, 1), (0x8100, 2))),
]


def test_jumbo_sizes_are_those_of_the_standard():
    assert [len(frame) for frame in JUMBO[:3]] == [4170, 4190, 4194]
    assert len(with_fcs(JUMBO[-1])) == MAX_OCTETS == 9242


@pytest.mark.parametrize(("width", "jumbo"), [(8, JUMBO[4::4]), (64, JUMBO)])
def test_jumbo_frames_up_to_the_default_limit(width, jumbo):
    above = Arrival(with_fcs(pad(JUMBO[-1], MAX_OCTETS - 3)))
    frames = [*(Arrival(with_fcs(frame)) for frame in jumbo), above, GOOD]
    expected = [classify(frame) for frame in frames]
    assert [found.frame_class for found in expected] == [
        *[C.ELIGIBLE_REQUEST] * len(jumbo), C.OVERSIZE, C.ELIGIBLE_REQUEST]
    assert parse(frames, width) == expected


def test_counting_octets_does_not_wrap():
    endless = Arrival(bytes(40000))
    assert [found.frame_class for found in parse([endless, GOOD], 64, max_octets=0x3FFF)] == [
        C.OVERSIZE, C.ELIGIBLE_REQUEST]


@pytest.mark.parametrize(("width", "name"), [
    (1, "untagged"), (8, "IPv6 under two tags"), (8, "IHL 15 under two tags"),
    (64, "IPv6"), (64, "IHL 15 under two tags")])
def test_cut_at_every_octet(name, width):
    octets = CASES[name][0].octets
    frames = [sliced(octets, count) for count in range(len(octets) - 3)]
    expected = [classify(frame) for frame in frames]
    assert {found.frame_class for found in expected} == {C.SLICED_SHORT, C.ELIGIBLE_REQUEST}
    assert parse(frames, width) == expected


def random_frame(rng):
    """Any of the kinds that traffic has, most of them RoCEv2, some of them broken anywhere."""
    tags = tuple((rng.choice((0x8100, 0x88A8, 0x9100)), rng.getrandbits(16))
                 for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 2, 3))))
    payload = rng.randbytes(rng.choice((0, 4, rng.randrange(64), rng.randrange(256),
                                        rng.randrange(1500))))
    version = rng.choice((4, 6))
    ip = {"options": rng.randbytes(4 * rng.randrange(11))} if version == 4 else {
        "traffic_class": rng.getrandbits(8), "flow": rng.getrandbits(20),
        "hops": rng.getrandbits(8)}
    kind = rng.random()
    if kind < 0.8:
        octets = roce(
            payload, version=version, tags=tags, ip=ip, psn=rng.getrandbits(24),
            qp=rng.getrandbits(24), pkey=rng.getrandbits(16), sport=rng.getrandbits(16),
            wrong_icrc=rng.random() < 0.1, tver=rng.choice((0,) * 15 + (1,)),
            opcode=rng.choice((rng.randrange(12), rng.randrange(32), rng.randrange(256), 0x81)))
    elif kind < 0.9:
        octets = pfc({n: rng.choice((0, 1, 0xFFFF)) for n in range(8) if rng.random() < 0.5},
                     tags=tags[:rng.randrange(2)])
    else:
        octets = ethernet(rng.choice((0x0800, 0x86DD, 0x8808, 0x8915, 0x0806)), payload, tags=tags)
    octets = pad(octets)
    if rng.random() < 0.25:
        place = rng.randrange(min(len(octets), 110))
        flipped = octets[place] ^ rng.choice((1 << rng.randrange(8), 0xFF))
        octets = octets[:place] + bytes([flipped]) + octets[place + 1:]
    how = rng.random()
    if how < 0.15:
        return sliced(octets, rng.randrange(len(octets) + 1))
    if how < 0.2:
        return Arrival(rng.randbytes(rng.randrange(1, 90)), error=rng.random() < 0.3)
    if how < 0.22:
        return Arrival(b"\0", lost=True)
    return Arrival(with_fcs(octets, wrong=rng.random() < 0.05), error=rng.random() < 0.02)


@pytest.mark.parametrize(("width", "count"), [(1, 20), (8, 100), (64, 300)])
@pytest.mark.parametrize(("gap", "seed"), [(0.0, 1), (0.3, 2)])
def test_random_frames(width, count, gap, seed):
    rng = random.Random(f"parser {seed} {width} {gap}")
    frames = [random_frame(rng) for _ in range(count)]
    assert parse(frames, width, gap=gap, seed=seed) == [classify(frame) for frame in frames]


@pytest.mark.parametrize("width", WIDTHS)
def test_minimum_frames_back_to_back(width):
    """FCS wrong in each tenth; at 64 octets a beat this is a frame in every clock."""
    count = {1: 20, 8: 200, 64: 1000}[width]
    frames = [Arrival(with_fcs(pad(roce(psn=i, qp=i % 7)), wrong=i % 10 == 9))
              for i in range(count)]
    found = parse(frames, width)
    assert [verdict.frame_class for verdict in found] == [
        C.BAD_FCS if i % 10 == 9 else C.ELIGIBLE_REQUEST for i in range(count)]
    assert [(verdict.psn, verdict.key["qp"]) for verdict in found if verdict.key] == [
        (i, i % 7) for i in range(count) if i % 10 != 9]


REAL = {"rc-send-ack.pcap": {C.ELIGIBLE_REQUEST: 68, C.RESPONSE: 37, C.NOT_ROCE: 16,
                             C.IPV6_EXTENSION: 2},
        "cnp.pcap": {C.CNP: 1}}
"""What is known of the captures of real traffic beside the tree; run when they are there."""


@pytest.mark.parametrize("name", sorted(REAL.keys() & REAL_CAPTURES.keys()))
def test_real_traffic(name):
    with REAL_CAPTURES[name].open("rb") as file:
        frames = [good(octets) for _, octets in dpkt.pcap.Reader(file)]
    found = parse(frames, 8)
    assert Counter(verdict.frame_class for verdict in found) == REAL[name]
    assert found == [classify(frame) for frame in frames]


def test_latency_is_what_it_says():
    assert Parser(8).latency == 15
    assert Parser(8, vxlan=True).latency == 22


def test_width_that_is_not_made():
    refuses("bus_bytes is 4, must be 1, 8 or 64", lambda: Parser(4))
