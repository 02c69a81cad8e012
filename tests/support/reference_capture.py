"""What a capture must give: an independent, slow reading of frames, then the reference model.

Plain struct and slices, one frame at a time; the frame classes are those of the contract
(rocetap.spec.classes), everything else is restated here.
"""

from __future__ import annotations

import binascii
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from rocetap.spec.classes import FrameClass

from .reference_model import Epoch, ReferenceConnection

__all__ = ["Classified", "Expected", "Key", "classify", "reference_capture"]

_EXTENSIONS = (0, 43, 50, 51, 60, 135, 139, 140)
_EXTENDED_OCTETS = {
    0x03: 4, 0x05: 4, 0x06: 16, 0x09: 4, 0x0A: 16, 0x0B: 20, 0x0C: 16, 0x13: 28, 0x14: 28,
    0x16: 4, 0x17: 4, 0x1C: 20, 0x1D: 16,
    0x23: 4, 0x25: 4, 0x26: 16, 0x29: 4, 0x2A: 16, 0x2B: 20,
    0x40: 12, 0x41: 12, 0x42: 12, 0x43: 16, 0x44: 12, 0x45: 16, 0x46: 28, 0x47: 12, 0x48: 12,
    0x49: 16, 0x4A: 28, 0x4B: 32, 0x4C: 28, 0x4D: 8, 0x4E: 4, 0x4F: 8, 0x50: 8, 0x51: 8, 0x52: 16,
    0x53: 40, 0x54: 40,
    0x64: 8, 0x65: 12,
    0xA0: 4, 0xA1: 4, 0xA2: 4, 0xA3: 8, 0xA4: 4, 0xA5: 8, 0xA6: 20, 0xA7: 4, 0xA8: 4, 0xA9: 8,
    0xAA: 20, 0xAB: 24, 0xAC: 20, 0xAD: 4, 0xAF: 4, 0xB0: 4, 0xB1: 4, 0xB2: 12, 0xB3: 32,
    0xB4: 32, 0xB6: 8, 0xB7: 8,
}


class Key(NamedTuple):
    """What tells one request stream from another; addresses as text."""

    source: str
    destination: str
    destination_qp: int
    partition_key: int
    vlan: int
    inner_vlan: int


@dataclass(frozen=True)
class Classified:
    """One frame: its class, and for RoCEv2 packets with a whole BTH what is in it."""

    frame_class: FrameClass
    key: Key | None = None
    opcode: int = 0
    psn: int = 0
    pfc: dict[int, int] = field(default_factory=dict)
    """Priority -> quanta of the enabled classes of a PFC frame."""


@dataclass
class Expected:
    """`epochs`: the final reports of every request stream, in the order of their closing."""

    epochs: dict[Key, list[Epoch]] = field(default_factory=dict)
    classes: Counter[FrameClass] = field(default_factory=Counter)
    pfc: Counter[int] = field(default_factory=Counter)
    """PFC frames by priority."""
    pfc_xoff: Counter[int] = field(default_factory=Counter)
    """Those with quanta above zero."""


class _Sliced(Exception):
    pass


class _View:
    """The octets of a frame; reading behind a cut says so."""

    def __init__(self, data: bytes, sliced: bool) -> None:
        self.data, self.sliced = data, sliced

    def number(self, at: int, count: int) -> int:
        if at + count > len(self.data):
            if self.sliced:
                raise _Sliced
            return 0
        return int.from_bytes(self.data[at:at + count], "big")


def classify(data: bytes, original: int | None = None, *, check_icrc: bool = True) -> Classified:
    """The class of one frame without FCS; `original` above len(data) says that it was cut.

    A whole frame below 60 octets is padded, as a sender's MAC does.
    """
    sliced = original is not None and original > len(data)
    view = _View(data if sliced else data.ljust(60, b"\0"), sliced)
    try:
        return _ethernet(view, check_icrc)
    except _Sliced:
        return Classified(FrameClass.SLICED_SHORT)


