"""`rocetap sim`: the simulated board behind a TCP port, for `socket://HOST:PORT`."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from rocetap.capture.frames import FrameBatch
from rocetap.capture.reading import open_capture
from rocetap.errors import RocetapError
from rocetap.files import write_whole

__all__ = ["sim"]


def _log(line: str) -> None:
    print(f"rocetap sim: {line}", file=sys.stderr, flush=True)


def _simulator(module: str) -> Any:
    """A module of rocetap_sim, which only the extra `sim` brings to life."""
    try:
        return importlib.import_module(f"rocetap_sim.{module}")
    except ModuleNotFoundError as error:
        raise RocetapError(f"the simulated board needs the package {error.name}: "
                           "pip install 'rocetap[sim]'") from None


def split_address(text: str) -> tuple[str, int]:
    """("127.0.0.1", 9000) of "127.0.0.1:9000"; IPv6 addresses stand in brackets."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise RocetapError(f"--listen {text}: must be HOST:PORT with a port from 0 to 65535, "
                           "an IPv6 address in brackets")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _batches(path: str) -> Iterator[FrameBatch]:
    with open_capture(path) as capture:
        yield from capture.batches()
        for warning in capture.warnings:
            _log(warning)


def sim(
    listen: Annotated[str, typer.Option(
        metavar="HOST:PORT", help="Address to serve; port 0 takes a free one.")] = "127.0.0.1:9000",
    port_file: Annotated[Path | None, typer.Option(
        help="File that gets the number of the port once it is served.")] = None,
    capture: Annotated[Path | None, typer.Option(
        help="Capture, pcap or pcapng, to push through the board.")] = None,
    speed: Annotated[float, typer.Option(
        min=0, help="Captured seconds in one second; 0: as fast as it goes.")] = 1.0,
    loop: Annotated[bool, typer.Option(
        "--loop/--once", help="The capture again and again, or once.")] = False,
    pause: Annotated[float, typer.Option(
        min=0, help="Seconds between two rounds of --loop.")] = 1.0,
    delay: Annotated[float, typer.Option(
        min=0, help="Seconds from the first client to the first frame, time to provision.")] = 1.0,
    connections: Annotated[int, typer.Option(
        min=1, max=4096, help="Contexts of the board.")] = 1024,
    ports: Annotated[int, typer.Option(min=1, max=8, help="Ports of the board.")] = 1,
) -> None:
    """Offer the simulated board as socket://HOST:PORT, until interrupted.

    The board is the gateware itself, compiled to native code: the first start builds it, which
    takes minutes. It serves one client at a time, as a serial port does. Frames of --capture
    arrive at this machine's time; they begin --delay seconds after the first client came.

    Examples:

      rocetap sim --listen 127.0.0.1:9000

      rocetap sim --capture traffic.pcap --speed 0 --loop --pause 5
    """
    host, port = split_address(listen)
    if capture is not None:
        with open_capture(str(capture)):
            pass
    board_module, server_module = _simulator("board"), _simulator("server")
    listener = server_module.open_listener(host, port)
    board = board_module.SimulatedBoard(ports=ports, connections=connections)
    player = None
    if capture is not None:
        path = str(capture)
        player = _simulator("player").CapturePlayer(
            lambda: _batches(path), speed=speed, repeat=loop, pause_s=pause)
    server = server_module.BoardServer(
        board, listener=listener, player=player, delay_s=delay, log=_log)
    if port_file is not None:
        write_whole(port_file, f"{server.address[1]}\n")
    shown = f"[{host}]" if ":" in host else host
    _log(f"the simulated board is at socket://{shown}:{server.address[1]}")

    def end(_signal: int, _frame: FrameType | None) -> None:
        server.request_stop()

    previous = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.serve()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
