"""The board's side of the daemon: polls, samples, and brings a lost board back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import numpy as np

from rocetap.export.board import Board, Sample
from rocetap.export.clock import BoardClock
from rocetap.export.epochs import EpochBook
from rocetap.export.hub import LOG, Hub
from rocetap.export.provision import BoardTooSmallError, check_fits
from rocetap.ipfix.records import Records
from rocetap.link.driver import BoardInfo, Driver
from rocetap.link.errors import LinkError, TableFull
from rocetap.link.records import RecordArray
from rocetap.provisioning import Provisioning
from rocetap.spec.flags import SequenceFlag
from rocetap.spec.records import RecordKind
from rocetap.wording import counted

__all__ = ["BoardLoop"]

_POLL_S: Final = 0.05
_LONGEST_WAIT_S: Final = 5.0
"""Between two tries to open the line: a cable that was put back is found soon."""
_T = TypeVar("_T")


class BoardLoop:
    """One board. Every call to it runs in one thread, for the line blocks.

    A link that fails closes the line; `run` opens it again with backoff. Epochs that were open
    then stay without a final report: the collector sees them end incomplete, which is the truth.
    `fresh`: the board is known to be empty at the first start.
    """

    def __init__(self, hub: Hub, provisioning: Provisioning,
                 open_driver: Callable[[], Driver], *, fresh: bool = False) -> None:
        self._fresh = fresh
        self._hub = hub
        self._provisioning = provisioning
        self._open_driver = open_driver
        self._clock = BoardClock()
        self._board: Board | None = None
        self._contexts = 0
        self._boot_id: int | None = None
        self._overrun = False
        self._thread = ThreadPoolExecutor(1, "rocetap-board")

    async def start(self) -> None:
        """Opens and provisions the board. Raises LinkError or BoardTooSmallError."""
        hub = self._hub
        async with hub.lock:
            board, info = await self._in_thread(self._open)
            self._board, self._contexts = board, info.connections
            state = hub.board
            state.up, state.info = True, info
            state.starts += 1
            restarted = self._boot_id is not None and info.boot_id != self._boot_id
            state.restarts += restarted
            self._boot_id = info.boot_id
            hub.drop("board_restart", hub.queue.clear())
            if hub.book is not None:
                hub.book.board_restarted()
                self._tell_placements(hub.book)
        line = (f"board ready: {counted(len(board.placements), 'connection')}, "
                f"{counted(info.connections, 'context')}, {counted(info.ports, 'port')}"
                + "; it was reset since" * restarted)
        if not hub.states.good("board", line):
            LOG.info("%s", line, extra={"fields": {"what": "board"}})
        hub.board_is_up.set()

    def _open(self) -> tuple[Board, BoardInfo]:
        board = Board(self._open_driver(), self._provisioning, self._clock,
                      monotonic=self._hub.monotonic, wall=self._hub.wall)
        try:
            info = board.start(fresh=self._fresh)
            self._fresh = False
            return board, info
        except BaseException:
            board.close()
            raise

    async def run(self) -> None:
        """Until the daemon is told to end."""
        backoff = self._hub.backoff()
        backoff.cap = min(backoff.cap, _LONGEST_WAIT_S)
        due = self._hub.monotonic()
        while not self._hub.stop.is_set():
            try:
                if self._board is None:
                    await self.start()
                    backoff.reset()
                due = await self._turn(due)
            except (LinkError, BoardTooSmallError) as error:
                await self._lost(error)
                await self._hub.wait_or_stop(backoff.next())

    async def close(self) -> None:
        """Frees line and thread."""
        if self._board is not None:
            with contextlib.suppress(LinkError):
                await self._in_thread(self._board.close)
        self._thread.shutdown(wait=False)

    async def begin_book(self) -> None:
        """Fresh metering state for a new Transport Session: all epochs closed, what they left
        thrown away, and a new book."""
        hub = self._hub
        async with hub.lock:
            if self._board is not None:
                try:
                    stale = await self._in_thread(self._board.restart_epochs)
                    hub.statistics.produced += stale
                    hub.drop("session_start", stale)
                except LinkError as error:
                    await self._lost(error)  # it comes back with fresh epochs
            hub.drop("session_start", hub.queue.clear())
            hub.book = EpochBook(self._contexts, self._clock)
            self._tell_placements(hub.book)

    async def reprovision(self, provisioning: Provisioning) -> None:
        """Changes what the board watches, now or, while it is away, when it comes back. Raises
        BoardTooSmallError or TableFull, and then nothing has changed."""
        hub = self._hub
        async with hub.lock:
            board = self._board
            if board is None:
                if hub.board.info is not None:
                    check_fits(hub.board.info, provisioning)
                self._provisioning = provisioning
                return
            try:
                await self._in_thread(board.reprovision, provisioning)
                self._provisioning = provisioning
            except (TableFull, BoardTooSmallError):
                raise
            except LinkError as error:
                self._provisioning = provisioning
                await self._lost(error)
            finally:
                if hub.book is not None:
                    self._tell_placements(hub.book)

    async def close_contexts(self, contexts: list[int]) -> None:
        """Closes some epochs; their final records come with the next turn."""
        async with self._hub.lock:
            if self._board is not None:
                try:
                    await self._in_thread(self._board.close_contexts, contexts)
                except LinkError as error:
                    await self._lost(error)

    async def close_epochs(self) -> None:
        """Closes every epoch; their final records and the last PFC counters are in the queue."""
        async with self._hub.lock:
            if self._board is not None:
                try:
                    self._put(await self._in_thread(self._board.close_epochs))
                    self._put_sample(await self._in_thread(self._board.read_pfc))
                except LinkError as error:
                    await self._lost(error)

    async def _turn(self, due: float) -> float:
        """A sample if one is due, else what the board has pushed; when the next is due."""
        hub = self._hub
        async with hub.lock:
            now = hub.monotonic()
            if self._board is None:
                return due
            if now >= due:
                sample = await self._in_thread(self._board.sample)
                self._put(sample.records)
                self._put_sample(sample)
                self._note_duration(hub.monotonic() - now)
                due = max(due + hub.settings.interval, now)  # a late turn is not made up for
            else:
                self._put(await self._in_thread(self._board.poll, min(_POLL_S, due - now)))
        await asyncio.sleep(0)
        return due

    def _note_duration(self, seconds: float) -> None:
        hub = self._hub
        hub.board.sampled_at, hub.board.sample_s = hub.monotonic(), seconds
        overrun, self._overrun = self._overrun, seconds > hub.settings.interval
        if overrun and self._overrun:  # one alone may be this machine's
            hub.states.bad("interval", f"a sample of the board took {seconds:.2f} s, more than the "
                           f"interval of {hub.settings.interval:g} s: give a longer interval, or "
                           "a faster line")

    async def _lost(self, error: LinkError | BoardTooSmallError) -> None:
        self._hub.states.bad("board", f"board lost: {error}; trying again")
        self._hub.board_is_up.clear()
        self._hub.board.up = False
        self._hub.board.line_closed()
        board, self._board = self._board, None
        if board is not None:
            with contextlib.suppress(LinkError):
                await self._in_thread(board.close)

    def _put(self, records: RecordArray) -> None:
        hub = self._hub
        hub.statistics.violations += int(np.count_nonzero(
            (records["kind"] == RecordKind.DISABLED)
            | ((records["kind"] == RecordKind.SEQUENCE)
               & ((records["flags"] & SequenceFlag.profileViolation) != 0))))
        records = records[records["kind"] == RecordKind.SEQUENCE]
        hub.statistics.produced += len(records)
        if hub.book is None:
            hub.drop("no_session", len(records))
        elif len(records):
            hub.queue.put_records(records)
            hub.filled.set()

    def _put_sample(self, sample: Sample) -> None:
        state = self._hub.board
        if sample.counters is not None:
            state.take_counters(sample.counters)
        if self._board is not None:
            state.take_line(self._board.line_counts)
        state.clock_error_ns = self._clock.error
        self._put_readings(sample.readings)

    def _put_readings(self, readings: Records) -> None:
        if self._hub.book is not None:
            self._hub.queue.put_readings(readings)
            self._hub.filled.set()

    def _tell_placements(self, book: EpochBook) -> None:
        for one in self._board.placements if self._board is not None else []:
            book.provision(one.context, one.tag, one.connection, one.observation_point)

    async def _in_thread(self, call: Callable[..., _T], *arguments: Any) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)
