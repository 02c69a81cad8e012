"""Interface descriptions and options of pcapng blocks: exact times, lengths, drop counts."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["EPB_DROPCOUNT", "ISB_IFDROP", "Interface", "drop_count", "options", "read_interface"]

_IF_TSRESOL, _IF_FCSLEN, _IF_TSOFFSET = 9, 13, 14
EPB_DROPCOUNT, ISB_IFDROP = 4, 5
"""Codes of the drop counts of enhanced packet and of interface statistics blocks."""
_NS = 1_000_000_000


@dataclass(frozen=True)
class Interface:
    """One interface of a section."""

    link_type: int
    snap_length: int = 0
    """Most octets kept of a frame; 0 means no bound."""
    resolution: int = 1_000_000
    """Ticks a second: a power of ten or of two (if_tsresol)."""
    time_offset: int = 0
    """Seconds to add (if_tsoffset)."""
    fcs_octets: int = 0

    def time_ns(self, ticks: int) -> int:
        """ns since 1970, exact, rounded down where the ticks are finer than that."""
        return ticks * _NS // self.resolution + self.time_offset * _NS


def options(buffer: bytes, at: int, end: int, order: str) -> Iterator[tuple[int, bytes]]:
    """Code and value of each option in [at, end); stops at one that does not fit."""
    while at + 4 <= end:
        code, length = struct.unpack_from(order + "HH", buffer, at)
        if code == 0 or at + 4 + length > end:
            return
        yield code, buffer[at + 4:at + 4 + length]
        at += 4 + length + (-length % 4)


def drop_count(buffer: bytes, at: int, end: int, order: str, wanted: int) -> int:
    """The value of a 64-bit drop count option, 0 without one."""
    if at + 4 > end:
        return 0
    for code, value in options(buffer, at, end, order):
        if code == wanted and len(value) == 8:
            return int(struct.unpack(order + "Q", value)[0])
    return 0


def read_interface(buffer: bytes, at: int, end: int, order: str) -> Interface:
    """An interface description block that begins at `at` and ends at `end`."""
    link_type, _, snap_length = struct.unpack_from(order + "HHI", buffer, at + 8)
    resolution, time_offset, fcs_octets = 1_000_000, 0, 0
    for code, value in options(buffer, at + 16, end - 4, order):
        if code == _IF_TSRESOL and len(value) == 1:
            exponent = value[0] & 0x7F
            resolution = 2 ** exponent if value[0] & 0x80 else 10 ** exponent
        elif code == _IF_TSOFFSET and len(value) == 8:
            time_offset = struct.unpack(order + "q", value)[0]
        elif code == _IF_FCSLEN and len(value) == 1:
            fcs_octets = value[0]
    return Interface(link_type, snap_length, resolution, time_offset, fcs_octets)
