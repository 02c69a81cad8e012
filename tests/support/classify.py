"""What the parser must say of a frame: a slow reading of its octets, one question after another.

Independent of the gateware: nothing here knows beats, stages or masks. CRCs are zlib's.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from rocetap.spec.classes import FrameClass
from rocetap.spec.opcodes import extended_header_octets

from .frames import PFC_MAC, icrc

__all__ = ["KEYED", "Arrival", "Finding", "classify"]

EXTENSIONS = {0, 43, 50, 51, 60, 135, 139, 140, 253, 254}
TPIDS = (0x8100, 0x88A8, 0x9100)
MAC_CONTROL = {FrameClass.PFC, FrameClass.BAD_PFC, FrameClass.TAGGED_PFC, FrameClass.PAUSE,
               FrameClass.MAC_CONTROL}
KEYED = {FrameClass.ELIGIBLE_REQUEST, FrameClass.UNSUPPORTED_REQUEST, FrameClass.MALFORMED_ROCE,
         FrameClass.BAD_ICRC, FrameClass.RESPONSE, FrameClass.CNP}


@dataclass(frozen=True)
class Arrival:
    """A frame as the MAC gives it: with its FCS, or with four placeholders when `sliced`."""

    octets: bytes
    error: bool = False
    sliced: bool = False
    lost: bool = False


@dataclass
class Finding:
    """A verdict. `key`, `psn` and `opcode` only for classes that have a whole BTH; `vni` in the key
    of a tunnelled frame only. `pfc` is (vector, xoff) for a PFC frame."""

    frame_class: FrameClass
    key: dict[str, int] = field(default_factory=dict)
    psn: int = 0
    opcode: int = 0
    pfc: tuple[int, int] | None = None


class _Cut(Exception):
    """The tap did not capture the octets that were asked for."""


class _Octets:
    def __init__(self, octets: bytes, sliced: bool, vxlan: bool = False):
        self.octets = octets
        self.sliced = sliced
        self.vxlan = vxlan

    def number(self, start: int, count: int) -> int:
        part = self.octets[start:start + count]
        if len(part) < count:
            if self.sliced:
                raise _Cut
            part = part.ljust(count, b"\0")
        return int.from_bytes(part, "big")

    def behind(self, start: int) -> _Octets:
        return _Octets(self.octets[start:], self.sliced, self.vxlan)


def classify(arrival: Arrival, *, check_icrc: bool = True, max_octets: int = 9242,
             vxlan: bool = False) -> Finding:
    """The one class of an arrival, and what goes with it; `vxlan`: tunnelled frames are read."""
    frame = arrival.octets
    if arrival.lost:
        return Finding(FrameClass.LOST)
    if arrival.error:
        return Finding(FrameClass.MAC_ERROR)
    if len(frame) > max_octets:
        return Finding(FrameClass.OVERSIZE)
    if not arrival.sliced:
        if len(frame) < 64:
            return Finding(FrameClass.RUNT)
        if zlib.crc32(frame[:-4]).to_bytes(4, "little") != frame[-4:]:
            return Finding(FrameClass.BAD_FCS)
    try:
        found = _layer2(_Octets(frame[:-4], arrival.sliced, vxlan),
                        check_icrc and not arrival.sliced)
    except _Cut:
        found = Finding(FrameClass.SLICED_SHORT)
    return found if found.frame_class in KEYED else Finding(found.frame_class, pfc=found.pfc)


def _layer2(frame: _Octets, check_icrc: bool) -> Finding:
    start, vids = 14, []
    while (ethertype := frame.number(start - 2, 2)) in TPIDS:
        if len(vids) == 2:
            return Finding(FrameClass.TAGS_TOO_DEEP)
        vids.append(frame.number(start, 2) & 0xFFF)
        start += 4
        frame.number(start - 2, 2)
    packet = frame.behind(start)
    if ethertype == 0x8808:
        return _mac_control(frame, packet, tagged=bool(vids))
    if ethertype == 0x8915:
        return Finding(FrameClass.ROCEV1)
    if ethertype not in (0x0800, 0x86DD):
        return Finding(FrameClass.NOT_ROCE)
    found = (_ipv4 if ethertype == 0x0800 else _ipv6)(packet, check_icrc)
    outer, inner = [*vids, 0, 0][:2]
    return Finding(found.frame_class, {"outer_vid": outer, "inner_vid": inner, **found.key},
                   found.psn, found.opcode)


def _vxlan(datagram: _Octets, room: int, check_icrc: bool) -> Finding:
    """RFC 7348 5. The inner frame ends with the outer packet, or with what the tap has."""
    length = datagram.number(4, 2)
    if length != room or length < 8 + 8 + 14:
        return Finding(FrameClass.MALFORMED_IP)
    if not datagram.number(8, 1) & 0x08:
        return Finding(FrameClass.TUNNELLED)
    datagram.number(8 + 8 + 13, 1)
    end = None if datagram.sliced else room
    inner = _Octets(datagram.octets[16:end], datagram.sliced)
    tags = 0
    while not datagram.sliced and tags < 3 and inner.number(12 + 4 * tags, 2) in TPIDS:
        tags += 1
        if tags < 3 and len(inner.octets) < 14 + 4 * tags:
            return Finding(FrameClass.MALFORMED_IP)
    found = _layer2(inner, check_icrc)
    if found.frame_class in MAC_CONTROL:
        return Finding(FrameClass.NOT_ROCE)
    found.key["vni"] = datagram.number(12, 3)
    return found


def _mac_control(frame: _Octets, packet: _Octets, *, tagged: bool) -> Finding:
    if packet.octets[:2] == b"\x00\x01":
        return Finding(FrameClass.PAUSE)
    if packet.octets[:2] != b"\x01\x01":
        return Finding(FrameClass.MAC_CONTROL)
    if tagged:
        return Finding(FrameClass.TAGGED_PFC)
    if packet.sliced or frame.octets[:6] != PFC_MAC:
        return Finding(FrameClass.BAD_PFC)
    vector = packet.octets[3]
    xoff = sum(1 << n for n in range(8) if vector >> n & 1 and packet.number(4 + 2 * n, 2))
    return Finding(FrameClass.PFC, pfc=(vector, xoff))


def _ipv4(packet: _Octets, check_icrc: bool) -> Finding:
    first = packet.number(0, 1)
    header = 4 * (first & 15)
    if first >> 4 != 4 or header < 20:
        return Finding(FrameClass.MALFORMED_IP)
    length = packet.number(2, 2)
    if length < header or (not packet.sliced and length > len(packet.octets)):
        return Finding(FrameClass.MALFORMED_IP)
    if packet.number(6, 2) & 0x3FFF:
        return Finding(FrameClass.IP_FRAGMENT)
    if packet.number(9, 1) != 17:
        return Finding(FrameClass.NOT_ROCE)
    return _udp(packet, header, length, check_icrc, {"ipv6": 0, **_addresses(packet, 12, 4)})


def _ipv6(packet: _Octets, check_icrc: bool) -> Finding:
    if packet.number(0, 1) >> 4 != 6:
        return Finding(FrameClass.MALFORMED_IP)
    length = 40 + packet.number(4, 2)
    if not packet.sliced and length > len(packet.octets):
        return Finding(FrameClass.MALFORMED_IP)
    next_header = packet.number(6, 1)
    if next_header == 44:
        return Finding(FrameClass.IP_FRAGMENT)
    if next_header in EXTENSIONS:
        return Finding(FrameClass.IPV6_EXTENSION)
    if next_header != 17:
        return Finding(FrameClass.NOT_ROCE)
    return _udp(packet, 40, length, check_icrc, {"ipv6": 1, **_addresses(packet, 8, 16)})


def _addresses(packet: _Octets, start: int, size: int) -> dict[str, int]:
    return {name: int.from_bytes(packet.octets[at:at + size], "big")
            for name, at in (("source", start), ("destination", start + size))}


def _udp(packet: _Octets, start: int, end: int, check_icrc: bool, key: dict[str, int]) -> Finding:
    room = end - start
    if room < 8:
        return Finding(FrameClass.MALFORMED_IP)
    datagram = packet.behind(start)
    port = datagram.number(2, 2)
    if port in (4789, 8472):
        if packet.vxlan:
            return _vxlan(datagram, room, check_icrc)
        return Finding(FrameClass.TUNNELLED)
    if port != 4791:
        return Finding(FrameClass.NOT_ROCE)
    if room < 20:
        return Finding(FrameClass.MALFORMED_IP)
    datagram.number(19, 1)
    opcode = datagram.number(8, 1)
    found = Finding(FrameClass.UNSUPPORTED_REQUEST, opcode=opcode, psn=datagram.number(17, 3))
    found.key = {**key, "pkey": datagram.number(10, 2), "qp": datagram.number(13, 3)}
    pad_count, version = datagram.number(9, 1) >> 4 & 3, datagram.number(9, 1) & 15
    if 0x0D <= opcode <= 0x12:
        found.frame_class = FrameClass.RESPONSE
    elif opcode == 0x81:
        found.frame_class = FrameClass.CNP
    elif (version or datagram.number(4, 2) != room
          or 20 + extended_header_octets(opcode) + pad_count + 4 > room):
        found.frame_class = FrameClass.MALFORMED_ROCE
    elif check_icrc and icrc(packet.octets[:end - 4]) != packet.octets[end - 4:end]:
        found.frame_class = FrameClass.BAD_ICRC
    elif opcode <= 0x0B:
        found.frame_class = FrameClass.ELIGIBLE_REQUEST
    return found
