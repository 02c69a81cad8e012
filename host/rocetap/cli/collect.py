"""rocetap collect: the collector."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from rocetap.cli.common import one_line_errors, stop_on_signals
from rocetap.errors import RocetapError
from rocetap.spec.elements import DEFAULT_PEN
from rocetap.telemetry.logs import LogFormat, set_up_logging

__all__ = ["collect"]

_LOG = logging.getLogger("rocetap.collect")


def collect(
    pki: Annotated[Path, typer.Option(
        help="Folder with ca.pem, collector.pem and collector.key; see rocetap pki.")],
    store: Annotated[Path, typer.Option(help="SQLite file to write; made if it is not there.")],
    allow: Annotated[list[str], typer.Option(
        help="Name of an exporter that may send, as in its certificate. May be repeated.")],
    listen: Annotated[str, typer.Option(
        help="HOST:PORT to listen on; port 0 takes a free one.")] = "127.0.0.1:4740",
    port_file: Annotated[Path | None, typer.Option(
        help="Write the port here once it listens.")] = None,
    pen: Annotated[int, typer.Option(
        help="Private Enterprise Number of the profiles' elements.")] = DEFAULT_PEN,
    metrics: Annotated[str | None, typer.Option(
        help="HOST:PORT for /metrics (Prometheus) and /healthz; keep it on loopback, it asks for "
        "no certificate.")] = None,
    limit: Annotated[list[str] | None, typer.Option(
        help="NAME=VALUE of a limit, such as peers=500 or epochs.contexts=200000; all of them "
        "stand in the first log line and in /metrics. May be repeated.")] = None,
    log_format: Annotated[LogFormat, typer.Option(
        help="text, or json: an object a line.")] = LogFormat.text,
    verbose: Annotated[bool, typer.Option("--verbose", help="More log lines.")] = False,
) -> None:
    """Receive IPFIX over mutually authenticated TLS 1.3, validate it and store it.

    Runs until SIGTERM or SIGINT; then every epoch that is still open is stored as incomplete.

    Examples:

      rocetap collect --pki pki --store flows.db --allow probe-1

      rocetap collect --pki pki --listen [::]:4740 --store flows.db --allow probe-1 --allow probe-2

      rocetap collect --pki pki --store flows.db --allow probe-1 --metrics 127.0.0.1:9464
        --limit peers=500 --log-format json

      rocetap collect --pki pki --listen 127.0.0.1:0 --port-file port --store f.db --allow probe-1
    """
    from rocetap import pki as authority
    from rocetap.collect.limits import server_settings
    from rocetap.collect.tls import ServerIdentity
    from rocetap.export.endpoint import parse_endpoint

    set_up_logging(log_format, verbose=verbose)
    with one_line_errors():
        endpoint = parse_endpoint(listen, allow_port_zero=True)
        shown = parse_endpoint(metrics, allow_port_zero=True) if metrics else None
        settings = server_settings(pen, limit or [])
        files = authority.credentials(pki, authority.COLLECTOR)
        authority.check_credentials(files, datetime.datetime.now(datetime.UTC))
        identity = ServerIdentity(files.authority, files.certificate, files.key)
        asyncio.run(_run(identity, frozenset(allow), endpoint, port_file, store, settings, shown))


async def _run(identity: Any, allowed: frozenset[str], endpoint: Any, port_file: Path | None,
               store_path: Path, settings: Any, shown: Any) -> None:
    from rocetap.collect.server import CollectorServer
    from rocetap.collect.store import SqliteStore
    from rocetap.telemetry.notify import ready, stopping

    stop = asyncio.Event()
    stop_on_signals(stop.set)
    store = SqliteStore(store_path)
    try:
        server = CollectorServer(identity, allowed, store, settings)
        try:
            port = await server.start(endpoint.host, endpoint.port)
        except OSError as error:
            raise RocetapError(
                f"cannot listen on {endpoint}: {error.strerror or error}; choose another address, "
                "or port 0 for a free one") from None
        try:
            async with _served(shown, server):
                with _announced(port_file, port):
                    _LOG.info("listening on %s, storing in %s, allowed: %s",
                              type(endpoint)(endpoint.host, port), store_path,
                              ", ".join(sorted(allowed)))
                    ready(f"listening on port {port}")
                    await _first(stop.wait(), server.broken())
                    stopping()
                    _LOG.info("told to end" if stop.is_set()
                              else "the store cannot be used any more")
        finally:
            await server.stop()
        counts = ", ".join(f"{name} {count}" for name, count in
                           sorted((server.counters + server.drops).items()))
        _LOG.info("ended: %d reports stored; refused or dropped: %s", server.reports_written,
                  counts or "none")
    finally:
        store.close()


async def _first(*awaited: Coroutine[Any, Any, object]) -> None:
    """Returns when the first of them does."""
    tasks = [asyncio.create_task(one) for one in awaited]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


@contextlib.asynccontextmanager
async def _served(address: Any, server: Any) -> AsyncIterator[None]:
    """Serves metrics and health meanwhile, if an address was given."""
    if address is None:
        yield
        return
    from rocetap.collect.telemetry import collector_health, collector_registry
    from rocetap.telemetry.server import serve_metrics

    served = await serve_metrics(
        address, collector_registry(server), lambda: collector_health(server))
    _LOG.info("metrics and health on %s", served.endpoint)
    try:
        yield
    finally:
        await served.close()


@contextlib.contextmanager
def _announced(port_file: Path | None, port: int) -> Iterator[None]:
    """The port stands in the file while the collector listens; whole or not at all."""
    if port_file is None:
        yield
        return
    beside = port_file.with_name(f".{port_file.name}.new")
    try:
        beside.write_text(f"{port}\n")
        beside.replace(port_file)
    except OSError as error:
        raise RocetapError(f"cannot write the port to {port_file}: {error.strerror}") from None
    try:
        yield
    finally:
        port_file.unlink(missing_ok=True)
