import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from rocetap.collect.filters import Filters
from rocetap.collect.schema import SCHEMA_VERSION
from rocetap.collect.session import CollectorSession
from rocetap.collect.settings import CollectorSettings
from rocetap.collect.store import SqliteStore, StoreError
from support.ipfix_tools import address, opened, readings, reports

TIME = 1_700_000_000


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a store" / "store.db"


@pytest.fixture
def store(path):
    path.parent.mkdir()
    store = SqliteStore(path)
    yield store
    store.close()


def _fill(store, *batches, pfc=None, end=True):
    exporter, start = opened()
    collector = CollectorSession(CollectorSettings())
    session_id = store.open_session("probe-1.example", "192.0.2.77", 32473, 1000)
    octets = start
    for rows in batches:
        octets += b"".join(exporter.sequence(rows, TIME))
    if pfc is not None:
        octets += b"".join(exporter.pfc(pfc, TIME))
    store.write([(session_id, collector.receive(octets, 2000))])
    if end:
        batch = collector.end()
        batch.ended = (3000, "closed by the exporter")
        store.write([(session_id, batch)])
    return session_id, exporter, collector


def test_a_sequence_row(store):
    rows = reports(1, flags=0x25, skipped=9, filled=2, expired=3, abandoned=4, repeated=1, late=2)
    _fill(store, rows)
    assert list(store.sequence_rows()) == [{
        "record": "sequence",
        "observationPointId": 7,
        "sourceIPv4Address": "192.0.2.1",
        "destinationIPv4Address": "198.51.100.2",
        "rdmaDestinationQP": 0x012345,
        "rdmaPartitionKey": 65535,
        "flowStartMilliseconds": 1_700_000_000_000,
        "flowEndMilliseconds": 1_700_000_000_500,
        "rdmaSequenceEpochId": 1,
        "rdmaSequenceReportId": 1,
        "rdmaSequenceWindow": 64,
        "rdmaSequenceFlags": 0x25,
        "skippedPsnTotalCount": 9,
        "filledPsnTotalCount": 2,
        "expiredPsnTotalCount": 3,
        "abandonedPsnTotalCount": 4,
        "pendingPsnCount": 0,
        "repeatedPsnTotalCount": 1,
        "requestPacketTotalCount": 10,
        "unclassifiedLatePacketTotalCount": 2,
        "outcome": "complete",
        "qualifications": [],
        "reportsReceived": 1,
        "reportsMissing": 0,
        "transportSession": 1,
        "observationDomainId": 1,
        "exporter": "probe-1.example",
    }]


def test_ipv6_and_vlan_keys(store):
    rows = reports(2, ipv6=True, source=address(0x20, 1, 0x0D, 0xB8, *[0] * 11, 1),
                   destination=address(0xFE, 0x80, *[0] * 13, 9), vid=[0, 100], cvid=[0, 12])
    _fill(store, rows)
    plain, tagged = store.sequence_rows()
    assert plain["sourceIPv6Address"] == "2001:db8::1"
    assert plain["destinationIPv6Address"] == "fe80::9"
    assert "sourceIPv4Address" not in plain
    assert "dot1qVlanId" not in plain
    assert (tagged["dot1qVlanId"], tagged["dot1qCustomerVlanId"]) == (100, 12)


def test_one_row_an_epoch_its_latest_report(store):
    _fill(store, reports(3), reports(3, report_id=2, requests=20),
          reports(1, first_epoch=2, report_id=3, requests=30, flags=0x21))
    rows = list(store.sequence_rows())
    assert [(row["rdmaSequenceEpochId"], row["requestPacketTotalCount"], row["outcome"])
            for row in rows] == [(1, 20, "incomplete"), (2, 30, "complete"), (3, 20, "incomplete")]
    assert [row.get("endReason") for row in rows] == ["session_end", None, "session_end"]


def test_gaps_and_invalid_epochs_say_so(store):
    _fill(store, reports(2), reports(1, report_id=4, flags=0x21, requests=40),
          reports(1, first_epoch=2, report_id=2, requests=3))
    gap, invalid = store.sequence_rows()
    assert (gap["outcome"], gap["qualifications"], gap["reportsMissing"]) == (
        "incomplete", ["reportGap"], 2)
    assert (invalid["outcome"], invalid["invalidReason"]) == ("invalid", "total_decreased")
    assert invalid["requestPacketTotalCount"] == 10


