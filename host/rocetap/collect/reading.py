"""Reads a store, whole or damaged: what cannot be read is passed over and counted.

A damaged table is read from its first row up to the damage, then from its last row down to it.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .columns import epochs_agree, readings_agree
from .filters import Filters
from .rows import pfc_row, sequence_row

__all__ = ["Damage", "StoreReader", "connect_reader", "readable_text", "scan"]

Damage = Counter[str]
"""Rows and parts that were passed over, by what they are."""

_ROWS: Final = 1024
_NULL: Final = type(None)
_CHECKED: Final[dict[str, tuple[str, dict[str, tuple[type, ...]]]]] = {
    "sessions": ("session", {
        "id": (int,), "exporter": (str,), "address": (str,), "pen": (int,), "started_ms": (int,),
        "ended_ms": (int, _NULL), "end_reason": (str, _NULL)}),
    "raw_records": ("raw record", {
        "session_id": (int,), "domain": (int,), "epoch_id": (int,), "rule": (str,),
        "fields": (str,), "octets": (bytes,)}),
    "dropped": ("drop count", {"session_id": (int,), "reason": (str,), "count": (int,)}),
    "damage": ("note of damage", {
        "id": (int,), "found_ms": (int,), "file": (str,), "table_name": (str,),
        "rows_kept": (int,), "what": (str,)}),
}
"""Tables without a checksum: what a row of them is, and the types that its values have when they
are whole. SQLite keeps any type in any column."""
_CORRUPT: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR)


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing, also where the file's header and length disagree, and
    where the folder takes no file."""
    db = _connect(path, "mode=ro")
    if _is_shut(db) and not _has_wal(path):
        db.close()
        db = _connect(path, "mode=ro&immutable=1")
    db.text_factory = readable_text
    # Without it SQLite refuses a file that is shorter than it says, whole pages and all.
    db.execute("PRAGMA writable_schema = ON")
    return db


def _connect(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, isolation_level=None,
                           check_same_thread=False, timeout=10)


def _is_shut(db: sqlite3.Connection) -> bool:
    """Whether SQLite misses the shared memory of write-ahead mode: it would make it, but may not,
    as in a folder that is read-only."""
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
    return False


def _has_wal(path: Path) -> bool:
    """Whether a part of the data is still in the write-ahead log. Then, and while a collector
    runs, the file alone is not the whole store."""
    log = f"{os.path.realpath(path)}-wal"
    return os.path.exists(log) and os.path.getsize(log) > 0


def readable_text(octets: bytes) -> str | bytes:
    """Text of a column; octets that are no UTF-8 stay octets, for the row's check to find."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return octets


class StoreReader:
    """Rows of one store."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._found: list[Damage] = []
        self._sessions = {row["id"]: row for row in self._scan("sessions", [])}

    @property
    def damage(self) -> Damage:
        """What was passed over so far, once however often it was looked at."""
        most: Damage = Counter()
        for found in self._found:
            most |= found
        return most

    def sessions(self, filters: Filters) -> Iterator[dict[str, Any]]:
        """The Transport Sessions: the table's columns."""
        for row in self._sessions.values():
            if filters.chooses(row) and filters.touches(row):
                yield row

    def epochs(self, filters: Filters) -> Iterator[dict[str, Any]]:
        """Epochs as stored, with `exporter`, in the order of session and admission."""
        yield from self._checked("epochs", "epoch", filters, "sequence", epochs_agree)

    def sequence(self, filters: Filters) -> Iterator[dict[str, Any]]:
        """Epochs by Information Element names; see `rows.sequence_row`."""
        yield from map(sequence_row, self.epochs(filters))

    def readings(self, filters: Filters) -> Iterator[dict[str, Any]]:
        """PFC readings as stored, with `exporter`, in the order received."""
        yield from self._checked("pfc_readings", "reading", filters, "pfc", readings_agree)

    def pfc(self, filters: Filters) -> Iterator[dict[str, Any]]:
        """PFC readings by Information Element names; see `rows.pfc_row`."""
        yield from map(pfc_row, self.readings(filters))

    def raw(self, filters: Filters) -> Iterator[dict[str, Any]]:
        """Records kept raw: the table's columns and `exporter`."""
        yield from self._of_sessions("raw_records", filters, filters.conditions("raw"))

    def dropped(self, filters: Filters) -> Iterator[dict[str, Any]]:
        """What was passed over or dropped: session_id, reason, count, exporter."""
        yield from self._of_sessions("dropped", filters, [])

    def set_aside(self) -> list[dict[str, Any]]:
        """Damaged files that were set aside: the table's columns."""
        return list(self._scan("damage", []))

    def _of_sessions(
        self, table: str, filters: Filters, conditions: list[tuple[str, list[Any]]],
    ) -> Iterator[dict[str, Any]]:
        for row in self._scan(table, conditions):
            session = self._sessions.get(row["session_id"])
            if session is None or (filters.chooses(session) and filters.touches(session)):
                yield row | {"exporter": session and session["exporter"]}

    def _checked(
        self, table: str, what: str, filters: Filters, kind: str,
        agree: Callable[[Sequence[dict[str, Any]]], npt.NDArray[np.bool_]],
    ) -> Iterator[dict[str, Any]]:
        chosen = {key: row["exporter"] for key, row in self._sessions.items()
                  if filters.chooses(row)}
        everything = not (filters.exporters or filters.sessions)
        self._found.append(Counter())
        damage = self._found[-1]
        for rows in _chunks(self._scan(table, filters.conditions(kind))):
            for row, good in zip(rows, _agree(agree, rows), strict=True):
                if not good:
                    damage[what] += 1
                elif everything or row["session_id"] in chosen:
                    yield row | {"exporter": chosen.get(row["session_id"])}

    def _scan(
        self, table: str, conditions: list[tuple[str, list[Any]]],
    ) -> Iterator[dict[str, Any]]:
        self._found.append(Counter())
        return scan(self._db, table, conditions, self._found[-1])


