"""rocetap query: what a store holds."""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import ipaddress
import os
import re
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, TextIO

import typer

from rocetap.cli.common import beside_store, one_line_errors
from rocetap.cli.output import (
    latest_readings,
    note,
    print_jsonl,
    print_records,
    print_tables,
)
from rocetap.cli.progress import shown_progress
from rocetap.errors import RocetapError
from rocetap.files import refuse_input, written
from rocetap.spec.elements import DEFAULT_PEN
from rocetap.spec.flags import SequenceFlag
from rocetap.wording import counted

__all__ = ["OutputFormat", "RecordKind", "parse_time", "query"]

_TABLE_ROWS: Final = 500
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class OutputFormat(StrEnum):
    table = "table"
    jsonl = "jsonl"
    csv = "csv"
    ipfix = "ipfix"


class RecordKind(StrEnum):
    sequence = "sequence"
    pfc = "pfc"
    raw = "raw"
    dropped = "dropped"
    sessions = "sessions"


class OutcomeName(StrEnum):
    open = "open"
    complete = "complete"
    incomplete = "incomplete"
    invalid = "invalid"


class FlagName(StrEnum):
    finalEpoch = "finalEpoch"
    profileViolation = "profileViolation"
    captureDiscontinuity = "captureDiscontinuity"
    stateExhaustion = "stateExhaustion"
    serialDiscontinuity = "serialDiscontinuity"
    generationUnverified = "generationUnverified"


_MOST_32 = (1 << 32) - 1


def query(
    store: Annotated[Path, typer.Argument(
        help="Store of a collector, or an IPFIX File, which is validated anew.")],
    record: Annotated[list[RecordKind] | None, typer.Option(
        help="What to show; may be repeated. Without it epochs and PFC readings, as far as the "
        "filters fit them.")] = None,
    format: Annotated[OutputFormat, typer.Option(
        help="ipfix writes an IPFIX File (RFC 5655).")] = OutputFormat.table,
    output: Annotated[Path | None, typer.Option(
        help="File to write instead of standard output; ipfix needs it.")] = None,
    address: Annotated[list[str] | None, typer.Option(
        help="Source or destination: an address or a network such as 192.0.2.0/24.")] = None,
    qp: Annotated[list[str] | None, typer.Option(
        help="Destination queue pair, decimal or 0x hex.")] = None,
    pkey: Annotated[list[str] | None, typer.Option(
        help="Partition key, decimal or 0x hex.")] = None,
    outcome: Annotated[list[OutcomeName] | None, typer.Option(help="Outcome of the epoch.")] = None,
    flag: Annotated[list[FlagName] | None, typer.Option(
        help="Flag of the latest report; of several, all.")] = None,
    since: Annotated[str | None, typer.Option(
        help="Nothing that ended before: 2026-01-31T08:00Z, or 15m, 2h, 7d ago.")] = None,
    until: Annotated[str | None, typer.Option(
        help="Nothing that began at that time or later; as --since.")] = None,
    exporter: Annotated[list[str] | None, typer.Option(help="Name of the exporter.")] = None,
    session: Annotated[list[int] | None, typer.Option(
        min=0, max=_MOST_32, help="Transport Session.")] = None,
    domain: Annotated[list[int] | None, typer.Option(
        min=0, max=_MOST_32, help="Observation Domain.")] = None,
    interface: Annotated[list[int] | None, typer.Option(
        min=0, max=_MOST_32, help="Physical interface of PFC readings.")] = None,
    priority: Annotated[list[int] | None, typer.Option(
        min=0, max=7, help="Priority of PFC readings.")] = None,
    limit: Annotated[int | None, typer.Option(
        min=1, max=_MOST_32,
        help=f"Rows of each kind at the most; a table shows {_TABLE_ROWS} without it."),
    ] = None,
    pen: Annotated[int, typer.Option(
        min=0, max=_MOST_32,
        help="Private Enterprise Number, for an IPFIX File that is read.")] = DEFAULT_PEN,
) -> None:
    """Show what a collector has stored. Reads only, also while the collector writes.

    Filters of different kinds must all hold; of one that is repeated, any value. What the result
    does not cover (epochs without a final report, what the collector passed over, damage of the
    file) is said on stderr.

    Examples:

      rocetap query flows.db

      rocetap query flows.db --outcome incomplete --outcome invalid --since 1h

      rocetap query flows.db --address 192.0.2.0/24 --qp 0x12 --format jsonl

      rocetap query flows.db --flag captureDiscontinuity --exporter probe-1

      rocetap query flows.db --record pfc --interface 1 --priority 3 --format csv --output pfc.csv

      rocetap query flows.db --record dropped

      rocetap query flows.db --session 7 --format ipfix --output session-7.ipfix

      rocetap query session-7.ipfix
    """
    from rocetap.collect.filters import Filters
    from rocetap.collect.outcomes import Outcome

    if output is not None:
        refuse_input("--output", output, "the store that is read", store)
        refuse_input("--output", output, "a part of the store that is read", *beside_store(store))
    now = datetime.datetime.now(datetime.UTC)
    filters = Filters(
        addresses=tuple(map(_network, address or ())), qps=_numbers("--qp", qp, 24),
        pkeys=_numbers("--pkey", pkey, 16),
        outcomes=tuple(Outcome[name] for name in outcome or ()),
        flags=sum({SequenceFlag[name] for name in flag or ()}),
        since_ms=parse_time("--since", since, now), until_ms=parse_time("--until", until, now),
        exporters=tuple(exporter or ()), sessions=tuple(session or ()),
        domains=tuple(domain or ()), interfaces=tuple(interface or ()),
        priorities=tuple(priority or ()))
    kinds = _kinds(record, filters, format)
    if format is OutputFormat.ipfix and output is None:
        raise RocetapError("--format ipfix writes octets: give a file with --output FILE")
    with one_line_errors(), _opened(store, pen) as (found, from_file):
        reader = found.reader()
        if format is OutputFormat.ipfix:
            assert output is not None
            _write_ipfix(reader, filters, output, kinds, limit)
        else:
            _print(reader, filters, kinds, format, output, limit)
        _say_what_is_missing(reader, filters, kinds)
        if from_file:
            _say_last_reports(reader, filters)


