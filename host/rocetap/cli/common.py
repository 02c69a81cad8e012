"""What several commands share: errors of other parts as one line, log lines, signals."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Iterator

from rocetap.errors import RocetapError

__all__ = ["one_line_errors", "start_logging", "stop_on_signals"]


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


def start_logging(*, verbose: bool = False) -> None:
    """Log lines on stderr, with time and level."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.DEBUG if verbose else logging.INFO, force=True,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("asyncio").setLevel(logging.WARNING)


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
