"""Epochs and readings as columns of the store and back, and the checksum of a stored row.

The checksum finds what SQLite does not: a value that changed on the disk. It is the sum, modulo
2^64, of the row's 64-bit words, each times an odd constant of its place, so that no single changed
word goes unseen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..ipfix.records import PFC_READING, SEQUENCE_REPORT, Records, word_of, words
from .outcomes import EPOCH, EndReason, Outcome, outcomes
from .schema import (
    ADDRESSES,
    EPOCH_COLUMNS,
    PARTS,
    PFC_COLUMNS,
    REPORT_COLUMNS,
    ROW_COLUMNS,
    ROW_SERIAL_BITS,
)

__all__ = [
    "INSERT_PFC", "SESSION_END", "after_session_end", "epochs_agree", "pfc_values",
    "readings_agree", "readings_of", "reports_of", "row_ids", "stored_row", "write_epochs",
]

_ROWS: Final = 32
"""Epochs in one statement."""
_IN_CACHE: Final = 64 * _ROWS
"""Epochs whose columns are gathered at a time."""
_NUMBERS: Final = tuple(name for name in ROW_COLUMNS if name != "addresses")
_PACKED: Final = tuple(dict.fromkeys(
    column for name, (column, _, _) in PARTS.items() if name in REPORT_COLUMNS))
_U64 = npt.NDArray[np.uint64]
_REPORT_WORDS: Final = SEQUENCE_REPORT.itemsize // 8
_PLACES: Final = _REPORT_WORDS + 7
_ODD: Final = (np.arange(1, _PLACES + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
               | np.uint64(1))
_KEPT, _TAIL, _ORIGIN = (slice(_REPORT_WORDS, _REPORT_WORDS + 3), _REPORT_WORDS + 3,
                         slice(_REPORT_WORDS + 4, _PLACES))
_ENDED_BITS, _OUTCOME_BITS = np.uint64(16), np.uint64(24)


def row_ids(session_id: int, epochs: Records) -> _U64:
    """Where epochs of a session are filed: shape (epochs,)."""
    ids: _U64 = np.uint64(session_id << ROW_SERIAL_BITS) | epochs["serial"]
    return ids


def write_epochs(
    db: sqlite3.Connection, verb: str, session_id: int, domain: int, epochs: Records,
) -> None:
    """Writes epochs by INSERT or REPLACE, many rows a statement: what SQLite and Python do for
    each statement is a large part of the work."""
    whole = len(epochs) // _ROWS * _ROWS
    for begin in range(0, whole, _IN_CACHE):
        part = epochs[begin:min(begin + _IN_CACHE, whole)]
        db.executemany(_SQL[verb, _ROWS], _parameters(session_id, domain, part, _ROWS))
    if whole < len(epochs):
        db.executemany(_SQL[verb, 1], _parameters(session_id, domain, epochs[whole:], 1))


def _parameters(
    session_id: int, domain: int, epochs: Records, rows: int,
) -> list[list[Any]]:
    """Of each statement for `rows` epochs: the numbers of all, then their addresses."""
    numbers = _numbers(session_id, domain, epochs)
    first = word_of(ADDRESSES[0])
    addresses = np.ascontiguousarray(words(epochs)[:, first:first + 4]).view("V32")
    values: list[list[Any]] = numbers.reshape(-1, rows * numbers.shape[1]).tolist()
    for some, octets in zip(values, addresses.reshape(-1, rows).tolist(), strict=True):
        some += octets
    return values


def _numbers(session_id: int, domain: int, epochs: Records) -> npt.NDArray[np.int64]:
    """The columns of _NUMBERS as they are stored: shape (epochs, columns)."""
    report, ids, ending = epochs["report"], row_ids(session_id, epochs), outcomes(epochs)
    tail = _tail(epochs, ending)
    check = _epoch_checksum(words(epochs)[:, :_REPORT_WORDS],
                            [epochs[name] for name in ("reports", "missing", "last_seen_ms")],
                            tail, session_id, domain, ids)
    values: dict[str, Any] = {
        "id": ids, "domain": domain, "ending": tail, "checksum": check,
        **{name: epochs[name] for name in ("reports", "missing", "last_seen_ms")},
        **{name: _packed(name, report) for name in _PACKED}}
    numbers = np.empty((len(epochs), len(_NUMBERS)), np.uint64)
    for column, name in enumerate(_NUMBERS):
        numbers[:, column] = values[name] if name in values else report[name]
    return numbers.view(np.int64)


def _packed(column: str, report: Records) -> _U64:
    """Small numbers of reports, in one of their shared columns."""
    total = np.zeros(len(report), np.uint64)
    for name, (place, low, _) in PARTS.items():
        if place == column:
            total |= report[name].astype(np.uint64) << np.uint64(low)
    return total


def stored_row(row: dict[str, Any]) -> tuple[Any, ...]:
    """The columns of ROW_COLUMNS of an epoch as it is read. Raises TypeError for a value of
    another type."""
    values = dict(row, addresses=row["source"] + row["destination"])
    for name, (column, low, bits) in PARTS.items():
        values[column] = values.get(column, 0) | (row[name] & ((1 << bits) - 1)) << low
    return tuple(value - (1 << 64) if isinstance(value, int) and value >> 63 == 1 else value
                 for value in (values[name] for name in ROW_COLUMNS))


def pfc_values(session_id: int, domain: int, readings: Records) -> Iterator[tuple[Any, ...]]:
    """Rows for INSERT_PFC."""
    check = _pfc_checksum(words(readings), session_id, domain)
    return zip(repeat(session_id), repeat(domain),
               *(_list(readings[name]) for name in PFC_COLUMNS), _list(check), strict=False)


def epochs_agree(rows: Sequence[dict[str, Any]]) -> npt.NDArray[np.bool_]:
    """Whether stored epochs are what was written: shape (rows,)."""
    report, report_fits = _array(rows, SEQUENCE_REPORT, REPORT_COLUMNS)
    epochs, epoch_fits = _array(rows, EPOCH, EPOCH_COLUMNS)
    check = _epoch_checksum(
        words(report), [epochs[name] for name in ("reports", "missing", "last_seen_ms")],
        _tail(epochs, _column(rows, "outcome")), _column(rows, "session_id"),
        _column(rows, "domain"), _column(rows, "id"))
    agree: npt.NDArray[np.bool_] = check == _column(rows, "checksum")
    return agree & report_fits & epoch_fits


def readings_agree(rows: Sequence[dict[str, Any]]) -> npt.NDArray[np.bool_]:
    """Whether stored readings are what was written: shape (rows,)."""
    readings, fits = _array(rows, PFC_READING, PFC_COLUMNS)
    check = _pfc_checksum(words(readings), _column(rows, "session_id"), _column(rows, "domain"))
    agree: npt.NDArray[np.bool_] = check == _column(rows, "checksum")
    return agree & fits


def reports_of(rows: Sequence[dict[str, Any]]) -> Records:
    """The latest accepted reports of stored epochs, as SEQUENCE_REPORT."""
    return _array(rows, SEQUENCE_REPORT, REPORT_COLUMNS)[0]


def readings_of(rows: Sequence[dict[str, Any]]) -> Records:
    """Stored readings, as PFC_READING."""
    return _array(rows, PFC_READING, PFC_COLUMNS)[0]


SESSION_END: Final = (EndReason.session_end << int(_ENDED_BITS)) + (
    Outcome.incomplete << int(_OUTCOME_BITS))
"""What the end of its session adds to the `ending` of an open epoch."""


def after_session_end(checksum: int) -> int:
    """The checksum of an open epoch once its session's end is written to it."""
    change = SESSION_END
    total = (checksum + change * int(_ODD[_TAIL])) % (1 << 64)
    return total - (1 << 64) if total >> 63 else total