def parse_time(option: str, text: str | None, now: datetime.datetime) -> int | None:
    """ms since 1970-01-01 UTC of a point in time or an age; a time without an offset is UTC."""
    if text is None:
        return None
    age = re.fullmatch(r"(\d{1,9})([smhd])", text)
    if age:
        return int(now.timestamp() * 1000) - int(age[1]) * _UNITS[age[2]] * 1000
    try:
        point = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise RocetapError(f"{option} {text}: is no time; give one as 2026-01-31T08:00Z, or an "
                           "age as 15m, 2h or 7d") from None
    if point.tzinfo is None:
        point = point.replace(tzinfo=datetime.UTC)
    return int(point.timestamp() * 1000)


def _network(text: str) -> Any:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise RocetapError(f"--address {text}: {error}") from None


def _numbers(option: str, texts: list[str] | None, bits: int) -> tuple[int, ...]:
    numbers = []
    for text in texts or ():
        try:
            number = int(text, 0)
        except ValueError:
            number = -1
        if not 0 <= number < 1 << bits:
            raise RocetapError(f"{option} {text}: must be a number from 0 to {(1 << bits) - 1}, "
                               f"decimal or 0x hex")
        numbers.append(number)
    return tuple(numbers)


def _kinds(record: list[RecordKind] | None, filters: Any, format: OutputFormat) -> tuple[str, ...]:
    """The kinds asked for, or those of epochs and readings that all filters fit."""
    if record is None:
        wanted = [RecordKind.sequence] if format is OutputFormat.csv else [
            RecordKind.sequence, RecordKind.pfc]
        kinds = [kind for kind in wanted if not filters.idle(kind)]
        if not kinds:
            kinds = [kind for kind in (RecordKind.pfc,) if not filters.idle(kind)]
        if not kinds:
            raise RocetapError("these filters fit no kind of record together; choose one with "
                               "--record and leave the others out")
        return tuple(kinds)
    for kind in record:
        if idle := filters.idle(kind):
            raise RocetapError(f"--record {kind}: {_option(idle[0])} says nothing about such "
                               f"records; leave it out")
        if format is OutputFormat.ipfix and kind not in ("sequence", "pfc"):
            raise RocetapError(f"--record {kind}: is no IPFIX record of the profiles; choose "
                               f"another format")
    if format is OutputFormat.csv and len(record) > 1:
        raise RocetapError("--format csv takes one --record: their columns differ")
    return tuple(dict.fromkeys(record))