def test_an_epoch_without_an_accepted_report_has_no_counters(store):
    _fill(store, reports(1, skipped=5))
    row, = store.sequence_rows()
    assert row["outcome"] == "invalid"
    assert row["rdmaDestinationQP"] == 0x012345
    assert "skippedPsnTotalCount" not in row
    assert "rdmaSequenceReportId" not in row


def test_whole_64_bits(store):
    most = (1 << 64) - 1
    _fill(store, reports(1, observation_point=most, requests=most, repeated=most - 1),
          pfc=readings(1, total=most))
    row, = store.sequence_rows()
    assert row["observationPointId"] == row["requestPacketTotalCount"] == most
    assert row["repeatedPsnTotalCount"] == most - 1
    assert next(store.pfc_rows())["pfcControlFrameTotalCount"] == most


def test_pfc_rows(store):
    _fill(store, pfc=readings(2, transmitted=[0, 1], total=[5, 6]))
    received, transmitted = store.pfc_rows()
    assert received == {
        "record": "pfc", "observationPointId": 7, "ingressPhysicalInterface": 2,
        "pfcPriority": 0, "observationTimeMilliseconds": 1_700_000_000_123,
        "pfcControlFrameTotalCount": 5, "transportSession": 1, "observationDomainId": 1,
        "exporter": "probe-1.example"}
    assert transmitted["egressPhysicalInterface"] == 2
    assert "ingressPhysicalInterface" not in transmitted


def test_sessions_drops_and_raw_records(store):
    session_id, _, _ = _fill(store, reports(1), reports(1, report_id=2, requests=3))
    _fill(store, reports(1), reports(1, report_id=2, requests=3))
    assert next(store.session_rows()) == {
        "id": session_id, "exporter": "probe-1.example", "address": "192.0.2.77", "pen": 32473,
        "started_ms": 1000, "ended_ms": 3000, "end_reason": "closed by the exporter"}
    assert [row["count"] for row in store.dropped_rows()
            if row["reason"] == "epoch.invalid"] == [1, 1]
    raw = next(store.raw_rows())
    assert (raw["epoch_id"], raw["rule"], len(raw["octets"])) == (1, "total_decreased", 120)


def test_drops_of_one_session_add_up(store):
    session_id, exporter, collector = _fill(store, reports(1), end=False)
    for _ in range(3):
        octets = b"".join(exporter.pfc(readings(1), TIME))
        batch = collector.receive(octets, 2000)
        batch.counters["report.stale"] += 2
        store.write([(session_id, batch)])
    assert list(store.dropped_rows()) == [
        {"session_id": session_id, "reason": "report.stale", "count": 6,
         "exporter": "probe-1.example"}]


def test_a_reader_beside_the_writer(store, path):
    _fill(store, reports(1), end=False)
    reader = SqliteStore(path, read_only=True)
    assert [row["outcome"] for row in reader.sequence_rows()] == ["open"]
    _fill(store, reports(1, flags=0x21))
    assert len(list(reader.sequence_rows())) == 2
    with pytest.raises(StoreError, match="cannot write: attempt to write a readonly database"):
        reader.open_session("x", "y", 1, 1)
    reader.close()


def test_a_second_writer_is_refused(store, path):
    with pytest.raises(StoreError) as caught:
        SqliteStore(path)
    assert str(caught.value) == (f"store {path}: another collector writes to it; stop that one or "
                                 f"use another file")


def test_what_a_killed_collector_left_open_becomes_incomplete(store, path):
    _fill(store, reports(2, flags=[0x20, 0x21]), end=False)
    store.close()
    again = SqliteStore(path)
    assert [row["outcome"] for row in again.sequence_rows()] == ["incomplete", "complete"]
    assert [row["end_reason"] for row in again.session_rows()] == ["collector stopped"]
    again.close()


def test_what_a_killed_collector_left_open_ended_when_it_last_wrote(store, path):
    """A query for the time after its start still finds the session, and what was dropped in it."""
    _fill(store, reports(2), end=False)
    began = next(iter(store.session_rows()))["started_ms"]
    store.close()
    os.utime(path, (5_000_000, 5_000_000))
    again = SqliteStore(path)
    session, = again.reader().sessions(Filters(since_ms=began + 1))
    assert session["ended_ms"] == 5_000_000_000
    again.close()


