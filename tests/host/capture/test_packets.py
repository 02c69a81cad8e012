"""The vectorized parse against the slow reading of the reference, frame by frame."""

from __future__ import annotations

import struct
from ipaddress import ip_address

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

from rocetap.capture.frames import FrameBatch
from rocetap.capture.packets import parse_roce
from support.frames import bth, ethernet, ipv4, ipv6, pfc, roce, udp
from support.reference import classify


def batch_of(frames, originals=None):
    """A batch with a little room between the frames, so that reading on would be seen."""
    sizes = [len(frame) for frame in frames]
    starts = np.cumsum([3] + [size + 3 for size in sizes])[:-1]
    originals = sizes if originals is None else originals
    data = b"\xff\xff\xff" + b"\xff\xff\xff".join(frames)
    count = len(frames)
    return FrameBatch(
        np.frombuffer(data, np.uint8), starts.astype(np.uint64), np.array(sizes, np.uint32),
        np.array(originals, np.uint32), np.zeros(count, np.uint64), np.zeros(count, np.uint16),
        np.zeros(count, np.bool_))


def rows(packets):
    """What the parse found, as tuples by frame."""
    found = {}
    for i in range(len(packets)):
        size = 16 if packets.ipv6[i] else 4
        found[int(packets.frame[i])] = (
            str(ip_address(packets.source[i].tobytes()[16 - size:])),
            str(ip_address(packets.destination[i].tobytes()[16 - size:])),
            int(packets.destination_qp[i]), int(packets.partition_key[i]), int(packets.vlan[i]),
            int(packets.inner_vlan[i]), int(packets.opcode[i]), int(packets.psn[i]))
    return found


def expected_rows(frames, originals=None):
    found = {}
    for index, frame in enumerate(frames):
        seen = classify(frame, None if originals is None else originals[index])
        if seen.key is not None:
            found[index] = (*seen.key, seen.opcode, seen.psn)
    return found


TAGGED = [(0x8100, 0x6064), (0x88A8, 0xA0C8), (0x9100, 0x1FFF)]
FRAMES = {
    "ipv4": roce(bytes(18), psn=1), "ipv6": roce(bytes(18), version=6, psn=2, pkey=0x8001),
    "vlan": roce(tags=TAGGED[:1], psn=3), "priority tag": roce(tags=[(0x8100, 0x6000)], psn=4),
    "qinq": roce(tags=[TAGGED[1], TAGGED[0]], version=6, psn=5),
    "old qinq": roce(tags=[TAGGED[2], TAGGED[0]], psn=6),
    "twice 8100": roce(tags=[TAGGED[0], TAGGED[0]], psn=6, qp=0xFFFFFF),
    "three tags": roce(tags=[TAGGED[1], TAGGED[0], TAGGED[0]], psn=777),
    "options": roce(ip={"options": bytes([1, 1, 1, 0])}, psn=7),
    "all options": roce(ip={"options": bytes(40)}, psn=8),
    "ihl 4": roce(ip={"ihl": 4}, psn=777), "version 5": roce(psn=777).replace(b"\x45", b"\x55", 1),
    "later fragment": roce(ip={"flags": 185}, psn=777),
    "first fragment": roce(ip={"flags": 0x2000}, psn=777),
    "tcp": roce(ip={"protocol": 6}, psn=777),
    "hop by hop": roce(version=6, ip={"next_header": 0}, psn=777),
    "length too long": roce(ip={"length": 9000}, psn=777),
    "length in the bth": roce(ip={"length": 39}, psn=777),
    "udp length in the bth": ethernet(0x0800, ipv4(udp(bth(bytes(40)), length=19))),
    "vxlan": ethernet(0x0800, ipv4(udp(bytes(8) + roce(psn=777), destination=4789))),
    "other port": ethernet(0x0800, ipv4(udp(bth(bytes(40)), destination=4792))),
    "source port": ethernet(0x0800, ipv4(udp(bth(bytes(40)), source=4791, destination=53))),
    "version 1": roce(tver=1, psn=9), "response": roce(opcode=0x11, psn=10),
    "cnp": roce(bytes(16), opcode=0x81), "vendor": roce(opcode=0x19, psn=11),
    "pfc": pfc({3: 1}), "arp": ethernet(0x0806, bytes(46)), "short": b"\x02" * 13, "none": b"",
    "ipv6 short": ethernet(0x86DD, ipv6(bytes(11))),
}


