"""IPFIX Files (RFC 5655): a store's results as one, and one as a store.

A file is a Transport Session of its own: type records and Templates first, then the latest
accepted report of each epoch and the PFC readings. Reading it, or any other IPFIX File, applies
the collector's rules again (Collector Processing: offline recomputation from an explicit archive);
epochs of which it holds only the last report are incomplete there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from ..errors import RocetapError
from ..ipfix.exporting import ExportingSession
from .columns import readings_of, reports_of
from .filters import Filters
from .outcomes import Outcome
from .reading import StoreReader
from .session import CollectorSession
from .settings import CollectorSettings
from .store import SqliteStore

__all__ = ["ArchiveError", "Written", "is_ipfix", "recompute", "write_archive"]

_START: Final = b"\x00\x0a"
_PIECE: Final = 1 << 18
_ROWS: Final = 4096
_WIDE: Final = (1 << 64) - 1
_LAST_SECOND: Final = (1 << 32) - 1


class ArchiveError(RocetapError):
    """The rows do not fit in one IPFIX File, or a file cannot be read as one."""


@dataclass
class Written:
    """What went into a file, and what did not."""

    epochs: int = 0
    readings: int = 0
    last_report_only: int = 0
    """Complete epochs of more than one report: only the last one is in the file, so that whoever
    reads it finds the ones before missing."""
    left_out: Counter[str] = field(default_factory=Counter)
    cut: list[str] = field(default_factory=list)
    """Kinds of which there is more than the limit."""


def write_archive(
    reader: StoreReader, filters: Filters, file: BinaryIO, kinds: tuple[str, ...],
    limit: int | None = None,
) -> Written:
    """Writes what `filters` choose of `kinds` ("sequence", "pfc") as one IPFIX File, at the most
    `limit` records of each.

    Invalid epochs, and those without any accepted report, are left out and counted. Raises
    ArchiveError where two Transport Sessions used the same Observation Domain: their epoch ids
    would meet.
    """
    written = Written()
    pens = {row["id"]: row["pen"] for row in reader.sessions(Filters())}
    domains: dict[int, tuple[int, ExportingSession]] = {}

    def session_of(row: dict[str, Any], seconds: int) -> ExportingSession:
        origin, domain = row["session_id"], row["domain"]
        if domain not in domains:
            session = ExportingSession(domain, pens.get(origin, 0))
            domains[domain] = origin, session
            file.writelines(session.start(seconds))
        owner, session = domains[domain]
        if owner != origin:
            raise ArchiveError(
                f"sessions {owner} and {origin} both used Observation Domain {domain}, and an "
                f"IPFIX File holds one Transport Session; choose one with --session")
        return session

    if "sequence" in kinds:
        usable = _usable(reader.epochs(filters), written)
        for rows in _groups(_first(usable, limit, "sequence", written)):
            seconds = _export_time(rows, "last_seen_ms")
            file.writelines(session_of(rows[0], seconds).sequence(reports_of(rows), seconds))
            written.epochs += len(rows)
            written.last_report_only += sum(
                row["outcome"] == Outcome.complete and row["reports"] > 1 for row in rows)
    if "pfc" in kinds:
        for rows in _groups(_first(reader.readings(filters), limit, "pfc", written)):
            seconds = _export_time(rows, "time_ms")
            file.writelines(session_of(rows[0], seconds).pfc(readings_of(rows), seconds))
            written.readings += len(rows)
    return written


def is_ipfix(path: Path) -> bool:
    """Whether a file begins as an IPFIX message does."""
    with path.open("rb") as file:
        return file.read(2) == _START


def recompute(
    path: Path, store: SqliteStore, settings: CollectorSettings,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> None:
    """Puts an IPFIX File through the collector's rules into a store, as one Transport Session of
    an exporter called as the file.

    Raises ArchiveError where the file cannot be read on; what came before is in the store.
    """
    now = time.time_ns() // 1_000_000
    session_id = store.open_session(path.name, "file", settings.pen, now)
    session = CollectorSession(settings)
    total = path.stat().st_size
    done, error = 0, None
    with path.open("rb") as file:
        while error is None and (octets := file.read(_PIECE)):
            batch = session.receive(octets, now)
            store.write([(session_id, batch)])
            done += len(octets)
            error = batch.error
            progress("reading", done, total)
    batch = session.end()
    cut = batch.counters["ipfix.truncated_message"]
    batch.ended = now, "damaged" if error else "cut" if cut else "end of the file"
    store.write([(session_id, batch)])
    if error is not None:
        raise ArchiveError(f"{path}: {error}; what comes before it was read", exit_code=3)


def _export_time(rows: list[dict[str, Any]], column: str) -> int:
    """The latest time of some rows in seconds, as far as an Export Time reaches (RFC 7011, 3.1):
    an exporter may have sent any time."""
    latest: int = max(row[column] & _WIDE for row in rows)
    return min(latest // 1000, _LAST_SECOND)


def _first(
    rows: Iterator[dict[str, Any]], limit: int | None, kind: str, written: Written,
) -> Iterator[dict[str, Any]]:
    for count, row in enumerate(rows):
        if count == limit:
            written.cut.append(kind)
            return
        yield row


def _usable(rows: Iterator[dict[str, Any]], written: Written) -> Iterator[dict[str, Any]]:
    for row in rows:
        if not row["reports"]:
            written.left_out["without an accepted report"] += 1
        elif row["outcome"] == Outcome.invalid:
            written.left_out["invalid"] += 1
        else:
            yield row


def _groups(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Neighbours of one session and domain, a few thousand at a time."""
    group: list[dict[str, Any]] = []
    for row in rows:
        same = group and (row["session_id"], row["domain"]) == (
            group[0]["session_id"], group[0]["domain"])
        if group and (not same or len(group) == _ROWS):
            yield group
            group = []
        group.append(row)
    if group:
        yield group
