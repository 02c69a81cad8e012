"""IPFIX Message headers (RFC 7011, 3.1), and messages out of a stream of octets (10.4)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .errors import FramingLostError

__all__ = ["HEADER_OCTETS", "MAX_MESSAGE", "SET_HEADER", "VERSION", "Deframer", "MessageHeader"]

VERSION: Final = 10
HEADER_OCTETS: Final = 16
MAX_MESSAGE: Final = 65_535
_HEADER: Final = struct.Struct("!HHIII")
_START: Final = struct.Struct("!HH")
SET_HEADER: Final = struct.Struct("!HH")
"""Set ID and Set length, which counts these four octets (RFC 7011, 3.3.2)."""


@dataclass(frozen=True, slots=True)
class MessageHeader:
    """The sixteen octets before the Sets. `length` counts them; `export_time` is in seconds."""

    length: int
    export_time: int
    sequence: int
    domain: int

    def pack(self) -> bytes:
        return _HEADER.pack(VERSION, self.length, self.export_time, self.sequence, self.domain)

    @classmethod
    def unpack(cls, octets: bytes | memoryview) -> MessageHeader:
        """From a whole message; the version was checked by the deframer."""
        return cls(*_HEADER.unpack_from(octets)[1:])


class Deframer:
    """Cuts a stream into messages, wherever its pieces end. Holds less than one message."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._offset = 0

    @property
    def held(self) -> int:
        """Octets of a message that has not ended yet."""
        return len(self._held)

    def feed(self, data: bytes | memoryview) -> Iterator[memoryview]:
        """Yields each message that is whole with `data`; to be read to its end.

        Raises FramingLostError on a wrong version or a length below 16: after that nothing in the
        stream can be found. Messages before that point have been yielded.
        """
        view = memoryview(bytes(data))
        position = 0
        while self._held and position < len(view):
            wanted = _START.size if len(self._held) < _START.size else self._length(self._held, 0)
            piece = view[position:position + wanted - len(self._held)]
            self._held += piece
            position += len(piece)
            if len(self._held) == wanted > _START.size:
                message = bytes(self._held)
                self._held.clear()
                self._offset += wanted
                yield memoryview(message)
        while len(view) - position >= _START.size:
            length = self._length(view, position)
            if len(view) - position < length:
                break
            self._offset += length
            yield view[position:position + length]
            position += length
        self._held += view[position:]

    def _length(self, octets: bytearray | memoryview, position: int) -> int:
        version, length = _START.unpack_from(octets, position)
        if version != VERSION:
            raise FramingLostError(f"message at octet {self._offset} has version {version}, must "
                                   f"be {VERSION}")
        if length < HEADER_OCTETS:
            raise FramingLostError(f"message at octet {self._offset} has length {length}, must be "
                                   f"{HEADER_OCTETS} or more")
        return int(length)
