"""rocetap query: what is printed, what is said to be missing, what is refused."""

import contextlib
import csv
import datetime
import io
import json
import os
import sqlite3
import subprocess
import sys

import pytest

from rocetap.cli import main
from rocetap.cli.query import parse_time
from rocetap.collect.store import SqliteStore
from rocetap.errors import RocetapError
from rocetap.ipfix.exporting import ExportingSession
from support.ipfix_tools import dump, readings, reports
from support.store_bench import fill

NOW = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A store with every kind of row, whose writer is still there."""
    path = tmp_path_factory.mktemp("stores") / "flows.db"
    store = SqliteStore(path)
    rows = reports(4, flags=[0x21, 0x25, 0x20, 0x21], qp=[1, 2, 3, 4])
    rows["ipv6"][3] = 1
    fill(store, rows, reports(1, first_epoch=3, report_id=2, requests=1, qp=3), pfc=readings(8))
    fill(store, reports(2, flags=0x21), exporter="probe-2.example", domain=2)
    yield path
    store.close()


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main(["query", *map(str, arguments)])
    assert left.value.code == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


def fails(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main(["query", *map(str, arguments)])
    assert caught.value.code not in (0, None)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.strip().splitlines()[-1].removeprefix("rocetap: error: ")


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_jsonl_has_epochs_and_readings_and_says_what_is_missing(capsys, path):
    out, err = run(capsys, path, "--format", "jsonl")
    rows = lines(out)
    assert [row["record"] for row in rows] == ["sequence"] * 6 + ["pfc"] * 8
    assert [row["outcome"] for row in rows[:6]] == [
        "complete", "complete", "invalid", "complete", "complete", "complete"]
    assert err.splitlines() == [
        "rocetap: of 6 epochs shown 1 invalid: their counters do not cover the whole epoch",
        "rocetap: passed over or dropped by the collector in these sessions: epoch.invalid 1; "
        "see --record dropped"]


def test_filters_choose_and_readings_go_when_no_filter_fits_them(capsys, path):
    out, err = run(capsys, path, "--format", "jsonl", "--qp", "0x2", "--flag",
                   "captureDiscontinuity", "--session", 1)
    assert [(row["rdmaDestinationQP"], row["rdmaSequenceFlags"]) for row in lines(out)] == [
        (2, 0x25)]
    assert "epochs shown" not in err
    out, _ = run(capsys, path, "--format", "jsonl", "--exporter", "probe-2.example",
                 "--address", "192.0.2.0/24", "--outcome", "complete")
    assert [row["transportSession"] for row in lines(out)] == [2, 2]
    out, _ = run(capsys, path, "--format", "jsonl", "--priority", 3)
    assert [row["pfcPriority"] for row in lines(out)] == [3]
    assert run(capsys, path, "--format", "jsonl", "--since", "1h")[0] == ""


@pytest.mark.parametrize(("kind", "expected"), [
    ("raw", {"record": "raw", "rule": "total_decreased", "rdmaSequenceEpochId": 3}),
    ("dropped", {"record": "dropped", "reason": "epoch.invalid", "count": 1}),
    ("sessions", {"record": "session", "exporter": "probe-1.example",
                  "endReason": "closed by the exporter", "startedMilliseconds": 1000}),
])
def test_other_kinds(capsys, path, kind, expected):
    out, _ = run(capsys, path, "--record", kind, "--format", "jsonl")
    first = lines(out)[0]
    assert expected.items() <= first.items()
    table, _ = run(capsys, path, "--record", kind)
    assert all(str(value) in table for name, value in expected.items() if name != "record")


def test_csv_has_one_kind_and_all_its_columns(capsys, path):
    out, _ = run(capsys, path, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 6
    assert rows[0]["sourceIPv4Address"] == "192.0.2.1"
    assert rows[0]["sourceIPv6Address"] == ""
    assert rows[3]["sourceIPv4Address"] == ""
    assert rows[3]["sourceIPv6Address"] != ""
    assert rows[2]["invalidReason"] == "total_decreased"
    out, _ = run(capsys, path, "--record", "pfc", "--format", "csv")
    assert [row["pfcControlFrameTotalCount"] for row in csv.DictReader(io.StringIO(out))] == [
        str(1000 * n) for n in range(8)]


@pytest.mark.parametrize("kind", ["sequence", "pfc", "raw", "dropped", "sessions"])
def test_csv_without_rows_has_the_same_header(capsys, path, kind):
    full, _ = run(capsys, path, "--format", "csv", "--record", kind)
    assert len(full.splitlines()) > 1
    empty, _ = run(capsys, path, "--format", "csv", "--record", kind, "--exporter", "nobody")
    assert empty.splitlines() == full.splitlines()[:1]


def test_tables(capsys, path):
    out, _ = run(capsys, path)
    assert "192.0.2.1" in out
    assert "invalid (total_decreased)" in out
    assert "PFC frames by port and priority" in out
    out, err = run(capsys, path, "--limit", 2)
    assert out.count("192.0.2.1") == 2
    assert "rocetap: more sequence rows match than the 2 shown; see --limit" in err


def test_the_table_has_the_latest_of_more_readings_than_it_has_rows(capsys, tmp_path):
    """A counter is where its exporter, domain and observation point are: two are never one row."""
    path = tmp_path / "flows.db"
    store = SqliteStore(path)
    fill(store, pfc=readings(8 * 70, total=range(8 * 70)))
    fill(store, pfc=readings(8, total=range(9000, 9008)), exporter="probe-2.example")
    store.close()
    out, err = run(capsys, path)
    rows = [line.split() for line in out.splitlines() if " received " in line]
    assert rows == [["probe-1.example", "2", "received", *map(str, range(552, 560))],
                    ["probe-2.example", "2", "received", *map(str, range(9000, 9008))]]
    assert "more pfc rows" not in err


def test_no_output_uses_the_forbidden_words(capsys, path):
    text = ""
    for kind in ("sequence", "pfc", "raw", "dropped", "sessions"):
        for form in ("table", "jsonl", "csv"):
            text += "".join(run(capsys, path, "--record", kind, "--format", form))
    for word in ("lost", "loss", "retransmi", "reorder", "duplicate"):
        assert word not in text.lower()


def test_a_file_is_written_whole_or_not_at_all(capsys, path, tmp_path):
    out, _ = run(capsys, path, "--format", "jsonl", "--output", tmp_path / "out.jsonl")
    assert out == ""
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 14
    missing = tmp_path / "none" / "out.jsonl"
    assert fails(capsys, path, "--format", "jsonl", "--output", missing) == (
        f"cannot write {missing}: No such file or directory")
    assert [file.name for file in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_reader_that_stops_early_is_no_error(path):
    done = subprocess.run(
        f"'{sys.executable}' -m rocetap.cli query '{path}' --format jsonl | head -c 20",
        shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == '{"record": "sequence'
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


# IPFIX Files


def test_an_ipfix_file_read_back_gives_the_same_epochs(capsys, path, tmp_path):
    file = tmp_path / "flows.ipfix"
    _, err = run(capsys, path, "--format", "ipfix", "--output", file)
    assert err.splitlines()[:2] == [f"rocetap: {file}: 5 epochs, 8 PFC readings",
                                    "rocetap: left out: 1 epoch invalid"]
    out, err = run(capsys, file, "--format", "jsonl")
    assert "none before it in the file" not in err
    own = {"transportSession", "exporter", "reportsReceived"}
    back = [{k: v for k, v in row.items() if k not in own} for row in lines(out)]
    out, _ = run(capsys, path, "--format", "jsonl")
    was = [{k: v for k, v in row.items() if k not in own} for row in lines(out)
           if row.get("outcome") != "invalid"]
    assert back == was


def test_that_a_file_holds_the_last_reports_alone_is_said_on_both_sides(capsys, tmp_path):
    """An outcome rests on all reports; read anew from the last ones it is another."""
    store = SqliteStore(tmp_path / "flows.db")
    last = reports(2, report_id=2, flags=0x21, requests=20)
    fill(store, reports(2), last, reports(3, first_epoch=3, flags=0x21))
    store.close()
    file = tmp_path / "flows.ipfix"
    _, err = run(capsys, tmp_path / "flows.db", "--format", "ipfix", "--output", file)
    assert err.splitlines() == [
        f"rocetap: {file}: 5 epochs, 0 PFC readings",
        "rocetap: 2 complete epochs of more than one report: the file holds the last report of "
        "each, so whoever reads it finds them incomplete"]
    out, err = run(capsys, file, "--format", "jsonl")
    assert [row["outcome"] for row in lines(out)] == ["incomplete"] * 2 + ["complete"] * 3
    assert err.splitlines()[-1] == (
        "rocetap: 2 epochs with a final report and none before it in the file: incomplete here, "
        "whatever the outcome was where all reports were received")


@pytest.mark.independent
def test_ipfixdump_reads_the_file_with_our_names(capsys, path, tmp_path):
    file = tmp_path / "flows.ipfix"
    run(capsys, path, "--format", "ipfix", "--output", file, "--session", 1)
    text = dump(file.read_bytes(), tmp_path, "--rfc5610", "--data")
    assert text.count("rdmaSequenceEpochId : ") == 3
    assert text.count("pfcControlFrameTotalCount : ") == 8
    assert text.index("informationElementName") < text.index("requestPacketTotalCount : 10")


def test_a_limit_holds_for_an_ipfix_file_too(capsys, path, tmp_path):
    file = tmp_path / "flows.ipfix"
    _, err = run(capsys, path, "--format", "ipfix", "--output", file, "--session", 1, "--limit", 2)
    assert err.splitlines()[:3] == [
        f"rocetap: {file}: 2 epochs, 2 PFC readings",
        "rocetap: more sequence rows match than the 2 written; see --limit",
        "rocetap: more pfc rows match than the 2 written; see --limit"]
    out, _ = run(capsys, file, "--format", "jsonl")
    assert [row["record"] for row in lines(out)] == ["sequence"] * 2 + ["pfc"] * 2
    _, err = run(capsys, path, "--format", "ipfix", "--output", file, "--record", "pfc",
                 "--limit", 8)
    assert "more pfc rows" not in err


@pytest.mark.parametrize("time_ms", [1 << 42, (1 << 63) + 5, (1 << 64) - 1])
def test_a_reading_of_any_time_goes_into_an_ipfix_file(capsys, tmp_path, time_ms):
    """An exporter may send a time that no Export Time reaches; one such reading stops nothing."""
    path, file = tmp_path / "flows.db", tmp_path / "flows.ipfix"
    store = SqliteStore(path)
    fill(store, reports(1, flags=0x21), pfc=readings(2, time_ms=[time_ms, 1_700_000_000_000]))
    store.close()
    run(capsys, path, "--format", "ipfix", "--output", file)
    out, _ = run(capsys, file, "--format", "jsonl", "--record", "pfc")
    assert [row["observationTimeMilliseconds"] for row in lines(out)] == [
        time_ms, 1_700_000_000_000]


def test_an_observation_domain_of_two_sessions_needs_a_choice(capsys, tmp_path):
    store = SqliteStore(tmp_path / "two.db")
    for _ in range(2):
        fill(store, reports(2, flags=0x21))
    assert fails(capsys, tmp_path / "two.db", "--format", "ipfix", "--output",
                 tmp_path / "x.ipfix") == (
        "sessions 1 and 2 both used Observation Domain 1, and an IPFIX File holds one Transport "
        "Session; choose one with --session")
    assert not (tmp_path / "x.ipfix").exists()
    store.close()


def test_a_cut_or_damaged_ipfix_file_says_so(capsys, tmp_path):
    session = ExportingSession(1)
    octets = b"".join([*session.start(1), *session.sequence(reports(3, flags=0x21), 1)])
    cut = tmp_path / "cut.ipfix"
    cut.write_bytes(octets + b"\0\x0a\xff\xff")
    out, err = run(capsys, cut, "--format", "jsonl")
    assert len(lines(out)) == 3
    assert "ipfix.truncated_message 1" in err
    cut.write_bytes(octets + b"\0\x09\0\x20")
    with pytest.raises(SystemExit) as caught:
        main(["query", str(cut), "--format", "jsonl"])
    captured = capsys.readouterr()
    assert caught.value.code == 3
    assert len(lines(captured.out)) == 3
    assert captured.err.splitlines()[-1] == (
        f"rocetap: error: {cut}: message at octet {len(octets)} has version 9, must be 10; what "
        f"comes before it was read")


# What is refused


def test_a_store_that_is_not_there(capsys, tmp_path):
    assert fails(capsys, tmp_path / "no.db") == (
        f"{tmp_path / 'no.db'}: No such file or directory; give the store of a collector")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("arguments", "line"), [
    (["--address", "x"], "--address x: 'x' does not appear to be an IPv4 or IPv6 network"),
    (["--address", "192.0.2.1/24"], "--address 192.0.2.1/24: 192.0.2.1/24 has host bits set"),
    (["--qp", "0x1000000"],
     "--qp 0x1000000: must be a number from 0 to 16777215, decimal or 0x hex"),
    (["--pkey", "x"], "--pkey x: must be a number from 0 to 65535, decimal or 0x hex"),
    (["--since", "now"], "--since now: is no time; give one as 2026-01-31T08:00Z, or an age as "
                         "15m, 2h or 7d"),
    (["--record", "pfc", "--qp", "1"],
     "--record pfc: --qp says nothing about such records; leave it out"),
    (["--qp", "1", "--priority", "1"],
     "these filters fit no kind of record together; choose one with --record and leave the "
     "others out"),
    (["--format", "csv", "--record", "pfc", "--record", "raw"],
     "--format csv takes one --record: their columns differ"),
    (["--format", "ipfix"], "--format ipfix writes octets: give a file with --output FILE"),
    (["--format", "ipfix", "--record", "raw"],
     "--record raw: is no IPFIX record of the profiles; choose another format"),
])
def test_options_that_cannot_be(capsys, path, arguments, line):
    assert fails(capsys, path, *arguments) == line


@pytest.mark.parametrize(("text", "expected"), [
    ("2026-01-31T08:00Z", 1_769_846_400_000), ("2026-01-31T08:00", 1_769_846_400_000),
    ("2026-01-31T09:00+01:00", 1_769_846_400_000), ("4h", 1_769_846_400_000),
    ("240m", 1_769_846_400_000), ("1d", 1_769_774_400_000), (None, None),
])
def test_times(text, expected):
    assert parse_time("--since", text, NOW) == expected


def test_a_time_that_is_none():
    with pytest.raises(RocetapError):
        parse_time("--since", "4 hours", NOW)


def test_damage_is_said(capsys, tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    fill(store, reports(3, flags=0x21))
    store._db.execute("UPDATE epoch_rows SET requests = requests + 1 WHERE epoch_id = 2")
    store._db.execute("INSERT INTO damage VALUES (1, 2, 'store.db.damaged-1', 'epochs', 3, 'x')")
    store.close()
    out, err = run(capsys, path, "--format", "jsonl")
    assert [row["rdmaSequenceEpochId"] for row in lines(out)] == [1, 3]
    assert err.splitlines() == [
        "rocetap: data is missing: the store was damaged once, what could not be kept of it is "
        "in store.db.damaged-1",
        "rocetap: data is missing: the store is damaged; passed over: 1 epoch"]


UNREADABLE, BLOB, TEXT, REAL = "CAST(x'fffe41' AS TEXT)", "x'00'", "'text'", "1.5"
DAMAGES = {
    "sessions": ("session", {
        "exporter": [UNREADABLE, BLOB], "address": [UNREADABLE], "pen": [TEXT, REAL],
        "started_ms": [TEXT, BLOB], "ended_ms": [UNREADABLE, REAL], "end_reason": [UNREADABLE]}),
    "raw_records": ("raw record", {
        "session_id": [TEXT], "domain": [BLOB], "epoch_id": [TEXT, REAL], "rule": [UNREADABLE],
        "fields": [UNREADABLE, BLOB], "octets": [TEXT, REAL]}),
    "dropped": ("drop count", {
        "session_id": [TEXT, BLOB], "reason": [UNREADABLE, BLOB], "count": [TEXT, REAL]}),
    "damage": ("note of damage", {
        "file": [UNREADABLE, BLOB], "rows_kept": [TEXT], "what": [UNREADABLE]}),
}


@pytest.fixture(scope="module")
def two_sessions(tmp_path_factory):
    """A store with two rows and more in each table."""
    path = tmp_path_factory.mktemp("two") / "store.db"
    store = SqliteStore(path)
    for number in (1, 2):
        fill(store, reports(2, flags=0x21), reports(1, report_id=2, skipped=3), domain=number)
        store._db.execute("INSERT INTO damage VALUES (?, 2, ?, 'epochs', 3, 'x')",
                          (number, f"old-{number}.db"))
    store.close()
    return path


@pytest.mark.parametrize(("table", "column", "value"), [
    (table, column, value) for table, (_, columns) in DAMAGES.items()
    for column, values in columns.items() for value in values])
def test_a_row_with_a_value_that_cannot_be_is_passed_over(
        capsys, tmp_path, two_sessions, table, column, value):
    """Undecodable text and other types, in the columns that no checksum guards: a line on stderr
    and all other rows, never a traceback."""
    path = tmp_path / "store.db"
    path.write_bytes(two_sessions.read_bytes())
    kind = {"raw_records": "raw", "damage": "sequence"}.get(table, table)
    before = lines(run(capsys, path, "--record", kind, "--format", "jsonl")[0])
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        where = "session_id = 1 AND reason = 'epoch.invalid'" if table == "dropped" else "rowid = 1"
        db.execute(f"UPDATE {table} SET {column} = {value} WHERE {where}")
    out, err = run(capsys, path, "--record", kind, "--format", "jsonl")
    assert len(lines(out)) == len(before) - (table != "damage")
    assert [row for row in lines(out) if row not in before] == []
    assert (f"data is missing: the store is damaged; passed over: 1 {DAMAGES[table][0]}"
            in err)
    for form in ("table", "csv"):
        out, err = run(capsys, path, "--record", kind, "--format", form)
        assert out
        assert f"passed over: 1 {DAMAGES[table][0]}" in err


@pytest.mark.parametrize("how", ["jsonl", "csv", "table"])
def test_the_store_is_never_its_own_output(capsys, tmp_path, how):
    """Also under another name: what is read would be replaced by what is written."""
    path, other = tmp_path / "flows.db", tmp_path / "other.db"
    SqliteStore(path).close()
    other.symlink_to(path)
    before = path.read_bytes()
    for output in (path, other):
        assert fails(capsys, path, "--format", how, "--output", output) == (
            f"--output {output}: is the store that is read; give another file")
    assert path.read_bytes() == before


@pytest.mark.parametrize("suffix", ["-wal", "-shm", ".lock"])
def test_what_lies_beside_the_store_is_no_output(capsys, tmp_path, suffix):
    path = tmp_path / "flows.db"
    with contextlib.closing(SqliteStore(path)):
        part = tmp_path / f"flows.db{suffix}"
        before = part.read_bytes()
        assert fails(capsys, path, "--format", "csv", "--output", part) == (
            f"--output {part}: is a part of the store that is read; give another file")
        assert part.read_bytes() == before


def test_a_fifo_is_no_store_and_nobody_waits_for_it(capsys, tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    assert fails(capsys, path) == f"store {path}: is no regular file; give another one"


def test_a_store_that_is_a_link_to_itself(capsys, tmp_path):
    path = tmp_path / "flows.db"
    path.symlink_to(path)
    assert fails(capsys, path, "--format", "csv", "--output", tmp_path / "x.csv") == (
        f"{path}: Too many levels of symbolic links; give the store of a collector")


@pytest.mark.parametrize(("content", "reason"), [
    (b"", "is empty; give the store of a collector"),
    (bytes(range(200)), "is no database; give the store of a collector"),
    (b"\xd4\xc3\xb2\xa1" + bytes(20), "is no database; give the store of a collector")])
def test_files_that_are_no_store(capsys, tmp_path, content, reason):
    path = tmp_path / "flows.db"
    path.write_bytes(content)
    assert fails(capsys, path) == f"store {path}: {reason}"


@pytest.mark.parametrize("arguments", [
    ("--domain", 1 << 63), ("--interface", 10 ** 20), ("--priority", 8), ("--session", 1 << 64),
    ("--limit", 10 ** 20), ("--pen", -1), ("--pen", 1 << 32), ("--since", "99999999999999999999d")])
def test_numbers_beyond_all_bounds_are_one_line(capsys, path, arguments):
    assert fails(capsys, path, *arguments)
