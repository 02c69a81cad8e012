"""How long to wait before the next try: exponential, with jitter and a cap."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["Backoff"]


@dataclass
class Backoff:
    """Waits that double from `initial` to `cap` seconds, each cut by up to half at random.

    The random part keeps many probes from knocking at a restarted collector in the same moment.
    """

    initial: float = 0.5
    cap: float = 30.0
    random: random.Random = field(default_factory=random.Random)
    failures: int = 0

    def next(self) -> float:
        """The wait after one more failure, in seconds: between half of and the whole of
        `initial * 2**failures`, at most `cap`."""
        ceiling = min(self.cap, self.initial * 2.0 ** min(self.failures, 60))
        self.failures += 1
        return ceiling * (0.5 + 0.5 * self.random.random())

    def reset(self) -> None:
        """After a success the next wait is short again."""
        self.failures = 0
