"""The pcapng format: octets in, batches of frames out. No file, no clock.

Blocks: type, total length, body, total length again, all multiples of four octets. A section
header sets the byte order and forgets the interfaces. Read are section headers, interface
descriptions, enhanced, simple and obsolete packets, and interface statistics for their drop
count; every other block is skipped, however long.
"""

from __future__ import annotations

import struct

from .frames import LINK_TYPE_ETHERNET, MAX_FRAME_OCTETS, CaptureError, FrameBatch, link_type_name
from .notes import Notes
from .pcapng_options import (
    EPB_DROPCOUNT,
    ISB_IFDROP,
    Interface,
    drop_count,
    read_interface,
)
from .pcapng_runs import PACKET_HEADER_OCTETS, PacketColumns, enhanced_starts, read_run

__all__ = ["PCAPNG_MAGIC", "PcapngDecoder"]

PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE, _STATISTICS, _ENHANCED = (
    0x0A0D0D0A, 1, 2, 3, 5, 6)
_LEAST = {_SECTION: 28, _INTERFACE: 20, _OLD_PACKET: 32, _SIMPLE: 16, _STATISTICS: 24,
          _ENHANCED: 32}
_MAX_KEPT_OCTETS = 1 << 24
"""Longest block of a type that is read; longer ones of other types are skipped unseen."""
_BYTE_ORDER_MAGIC = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}


