"""rocetap export: the exporting daemon."""

from __future__ import annotations

import asyncio
import datetime
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rocetap.cli.common import one_line_errors, start_logging, stop_on_signals
from rocetap.errors import RocetapError
from rocetap.spec.elements import DEFAULT_PEN

if TYPE_CHECKING:
    from rocetap.link.driver import Driver

__all__ = ["export"]

_LOG = logging.getLogger("rocetap.export")
_SHORTEST_INTERVAL_S = 0.05


def export(
    board: Annotated[str, typer.Option(
        help="Serial port of the board, or socket://HOST:PORT of a simulated one.")],
    pki: Annotated[Path, typer.Option(
        help="Folder with ca.pem, exporter.pem and exporter.key; see rocetap pki.")],
    collector: Annotated[str, typer.Option(help="HOST:PORT of the collector; an IPv6 address in "
                                                "brackets.")],
    collector_name: Annotated[str, typer.Option(
        help="Name that the collector's certificate must carry: a DNS name or an address.")],
    provision: Annotated[str, typer.Option(
        help="Provisioning file (TOML): what to watch; see rocetap discover.")],
    interval: Annotated[float, typer.Option(
        help="Seconds between two reports of an epoch.")] = 10.0,
    domain: Annotated[int | None, typer.Option(
        help="Observation Domain ID; without it the provisioning file's.")] = None,
    pen: Annotated[int, typer.Option(
        help="Private Enterprise Number of the profiles' elements.")] = DEFAULT_PEN,
    queue: Annotated[int, typer.Option(
        help="Records that may wait for a slow collector.")] = 100_000,
    baud: Annotated[int, typer.Option(help="Speed of a serial port, bits a second.")] = 3_000_000,
    verbose: Annotated[bool, typer.Option("--verbose", help="More log lines.")] = False,
) -> None:
    """Read a board and export what it counts as IPFIX over mutually authenticated TLS 1.3.

    Runs until SIGTERM or SIGINT; then it closes every epoch, sends the final reports and ends the
    session. A collector that cannot be reached is tried again for ever. What is wrong at the start
    and will not pass by itself ends the command: no board, wrong files, a collector with another
    name or authority, a collector that refuses this exporter three times.

    Examples:

      rocetap export --board /dev/ttyUSB1 --pki pki --collector collector.example:4740
      --collector-name collector.example --provision probe.toml

      rocetap export --board socket://127.0.0.1:4950 --pki pki --collector [::1]:4740
      --collector-name localhost --provision probe.toml --interval 1
    """
    from rocetap import pki as authority
    from rocetap.export.daemon import Daemon
    from rocetap.export.endpoint import parse_endpoint
    from rocetap.export.hub import Settings
    from rocetap.export.tls import client_context
    from rocetap.link.driver import Driver
    from rocetap.link.transport import open_transport
    from rocetap.provisioning import read_provisioning

    start_logging(verbose=verbose)
    _check("interval", interval, _SHORTEST_INTERVAL_S, 86_400)
    _check("queue", queue, 1, 10_000_000)
    _check("pen", pen, 0, 0xFFFF_FFFF)
    with one_line_errors():
        endpoint = parse_endpoint(collector)
        plan = read_provisioning(provision)
        domain = plan.observation_domain if domain is None else domain
        _check("domain", domain, 0, 0xFFFF_FFFF)
        files = authority.credentials(pki, authority.EXPORTER)
        authority.check_credentials(files, datetime.datetime.now(datetime.UTC))
        if pen == DEFAULT_PEN:
            _LOG.warning("PEN %d is reserved for documentation (RFC 5612): a deployment gives its "
                         "own with --pen, on both sides", pen)
        settings = Settings(endpoint, collector_name, interval=interval, domain=domain, pen=pen,
                            queue_limit=queue)

        def open_driver() -> Driver:
            return Driver(open_transport(board, baud), clock=time.monotonic)

        daemon = Daemon(settings, client_context(files), plan, open_driver)
        asyncio.run(_run(daemon))


async def _run(daemon: object) -> None:
    from rocetap.export.daemon import Daemon

    assert isinstance(daemon, Daemon)
    stop_on_signals(daemon.stop)
    try:
        await daemon.run()
    finally:
        _LOG.info("ended: %s", daemon.summary())


def _check(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise RocetapError(f"--{name} is {value}, must be {least} to {most}")
