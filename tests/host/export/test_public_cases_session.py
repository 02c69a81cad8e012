"""Faults of the path to the collector that public reports tell of, against the whole daemon."""

import asyncio
import random
import socket
import time

import pytest

from rocetap import pki
from rocetap.export import tls
from rocetap.export.endpoint import Endpoint
from rocetap.export.tls import Limits
from rocetap.spec.registers import OperationKind
from support.daemon_bench import QUICK, all_accounted, make, provisioning, running, until
from support.fake_board import FakeBoard
from support.netns import Cable, namespaces_permitted
from support.tls_collector import collector_context, listening

SILENT = Limits(connect=1.0, dead_peer=3.0, grace=0.3, settle=0.05, close=1.0)


def stored(heard):
    """(connection, epoch, report) of every report that some connection brought."""
    return [(number, row["rdmaSequenceEpochId"], row["rdmaSequenceReportId"])
            for number, one in enumerate(heard) for row in one.reports]


@pytest.fixture
def tight(monkeypatch):
    """Small buffers on the way out, so that writes are partial."""
    set_liveness = tls._set_liveness

    def small(connection, dead_peer):
        set_liveness(connection, dead_peer)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    monkeypatch.setattr(tls, "_set_liveness", small)
    monkeypatch.setattr(tls, "_WRITE_BUFFER", 4096)


# Case 22: the collector's host is gone without a word. Only where a network may be made.

if namespaces_permitted():
    @pytest.mark.parametrize(("interval", "how"), [(0.1, "data"), (600.0, "keepalive")])
    def test_case_22_a_silent_path_is_found_dead_within_the_bound(folder, board, interval, how):
        async def run(cable):
            with cable.inside(1):
                listener = listening(collector_context(folder), host=cable.addresses[1])
                endpoint, heard = await listener.__aenter__()
            with cable.inside(0):
                daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER),
                              interval=interval, limits=SILENT)
                async with running(daemon) as task:
                    await until(lambda: daemon.hub.statistics.sessions, task)
                    board.request(0)
                    if how == "data":
                        await until(lambda: len(heard[0].reports) > 3, task)
                    cable.cut()
                    cut = time.monotonic()
                    await until(lambda: daemon.hub.book is None, task)
                    # The kernel by itself takes many minutes; a busy machine some seconds more.
                    assert time.monotonic() - cut < SILENT.dead_peer + 30
                    counts = daemon.hub.statistics
                    assert counts.in_doubt == counts.sent
                    assert counts.sent - len(heard[0].reports) <= counts.in_doubt
                    cable.mend()
                    await until(lambda: counts.sessions == 2, task)
                    board.request(0)
                await until(lambda: heard[-1].ended)
                assert heard[-1].first_sequence == 0
                assert heard[-1].reports[0]["rdmaSequenceReportId"] == 1
                assert all_accounted(daemon)
            await listener.__aexit__(None, None, None)

        with Cable.laid() as cable:
            asyncio.run(run(cable))


def test_case_22_the_bound_is_set_on_the_socket():
    with socket.socket() as connection:
        tls._set_liveness(connection, Limits().dead_peer)
        options = {name: connection.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
                   for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT",
                                "TCP_USER_TIMEOUT")}
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert options["TCP_USER_TIMEOUT"] == 30_000
    assert options["TCP_KEEPIDLE"] + options["TCP_KEEPINTVL"] * options["TCP_KEEPCNT"] <= 30


# Case 29: the name is resolved at each try, and every address is tried.

def test_case_29_a_collector_that_moves_is_found_by_its_name(folder, board):
    async def run():
        context = collector_context(folder)
        asked, addresses = [], ["127.0.0.1"]
        loop = asyncio.get_running_loop()
        resolve = loop.getaddrinfo

        async def fake(host, port, **options):
            if host != "collector.test":
                return await resolve(host, port, **options)
            asked.append(list(addresses))
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in addresses]

        loop.getaddrinfo = fake
        async with listening(context) as (endpoint, first):
            daemon = make(board, Endpoint("collector.test", endpoint.port),
                          pki.credentials(folder, pki.EXPORTER))
            task = asyncio.create_task(daemon.run())
            await until(lambda: daemon.hub.statistics.sessions, task)
        addresses[:] = ["127.0.0.9", "127.0.0.2"]
        async with listening(context, host="127.0.0.2", port=endpoint.port) as (_, second):
            await until(lambda: daemon.hub.statistics.sessions == 2, task)
            daemon.stop()
            await asyncio.wait_for(task, 60)
        assert (len(first), len(second)) == (1, 1)
        assert asked[0] == ["127.0.0.1"]
        assert asked[-1] == ["127.0.0.9", "127.0.0.2"]
        assert len(asked) == daemon.hub.statistics.attempts
    asyncio.run(run())


