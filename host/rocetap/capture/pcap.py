"""The pcap format: octets in, batches of frames out. No file, no clock.

Global header 24 octets: magic, version 2.x, two unused words, snapshot length, link type. Record
header 16 octets: seconds, fraction (micro- or nanoseconds by the magic), captured, original.
"""

from __future__ import annotations

import struct

import numpy as np

from .frames import LINK_TYPE_ETHERNET, MAX_FRAME_OCTETS, CaptureError, FrameBatch, link_type_name
from .notes import Notes

__all__ = ["PCAP_MAGICS", "PcapDecoder"]

PCAP_MAGICS: dict[bytes, tuple[str, int]] = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000), b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1), b"\xa1\xb2\x3c\x4d": (">", 1),
}
"""First four octets -> byte order, and ns per unit of the fraction."""

HEADER_OCTETS = 24
RECORD_OCTETS = 16
_FCS_PRESENT = 1 << 26


class PcapDecoder:
    """Feed it octets in any pieces; each call returns the frames that are whole by then.

    `damage` is set when the framing is lost: nothing behind that record can be read. `offset` and
    `record` say where the first record stands that was not returned yet.
    """

    def __init__(self, name: str, notes: Notes) -> None:
        self._name = name
        self._notes = notes
        self._rest = b""
        self._order = ""
        self._scale = 0
        self._fcs_octets = 0
        self.link_type: int | None = None
        self.offset = 0
        self.record = 1
        self.damage: str | None = None

    @property
    def ready(self) -> bool:
        """Whether the global header was read."""
        return self.link_type is not None

    def feed(self, piece: bytes) -> FrameBatch | None:
        """The frames that `piece` completes, or None. Raises CaptureError for a bad header."""
        buffer = self._rest + piece if self._rest else piece
        if not self.ready:
            if len(buffer) < HEADER_OCTETS:
                self._rest = buffer
                return None
            self._read_header(buffer)
            buffer = buffer[HEADER_OCTETS:]
            self.offset = HEADER_OCTETS
        if self.damage:
            return None
        starts, end = self._walk(buffer)
        self._rest = buffer[end:]
        if not starts:
            return None
        batch = self._batch(buffer, starts)
        self.offset += end
        self.record += len(starts)
        return batch

    def leftover(self) -> str | None:
        """At the end of the octets: why the last record is not whole, or None."""
        if self.damage or not self._rest:
            return self.damage
        if len(self._rest) < RECORD_OCTETS:
            return f"the file ends {len(self._rest)} octets into its {RECORD_OCTETS}-octet header"
        size = struct.unpack_from(self._order + "I", self._rest, 8)[0]
        return f"the file ends {len(self._rest) - RECORD_OCTETS} octets into its {size} of data"

    def header_leftover(self) -> str:
        """At the end of the octets, with no header read: what is there."""
        return (f"pcap: the file ends {len(self._rest)} octets into its {HEADER_OCTETS}-octet "
                f"header; capture again")

    def _read_header(self, buffer: bytes) -> None:
        self._order, self._scale = PCAP_MAGICS[buffer[:4]]
        major, minor, _, _, _, network = struct.unpack_from(self._order + "HHIIII", buffer, 4)
        if major != 2:
            raise CaptureError(f"{self._name}: pcap version {major}.{minor} at octet 4, only 2.x "
                               f"is read; convert it: editcap -F pcap IN OUT")
        link_type = network & 0xFFFF
        if link_type != LINK_TYPE_ETHERNET:
            raise CaptureError(
                f"{self._name}: link type {link_type_name(link_type)} at octet 20, only 1 "
                f"(Ethernet) is read; capture on an Ethernet interface")
        if network & _FCS_PRESENT:
            self._fcs_octets = 2 * (network >> 28)
            self._notes.add("FCS cut off unchecked", f"{self._name}: frames carry an FCS of "
                            f"{self._fcs_octets} octets, which is cut off unchecked")
        self.link_type = link_type

    def _walk(self, buffer: bytes) -> tuple[list[int], int]:
        """Starts of the whole records, and the end of the last."""
        starts: list[int] = []
        append = starts.append
        captured_at = struct.Struct(self._order + "I").unpack_from
        position, last_header = 0, len(buffer) - RECORD_OCTETS
        while position <= last_header:
            size = captured_at(buffer, position + 8)[0]
            if size > MAX_FRAME_OCTETS:
                self.damage = (f"captured length {size} cannot be, {MAX_FRAME_OCTETS} is the most; "
                               f"what follows cannot be read")
                break
            following = position + RECORD_OCTETS + size
            if following > len(buffer):
                break
            append(position)
            position = following
        return starts, position

    def _batch(self, buffer: bytes, starts: list[int]) -> FrameBatch:
        data = np.frombuffer(buffer, np.uint8)
        begin = np.array(starts, np.int64)
        headers = data[begin[:, None] + np.arange(RECORD_OCTETS)]
        words = headers.view(self._order + "u4").astype(np.uint32)
        captured, original = words[:, 2].copy(), words[:, 3].copy()
        self._note_odd(captured, original, words[:, 1])
        np.maximum(original, captured, out=original)
        if self._fcs_octets:
            original -= np.minimum(original, np.uint32(self._fcs_octets))
            np.minimum(captured, original, out=captured)
        time_ns = (words[:, 0].astype(np.uint64) * np.uint64(1_000_000_000)
                   + words[:, 1].astype(np.uint64) * np.uint64(self._scale))
        count = len(starts)
        return FrameBatch(data, (begin + RECORD_OCTETS).astype(np.uint64), captured, original,
                          time_ns, np.zeros(count, np.uint16), np.zeros(count, np.bool_))

    def _note_odd(self, captured: np.ndarray, original: np.ndarray, fraction: np.ndarray) -> None:
        odd = np.flatnonzero(captured > original)
        if len(odd):
            first = int(odd[0])
            self._notes.add(
                "captured above original",
                f"{self._name}: record {self.record + first}: captured {captured[first]} octets of "
                f"{original[first]}; taken as a whole frame of {captured[first]}", len(odd))
        odd = np.flatnonzero(fraction >= 1_000_000_000 // self._scale)
        if len(odd):
            self._notes.add(
                "fraction above a second",
                f"{self._name}: record {self.record + int(odd[0])}: fraction of a second is "
                f"{fraction[odd[0]]}, {1_000_000_000 // self._scale - 1} is the most; "
                f"its time was added up all the same", len(odd))
