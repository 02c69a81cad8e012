"""The collector's side of the daemon: sessions, one after the other."""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

from rocetap.export.boardloop import BoardLoop
from rocetap.export.hub import LOG, Hub, Stopped
from rocetap.export.tls import IdentityError, RefusedError, Session, SessionError, connect
from rocetap.ipfix.exporting import ExportingSession

__all__ = ["SessionLoop"]

_MOST_AT_ONCE: Final = 20_000
"""Records serialized in one go."""

_REFUSALS: Final = 3
"""In a row, before any session was accepted: then it is taken for a wrong configuration."""


class SessionLoop:
    """Connects, proves that the collector accepts us, restarts all epochs, sends, and begins again.

    Each session is a Transport Session of its own: Templates first, sequence number 0, nothing of
    the one before. `run` raises IdentityError or RefusedError only while no session was accepted
    yet; later the same is tried again, for certificates are renewed.
    """

    def __init__(self, hub: Hub, board: BoardLoop, context: ssl.SSLContext) -> None:
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
                backoff.reset()
                failure = await self._use(session, exporting)
            if failure is not None:
                hub.log_seldom(f"{failure}; trying again")
                await hub.wait_or_stop(backoff.next())

    async def _connect(self) -> tuple[Session, ExportingSession]:
        """A session that the collector is proved to accept, its Templates sent."""
        hub, settings = self._hub, self._hub.settings
        session = await hub.or_stop(connect(
            settings.endpoint, settings.collector_name, self._context, settings.limits))
        try:
            exporting = ExportingSession(settings.domain, settings.pen)
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
            await self._board.begin_book()
            hub.statistics.sessions += 1
            LOG.info("session to collector %s accepted, shown by %s", hub.settings.endpoint,
                     hub.statistics.proof)
            await self._send_until_stop(session, exporting)
            await self._board.close_epochs()
            await self._send_queue(session, exporting)
            orderly = await session.close()
            if not orderly:
                LOG.warning("collector %s did not confirm the end of the session",
                            hub.settings.endpoint)
        except SessionError as error:
            return error
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
        while not self._hub.stop.is_set() and not book.exhausted:
            if not len(self._hub.queue):
                self._hub.filled.clear()
                await self._wait_filled(session)
            await self._send_queue(session, exporting)
            full = book.contexts_to_close()
            if full:
                await self._board.close_contexts(full)

    async def _wait_filled(self, session: Session) -> None:
        ended = asyncio.ensure_future(session.wait_ended())
        others = [asyncio.ensure_future(one.wait()) for one in (self._hub.filled, self._hub.stop)]
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
            reports = hub.book.serialize(records)
            now = hub.export_time()
            messages = exporting.sequence(reports, now) + exporting.pfc(readings, now)
            # Counted before the wait: what a session that breaks now took is in doubt.
            hub.statistics.sent += len(reports)
            hub.statistics.readings_sent += len(readings)
            await session.send(messages)
