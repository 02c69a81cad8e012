"""Reads the provisioning again while the daemon runs: when told to, and when the file changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from rocetap.errors import RocetapError
from rocetap.export.boardloop import BoardLoop
from rocetap.export.hub import LOG, Hub
from rocetap.export.watch import FileWatch
from rocetap.link.errors import TableFull
from rocetap.provisioning import Provisioning

__all__ = ["LOOK_S", "Reloader"]

LOOK_S: Final = 1.0
"""Between two looks at the files."""


class Reloader:
    """Brings the board to what the file says now, or says why not and leaves everything as it is.

    `provisioning`: in use at the start. `reread`: reads and checks the file; blocks, raises
    RocetapError; None: there is no file. `look`: called at each look, for what else may change on
    disk. Without `Settings.domain` another observation domain ends the session in order, and the
    next one is of the new domain.
    """

    def __init__(self, hub: Hub, board: BoardLoop, provisioning: Provisioning,
                 reread: Callable[[], Provisioning] | None, watch: FileWatch | None,
                 look: Callable[[], object]) -> None:
        self._hub = hub
        self._board = board
        self._provisioning = provisioning
        self._reread = reread
        self._watch = watch
        self._look = look
        self._one_at_a_time = asyncio.Lock()

    async def run(self) -> None:
        """Looks until the daemon is told to end."""
        while not self._hub.stop.is_set():
            await self._hub.wait_or_stop(LOOK_S)
            self._look()
            if self._watch is not None and self._watch.changed():
                await self._reload()

    async def reload(self) -> bool:
        """Reads the file now; whether what it says is in use."""
        if self._watch is not None:
            self._watch.taken()
        self._look()
        return await self._reload()

    async def _reload(self) -> bool:
        async with self._one_at_a_time:
            if self._reread is None:
                LOG.warning("the provisioning did not come from a file: nothing to read again")
                return False
            try:
                wanted = await asyncio.to_thread(self._reread)
                await self._board.reprovision(wanted)
            except (RocetapError, TableFull) as error:
                self._hub.statistics.reloads["refused"] += 1
                why = "; ".join(str(error).splitlines())
                LOG.warning("provisioning not taken, the one in use stays: %s", why,
                            extra={"fields": {"what": "provisioning"}})
                return False
            self._tell(wanted)
            return True

    def _tell(self, wanted: Provisioning) -> None:
        hub, before = self._hub, self._provisioning
        self._provisioning = wanted
        hub.statistics.reloads["taken"] += 1
        old = {one.key(): (one, before.point_of(one)) for one in before.connections}
        new = {one.key(): (one, wanted.point_of(one)) for one in wanted.connections}
        counts = {"new": len(new.keys() - old.keys()), "removed": len(old.keys() - new.keys()),
                  "changed": sum(old[key] != new[key] for key in old.keys() & new.keys())}
        LOG.info("provisioning taken: %d connections, %s", len(new),
                 ", ".join(f"{count} {name}" for name, count in counts.items()),
                 extra={"fields": {"what": "provisioning", **counts}})
        if hub.settings.domain is None and wanted.observation_domain != hub.domain:
            hub.domain = wanted.observation_domain
            hub.renew.set()
