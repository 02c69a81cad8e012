"""The daemon between a small board and a real TLS collector: sessions, losses, an orderly end."""

import asyncio
import socket
import time

import pytest

from rocetap import pki
from rocetap.export.provision import BoardTooSmallError
from rocetap.export.tls import IdentityError, Limits, RefusedError
from rocetap.link.driver import Driver
from rocetap.link.errors import TransportClosed, TransportOpenError
from support.daemon_bench import all_accounted, ids, make, provisioning, running, until
from support.tls_collector import collector_context, listening

UNVERIFIED, FINAL = 0x20, 0x01


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    directory = tmp_path_factory.mktemp("foreign")
    pki.init(directory, "probe", "collector.example")
    return directory


def test_reports_flow_and_the_end_is_in_order(folder, board):
    async def run():
        async with listening(collector_context(folder)) as (endpoint, heard):
            daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER))
            board.pfc[0][3] = 5
            async with running(daemon) as task:
                await until(lambda: daemon.hub.statistics.sessions, task)
                board.request(0, 3)
                await until(lambda: heard[0].reports, task)
                board.request(1, 2)
                await until(lambda: len({r["rdmaDestinationQP"] for r in heard[0].reports}) == 2,
                            task)
            await until(lambda: heard[0].ended)
            one = heard[0]
            assert one.error is None
            assert one.first_sequence == 0
            first = [row for row in one.reports if row["rdmaDestinationQP"] == 0]
            assert [row["rdmaSequenceReportId"] for row in first] == list(
                range(1, len(first) + 1))
            finals = [row for row in one.reports if row["rdmaSequenceFlags"] & FINAL]
            assert [(row["rdmaDestinationQP"], row["requestPacketTotalCount"],
                     row["rdmaSequenceEpochId"]) for row in finals] == [(0, 3, 1), (1, 2, 2)]
            assert {row["rdmaSequenceFlags"] & ~FINAL for row in one.reports} == {UNVERIFIED}
            assert [row["pfcControlFrameTotalCount"] for row in one.readings[-8:]] == [
                0, 0, 0, 5, 0, 0, 0, 0]
            assert daemon.hub.statistics.proof == "ticket"
            assert daemon.hub.statistics.in_doubt == 0
            assert all_accounted(daemon)
    asyncio.run(run())


def test_time_stamps_are_utc(folder, board):
    async def run():
        async with listening(collector_context(folder)) as (endpoint, heard):
            daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER))
            async with running(daemon) as task:
                await until(lambda: daemon.hub.statistics.sessions, task)
                board.request(0)
                await until(lambda: heard[0].reports, task)
            now = time.time() * 1000
            row = heard[0].reports[0]
            for name in ("flowStartMilliseconds", "flowEndMilliseconds"):
                assert now - 10_000 < row[name] <= now + 50
    asyncio.run(run())


def test_what_the_board_counted_before_a_session_is_not_in_it(folder, board):
    async def run():
        async with listening(collector_context(folder)) as (endpoint, heard):
            daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER))
            begin = daemon._board.begin_book

            async def counted_before():
                board.request(0, 1000)
                await begin()
                board.request(0, 1)

            daemon._board.begin_book = counted_before
            async with running(daemon) as task:
                await until(lambda: heard and heard[0].reports, task)
            assert heard[0].reports[0]["requestPacketTotalCount"] == 1
            assert daemon.hub.drops["session_start"] + daemon.hub.drops["no_session"] >= 1
            assert all_accounted(daemon)
    asyncio.run(run())


def test_a_restarted_collector_gets_templates_and_new_epochs(folder, board, unused_port):
    async def run():
        context = collector_context(folder)
        async with listening(context, port=unused_port) as (endpoint, heard):
            daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER))
            task = asyncio.create_task(daemon.run())
            await until(lambda: daemon.hub.statistics.sessions == 1, task)
            board.request(0, 10)
            await until(lambda: len(heard[0].reports) > 3, task)
        await until(lambda: daemon.hub.statistics.attempts > 2, task)
        board.request(0, 10)
        async with listening(context, port=unused_port) as (_, again):
            await until(lambda: daemon.hub.statistics.sessions == 2, task)
            board.request(0, 4)
            await until(lambda: again and again[-1].reports, task)
            daemon.stop()
            await asyncio.wait_for(task, 60)
            await until(lambda: again[-1].ended)
            second = again[-1]
            assert second.first_sequence == 0
            assert "ipfix.set.unknown_template" not in second.counters
            assert ids(second.reports)[0] == (0, 1, 1)
            assert second.reports[-1]["requestPacketTotalCount"] == 4
            assert daemon.hub.statistics.in_doubt > 0
            assert all_accounted(daemon)
    asyncio.run(run())


