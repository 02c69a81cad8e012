"""The collector's rows for people (tables) and for programs (one JSON object a line)."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from rocetap.spec.classes import FrameClass
from rocetap.spec.flags import SequenceFlag, flag_names
from rocetap.wording import counted

__all__ = ["frame_line", "latest_readings", "note", "print_jsonl", "print_records",
           "print_tables"]

_COUNTERS = {
    "requests": "requestPacketTotalCount", "skipped": "skippedPsnTotalCount",
    "filled": "filledPsnTotalCount", "expired": "expiredPsnTotalCount",
    "abandoned": "abandonedPsnTotalCount", "pending": "pendingPsnCount",
    "repeated": "repeatedPsnTotalCount", "late": "unclassifiedLatePacketTotalCount"}
"""Heading -> element. "late" is unclassifiedLate: requests that map before the retained history."""

_WIDTH_OF_A_FILE = 200
_WIDE_ENOUGH = 150
"""Columns of a terminal on which every field has a column of its own."""

_SHORT = {"abandoned": "aband.", "requests": "req.", "repeated": "rep.", "skipped": "skip",
          "expired": "exp.", "pending": "pend.", "filled": "fill"}
_PFC_ORIGIN = {"exporter": "exporter", "domain": "observationDomainId",
               "point": "observationPointId"}
"""Heading -> what names the place of a PFC counter beside its port."""
_TITLE = "RoCEv2 request streams, one row an epoch"
_MEANINGS = {
    SequenceFlag.finalEpoch: "the epoch is closed, these are its last counts",
    SequenceFlag.profileViolation: "a request outside the profile (READ, atomic, malformed) closed "
    "the epoch and disabled the connection; nothing behind it is counted",
    SequenceFlag.captureDiscontinuity: "frames were not observed, so a new epoch began",
    SequenceFlag.stateExhaustion: "the connection had to make room",
    SequenceFlag.serialDiscontinuity: "a step of more than W positions, or of half the PSN space, "
    "began a new epoch; positions between the two are in no counter",
    SequenceFlag.generationUnverified: "nothing told the probe about connection lifetimes, so an "
    "epoch proves none",
}
"""Flag -> what it says below the table, where the flag occurs in it."""


def note(line: str) -> None:
    """One line for the user on stderr."""
    print(f"rocetap: {line}", file=sys.stderr)


def print_jsonl(rows: Iterable[dict[str, Any]], stream: TextIO | None = None) -> None:
    """One object a line, nothing else."""
    stream = stream or sys.stdout
    for row in rows:
        stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    stream.flush()


def print_tables(sequence: list[dict[str, Any]], pfc: list[dict[str, Any]],
                 stream: TextIO | None = None, width: int | None = None) -> None:
    """Connections with their counters, flags and outcomes; ports with their PFC counts. `width`
    in characters; without it the terminal's, or wide where it goes to no terminal."""
    stream = stream or sys.stdout
    if width is None and not stream.isatty():
        width = _WIDTH_OF_A_FILE
    console = Console(file=stream, width=width, highlight=False)
    wide = console.width >= _WIDE_ENOUGH
    console.print(_sequence_table(sequence) if wide else _narrow_table(sequence))
    if len(sequence) > 1:
        console.print(_totals(sequence))
    flags = 0
    for row in sequence:
        flags |= row.get("rdmaSequenceFlags", 0)
    for flag, meaning in _MEANINGS.items():
        if flags & flag:
            console.print(f"{flag.name}: {meaning}", style="dim")
    if pfc:
        console.print(_pfc_table(pfc))


def _sequence_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title=_TITLE, title_justify="left")
    for heading in ("source", "destination"):
        table.add_column(heading, overflow="fold")
    for heading in ("QP", "VLAN", "epoch", "W", *_COUNTERS):
        table.add_column(heading, justify="right", overflow="fold")
    for heading in ("flags", "outcome"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*_ends(row), _qp(row), _vlans(row) or "-", str(row["rdmaSequenceEpochId"]),
                      str(row.get("rdmaSequenceWindow", "-")), *_counters(row),
                      _flags(row) or "-", _outcome(row))
    return table


