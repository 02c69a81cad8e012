"""`rocetap sim`, `rocetap export`, `rocetap collect` and `rocetap demo` as processes."""

import contextlib
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time

import pytest

from rocetap import pki
from rocetap.capture.discovery import discover
from rocetap.capture.reading import open_capture
from rocetap.collect.store import SqliteStore
from rocetap.provisioning import provisioning_text
from support import frames as packets
from support.captures import pcap, record
from support.reference import reference_capture

QPS = (0x12, 0x13)
PSNS = [*range(0xFFFFF8, 0x1000000), *range(30), 33, 31, 31, 40]
TIMEOUT = 240


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """PKI, capture and provisioning."""
    directory = tmp_path_factory.mktemp("with space")
    pki.init(directory, "probe", "collector.example")
    pki.issue(directory, "stranger")
    octets = [packets.roce(b"1234", psn=psn, qp=qp) for psn in PSNS for qp in QPS]
    octets += [packets.pfc({4: 100}), packets.pfc({4: 0, 5: 1})]
    (directory / "capture.pcap").write_bytes(pcap(*(
        record(frame, seconds=1_700_000_000, fraction=number * 20_000)
        for number, frame in enumerate(octets))))
    with open_capture(str(directory / "capture.pcap")) as capture:
        plan = discover(capture.batches()).provisioning(16)
    (directory / "probe.toml").write_text(provisioning_text(plan))
    return directory


class Process:
    """A command under test; its stderr is in a file."""

    def __init__(self, log, *arguments):
        self.log = log
        with open(log, "wb") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rocetap.cli", *map(str, arguments)],
                stdout=stream, stderr=stream, env={**os.environ, "PYTHONUNBUFFERED": "1"})

    @property
    def text(self):
        return self.log.read_text()

    def wait_for(self, condition, seconds=TIMEOUT):
        deadline = time.monotonic() + seconds
        while not condition():
            assert self._process.poll() is None, self.text
            assert time.monotonic() < deadline, self.text
            time.sleep(0.05)

    def end(self, number=signal.SIGTERM):
        """Its exit code after a signal."""
        self._process.send_signal(number)
        return self._process.wait(TIMEOUT)

    def wait(self):
        return self._process.wait(TIMEOUT)

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def start(tmp_path):
    """Starts commands, and ends those that are left."""
    running = []

    def begin(*arguments):
        one = Process(tmp_path / f"{len(running)}-{arguments[0]}.log", *arguments)
        running.append(one)
        return one

    yield begin
    for one in reversed(running):
        one.kill()


def listening(process, port_file):
    process.wait_for(lambda: port_file.exists())
    return int(port_file.read_text())


def collector(start, folder, tmp_path, *more, listen="127.0.0.1:0"):
    process = start("collect", "--pki", folder, "--listen", listen, "--port-file",
                    tmp_path / "port", "--store", tmp_path / "flows.db", "--allow", "probe", *more)
    return process, listening(process, tmp_path / "port")


def exporter(start, folder, board_port, collector_port, *more):
    return start("export", "--board", f"socket://127.0.0.1:{board_port}", "--pki", folder,
                 "--collector", f"127.0.0.1:{collector_port}", "--collector-name",
                 "collector.example", "--provision", folder / "probe.toml", "--interval", "0.2",
                 *more)


def simulated(start, tmp_path, *more):
    process = start("sim", "--listen", "127.0.0.1:0", "--port-file", tmp_path / "sim-port", *more)
    return process, listening(process, tmp_path / "sim-port")


def rows(store, table="sequence"):
    """The collector's rows while it runs; none as long as there is no table."""
    with contextlib.suppress(Exception):
        reader = SqliteStore(store, read_only=True)
        try:
            return list(reader.sequence_rows() if table == "sequence" else reader.pfc_rows())
        finally:
            reader.close()
    return []


def test_a_capture_through_three_processes(start, folder, tmp_path):
    collect, port = collector(start, folder, tmp_path)
    _, board = simulated(start, tmp_path, "--capture", folder / "capture.pcap", "--speed", "0",
                         "--loop", "--pause", "2")
    export = exporter(start, folder, board, port)
    store = tmp_path / "flows.db"

    def counted():
        per_qp = {row["rdmaDestinationQP"]: row.get("requestPacketTotalCount", 0)
                  for row in rows(store)}
        return all(per_qp.get(qp, 0) >= len(PSNS) for qp in QPS)

    export.wait_for(counted)
    assert export.end() == 0, export.text
    assert "Traceback" not in export.text
    assert "PEN 32473 is reserved for documentation" in export.text
    assert "in doubt; records dropped" in export.text
    collect.wait_for(lambda: all(row["outcome"] != "open" for row in rows(store)))
    assert collect.end() == 0, collect.text
    assert not (tmp_path / "port").exists()
    sequence, pfc = rows(store), rows(store, "pfc")

    # The capture comes round and round, so an epoch may begin in the middle of it; exact counters
    # are for the demonstration below.
    first = next(row for row in sequence if row["rdmaDestinationQP"] == QPS[0])
    assert first["rdmaSequenceWindow"] == 16
    assert first["outcome"] == "complete"
    assert first["repeatedPsnTotalCount"] > 0
    assert abs(first["flowStartMilliseconds"] - time.time() * 1000) < TIMEOUT * 1000
    totals = {row["pfcPriority"]: row["pfcControlFrameTotalCount"] for row in pfc}
    assert totals[4] == 2 * totals[5] > 0
    assert {priority: total for priority, total in totals.items() if priority not in (4, 5)} == (
        dict.fromkeys([0, 1, 2, 3, 6, 7], 0))


