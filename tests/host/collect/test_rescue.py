"""Case: a store after a cut, a flipped octet, a lost tail. It always opens, whole rows before the
damage are there, nothing is shown that was not written, and what is missing is said."""

import random
import shutil

import pytest

from rocetap.collect.filters import Filters
from rocetap.collect.rescue import is_store, set_aside
from rocetap.collect.store import SqliteStore, StoreDamagedError, StoreError
from support.ipfix_tools import readings, reports
from support.store_bench import fill

EPOCHS = 3000


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store of 3,000 epochs and 500 readings, closed in order, and its rows."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    store = SqliteStore(path)
    fill(store, reports(EPOCHS, flags=0x21, requests=range(1, EPOCHS + 1)),
         pfc=readings(500), now_ms=1_700_000_000_000)
    rows = _rows(store)
    store.close()
    return path, rows


def _rows(store):
    reader = store.reader()
    epochs = {row["rdmaSequenceEpochId"]: row for row in reader.sequence(Filters())}
    pfc = list(reader.pfc(Filters()))
    return epochs, pfc, reader.damage


def _damaged(whole, tmp_path, change):
    path = tmp_path / "store.db"
    octets = bytearray(whole[0].read_bytes())
    change(octets)
    path.write_bytes(octets)
    return path


def _only_what_was_written(rows, whole):
    epochs, pfc, _ = rows
    for epoch_id, row in epochs.items():
        assert row == whole[1][0][epoch_id]
    assert all(row in whole[1][1] for row in pfc)


def test_through_a_link_the_file_itself_is_set_aside_and_has_one_writer(whole, tmp_path):
    def tear(content):
        content[4096 * 3:4096 * 6] = bytes(4096 * 3)

    (tmp_path / "data").mkdir()
    path = _damaged(whole, tmp_path / "data", tear)
    link = tmp_path / "link.db"
    link.symlink_to(path)
    store = SqliteStore(link)
    with pytest.raises(StoreError, match="another collector writes to it"):
        SqliteStore(path)
    store.close()
    assert link.is_symlink()
    assert (tmp_path / "data" / "store.db.damaged-1").exists()
    assert [one.name for one in tmp_path.iterdir()] == ["data", "link.db"]


def test_a_damaged_first_page_keeps_nothing_and_the_collector_starts(whole, tmp_path):
    def tear(content):
        content[200:4096] = bytes(3896)

    path = _damaged(whole, tmp_path, tear)
    store = SqliteStore(path)
    assert _rows(store)[:2] == ({}, [])
    assert {row["what"] for row in store.reader().set_aside()} == {"a part could not be read"}
    assert (tmp_path / "store.db.damaged-1").exists()
    fill(store, reports(2, flags=0x21))
    assert len(_rows(store)[0]) == 2
    store.close()


@pytest.mark.parametrize("octets", [1, 50, 100, 4096, 20_000])
def test_a_cut_tail(whole, tmp_path, octets):
    def cut(content):
        del content[-octets:]

    path = _damaged(whole, tmp_path, cut)
    reader = SqliteStore(path, read_only=True)
    epochs, pfc, damage = _rows(reader)
    assert set(damage) <= {"part of epochs", "part of pfc_readings", "epoch", "reading"}
    assert damage
    _only_what_was_written((epochs, pfc, damage), whole)
    reader.close()
    store = SqliteStore(path)
    kept = _rows(store)
    _only_what_was_written(kept, whole)
    assert len(kept[0]) + len(kept[1]) >= EPOCHS // 2
    notes = {row["table_name"]: row for row in store.reader().set_aside()}
    assert notes or octets < 4096
    if not notes:
        # The last page is there, its end is not: only the rows that stood there are damaged.
        assert sum(kept[2].values()) == EPOCHS + 500 - len(kept[0]) - len(kept[1]) > 0
    else:
        assert {row["file"] for row in notes.values()} == {"store.db.damaged-1"}
        assert notes["sessions"]["rows_kept"] == 1
        assert notes["sessions"]["what"] == "all that was found"
        assert octets < 4096 or "a part could not be read" in {
            row["what"] for row in notes.values()}
        assert notes["epochs"]["rows_kept"] >= len(kept[0])
    session_id, _, _ = fill(store, reports(2, flags=0x21))
    assert session_id == 2
    store.close()
    SqliteStore(path).close()
    assert not (tmp_path / "store.db.damaged-2").exists()


