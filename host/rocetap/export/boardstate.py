"""What is known of the board, for metrics: counters that go on through resets, and the line."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rocetap.link.counters import CounterTracker
from rocetap.link.driver import BoardInfo, Driver
from rocetap.link.poll import BoardCounters
from rocetap.spec.registers import REGISTERS

__all__ = ["BoardState", "line_counts"]

_SINGLE = ("capture_generation", "records_dropped", "unprovisioned")


@dataclass
class BoardState:
    """`up`: the link works. `sampled_at`: monotonic seconds of the latest whole sample, `sample_s`
    how long it took. `starts`: bring-ups; `restarts`: of them, those that found the board reset.

    `totals`: counters since this process saw the board first, by (name, port, index) joined with
    "/"; never smaller than before, whatever the board does. `line`: this host's side of the link,
    over all openings of it.
    """

    up: bool = False
    info: BoardInfo | None = None
    sampled_at: float | None = None
    sample_s: float = 0.0
    starts: int = 0
    restarts: int = 0
    clock_error_ns: int = 0
    line: Counter[str] = field(default_factory=Counter)
    _line_before: Counter[str] = field(default_factory=Counter)
    _wide: CounterTracker = field(default_factory=CounterTracker)
    _narrow: CounterTracker = field(default_factory=lambda: CounterTracker(bits=32))

    @property
    def totals(self) -> dict[str, int]:
        """See above."""
        return {**self._wide.totals, **self._narrow.totals}

    def take_counters(self, counters: BoardCounters) -> None:
        """One whole poll."""
        values = {f"{name}/{port}/{index}": value
                  for name in ("frame_class", "pfc_received", "pfc_transmitted")
                  for port, bank in enumerate(getattr(counters, name))
                  for index, value in enumerate(bank)}
        values |= {name: counters.state[name] for name in _SINGLE}
        self._wide.update(counters.boot_id, values)
        errors = REGISTERS["link_errors"].unpack(counters.state["link_errors"])
        self._narrow.update(counters.boot_id, {
            f"link_errors/{kind}": value for kind, value in errors.items()})

    def take_line(self, counts: Counter[str]) -> None:
        """Counts of the driver that is open now."""
        self.line = self._line_before + counts

    def line_closed(self) -> None:
        """The driver is gone; the next one counts from zero."""
        self._line_before = Counter(self.line)


def line_counts(driver: Driver) -> Counter[str]:
    """What went wrong on the line as the host saw it, since the driver was made."""
    session = driver.session
    return Counter({
        "crc": session.frames.crc_errors, "format": session.frames.format_errors,
        "oversize": session.frames.oversize_errors, "message": session.message_errors,
        "retry": driver.retries, "stale_reply": driver.stale_replies,
        "record_missed": session.records_missed, "record_discarded": session.records_discarded})