class PcapngDecoder:
    """Feed it octets in any pieces; each call returns the frames that are whole by then.

    Attributes as :class:`.pcap.PcapDecoder`; `record` counts blocks.
    """

    def __init__(self, name: str, notes: Notes) -> None:
        self._name = name
        self._notes = notes
        self._rest = b""
        self._skip = self._skip_length = 0
        self._order = ""
        self._interfaces: list[Interface] = []
        self._last_time = 0
        self.link_type: int | None = None
        self.offset = 0
        self.record = 1
        self.damage: str | None = None

    @property
    def ready(self) -> bool:
        """Whether an interface was described."""
        return self.link_type is not None

    def feed(self, piece: bytes) -> FrameBatch | None:
        """The frames that `piece` completes, or None. Raises CaptureError for what is refused."""
        if self.damage:
            return None
        if self._skip:
            skipped = min(self._skip, len(piece))
            self._skip -= skipped
            piece = piece[skipped:]
            if not self._skip:
                self.offset += self._skip_length
                self.record += 1
        buffer = self._rest + piece if self._rest else piece
        found = PacketColumns()
        end = self._walk(buffer, found)
        self._rest = buffer[end:]
        return found.batch(buffer)

    def leftover(self) -> str | None:
        """At the end of the octets: why the last block is not whole, or None."""
        if self.damage:
            return self.damage
        if self._skip:
            return f"the file ends {self._skip} octets before the end of this block"
        if self._rest:
            return f"the file ends {len(self._rest)} octets into this block"
        return None

    def header_leftover(self) -> str:
        """At the end of the octets, without any interface and with a block that is not whole."""
        return f"pcapng: record {self.record} at octet {self.offset}: {self.leftover()}"

    def _walk(self, buffer: bytes, found: PacketColumns) -> int:
        """Goes from block to block; returns the end of the last whole one."""
        position, size, one_by_one_to = 0, len(buffer), 0
        while position + 12 <= size:
            if self._interfaces and position >= one_by_one_to:
                starts, end = enhanced_starts(buffer, position, self._order, _MAX_KEPT_OCTETS)
                if starts and self._take_run(buffer, starts, found):
                    self.offset += end - position
                    position = end
                    continue
                one_by_one_to = end
            if buffer[position:position + 4] == PCAPNG_MAGIC:
                order = _BYTE_ORDER_MAGIC.get(buffer[position + 8:position + 12])
                if order is None:
                    return self._broken(position, "byte-order magic of a section header is wrong")
                self._order = order
            kind, length = struct.unpack_from(self._order + "II", buffer, position)
            if length < _LEAST.get(kind, 12) or length % 4:
                return self._broken(position, f"block length {length} cannot be")
            if length > _MAX_KEPT_OCTETS and kind in _LEAST:
                return self._broken(position, f"block length {length} cannot be, "
                                              f"{_MAX_KEPT_OCTETS} is the most")
            end = position + length
            if end > size:
                if kind in _LEAST:
                    break
                self._skip, self._skip_length = end - size, length
                return size
            if struct.unpack_from(self._order + "I", buffer, end - 4)[0] != length:
                return self._broken(position, "the two lengths of the block differ")
            reason = self._block(kind, buffer, position, end, found)
            if reason:
                return self._broken(position, reason)
            position = end
            self.offset += length
            self.record += 1
        return position

    def _take_run(self, buffer: bytes, starts: list[int], found: PacketColumns) -> bool:
        """Takes in a run of enhanced packet blocks at once, if all of them are ordinary."""
        run = read_run(buffer, starts, self._order, self._interfaces)
        if run is None:
            return False
        found.add_run(run)
        self._last_time = int(run.time_ns[-1])
        self.record += len(starts)
        return True

    def _broken(self, position: int, reason: str) -> int:
        self.damage = f"{reason}; what follows cannot be read"
        return position

    def _block(self, kind: int, buffer: bytes, at: int, end: int,
               found: PacketColumns) -> str | None:
        """Takes in one whole block; returns why it cannot be, or None."""
        order = self._order
        if kind == _ENHANCED:
            interface, high, low, captured, original = struct.unpack_from(
                order + "IIIII", buffer, at + 8)
            return self._packet(buffer, at, end, found, interface, high << 32 | low, captured,
                                original, None)
        if kind == _OLD_PACKET:
            interface, drops, high, low, captured, original = struct.unpack_from(
                order + "HHIIII", buffer, at + 8)
            return self._packet(buffer, at, end, found, interface, high << 32 | low, captured,
                                original, drops not in (0, 0xFFFF))
        if kind == _SIMPLE:
            return self._simple(buffer, at, end, found)
        if kind == _SECTION:
            self._interfaces = []
            major, minor = struct.unpack_from(order + "HH", buffer, at + 12)
            if major != 1:
                raise CaptureError(f"{self._name}: pcapng version {major}.{minor} at octet "
                                   f"{self.offset + 12}, only 1.x is read; convert it: "
                                   f"editcap -F pcap IN OUT")
        elif kind == _INTERFACE:
            self._interfaces.append(read_interface(buffer, at, end, order))
            if self.link_type is None:
                self.link_type = self._interfaces[0].link_type
        elif kind == _STATISTICS:
            number = struct.unpack_from(order + "I", buffer, at + 8)[0]
            dropped = drop_count(buffer, at + 20, end - 4, order, ISB_IFDROP)
            if dropped:
                self._notes.add(
                    "interface drops", f"{self._name}: block {self.record}: interface {number} "
                    f"dropped {dropped} frames while capturing; counts may be incomplete")
        return None

    def _simple(self, buffer: bytes, at: int, end: int, found: PacketColumns) -> str | None:
        original = struct.unpack_from(self._order + "I", buffer, at + 8)[0]
        captured = original
        if self._interfaces and self._interfaces[0].snap_length:
            captured = min(captured, self._interfaces[0].snap_length)
        reason = self._admit(0, captured, end - 4 - (at + 12))
        if reason:
            return reason
        self._notes.add("no time", f"{self._name}: block {self.record}: simple packet block "
                        f"without a time; the last time known is used")
        self._add(found, at + 12, captured, original, -1, 0, False)
        return None

    def _packet(self, buffer: bytes, at: int, end: int, found: PacketColumns, interface: int,
                ticks: int, captured: int, original: int, lost: bool | None) -> str | None:
        reason = self._admit(interface, captured, end - 4 - (at + PACKET_HEADER_OCTETS))
        if reason:
            return reason
        if lost is None:
            options = at + PACKET_HEADER_OCTETS + captured + (-captured % 4)
            lost = bool(drop_count(buffer, options, end - 4, self._order, EPB_DROPCOUNT))
        self._add(found, at + PACKET_HEADER_OCTETS, captured, original, ticks, interface, lost)
        return None

    def _admit(self, interface: int, captured: int, room: int) -> str | None:
        """Refuses packets of interfaces that are not Ethernet; returns why a block cannot be."""
        if interface >= len(self._interfaces):
            return f"packet of interface {interface}, which no block describes"
        link_type = self._interfaces[interface].link_type
        if link_type != LINK_TYPE_ETHERNET:
            raise CaptureError(
                f"{self._name}: record {self.record} at octet {self.offset}: interface {interface} "
                f"has link type {link_type_name(link_type)}, only 1 (Ethernet) is read; capture on "
                f"an Ethernet interface")
        if captured > min(room, MAX_FRAME_OCTETS):
            return f"captured length {captured} cannot be, the block has room for {room}"
        return None

    def _add(self, found: PacketColumns, start: int, captured: int, original: int, ticks: int,
             interface: int, lost: bool) -> None:
        if captured > original:
            self._notes.add(
                "captured above original", f"{self._name}: block {self.record}: captured "
                f"{captured} octets of {original}; taken as a whole frame of {captured}")
            original = captured
        described = self._interfaces[interface]
        if described.fcs_octets:
            self._notes.add("FCS cut off unchecked", f"{self._name}: frames of interface "
                            f"{interface} carry an FCS of {described.fcs_octets} octets, which is "
                            f"cut off unchecked")
            original -= min(original, described.fcs_octets)
            captured = min(captured, original)
        if ticks >= 0:
            time_ns = described.time_ns(ticks)
            if not 0 <= time_ns < 1 << 64:
                raise CaptureError(
                    f"{self._name}: record {self.record} at octet {self.offset}: its time lies "
                    f"outside 1970 to 2554; repair it: editcap -t SECONDS IN OUT")
            self._last_time = time_ns
        found.add(start, captured, original, self._last_time, interface & 0xFFFF, lost)
