"""From the schema of an older rocetap to this one's, one version at a time, in one transaction.

Never change a step that was released: it describes files that exist.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from ..ipfix.records import PFC_READING, SEQUENCE_REPORT, Records
from .columns import INSERT_PFC, pfc_values, write_epochs
from .outcomes import EPOCH, State
from .schema import (
    EPOCH_ROWS_TABLE,
    EPOCHS_VIEW,
    PARTS,
    PFC_TABLE,
    ROW_COLUMNS,
    SCHEMA_VERSION,
    TABLES,
)

__all__ = ["OLDEST_VERSION", "migrate"]

_ROWS: Final = 4096


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Brings a store of `version` to SCHEMA_VERSION; to be called inside a transaction."""
    while version != SCHEMA_VERSION:
        step, version = _STEPS[version]
        step(db)
        db.execute(f"PRAGMA user_version = {version}")


def _from_1(db: sqlite3.Connection) -> None:
    """To 3: epochs under one number instead of three, a checksum in each row, the table of damage,
    and what `_from_2` does."""
    for table in ("epochs", "pfc_readings"):
        db.execute(f"ALTER TABLE {table} RENAME TO {table}_1")
    for definition in (EPOCH_ROWS_TABLE, EPOCHS_VIEW, PFC_TABLE):
        db.execute(definition)
    serials: dict[int, int] = {}
    for session_id, domain, rows in _groups(db, "epochs_1", "session_id, domain, epoch_id"):
        epochs = np.zeros(len(rows), EPOCH)
        _fill(epochs, rows)
        report = np.zeros(len(rows), SEQUENCE_REPORT)
        _fill(report, rows)
        epochs["report"] = report
        epochs["state"] = [_state(row) for row in rows]
        first = serials.get(session_id, 0)
        epochs["serial"] = np.arange(first + 1, first + len(rows) + 1)
        serials[session_id] = first + len(rows)
        write_epochs(db, "INSERT", session_id, domain, epochs)
    for session_id, domain, rows in _groups(db, "pfc_readings_1", "rowid"):
        readings = np.zeros(len(rows), PFC_READING)
        _fill(readings, rows)
        db.executemany(INSERT_PFC, pfc_values(session_id, domain, readings))
    db.execute("DROP TABLE epochs_1")
    db.execute("DROP TABLE pfc_readings_1")
    db.execute(TABLES["damage"])


def _from_2(db: sqlite3.Connection) -> None:
    """To 3: small numbers of an epoch share columns, and the session is read from the row's
    number. The checksum is over the same values."""
    db.execute("ALTER TABLE epochs RENAME TO epochs_2")
    db.execute(EPOCH_ROWS_TABLE)
    values = {column: " | ".join(f"(({name} & {(1 << bits) - 1}) << {low})"
                                 for name, (place, low, bits) in PARTS.items() if place == column)
              for column, _, _ in PARTS.values()}
    values["addresses"] = "CAST(source || destination AS BLOB)"
    db.execute(f"INSERT INTO epoch_rows SELECT "
               f"{', '.join(values.get(name, name) for name in ROW_COLUMNS)} FROM epochs_2")
    db.execute("DROP TABLE epochs_2")
    db.execute(EPOCHS_VIEW)


def _groups(
    db: sqlite3.Connection, table: str, order: str,
) -> Iterator[tuple[int, int, list[dict[str, Any]]]]:
    """(session, domain, rows) of neighbours, a few thousand at a time."""
    cursor = db.execute(f"SELECT * FROM {table} ORDER BY {order}")
    names = [column[0] for column in cursor.description]
    while chunk := cursor.fetchmany(_ROWS):
        rows = [dict(zip(names, row, strict=True)) for row in chunk]
        begin = 0
        for end in range(1, len(rows) + 1):
            origin = rows[begin]["session_id"], rows[begin]["domain"]
            if end == len(rows) or (rows[end]["session_id"], rows[end]["domain"]) != origin:
                yield (*origin, rows[begin:end])
                begin = end


def _fill(records: Records, rows: list[dict[str, Any]]) -> None:
    for name in records.dtype.names or ():
        if name not in rows[0]:
            continue
        if records[name].dtype.kind == "V":
            records[name] = [np.void(row[name]) for row in rows]
        else:
            values = np.array([row[name] for row in rows], np.int64)
            records[name] = values.view(np.uint64).astype(records[name].dtype)


def _state(row: dict[str, Any]) -> State:
    if row["rule"]:
        return State.INVALID
    return State.FINAL if row["flags"] & 1 and row["reports"] else State.OPEN


_STEPS: Final[dict[int, tuple[Callable[[sqlite3.Connection], None], int]]] = {
    1: (_from_1, 3), 2: (_from_2, 3)}
"""Version -> what brings a store of it further, and to which version."""
OLDEST_VERSION: Final = min(_STEPS)
"""The oldest schema that can be brought up."""
