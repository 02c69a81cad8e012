"""Opens a capture of any kind that is read here.

pcap (both byte orders, micro- and nanoseconds) and pcapng (both byte orders, several interfaces
and sections), plain or compressed with gzip, bzip2 or xz, from a path or from standard input.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Self

from .frames import LINK_TYPE_ETHERNET, CaptureError, FrameBatch, TruncatedCapture
from .notes import Notes
from .pcap import PCAP_MAGICS, PcapDecoder
from .pcapng import PCAPNG_MAGIC, PcapngDecoder
from .source import DamagedStream, open_source, read_chunks

__all__ = ["Capture", "open_capture"]


class Capture:
    """An open capture; iterate `batches()` once. Also a context manager.

    `truncation` is None, or after the iteration the TruncatedCapture that says where the file
    stops: all whole records were delivered before. `warnings` has one line for each kind of odd
    record met so far.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.name, self._stream = open_source(path)
        self._notes = Notes()
        self._first: list[FrameBatch] = []
        self.truncation: TruncatedCapture | None = None
        try:
            self._chunks = self._read()
            self._decoder = self._begin()
        except BaseException:
            self.close()
            raise

    @property
    def link_type(self) -> int:
        """The link-layer type, always 1 (Ethernet): anything else is refused."""
        return LINK_TYPE_ETHERNET

    @property
    def warnings(self) -> list[str]:
        return self._notes.lines()

    def batches(self) -> Iterator[FrameBatch]:
        """All frames in file order, each batch from one chunk of the file."""
        while self._first:
            yield self._first.pop(0)
        for chunk in self._chunks:
            batch = self._decoder.feed(chunk)
            if batch is not None:
                yield batch
            if self._decoder.damage:
                break
        reason = self._decoder.damage or self._damage or self._decoder.leftover()
        if reason:
            self.truncation = TruncatedCapture(
                self.name, offset=self._decoder.offset, record=self._decoder.record, reason=reason)

    def close(self) -> None:
        """Closes the file; standard input stays open."""
        if self.path != "-":
            self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def _read(self) -> Iterator[bytes]:
        """The chunks; a compressed stream's damage ends them and is remembered."""
        self._damage: str | None = None
        try:
            yield from read_chunks(self.name, self._stream)
        except DamagedStream as error:
            self._damage = str(error)

    def _begin(self) -> PcapDecoder | PcapngDecoder:
        """Reads until the link type is known, so that a bad file is refused on opening."""
        head = b""
        for chunk in self._chunks:
            head += chunk
            if len(head) >= 4:
                break
        decoder = self._decoder_for(head)
        batch = decoder.feed(head)
        while batch is None and not decoder.ready and not decoder.damage:
            piece = next(self._chunks, None)
            if piece is None:
                break
            batch = decoder.feed(piece)
        if batch is not None:
            self._first.append(batch)
        elif not decoder.ready and (decoder.leftover() or self._damage):
            raise CaptureError(f"{self.name}: {self._damage or decoder.header_leftover()}")
        return decoder

    def _decoder_for(self, head: bytes) -> PcapDecoder | PcapngDecoder:
        if not head:
            raise CaptureError(f"{self.name}: {self._damage}" if self._damage else
                               f"{self.name}: is empty (0 octets); capture again")
        if head[:4] in PCAP_MAGICS:
            return PcapDecoder(self.name, self._notes)
        if head[:4] == PCAPNG_MAGIC:
            return PcapngDecoder(self.name, self._notes)
        raise CaptureError(f"{self.name}: is no capture: begins with octets {head[:4].hex(' ')}; "
                           f"pcap and pcapng are read, plain or in gzip, bzip2 or xz")


def open_capture(path: str) -> Capture:
    """Opens `path`, or standard input for "-". Raises CaptureError."""
    return Capture(str(path))
