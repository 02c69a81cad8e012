"""The exporting daemon: one board, one collector, for as long as it runs.

Loops that share an event loop. :mod:`.boardloop` polls, takes a sample each interval, and puts what
it got into the queue. :mod:`.sessionloop` connects and sends what the queue holds. Neither waits
for the other: a slow collector fills the queue, which is bounded, and a lost board leaves the
session open. :mod:`.reloading` looks whether the files have changed.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from functools import partial

from rocetap.export.backoff import Backoff
from rocetap.export.boardloop import BoardLoop
from rocetap.export.hub import Hub, Settings
from rocetap.export.reloading import Reloader
from rocetap.export.sessionloop import SessionLoop
from rocetap.export.watch import FileWatch
from rocetap.link.driver import Driver
from rocetap.provisioning import Provisioning
from rocetap.wording import counted

__all__ = ["Daemon"]


def _same(context: ssl.SSLContext) -> ssl.SSLContext:
    return context


class Daemon:
    """Runs until told to stop.

    `context`: from `tls.client_context`, or what gives one before each handshake, as
    `identity.ClientIdentity.context` does. `open_driver` opens the line and makes a driver; it
    blocks, and raises LinkError. `fresh`: the board is known to be empty at the first start.
    `reread` reads the provisioning again, `watch` says when to. `monotonic` (seconds), `wall` (UTC
    in ns) and `backoff` are given by tests.
    """

    def __init__(self, settings: Settings, context: ssl.SSLContext | Callable[[], ssl.SSLContext],
                 provisioning: Provisioning, open_driver: Callable[[], Driver], *,
                 fresh: bool = False, reread: Callable[[], Provisioning] | None = None,
                 watch: FileWatch | None = None,
                 monotonic: Callable[[], float] = time.monotonic,
                 wall: Callable[[], int] = time.time_ns,
                 backoff: Callable[[], Backoff] = Backoff) -> None:
        ask: Callable[[], ssl.SSLContext]
        ask = partial(_same, context) if isinstance(context, ssl.SSLContext) else context
        self.hub = Hub(settings, monotonic, wall, backoff)
        if settings.domain is None:
            self.hub.domain = provisioning.observation_domain
        self._board = BoardLoop(self.hub, provisioning, open_driver, fresh=fresh)
        self._sessions = SessionLoop(self.hub, self._board, ask)
        self._reloader = Reloader(self.hub, self._board, provisioning, reread, watch, ask)

    def stop(self) -> None:
        """Ends `run` in order: epochs closed, final reports sent, session closed."""
        self.hub.stop.set()

    async def reload(self) -> bool:
        """Reads provisioning and certificates again; whether the provisioning was taken."""
        return await self._reloader.reload()

    async def run(self) -> None:
        """The whole life of the daemon.

        Raises what is wrong at the start and will not pass by itself: LinkError (no board there),
        BoardTooSmallError, IdentityError (another collector), RefusedError (it refuses us).
        Everything else is tried again for ever.
        """
        try:
            await self._board.start()
            reloads = asyncio.create_task(self._reloader.run())
            loops = [asyncio.create_task(self._board.run()),
                     asyncio.create_task(self._sessions.run())]
            try:
                await asyncio.wait([*loops, reloads], return_when=asyncio.FIRST_EXCEPTION)
                for one in (*loops, reloads):
                    if one.done():
                        one.result()
            finally:
                for one in (*loops, reloads):
                    one.cancel()
                await asyncio.gather(*loops, reloads, return_exceptions=True)
        finally:
            await self._board.close()

    def summary(self) -> str:
        """One line for the end: what became of the records."""
        counts, drops = self.hub.statistics, self.hub.drops
        dropped = ", ".join(f"{reason} {count}" for reason, count in sorted(drops.items()))
        return (f"{counted(counts.sent, 'report')} and "
                f"{counted(counts.readings_sent, 'PFC reading')} sent in "
                f"{counted(counts.sessions, 'session')}, {counts.in_doubt} in doubt; "
                "records dropped: "
                f"{dropped or 'none'}")
