"""What the daemon's two loops share: settings, counts, the queue, and the signals between them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from rocetap.export.backoff import Backoff
from rocetap.export.boardstate import BoardState
from rocetap.export.clock import ExportClock
from rocetap.export.endpoint import Endpoint
from rocetap.export.epochs import EpochBook
from rocetap.export.queue import ReportQueue
from rocetap.export.tls import Limits
from rocetap.spec.elements import DEFAULT_PEN
from rocetap.telemetry.logs import StateLog

__all__ = ["LOG", "Hub", "Settings", "Statistics", "Stopped"]

LOG: Final = logging.getLogger("rocetap.export")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Settings:
    """What the daemon is told. `interval` in seconds, `queue_limit` in records. `domain` None: the
    provisioning's."""

    endpoint: Endpoint
    collector_name: str
    interval: float = 10.0
    domain: int | None = None
    pen: int = DEFAULT_PEN
    queue_limit: int = 100_000
    limits: Limits = field(default_factory=Limits)


@dataclass
class Statistics:
    """Counts since the start.

    `produced`: records that the board gave. Each is in `sent`, in the hub's `drops` under its
    reason, or waits in the queue. `in_doubt`: records among `sent` whose session then broke, so
    that the collector may not have them all. `proof`: how the collector of the latest session
    showed that it accepts us. `closed`: final reports sent, by closure flag, "ordinary" without
    one. `violations`: connections that the board disabled for an operation outside the profile.
    `reloads`: of the provisioning, by outcome.
    """

    produced: int = 0
    sent: int = 0
    readings_sent: int = 0
    in_doubt: int = 0
    sessions: int = 0
    attempts: int = 0
    proof: str = ""
    epochs: int = 0
    closed: Counter[str] = field(default_factory=Counter)
    violations: int = 0
    reloads: Counter[str] = field(default_factory=Counter)


class Stopped(Exception):
    """The daemon was told to end."""


class Hub:
    """Shared by the loops; all of it belongs to the event loop's thread.

    `lock` holds board and queue together: a sample that began before a session's epochs were
    restarted must not enter that session's queue. `book` is None while there is no session.
    `renew`: the session shall end in order and another begin. `states`: one log line a change.
    """

    def __init__(self, settings: Settings, monotonic: Callable[[], float] = time.monotonic,
                 wall: Callable[[], int] = time.time_ns,
                 backoff: Callable[[], Backoff] = Backoff) -> None:
        self.settings = settings
        self.monotonic = monotonic
        self.wall = wall
        self.backoff = backoff
        self.statistics = Statistics()
        self.board = BoardState()
        self.states = StateLog(LOG, monotonic)
        self.domain = settings.domain or 0
        self.queue = ReportQueue(settings.queue_limit)
        self.book: EpochBook | None = None
        self.lock = asyncio.Lock()
        self.filled = asyncio.Event()
        self.board_is_up = asyncio.Event()
        self.renew = asyncio.Event()
        self.stop = asyncio.Event()
        self._drops: Counter[str] = Counter()
        self._export_clock = ExportClock(wall, monotonic)

    @property
    def drops(self) -> Counter[str]:
        """Records dropped so far by reason, those of the queue and of the book among them."""
        return self._drops + self.queue.drops + (self.book.drops if self.book else Counter())

    def drop(self, reason: str, count: int) -> None:
        """Counts `count` records that go nowhere."""
        if count:
            self._drops[reason] += count

    def end_book(self) -> None:
        """The session is over: nothing of it may enter the next."""
        self.drop("session_end", self.queue.clear())
        if self.book is not None:
            self._drops += self.book.drops
            self.book = None

    def export_time(self, at_least_ms: int = 0) -> int:
        """Seconds since 1970, modulo 2^32 as the header's field has it (RFC 7011, 3.1): never less
        than before, nor than `at_least_ms`."""
        return self._export_clock.now_ms(at_least_ms) // 1000 & 0xFFFF_FFFF

    async def wait_or_stop(self, seconds: float) -> None:
        """Waits, but not beyond the call to end."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stop.wait(), seconds)

    async def or_stop(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The result of `work`, or Stopped if the daemon is told to end before."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise Stopped
        finally:
            for one in (task, stop):
                one.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)
