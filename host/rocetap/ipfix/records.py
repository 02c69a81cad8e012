"""Column arrays of reports and readings: what the exporter takes and the collector gives.

Both dtypes are packed, in host byte order. An IPv4 address stands in the last four octets of the
sixteen, the first twelve zero. `reserved` octets stay zero, so rows compare octet by octet.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["KEY_WORDS", "PFC_READING", "SEQUENCE_REPORT", "TOTALS", "Records", "word_of",
           "word_with", "words"]

Records = npt.NDArray[np.void]
"""A one-dimensional structured array."""

SEQUENCE_REPORT: Final = np.dtype([
    ("observation_point", "u8"),
    ("source", "V16"),
    ("destination", "V16"),
    ("epoch_id", "u8"),
    ("qp", "u4"),
    ("pkey", "u2"),
    ("vid", "u2"),              # only or outer VLAN id, 0 without
    ("cvid", "u2"),             # inner VLAN id, 0 without
    ("ipv6", "?"),
    ("reserved", "u1"),
    ("window", "u4"),           # the octets up to here: full key and window
    ("flow_start_ms", "u8"),    # ms since 1970-01-01 UTC
    ("flow_end_ms", "u8"),
    ("report_id", "u8"),
    ("flags", "u2"),            # rocetap.spec.flags
    ("reserved2", "u2"),
    ("pending", "u4"),
    ("skipped", "u8"),
    ("filled", "u8"),
    ("expired", "u8"),
    ("abandoned", "u8"),
    ("repeated", "u8"),
    ("requests", "u8"),
    ("late", "u8"),
])
"""One report of one epoch (sequence profile, Profile Fields): 152 octets."""

TOTALS: Final = ("skipped", "filled", "expired", "abandoned", "repeated", "requests", "late")
"""The totalCounter fields: they never decrease within an epoch."""

KEY_WORDS: Final = 9
"""The first nine 64-bit words: full key, window and flow start, all fixed within an epoch."""

PFC_READING: Final = np.dtype([
    ("observation_point", "u8"),
    ("interface", "u4"),
    ("transmitted", "?"),
    ("priority", "u1"),
    ("reserved", "u2"),
    ("time_ms", "u8"),          # ms since 1970-01-01 UTC, when the counter was read
    ("total", "u8"),
])
"""One reading of one PFC counter (PFC telemetry, PFC Counter Record): 32 octets."""


def words(records: Records) -> npt.NDArray[np.uint64]:
    """The same memory as 64-bit words: shape (records, words of a record)."""
    packed = np.ascontiguousarray(records)
    view: npt.NDArray[Any] = packed.view(np.uint64)
    return view.reshape(len(packed), packed.dtype.itemsize // 8)


def word_of(name: str) -> int:
    """Which 64-bit word of a SEQUENCE_REPORT a field lies in."""
    fields = SEQUENCE_REPORT.fields
    assert fields is not None
    return fields[name][1] // 8


def word_with(**values: int) -> np.uint64:
    """The 64-bit word of a SEQUENCE_REPORT that has these fields, all of one word, and no more."""
    report = np.zeros(1, SEQUENCE_REPORT)
    for name, value in values.items():
        report[name] = value
    word: np.uint64 = words(report)[0, word_of(next(iter(values)))]
    return word
