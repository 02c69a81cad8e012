"""Stores of older versions, as those versions wrote them, brought up to date."""

import sqlite3
from pathlib import Path

import pytest

from rocetap.collect.filters import Filters
from rocetap.collect.migrations import OLDEST_VERSION, migrate
from rocetap.collect.schema import SCHEMA_VERSION, TABLES
from rocetap.collect.store import SqliteStore, StoreError
from support.ipfix_tools import reports
from support.store_bench import fill

DATA = Path(__file__).with_name("data")
MOST = (1 << 64) - 1


def _old(version, path):
    """A store as rocetap of that schema version left it: two sessions, the second one cut."""
    db = sqlite3.connect(path)
    db.executescript((DATA / f"store_v{version}.sql").read_text())
    db.close()
    return path


def _layout(path):
    db = sqlite3.connect(path)
    tables = {table: db.execute(f"PRAGMA table_xinfo({table})").fetchall()
              for table, in db.execute("SELECT name FROM sqlite_master")
              if not table.startswith("sqlite_")}
    numbers = [db.execute(f"PRAGMA {name}").fetchone()[0]
               for name in ("user_version", "application_id")]
    db.close()
    return tables, numbers


@pytest.mark.parametrize("version", range(OLDEST_VERSION, SCHEMA_VERSION))
def test_a_store_of_any_older_version_gets_the_schema_of_a_new_one(tmp_path, version):
    old = _old(version, tmp_path / "old.db")
    SqliteStore(old).close()
    SqliteStore(tmp_path / "new.db").close()
    assert _layout(old) == _layout(tmp_path / "new.db")
    assert set(_layout(old)[0]) == {*TABLES, "epochs"}


@pytest.fixture
def upgraded(tmp_path):
    store = SqliteStore(_old(1, tmp_path / "old.db"))
    yield store
    store.close()


def test_version_1_keeps_every_value(upgraded):
    reader = upgraded.reader()
    rows = list(reader.sequence(Filters()))
    assert not reader.damage
    assert [(row["transportSession"], row["rdmaSequenceEpochId"], row["outcome"])
            for row in rows] == [
        (1, 1, "complete"), (1, 2, "complete"), (1, 3, "incomplete"), (1, 4, "incomplete"),
        (1, 5, "invalid"), (1, 6, "complete"),
        (2, 1, "complete"), (2, 2, "complete"), (2, 3, "incomplete"), (2, 4, "incomplete"),
        (2, 5, "invalid"), (2, 6, "complete")]
    first, second, third, fourth, fifth, _ = rows[:6]
    assert first["requestPacketTotalCount"] == MOST
    assert first["repeatedPsnTotalCount"] == MOST - 1
    assert (second["sourceIPv6Address"], second["destinationIPv6Address"]) == (
        "2001:db8::1", "2001:db8::2")
    assert (second["skippedPsnTotalCount"], second["filledPsnTotalCount"]) == (5, 5)
    assert (third["dot1qVlanId"], third["endReason"]) == (100, "session_end")
    assert (fourth["qualifications"], fourth["reportsMissing"]) == (["firstReportMissing"], 2)
    assert fifth["invalidReason"] == "total_decreased"
    assert rows[8]["endReason"] == "session_end"
    assert [row["pfcControlFrameTotalCount"] for row in reader.pfc(Filters())] == [MOST, 6, 7] * 2
    assert [row["exporter"] for row in reader.raw(Filters())] == [
        "probe-1.example", "probe-2.example"]
    assert [row["count"] for row in reader.dropped(Filters())] == [1, 1]
    assert [row["end_reason"] for row in reader.sessions(Filters())] == [
        "closed by the exporter", "collector stopped"]
    assert not reader.damage


def test_version_2_keeps_every_value(tmp_path):
    path = _old(2, tmp_path / "old.db")
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    before = {row["id"]: dict(row) for row in db.execute("SELECT * FROM epochs")}
    db.close()
    assert len(before) == 15
    store = SqliteStore(path)
    reader = store.reader()
    after = {row["id"]: row for row in reader.epochs(Filters())}
    assert not reader.damage
    assert {key: {name: row[name] for name in before[key]} for key, row in after.items()} == before
    assert len(list(reader.pfc(Filters()))) == 8
    fill(store, reports(3, flags=0x21))
    assert [row["transportSession"] for row in store.sequence_rows()][-4:] == [3, 4, 4, 4]
    store.close()


def test_a_damaged_store_of_version_2_is_rescued(tmp_path):
    path = _old(2, tmp_path / "old.db")
    octets = bytearray(path.read_bytes())
    at = octets.index(b"probe-1.example")
    octets[at - 200:at - 100] = bytes(100)
    path.write_bytes(octets)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET rootpage = 9999 WHERE name = 'pfc_readings'")
    db.close()
    store = SqliteStore(path)
    assert len(list(store.sequence_rows())) == 15
    assert (tmp_path / "old.db.damaged-1").exists()
    store.close()


def test_epochs_of_two_domains_and_of_many_rows_keep_apart(tmp_path):
    path = _old(1, tmp_path / "old.db")
    db = sqlite3.connect(path)
    columns = [row[1] for row in db.execute("PRAGMA table_info(epochs)")]
    for domain in (2, 3):
        others = ", ".join({"domain": str(domain), "epoch_id": "epoch_id + n"}.get(name, name)
                           for name in columns)
        db.execute("WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 4999)"
                   f" INSERT INTO epochs SELECT {others} FROM epochs, c WHERE session_id = 1 AND "
                   "epoch_id = 1 AND domain = 1")
    db.commit()
    db.close()
    store = SqliteStore(path)
    reader = store.reader()
    found = [(row["observationDomainId"], row["rdmaSequenceEpochId"])
             for row in reader.sequence(Filters(sessions=(1,)))]
    assert found == [*((1, n) for n in range(1, 7)),
                     *((domain, n) for domain in (2, 3) for n in range(1, 5001))]
    assert not reader.damage
    store.close()


def test_an_upgraded_store_goes_on(upgraded):
    fill(upgraded, reports(3, flags=0x21))
    assert [row["transportSession"] for row in upgraded.sequence_rows()] == [
        *[1] * 6, *[2] * 6, *[3] * 3]


def test_a_reader_does_not_change_an_old_store(tmp_path):
    path = _old(1, tmp_path / "old.db")
    before = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        SqliteStore(path, read_only=True)
    assert str(caught.value) == (
        f"store {path}: has schema version 1, this rocetap reads 3; a collector that opens it "
        f"brings it up to date")
    assert path.read_bytes() == before


def test_a_migration_that_fails_leaves_the_old_store(tmp_path):
    path = _old(1, tmp_path / "old.db")
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE damage (x)")
    db.close()
    tables = set(_layout(path)[0])
    with pytest.raises(StoreError, match="table damage already exists"):
        SqliteStore(path)
    assert set(_layout(path)[0]) == tables
    assert _layout(path)[1][0] == 1


def test_nothing_is_done_to_the_version_of_today():
    migrate(sqlite3.connect(":memory:"), SCHEMA_VERSION)
