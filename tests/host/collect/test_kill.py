"""Killed, cut and stalled: the collector as a process, with an exporter that counts."""

import contextlib
import os
import random
import resource
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest

from rocetap.collect.filters import Filters
from rocetap.collect.store import SqliteStore, StoreError
from support.collector_process import CollectorProcess, NumberedExporter
from support.ipfix_tools import reports
from support.store_bench import fill


@pytest.fixture
def exporter(shared_authority):
    exporter = NumberedExporter(shared_authority.client())
    yield exporter
    exporter.drop()


def _stored(folder):
    """Number -> how often it is in the store; all rows are whole."""
    store = SqliteStore(folder / "store.db", read_only=True)
    reader = store.reader()
    found = {}
    for row in reader.sequence(Filters()):
        assert row["outcome"] == "complete"
        number = row["requestPacketTotalCount"]
        found[number] = found.get(number, 0) + 1
    assert not reader.damage
    assert not reader.set_aside()
    store.close()
    return found


@pytest.mark.parametrize("seed", [1])
def test_case_47_and_49_killed_stopped_and_reset_at_random_moments(
        tmp_path, shared_authority, exporter, seed):
    """Numbered reports; the collector is killed -9, ended and cut off, in turns. Each report is
    stored once or not at all, none that the collector had said to be written is missing, and no
    more are missing than the exporter handed over after that."""
    generator = random.Random(seed)
    port, said, missing_at_most = 0, 0, 0
    for turn in range(4):
        with CollectorProcess(tmp_path, shared_authority.folder, port=port) as collector:
            port = collector.port
            exporter.connect(port)
            first = exporter.handed + 1
            deadline = time.monotonic() + 0.2 + generator.random() / 2
            with contextlib.suppress(OSError):
                while time.monotonic() < deadline:
                    exporter.send(generator.randrange(1, 50))
            written = int(collector.numbers()["reports_written_total"])
            handed = exporter.handed
            how = ("kill", "reset", "kill", "end")[turn]
            if how == "reset":
                exporter.drop(reset=True)
                collector.end()
            elif how == "end":
                exporter.drop()
                assert collector.end() == 0
            else:
                collector.end(signal.SIGKILL)
            said += written
        stored = _stored(tmp_path)
        assert set(stored.values()) <= {1}
        mine = [number for number in stored if first <= number <= handed]
        assert mine == list(range(first, first + len(mine)))
        assert len(mine) >= written
        missing_at_most += handed - first + 1 - written
        assert handed - len(stored) <= missing_at_most
        if how == "end":
            assert mine == list(range(first, handed + 1))
    assert said > 0


def test_case_8_a_new_collector_takes_a_new_session_and_an_old_ones_data_is_no_guess(
        tmp_path, shared_authority, exporter):
    with CollectorProcess(tmp_path, shared_authority.folder) as collector:
        exporter.connect(collector.port)
        for _ in range(20):
            exporter.send(1)
        collector.wait_for(lambda: collector.numbers()["reports_written_total"] == 20)
        collector.end(signal.SIGKILL)
        with CollectorProcess(tmp_path, shared_authority.folder, port=collector.port,
                              store="second.db") as second:
            exporter.connect(second.port)
            exporter.send(5)
            second.wait_for(lambda: second.numbers()["reports_written_total"] == 5)
            # Then a stranger's session that begins in the middle: Data Sets without Templates.
            with _middle(shared_authority, second.port):
                second.wait_for(lambda: second.numbers().get(
                    'dropped_total{reason="ipfix.unknown_template"}') == 3)
                assert second.numbers()["peers"] == 2
            assert second.end() == 0
    store = SqliteStore(tmp_path / "second.db", read_only=True)
    assert [row["requestPacketTotalCount"] for row in store.sequence_rows()] == [
        21, 22, 23, 24, 25]
    store.close()


@contextlib.contextmanager
def _middle(authority, port):
    exporter = NumberedExporter(authority.client())
    whole = exporter._context.wrap_socket

    class NoStart:
        """The connection of a session whose first messages went elsewhere."""

        def __init__(self, line):
            self.line, self.started = line, False

        def sendall(self, octets):
            if self.started:
                self.line.sendall(octets)

        def __getattr__(self, name):
            return getattr(self.line, name)

    lines = []

    class Context:
        def wrap_socket(self, *given, **named):
            lines.append(NoStart(whole(*given, **named)))
            return lines[0]

    exporter._context = Context()
    exporter.connect(port)
    lines[0].started = True
    for _ in range(3):
        exporter.send(2)
    yield
    exporter.drop()


