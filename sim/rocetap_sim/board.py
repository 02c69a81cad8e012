"""The simulated board as Python sees it: frames in, link octets in and out."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from enum import IntFlag
from functools import cache
from math import ceil
from pathlib import Path

import numpy as np

from rocetap.errors import RocetapError
from rocetap.link.errors import TransportClosed

from .build import Report, build_library, to_stderr
from .design import Design, probe

__all__ = [
    "CLOCK_HZ", "LINE_RATE_GAP", "BoardCounters", "FrameFlag", "GatewareStopped", "SimulatedBoard",
    "SimulatedTransport",
]

CLOCK_HZ = {1: 125_000_000, 8: 156_250_000, 64: 322_265_625}
"""Clock of each bus width that a board uses; others are taken as the 8-octet bus."""

LINE_RATE_GAP = 20
"""Octets between two frames at line rate: preamble and SFD 8, gap 12 (IEEE 802.3, 4.4.2)."""


class FrameFlag(IntFlag):
    """Faults and marks that `SimulatedBoard.feed` puts into a frame."""

    BAD_FCS = 1
    """One bit of the frame check sequence is inverted."""
    MAC_ERROR = 2
    """The MAC marks the frame bad."""
    LOST_BEFORE = 4
    """The tap says that frames were lost before this one."""
    NO_PADDING = 8
    """Shorter frames than 60 octets stay so."""


class GatewareStopped(RocetapError):
    """An assertion of the gateware failed (libraries built with `asserts` only)."""


@dataclass(frozen=True)
class BoardCounters:
    """What went through since the board was made; exact."""

    cycles: int
    frames: int
    octets: int
    """Captured octets, without padding and FCS."""
    waited: int
    """Clocks that `feed` waited for room in the snapshot FIFO."""


class _Feed(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("offsets", ctypes.c_void_p), ("captured", ctypes.c_void_p),
        ("original", ctypes.c_void_p), ("time_ns", ctypes.c_void_p), ("port", ctypes.c_void_p),
        ("flags", ctypes.c_void_p), ("first", ctypes.c_uint64), ("count", ctypes.c_uint64),
        ("gap_octets", ctypes.c_uint32), ("room", ctypes.c_uint32), ("patience", ctypes.c_uint64))


class _Counters(ctypes.Structure):
    _fields_ = (("cycles", ctypes.c_uint64), ("frames", ctypes.c_uint64),
                ("octets", ctypes.c_uint64), ("waited", ctypes.c_uint64))


_BOARD, _U64 = ctypes.c_void_p, ctypes.c_uint64
_FUNCTIONS = {
    "create": (_BOARD,), "destroy": (None, _BOARD), "reset": (ctypes.c_int64, _BOARD),
    "run": (ctypes.c_int64, _BOARD, _U64), "run_until_output": (ctypes.c_int64, _BOARD, _U64, _U64),
    "feed": (ctypes.c_int64, _BOARD, ctypes.POINTER(_Feed)),
    "feed_concurrently": (ctypes.c_int64, _BOARD, ctypes.POINTER(_Feed)),
    "write": (_U64, _BOARD, ctypes.c_char_p, _U64), "read": (_U64, _BOARD, ctypes.c_char_p, _U64),
    "snapshot_level": (ctypes.c_uint32, _BOARD), "snapshot_room": (ctypes.c_uint32, _BOARD),
    "set_time": (None, _BOARD, _U64), "follow_wall_clock": (None, _BOARD, ctypes.c_int),
    "counters": (None, _BOARD, ctypes.POINTER(_Counters)), "error": (ctypes.c_char_p, _BOARD),
}


@cache
def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, f"board_{name}")
        function.restype, function.argtypes = result, arguments
    return library


def _array(values, kind: type, count: int, name: str) -> np.ndarray:
    array = np.asarray(values, dtype=kind)
    if array.ndim == 0:
        array = np.full(count, array)
    if array.shape != (count,):
        raise ValueError(f"{name} has {array.size} elements, must be {count}")
    return np.ascontiguousarray(array)


class SimulatedBoard:
    """The probe behind its frame streams and its link; made reset and idle.

    `bus_bytes`, `ports`, `connections` and `word` are the gateware's own parameters; `design`
    replaces it by another with the same pins. The first board of a kind is built, which takes a
    minute; `report` gets a line for each stage. Not for use by two threads at once.
    """

    def __init__(self, bus_bytes: int = 8, ports: int = 1, connections: int = 1024,
                 word: int = 256, *, asserts: bool = False, design: Design | None = None,
                 report: Report = to_stderr) -> None:
        self.design = design or probe(bus_bytes=bus_bytes, ports=ports, connections=connections,
                                      word=word)
        self.clock_hz = CLOCK_HZ.get(self.design.bus_bytes, CLOCK_HZ[8])
        self._library = _load(build_library(self.design, asserts=asserts, report=report))
        self._board = self._library.board_create()
        self._close = weakref.finalize(self, self._library.board_destroy, self._board)
        self._room = max(1, min(64, self.snapshot_room // 2))

    def close(self) -> None:
        """Frees the model; nothing else may be called after it."""
        self._close()

    def _checked(self, result: int) -> int:
        if result < 0:
            text = self._library.board_error(self._board).decode(errors="replace")
            raise GatewareStopped(f"the gateware stopped: {' '.join(text.split())}")
        return result

    # ---------------------------------------------------------------- clock

    def reset(self) -> None:
        """Pulls the reset for four clocks and empties both link queues."""
        self._checked(self._library.board_reset(self._board))

    def run(self, cycles: int) -> None:
        """Clocks the board without frames."""
        self._checked(self._library.board_run(self._board, cycles))

    def run_until_output(self, max_cycles: int, max_octets: int = 1) -> int:
        """Clocks the board until link octets wait for the host, at most `max_cycles`, and then on
        while they keep coming, until `max_octets` wait; gives the clocks that took."""
        return self._checked(
            self._library.board_run_until_output(self._board, max_cycles, max_octets))

    def seconds(self) -> float:
        """Time that the board's clock has run: a clock for the host's driver."""
        return self.counters.cycles / self.clock_hz

    def set_time(self, nanoseconds: int) -> None:
        """The board's clock until the next frame brings its own time."""
        self._library.board_set_time(self._board, nanoseconds)

    def follow_wall_clock(self, on: bool = True) -> None:
        """Frames arrive when they are fed, by this machine's clock, not at their captured time."""
        self._library.board_follow_wall_clock(self._board, on)

    @property
    def counters(self) -> BoardCounters:
        """Exact counts since the board was made."""
        out = _Counters()
        self._library.board_counters(self._board, ctypes.byref(out))
        return BoardCounters(out.cycles, out.frames, out.octets, out.waited)

    @property
    def snapshot_level(self) -> int:
        """Records waiting in the snapshot FIFO."""
        return self._library.board_snapshot_level(self._board)

    @property
    def snapshot_room(self) -> int:
        """Records that the snapshot FIFO still takes."""
        return self._library.board_snapshot_room(self._board)

    # ---------------------------------------------------------------- frames

    def feed(self, batch, *, start: int = 0, stop: int | None = None, flags=0,
             gap_octets: int = LINE_RATE_GAP, throttle: bool = True, concurrent: bool = False,
             patience: int = 20_000) -> int:
        """Sends frames ``batch[start:stop]``; gives the index of the first one that was not sent.

        `batch` has the arrays of :class:`rocetap.capture.frames.FrameBatch`: data, offsets,
        captured, original, time_ns, interface and, if it has it, lost. Interface i goes to port i
        modulo the number of ports. `flags` are :class:`FrameFlag`, one for all or one a frame.

        A frame is padded to 60 octets, gets its FCS and is followed by `gap_octets` of idle line
        (LINE_RATE_GAP: line rate; 0: as close as whole beats allow). One that the tap cut
        (captured < original) goes unpadded, marked `sliced`, with four placeholders for its FCS.

        With `throttle` the next frame waits while the snapshot FIFO is short of room, so that no
        record is dropped; when the link has been silent for `patience` clocks, or its queue to
        the host is nearly full, `feed` comes back early: read the link, grant credit, call again.
        Without it frames come whatever happens, all of them. `concurrent` keeps all ports busy at
        once, each with its own frames in order, instead of one frame after another in the whole;
        it does not throttle.
        """
        count = len(batch.offsets)
        data = np.ascontiguousarray(batch.data, dtype=np.uint8)
        offsets = _array(batch.offsets, np.uint64, count, "offsets")
        captured = _array(batch.captured, np.uint32, count, "captured")
        ends = offsets + captured
        if count and int(ends.max()) > data.size:
            bad = int(np.argmax(ends > data.size))
            raise ValueError(f"frame {bad} ends at octet {int(ends[bad])} of {data.size}")
        stop = count if stop is None else stop
        if not 0 <= start <= stop <= count:
            raise ValueError(
                f"start is {start} and stop {stop}, must be in order and at most {count}")
        if concurrent and throttle:
            raise ValueError("concurrent frames cannot be throttled: give throttle=False")
        marks = _array(flags, np.uint8, count, "flags")
        lost = getattr(batch, "lost", None)
        if lost is not None:
            marks = marks | np.where(lost, np.uint8(FrameFlag.LOST_BEFORE), np.uint8(0))
        arrays = (
            data, offsets, captured, _array(batch.original, np.uint32, count, "original"),
            _array(batch.time_ns, np.uint64, count, "time_ns"),
            _array(batch.interface, np.uint16, count, "interface") % np.uint16(self.design.ports),
            marks)
        request = _Feed(*(array.ctypes.data for array in arrays), start, stop, gap_octets,
                        self._room if throttle else 0, patience)
        run = self._library.board_feed_concurrently if concurrent else self._library.board_feed
        return self._checked(run(self._board, ctypes.byref(request)))

    # ---------------------------------------------------------------- link

    def write(self, octets: bytes) -> int:
        """Queues octets for the board, one a clock; gives how many fit the queue of 1 MiB."""
        return self._library.board_write(self._board, octets, len(octets))

    def read(self, max_octets: int) -> bytes:
        """Octets that the board has sent, without clocking it."""
        buffer = ctypes.create_string_buffer(max_octets)
        size = self._library.board_read(self._board, buffer, max_octets)
        return buffer.raw[:size]

    def transport(self) -> SimulatedTransport:
        """The far end of the link, for the host's driver."""
        return SimulatedTransport(self)


