"""Schema of the SQLite store; docs/reference/store.md describes it for users.

SQLite integers are signed: 64-bit values (ids, times, totals) stand in two's complement, so add
2^64 to a negative one. Times are ms since 1970-01-01 UTC. Addresses are blobs of 16 octets, IPv4
in the last four. `checksum` is of the row, see `columns`.
"""

from __future__ import annotations

from typing import Final

from ..ipfix.records import PFC_READING, SEQUENCE_REPORT

__all__ = [
    "ADDRESSES", "APPLICATION", "EPOCHS_VIEW", "EPOCH_COLUMNS", "EPOCH_ROWS_TABLE", "PARTS",
    "PFC_COLUMNS", "PFC_TABLE", "REPORT_COLUMNS", "ROW_COLUMNS", "ROW_SERIAL_BITS", "SCHEMA",
    "SCHEMA_VERSION", "TABLES",
]

SCHEMA_VERSION: Final = 3
APPLICATION: Final = int.from_bytes(b"rtap", "big")
"""`PRAGMA application_id` of a store."""

ROW_SERIAL_BITS: Final = 36
"""Epochs are filed under session id * 2^36 + number of the epoch in its session, so that those of
one session stand together and in the order in which they were admitted."""

_RESERVED: Final = {"reserved", "reserved2"}
REPORT_COLUMNS: Final = tuple(
    name for name in SEQUENCE_REPORT.names or () if name not in _RESERVED)
"""Columns of a report, as in SEQUENCE_REPORT."""
EPOCH_COLUMNS: Final = ("reports", "missing", "qualifications", "rule", "ended", "last_seen_ms")
"""Further columns of EPOCH; then follow `outcome` and `checksum`."""
PFC_COLUMNS: Final = tuple(name for name in PFC_READING.names or () if name not in _RESERVED)

PARTS: Final[dict[str, tuple[str, int, int]]] = {
    "qp": ("qp_pkey_vid", 0, 32), "pkey": ("qp_pkey_vid", 32, 16), "vid": ("qp_pkey_vid", 48, 16),
    "cvid": ("cvid_ipv6_window", 0, 16), "ipv6": ("cvid_ipv6_window", 16, 1),
    "window": ("cvid_ipv6_window", 32, 32),
    "flags": ("flags_pending", 0, 16), "pending": ("flags_pending", 32, 32),
    "qualifications": ("ending", 0, 8), "rule": ("ending", 8, 8), "ended": ("ending", 16, 8),
    "outcome": ("ending", 24, 8),
}
"""Small numbers of an epoch that share one integer: name -> column of `epoch_rows`, lowest bit,
bits. What SQLite and Python do for each value is most of what a row costs."""

_VIEW_COLUMNS: Final = (
    "id", "session_id", "domain", *REPORT_COLUMNS, *EPOCH_COLUMNS, "outcome", "checksum")
ADDRESSES: Final = ("source", "destination")
"""They stand in one column of `epoch_rows`, one behind the other."""
ROW_COLUMNS: Final = tuple(dict.fromkeys(
    PARTS[name][0] if name in PARTS else "addresses" if name in ADDRESSES else name
    for name in _VIEW_COLUMNS if name != "session_id"))
"""Columns of `epoch_rows`."""


def _expression(name: str) -> str:
    """A column of the view `epochs`."""
    if name == "session_id":
        return f"id >> {ROW_SERIAL_BITS} AS session_id"
    if name in ADDRESSES:
        return f"substr(addresses, {'1, 16' if name == ADDRESSES[0] else '17'}) AS {name}"
    if name not in PARTS:
        return name
    column, low, bits = PARTS[name]
    return f"({column} >> {low}) & {(1 << bits) - 1} AS {name}"


_READINGS: Final = ", ".join(f"{name} INTEGER" for name in (*PFC_COLUMNS, "checksum"))
# No NOT NULL in these two, and no types in the first: each costs speed for every value, and the
# checksum finds as much.

EPOCH_ROWS_TABLE: Final = f"""CREATE TABLE epoch_rows (
    id INTEGER PRIMARY KEY, {", ".join(ROW_COLUMNS[1:])});"""
EPOCHS_VIEW: Final = f"""CREATE VIEW epochs AS SELECT
    {", ".join(map(_expression, _VIEW_COLUMNS))} FROM epoch_rows;"""
PFC_TABLE: Final = f"""CREATE TABLE pfc_readings (
    id INTEGER PRIMARY KEY, session_id INTEGER, domain INTEGER, {_READINGS});"""

TABLES: Final[dict[str, str]] = {
    "sessions": """CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, exporter TEXT NOT NULL, address TEXT NOT NULL, pen INTEGER NOT NULL,
    started_ms INTEGER NOT NULL, ended_ms INTEGER, end_reason TEXT);""",
    "epoch_rows": EPOCH_ROWS_TABLE,
    "pfc_readings": PFC_TABLE,
    "raw_records": """CREATE TABLE raw_records (
    session_id INTEGER NOT NULL, domain INTEGER NOT NULL, epoch_id INTEGER NOT NULL,
    rule TEXT NOT NULL, fields TEXT NOT NULL, octets BLOB NOT NULL);""",
    "dropped": """CREATE TABLE dropped (
    session_id INTEGER NOT NULL, reason TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (session_id, reason)) WITHOUT ROWID;""",
    "damage": """CREATE TABLE damage (
    id INTEGER PRIMARY KEY, found_ms INTEGER NOT NULL, file TEXT NOT NULL,
    table_name TEXT NOT NULL, rows_kept INTEGER NOT NULL, what TEXT NOT NULL);""",
}
"""Table -> its definition.

sessions      one Transport Session each; `ended_ms` is NULL while it lasts
epoch_rows    one epoch each, its latest accepted report and its outcome; `reports` 0: none was
              accepted, so the counters say nothing. To be read through the view `epochs`
pfc_readings  readings as they came; no row means no reading, never zero
raw_records   records kept as they came: with unassigned flag bits, or what made an epoch invalid
dropped       what the collector passed over or dropped, by reason: no network fact
damage        a damaged file that was set aside, and what of it could be kept
"""

SCHEMA: Final = "\n".join([
    *TABLES.values(), EPOCHS_VIEW, f"PRAGMA application_id = {APPLICATION};",
    f"PRAGMA user_version = {SCHEMA_VERSION};"])
"""An empty store."""
