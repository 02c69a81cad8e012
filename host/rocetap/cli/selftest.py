"""`rocetap selftest`: known frames through the board's internal loop-back."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from rocetap.cli.common import one_line_errors
from rocetap.errors import RocetapError
from rocetap.link.transport import DEFAULT_BAUD

__all__ = ["selftest"]


def _note(line: str) -> None:
    print(f"rocetap selftest: {line}", file=sys.stderr, flush=True)


def _link_line(port: int, state: dict[str, int]) -> str:
    if not state:
        return f"port {port}: no MAC to ask"
    if not state["found"]:
        return f"port {port}: its PHY does not answer"
    if not state["link"]:
        return f"port {port}: link down"
    speed = {0: "10", 1: "100", 2: "1000"}.get(state["speed"], "unknown")
    duplex = "full" if state["full_duplex"] else "half"
    rest = ", not captured: unsupported speed or duplex" if state["unsupported"] else ""
    rest += ", inline" if state["inline"] else ""
    rest += ", frames were cut on their way out" if state["overflow"] else ""
    return f"port {port}: link up, {speed} Mbit/s, {duplex} duplex{rest}"


def selftest(
    line: Annotated[str, typer.Argument(
        metavar="PORT", help="Serial port of the board, or socket://HOST:PORT.")],
    baud: Annotated[int, typer.Option(help="Bits a second of the serial port.")] = DEFAULT_BAUD,
) -> None:
    """Play known frames inside the board and check every counter they move.

    The frames do not touch the line. Ports must be quiet: unplug their cables. Context 0 is written
    over, so stop the daemon before, and start it again after. Ends with exit code 0 when every
    counter is right, else 1, each fault on a line.

    Examples:

      rocetap selftest /dev/ttyUSB1

      rocetap sim --listen 127.0.0.1:9000 & rocetap selftest socket://127.0.0.1:9000
    """
    with one_line_errors():
        from rocetap.board.selftest import port_states
        from rocetap.board.selftest import selftest as run
        from rocetap.link.driver import Driver
        from rocetap.link.transport import open_transport

        driver = Driver(open_transport(line, baud), clock=time.monotonic, credit_window=0)
        try:
            board = driver.handshake()
            _note(f"{line}: {board.ports} port{'s' if board.ports > 1 else ''}, "
                  f"{board.connections} connections, W = {board.max_window}")
            for port, state in enumerate(port_states(driver)):
                _note(_link_line(port, state))
            report = run(driver, progress=_note)
        finally:
            driver.close()
    for fault in report.faults:
        print(fault)
    if report.faults:
        raise RocetapError(f"{len(report.faults)} of {report.counters} comparisons failed: the "
                           "board does not count as it must; load the bitstream of this release "
                           "again (rocetap load)", exit_code=1)
    print(f"passed: {report.frames} frames, {report.counters} comparisons")
