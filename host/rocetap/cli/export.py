"""rocetap export: the exporting daemon."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rocetap.cli.common import (
    keep_watchdog,
    on_reload_signal,
    one_line_errors,
    start_logging,
    stop_on_signals,
)
from rocetap.cli.configuration import Setting, address, load, number
from rocetap.spec.elements import DEFAULT_PEN
from rocetap.telemetry import notify
from rocetap.telemetry.logs import LogFormat

if TYPE_CHECKING:
    from rocetap.export.daemon import Daemon
    from rocetap.export.endpoint import Endpoint
    from rocetap.export.identity import ClientIdentity
    from rocetap.link.driver import Driver

__all__ = ["SETTINGS", "export"]

_LOG = logging.getLogger("rocetap.export")
_UNSIGNED32: Final = 0xFFFF_FFFF

SETTINGS: Final = (
    Setting("board", str),
    Setting("pki", Path),
    Setting("collector", str, check=address()),
    Setting("collector_name", str),
    Setting("provision", str, is_path=True),
    Setting("interval", float, 10.0, number(0.05, 86_400)),
    Setting("domain", int, None, number(0, _UNSIGNED32)),
    Setting("pen", int, DEFAULT_PEN, number(0, _UNSIGNED32)),
    Setting("queue", int, 100_000, number(1, 10_000_000)),
    Setting("baud", int, 3_000_000, number(1, 100_000_000)),
    Setting("dead_peer", float, 30.0, number(3, 3600)),
    Setting("metrics", str, None, address(allow_port_zero=True)),
    Setting("log_format", str, "text",
            lambda value: None if value in list(LogFormat) else "must be text or json"),
    Setting("verbose", bool, False),
)
"""All of them may stand in the file's [export], in the environment, and on the command line."""


def export(
    config: Annotated[Path | None, typer.Option(
        help="TOML file with these settings in a table [export]; - in a name is _ there.")] = None,
    board: Annotated[str | None, typer.Option(
        help="Serial port of the board, or socket://HOST:PORT of a simulated one.")] = None,
    pki: Annotated[Path | None, typer.Option(
        help="Folder with ca.pem, exporter.pem and exporter.key; see rocetap pki.")] = None,
    collector: Annotated[str | None, typer.Option(
        help="HOST:PORT of the collector; an IPv6 address in brackets.")] = None,
    collector_name: Annotated[str | None, typer.Option(
        help="Name that the collector's certificate must carry: a DNS name or an address.")] = None,
    provision: Annotated[str | None, typer.Option(
        help="Provisioning file (TOML): what to watch; see rocetap discover.")] = None,
    interval: Annotated[float | None, typer.Option(
        help="Seconds between two reports of an epoch; 10.", show_default=False)] = None,
    domain: Annotated[int | None, typer.Option(
        help="Observation Domain ID; without it the provisioning file's.")] = None,
    pen: Annotated[int | None, typer.Option(
        help=f"Private Enterprise Number of the profiles' elements; {DEFAULT_PEN}.")] = None,
    queue: Annotated[int | None, typer.Option(
        help="Records that may wait for a slow collector; 100000.")] = None,
    baud: Annotated[int | None, typer.Option(
        help="Speed of a serial port, bits a second; 3000000.")] = None,
    dead_peer: Annotated[float | None, typer.Option(
        help="Seconds after which a collector that answers nothing is dead; 30.")] = None,
    metrics: Annotated[str | None, typer.Option(
        help="HOST:PORT for /metrics and /healthz; port 0 takes a free one.")] = None,
    log_format: Annotated[LogFormat | None, typer.Option(help="Log lines; text.")] = None,
    verbose: Annotated[bool | None, typer.Option(
        "--verbose", help="More log lines.", show_default=False)] = None,
) -> None:
    """Read a board and export what it counts as IPFIX over mutually authenticated TLS 1.3.

    Runs until SIGTERM or SIGINT; then it closes every epoch, sends the final reports and ends the
    session. A collector that cannot be reached is tried again for ever. What is wrong at the start
    and will not pass by itself ends the command: no board, wrong files, a collector with another
    name or authority, a collector that refuses this exporter three times.

    SIGHUP, and a change of the provisioning file, bring what it says now to the board: connections
    that did not change go on. Certificates are read again when they change.

    Each option may also be given as ROCETAP_NAME in the environment, or in the file of --config.

    Examples:

      rocetap export --board /dev/ttyUSB1 --pki pki --collector collector.example:4740
      --collector-name collector.example --provision probe.toml

      rocetap export --board socket://127.0.0.1:4950 --pki pki --collector [::1]:4740
      --collector-name localhost --provision probe.toml --interval 1

      rocetap export --config /etc/rocetap/rocetap.toml --metrics 127.0.0.1:9464
    """
    given = {name: value for name, value in locals().items() if name != "config"}
    values = load("export", SETTINGS, given, config)
    start_logging(verbose=values["verbose"], form=LogFormat(values["log_format"]))
    with one_line_errors():
        daemon, identity, metrics_at = _make(values)
        asyncio.run(_run(daemon, identity, metrics_at))