def scan(
    db: sqlite3.Connection, table: str, conditions: list[tuple[str, list[Any]]], damage: Damage,
) -> Iterator[dict[str, Any]]:
    """Rows of a table in its order. What lies between the first and the last damage is passed
    over and counted as one `part of TABLE`; so is each row with a value that cannot be, where no
    checksum finds it."""
    what, types = _CHECKED.get(table, ("", {}))
    for row in _rows_of(db, table, conditions, damage):
        if all(isinstance(row[name], kinds) for name, kinds in types.items()):
            yield row
        else:
            damage[what] += 1


def _rows_of(
    db: sqlite3.Connection, table: str, conditions: list[tuple[str, list[Any]]], damage: Damage,
) -> Iterator[dict[str, Any]]:
    where = "".join(f" AND {text}" for text, _ in conditions)
    values = [value for _, some in conditions for value in some]
    key = {"raw_records": "rowid", "dropped": ""}.get(table, "id")
    if not key:
        query = f"SELECT * FROM {table} WHERE 1{where} ORDER BY session_id, reason"
        try:
            yield from _select(db, query, values)
        except sqlite3.DatabaseError as error:
            _only_damage(error)
            damage[f"part of {table}"] += 1
        return
    last = None
    try:
        for row in _select(db, f"SELECT {key} AS _key, * FROM {table} WHERE 1{where} "
                               f"ORDER BY {key}", values):
            last = row.pop("_key")
            yield row
    except sqlite3.DatabaseError as error:
        _only_damage(error)
    else:
        return
    damage[f"part of {table}"] += 1
    above = "" if last is None else f" AND {key} > {last}"
    rows = []
    try:
        for row in _select(db, f"SELECT * FROM {table} WHERE 1{where}{above} "
                               f"ORDER BY {key} DESC", values):
            rows.append(row)
    except sqlite3.DatabaseError as error:
        _only_damage(error)
    yield from reversed(rows)


def _select(
    db: sqlite3.Connection, query: str, values: Sequence[Any],
) -> Iterator[dict[str, Any]]:
    cursor = db.execute(query, values)
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def _only_damage(error: sqlite3.DatabaseError) -> None:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code not in _CORRUPT:
        raise error


def _agree(
    agree: Callable[[Sequence[dict[str, Any]]], npt.NDArray[np.bool_]],
    rows: Sequence[dict[str, Any]],
) -> Sequence[bool]:
    """Row by row where a value is not even of its column's type."""
    try:
        return list(agree(rows))
    except (TypeError, ValueError, OverflowError):
        if len(rows) == 1:
            return [False]
        return [good for row in rows for good in _agree(agree, [row])]


def _chunks(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    chunk: list[dict[str, Any]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == _ROWS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
