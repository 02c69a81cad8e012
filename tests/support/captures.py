"""Hand-packed capture files, octet for octet, and the captures of real traffic beside the tree."""

from __future__ import annotations

import struct
from pathlib import Path

__all__ = ["REAL_CAPTURES", "block", "enhanced", "interface", "old_packet", "option", "pcap",
           "record", "section", "simple"]

_SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "captures"
REAL_CAPTURES = {path.name: path for path in sorted(_SHARED.glob("*.pcap"))}
"""Name -> path of the captures in ../shared/captures; empty without that folder. Tests use it when
they are collected, so that no test is skipped."""


def record(data: bytes, *, seconds: int = 0, fraction: int = 0, captured: int | None = None,
           original: int | None = None, order: str = "<") -> bytes:
    """One pcap record; the lengths are those of `data` unless given."""
    return struct.pack(order + "IIII", seconds, fraction,
                       len(data) if captured is None else captured,
                       len(data) if original is None else original) + data


def pcap(*records: bytes, order: str = "<", nano: bool = True, link_type: int = 1,
         version: tuple[int, int] = (2, 4)) -> bytes:
    """A pcap file of packed records."""
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    return struct.pack(order + "IHHIIII", magic, *version, 0, 0, 65535, link_type) + b"".join(
        records)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """A pcapng block, its body padded to four octets."""
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def option(code: int, value: bytes, order: str = "<") -> bytes:
    """One pcapng option, padded."""
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<", version: tuple[int, int] = (1, 0)) -> bytes:
    """A section header block."""
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, *version, -1), order)


def interface(order: str = "<", *, link_type: int = 1, snap: int = 0,
              options: bytes = b"") -> bytes:
    """An interface description block."""
    return block(1, struct.pack(order + "HHI", link_type, 0, snap) + options, order)


def enhanced(data: bytes, ticks: int = 0, *, order: str = "<", number: int = 0,
             original: int | None = None, options: bytes = b"") -> bytes:
    """An enhanced packet block."""
    return block(6, struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data),
                                len(data) if original is None else original)
                 + data + bytes(-len(data) % 4) + options, order)


def simple(data: bytes, *, order: str = "<", original: int | None = None) -> bytes:
    """A simple packet block."""
    return block(3, struct.pack(order + "I", len(data) if original is None else original) + data,
                 order)


def old_packet(data: bytes, ticks: int = 0, *, order: str = "<", number: int = 0,
               drops: int = 0xFFFF) -> bytes:
    """An obsolete packet block."""
    return block(2, struct.pack(order + "HHIIII", number, drops, ticks >> 32, ticks & 0xFFFFFFFF,
                                len(data), len(data)) + data, order)