def test_a_killed_collector_gets_a_new_session_with_new_epochs(start, folder, tmp_path):
    collect, port = collector(start, folder, tmp_path)
    _, board = simulated(start, tmp_path, "--capture", folder / "capture.pcap", "--speed", "0",
                         "--loop", "--pause", "0.2")
    export = exporter(start, folder, board, port)
    store = tmp_path / "flows.db"
    export.wait_for(lambda: len(rows(store)) >= 2)
    collect.end(signal.SIGKILL)
    (tmp_path / "port").unlink()
    again, _ = collector(start, folder, tmp_path, listen=f"127.0.0.1:{port}")
    export.wait_for(lambda: any(row["transportSession"] == 2 for row in rows(store)))
    assert export.end() == 0, export.text
    assert again.end() == 0, again.text
    with contextlib.closing(sqlite3.connect(store)) as db:
        reasons = dict(db.execute("SELECT reason, count FROM dropped WHERE session_id = 2"))
    assert not [reason for reason in reasons if "template" in reason], reasons
    by_session = {number: [row for row in rows(store) if row["transportSession"] == number]
                  for number in (1, 2)}
    assert {row["outcome"] for row in by_session[1] if "endReason" in row} == {"incomplete"}
    assert {row["outcome"] for row in by_session[2]} == {"complete"}
    assert min(row["rdmaSequenceEpochId"] for row in by_session[2]) == 1


def test_a_name_that_is_not_allowed_is_refused_on_both_sides(start, folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for source, target in (("ca.pem", "ca.pem"), ("stranger.pem", "exporter.pem"),
                           ("stranger.key", "exporter.key")):
        (other / target).write_bytes((folder / source).read_bytes())
    (other / "probe.toml").write_bytes((folder / "probe.toml").read_bytes())
    collect, port = collector(start, folder, tmp_path)
    _, board = simulated(start, tmp_path)
    export = exporter(start, other, board, port)
    assert export.wait() == 2
    errors = [line for line in export.text.splitlines() if line.startswith("rocetap: error: ")]
    assert errors == [
        f"rocetap: error: collector 127.0.0.1:{port} closed the session before accepting it; it "
        "refuses this exporter's certificate or name, or it is stopping"]
    assert "Traceback" not in export.text
    assert "its certificate names stranger, which is not allowed" in collect.text
    assert collect.end() == 0
    assert rows(tmp_path / "flows.db") == []


def test_a_port_in_use_ends_the_collector_with_one_line(start, folder, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        collect = start("collect", "--pki", folder, "--listen", address, "--store",
                        tmp_path / "flows.db", "--allow", "probe")
        assert collect.wait() == 2
    assert collect.text.splitlines() == [
        f"rocetap: error: cannot listen on {address}: Address already in use; choose another "
        "address, or port 0 for a free one"]


def test_the_demonstration(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "rocetap.cli", "demo", "--keep", str(tmp_path / "demo files")],
        capture_output=True, check=False, timeout=TIMEOUT, text=True)
    assert done.returncode == 0, done.stderr
    assert "complete" in done.stdout
    assert "profileViolation" in done.stdout
    assert "session accepted, shown by a TLS ticket" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("rocetap: on your own capture: ")
    assert "5000 frames offered; the board classified 5000 frames: " in done.stderr
    sequence = rows(tmp_path / "demo files" / "flows.db")
    requests = sum(row["requestPacketTotalCount"] for row in sequence)
    assert re.search(rf"rocetap: {requests} of \d+ eligible requests stand in the epochs; the "
                     "others came to a connection that a READ had disabled", done.stderr)
    assert f"in all {len(sequence)} epochs: {requests} requests; " in done.stdout
    assert {row["outcome"] for row in sequence} == {"complete"}
    with open_capture(str(tmp_path / "demo files" / "sample.pcap")) as capture:
        expected = reference_capture(
            [frame for batch in capture.batches() for frame in batch.frames()], 64)
    assert sorted((row["rdmaDestinationQP"], row["requestPacketTotalCount"],
                   row["skippedPsnTotalCount"], row["filledPsnTotalCount"],
                   row["repeatedPsnTotalCount"]) for row in sequence) == sorted(
        (key.destination_qp, epoch.requests, epoch.skipped, epoch.filled, epoch.repeated)
        for key, epochs in expected.epochs.items() for epoch in epochs)
