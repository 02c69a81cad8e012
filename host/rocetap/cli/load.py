"""`rocetap load`: a bitstream into a board, and the board found again behind its serial port."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from rocetap.board.names import LOADABLE
from rocetap.cli.common import one_line_errors
from rocetap.errors import RocetapError
from rocetap.link.transport import DEFAULT_BAUD

__all__ = ["load"]

_START_S = 0.5
"""From a loaded FPGA to a link that answers: its PLL, and the adapter's buffers."""


def _note(line: str) -> None:
    print(f"rocetap load: {line}", file=sys.stderr, flush=True)


def load(
    board: Annotated[str, typer.Argument(
        metavar="BOARD", help=f"One of {', '.join(sorted(LOADABLE))}.")],
    bitstream: Annotated[Path | None, typer.Option(
        help="The file to load; without it build/BOARD/BOARD.bit, which make bitstream makes.")
    ] = None,
    port: Annotated[str | None, typer.Option(
        help="Serial port of the board, where it cannot be found by its USB numbers.")] = None,
    baud: Annotated[int, typer.Option(help="Bits a second of the serial port.")] = DEFAULT_BAUD,
) -> None:
    """Load a board's bitstream into its FPGA and check that the gateware answers.

    The FPGA's IDCODE is looked at before anything is loaded. Afterwards the board's register tables
    are compared with those of this software. The name of the serial port goes to stdout. What was
    loaded is gone when the board is switched off.

    Examples:

      rocetap load versa_ecp5

      rocetap load colorlight_5a75b --port /dev/ttyUSB0
    """
    if board not in LOADABLE:
        raise RocetapError(f"board {board!r} is not known; there are {', '.join(sorted(LOADABLE))}")
    about = LOADABLE[board]
    path = bitstream or Path("build") / board / f"{board}.bit"
    if not path.is_file():
        raise RocetapError(f"no bitstream {path}: make bitstream BOARD={board}, or give one with "
                           "--bitstream")
    with one_line_errors():
        from rocetap.board.loader import detect, load_sram
        from rocetap.board.ports import find_port
        from rocetap.link.driver import Driver
        from rocetap.link.transport import open_transport

        idcode = detect(about)
        _note(f"{about.title} found, IDCODE 0x{idcode:08x}")
        load_sram(about, path)
        _note(f"{path} loaded")
        line = port or find_port(about)
        time.sleep(_START_S)
        driver = Driver(open_transport(line, baud), clock=time.monotonic, credit_window=0)
        try:
            info = driver.handshake()
        finally:
            driver.close()
    _note(f"gateware answers: {info.ports} port{'s' if info.ports > 1 else ''}, "
          f"{info.connections} connections, W = {info.max_window}; next: rocetap selftest {line}")
    print(line)
