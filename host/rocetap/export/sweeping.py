"""One sweep of the board: an operation for each context, and every record it leaves, whole.

A line may damage what the board sends, and records are not repeated by the link. They are numbered,
so what did not arrive is known: a marker that did not come is asked for again, and so are the
snapshots of contexts from which none came, by one more sweep over those. Final records are sent
once: one that did not arrive stays counted, and its epoch ends incomplete at the collector, which
is the truth. Blocking calls.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from rocetap.link.driver import Driver
from rocetap.link.errors import LinkTimeout, RequestFailed
from rocetap.link.records import RECORD_DTYPE, RecordArray
from rocetap.spec.flags import SequenceFlag
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import OperationKind
from rocetap.spec.wire import Status

__all__ = ["Sweeper"]

_POLL_S: Final = 0.1
_COOKIES: Final = 0xFFFF
_MOST_SWEEPS: Final = 5
"""For one result: a line on which the fifth did not come whole gives no more."""


class Sweeper:
    """Sweeps, one at a time, and the records between them.

    `monotonic`: seconds. `answer_s`: how long a sweep may take in all until LinkTimeout.
    `quiet_s`: so long without a record, a marker is taken for damaged once the board has ended the
    sweep. `repeated`: sweeps that were made once more.
    """

    def __init__(self, driver: Driver, monotonic: Callable[[], float], *, answer_s: float = 10.0,
                 quiet_s: float = 0.5) -> None:
        self._driver = driver
        self._monotonic = monotonic
        self._answer_s = answer_s
        self._quiet_s = quiet_s
        self._cookie = secrets.randbelow(_COOKIES)  # no other program's
        self._ahead = np.zeros(0, RECORD_DTYPE)
        self.repeated = 0

    def forget(self) -> None:
        """Throws away what has come and was not taken."""
        self._driver.take_records()
        self._ahead = np.zeros(0, RECORD_DTYPE)

    def take(self) -> RecordArray:
        """The records that have come, in their order."""
        if not len(self._ahead):
            return self._driver.take_records()
        records = np.concatenate([self._ahead, self._driver.take_records()])
        self._ahead = np.zeros(0, RECORD_DTYPE)
        return records

    def sweep(self, kind: OperationKind, last: int) -> RecordArray:
        """All records up to the end of a sweep over contexts 0 to `last`; those behind stay for
        `take`. SNAPSHOT: one of each epoch that was open throughout is among them. CLOSE: nothing
        that was open before is open now. Raises LinkTimeout."""
        run = _Run(kind, 0, last, self._monotonic() + self._answer_s)
        while not self._begin(run):     # that of an earlier program may still run
            self._wait(run)
        heard = self._monotonic()
        while True:
            ended = self._take_to_marker(run)
            now = self._monotonic()
            if ended and (run.sweeps == _MOST_SWEEPS or self._is_whole(run)):
                self.repeated += run.sweeps - 1
                return run.records()
            if run.came:
                heard = now
            if ended or (now - heard >= self._quiet_s and run.sweeps < _MOST_SWEEPS
                         and not self._driver.read("snapshot_level")):
                heard = now
                run.narrow()
                self._begin(run)        # refused: the board is still at it
            self._wait(run)

    def _begin(self, run: _Run) -> bool:
        """Whether the board has begun a sweep; it refuses while one runs."""
        cookie = self._cookie % _COOKIES + 1
        missed = self._driver.records_missed
        try:
            self._driver.sweep(run.kind, run.first, run.last, cookie=cookie)
        except RequestFailed as error:
            if error.status is not Status.REFUSED:
                raise
            return False
        run.before, self._cookie = self._cookie, cookie
        run.sweeps += 1
        run.missed = missed
        return True

    def _take_to_marker(self, run: _Run) -> bool:
        """Whether the latest sweep's marker came; what is behind it stays."""
        records = self.take()
        marks = _marks(records, self._cookie)
        end = marks[0] + 1 if len(marks) else len(records)
        run.came = end > 0
        run.taken.append(records[:end])
        self._ahead = records[end:]
        return bool(len(marks))

    def _is_whole(self, run: _Run) -> bool:
        """Whether every record of the sweep came, up to its marker. The marker of the sweep before
        may be missing: it was asked for again."""
        if run.kind is OperationKind.CLOSE:
            return True     # a final record is sent once, whoever asks again
        missed = self._driver.records_missed - run.missed
        if run.sweeps > 1 and not any(len(_marks(part, run.before)) for part in run.taken):
            missed -= 1
        return missed <= 0

    def _wait(self, run: _Run) -> None:
        if self._monotonic() > run.deadline:
            self._ahead = np.concatenate([*run.taken, self._ahead])
            raise LinkTimeout(f"the board did not end a sweep in {self._answer_s:g} s: "
                              f"{self._driver.advice}")
        self._driver.poll(_POLL_S)


@dataclass
class _Run:
    """What one call of `sweep` has so far. `missed`: the link's count when the latest sweep began;
    `before`: cookie of the one before it."""

    kind: OperationKind
    first: int
    last: int
    deadline: float
    sweeps: int = 0
    before: int = 0
    missed: int = 0
    came: bool = False
    taken: list[RecordArray] = field(default_factory=list)

    def records(self) -> RecordArray:
        """Without markers, which say nothing to others."""
        records: RecordArray = np.concatenate(self.taken)
        kept: RecordArray = records[records["kind"] != RecordKind.MARKER]
        return kept

    def narrow(self) -> None:
        """The contexts from which no snapshot came; one at the least, for the marker's sake."""
        if self.kind is not OperationKind.SNAPSHOT:
            return
        records = self.records()
        answered = records["context"][(records["kind"] == RecordKind.SEQUENCE)
                                      & ((records["flags"] & SequenceFlag.finalEpoch) == 0)]
        left = np.setdiff1d(np.arange(self.first, self.last + 1), answered)
        self.first, self.last = (int(left[0]), int(left[-1])) if len(left) else (
            self.last, self.last)


def _marks(records: RecordArray, cookie: int) -> npt.NDArray[np.int64]:
    return np.flatnonzero((records["kind"] == RecordKind.MARKER) & (records["tag"] == cookie))
