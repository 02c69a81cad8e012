"""`python -m rocetap_boards BOARD`: a board's bitstream, or its vendor project.

`make bitstream BOARD=versa_ecp5` calls it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rocetap.errors import RocetapError

from .bitstream import build
from .catalog import BOARDS, find_board
from .vivado import VivadoBoard, prepare

__all__ = ["main"]

_EACH_S = 15.0
"""A line of progress at most so often."""


class _Said:
    """Lines on stderr: each stage once, and while it lasts now and then how far it is."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage == self._stage and now - self._last < _EACH_S:
            return
        self._stage, self._last = stage, now
        far = f" {done} of {total}" if total else f" {done}" if done else ""
        print(f"rocetap: {now - self._began:4.0f} s  {stage}{far}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rocetap_boards", description=f"Boards: {', '.join(sorted(BOARDS))}.")
    parser.add_argument("board", nargs="?", default="", help="name of the board")
    parser.add_argument("--mode", choices=("tap", "inline"), default="tap",
                        help="whether frames pass from port to port")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="SEED",
                        help="seeds of place and route, tried until every clock is met")
    parser.add_argument("--output", type=Path, help="folder; build/BOARD, build/BOARD-inline")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """The exit code."""
    asked = _parser().parse_args(arguments)
    try:
        board = find_board(asked.board)
        if asked.mode not in board.modes:
            raise RocetapError(f"MODE {asked.mode} is not for {board.name}, which has "
                               f"{', '.join(board.modes)}")
        folder = asked.output or Path("build") / (
            board.name if asked.mode == "tap" else f"{board.name}-{asked.mode}")
        if isinstance(board, VivadoBoard):
            report = prepare(board, folder, progress=_Said())
            print(f"{folder}: a project for {board.device}, nothing is built; the vendor's step "
                  f"there: {report['vendor_step']}")
            return 0
        report = build(board, folder, mode=asked.mode, seeds=asked.seeds, progress=_Said())
    except RocetapError as error:
        for line in str(error).splitlines():
            print(f"rocetap: error: {line}", file=sys.stderr)
        return error.exit_code
    clocks = ", ".join(f"{name} {at['achieved_mhz']} of {at['constraint_mhz']} MHz"
                       for name, at in report["clocks"].items())
    print(f"{folder}: {report['luts']} LUT4, {report['ffs']} flip-flops, "
          f"{report['block_rams']} block RAMs; {clocks}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
