"""Where outcomes are kept: a small interface, and SQLite behind it.

Write-ahead logging: readers go on beside the one writer, and what `write` has returned from
survives a killed process (and, with synchronous FULL, a power cut).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from ..errors import RocetapError
from ..ipfix.records import Records
from .outcomes import EndReason, Outcome, outcomes
from .rows import pfc_row, sequence_row
from .schema import EPOCH_COLUMNS, PFC_COLUMNS, REPORT_COLUMNS, SCHEMA, SCHEMA_VERSION
from .session import Batch

__all__ = ["SqliteStore", "Store", "StoreError"]

_APPLICATION: Final = int.from_bytes(b"rtap", "big")


class StoreError(RocetapError):
    """The store cannot be opened, read or written; the text names it and says what to do."""


class Store(Protocol):
    """What the collector asks of a store. All methods may raise StoreError."""

    def open_session(self, exporter: str, address: str, pen: int, now_ms: int) -> int:
        """A new Transport Session; its id."""

    def write(self, batches: Sequence[tuple[int, Batch]]) -> None:
        """Batches with their session ids, all or nothing."""

    def close(self) -> None: ...


class SqliteStore:
    """One SQLite file; see `schema` for its tables.

    `read_only` opens it beside a collector that writes. A writer first ends the sessions that a
    killed collector left open: their epochs without a final report become incomplete.
    """

    def __init__(self, path: Path | str, read_only: bool = False) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        with self._errors("open"), ExitStack() as opened:
            if not read_only:
                self._own(opened)
            uri = self.path.absolute().as_uri()
            self._db = self._connect(f"{uri}?mode=ro" if read_only else uri)
            opened.callback(self._db.close)
            if read_only:
                self._check_version()
            else:
                self._prepare()
            self._opened = opened.pop_all()

    def open_session(self, exporter: str, address: str, pen: int, now_ms: int) -> int:
        with self._transaction() as db:
            cursor = db.execute(
                "INSERT INTO sessions (exporter, address, pen, started_ms) VALUES (?, ?, ?, ?)",
                (exporter, address, pen, now_ms))
            return int(cursor.lastrowid or 0)

    def write(self, batches: Sequence[tuple[int, Batch]]) -> None:
        with self._transaction() as db:
            for session_id, batch in batches:
                for domain, epochs in batch.epochs:
                    db.executemany(_INSERT_EPOCH, _epoch_values(session_id, domain, epochs))
                for domain, readings in batch.pfc:
                    db.executemany(_INSERT_PFC, _columns(session_id, domain, readings,
                                                         PFC_COLUMNS))
                db.executemany(
                    "INSERT INTO raw_records VALUES (?, ?, ?, ?, ?, ?)",
                    [(session_id, raw.domain, _signed(raw.epoch_id), raw.rule.name.lower(),
                      raw.fields, raw.octets) for raw in batch.raw])
                db.executemany(
                    "INSERT INTO dropped VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
                    "SET count = count + excluded.count",
                    [(session_id, reason, count) for reason, count in batch.counters.items()])
                if batch.ended is not None:
                    db.execute("UPDATE sessions SET ended_ms = ?, end_reason = ? WHERE id = ?",
                               (*batch.ended, session_id))

    def sequence_rows(self) -> Iterator[dict[str, Any]]:
        """One row an epoch, its latest accepted report by Information Element names, and its
        outcome; see `rows.sequence_row`."""
        yield from map(sequence_row, self._select(
            "SELECT epochs.*, sessions.exporter FROM epochs JOIN sessions ON "
            "sessions.id = epochs.session_id ORDER BY session_id, domain, epoch_id"))

    def pfc_rows(self) -> Iterator[dict[str, Any]]:
        """One row a reading, in the order received; see `rows.pfc_row`."""
        yield from map(pfc_row, self._select(
            "SELECT pfc_readings.*, sessions.exporter FROM pfc_readings JOIN sessions ON "
            "sessions.id = pfc_readings.session_id ORDER BY pfc_readings.rowid"))

    def dropped_rows(self) -> Iterator[dict[str, Any]]:
        """What was passed over or dropped: session_id, reason, count."""
        return self._select("SELECT * FROM dropped ORDER BY session_id, reason")

    def session_rows(self) -> Iterator[dict[str, Any]]:
        """The Transport Sessions: the table's columns."""
        return self._select("SELECT * FROM sessions ORDER BY id")

    def raw_rows(self) -> Iterator[dict[str, Any]]:
        """Records kept raw: the table's columns."""
        return self._select("SELECT * FROM raw_records ORDER BY rowid")

    def close(self) -> None:
        with self._lock, self._errors("close"):
            self._opened.close()

    def _connect(self, uri: str) -> sqlite3.Connection:
        # Transactions are ours; the server writes from a thread of its own.
        db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False,
                             timeout=10)
        db.execute("PRAGMA busy_timeout = 10000")
        return db

    def _own(self, opened: ExitStack) -> None:
        """One writer a file: two would end each other's sessions."""
        owner = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        opened.callback(os.close, owner)
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"store {self.path}: another collector writes to it; stop that one "
                             f"or use another file") from None

    def _prepare(self) -> None:
        empty = not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not empty:
            self._check_version()
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        # Epochs are written again and again: keep their pages, and copy them back less often.
        self._db.execute("PRAGMA cache_size = -65536")
        self._db.execute("PRAGMA wal_autocheckpoint = 8000")
        if empty:
            self._db.executescript(
                f"BEGIN; PRAGMA application_id = {_APPLICATION}; {SCHEMA} COMMIT;")
        with self._transaction() as db:
            db.execute("UPDATE epochs SET outcome = ?, ended = ? WHERE outcome = ?",
                       (Outcome.incomplete, EndReason.session_end, Outcome.open))
            db.execute("UPDATE sessions SET end_reason = 'collector stopped', ended_ms = "
                       "started_ms WHERE ended_ms IS NULL")

    def _check_version(self) -> None:
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if application != _APPLICATION:
            raise StoreError(f"store {self.path}: is a database of another program; use another "
                             f"file")
        if version != SCHEMA_VERSION:
            raise StoreError(f"store {self.path}: has schema version {version}, this rocetap "
                             f"reads {SCHEMA_VERSION}; use the rocetap that wrote it")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._errors("write"):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _select(self, query: str) -> Iterator[dict[str, Any]]:
        with self._errors("read"):
            cursor = self._db.execute(query)
            names = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(names, row, strict=True))

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            hint = "free space" if "full" in str(error) else "check the folder and its permissions"
            if doing == "read":
                hint = "the file may be damaged"
            raise StoreError(
                f"store {self.path}: cannot {doing}: {_text(error)}; {hint}") from error