# Case 32: a collector that accepts and reads nothing, then refuses, then is well.

def test_case_32_a_slow_then_absent_collector(folder, unused_port, tight, caplog):
    board = FakeBoard(contexts=64)

    async def run():
        context, reads = collector_context(folder), asyncio.Event()
        files = pki.credentials(folder, pki.EXPORTER)
        most = 0

        async def talk():
            while True:
                for context in range(60):
                    board.request(context)
                await asyncio.sleep(0.02)

        def watched(condition):
            nonlocal most
            most = max(most, daemon.hub.queue.records)
            return condition()

        async with listening(context, port=unused_port, reads=reads,
                             receive_buffer=4096) as (endpoint, _):
            daemon = make(board, endpoint, files, interval=0.04, queue_limit=100,
                          plan=provisioning(64),
                          limits=Limits(connect=1.0, dead_peer=20.0, grace=0.1, settle=0.02,
                                        close=0.2))
            counts = daemon.hub.statistics
            task = asyncio.create_task(daemon.run())
            await until(lambda: counts.sessions, task)
            traffic = asyncio.create_task(talk())
            await until(lambda: watched(lambda: daemon.hub.drops["snapshot"] > 10), task)
            for _ in range(3):
                board.operations.clear()
                await until(lambda: board.operations.count((OperationKind.SNAPSHOT, 0)) >= 2,
                            task, 5)  # less than the session waits
        attempts = counts.attempts
        await until(lambda: counts.in_doubt, task)
        await until(lambda: watched(lambda: counts.attempts >= attempts + 8), task)
        async with listening(context, port=unused_port) as (_, heard):
            sessions = counts.sessions
            await until(lambda: counts.sessions > sessions, task)
            board.request(60, 7)
            await until(lambda: heard and any(row["rdmaDestinationQP"] == 60
                                              for row in heard[-1].reports), task)
            traffic.cancel()
            daemon.stop()
            await asyncio.wait_for(task, 60)
            await until(lambda: heard[-1].ended)
        assert next(row["requestPacketTotalCount"] for row in heard[-1].reports
                    if row["rdmaDestinationQP"] == 60) == 7
        assert 50 < most <= 100
        assert all_accounted(daemon)
        return counts

    counts = asyncio.run(run())
    warnings = [one for one in caplog.records if one.levelname == "WARNING"
                and "collector" in one.getMessage()]
    assert len(warnings) <= 2 + counts.sessions < counts.attempts


# Case 47: sessions cut at random moments. At most once; what may be missing is known.

def test_case_47_twenty_cuts_repeat_nothing_and_lose_no_more_than_is_in_doubt(
        folder, board, unused_port, tight):
    rng = random.Random(47)

    async def run():
        context, heard = collector_context(folder), []
        endpoint = Endpoint("127.0.0.1", unused_port)
        daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER), interval=0.01,
                      limits=Limits(connect=1.0, dead_peer=1.0, grace=0.1, settle=0.02, close=0.5))
        counts = daemon.hub.statistics
        task = asyncio.create_task(daemon.run())
        for cut in range(20):
            reads = asyncio.Event()
            async with listening(context, port=unused_port, reads=reads,
                                 receive_buffer=4096) as (_, one):
                sessions = counts.sessions
                await until(lambda wanted=sessions: counts.sessions > wanted, task)
                if rng.random() < 0.8:
                    reads.set()
                until_cut = time.monotonic() + rng.random() * 0.15
                while time.monotonic() < until_cut:
                    board.request(rng.randrange(2))
                    await asyncio.sleep(0.005)
                if cut % 3 == 0:  # in order, from the collector's side
                    reads.set()
                    await asyncio.sleep(0.02)
            heard += one
        daemon.stop()
        await asyncio.wait_for(task, 60)
        return daemon, heard

    daemon, heard = asyncio.run(run())
    counts, keys = daemon.hub.statistics, stored(heard)
    assert len(keys) == len(set(keys)) > 0
    assert all(one.first_sequence == 0 for one in heard if one.octets)
    assert not any("unknown_template" in reason for one in heard for reason in one.counters)
    assert counts.sessions == 20
    assert 0 <= counts.sent - len(keys) <= counts.in_doubt
    assert all_accounted(daemon)


def test_the_shortest_limit_of_a_dead_peer_still_has_probes():
    with socket.socket() as connection:
        tls._set_liveness(connection, QUICK.dead_peer)
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 1