def test_an_absent_collector_is_tried_again_and_polling_goes_on(folder, board, unused_port,
                                                                  caplog):
    async def run():
        async with listening(collector_context(folder)) as (endpoint, _):
            nowhere = type(endpoint)(endpoint.host, unused_port)
        daemon = make(board, nowhere, pki.credentials(folder, pki.EXPORTER))
        async with running(daemon) as task:
            await until(lambda: board.enabled[0], task)
            board.request(0)
            await until(lambda: daemon.hub.statistics.attempts >= 6, task)
            assert daemon.hub.statistics.produced >= 3
        assert daemon.hub.drops["no_session"] == daemon.hub.statistics.produced
        assert daemon.hub.statistics.sent == 0
    asyncio.run(run())
    lines = [one.message for one in caplog.records if "cannot be reached" in one.message]
    assert lines == [f"collector 127.0.0.1:{unused_port} cannot be reached: 127.0.0.1: "
                     "Connection refused; trying again"]


def test_a_slow_collector_fills_a_bounded_queue_and_nothing_else(folder, board):
    async def run():
        reads = asyncio.Event()
        async with listening(collector_context(folder), reads=reads) as (endpoint, _):
            daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER), queue_limit=5,
                          interval=0.02)

            async def stuck(session, exporting):
                await reads.wait()

            daemon._sessions._send_queue = stuck
            async with running(daemon) as task:
                await until(lambda: daemon.hub.statistics.sessions, task)
                board.request(0)
                board.request(1)
                await until(lambda: daemon.hub.drops["snapshot"] >= 20, task)
                assert len(daemon.hub.queue) <= 5 + 8
                del daemon._sessions._send_queue
                reads.set()
            assert all_accounted(daemon)
            assert daemon.hub.statistics.sent > 0
    asyncio.run(run())


def test_an_unplugged_board_comes_back_with_new_epochs_in_the_same_session(folder, board, caplog):
    async def run():
        async with listening(collector_context(folder)) as (endpoint, heard):
            daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER))
            async with running(daemon) as task:
                await until(lambda: daemon.hub.statistics.sessions, task)
                board.request(0, 5)
                await until(lambda: heard[0].reports, task)
                board.plugged = False
                await asyncio.sleep(0.5)
                board.power_on()
                board.plugged = True
                await until(lambda: daemon.hub.board.starts == 2, task)
                board.request(0, 2)
                await until(lambda: heard[0].reports[-1]["rdmaSequenceEpochId"] == 2, task)
            await until(lambda: heard[0].ended)
            assert len(heard) == 1
            assert heard[0].error is None
            assert heard[0].reports[-1]["requestPacketTotalCount"] == 2
            finals = [row["rdmaSequenceEpochId"] for row in heard[0].reports
                      if row["rdmaSequenceFlags"] & FINAL]
            assert finals == [2]
            assert all_accounted(daemon)
    asyncio.run(run())
    lines = [one.message for one in caplog.records if "board lost" in one.message]
    assert lines == ["board lost: fake: line is gone; trying again"]


def test_a_board_reset_without_a_lost_line_is_told_from_going_on(folder, board):
    async def run():
        async with listening(collector_context(folder)) as (endpoint, heard):
            daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER))
            async with running(daemon) as task:
                await until(lambda: daemon.hub.statistics.sessions, task)
                board.request(0, 5)
                await until(lambda: heard[0].reports, task)
                board.power_on()
                await until(lambda: daemon.hub.board.starts == 2, task)
                board.request(0, 1)
                await until(lambda: heard[0].reports[-1]["rdmaSequenceEpochId"] == 2, task)
            assert heard[0].error is None
    asyncio.run(run())