def _text(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _list(column: np.ndarray) -> list[Any]:
    """Values for SQLite: 64-bit ones in two's complement."""
    if column.dtype == np.uint64:
        column = np.ascontiguousarray(column).view(np.int64)
    values: list[Any] = column.tolist()
    return values


def _columns(
    session_id: int, domain: int, records: Records, names: Sequence[str],
) -> Iterator[tuple[Any, ...]]:
    count = len(records)
    return zip([session_id] * count, [domain] * count,
               *(_list(records[name]) for name in names), strict=True)


def _epoch_values(session_id: int, domain: int, epochs: Records) -> Iterator[tuple[Any, ...]]:
    count = len(epochs)
    report = epochs["report"]
    return zip([session_id] * count, [domain] * count,
               *(_list(report[name]) for name in REPORT_COLUMNS),
               *(_list(epochs[name]) for name in EPOCH_COLUMNS),
               outcomes(epochs).tolist(), strict=True)


def _insert(verb: str, table: str, names: Sequence[str]) -> str:
    columns = ("session_id", "domain", *names)
    return f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


_INSERT_EPOCH: Final = _insert(
    "INSERT OR REPLACE", "epochs", (*REPORT_COLUMNS, *EPOCH_COLUMNS, "outcome"))
_INSERT_PFC: Final = _insert("INSERT", "pfc_readings", PFC_COLUMNS)
