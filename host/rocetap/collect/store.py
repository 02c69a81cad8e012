"""Where outcomes are kept: a small interface, and SQLite behind it.

Write-ahead logging: readers go on beside the one writer, and what `write` has returned from
survives a killed process (and, with synchronous FULL, a power cut).
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from ..errors import RocetapError
from ..ipfix.records import Records, words
from .columns import INSERT_PFC, SESSION_END, after_session_end, pfc_values, write_epochs
from .contexts import as_rows
from .filters import Filters
from .migrations import OLDEST_VERSION, migrate
from .outcomes import Outcome
from .reading import StoreReader, connect_reader, readable_text
from .rescue import MAGIC, is_store, rescue, set_aside
from .schema import APPLICATION, PARTS, ROW_SERIAL_BITS, SCHEMA, SCHEMA_VERSION
from .session import Batch

__all__ = ["SqliteStore", "Store", "StoreDamagedError", "StoreError"]

_log = logging.getLogger(__name__)
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_MAX_SESSIONS: Final = 1 << (63 - ROW_SERIAL_BITS)
_ALL: Final = Filters()


class StoreError(RocetapError):
    """The store cannot be opened, read or written; the text names it and says what to do."""


class StoreDamagedError(StoreError):
    """The file itself is damaged: trying again does not help, opening it anew does."""


class Store(Protocol):
    """What the collector asks of a store. All methods may raise StoreError."""

    def open_session(self, exporter: str, address: str, pen: int, now_ms: int) -> int:
        """A new Transport Session; its id."""

    def write(self, batches: Sequence[tuple[int, Batch]]) -> None:
        """Batches with their session ids, all or nothing."""

    def close(self) -> None: ...


class SqliteStore:
    """One SQLite file; see `schema` for its tables.

    `read_only` opens it beside a collector that writes. A writer brings an older schema up to
    date, sets a damaged file aside and keeps what can be read of it, and ends the sessions that a
    killed collector left open: their epochs without a final report become incomplete.
    """

    def __init__(self, path: Path | str, read_only: bool = False) -> None:
        self.path = Path(path)
        self._place = Path(os.path.realpath(path))
        self._lock = threading.Lock()
        with self._errors("open"), ExitStack() as opened:
            self._check_file(read_only)
            if read_only:
                self._db = connect_reader(self.path)
                opened.callback(self._disconnect)
                self._check_version(oldest=SCHEMA_VERSION)
            else:
                self._own(opened)
                opened.callback(self._disconnect)
                self._open_writer()
            self._opened = opened.pop_all()

    def open_session(self, exporter: str, address: str, pen: int, now_ms: int) -> int:
        with self._transaction() as db:
            cursor = db.execute(
                "INSERT INTO sessions (exporter, address, pen, started_ms) VALUES (?, ?, ?, ?)",
                (exporter, address, pen, now_ms))
            session_id = int(cursor.lastrowid or 0)
            if session_id >= _MAX_SESSIONS:
                raise StoreError(f"store {self.path}: holds {session_id} sessions, the most it "
                                 f"can; begin another file")
            return session_id

    def write(self, batches: Sequence[tuple[int, Batch]]) -> None:
        with self._transaction() as db:
            for (session_id, domain), epochs in _latest(batches).items():
                # Numbers above all that are stored need no look for the row they would replace.
                new = epochs["serial"] > self._highest(session_id)
                for verb, rows in (("REPLACE", epochs[~new]), ("INSERT", epochs[new])):
                    write_epochs(db, verb, session_id, domain, rows)
            for session_id, batch in batches:
                for domain, readings in batch.pfc:
                    db.executemany(INSERT_PFC, pfc_values(session_id, domain, readings))
                if batch.raw:
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

    def sequence_rows(self, filters: Filters = _ALL) -> Iterator[dict[str, Any]]:
        """One row an epoch, its latest accepted report by Information Element names, and its
        outcome; see `rows.sequence_row`."""
        with self._errors("read"):
            yield from self.reader().sequence(filters)

    def pfc_rows(self, filters: Filters = _ALL) -> Iterator[dict[str, Any]]:
        """One row a reading, in the order received; see `rows.pfc_row`."""
        with self._errors("read"):
            yield from self.reader().pfc(filters)

    def dropped_rows(self) -> Iterator[dict[str, Any]]:
        """What was passed over or dropped: session_id, reason, count, exporter."""
        with self._errors("read"):
            yield from self.reader().dropped(_ALL)

    def session_rows(self) -> Iterator[dict[str, Any]]:
        """The Transport Sessions: the table's columns."""
        with self._errors("read"):
            yield from self.reader().sessions(_ALL)

    def raw_rows(self) -> Iterator[dict[str, Any]]:
        """Records kept raw: the table's columns and exporter."""
        with self._errors("read"):
            yield from self.reader().raw(_ALL)

    def reader(self) -> StoreReader:
        """What reads rows and counts what it had to pass over. Raises StoreError."""
        with self._errors("read"):
            return StoreReader(self._db)

    def close(self) -> None:
        with self._lock, self._errors("close"):
            self._opened.close()

    def _disconnect(self) -> None:
        """Closes the database, if it came to that."""
        if hasattr(self, "_db"):
            self._db.close()

    def _check_file(self, read_only: bool) -> None:
        """What SQLite would call by a misleading name, or would write a journal beside."""
        try:
            status = self._place.stat()
        except FileNotFoundError:
            return      # a reader is told so by SQLite
        if not stat.S_ISREG(status.st_mode):
            raise StoreError(f"store {self.path}: is no regular file; give another one")
        if read_only and not status.st_size:
            raise StoreError(f"store {self.path}: is empty; give the store of a collector")
        with self._place.open("rb") as file:
            head = file.read(len(MAGIC))
        if not MAGIC.startswith(head):
            raise StoreError(f"store {self.path}: is no database; give "
                             f"{'the store of a collector' if read_only else 'another file'}")

    def _own(self, opened: ExitStack) -> None:
        """One writer a file: two would end each other's sessions."""
        owner = os.open(f"{self._place}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        opened.callback(os.close, owner)
        try:
            fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"store {self.path}: another collector writes to it; stop that one "
                             f"or use another file") from None

    def _open_writer(self) -> None:
        """Opens the file, or a new one with what could be kept of a damaged one."""
        self._written_ms = _written_ms(self._place)
        try:
            self._connect_writer()
            self._prepare()
            return
        except sqlite3.DatabaseError as error:
            if not (_is_damage(error) and is_store(self.path)):
                raise
            _log.error("store %s is damaged (%s); it is set aside", self.path, error)
        self._db.close()
        aside = set_aside(self._place)
        self._connect_writer()
        self._prepare()
        with self._transaction() as db:
            kept = rescue(aside, db, time.time_ns() // 1_000_000)
        self._end_left_open()
        _log.warning("store %s: of the damaged file, now %s, these rows were kept: %s", self.path,
                     aside.name, ", ".join(f"{count} {table}" for table, count in kept.items()))

    def _highest(self, session_id: int) -> int:
        """The highest number of a stored epoch of the session."""
        first = session_id << ROW_SERIAL_BITS
        found, = self._db.execute(
            "SELECT max(id) FROM epoch_rows WHERE id BETWEEN ? AND ?",
            (first, first + (1 << ROW_SERIAL_BITS) - 1)).fetchone()
        return 0 if found is None else int(found) - first

    def _connect_writer(self) -> None:
        # Transactions are ours; the server writes from a thread of its own.
        self._db = sqlite3.connect(self.path.absolute().as_uri(), uri=True, isolation_level=None,
                                   check_same_thread=False, timeout=10)
        self._db.text_factory = readable_text

    def _prepare(self) -> None:
        empty = not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        version = SCHEMA_VERSION if empty else self._check_version(oldest=OLDEST_VERSION)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        # Epochs are written again and again: keep their pages, and copy them back less often.
        self._db.execute("PRAGMA cache_size = -65536")
        self._db.execute("PRAGMA wal_autocheckpoint = 8000")
        if empty:
            self._db.executescript(f"BEGIN; {SCHEMA} COMMIT;")
            return
        self._check_whole()
        if version != SCHEMA_VERSION:
            with self._transaction() as db:
                migrate(db, version)
            _log.info("store %s: brought from schema version %d to %d", self.path, version,
                      SCHEMA_VERSION)
        self._end_left_open()

    def _check_whole(self) -> None:
        """Raises sqlite3.DatabaseError for a file whose pages do not hang together. Reads all of
        it, so that damage is found here and not in the middle of a run."""
        found = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            error = sqlite3.DatabaseError(" ".join(found.split()))
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error

    def _end_left_open(self) -> None:
        self._db.create_function("after_session_end", 1, after_session_end)
        _, low, bits = PARTS["outcome"]
        with self._transaction() as db:
            left = db.execute("SELECT id FROM sessions WHERE ended_ms IS NULL").fetchall()
            for session_id, in left:
                first = session_id << ROW_SERIAL_BITS
                db.execute(
                    "UPDATE epoch_rows SET ending = ending + ?, checksum = "
                    "after_session_end(checksum) WHERE (ending >> ?) & ? = ? AND id BETWEEN ? "
                    "AND ?", (SESSION_END, low, (1 << bits) - 1, Outcome.open, first,
                              first + (1 << ROW_SERIAL_BITS) - 1))
            db.execute("UPDATE sessions SET end_reason = 'collector stopped', ended_ms = "
                       "max(started_ms, ?) WHERE ended_ms IS NULL", (self._written_ms,))

    def _check_version(self, oldest: int) -> int:
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        version: int = self._db.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION:
            raise StoreError(f"store {self.path}: is a database of another program; use another "
                             f"file")
        if version > SCHEMA_VERSION:
            raise StoreError(f"store {self.path}: has schema version {version}, this rocetap "
                             f"reads {SCHEMA_VERSION}; use the rocetap that wrote it")
        if version < oldest:
            raise StoreError(f"store {self.path}: has schema version {version}, this rocetap "
                             f"reads {SCHEMA_VERSION}; a collector that opens it brings it up to "
                             f"date")
        return version

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

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            hint = "free space" if "full" in str(error) else "check the folder and its permissions"
            kind = StoreError
            if doing == "read":
                hint = "the file may be damaged"
            elif doing == "write" and _is_damage(error):
                kind = StoreDamagedError
                hint = "start the collector again: it keeps what can be read in a new file"
            raise kind(f"store {self.path}: cannot {doing}: {_text(error)}; {hint}") from error


def _written_ms(place: Path) -> int:
    """When something was last written to a store, ms since 1970-01-01 UTC; 0 for none."""
    times = [0]
    for name in (place, place.with_name(place.name + "-wal")):
        with suppress(OSError):
            times.append(name.stat().st_mtime_ns // 1_000_000)
    return max(times)


def _latest(batches: Sequence[tuple[int, Batch]]) -> dict[tuple[int, int], Records]:
    """The newest row of each epoch, by session and domain: one write for many changes."""
    parts: dict[tuple[int, int], list[Records]] = {}
    for session_id, batch in batches:
        for domain, epochs in batch.epochs:
            parts.setdefault((session_id, domain), []).append(epochs)
    latest = {}
    for origin, some in parts.items():
        moved = words(some[0]) if len(some) == 1 else np.concatenate(list(map(words, some)))
        serials = np.ascontiguousarray(as_rows(moved)["serial"])
        if not (serials[1:] > serials[:-1]).all():
            newest = len(serials) - 1 - np.unique(serials[::-1], return_index=True)[1]
            moved = moved[newest]
        latest[origin] = as_rows(moved)
    return latest


def _is_damage(error: Exception) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


def _text(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
