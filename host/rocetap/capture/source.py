"""The octets of a capture file: from a path or standard input, plain or compressed.

Compression is found by content, never by the file's name.
"""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol, cast

from .frames import CaptureError

__all__ = ["CHUNK_OCTETS", "DamagedStream", "open_source", "read_chunks"]

CHUNK_OCTETS = 1 << 22
_PIECE_OCTETS = 1 << 16
_SNIFF_OCTETS = 6

_GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00"
_REFUSED = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}


class DamagedStream(Exception):
    """Compressed data that ends early or is wrong; all octets before it were given."""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Gzip:
    """zlib's object with the interface of bz2's and lzma's: it keeps its own unread input."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


_FORMATS: dict[bytes, tuple[str, Callable[[], _Decompressor]]] = {
    _GZIP: ("gzip", _Gzip),
    _BZIP2: ("bzip2", lambda: cast(_Decompressor, bz2.BZ2Decompressor())),
    _XZ: ("xz", lambda: cast(_Decompressor, lzma.LZMADecompressor())),
}


def open_source(path: str) -> tuple[str, BinaryIO]:
    """The name to use in messages, and the stream of raw octets; "-" is standard input."""
    if path == "-":
        stream = cast(BinaryIO, sys.stdin.buffer)
        if stream.isatty():
            raise CaptureError("standard input is a terminal: name a capture file, or pipe one in")
        return "standard input", stream
    try:
        return path, open(path, "rb")
    except FileNotFoundError:
        raise CaptureError(f"{path}: no such file; give the path of a pcap or pcapng capture"
                           ) from None
    except IsADirectoryError:
        raise CaptureError(f"{path}: is a directory; name one capture file in it") from None
    except PermissionError:
        raise CaptureError(f"{path}: permission denied; make the file readable") from None
    except (OSError, ValueError) as error:
        raise CaptureError(f"{path}: cannot be opened: {error}") from None


def read_chunks(name: str, stream: BinaryIO) -> Iterator[bytes]:
    """The capture's octets, decompressed, as they come: a pipe is not waited for.

    Raises CaptureError at once for a compression that is not read here, and DamagedStream behind
    the last good octets.
    """
    raw = _raw_chunks(name, stream)
    head = b""
    for piece in raw:
        head += piece
        if len(head) >= _SNIFF_OCTETS:
            break
    for magic, program in _REFUSED.items():
        if head.startswith(magic):
            raise CaptureError(f"{name}: is compressed with {program}, which is not read here; "
                               f"decompress it first: {program} -d FILE")
    for magic, (format_name, make) in _FORMATS.items():
        if head.startswith(magic):
            yield from _decompress(head, raw, format_name, make)
            return
    if head:
        yield head
    yield from raw


def _raw_chunks(name: str, stream: BinaryIO) -> Iterator[bytes]:
    read = getattr(stream, "read1", stream.read)
    while True:
        try:
            piece = read(CHUNK_OCTETS)
        except OSError as error:
            raise CaptureError(f"{name}: cannot be read: {error.strerror or error}") from None
        if not piece:
            return
        yield piece


def _decompress(head: bytes, raw: Iterator[bytes], format_name: str,
                make: Callable[[], _Decompressor]) -> Iterator[bytes]:
    """Members one behind the other, as gzip and xz allow; output in bounded chunks."""
    decompressor = make()
    try:
        for rest in _pieces(head, raw):
            while rest:
                if decompressor.eof:
                    rest = rest.lstrip(b"\0")
                    if not rest:
                        break
                    decompressor = make()
                yield from _drain(decompressor, rest)
                rest = decompressor.unused_data if decompressor.eof else b""
    except (zlib.error, lzma.LZMAError, OSError, ValueError) as error:
        raise DamagedStream(f"the {format_name} data is damaged ({error})") from None
    if not decompressor.eof:
        raise DamagedStream(f"the {format_name} data ends early")


def _drain(decompressor: _Decompressor, data: bytes) -> Iterator[bytes]:
    output = decompressor.decompress(data, CHUNK_OCTETS)
    while output:
        yield output
        if decompressor.eof or len(output) < CHUNK_OCTETS:
            return
        output = decompressor.decompress(b"", CHUNK_OCTETS)


def _pieces(head: bytes, raw: Iterator[bytes]) -> Iterator[bytes]:
    """Small enough that a damaged spot costs little of what lies before it."""
    for chunk in _chain(head, raw):
        for start in range(0, len(chunk), _PIECE_OCTETS):
            yield chunk[start:start + _PIECE_OCTETS]


def _chain(head: bytes, raw: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from raw
