"""One measured figure, and how it is measured.

By this process's own CPU time, so that other programs on the machine count less; the best of
several turns, as what disturbs only ever adds.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Figure", "best", "peak_kib"]


@dataclass(frozen=True)
class Figure:
    """`value` in `unit`; a CPU second is one of the process's own time on one core. `ratio`: to the
    figure named `to`, of this run."""

    name: str
    value: float
    unit: str
    ratio: float | None = None
    to: str | None = None
    reach: float | None = None
    """What the design asks for, in `unit` for a value and without one for a ratio."""


def best(action: Callable[[], object], turns: int = 3) -> float:
    """The least CPU seconds of several turns."""
    least = float("inf")
    for _ in range(turns):
        begin = time.process_time()
        action()
        least = min(least, time.process_time() - begin)
    return least


def peak_kib() -> int:
    """The most memory this process has held, KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
