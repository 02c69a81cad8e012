"""rocetap collect: the collector."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
from collections.abc import AsyncIterator, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from rocetap.cli.common import (
    beside_store,
    keep_watchdog,
    on_reload_signal,
    one_line_errors,
    start_logging,
    stop_on_signals,
)
from rocetap.cli.configuration import Setting, address, load, number
from rocetap.errors import RocetapError
from rocetap.files import refuse_input, remove_written, write_whole
from rocetap.spec.elements import DEFAULT_PEN
from rocetap.telemetry.logs import LogFormat

__all__ = ["SETTINGS", "collect"]

_LOG = logging.getLogger("rocetap.collect")


def _limit_problem(text: str) -> str | None:
    from rocetap.collect.limits import limit_problem

    return limit_problem(text)


SETTINGS: Final = (
    Setting("pki", Path),
    Setting("store", Path),
    Setting("allow", list, check=lambda value: None if value else "must have a name"),
    Setting("listen", str, "127.0.0.1:4740", address(allow_port_zero=True)),
    Setting("port_file", Path, None),
    Setting("pen", int, DEFAULT_PEN, number(0, 0xFFFF_FFFF)),
    Setting("metrics", str, None, address(allow_port_zero=True)),
    Setting("limit", list, [], each=_limit_problem),
    Setting("session_tickets", bool, True),
    Setting("log_format", str, "text",
            lambda value: None if value in list(LogFormat) else "must be text or json"),
    Setting("verbose", bool, False),
)
"""All of them may stand in the file's [collect], in the environment, and on the command line."""


def collect(
    config: Annotated[Path | None, typer.Option(
        help="TOML file with these settings in a table [collect]; - in a name is _ there.")] = None,
    pki: Annotated[Path | None, typer.Option(
        help="Folder with ca.pem, collector.pem and collector.key; see rocetap pki.")] = None,
    store: Annotated[Path | None, typer.Option(
        help="SQLite file to write; made if it is not there.")] = None,
    allow: Annotated[list[str] | None, typer.Option(
        help="Name of an exporter that may send, as in its certificate. May be repeated.")] = None,
    listen: Annotated[str | None, typer.Option(
        help="HOST:PORT to listen on, port 0 takes a free one; 127.0.0.1:4740.")] = None,
    port_file: Annotated[Path | None, typer.Option(
        help="Write the port here once it listens.")] = None,
    pen: Annotated[int | None, typer.Option(
        help=f"Private Enterprise Number of the profiles' elements; {DEFAULT_PEN}.")] = None,
    metrics: Annotated[str | None, typer.Option(
        help="HOST:PORT for /metrics (Prometheus) and /healthz; keep it on loopback, it asks for "
        "no certificate.")] = None,
    limit: Annotated[list[str] | None, typer.Option(
        help="NAME=VALUE of a limit, such as peers=500 or epochs.contexts=200000; all of them "
        "stand in the first log line and in /metrics. May be repeated.")] = None,
    session_tickets: Annotated[bool | None, typer.Option(
        "--session-tickets/--no-session-tickets", show_default=False,
        help="Send a TLS session ticket, which proves to an exporter that it is accepted; without "
        "for exporters that never read. With.")] = None,
    log_format: Annotated[LogFormat | None, typer.Option(
        help="text, or json: an object a line; text.")] = None,
    verbose: Annotated[bool | None, typer.Option(
        "--verbose", help="More log lines.", show_default=False)] = None,
) -> None:
    """Receive IPFIX over mutually authenticated TLS 1.3, validate it and store it.

    Runs until SIGTERM or SIGINT; then every epoch that is still open is stored as incomplete.
    Certificates are read again when they change. Each option may also be given as ROCETAP_NAME in
    the environment, or in the file of --config.

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

    values = load("collect", SETTINGS, {
        "pki": pki, "store": store, "allow": allow or None, "listen": listen,
        "port_file": port_file, "pen": pen, "metrics": metrics, "limit": limit or None,
        "session_tickets": session_tickets, "log_format": log_format, "verbose": verbose}, config)
    start_logging(verbose=values["verbose"], form=LogFormat(values["log_format"]))
    if values["port_file"] is not None:
        refuse_input("--port-file", values["port_file"], "read or written already",
                     values["store"], *beside_store(values["store"]), *values["pki"].glob("*"),
                     *([config] if config else []))
    with one_line_errors():
        endpoint = parse_endpoint(values["listen"], allow_port_zero=True)
        shown = parse_endpoint(values["metrics"], allow_port_zero=True) if values[
            "metrics"] else None
        settings = server_settings(values["pen"], values["limit"])
        files = authority.credentials(values["pki"], authority.COLLECTOR)
        authority.check_credentials(files, datetime.datetime.now(datetime.UTC))
        identity = ServerIdentity(files.authority, files.certificate, files.key,
                                  tickets=values["session_tickets"])
        asyncio.run(_run(identity, frozenset(values["allow"]), endpoint, values["port_file"],
                         values["store"], settings, shown))


async def _run(identity: Any, allowed: frozenset[str], endpoint: Any, port_file: Path | None,
               store_path: Path, settings: Any, shown: Any) -> None:
    from rocetap.collect.server import CollectorServer
    from rocetap.collect.store import SqliteStore
    from rocetap.telemetry.notify import ready, stopping

    stop = asyncio.Event()
    stop_on_signals(stop.set)
    on_reload_signal(partial(asyncio.to_thread, identity.context))
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
                    await _first(stop.wait(), server.broken(), keep_watchdog())
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
    write_whole(port_file, f"{port}\n")
    try:
        yield
    finally:
        remove_written(port_file)
