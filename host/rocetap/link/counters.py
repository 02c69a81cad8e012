"""Totals that go on when the board's counters start again. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["CounterTracker", "CounterUpdate"]


@dataclass(frozen=True)
class CounterUpdate:
    """What one poll added. `first`: nothing to compare with, so all deltas are 0. `restarted`: the
    counters began at zero since the poll before, so a delta is the counter itself."""

    deltas: dict[str, int]
    first: bool = False
    restarted: bool = False


@dataclass
class CounterTracker:
    """Totals of counters that are `bits` wide and only ever count up.

    With the same boot id a smaller value has wrapped, by less than half the counter's range; a step
    of half the range or more is none that a counter makes: the counters began again without a new
    boot id. So no delta is ever negative, and none is near 2^bits.

    `totals` begins at the counter's value when a counter is first seen and is unbounded. `boot_id`
    and `last` are all the state there is besides: keep the three to go on in another process.
    """

    bits: int = 64
    totals: dict[str, int] = field(default_factory=dict)
    boot_id: int | None = None
    last: dict[str, int] = field(default_factory=dict)

    def update(self, boot_id: int, values: Mapping[str, int]) -> CounterUpdate:
        """Takes one poll of counters, all read under that boot id.

        A value that does not fit raises ValueError, and changes nothing.
        """
        for name, value in values.items():
            if not 0 <= value < 1 << self.bits:
                raise ValueError(f"counter {name} is {value}, must fit {self.bits} bits")
        first = self.boot_id is None
        restarted = not first and (boot_id != self.boot_id or any(
            self._step(name, value) >> (self.bits - 1)
            for name, value in values.items() if name in self.last))
        deltas: dict[str, int] = {}
        for name, value in values.items():
            if name not in self.totals:
                self.totals[name] = value
                deltas[name] = 0
                continue
            deltas[name] = value if restarted else self._step(name, value)
            self.totals[name] += deltas[name]
        self.boot_id = boot_id
        self.last = {**({} if restarted else self.last), **values}
        return CounterUpdate(deltas, first, restarted)

    def _step(self, name: str, value: int) -> int:
        return (value - self.last.get(name, 0)) % (1 << self.bits)
