"""rocetap bench: speeds on this machine, with what they are compared to in the same run."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from rocetap.cli.progress import shown_progress

__all__ = ["bench", "print_figures"]

bench = typer.Typer(no_args_is_help=True, help="""Measure speeds on this machine.

Figures are by the process's own CPU time on one core; ratios compare figures of one run.

Examples:

  rocetap bench host

  rocetap bench host --json > host.json
""")


@bench.callback()
def _group() -> None:
    """Keeps the group a group while it has one command."""


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


def print_figures(figures: list[Any], *, as_json: bool) -> None:
    """A table, or one object a line."""
    if as_json:
        for figure in figures:
            sys.stdout.write(json.dumps(vars(figure)) + "\n")
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for name in ("figure", "value", "unit", "ratio", "to", "to reach"):
        table.add_column(name, justify="right" if name in ("value", "ratio") else "left")
    for figure in figures:
        reach = "" if figure.reach is None else f"{figure.reach:,.0f}"
        table.add_row(figure.name, f"{figure.value:,.0f}", figure.unit,
                      "" if figure.ratio is None else f"{figure.ratio:.2f}", figure.to or "",
                      reach)
    width = None if sys.stdout.isatty() else 160
    Console(width=width, highlight=False).print(table)