def _epoch_checksum(
    report: _U64, kept: list[_U64], tail: _U64, session_id: int | _U64, domain: int | _U64,
    ids: _U64,
) -> _U64:
    total: _U64 = report @ _ODD[:_REPORT_WORDS]
    for column, odd in zip(kept, _ODD[_KEPT], strict=True):
        total += column * odd
    total += tail * _ODD[_TAIL]
    total = _with_origin(total, session_id, domain)
    total += ids * _ODD[_ORIGIN][2]
    return total


def _pfc_checksum(readings: _U64, session_id: int | _U64, domain: int | _U64) -> _U64:
    return _with_origin(readings @ _ODD[:readings.shape[1]], session_id, domain)


def _with_origin(total: _U64, session_id: int | _U64, domain: int | _U64) -> _U64:
    for value, odd in zip((session_id, domain), _ODD[_ORIGIN][:2], strict=True):
        total = total + np.asarray(value, np.uint64).reshape(-1) * odd
    return total


def _tail(epochs: Records, ending: npt.NDArray[Any]) -> _U64:
    tail = epochs["qualifications"].astype(np.uint64)
    tail |= epochs["rule"].astype(np.uint64) << np.uint64(8)
    tail |= epochs["ended"].astype(np.uint64) << _ENDED_BITS
    tail |= ending.astype(np.uint64) << _OUTCOME_BITS
    return tail


def _list(column: npt.NDArray[Any]) -> list[Any]:
    """Values for SQLite: 64-bit ones in two's complement."""
    if column.dtype == np.uint64:
        column = np.ascontiguousarray(column).view(np.int64)
    values: list[Any] = column.tolist()
    return values


def _column(rows: Sequence[dict[str, Any]], name: str) -> _U64:
    return np.array([row[name] for row in rows], np.int64).view(np.uint64)


def _array(
    rows: Sequence[dict[str, Any]], dtype: np.dtype[np.void], names: Sequence[str],
) -> tuple[Records, npt.NDArray[np.bool_]]:
    """Stored values in their columns, and whether all of a row fit into them."""
    records = np.zeros(len(rows), dtype)
    fits = np.ones(len(rows), np.bool_)
    for name in names:
        if name in ("source", "destination"):
            fits &= np.array([len(row[name]) == 16 for row in rows])
            octets = b"".join(row[name][:16].ljust(16, b"\0") for row in rows)
            records[name] = np.frombuffer(octets, "V16")
        else:
            column = _column(rows, name)
            records[name] = column.astype(records[name].dtype)
            fits &= records[name] == column
    return records, fits


def _insert(verb: str, table: str, names: Sequence[str]) -> str:
    return f"{verb} INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


INSERT_PFC: Final = _insert("INSERT", "pfc_readings", (
    "session_id", "domain", *PFC_COLUMNS, "checksum"))


def _rows_sql(verb: str, rows: int) -> str:
    """One statement for several rows. The parameters are the numbers of all rows, then their
    addresses; the columns stand in the table's order, or SQLite would copy each value once more."""
    count = len(_NUMBERS)
    texts = []
    for row in range(rows):
        place = {name: row * count + column + 1 for column, name in enumerate(_NUMBERS)}
        place["addresses"] = rows * count + row + 1
        texts.append(f"({', '.join(f'?{place[name]}' for name in ROW_COLUMNS)})")
    return f"{verb} INTO epoch_rows VALUES {', '.join(texts)}"


_SQL: Final = {(verb, rows): _rows_sql(verb, rows)
               for verb in ("INSERT", "REPLACE") for rows in (1, _ROWS)}