def test_a_kill_9_loses_nothing_that_was_written(path, tmp_path):
    """A process writes batches and says so after each; killed in the middle, all it spoke of are
    in the store, and the store opens."""
    path.parent.mkdir()
    program = tmp_path / "writer.py"
    program.write_text(textwrap.dedent(f"""
        import sys
        sys.path[:0] = {[str(Path(__file__).parents[2])]!r}
        from support.ipfix_tools import opened, reports
        from rocetap.collect.session import CollectorSession
        from rocetap.collect.store import SqliteStore
        store = SqliteStore({str(path)!r})
        session_id = store.open_session("probe", "here", 32473, 1)
        exporter, start = opened()
        collector = CollectorSession()
        collector.receive(start, 1)
        for turn in range(10_000):
            rows = reports(20, first_epoch=1 + 20 * turn, flags=0x21)
            octets = b"".join(exporter.sequence(rows, 1))
            store.write([(session_id, collector.receive(octets, 1))])
            print(turn + 1, flush=True)
    """))
    for _ in range(3):
        path.unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE,
                              text=True) as process:
            spoken = int(process.stdout.readline())
            time.sleep(0.15)
            os.kill(process.pid, signal.SIGKILL)
            spoken = max([spoken, *map(int, process.stdout.read().split())])
        store = SqliteStore(path)
        rows = list(store.sequence_rows())
        assert len(rows) >= 20 * spoken
        assert len(rows) % 20 == 0
        assert all(row["outcome"] == "complete" for row in rows)
        store.close()


def test_a_full_disk_is_one_clear_error_and_storing_goes_on_when_there_is_room(store, path):
    session_id, exporter, collector = _fill(store, reports(10, flags=0x21), end=False)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    octets = b"".join(exporter.sequence(reports(2000, first_epoch=11, flags=0x21), TIME))
    batch = collector.receive(octets, 2000)
    with pytest.raises(StoreError) as caught:
        store.write([(session_id, batch)])
    assert str(caught.value) == (
        f"store {path}: cannot write: database or disk is full; free space")
    assert len(list(store.sequence_rows())) == 10
    store._db.execute("PRAGMA max_page_count = 1000000")
    store.write([(session_id, batch)])
    assert len(list(store.sequence_rows())) == 2010


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path):
    missing = tmp_path / "none" / "store.db"
    with pytest.raises(StoreError) as caught:
        SqliteStore(missing)
    assert str(caught.value) == (f"store {missing}: cannot open: No such file or directory; check "
                                 f"the folder and its permissions")
    with pytest.raises(StoreError) as caught:
        SqliteStore(missing, read_only=True)
    assert str(caught.value) == (f"store {missing}: cannot open: unable to open database file; "
                                 f"check the folder and its permissions")


def test_other_files_are_refused(tmp_path):
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    before = foreign.read_bytes()
    with pytest.raises(StoreError) as caught:
        SqliteStore(foreign)
    assert str(caught.value) == (f"store {foreign}: is a database of another program; use another "
                                 f"file")
    assert foreign.read_bytes() == before
    text = tmp_path / "text.db"
    text.write_text("no database at all, but long enough to look like something\n" * 20)
    with pytest.raises(StoreError) as caught:
        SqliteStore(text)
    assert str(caught.value) == f"store {text}: is no database; give another file"
    with pytest.raises(StoreError) as caught:
        SqliteStore(text, read_only=True)
    assert str(caught.value) == f"store {text}: is no database; give the store of a collector"
    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(StoreError) as caught:
        SqliteStore(empty, read_only=True)
    assert str(caught.value) == f"store {empty}: is empty; give the store of a collector"
    SqliteStore(empty).close()
    SqliteStore(empty, read_only=True).close()


def test_another_schema_version_is_refused(store, path):
    store._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    store.close()
    with pytest.raises(StoreError) as caught:
        SqliteStore(path)
    assert str(caught.value) == (f"store {path}: has schema version 4, this rocetap reads 3; use "
                                 f"the rocetap that wrote it")


def test_a_folder_is_no_store(tmp_path):
    with pytest.raises(StoreError) as caught:
        SqliteStore(tmp_path)
    assert str(caught.value) == f"store {tmp_path}: is no regular file; give another one"
