"""Schema of the SQLite store, version 1.

SQLite integers are signed: 64-bit values (ids, times, totals) stand in two's complement, so add
2^64 to a negative one. Times are ms since 1970-01-01 UTC. Addresses are blobs of 16 octets, IPv4
in the last four.

sessions      one Transport Session each; `ended_ms` is NULL while it lasts
epochs        one epoch each, its latest accepted report and its outcome; `reports` 0: none was
              accepted, so the counters say nothing
pfc_readings  readings as they came; no row means no reading, never zero
raw_records   records kept as they came: with unassigned flag bits, or what made an epoch invalid
dropped       what the collector passed over or dropped, by reason: no network fact
"""

from __future__ import annotations

from typing import Final

from ..ipfix.records import PFC_READING, SEQUENCE_REPORT

__all__ = [
    "EPOCH_COLUMNS", "PFC_COLUMNS", "REPORT_COLUMNS", "SCHEMA", "SCHEMA_VERSION",
]

SCHEMA_VERSION: Final = 1

_RESERVED: Final = {"reserved", "reserved2"}
REPORT_COLUMNS: Final = tuple(
    name for name in SEQUENCE_REPORT.names or () if name not in _RESERVED)
"""Columns of a report, as in SEQUENCE_REPORT."""
EPOCH_COLUMNS: Final = ("reports", "missing", "qualifications", "rule", "ended", "last_seen_ms")
"""Further columns of EPOCH; then follows `outcome`."""
PFC_COLUMNS: Final = tuple(name for name in PFC_READING.names or () if name not in _RESERVED)

_EPOCHS: Final = ", ".join(
    f"{name} {'BLOB' if name in ('source', 'destination') else 'INTEGER'} NOT NULL"
    for name in (*REPORT_COLUMNS, *EPOCH_COLUMNS, "outcome"))
_READINGS: Final = ", ".join(f"{name} INTEGER NOT NULL" for name in PFC_COLUMNS)

SCHEMA: Final = f"""
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, exporter TEXT NOT NULL, address TEXT NOT NULL, pen INTEGER NOT NULL,
    started_ms INTEGER NOT NULL, ended_ms INTEGER, end_reason TEXT);
CREATE TABLE epochs (
    session_id INTEGER NOT NULL, domain INTEGER NOT NULL, {_EPOCHS},
    PRIMARY KEY (session_id, domain, epoch_id)) WITHOUT ROWID;
CREATE TABLE pfc_readings (session_id INTEGER NOT NULL, domain INTEGER NOT NULL, {_READINGS});
CREATE TABLE raw_records (
    session_id INTEGER NOT NULL, domain INTEGER NOT NULL, epoch_id INTEGER NOT NULL,
    rule TEXT NOT NULL, fields TEXT NOT NULL, octets BLOB NOT NULL);
CREATE TABLE dropped (
    session_id INTEGER NOT NULL, reason TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (session_id, reason)) WITHOUT ROWID;
PRAGMA user_version = {SCHEMA_VERSION};
"""
