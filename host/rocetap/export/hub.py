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
from rocetap.export.endpoint import Endpoint
from rocetap.export.epochs import EpochBook
from rocetap.export.queue import ReportQueue
from rocetap.export.tls import Limits
from rocetap.spec.elements import DEFAULT_PEN

__all__ = ["LOG", "Hub", "Settings", "Statistics", "Stopped"]

LOG: Final = logging.getLogger("rocetap.export")
_REPEAT_LOG_S: Final = 60.0
_T = TypeVar("_T")


@dataclass(frozen=True)
class Settings:
    """What the daemon is told. `interval` in seconds, `queue_limit` in records."""

    endpoint: Endpoint
    collector_name: str
    interval: float = 10.0
    domain: int = 1
    pen: int = DEFAULT_PEN
    queue_limit: int = 100_000
    limits: Limits = field(default_factory=Limits)


@dataclass
class Statistics:
    """Counts since the start.

    `produced`: records that the board gave. Each is in `sent`, in the hub's `drops` under its
    reason, or waits in the queue. `in_doubt`: records among `sent` whose session then broke, so
    that the collector may not have them all. `proof`: how the collector of the latest session
    showed that it accepts us.
    """

    produced: int = 0
    sent: int = 0
    readings_sent: int = 0
    in_doubt: int = 0
    sessions: int = 0
    attempts: int = 0
    board_starts: int = 0
    proof: str = ""


class Stopped(Exception):
    """The daemon was told to end."""


class Hub:
    """Shared by the loops; all of it belongs to the event loop's thread.

    `lock` holds board and queue together: a sample that began before a session's epochs were
    restarted must not enter that session's queue. `book` is None while there is no session.
    """

    def __init__(self, settings: Settings, monotonic: Callable[[], float] = time.monotonic,
                 wall: Callable[[], int] = time.time_ns,
                 backoff: Callable[[], Backoff] = Backoff) -> None:
        self.settings = settings
        self.monotonic = monotonic
        self.wall = wall
        self.backoff = backoff
        self.statistics = Statistics()
        self.queue = ReportQueue(settings.queue_limit)
        self.book: EpochBook | None = None
        self.lock = asyncio.Lock()
        self.filled = asyncio.Event()
        self.board_is_up = asyncio.Event()
        self.stop = asyncio.Event()
        self._drops: Counter[str] = Counter()
        self._logged: dict[str, float] = {}

    @property
    def drops(self) -> Counter[str]:
        """Records dropped so far by reason, those of the queue and of the book among them."""
        queue = Counter({reason: count for reason, count in self.queue.drops.items()
                         if reason != "superseded"})
        return self._drops + queue + (self.book.drops if self.book else Counter())

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

    def export_time(self) -> int:
        """Seconds since 1970, modulo 2^32 as the header's field has it (RFC 7011, 3.1)."""
        return self.wall() // 1_000_000_000 & 0xFFFF_FFFF

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

    def log_seldom(self, line: str) -> None:
        """A warning at once when it is new, then once in a while, however often it comes."""
        now = self.monotonic()
        recent = {one: then for one, then in self._logged.items() if now - then < _REPEAT_LOG_S}
        if line not in recent:
            recent[line] = now
            LOG.warning("%s", line)
        self._logged = recent
