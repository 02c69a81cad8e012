import numpy as np
import pytest

from rocetap.collect.columns import after_session_end
from rocetap.collect.filters import Filters
from rocetap.collect.schema import (
    ADDRESSES,
    EPOCH_COLUMNS,
    PARTS,
    PFC_COLUMNS,
    REPORT_COLUMNS,
    ROW_SERIAL_BITS,
)
from rocetap.collect.store import SqliteStore
from support.ipfix_tools import readings, reports
from support.store_bench import fill


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    generator = np.random.default_rng(5)
    rows = reports(40, flags=0x21, requests=generator.integers(1, 1 << 63, 40),
                   window=generator.integers(1, 1 << 22, 40))
    rows["ipv6"] = np.arange(40) % 2
    fill(store, rows, reports(2, first_epoch=100), pfc=readings(8))
    yield store
    store.close()


def _read(store):
    reader = store.reader()
    rows = list(reader.sequence(Filters())), list(reader.pfc(Filters()))
    return rows, dict(reader.damage)


def test_what_is_written_agrees(store):
    (epochs, pfc), damage = _read(store)
    assert (len(epochs), len(pfc), damage) == (42, 8, {})


@pytest.mark.parametrize("name", ["session_id", "domain", *REPORT_COLUMNS, *EPOCH_COLUMNS,
                                  "outcome", "checksum"])
def test_one_changed_value_of_an_epoch_is_found(store, name):
    column, low, _ = PARTS.get(name, (name, 0, 0))
    change = f"{column} + {1 << low}"
    if name in ADDRESSES:
        column, skip = "addresses", 16 * ADDRESSES.index(name)
        change = (f"CAST(substr(addresses, 1, {skip}) || x'77' || substr(addresses, {skip + 2}) "
                  "AS BLOB)")
    if name == "session_id":
        column, change = "id", f"id + {1 << ROW_SERIAL_BITS}"
    row_id, before = store._db.execute(
        f"SELECT id, {name} FROM epochs LIMIT 1 OFFSET 20").fetchone()
    store._db.execute(f"UPDATE epoch_rows SET {column} = {change} WHERE id = {row_id}")
    if name != "session_id":
        assert store._db.execute(
            f"SELECT {name} FROM epochs WHERE id = {row_id}").fetchone()[0] != before
    (epochs, _), damage = _read(store)
    assert (len(epochs), damage) == (41, {"epoch": 1})


@pytest.mark.parametrize("name", ["session_id", "domain", *PFC_COLUMNS, "checksum"])
def test_one_changed_value_of_a_reading_is_found(store, name):
    store._db.execute(f"UPDATE pfc_readings SET {name} = {name} + 1 WHERE id = 5")
    (_, pfc), damage = _read(store)
    assert (len(pfc), damage) == (7, {"reading": 1})


def test_an_epoch_under_another_number_is_found(store):
    store._db.execute("UPDATE epoch_rows SET id = id + 1000 WHERE epoch_id = 7")
    assert _read(store)[1] == {"epoch": 1}


@pytest.mark.parametrize("value", ["'text'", "1.5", "x'00'"])
def test_a_value_of_another_type_is_found(store, value):
    store._db.execute(f"UPDATE epoch_rows SET requests = {value} WHERE epoch_id = 9")
    (epochs, _), damage = _read(store)
    assert (len(epochs), damage) == (41, {"epoch": 1})


def test_the_end_of_a_session_keeps_the_checksum(tmp_path):
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    fill(store, reports(50, requests=[1 + (i << 57) for i in range(50)]), end=False)
    store.close()
    store = SqliteStore(path)
    (epochs, _), damage = _read(store)
    assert [row["outcome"] for row in epochs] == ["incomplete"] * 50
    assert not damage
    store.close()


def test_checksums_are_signed():
    assert all(-(1 << 63) <= after_session_end(value) < 1 << 63
               for value in (0, -1, (1 << 63) - 1, -(1 << 63)))


@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
def test_any_number_of_rows_is_written_and_replaced(tmp_path, count):
    store = SqliteStore(tmp_path / "store.db")
    first = reports(count)
    fill(store, first, reports(count, report_id=2, requests=20))
    epochs = _read(store)[0][0]
    assert [row["rdmaSequenceEpochId"] for row in epochs] == list(range(1, count + 1))
    assert {row["requestPacketTotalCount"] for row in epochs} == {20}
    store.close()
