"""The collector's rows for people (tables) and for programs (one JSON object a line)."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table

from rocetap.spec.classes import FrameClass
from rocetap.spec.flags import SequenceFlag, flag_names

__all__ = ["frame_line", "note", "print_jsonl", "print_tables"]

_COUNTERS = {
    "requests": "requestPacketTotalCount", "skipped": "skippedPsnTotalCount",
    "filled": "filledPsnTotalCount", "expired": "expiredPsnTotalCount",
    "abandoned": "abandonedPsnTotalCount", "pending": "pendingPsnCount",
    "repeated": "repeatedPsnTotalCount", "late": "unclassifiedLatePacketTotalCount"}
"""Heading -> element. "late" is unclassifiedLate: requests that map before the retained history."""

_WIDTH_OF_A_FILE = 200
_UNVERIFIED = int(SequenceFlag.generationUnverified)


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
                 stream: TextIO | None = None) -> None:
    """Connections with their counters, flags and outcomes; ports with their PFC counts."""
    stream = stream or sys.stdout
    console = Console(file=stream, width=None if stream.isatty() else _WIDTH_OF_A_FILE,
                      highlight=False)
    console.print(_sequence_table(sequence))
    if any(row["rdmaSequenceFlags"] & _UNVERIFIED for row in sequence
           if "rdmaSequenceFlags" in row):
        console.print("generationUnverified: nothing told the probe about connection lifetimes, "
                      "so an epoch proves none.", style="dim")
    if pfc:
        console.print(_pfc_table(pfc))


def _sequence_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="RoCEv2 request streams, one row an epoch", title_justify="left")
    for heading in ("source", "destination"):
        table.add_column(heading, overflow="fold")
    for heading in ("QP", "VLAN", "epoch", "W", *_COUNTERS):
        table.add_column(heading, justify="right", overflow="fold")
    for heading in ("flags", "outcome"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        family = "IPv6" if "sourceIPv6Address" in row else "IPv4"
        vlans = [str(row[name]) for name in ("dot1qVlanId", "dot1qCustomerVlanId")
                 if row.get(name)]
        table.add_row(
            str(row[f"source{family}Address"]), str(row[f"destination{family}Address"]),
            f"0x{row['rdmaDestinationQP']:x}", "/".join(vlans) or "-",
            str(row["rdmaSequenceEpochId"]), str(row.get("rdmaSequenceWindow", "-")),
            *(str(row.get(element, "-")) for element in _COUNTERS.values()),
            " ".join(flag_names(row.get("rdmaSequenceFlags", 0))) or "-", _outcome(row))
    return table


def _outcome(row: dict[str, Any]) -> str:
    words = [row["outcome"]]
    if row.get("invalidReason"):
        words.append(f"({row['invalidReason']})")
    return " ".join(words + row.get("qualifications", []))


def _pfc_table(rows: list[dict[str, Any]]) -> Table:
    """The latest reading of each counter."""
    table = Table(title="PFC frames by port and priority (one frame may count for several)",
                  title_justify="left")
    for heading in ("port interface", "direction", *(f"prio {n}" for n in range(8))):
        table.add_column(heading, justify="right")
    counts: dict[tuple[int, str], dict[int, int]] = {}
    for row in rows:
        direction = "received" if "ingressPhysicalInterface" in row else "transmitted"
        interface = row["ingressPhysicalInterface" if direction == "received"
                        else "egressPhysicalInterface"]
        counts.setdefault((interface, direction), {})[row["pfcPriority"]] = row[
            "pfcControlFrameTotalCount"]
    for (interface, direction), by_priority in counts.items():
        table.add_row(str(interface), direction,
                      *(str(by_priority.get(n, "-")) for n in range(8)))
    return table


def frame_line(frames: Counter[FrameClass]) -> str:
    """What the board made of the frames, in one line."""
    parts = [f"{count} {kind.name.lower()}" for kind, count in sorted(frames.items()) if count]
    return f"{sum(frames.values())} frames: {', '.join(parts) or 'none'}"
