"""Runs of enhanced packet blocks at once: the fast path of pcapng.

It takes a run only when nothing in it is out of the ordinary; the decoder then goes through the
same blocks one by one, and says what is wrong where.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .frames import LINK_TYPE_ETHERNET, MAX_FRAME_OCTETS, FrameBatch
from .pcapng_options import EPB_DROPCOUNT, Interface, drop_count

__all__ = ["PACKET_HEADER_OCTETS", "PacketColumns", "PacketRun", "enhanced_starts", "read_run"]

ENHANCED = 6
PACKET_HEADER_OCTETS = 28
_LEAST_OCTETS = 32
_NS = 1_000_000_000

T = TypeVar("T", bound=np.generic)
Words = NDArray[np.int64]


@dataclass(frozen=True)
class PacketRun:
    """Columns of a run, one element a packet."""

    starts: Words
    captured: Words
    original: Words
    time_ns: NDArray[np.uint64]
    interfaces: Words
    lost: NDArray[np.bool_]


class PacketColumns:
    """Packets as they are found, singly and in runs, in order."""

    def __init__(self) -> None:
        self._runs: list[PacketRun] = []
        self._rows: list[tuple[int, int, int, int, int, bool]] = []

    def add(self, start: int, captured: int, original: int, time_ns: int, interface: int,
            lost: bool) -> None:
        """One packet."""
        self._rows.append((start, captured, original, time_ns, interface, lost))

    def add_run(self, run: PacketRun) -> None:
        """Many packets."""
        self._gather_rows()
        self._runs.append(run)

    def batch(self, buffer: bytes) -> FrameBatch | None:
        """All of them, or None."""
        self._gather_rows()
        if not self._runs:
            return None

        def column(name: str, kind: type[T]) -> NDArray[T]:
            return np.concatenate([getattr(run, name) for run in self._runs]).astype(kind)

        return FrameBatch(
            np.frombuffer(buffer, np.uint8), column("starts", np.uint64),
            column("captured", np.uint32), column("original", np.uint32),
            column("time_ns", np.uint64), column("interfaces", np.uint16),
            column("lost", np.bool_))

    def _gather_rows(self) -> None:
        if self._rows:
            starts, captured, original, times, interfaces, lost = zip(*self._rows, strict=True)
            self._runs.append(PacketRun(
                np.array(starts, np.int64), np.array(captured, np.int64),
                np.array(original, np.int64), np.array(times, np.uint64),
                np.array(interfaces, np.int64), np.array(lost, np.bool_)))
            self._rows = []


def enhanced_starts(buffer: bytes, position: int, order: str, bound: int) -> tuple[list[int], int]:
    """Starts of the whole enhanced packet blocks in a row from `position`, and their end; blocks
    longer than `bound` or with a length that cannot be end the row."""
    starts: list[int] = []
    append = starts.append
    head = struct.Struct(order + "II").unpack_from
    size = len(buffer)
    last = size - _LEAST_OCTETS
    while position <= last:
        kind, length = head(buffer, position)
        following = position + length
        if kind != ENHANCED or length < _LEAST_OCTETS or length & 3 or length > bound:
            break
        if following > size:
            break
        append(position)
        position = following
    return starts, position


def read_run(buffer: bytes, starts: list[int], order: str,
             interfaces: list[Interface]) -> PacketRun | None:
    """The columns of a run, or None when a block needs a closer look."""
    data = np.frombuffer(buffer, np.uint8)
    begin: Words = np.array(starts, np.int64)
    header = data[begin[:, None] + np.arange(PACKET_HEADER_OCTETS)].view(order + "u4")
    words: Words = header.astype(np.int64)
    end = begin + words[:, 1]
    trailer = data[end[:, None] + np.arange(-4, 0)].view(order + "u4")[:, 0]
    interface, captured, original = words[:, 2], words[:, 5], words[:, 6]
    room = words[:, 1] - PACKET_HEADER_OCTETS - 4
    if not ((trailer == words[:, 1]).all() and (captured <= original).all()
            and (captured <= np.minimum(room, MAX_FRAME_OCTETS)).all()
            and (interface < len(interfaces)).all()):
        return None
    time_ns = _times(header, interface, interfaces)
    if time_ns is None:
        return None
    lost = np.zeros(len(starts), np.bool_)
    options = begin + PACKET_HEADER_OCTETS + (captured + 3 & ~3)
    for index in np.flatnonzero(end - 4 - options > 4).tolist():
        lost[index] = bool(drop_count(buffer, int(options[index]), int(end[index]) - 4, order,
                                      EPB_DROPCOUNT))
    return PacketRun(begin + PACKET_HEADER_OCTETS, captured, original, time_ns, interface, lost)


def _times(header: NDArray[np.uint32], interface: Words,
           interfaces: list[Interface]) -> NDArray[np.uint64] | None:
    """Exact ns, where every interface is plain Ethernet with decimal ticks of a ns or more."""
    ticks = header[:, 3].astype(np.uint64) << np.uint64(32) | header[:, 4].astype(np.uint64)
    times = np.zeros(len(ticks), np.uint64)
    for number in np.unique(interface).tolist():
        described = interfaces[number]
        if described.link_type != LINK_TYPE_ETHERNET or described.fcs_octets or (
                _NS % described.resolution):
            return None
        chosen = interface == number
        low, high = (described.time_ns(int(edge)) for edge in (
            ticks[chosen].min(), ticks[chosen].max()))
        if low < 0 or high >= 1 << 64 or described.time_offset < 0:
            return None
        times[chosen] = (ticks[chosen] * np.uint64(_NS // described.resolution)
                         + np.uint64(described.time_offset * _NS))
    return times
