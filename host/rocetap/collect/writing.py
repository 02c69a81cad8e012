"""Batches of all peers into the store: one bounded queue, one writer, one transaction for what has
gathered.

A store that fails is tried again while the full queue holds the peers back through TCP, so nothing
that was read is dropped; only a stop with a store that still fails gives up, and says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .session import Batch
from .store import Store, StoreDamagedError, StoreError

__all__ = ["StoreWriter"]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class StoreWriter:
    """Runs inside an event loop; the store itself works in one thread of its own.

    `counters`: `store_failed` (tries that failed), `batches_not_stored` (given up at a stop, or
    because the file is damaged). `outcomes`: epochs that reached one, as stored.
    """

    def __init__(self, store: Store, queued_batches: int, retry_s: float) -> None:
        self.counters: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.reports_written = 0
        self.failing = False
        """Whether the store cannot be written now; it is tried again."""
        self._store, self._retry_s = store, retry_s
        self._queue: asyncio.Queue[tuple[int, Batch]] = asyncio.Queue(queued_batches)
        self._thread = ThreadPoolExecutor(1, "rocetap-store")
        self._stopping = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @property
    def waiting(self) -> int:
        """Batches in the queue."""
        return self._queue.qsize()

    @property
    def failed(self) -> bool:
        """Whether the writer has ended by an error: nothing is stored any more."""
        return self._task.done() and not self._task.cancelled()

    async def broken(self) -> None:
        """Returns when the writer has ended by an error."""
        await asyncio.wait({self._task})

    async def open_session(self, exporter: str, address: str, pen: int, now_ms: int) -> int:
        """The new session's id. Raises StoreError."""
        return await self._in_thread(
            lambda: self._store.open_session(exporter, address, pen, now_ms))

    async def put(self, session_id: int, batch: Batch) -> None:
        """Waits while the queue is full."""
        if not batch:
            return
        if self._task.done():
            self.counters["batches_not_stored"] += 1
            return
        if not self._queue.full():
            self._queue.put_nowait((session_id, batch))
            return
        put = asyncio.create_task(self._queue.put((session_id, batch)))
        await asyncio.wait({put, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not put.done():  # what is in the queue is counted by `stop`
            put.cancel()
            self.counters["batches_not_stored"] += 1

    def give_up(self) -> None:
        """From now on a store that fails ends the writer."""
        self._stopping.set()

    async def stop(self) -> None:
        """Returns when all that was put is written. Raises StoreError when it cannot be."""
        self.give_up()
        joined = asyncio.create_task(self._queue.join())
        await asyncio.wait({joined, self._task}, return_when=asyncio.FIRST_COMPLETED)
        failed = None if not self._task.done() else self._task.exception()
        self._task.cancel()
        joined.cancel()
        await asyncio.gather(self._task, joined, return_exceptions=True)
        self._thread.shutdown()
        self.counters["batches_not_stored"] += self._queue.qsize()
        if failed is not None:
            raise failed

    async def _run(self) -> None:
        while True:
            items = [await self._queue.get()]
            while not self._queue.empty():
                items.append(self._queue.get_nowait())
            try:
                await self._write(items)
            except Exception:
                self.counters["batches_not_stored"] += len(items)
                _log.exception("the store's writer has stopped; no batch is stored any more")
                raise
            self.reports_written += sum(batch.reports for _, batch in items)
            for _, batch in items:
                self.outcomes.update(batch.outcomes())
            for _ in items:
                self._queue.task_done()

    async def _write(self, items: list[tuple[int, Batch]]) -> None:
        while True:
            try:
                await self._in_thread(lambda: self._store.write(items))
            except StoreError as error:
                self.counters["store_failed"] += 1
                if self._stopping.is_set() or isinstance(error, StoreDamagedError):
                    raise
                if not self.failing:
                    _log.error("%s; trying again every %g s, exporters wait", error,
                               self._retry_s)
                self.failing = True
                await self._pause()
            else:
                if self.failing:
                    _log.info("the store can be written again")
                self.failing = False
                return

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._retry_s):
                await self._stopping.wait()
        except TimeoutError:
            pass

    async def _in_thread(self, call: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)
