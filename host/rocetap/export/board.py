"""The board as the exporter sees it: provisioned, swept, read and closed. Blocking calls.

The daemon makes them in one thread of their own, the replay in its own thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from rocetap.export.boardstate import line_counts
from rocetap.export.clock import BoardClock, Pairing
from rocetap.export.provision import Placement, Provisioner
from rocetap.export.sweeping import Sweeper
from rocetap.ipfix.records import PFC_READING, Records
from rocetap.link.driver import BoardInfo, Driver
from rocetap.link.errors import TableFull
from rocetap.link.poll import BoardCounters, read_counters
from rocetap.link.records import RECORD_DTYPE, RecordArray
from rocetap.provisioning import Provisioning
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import OperationKind

__all__ = ["PRIORITIES", "Board", "Sample"]

PRIORITIES: Final = 8
"""Of PFC, per port and direction; the first so many registers of a PFC bank are the totals."""


def _no_records() -> RecordArray:
    return np.zeros(0, RECORD_DTYPE)


def _no_readings() -> Records:
    return np.zeros(0, PFC_READING)


@dataclass(frozen=True)
class Sample:
    """What one reading of the board gave: records in their order, PFC counters with the time of
    their reading, all counters for statistics."""

    records: RecordArray = field(default_factory=_no_records)
    readings: Records = field(default_factory=_no_readings)
    counters: BoardCounters | None = None


class Board:
    """One board and its provisioning.

    `driver`: before its handshake. `clock`: maps the board's time; it is paired with `wall` (UTC in
    ns) at each sample unless that is None, as in a replay. `monotonic`: seconds. `answer_s`: how
    long a sweep may take until LinkTimeout. Counters of transmitted PFC frames are read only of a
    board that sees what its ports transmit, for a zero that nobody counted is no count.
    """

    def __init__(self, driver: Driver, provisioning: Provisioning, clock: BoardClock, *,
                 monotonic: Callable[[], float], wall: Callable[[], int] | None = None,
                 answer_s: float = 10.0) -> None:
        self._driver = driver
        self._provisioning = provisioning
        self._clock = clock
        self._wall = wall
        self._sweeper = Sweeper(driver, monotonic, answer_s=answer_s)
        self._provisioner: Provisioner | None = None

    @property
    def placements(self) -> list[Placement]:
        """The connections on the board, by context."""
        return self._provisioner.placements if self._provisioner else []

    def start(self, *, fresh: bool = False) -> BoardInfo:
        """Handshake, an empty board, then the provisioning; also after BoardRestarted.

        `fresh`: the board is known to be empty, so it need not be emptied register by register.
        Raises LinkError, or BoardTooSmallError before anything is changed on the board.
        """
        info = self._driver.handshake()
        self._sweeper.forget()
        provisioner = Provisioner(self._driver)
        provisioner.check(self._provisioning)
        if not fresh:
            provisioner.take_over()
            self._sweeper.sweep(OperationKind.CLOSE, info.connections - 1)
        provisioner.apply(self._provisioning)
        self._provisioner = provisioner
        self._clock.restart()
        self._pair()
        return info

    def restart_epochs(self) -> int:
        """Closes every epoch and throws away all records so far, so that a new Transport Session
        starts with fresh metering state; how many records that were."""
        records = self.close_epochs()
        return int(np.count_nonzero(records["kind"] == RecordKind.SEQUENCE))

    def close_epochs(self) -> RecordArray:
        """Closes every epoch: all records up to the last final one, in their order."""
        return self._sweep(OperationKind.CLOSE)

    def close_contexts(self, contexts: list[int]) -> None:
        """Closes the epochs of some contexts; their final records come with the next sample."""
        for context in contexts:
            self._driver.operate(OperationKind.CLOSE, context)

    def sample(self) -> Sample:
        """A snapshot of every open epoch and a reading of every PFC counter."""
        records = self._sweep(OperationKind.SNAPSHOT)
        self._pair()
        return self._with_counters(records)

    def read_pfc(self) -> Sample:
        """A reading of every PFC counter, without records."""
        self._pair()
        return self._with_counters(_no_records())

    def reprovision(self, provisioning: Provisioning) -> list[Placement]:
        """Brings the running board to another provisioning: a connection of which anything changed
        closes its epoch, the others go on. The new placements, in the provisioning's order.

        Raises BoardTooSmallError or TableFull, and then keeps the provisioning it had.
        """
        if self._provisioner is None:
            raise ValueError("not started: there is nothing to change")
        before = self._provisioning
        try:
            placed = self._provisioner.apply(provisioning)
        except TableFull:
            self._provisioner.apply(before)
            raise
        self._provisioning = provisioning
        return placed

    @property
    def line_counts(self) -> Counter[str]:
        """What went wrong on the line so far."""
        return Counter({**line_counts(self._driver), "sweep_repeated": self._sweeper.repeated})

    def poll(self, timeout_s: float) -> RecordArray:
        """Records that the board pushes of its own accord: epochs that closed. Waits for the first
        at most `timeout_s`."""
        self._driver.poll(timeout_s)
        return self._sweeper.take()

    def close(self) -> None:
        """Frees the line."""
        self._driver.close()

    def _with_counters(self, records: RecordArray) -> Sample:
        counters = read_counters(self._driver)
        return Sample(records, self._readings(counters), counters)

    def _readings(self, counters: BoardCounters) -> Records:
        time_ms = int(self._clock.to_ms([counters.state["time"]])[0])
        banks = [(False, counters.pfc_received)]
        if self._driver.board and self._driver.board.transmitted:
            banks.append((True, counters.pfc_transmitted))
        rows = [
            (self._provisioning.observation_point, port.interface, direction, priority, 0, time_ms,
             bank[index][priority])
            for direction, bank in banks
            for index, port in enumerate(self._provisioning.ports)
            for priority in range(PRIORITIES)]
        return np.array(rows, PFC_READING)

    def _pair(self) -> None:
        if self._wall is not None:
            before = self._wall()
            board = self._driver.read("time")
            self._clock.pair(Pairing(before, board, self._wall()))

    def _sweep(self, kind: OperationKind) -> RecordArray:
        return self._sweeper.sweep(
            kind, max((one.context for one in self.placements), default=0))
