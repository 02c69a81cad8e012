"""Reports as a probe makes them: all connections in turn, again and again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..ipfix.records import SEQUENCE_REPORT, Records
from ..spec.flags import SequenceFlag

__all__ = ["TIME", "epochs", "rounds"]

TIME = 1_700_000_000
"""Export time, s since 1970-01-01 UTC."""


def epochs(first: int, count: int, *, final: bool) -> Records:
    """First reports of `count` epochs of as many connections, with something in every counter."""
    rows = np.zeros(count, SEQUENCE_REPORT)
    number = np.arange(first, first + count, dtype=np.uint64)
    rows["observation_point"] = 1
    rows["source"] = np.void(bytes(12) + bytes([192, 0, 2, 1]))
    rows["destination"] = np.void(bytes(12) + bytes([198, 51, 100, 2]))
    rows["qp"] = number & np.uint64(0xFFFFFF)
    rows["pkey"] = 0xFFFF
    rows["epoch_id"] = number
    rows["report_id"] = 1
    rows["window"] = 256
    rows["flow_start_ms"] = 1000 * TIME + (number & np.uint64(0xFFF))
    rows["flow_end_ms"] = rows["flow_start_ms"] + 900
    rows["flags"] = SequenceFlag.generationUnverified | (SequenceFlag.finalEpoch if final else 0)
    rows["skipped"] = 60 + (number & np.uint64(7))
    rows["filled"] = 40
    rows["expired"] = 20
    rows["abandoned" if final else "pending"] = number & np.uint64(7)
    rows["repeated"] = 5
    rows["late"] = 1
    rows["requests"] = 100_000
    return rows


def rounds(connections: int, count: int) -> Iterator[Records]:
    """`count` reports of each of `connections` epochs, a round of all at a time."""
    rows = epochs(1, connections, final=False)
    for report in range(1, count + 1):
        rows["report_id"] = report
        rows["requests"] += np.uint64(1000)
        rows["flow_end_ms"] += np.uint64(100)
        yield rows