@pytest.mark.parametrize("name", FRAMES)
def test_one_frame_is_read_as_the_reference_reads_it(name):
    frame = FRAMES[name]
    assert rows(parse_roce(batch_of([frame]))) == expected_rows([frame])


def test_all_frames_together_and_the_last_at_the_end_of_the_data():
    frames = list(FRAMES.values())
    for order in (frames, frames[::-1]):
        got = rows(parse_roce(batch_of(order)))
        assert got == expected_rows(order)
    assert len(got) == 14


def test_an_empty_batch():
    assert len(parse_roce(batch_of([]))) == 0


@pytest.mark.parametrize("name", ["ipv4", "ipv6", "vlan", "qinq", "all options"])
def test_a_cut_frame_counts_when_its_bth_is_whole(name):
    frame = FRAMES[name]
    cuts = [frame[:size] for size in range(len(frame) + 1)]
    originals = [len(frame)] * len(cuts)
    got = rows(parse_roce(batch_of(cuts, originals)))
    assert got == expected_rows(cuts, originals)
    bth_end = len(frame) - 4 - (20 if name in ("ipv4", "ipv6") else 0)
    assert min(got) == bth_end


def test_frames_of_another_encoder():
    frames = [
        bytes(Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=0, dport=4791)
              / BTH(opcode=0x04, psn=0xFFFFFF, dqpn=0x123456, pkey=0x1234)),
        bytes(Ether() / Dot1Q(vlan=7, prio=5) / IPv6(src="fe80::1", dst="fe80::2")
              / UDP(sport=69, dport=4791) / BTH(opcode=0x0A, psn=1, dqpn=1)),
    ]
    assert rows(parse_roce(batch_of(frames))) == {
        0: ("10.0.0.1", "10.0.0.2", 0x123456, 0x1234, 0, 0, 0x04, 0xFFFFFF),
        1: ("fe80::1", "fe80::2", 1, 0xFFFF, 7, 0, 0x0A, 1)}


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_changed_frames_are_read_as_the_reference_reads_them(data):
    frames, originals = [], []
    for name in data.draw(st.lists(st.sampled_from(sorted(FRAMES)), min_size=1, max_size=6)):
        frame = bytearray(FRAMES[name])
        for _ in range(data.draw(st.integers(0, 2))):
            if frame:
                frame[data.draw(st.integers(0, min(len(frame), 70) - 1))] = data.draw(
                    st.sampled_from([0, 1, 4, 6, 8, 17, 0x45, 0x81, 255]))
        cut = data.draw(st.integers(0, len(frame)))
        sliced = data.draw(st.booleans())
        frames.append(bytes(frame[:cut]) if sliced else bytes(frame))
        originals.append(len(frame))
    got = rows(parse_roce(batch_of(frames, originals)))
    assert got == expected_rows(frames, originals)


def test_a_bth_is_read_from_its_own_place():
    octets = struct.pack(">BBHII", 5, 0x40, 0x1234, 0xFF << 24 | 0xABCDEF, 1 << 31 | 0x123456)
    frame = ethernet(0x0800, ipv4(udp(octets + bytes(8))))
    [row] = rows(parse_roce(batch_of([frame]))).values()
    assert row == ("192.0.2.1", "198.51.100.2", 0xABCDEF, 0x1234, 0, 0, 5, 0x123456)
