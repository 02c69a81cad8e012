"""What several commands share: errors of other parts as one line, log lines, signals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from rocetap.errors import RocetapError
from rocetap.telemetry import notify
from rocetap.telemetry.logs import LogFormat, set_up_logging

__all__ = [
    "beside_store", "keep_watchdog", "on_reload_signal", "one_line_errors", "start_logging",
    "stop_on_signals",
]


def beside_store(store: Path) -> list[Path]:
    """What SQLite and the collector keep beside a store, whether it is there or not."""
    place = os.path.realpath(store)
    return [Path(place + suffix) for suffix in ("-wal", "-shm", "-journal", ".lock")]


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Errors of link, codec, store and server that a user can meet, as a RocetapError."""
    from rocetap.collect.store import StoreError
    from rocetap.collect.tls import TlsError
    from rocetap.ipfix.errors import LocalError
    from rocetap.link.errors import LinkError

    try:
        yield
    except (LinkError, StoreError, TlsError, LocalError) as error:
        raise RocetapError(str(error)) from error


def start_logging(*, verbose: bool = False, form: LogFormat = LogFormat.text) -> None:
    """Log lines on stderr, with time and level."""
    set_up_logging(form, verbose=verbose)


def on_reload_signal(reload: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """SIGHUP runs `reload` in the running event loop; systemd is told that it goes on, and that it
    is over. One that comes while another runs waits for its turn."""
    running: set[asyncio.Task[None]] = set()
    turn = asyncio.Lock()

    async def once() -> None:
        async with turn:
            notify.reloading()
            try:
                await reload()
            finally:
                notify.ready("running")

    def start() -> None:
        task = asyncio.ensure_future(once())
        running.add(task)
        task.add_done_callback(running.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, start)


async def keep_watchdog() -> None:
    """Tells systemd's watchdog, if it wants to know, that the event loop still turns; for ever."""
    seconds = notify.watchdog_interval()
    while True:
        if seconds is not None:
            notify.notify("WATCHDOG=1")
        await asyncio.sleep(seconds or 3600.0)


def stop_on_signals(stop: Callable[[], None]) -> None:
    """SIGTERM and SIGINT call `stop` in the running event loop; a second one ends the process the
    usual way."""
    loop = asyncio.get_running_loop()

    def once() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, once)