def _narrow_table(rows: list[dict[str, Any]]) -> Table:
    """What names and qualifies an epoch stands in one column, line by line."""
    table = Table(title=_TITLE, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("epoch", overflow="fold", ratio=1)
    for heading in _COUNTERS:
        table.add_column(_SHORT.get(heading, heading), justify="right", no_wrap=True)
    for row in rows:
        source, destination = _ends(row)
        names = [f"QP {_qp(row)}", f"VLAN {_vlans(row)}" if _vlans(row) else "",
                 f"W {row.get('rdmaSequenceWindow', '-')}"]
        lines = [f"{row['rdmaSequenceEpochId']}: {_outcome(row)}", source, f"> {destination}",
                 " ".join(name for name in names if name), *_flags(row).split()]
        table.add_row("\n".join(lines), *_counters(row))
    return table


def _totals(rows: list[dict[str, Any]]) -> str:
    """All epochs together: as each of them, skipped = filled + expired + abandoned + pending."""
    sums = {heading: sum(row.get(element, 0) for row in rows)
            for heading, element in _COUNTERS.items()}
    return (f"in all {counted(len(rows), 'epoch')}: {counted(sums['requests'], 'request')}; "
            f"{sums['skipped']} skipped = {sums['filled']} filled + {sums['expired']} expired + "
            f"{sums['abandoned']} abandoned + {sums['pending']} pending; "
            f"{sums['repeated']} repeated, {sums['late']} late")


def print_records(title: str, rows: list[dict[str, Any]], stream: TextIO | None = None,
                  width: int | None = None) -> None:
    """Rows that are all alike: a column for each name, or, where these do not fit into `width`,
    a line for each value."""
    stream = stream or sys.stdout
    if width is None and not stream.isatty():
        width = _WIDTH_OF_A_FILE
    console = Console(file=stream, width=width, highlight=False)
    names = list(dict.fromkeys(name for row in rows for name in row if name != "record"))
    needed = sum(max(len(name), *(len(_cell(row, name)) for row in rows)) + 2 for name in names)
    if not rows:
        console.print(f"{title}: none")
        return
    if needed <= console.width:
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for name in names:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*(_cell(row, name) for name in names))
        console.print(table)
        return
    console.print(title, style="italic")
    for row in rows:
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name in names:
            if _cell(row, name):
                table.add_row(name, _cell(row, name))
        console.print(table)
        console.print()


def _cell(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value)


def _ends(row: dict[str, Any]) -> tuple[str, str]:
    family = "IPv6" if "sourceIPv6Address" in row else "IPv4"
    return str(row[f"source{family}Address"]), str(row[f"destination{family}Address"])


def _qp(row: dict[str, Any]) -> str:
    return f"0x{row['rdmaDestinationQP']:x}"


def _vlans(row: dict[str, Any]) -> str:
    return "/".join(str(row[name]) for name in ("dot1qVlanId", "dot1qCustomerVlanId")
                    if row.get(name))


def _counters(row: dict[str, Any]) -> list[str]:
    return [str(row.get(element, "-")) for element in _COUNTERS.values()]


def _flags(row: dict[str, Any]) -> str:
    return " ".join(flag_names(row.get("rdmaSequenceFlags", 0)))


def _outcome(row: dict[str, Any]) -> str:
    words = [row["outcome"]]
    if row.get("invalidReason"):
        words.append(f"({row['invalidReason']})")
    return " ".join(words + row.get("qualifications", []))


def latest_readings(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each counter the reading that came last; rows in the order received."""
    latest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        latest[*_pfc_origin(row), *_pfc_port(row), row["pfcPriority"]] = row
    return list(latest.values())


def _pfc_origin(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in _PFC_ORIGIN.values())


def _pfc_port(row: dict[str, Any]) -> tuple[int, str]:
    if "ingressPhysicalInterface" in row:
        return row["ingressPhysicalInterface"], "received"
    return row["egressPhysicalInterface"], "transmitted"


def _pfc_table(rows: list[dict[str, Any]]) -> Table:
    """The latest reading of each counter; where it was read as far as that is not one place."""
    table = Table(title="PFC frames by port and priority (one frame may count for several)",
                  title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    told = [name for place, name in enumerate(_PFC_ORIGIN)
            if len({_pfc_origin(row)[place] for row in rows}) > 1]
    for heading in told:
        table.add_column(heading, overflow="fold")
    for heading in ("interface", "direction", *(f"prio {n}" for n in range(8))):
        table.add_column(heading, justify="right")
    counts: dict[tuple[Any, ...], dict[int, int]] = {}
    for row in rows:
        place = (_pfc_origin(row), _pfc_port(row))
        counts.setdefault(place, {})[row["pfcPriority"]] = row["pfcControlFrameTotalCount"]
    for (origin, (interface, direction)), by_priority in counts.items():
        names = dict(zip(_PFC_ORIGIN, origin, strict=True))
        table.add_row(*(str(names[name]) for name in told), str(interface), direction,
                      *(str(by_priority.get(n, "-")) for n in range(8)))
    return table


def frame_line(frames: Counter[FrameClass]) -> str:
    """What the board made of the frames, in one line."""
    parts = [f"{count} {kind.name.lower()}" for kind, count in sorted(frames.items()) if count]
    return f"{counted(sum(frames.values()), 'frame')}: {', '.join(parts) or 'none'}"