class SimulatedTransport:
    """The host driver's transport: reading clocks the board.

    Time is simulated: a read gives up after `timeout_s` of the board's clock, or after
    `quiet_cycles` without an octet, whichever is less, for a board that says nothing so long has
    nothing to say.
    """

    def __init__(self, board: SimulatedBoard, *, quiet_cycles: int = 50_000) -> None:
        self._board = board
        self._quiet_cycles = quiet_cycles
        self._open = True

    def _check_open(self) -> None:
        if not self._open:
            raise TransportClosed("simulated board: was closed")

    def write(self, octets: bytes, /) -> None:
        """Takes all octets, clocking the board while its queue is full."""
        self._check_open()
        while octets:
            octets = octets[self._board.write(octets):]
            if octets:
                self._board.run(1024)

    def read(self, max_octets: int, timeout_s: float, /) -> bytes:
        """At least one octet and at most `max_octets`, or b"" at the time-out, which is rounded up
        to a whole clock: who waits for a moment of the board's clock gets there."""
        self._check_open()
        cycles = min(self._quiet_cycles, ceil(max(0.0, timeout_s) * self._board.clock_hz))
        if cycles:
            self._board.run_until_output(cycles, max_octets)
        return self._board.read(max_octets)

    def close(self) -> None:
        """The line is closed; the board belongs to who made it and goes on. May be called twice."""
        self._open = False