def _ethernet(view: _View, check_icrc: bool) -> Classified:
    at, vids = 12, []
    while (kind := view.number(at, 2)) in (0x8100, 0x88A8, 0x9100):
        if len(vids) == 2:
            return Classified(FrameClass.TAGS_TOO_DEEP)
        vids.append(view.number(at + 2, 2) & 0xFFF)
        at += 4
    tags = (*vids, 0, 0)[:2]
    at += 2
    if kind == 0x8808:
        return _mac_control(view, at, tagged=bool(vids))
    if kind == 0x8915:
        return Classified(FrameClass.ROCEV1)
    if kind == 0x0800:
        return _ipv4(view, at, tags, check_icrc)
    if kind == 0x86DD:
        return _ipv6(view, at, tags, check_icrc)
    return Classified(FrameClass.NOT_ROCE)


def _mac_control(view: _View, at: int, *, tagged: bool) -> Classified:
    opcode = None if len(view.data) < at + 2 else view.number(at, 2)
    if opcode == 0x0001:
        return Classified(FrameClass.PAUSE)
    if opcode != 0x0101:
        return Classified(FrameClass.MAC_CONTROL)
    if tagged:
        return Classified(FrameClass.TAGGED_PFC)
    if view.sliced or view.data[:6] != bytes.fromhex("0180c2000001"):
        return Classified(FrameClass.BAD_PFC)
    enabled = view.number(at + 2, 2) & 0xFF
    quanta = {priority: view.number(at + 4 + 2 * priority, 2) for priority in range(8)}
    return Classified(FrameClass.PFC, pfc={priority: value for priority, value in quanta.items()
                                           if enabled >> priority & 1})


def _ipv4(view: _View, at: int, tags: tuple[int, ...], check_icrc: bool) -> Classified:
    first, length = view.number(at, 1), view.number(at + 2, 2)
    header = (first & 15) * 4
    if first >> 4 != 4 or header < 20 or length < header:
        return Classified(FrameClass.MALFORMED_IP)
    if not view.sliced and at + length > len(view.data):
        return Classified(FrameClass.MALFORMED_IP)
    if view.number(at + 6, 2) & 0x3FFF:
        return Classified(FrameClass.IP_FRAGMENT)
    if view.number(at + 9, 1) != 17:
        return Classified(FrameClass.NOT_ROCE)
    view.number(at + 12, 8)
    addresses = tuple(str(IPv4Address(view.data[at + i:at + i + 4])) for i in (12, 16))
    masked = bytearray(view.data[at:at + length])
    for i in (1, 8, 10, 11):
        masked[i:i + 1] = b"\xff"
    return _udp(view, at, header, length, addresses, tags, masked, check_icrc)


def _ipv6(view: _View, at: int, tags: tuple[int, ...], check_icrc: bool) -> Classified:
    if view.number(at, 1) >> 4 != 6:
        return Classified(FrameClass.MALFORMED_IP)
    length, following = 40 + view.number(at + 4, 2), view.number(at + 6, 1)
    if not view.sliced and at + length > len(view.data):
        return Classified(FrameClass.MALFORMED_IP)
    if following == 44:
        return Classified(FrameClass.IP_FRAGMENT)
    if following in _EXTENSIONS:
        return Classified(FrameClass.IPV6_EXTENSION)
    if following != 17:
        return Classified(FrameClass.NOT_ROCE)
    view.number(at + 8, 32)
    addresses = tuple(str(IPv6Address(view.data[at + i:at + i + 16])) for i in (8, 24))
    masked = bytearray(view.data[at:at + length])
    masked[0] |= 0x0F
    masked[1:4] = b"\xff\xff\xff"
    masked[7:8] = b"\xff"
    return _udp(view, at, 40, length, addresses, tags, masked, check_icrc)


