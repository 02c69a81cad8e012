"""Faults of the serial line that public reports tell of, against the whole daemon on a terminal."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from rocetap import pki
from rocetap.export import boardloop
from rocetap.link.driver import Driver
from rocetap.link.errors import TransportOpenError
from rocetap.link.transport import open_transport
from rocetap.provisioning import provisioning_text
from support.daemon_bench import all_accounted, make, provisioning, running, until
from support.fake_board import FakeBoard
from support.pty_board import PtyBoard
from support.tls_collector import collector_context, listening

FINAL = 0x01
POLL_S = 10.0
"""The daemon finds a line gone within this."""


@pytest.fixture
def port(board, tmp_path):
    with PtyBoard(board, tmp_path / "usb-board") as one:
        yield one


def on(port, endpoint, folder, **settings):
    def driver():
        return Driver(open_transport(str(port.path)), clock=time.monotonic, timeout_s=0.1)

    return make(port.board, endpoint, pki.credentials(folder, pki.EXPORTER), open_driver=driver,
                **settings)


def lines(caplog, beginning):
    return [one.getMessage() for one in caplog.records
            if one.getMessage().startswith(beginning)]


@pytest.mark.parametrize("is_reset", [True, False])
def test_case_4_unplugged_and_plugged_in_again_under_the_same_name(
        folder, board, port, caplog, is_reset):
    caplog.set_level("INFO")

    async def run():
        async with listening(collector_context(folder)) as (endpoint, heard):
            daemon = on(port, endpoint, folder)
            hub = daemon.hub
            async with running(daemon) as task:
                await until(lambda: hub.statistics.sessions, task)
                board.pfc[0][2] = 1_000_000
                board.request(0, 5)
                await until(lambda: heard[0].reports and hub.board.totals.get(
                    "pfc_received/0/2") == 1_000_000, task)
                await asyncio.to_thread(port.unplug)
                await until(lambda: not hub.board.up, task, POLL_S)
                await asyncio.sleep(0.2)
                counts = len(heard[0].reports), len(heard[0].readings)
                busy = time.process_time()
                await asyncio.sleep(1.5)
                assert time.process_time() - busy < 0.5, "near idle while the board is away"
                assert (len(heard[0].reports), len(heard[0].readings)) == counts
                assert hub.book is not None
                if is_reset:
                    board.power_on()
                    board.pfc[0][2] = 1_200
                await asyncio.to_thread(port.plug)
                await until(lambda: hub.board.starts == 2, task)
                board.request(0, 2)
                await until(lambda: heard[0].reports[-1]["rdmaSequenceEpochId"] == 2, task)
                assert hub.board.restarts == is_reset
                assert hub.board.totals["pfc_received/0/2"] == 1_000_000 + 1_200 * is_reset
            await until(lambda: heard[0].ended)
            assert len(heard) == 1
            assert heard[0].error is None
            assert [row["requestPacketTotalCount"] for row in heard[0].reports
                    if row["rdmaSequenceFlags"] & FINAL] == [2]
            assert all_accounted(daemon)
    asyncio.run(run())
    [line] = lines(caplog, "board lost: ")
    assert line.startswith(f"board lost: {port.path}: ")
    [back] = [one for one in lines(caplog, "board ready: ") if " after " in one]
    assert ("it was reset since" in back) == is_reset


def test_case_16_a_reset_while_the_line_stays_and_a_restarted_daemon(folder, board, port):
    async def run():
        async with listening(collector_context(folder)) as (endpoint, heard):
            daemon = on(port, endpoint, folder)
            async with running(daemon) as task:
                await until(lambda: daemon.hub.statistics.sessions, task)
                board.pfc[0][2] = 5_000_000
                await until(lambda: daemon.hub.board.totals.get("pfc_received/0/2") == 5_000_000,
                            task)
                board.power_on()
                board.pfc[0][2] = 1_200
                await until(lambda: daemon.hub.board.restarts == 1, task)
                await until(lambda: daemon.hub.board.totals["pfc_received/0/2"] == 5_001_200, task)
                board.request(0, 3)
                await until(lambda: heard[0].reports, task)
            board.request(0, 50)  # while no daemon runs
            again = on(port, endpoint, folder)
            async with running(again) as task:
                await until(lambda: again.hub.statistics.sessions, task)
                board.request(0, 4)
                await until(lambda: len(heard) == 2 and heard[1].reports, task)
            await until(lambda: heard[1].ended)
            assert again.hub.board.restarts == 0
            assert [row["requestPacketTotalCount"] for row in heard[1].reports
                    if row["rdmaSequenceFlags"] & FINAL] == [4]
            assert all_accounted(daemon)
            assert all_accounted(again)
    asyncio.run(run())


def test_case_20_replies_in_pieces_and_stray_octets(folder, board, tmp_path):
    async def run(port):
        async with listening(collector_context(folder)) as (endpoint, heard):
            daemon = on(port, endpoint, folder)
            async with running(daemon) as task:
                await until(lambda: daemon.hub.statistics.sessions, task)
                board.request(0, 5)
                for number in range(10):
                    port.inject(bytes([number, 0, 255, number]))
                    await asyncio.sleep(0.05)
                await until(lambda: heard[0].reports, task)
                assert daemon.hub.board.starts == 1
                await until(lambda: daemon.hub.board.line["format"]
                            + daemon.hub.board.line["crc"] > 0, task)
            assert {row["requestPacketTotalCount"] for row in heard[0].reports} == {5}
            assert all_accounted(daemon)

    with PtyBoard(board, tmp_path / "usb-board", piece=40, gap_s=0.0005) as port:
        asyncio.run(run(port))


def test_case_20_an_interval_too_short_for_the_line_is_said_once(
        folder, board, tmp_path, caplog):
    async def run(port):
        async with listening(collector_context(folder)) as (endpoint, _):
            daemon = on(port, endpoint, folder, interval=0.05)
            async with running(daemon) as task:
                await until(lambda: lines(caplog, "a sample of the board took "), task)
                await until(lambda: daemon.hub.board.sample_s > 0.05, task)
                await asyncio.sleep(1.0)
                assert daemon.hub.board.starts == 1

    with PtyBoard(board, tmp_path / "usb-board", latency_s=0.016) as port:
        asyncio.run(run(port))
    [line] = lines(caplog, "a sample of the board took ")
    assert line.endswith("s, more than the interval of 0.05 s: give a longer interval, or a "
                         "faster line")


def test_case_20_the_whole_counter_set_at_16_ms_fits_the_default_interval(folder, tmp_path):
    board = FakeBoard(contexts=4, ports=2)

    async def run(port):
        async with listening(collector_context(folder)) as (endpoint, _):
            daemon = on(port, endpoint, folder, interval=1.0)
            async with running(daemon) as task:
                await until(lambda: daemon.hub.board.sampled_at is not None, task)
                assert 6 * 0.016 < daemon.hub.board.sample_s < 1.0

    with PtyBoard(board, tmp_path / "usb-board", latency_s=0.016) as port:
        asyncio.run(run(port))


def test_take_over_is_one_round_trip_a_slot_and_two_a_connection(tmp_path):
    board = FakeBoard(contexts=32)
    driver = Driver(board.transport(), clock=time.monotonic)
    writes = []
    answer = board.answer
    board.answer = lambda message: (writes.append(message), answer(message))[1]
    from rocetap.export.board import Board
    from rocetap.export.clock import BoardClock
    one = Board(driver, provisioning(32), BoardClock(), monotonic=time.monotonic)
    one.start()
    assert 64 + 2 * 32 <= len(writes) <= 64 + 2 * 32 + 12


class TestTheCommand:
    """`rocetap export` as a process on the terminal (case 2)."""

    @pytest.fixture
    def started(self, folder, port, tmp_path, unused_port):
        plan = tmp_path / "probe.toml"
        plan.write_text(provisioning_text(provisioning(2)))
        arguments = [sys.executable, "-m", "rocetap.cli", "export", "--board", str(port.path),
                     "--pki", str(folder), "--collector", f"127.0.0.1:{unused_port}",
                     "--collector-name", "collector.example", "--provision", str(plan),
                     "--interval", "0.1"]
        processes = []

        def start():
            log = tmp_path / f"log{len(processes)}"
            with open(log, "wb") as stream:
                processes.append(subprocess.Popen(arguments, stdout=stream, stderr=stream))
            return processes[-1], log

        yield start
        for one in processes:
            one.kill()
            one.wait()

    def wait_for(self, log, text, seconds=60):
        deadline = time.monotonic() + seconds
        while text not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)

    def test_case_2_a_second_program_is_refused_and_a_killed_one_leaves_no_lock(
            self, board, port, started):
        first, log = started()
        self.wait_for(log, "board ready: 2 connections")
        with pytest.raises(TransportOpenError) as caught:
            open_transport(str(port.path))
        assert str(caught.value) == (f"cannot open {port.path}: in use by another program; close "
                                     "it, or choose another port")
        second, other_log = started()
        assert second.wait(60) == 2
        assert other_log.read_text().splitlines()[-1] == (
            f"rocetap: error: cannot open {port.path}: in use by another program; close it, or "
            "choose another port")
        assert "Traceback" not in other_log.read_text()
        swept = len(board.operations)
        deadline = time.monotonic() + 60
        while len(board.operations) < swept + 4:
            assert time.monotonic() < deadline, "the first one goes on"
            time.sleep(0.02)
        assert "board lost" not in log.read_text()
        first.send_signal(signal.SIGKILL)
        first.wait()
        third, last_log = started()
        self.wait_for(last_log, "board ready: 2 connections")
        third.send_signal(signal.SIGTERM)
        assert third.wait(60) == 0

    def test_case_2_no_permission_is_one_line(self, folder, port, tmp_path, unused_port):
        plan = tmp_path / "probe.toml"
        plan.write_text(provisioning_text(provisioning(1)))
        slave = os.path.realpath(port.path)
        os.chmod(slave, 0)
        # Everything is loaded before rights are given up: this user may not read this folder.
        code = (
            "import os, sys; import rocetap.cli as c, rocetap.cli.export as e;"
            "from rocetap.export import daemon, identity, metrics;"
            "from rocetap.link import transport; from rocetap import provisioning, pki;"
            "from rocetap.collect import store, tls; from rocetap.telemetry import server;"
            "_open = transport.open_transport;\n"
            "def dropped(name, baud):\n"
            "    if os.geteuid() == 0: os.setegid(65534); os.seteuid(65534)\n"
            "    return _open(name, baud)\n"
            "transport.open_transport = dropped; c.main()")
        done = subprocess.run(
            [sys.executable, "-c", code, "export", "--board", slave, "--pki", str(folder),
             "--collector", f"127.0.0.1:{unused_port}", "--collector-name", "collector.example",
             "--provision", str(plan)], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2, done.stderr
        last = done.stderr.splitlines()[-1]
        assert last.startswith(f"rocetap: error: cannot open {slave}: permission denied; join the "
                               "group that may open it")
        assert "Traceback" not in done.stderr


def test_the_longest_wait_for_a_board_is_short():
    assert boardloop._LONGEST_WAIT_S <= 5
