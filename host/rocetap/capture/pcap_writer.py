"""Writes pcap files, little-endian, in large pieces."""

from __future__ import annotations

import struct
from typing import BinaryIO

from .frames import LINK_TYPE_ETHERNET, MAX_FRAME_OCTETS

__all__ = ["PcapWriter"]

_FLUSH_OCTETS = 1 << 20


class PcapWriter:
    """Writes Ethernet frames to a binary stream; call `flush` at the end."""

    def __init__(self, stream: BinaryIO, *, nanoseconds: bool = True,
                 snap_length: int = MAX_FRAME_OCTETS) -> None:
        self._stream = stream
        self._unit = 1 if nanoseconds else 1000
        self._snap_length = snap_length
        magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
        self._parts = [struct.pack("<IHHIIII", magic, 2, 4, 0, 0, snap_length,
                                   LINK_TYPE_ETHERNET)]
        self._size = 0
        self._pack = struct.Struct("<IIII").pack

    def write(self, time_ns: int, frame: bytes) -> None:
        """One frame, cut at the snapshot length; `time_ns` is ns since 1970."""
        seconds, rest = divmod(time_ns, 1_000_000_000)
        data = frame[:self._snap_length]
        self._parts += (self._pack(seconds, rest // self._unit, len(data), len(frame)), data)
        self._size += len(data)
        if self._size > _FLUSH_OCTETS:
            self.flush()

    def flush(self) -> None:
        """Gives all octets to the stream."""
        self._stream.write(b"".join(self._parts))
        self._parts.clear()
        self._size = 0
