"""rocetap bench: speeds on this machine, with what they are compared to in the same run."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from rocetap.cli.output import print_records
from rocetap.cli.progress import shown_progress
from rocetap.errors import RocetapError

__all__ = ["GATEWARE_PARTS", "bench", "print_figures", "print_rows"]

bench = typer.Typer(no_args_is_help=True, help="""Measure speeds on this machine.

Figures of the host are by the process's own CPU time on one core; ratios compare figures of one
run. Figures of the gateware are clocks of the simulated board, or what the pinned tools make of it:
the same on any machine.

Examples:

  rocetap bench host

  rocetap bench host --json > host.json

  rocetap bench gateware --json > gateware.json
""")

Progress = Callable[[str, int, int], None]


@bench.command("host")
def host(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    scale: Annotated[float, typer.Option(
        min=0.01, max=100, help="Work, 1 is about half a minute.")] = 1.0,
) -> None:
    """Encoding, decoding with validation, the SQLite store; ipfixDump on the same records when it
    is installed.

    Examples:

      rocetap bench host

      rocetap bench host --json --scale 0.1
    """
    from rocetap.bench.host import host_figures

    with shown_progress() as progress:
        figures = host_figures(scale, progress)
    print_figures(figures, as_json=as_json)


def _line_rate(frames: int, progress: Progress) -> list[Any]:
    try:
        module = importlib.import_module("rocetap_sim.line_rate")
    except ImportError as error:
        raise RocetapError(f"the simulated board is not installed ({error.name} is missing): "
                           "install rocetap with its extra [sim]") from None
    rows: list[Any] = module.line_rate(frames, progress)
    return rows


def _area(function: str, progress: Progress) -> list[Any]:
    try:
        module = importlib.import_module("rocetap_boards.area_timing")
    except ImportError as error:
        raise RocetapError(f"the gateware's tools are not installed ({error.name} is missing): "
                           "install rocetap with its extra [boards]") from None
    rows: list[Any] = getattr(module, function)(progress)
    return rows


GATEWARE_PARTS: Final[dict[str, Callable[[int, Progress], list[Any]]]] = {
    "line_rate": _line_rate,
    "area_timing": lambda frames, progress: _area("area_timing", progress),
    "area_estimate": lambda frames, progress: _area("area_estimate", progress),
}
"""Part -> its rows, data classes all alike, from the frames of a row and a report of progress."""


@bench.command("gateware")
def gateware(
    as_json: Annotated[bool, typer.Option(
        "--json", help="One JSON object: a list of rows for each part.")] = False,
    frames: Annotated[int, typer.Option(
        min=1, help="Frames for each pattern and bus width.")] = 1_000_000,
    part: Annotated[list[str] | None, typer.Option(
        help=f"Only this part: {', '.join(GATEWARE_PARTS)}. May be given again.")] = None,
) -> None:
    """line_rate: minimum frames at line rate through the Verilated gateware, and how many of them
    it counted: in order, to 1,024 connections, jumps, late packets, breaks of the series, PFC
    between. area_timing: what the gateware takes of an ECP5 and the clock that it reaches, after
    place and route with three seeds. area_estimate: what it takes of an UltraScale+, by synthesis.

    With the default, a million frames each, all of it takes hours. Leaves with exit code 1 when a
    frame was not counted or a clock is slower than it has to be.

    Examples:

      rocetap bench gateware --part line_rate --frames 20000

      rocetap bench gateware --json > gateware.json
    """
    for name in part or ():
        if name not in GATEWARE_PARTS:
            raise RocetapError(f"--part {name}: no such part; parts are "
                               f"{', '.join(GATEWARE_PARTS)}")
    with shown_progress() as progress:
        parts = {name: run(frames, progress) for name, run in GATEWARE_PARTS.items()
                 if not part or name in part}
    if as_json:
        figures = {name: [vars(row) for row in rows] for name, rows in parts.items()}
        sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    else:
        for name, rows in parts.items():
            print_rows(name, rows)
    lost = any(row.frames_counted != row.frames_offered for row in parts.get("line_rate", ()))
    slow = any(row.achieved_mhz < row.constraint_mhz for row in parts.get("area_timing", ()))
    if lost or slow:
        raise typer.Exit(1)


def print_rows(title: str, rows: list[Any]) -> None:
    """A table of data classes that are all alike, a column a field; without rows nothing."""
    if not rows:
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, title=title.replace("_", " "), title_justify="left")
    for name in vars(rows[0]):
        text = isinstance(getattr(rows[0], name), str)
        table.add_column(name.replace("_", " "), justify="left" if text else "right")
    for row in rows:
        table.add_row(*(f"{value:,}" if isinstance(value, int | float) else str(value)
                        for value in vars(row).values()))
    width = None if sys.stdout.isatty() else 200
    Console(width=width, highlight=False).print(table)


def print_figures(figures: list[Any], *, as_json: bool) -> None:
    """A table, or one object a line."""
    if as_json:
        for figure in figures:
            sys.stdout.write(json.dumps(vars(figure)) + "\n")
        return
    print_records("figures of this machine", [{
        "figure": figure.name, "value": f"{figure.value:,.0f}", "unit": figure.unit,
        "ratio": None if figure.ratio is None else f"{figure.ratio:.2f}", "to": figure.to,
        "to reach": None if figure.reach is None else f"{figure.reach:,.0f}"}
        for figure in figures])
