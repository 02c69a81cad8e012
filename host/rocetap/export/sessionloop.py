"""The collector's side of the daemon: sessions, one after the other."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np

from rocetap.export.boardloop import BoardLoop
from rocetap.export.hub import LOG, Hub, Stopped
from rocetap.export.tls import IdentityError, RefusedError, Session, SessionError, connect
from rocetap.ipfix.exporting import ExportingSession
from rocetap.ipfix.records import Records
from rocetap.spec.flags import CLOSURE_REASONS, SequenceFlag

__all__ = ["SessionLoop"]

_MOST_AT_ONCE: Final = 20_000
"""Records serialized in one go."""

_REFUSALS: Final = 3
"""In a row, before any session was accepted: then it is taken for a wrong configuration."""


class SessionLoop:
    """Connects, proves that the collector accepts us, restarts all epochs, sends, and begins again.

    Each session is a Transport Session of its own: Templates first, sequence number 0, nothing of
    the one before. `run` raises IdentityError or RefusedError only while no session was accepted
    yet; later the same is tried again, for certificates are renewed. `context`: asked before each
    handshake.
    """

    def __init__(self, hub: Hub, board: BoardLoop,
                 context: Callable[[], ssl.SSLContext]) -> None:
        self._hub = hub
        self._board = board
        self._context = context

    async def run(self) -> None:
        """Until the daemon is told to end; then the open session is ended in order."""
        hub, backoff, refusals = self._hub, self._hub.backoff(), 0
        while not hub.stop.is_set():
            hub.statistics.attempts += 1
            failure: SessionError | None
            try:
                session, exporting = await self._connect()
            except Stopped:
                return
            except SessionError as error:
                refusals += isinstance(error, RefusedError)
                if not hub.statistics.sessions and (
                        isinstance(error, IdentityError) or refusals >= _REFUSALS):
                    raise
                failure = error
            else:
                begun = hub.monotonic()
                failure = await self._use(session, exporting)
                if hub.monotonic() - begun >= backoff.cap:
                    backoff.reset()  # a collector that ends each session at once is no success
            if failure is not None:
                hub.states.bad("collector", f"{failure}; trying again")
                await hub.wait_or_stop(backoff.next())

    async def _connect(self) -> tuple[Session, ExportingSession]:
        """A session that the collector is proved to accept, its Templates sent."""
        hub, settings = self._hub, self._hub.settings
        session = await hub.or_stop(connect(
            settings.endpoint, settings.collector_name, self._context(), settings.limits))
        try:
            exporting = ExportingSession(hub.domain, settings.pen)
            await session.send(exporting.start(hub.export_time()))
            hub.statistics.proof = await hub.or_stop(session.prove_acceptance())
        except BaseException:
            await session.abort()
            raise
        return session, exporting

    async def _use(self, session: Session, exporting: ExportingSession) -> SessionError | None:
        """Sends until the session ends; the error that ended it, None for an end in order."""
        hub = self._hub
        sent_before = hub.statistics.sent
        orderly = False
        try:
            await self._wait_for_board(session)
            hub.renew.clear()
            await self._board.begin_book()
            hub.statistics.sessions += 1
            line = (f"session to collector {hub.settings.endpoint} accepted, shown by "
                    f"{hub.statistics.proof}")
            if not hub.states.good("collector", line):
                LOG.info("%s", line, extra={"fields": {"what": "collector"}})
            await self._send_until_stop(session, exporting)
            await self._board.close_epochs()
            await self._send_queue(session, exporting)
            orderly = await session.close()
            if not orderly:
                LOG.warning("collector %s did not confirm the end of the session",
                            hub.settings.endpoint)
        except SessionError as error:
            in_doubt = hub.statistics.sent - sent_before
            return type(error)(f"{error}; {in_doubt} reports of it are in doubt")
        finally:
            await session.abort()
            if not orderly:
                hub.statistics.in_doubt += hub.statistics.sent - sent_before
            hub.end_book()
        return None

    async def _wait_for_board(self, session: Session) -> None:
        while not self._hub.board_is_up.is_set() and not self._hub.stop.is_set():
            if session.ended:
                raise await session.wait_ended()
            await self._hub.wait_or_stop(0.1)

    async def _send_until_stop(self, session: Session, exporting: ExportingSession) -> None:
        book = self._hub.book
        assert book is not None
        hub = self._hub
        while not hub.stop.is_set() and not hub.renew.is_set() and not book.exhausted:
            if not len(self._hub.queue):
                self._hub.filled.clear()
                await self._wait_filled(session)
            await self._send_queue(session, exporting)
            full = book.contexts_to_close()
            if full:
                await self._board.close_contexts(full)

    async def _wait_filled(self, session: Session) -> None:
        ended = asyncio.ensure_future(session.wait_ended())
        hub = self._hub
        others = [asyncio.ensure_future(one.wait()) for one in (hub.filled, hub.stop, hub.renew)]
        try:
            await asyncio.wait([ended, *others], return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                raise ended.result()
        finally:
            for one in (ended, *others):
                one.cancel()
            await asyncio.gather(ended, *others, return_exceptions=True)

    async def _send_queue(self, session: Session, exporting: ExportingSession) -> None:
        hub = self._hub
        assert hub.book is not None
        while len(hub.queue):
            records, readings = hub.queue.take(_MOST_AT_ONCE)
            before = hub.book.epochs_given
            reports = hub.book.serialize(records)
            now = hub.export_time(_latest_ms(reports, readings))
            messages = exporting.sequence(reports, now) + exporting.pfc(readings, now)
            # Counted before the wait: what a session that breaks now took is in doubt.
            hub.statistics.sent += len(reports)
            hub.statistics.readings_sent += len(readings)
            hub.statistics.epochs += hub.book.epochs_given - before
            hub.statistics.closed += _closures(reports)
            await session.send(messages)


def _latest_ms(reports: Records, readings: Records) -> int:
    """The latest time stamp among them, 0 without any."""
    return max(int(reports["flow_end_ms"].max(initial=0)),
               int(readings["time_ms"].max(initial=0)))


def _closures(reports: Records) -> Counter[str]:
    """Final reports by closure flag; one with two flags counts under both."""
    flags = reports["flags"][(reports["flags"] & SequenceFlag.finalEpoch) != 0]
    counts = {flag.name or "": int(np.count_nonzero(flags & flag))
              for flag in SequenceFlag if flag & CLOSURE_REASONS}
    counts["ordinary"] = int(np.count_nonzero((flags & CLOSURE_REASONS) == 0))
    return Counter({name: count for name, count in counts.items() if count})
