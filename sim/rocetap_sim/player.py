"""When each frame of a capture is due: by its captured time, or at once; once, or again and again.

No clock and no board in here: `now` is an argument, in seconds of any monotone clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

__all__ = ["CapturePlayer"]

_SLICE = 256
"""Frames given at once, so that the link is served in between."""


class CapturePlayer:
    """Frames of the batches that `open_batches` gives.

    `speed`: captured seconds that pass in one second; 0 as fast as frames are taken. `repeat`:
    after the last frame and `pause_s` seconds it begins again. One batch is held at a time.
    """

    def __init__(self, open_batches: Callable[[], Iterable], *, speed: float = 1.0,
                 repeat: bool = False, pause_s: float = 1.0) -> None:
        if speed < 0 or pause_s < 0:
            raise ValueError(f"speed is {speed} and pause_s is {pause_s}, must not be negative")
        self._open_batches = open_batches
        self._speed = speed
        self._repeat = repeat
        self._pause_s = pause_s
        self._batches: Iterator | None = None
        self._batch = None
        self._index = 0
        self._elapsed = np.zeros(0)
        self._first_ns: int | None = None
        self._begun = 0.0
        self._resume = 0.0
        self.rounds = 0
        self.finished = False

    def due(self, now: float) -> tuple[object, int, int] | None:
        """(batch, start, stop): frames to send now, in order; None when there are none."""
        while not self.finished and now >= self._resume:
            if self._batch is not None and self._index < len(self._batch.offsets):
                stop = min(self._index + _SLICE, self._due_index(now))
                return (self._batch, self._index, stop) if stop > self._index else None
            self._next_batch(now)
        return None

    def sent(self, index: int) -> None:
        """Frames of the batch before `index` are sent."""
        self._index = index

    def wait_s(self, now: float) -> float | None:
        """Seconds until the next frame may be due; 0 when one is, None when none ever will be."""
        if self.finished:
            return None
        if now < self._resume:
            return self._resume - now
        if self._speed == 0 or self._batch is None or self._index >= len(self._batch.offsets):
            return 0.0
        return max(0.0, self._begun + float(self._elapsed[self._index]) - now)

    def _due_index(self, now: float) -> int:
        if self._speed == 0:
            return len(self._batch.offsets)
        return int(np.searchsorted(self._elapsed, now - self._begun, side="right"))

    def _next_batch(self, now: float) -> None:
        if self._batches is None:
            self._batches = iter(self._open_batches())
            self._first_ns = None
            self._begun = now
        self._index = 0
        self._batch = next(self._batches, None)
        if self._batch is None:
            self._batches = None
            self.rounds += 1
            self._resume = now + self._pause_s
            self.finished = not self._repeat
            return
        times = np.asarray(self._batch.time_ns, dtype=np.int64)
        if self._first_ns is None and len(times):
            self._first_ns = int(times[0])
        # A captured clock that steps back does not: such a frame goes at once.
        ahead = np.maximum.accumulate(times - (self._first_ns or 0))
        self._elapsed = ahead / 1e9 / (self._speed or 1.0)