def _option(name: str) -> str:
    return "--" + {"addresses": "address", "priorities": "priority", "since_ms": "since",
                   "until_ms": "until"}.get(name, name.removesuffix("s"))


@contextlib.contextmanager
def _opened(path: Path, pen: int) -> Iterator[Any]:
    from rocetap.collect.archive import is_ipfix, recompute
    from rocetap.collect.settings import CollectorSettings
    from rocetap.collect.store import SqliteStore

    try:
        # A FIFO gives its octets once, and a look at it would wait for them.
        from_file = not path.is_fifo() and is_ipfix(path)
    except OSError as error:
        raise RocetapError(f"{path}: {error.strerror}; give the store of a collector") from None
    if not from_file:
        with contextlib.closing(SqliteStore(path, read_only=True)) as store:
            try:
                yield store, False
            except sqlite3.Error as error:
                raise RocetapError(f"{path}: cannot be read further: {error}") from None
        return
    with (tempfile.TemporaryDirectory(prefix="rocetap-") as folder,
          contextlib.closing(SqliteStore(Path(folder) / "store.db")) as store):
        failed: RocetapError | None = None
        try:
            with shown_progress() as progress:
                recompute(path, store, CollectorSettings(pen=pen), progress)
        except RocetapError as error:
            failed = error
        yield store, True
        if failed is not None:
            raise failed


def _print(reader: Any, filters: Any, kinds: tuple[str, ...], format: OutputFormat,
           output: Path | None, limit: int | None) -> None:
    if format is OutputFormat.table and limit is None:
        limit = _TABLE_ROWS
    found = {kind: _rows(reader, kind, filters) for kind in kinds}
    if format is OutputFormat.table and {"sequence", "pfc"} <= found.keys():
        # What that table shows of a counter is its latest reading, whatever came before it.
        found["pfc"] = iter(latest_readings(found["pfc"]))
    rows = {kind: _Limited(some, limit) for kind, some in found.items()}
    counts: Counter[str] = Counter()
    with _stream(output) as stream:
        if format is OutputFormat.table:
            _tables({kind: list(some) for kind, some in rows.items()}, stream, counts)
        elif format is OutputFormat.jsonl:
            for some in rows.values():
                print_jsonl(_counted(some, counts), stream)
        else:
            _csv(kinds[0], _counted(rows[kinds[0]], counts), stream)
    _say_outcomes(counts)
    for kind in kinds:
        if limit is not None and next(rows[kind], None) is not None:
            note(f"more {kind} rows match than the {limit} shown; see --limit")


class _Limited(Iterator[Any]):
    """The first rows; after them `next` still tells whether there are more."""

    def __init__(self, rows: Iterator[Any], limit: int | None) -> None:
        self._rows, self._first = rows, islice(rows, limit)

    def __iter__(self) -> Iterator[Any]:
        return self._first

    def __next__(self) -> Any:
        return next(self._rows)


def _rows(reader: Any, kind: str, filters: Any) -> Iterator[dict[str, Any]]:
    from rocetap.collect.rows import dropped_row, raw_row, session_row

    if kind == "sequence":
        return iter(reader.sequence(filters))
    if kind == "pfc":
        return iter(reader.pfc(filters))
    shape: Callable[[dict[str, Any]], dict[str, Any]] = {
        "raw": raw_row, "dropped": dropped_row, "sessions": session_row}[kind]
    return map(shape, getattr(reader, kind)(filters))


