"""Board time to UTC: a map that never runs backwards and never rewrites the past.

The board counts nanoseconds of its own crystal. A pairing is one reading of the board's clock
between two readings of the host's; it bounds the offset between the two to half of what the three
took. The map is piecewise linear over board time and changes from the latest pairing on:

- the host's clock is ahead of the map: the map steps forward to it;
- it is behind (its clock was set back, or the board's crystal runs fast): the map runs at half
  speed until both agree. Time stamps stay monotone, and `error` says how far off they are.

A board that was reset starts its clock again; the map then goes on from where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["NS_PER_MS", "BoardClock", "ExportClock", "Pairing"]

NS_PER_MS = 1_000_000
_KEPT = 64

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pairing:
    """The board's clock read between two readings of the host's, all in ns; `before` and `after`
    are UTC since 1970."""

    before: int
    board: int
    after: int

    @property
    def utc(self) -> int:
        """The host's time that `board` is taken for."""
        return (self.before + self.after) // 2

    @property
    def error(self) -> int:
        """At most this far from the truth, in ns, if the host's clock is right."""
        return (self.after - self.before + 1) // 2


@dataclass(frozen=True)
class _Segment:
    """From board time `board` on: UTC = utc + (time - board) / divisor."""

    board: int
    utc: int
    divisor: int = 1

    def at(self, board: int) -> int:
        return self.utc + (board - self.board) // self.divisor


class BoardClock:
    """The map. Without a pairing, and with `BoardClock.identity()`, board time is UTC already."""

    def __init__(self) -> None:
        self._segments: list[_Segment] = []
        self._paired_at = 0
        self._floor = 0
        self._behind = 0
        self._error = 0

    @classmethod
    def identity(cls) -> BoardClock:
        """For a replay: the simulated board's clock carries the capture's own time."""
        return cls()

    @property
    def error(self) -> int:
        """How far a time stamp of now may be off, in ns, if the host's clock is right: the
        uncertainty of the latest pairing and what the map has still to give back."""
        return self._error + self._behind

    def restart(self) -> None:
        """The board's clock may have started again, as after a reset. What the map gave at the
        latest pairing is the least that the next one gives."""
        if self._segments:
            self._floor = max(self._floor, self._segment_at(self._paired_at).at(self._paired_at))
        self._segments = []
        self._behind = 0
        self._error = 0

    def pair(self, pairing: Pairing) -> None:
        """Takes a pairing in. A board time before the latest pairing's is a clock that was set
        anew, as by `restart`."""
        if pairing.board < self._paired_at:
            self.restart()
        mapped = (self._segment_at(pairing.board).at(pairing.board) if self._segments
                  else max(pairing.utc, self._floor))
        self._follow(pairing, mapped)
        self._paired_at = pairing.board
        self._error = pairing.error

    def _follow(self, pairing: Pairing, mapped: int) -> None:
        self._segments = [one for one in self._segments if one.board < pairing.board]
        self._behind = max(0, mapped - pairing.utc)
        if self._behind:
            # At half speed the map gives back one ns in two; the line after that is the host's.
            caught_up = pairing.board + 2 * self._behind
            self._segments += [_Segment(pairing.board, mapped, 2),
                               _Segment(caught_up, pairing.utc + 2 * self._behind)]
        else:
            self._segments.append(_Segment(pairing.board, pairing.utc))
        del self._segments[:-_KEPT]

    def _segment_at(self, board: int) -> _Segment:
        for segment in reversed(self._segments):
            if segment.board <= board:
                return segment
        return self._segments[0]

    def to_ns(self, board: npt.ArrayLike) -> Int64Array:
        """UTC in ns of board times in ns; any shape, monotone in `board`."""
        times = np.asarray(board).astype(np.int64)
        if not self._segments:
            return times
        starts = np.array([one.board for one in self._segments], np.int64)
        utc = np.array([one.utc for one in self._segments], np.int64)
        divisors = np.array([one.divisor for one in self._segments], np.int64)
        index = np.maximum(np.searchsorted(starts, times, side="right") - 1, 0)
        elapsed = times - starts[index]
        # Before the oldest segment kept, board time runs at full speed.
        divisor = np.where(elapsed < 0, 1, divisors[index])
        mapped: Int64Array = utc[index] + elapsed // divisor
        return mapped

    def to_ms(self, board: npt.ArrayLike) -> npt.NDArray[np.uint64]:
        """UTC in whole milliseconds, as IPFIX's dateTimeMilliseconds (RFC 7011, 6.1.8)."""
        return (np.maximum(self.to_ns(board), 0) // NS_PER_MS).astype(np.uint64)


class ExportClock:
    """The host's own clock under the same rule, for the Export Time of messages: it follows a step
    forward at once, gives a step back at half speed, and never runs backwards.

    `wall`: UTC in ns. `monotonic`: seconds.
    """

    def __init__(self, wall: Callable[[], int], monotonic: Callable[[], float]) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._map = BoardClock()
        self._latest_ms = 0

    def now_ms(self, at_least_ms: int = 0) -> int:
        """UTC in ms: not before `at_least_ms`, the latest time stamp that will be sent, for the
        board's map and this one are paired at different moments."""
        mark = int(self._monotonic() * 1e9)
        utc = self._wall()
        self._map.pair(Pairing(utc, mark, utc))
        self._latest_ms = max(int(self._map.to_ms([mark])[0]), at_least_ms, self._latest_ms)
        return self._latest_ms