def _udp(view: _View, ip: int, header: int, length: int, addresses: tuple[str, ...],
         tags: tuple[int, ...], masked: bytearray, check_icrc: bool) -> Classified:
    room = length - header
    if room < 8:
        return Classified(FrameClass.MALFORMED_IP)
    port = view.number(ip + header + 2, 2)
    if port in (4789, 8472):
        return Classified(FrameClass.TUNNELLED)
    if port != 4791:
        return Classified(FrameClass.NOT_ROCE)
    udp_length = view.number(ip + header + 4, 2)
    if room < 8 + 12:
        return Classified(FrameClass.MALFORMED_IP)
    bth = ip + header + 8
    opcode, flags, partition_key = struct.unpack(">BBH", _octets(view, bth, 4))
    key = Key(addresses[0], addresses[1], view.number(bth + 5, 3), partition_key, tags[0], tags[1])
    psn = view.number(bth + 9, 3)

    def verdict(frame_class: FrameClass) -> Classified:
        return Classified(frame_class, key, opcode, psn)

    if 0x0D <= opcode <= 0x12:
        return verdict(FrameClass.RESPONSE)
    if opcode == 0x81:
        return verdict(FrameClass.CNP)
    least = 8 + 12 + _EXTENDED_OCTETS.get(opcode, 0) + (flags >> 4 & 3) + 4
    if flags & 15 or udp_length != room or udp_length < least:
        return verdict(FrameClass.MALFORMED_ROCE)
    if check_icrc and not view.sliced and not _icrc_good(masked, header):
        return verdict(FrameClass.BAD_ICRC)
    return verdict(FrameClass.ELIGIBLE_REQUEST if opcode <= 0x0B
                   else FrameClass.UNSUPPORTED_REQUEST)


def _octets(view: _View, at: int, count: int) -> bytes:
    return view.number(at, count).to_bytes(count, "big")


def _icrc_good(masked: bytearray, header: int) -> bool:
    """`masked`: the IP packet with its IP fields set to ones already; UDP's and BTH's follow."""
    packet = bytearray(masked)
    packet[header + 6:header + 8] = b"\xff\xff"
    packet[header + 8 + 4] = 0xFF
    return (binascii.crc32(b"\xff" * 8 + bytes(packet[:-4])).to_bytes(4, "little")
            == bytes(packet[-4:]))


def _is_stream(frame: Classified) -> bool:
    """Whether the frame makes its key a request stream: a request in RC space."""
    return frame.key is not None and frame.opcode < 0x20 and frame.frame_class not in (
        FrameClass.RESPONSE, FrameClass.CNP)


def reference_capture(frames: Iterable[object], window: int, *,
                      check_icrc: bool = True, combine: bool = True) -> Expected:
    """The final reports of every RC request stream in `frames`, all closed (without a reason) at
    the end. A frame is (time in ns, octets) or has data, original, time_ns and lost. `combine` as
    for ReferenceConnection."""
    expected = Expected()
    events: list[tuple[int, Classified]] = []
    for frame in frames:
        if isinstance(frame, tuple):
            time_ns, data, original, lost = frame[0], frame[1], None, False
        else:
            time_ns, data = frame.time_ns, frame.data  # type: ignore[attr-defined]
            original, lost = frame.original, frame.lost  # type: ignore[attr-defined]
        if lost:
            events.append((time_ns, Classified(FrameClass.LOST)))
        events.append((time_ns, classify(data, original, check_icrc=check_icrc)))
    connections = {frame.key: ReferenceConnection(window, combine=combine) for _, frame in events
                   if _is_stream(frame)}
    for time_ns, frame in events:
        expected.classes[frame.frame_class] += 1
        expected.pfc.update(frame.pfc.keys())
        expected.pfc_xoff.update(p for p, quanta in frame.pfc.items() if quanta)
        _apply(frame, time_ns, connections)
    for key, connection in connections.items():
        connection.close()
        assert key is not None
        expected.epochs[key] = connection.results
    return expected


def _apply(frame: Classified, time_ns: int,
           connections: dict[Key | None, ReferenceConnection]) -> None:
    if frame.frame_class in (FrameClass.SLICED_SHORT, FrameClass.LOST):
        for connection in connections.values():
            connection.capture_discontinuity()
    if frame.frame_class in (FrameClass.RESPONSE, FrameClass.CNP) or frame.key not in connections:
        return
    connection = connections[frame.key]
    if frame.frame_class == FrameClass.ELIGIBLE_REQUEST:
        connection.request(frame.psn, time_ns)
    elif frame.key is not None:
        connection.violation()