def test_exhausted_epoch_ids_end_the_session_in_order_and_start_another(folder, board,
                                                                        monkeypatch):
    from rocetap.export import boardloop
    from rocetap.export.epochs import EpochBook

    monkeypatch.setattr(boardloop, "EpochBook",
                        lambda contexts, clock: EpochBook(contexts, clock, max_epoch_id=1))

    async def run():
        async with listening(collector_context(folder)) as (endpoint, heard):
            daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER))
            async with running(daemon) as task:
                await until(lambda: daemon.hub.statistics.sessions == 1, task)
                board.request(0, 5)
                await until(lambda: daemon.hub.statistics.sessions == 2, task)
                assert heard[0].reports[-1]["rdmaSequenceFlags"] & FINAL
            assert daemon.hub.statistics.in_doubt == 0
    asyncio.run(run())


def test_a_full_report_id_closes_the_epoch_before_it_wraps(folder, board, monkeypatch):
    from rocetap.export import boardloop
    from rocetap.export.epochs import EpochBook

    monkeypatch.setattr(boardloop, "EpochBook",
                        lambda contexts, clock: EpochBook(contexts, clock, max_report_id=4))

    async def run():
        async with listening(collector_context(folder)) as (endpoint, heard):
            daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER), interval=0.05)
            async with running(daemon) as task:
                await until(lambda: daemon.hub.statistics.sessions == 1, task)
                board.request(0, 5)
                await until(lambda: any(row["rdmaSequenceFlags"] & FINAL
                                        for row in heard[0].reports), task)
            assert heard[0].error is None
            last = next(row for row in heard[0].reports if row["rdmaSequenceFlags"] & FINAL)
            assert last["rdmaSequenceReportId"] <= 4
    asyncio.run(run())


class TestWrongAtTheStart:
    """Ends with the error, not with another try."""

    def fails(self, error, daemon):
        async def run():
            await asyncio.wait_for(daemon.run(), 10)

        with pytest.raises(error) as caught:
            asyncio.run(run())
        return str(caught.value)

    def against(self, context, error, board, files):
        async def run():
            async with listening(context) as (endpoint, heard):
                daemon = make(board, endpoint, files)
                with pytest.raises(error) as caught:
                    await asyncio.wait_for(daemon.run(), 10)
                return str(caught.value), daemon, heard, endpoint
        return asyncio.run(run())

    def test_no_board(self, folder, board):
        board.plugged = False
        endpoint = type("E", (), {"host": "127.0.0.1", "port": 1})()
        daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER))
        assert self.fails(TransportOpenError, daemon) == "cannot open fake: no such port"

    def test_a_line_that_closes_at_once(self, folder, board):
        def opened():
            driver = Driver(board.transport(), clock=time.monotonic)
            board.plugged = False
            return driver

        endpoint = type("E", (), {"host": "127.0.0.1", "port": 1})()
        daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER), open_driver=opened)
        assert self.fails(TransportClosed, daemon) == "fake: line is gone"

    def test_a_board_that_is_too_small(self, folder, board):
        endpoint = type("E", (), {"host": "127.0.0.1", "port": 1})()
        daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER), plan=provisioning(5))
        assert self.fails(BoardTooSmallError, daemon).startswith("5 connections, but the board ")

    def test_another_collector(self, folder, foreign, board):
        files = pki.credentials(folder, pki.EXPORTER)
        message, daemon, _, endpoint = self.against(
            collector_context(foreign), IdentityError, board, files)
        assert message.startswith(f"collector {endpoint} has no valid certificate for "
                                  "'collector.example': ")
        assert daemon.hub.statistics.attempts == 1

    def test_a_collector_that_refuses_us(self, folder, foreign, board):
        theirs = pki.credentials(foreign, pki.EXPORTER)
        files = pki.Credentials(folder / "ca.pem", theirs.certificate, theirs.key)
        message, daemon, heard, endpoint = self.against(
            collector_context(folder), RefusedError, board, files)
        assert message.startswith(f"collector {endpoint} closed the session before accepting it")
        assert daemon.hub.statistics.attempts == 3
        assert daemon.hub.statistics.sent == 0
        assert not any(one.octets for one in heard)


def test_stop_while_nobody_answers_is_quick(folder, board):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()

        async def run():
            from rocetap.export.endpoint import Endpoint
            daemon = make(board, Endpoint(*silent.getsockname()),
                          pki.credentials(folder, pki.EXPORTER), limits=Limits(connect=600))
            task = asyncio.create_task(daemon.run())
            await asyncio.sleep(0.3)
            daemon.stop()
            await asyncio.wait_for(task, 60)
        asyncio.run(run())