def _make(values: dict[str, Any]) -> tuple[Daemon, ClientIdentity, Endpoint | None]:
    from rocetap import pki as authority
    from rocetap.export.daemon import Daemon
    from rocetap.export.endpoint import parse_endpoint
    from rocetap.export.hub import Settings
    from rocetap.export.identity import ClientIdentity
    from rocetap.export.tls import Limits
    from rocetap.export.watch import FileWatch
    from rocetap.link.driver import Driver
    from rocetap.link.transport import open_transport
    from rocetap.provisioning import read_provisioning

    endpoint = parse_endpoint(values["collector"])
    metrics_at = parse_endpoint(values["metrics"], allow_port_zero=True) if values[
        "metrics"] else None
    file = str(values["provision"])
    is_file = file != "-"
    watch = FileWatch(Path(file)) if is_file else None
    plan = read_provisioning(file)
    identity = ClientIdentity(authority.credentials(values["pki"], authority.EXPORTER))
    if values["pen"] == DEFAULT_PEN:
        _LOG.warning("PEN %d is reserved for documentation (RFC 5612): a deployment gives its "
                     "own with --pen, on both sides", DEFAULT_PEN)

    def open_driver() -> Driver:
        return Driver(open_transport(values["board"], values["baud"]), clock=time.monotonic)

    settings = Settings(
        endpoint, values["collector_name"], interval=values["interval"], domain=values["domain"],
        pen=values["pen"], queue_limit=values["queue"],
        limits=Limits(dead_peer=values["dead_peer"]))
    daemon = Daemon(settings, identity.context, plan, open_driver, watch=watch,
                    reread=(lambda: read_provisioning(file)) if is_file else None)
    return daemon, identity, metrics_at


async def _run(daemon: Daemon, identity: ClientIdentity, metrics_at: Endpoint | None) -> None:
    from rocetap.export.metrics import exporter_health, exporter_registry
    from rocetap.telemetry.server import serve_metrics

    stop_on_signals(daemon.stop)
    on_reload_signal(daemon.reload)
    served = None
    if metrics_at is not None:
        served = await serve_metrics(
            metrics_at, exporter_registry(daemon.hub, lambda: identity.expires),
            lambda: exporter_health(daemon.hub))
        _LOG.info("metrics at http://%s/metrics", served.endpoint)
    beside = [asyncio.ensure_future(keep_watchdog()), asyncio.ensure_future(_say_ready(daemon))]
    try:
        await daemon.run()
    finally:
        notify.stopping()
        for one in beside:
            one.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        if served is not None:
            with contextlib.suppress(OSError):
                await served.close()
        _LOG.info("ended: %s", daemon.summary())


async def _say_ready(daemon: Daemon) -> None:
    """To systemd: once the board is provisioned; the collector may still be away."""
    await daemon.hub.board_is_up.wait()
    notify.ready("running")