@contextlib.contextmanager
def _stream(output: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that is there whole or not at all."""
    if output is None:
        try:
            yield sys.stdout
            sys.stdout.flush()
        except BrokenPipeError:  # as with `| head`: what reads has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    with written(output) as octets:
        stream = io.TextIOWrapper(octets, encoding="utf-8", newline="", write_through=True)
        try:
            yield stream
        finally:
            stream.detach()


def _tables(rows: dict[str, list[dict[str, Any]]], stream: TextIO, counts: Counter[str]) -> None:
    for row in rows.get("sequence", ()):
        counts[row["outcome"]] += 1
    if "sequence" in rows:
        print_tables(rows["sequence"], rows.get("pfc", []), stream)
    for kind, some in rows.items():
        if kind != "sequence" and not (kind == "pfc" and "sequence" in rows):
            print_records(kind, some, stream)


def _csv(kind: str, rows: Iterable[dict[str, Any]], stream: TextIO) -> None:
    """A header with every column that any row of the kind may have, also without rows."""
    from rocetap.collect.rows import ROW_NAMES

    writer = csv.DictWriter(stream, ROW_NAMES[kind], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: " ".join(value) if isinstance(value, list) else value
                         for name, value in row.items()})


def _counted(rows: Iterable[dict[str, Any]], counts: Counter[str]) -> Iterator[dict[str, Any]]:
    for row in rows:
        if "outcome" in row:
            counts[row["outcome"]] += 1
        yield row


def _write_ipfix(
    reader: Any, filters: Any, output: Path, kinds: tuple[str, ...], limit: int | None,
) -> None:
    from rocetap.collect.archive import write_archive

    with written(output) as file:
        put = write_archive(reader, filters, file, kinds, limit)
    note(f"{output}: {counted(put.epochs, 'epoch')}, {counted(put.readings, 'PFC reading')}")
    if put.last_report_only:
        note(f"{counted(put.last_report_only, 'complete epoch')} of more than one report: the file "
             f"holds the last report of each, so whoever reads it finds them incomplete")
    for kind in put.cut:
        note(f"more {kind} rows match than the {limit} written; see --limit")
    for why, count in put.left_out.items():
        note(f"left out: {counted(count, 'epoch')} {why}")


def _say_outcomes(counts: Counter[str]) -> None:
    """The outcomes that do not cover their epoch."""
    total = sum(counts.values())
    parts = [f"{counts[name]} {name}" for name in ("incomplete", "invalid", "open") if counts[name]]
    if parts:
        note(f"of {counted(total, 'epoch')} shown {', '.join(parts)}: their counters do not cover "
             f"the whole epoch")


def _say_last_reports(reader: Any, filters: Any) -> None:
    """Of a file: epochs that are closed and of which nothing but the last report is in it."""
    from rocetap.collect.outcomes import Qualification

    count = sum(1 for row in reader.epochs(filters) if row["reports"] == 1 and row["flags"] & 1
                and row["qualifications"] == Qualification.firstReportMissing)
    if count:
        note(f"{counted(count, 'epoch')} with a final report and none before it in the file: "
             f"incomplete here, whatever the outcome was where all reports were received")


def _say_what_is_missing(reader: Any, filters: Any, kinds: tuple[str, ...]) -> None:
    dropped: Counter[str] = Counter()
    for row in reader.dropped(filters):
        dropped[row["reason"]] += row["count"]
    if dropped and "dropped" not in kinds:
        note("passed over or dropped by the collector in these sessions: "
             + ", ".join(f"{reason} {count}" for reason, count in sorted(dropped.items()))
             + "; see --record dropped")
    for file in sorted({row["file"] for row in reader.set_aside()}):
        note(f"data is missing: the store was damaged once, what could not be kept of it is in "
             f"{file}")
    if reader.damage:
        note("data is missing: the store is damaged; passed over: "
             + ", ".join(counted(count, what) for what, count in sorted(reader.damage.items())))
