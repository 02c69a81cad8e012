"""A damaged store is set aside, and what of it can be read goes into a new one."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from .columns import stored_row
from .reading import Damage, connect_reader, scan
from .schema import APPLICATION, TABLES

__all__ = ["MAGIC", "is_store", "rescue", "set_aside"]

_BESIDE: Final = ("-wal", "-shm")
MAGIC: Final = b"SQLite format 3\0"
"""How every SQLite file begins."""
_ROWS: Final = 4096
_READ_AS: Final = {"epoch_rows": "epochs"}
"""Tables that are read by another name, which is theirs in older versions too."""


def is_store(path: Path) -> bool:
    """Whether a file begins as one of our stores, however damaged behind that."""
    with path.open("rb") as file:
        head = file.read(100)
    return head.startswith(MAGIC) and head[68:72] == APPLICATION.to_bytes(4, "big")


def set_aside(path: Path) -> Path:
    """Renames the file, with what SQLite keeps beside it, to the first free
    `NAME.damaged-N`."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for suffix in _BESIDE:
        if (beside := path.with_name(path.name + suffix)).exists():
            os.replace(beside, aside.with_name(aside.name + suffix))
    os.replace(path, aside)
    return aside


def rescue(aside: Path, db: sqlite3.Connection, now_ms: int) -> dict[str, int]:
    """Copies every row that reads into an empty store, inside the caller's transaction; rows kept
    by table. Notes each table in `damage`."""
    kept = {}
    with closing(connect_reader(aside)) as source:
        for table in TABLES:
            damage: Damage = Counter()
            name = _READ_AS.get(table, table)
            kept[name] = _copy(source, db, table, damage)
            if table != "damage":
                what = "a part could not be read" if damage else "all that was found"
                db.execute("INSERT INTO damage (found_ms, file, table_name, rows_kept, what) "
                           "VALUES (?, ?, ?, ?, ?)",
                           (now_ms, aside.name, name, kept[name], what))
    return kept


def _copy(source: sqlite3.Connection, db: sqlite3.Connection, table: str, damage: Damage) -> int:
    count = 0
    rows: list[tuple[Any, ...]] = []
    try:
        for row in scan(source, _READ_AS.get(table, table), [], damage):
            try:
                rows.append(stored_row(row) if table in _READ_AS else tuple(row.values()))
            except TypeError:
                continue    # a number that is none
            if len(rows) == _ROWS:
                count += _insert(db, table, rows)
                rows = []
    except sqlite3.OperationalError:    # the page that tells of the tables is damaged
        damage[f"part of {table}"] += 1
    return count + _insert(db, table, rows)


def _insert(db: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> int:
    """Rows whose own values cannot be (a damaged NULL, a second key) are left out."""
    if not rows:
        return 0
    places = ", ".join("?" * len(rows[0]))
    before = db.total_changes
    db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", rows)
    return db.total_changes - before