def test_case_49_a_full_disk_holds_exporters_and_storing_goes_on_when_there_is_room(
        tmp_path, shared_authority, exporter):
    with CollectorProcess(tmp_path, shared_authority.folder, "--limit", "retry_s=0.05",
                          "--log-format", "json") as collector:
        process = collector.process.pid
        exporter.connect(collector.port)
        exporter.send(100)
        collector.wait_for(lambda: collector.numbers()["reports_written_total"] == 100)
        room = (tmp_path / "store.db-wal").stat().st_size + 50_000
        resource.prlimit(process, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        for _ in range(10):
            exporter.send(300)
        collector.wait_for(lambda: collector.numbers()["store_failing"] == 1)
        status, health = collector.health()
        assert (status, health["healthy"], health["store"]) == (503, False, "failing")
        assert collector.numbers()["peers"] == 1
        resource.prlimit(process, resource.RLIMIT_FSIZE,
                         (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        collector.wait_for(lambda: collector.numbers()["reports_written_total"] == 3100)
        assert collector.health()[0] == 200
        assert collector.numbers()['store_errors_total{reason="store_failed"}'] > 0
        exporter.drop()
        assert collector.end() == 0
        assert '"level": "error"' in collector.log
        assert "the store can be written again" in collector.log
    assert _stored(tmp_path) == dict.fromkeys(range(1, 3101), 1)


def test_case_49_a_read_only_folder_is_one_line(monkeypatch):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "store.db"
        os.chmod(name, 0o555)
        root = os.geteuid() == 0
        if root:  # the superuser may write everywhere: be somebody else for a moment
            os.seteuid(65534)
        try:
            with pytest.raises(StoreError) as caught:
                SqliteStore(path)
        finally:
            if root:
                os.seteuid(0)
            os.chmod(name, 0o755)
    assert str(caught.value) == (f"store {path}: cannot open: Permission denied; check the folder "
                                 f"and its permissions")


@pytest.mark.parametrize("torn", [False, True])
def test_a_store_in_a_read_only_folder_is_read(torn):
    """As by an operator who may read but not write. Where a part is still in the log of a killed
    collector, SQLite would have to write: nothing is shown rather than less than there is."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "store.db"
        store = SqliteStore(path)
        fill(store, reports(3, flags=0x21))
        if torn:    # as a killed collector leaves it, without the shared memory
            Path(name, "copy").mkdir()
            for part in ("", "-wal"):
                shutil.copy(f"{path}{part}", Path(name, "copy"))
            store.close()
            path = Path(name, "copy", "store.db")
        else:
            store.close()
        os.chmod(name, 0o755)
        os.chmod(path.parent, 0o555)
        root = os.geteuid() == 0
        if root:  # the superuser may write everywhere: be somebody else for a moment
            os.seteuid(65534)
        try:
            if torn:
                with pytest.raises(StoreError) as caught:
                    SqliteStore(path, read_only=True)
                assert str(caught.value) == (f"store {path}: cannot open: unable to open database "
                                             f"file; check the folder and its permissions")
            else:
                reader = SqliteStore(path, read_only=True)
                assert len(list(reader.sequence_rows())) == 3
                reader.close()
        finally:
            if root:
                os.seteuid(0)
            os.chmod(path.parent, 0o755)


def test_case_49_a_damaged_store_stops_the_collector_and_the_next_start_keeps_what_reads(
        tmp_path, shared_authority, exporter):
    with CollectorProcess(tmp_path, shared_authority.folder) as collector:
        exporter.connect(collector.port)
        exporter.send(3000)
        collector.wait_for(lambda: collector.numbers()["reports_written_total"] == 3000)
        exporter.drop()
        assert collector.end() == 0
    path = tmp_path / "store.db"
    size = path.stat().st_size
    os.truncate(path, size - size // 3 // 4096 * 4096)
    with CollectorProcess(tmp_path, shared_authority.folder) as collector:
        assert "is damaged" in collector.log
        assert "these rows were kept" in collector.log
        exporter.connect(collector.port)
        exporter.send(10)
        collector.wait_for(lambda: collector.numbers()["reports_written_total"] == 10)
        exporter.drop()
        assert collector.end() == 0
    store = SqliteStore(path, read_only=True)
    numbers = [row["requestPacketTotalCount"] for row in store.sequence_rows()]
    assert numbers[-10:] == list(range(3001, 3011))
    before = numbers[:-10]
    assert before == list(range(1, len(before) + 1))
    assert len(before) > 1000
    assert {row["file"] for row in store.reader().set_aside()} == {"store.db.damaged-1"}
    store.close()