@pytest.mark.parametrize("seed", range(12))
def test_a_flipped_bit_anywhere(whole, tmp_path, seed):
    generator = random.Random(seed)

    def flip(content):
        content[generator.randrange(100, len(content))] ^= 1 << generator.randrange(8)

    path = _damaged(whole, tmp_path, flip)
    store = SqliteStore(path)
    rows = _rows(store)
    _only_what_was_written(rows, whole)
    missing = EPOCHS + 500 - len(rows[0]) - len(rows[1])
    said = sum(rows[2].values()) + len(store.reader().set_aside())
    assert not missing or said
    fill(store, reports(2, flags=0x21))
    store.close()


def test_a_damaged_part_in_the_middle_leaves_what_is_on_both_sides(whole, tmp_path):
    def spoil(content):
        middle = len(content) // 2 // 4096 * 4096
        content[middle:middle + 4096] = b"\xff" * 4096

    path = _damaged(whole, tmp_path, spoil)
    reader = SqliteStore(path, read_only=True)
    epochs, _, damage = _rows(reader)
    reader.close()
    assert damage == {"part of epochs": 1}
    assert EPOCHS - 100 < len(epochs) < EPOCHS
    assert {1, EPOCHS} <= set(epochs)
    assert list(epochs) == sorted(epochs)
    store = SqliteStore(path)
    assert _rows(store)[0] == epochs
    _only_what_was_written(_rows(store), whole)
    store.close()


def test_a_flipped_value_is_passed_over_and_counted(whole, tmp_path):
    """One that SQLite itself takes for good."""
    def flip(content):
        at = content.index((0x012345).to_bytes(3, "big"), len(content) // 2)
        content[at + 2] ^= 1

    path = _damaged(whole, tmp_path, flip)
    store = SqliteStore(path)
    epochs, pfc, damage = _rows(store)
    assert (len(epochs), len(pfc), damage) == (EPOCHS - 1, 500, {"epoch": 1})
    assert not store.reader().set_aside()
    store.close()


def test_a_lost_write_ahead_log_loses_nothing_older(whole, tmp_path):
    path = tmp_path / "store.db"
    shutil.copy(whole[0], path)
    store = SqliteStore(path)
    fill(store, reports(50, flags=0x21), exporter="probe-2.example")
    shutil.copy(path, tmp_path / "copy.db")
    shutil.copy(f"{path}-wal", tmp_path / "copy.db-wal")
    store.close()
    with open(tmp_path / "copy.db-wal", "r+b") as log:
        log.truncate(log.seek(0, 2) - 17)
    cut = SqliteStore(tmp_path / "copy.db")
    assert len([row for row in cut.sequence_rows() if row["transportSession"] == 1]) == EPOCHS
    assert not cut.reader().set_aside()
    cut.close()


def test_damage_found_while_writing_asks_for_a_new_start(whole, tmp_path):
    path = tmp_path / "store.db"
    shutil.copy(whole[0], path)
    store = SqliteStore(path)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    store._db.execute("PRAGMA shrink_memory")
    with pytest.raises(StoreDamagedError) as caught:
        fill(store, reports(2))
    assert str(caught.value) == (
        f"store {path}: cannot write: database disk image is malformed; start the collector "
        f"again: it keeps what can be read in a new file")
    store.close()


def test_a_file_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "other.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(4096))
    before = path.read_bytes()
    assert not is_store(path)
    with pytest.raises(StoreError):
        SqliteStore(path)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.damaged*"))


def test_the_next_free_name_is_taken(tmp_path):
    path = tmp_path / "store.db"
    for number in (1, 2):
        path.write_text("x")
        path.with_name("store.db-wal").write_text("y")
        assert set_aside(path) == tmp_path / f"store.db.damaged-{number}"
        assert (tmp_path / f"store.db.damaged-{number}-wal").read_text() == "y"
    assert not path.exists()
