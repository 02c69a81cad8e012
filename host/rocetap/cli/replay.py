"""rocetap replay: a capture through the whole chain."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Annotated

import typer

from rocetap.cli.common import one_line_errors
from rocetap.cli.output import frame_line, note, print_jsonl, print_tables
from rocetap.cli.progress import shown_progress

__all__ = ["Format", "replay"]


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    jsonl = "jsonl"


def replay(
    capture: Annotated[str, typer.Argument(
        help="A pcap or pcapng file, plain or in gzip, bzip2 or xz; - is standard input.")],
    window: Annotated[int, typer.Option(
        help="History width W of each connection found, 1 to 256 PSN positions.")] = 64,
    provision: Annotated[str | None, typer.Option(
        help="Watch the connections of this file (TOML) instead of all that are found.")] = None,
    format: Annotated[Format, typer.Option(
        help="table for people, jsonl for programs: one object a line.")] = Format.table,
) -> None:
    """Push a capture through the simulated board, IPFIX over TLS and the collector, and print what
    the collector stored.

    Results go to standard output, everything else to standard error. Interface k of a pcapng file
    is port k of the board. The exit code is 0 for a whole capture, 3 for one that is cut in the
    middle of a record (the results are those of all whole records), 2 for an error.

    Examples:

      rocetap replay capture.pcap --window 64

      rocetap replay capture.pcapng.gz --format jsonl | jq 'select(.record == "sequence")'

      rocetap replay capture.pcap --provision probe.toml
    """
    from rocetap.provisioning import read_provisioning
    from rocetap.replay import replay as run

    logging.getLogger("rocetap").setLevel(logging.ERROR)
    with one_line_errors():
        plan = read_provisioning(provision) if provision is not None else None
        with shown_progress() as progress:
            result = run(capture, window=window, provisioning=plan, progress=progress)
    if format is Format.jsonl:
        print_jsonl([*result.sequence, *result.pfc])
    else:
        print_tables(result.sequence, result.pfc)
    note(frame_line(result.frames))
    for line in result.warnings:
        note(f"warning: {line}")
    if result.disabled:
        note(f"{result.disabled} connections were disabled before their first epoch: their first "
             "request is outside the profile")
    for reason, count in sorted(result.dropped.items()):
        note(f"warning: {count} dropped, {reason}")
    if not result.sequence and plan is None:
        note("no epoch: the capture has no RC SEND or WRITE request")
    if result.truncation is not None:
        note(f"warning: {result.truncation}")
        raise typer.Exit(result.truncation.exit_code)
