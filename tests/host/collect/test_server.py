"""Real TLS on loopback."""

import asyncio
import contextlib
import fcntl
import logging
import socket
import ssl
import struct
import sys
import termios
import time

import pytest

from rocetap.collect.server import CollectorServer, ServerSettings, _find_dead, _Reader
from rocetap.collect.store import SqliteStore, StoreError
from rocetap.collect.tls import ServerIdentity
from rocetap.pki import credentials
from support.certificates import Authority, common_name_only
from support.ipfix_tools import message, opened, readings, reports

TIME = 1_700_000_000


class Bench:
    """A server on a free port of loopback with a store in a folder."""

    def __init__(self, authority, folder, allowed=("probe-1.example",), **settings):
        files = credentials(authority.folder, "collector")
        self.authority = authority
        self.store = SqliteStore(folder / "store.db")
        self.server = CollectorServer(
            ServerIdentity(files.authority, files.certificate, files.key), allowed, self.store,
            ServerSettings(**({"retry_s": 0.02} | settings)))

    async def __aenter__(self):
        self.port = await self.server.start("127.0.0.1", 0)
        return self

    async def __aexit__(self, *error):
        await self.server.stop(drain_s=0 if error[0] else 5)

    async def connect(self, context=None):
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=context or self.authority.client(),
            server_hostname="collector.example", ssl_shutdown_timeout=1.0)

    async def send(self, *pieces, pause=0.0, context=None):
        _, writer = await self.connect(context)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        await _close(writer)

    def rows(self):
        return list(self.store.sequence_rows())

    def sessions(self):
        return [(row["exporter"], row["end_reason"]) for row in self.store.session_rows()]


@pytest.fixture
def bench(shared_authority, tmp_path):
    """Makes benches and closes their stores."""
    with contextlib.ExitStack() as stack:
        def make(authority=shared_authority, **options):
            made = Bench(authority, tmp_path, **options)
            stack.callback(made.store.close)
            return made
        yield make


async def _close(writer):
    writer.close()
    with contextlib.suppress(OSError, ssl.SSLError):
        await writer.wait_closed()


async def _until(condition, seconds=60.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def _octets(rows, pfc=None):
    session, start = opened()
    octets = start + b"".join(session.sequence(rows, TIME))
    return octets if pfc is None else octets + b"".join(session.pfc(pfc, TIME))


def test_an_authorized_exporter_is_stored(bench):
    async def run():
        made = bench()
        async with made:
            await made.send(_octets(reports(700, flags=0x21), readings(8)))
        assert [row["outcome"] for row in made.rows()] == ["complete"] * 700
        assert len(list(made.store.pfc_rows())) == 8
        assert made.sessions() == [("probe-1.example", "closed by the exporter")]
        assert made.server.reports_written == 700
        assert not made.server.drops

    asyncio.run(run())


def test_three_messages_in_any_pieces_are_stored_once_while_another_exporter_sends(bench):
    async def run():
        made = bench()
        octets = _octets(reports(3, flags=0x21))
        async with made, asyncio.TaskGroup() as group:
            group.create_task(made.send(
                *(octets[at:at + 100] for at in range(0, len(octets), 100)), pause=0.002))
            group.create_task(made.send(octets[:3], octets[3:], pause=0.1))
            group.create_task(made.send(octets))
        assert [row["outcome"] for row in made.rows()] == ["complete"] * 9
        assert not made.server.drops

    asyncio.run(run())


def test_what_a_reader_holds_comes_before_the_error():
    async def run():
        reader = _Reader(limit=100)
        reader.feed_data(b"x" * 150)
        reader.set_exception(ConnectionResetError("reset"))
        assert [await reader.read(100), await reader.read(100), await reader.read(100)] == [
            b"x" * 100, b"x" * 50, b""]
        assert str(reader.broken) == "reset"

    asyncio.run(run())


def test_what_came_before_a_reset_is_stored(bench):
    """A peer that closes without reading our session ticket resets the connection (RFC 9293,
    3.6.1)."""
    def reset(port, context, rows):
        with contextlib.closing(context.wrap_socket(
                socket.create_connection(("127.0.0.1", port)),
                server_hostname="collector.example")) as line:
            line.sendall(rows)
            while int.from_bytes(fcntl.ioctl(line, termios.TIOCOUTQ, bytes(4)), sys.byteorder):
                time.sleep(0.01)    # until our system has everything acknowledged
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def run():
        made = bench()
        async with made:
            rows = _octets(reports(1000, flags=0x21))
            await asyncio.to_thread(reset, made.port, made.authority.client(), rows)
            await _until(lambda: made.sessions() and made.sessions()[0][1] is not None)
        assert len(made.rows()) == 1000
        [(_, reason)] = made.sessions()
        assert reason.startswith("broken: ")

    asyncio.run(run())


def test_a_certificate_that_expired_since_resumes_nothing(bench, caplog):
    """A resumed TLS session rests on the certificate as it was judged then."""
    async def run():
        made = bench()
        made.server._clock = lambda: 1000 * int(time.time() + 400 * 86_400)
        async with made:
            await made.send(_octets(reports(1)))
        assert made.sessions() == []
        assert +made.server.counters == {"refused_expired": 1}

    asyncio.run(run())
    assert "its certificate has expired" in caplog.text


def test_without_session_tickets_an_exporter_that_never_reads_ends_in_order(
        shared_authority, tmp_path, bench):
    files = credentials(shared_authority.folder, "collector")

    def send_and_close(port, context, rows):
        with contextlib.closing(context.wrap_socket(
                socket.create_connection(("127.0.0.1", port)),
                server_hostname="collector.example", suppress_ragged_eofs=True)) as line:
            line.sendall(rows)

    async def run():
        made = bench()
        made.server._identity = ServerIdentity(
            files.authority, files.certificate, files.key, tickets=False)
        async with made:
            await asyncio.to_thread(send_and_close, made.port, shared_authority.client(),
                                    _octets(reports(5000, flags=0x21)))
            await _until(lambda: made.sessions() and made.sessions()[0][1] is not None)
        assert len(made.rows()) == 5000
        assert "reset" not in made.sessions()[0][1]

    asyncio.run(run())


def test_metrics_show_what_happened_and_the_limits(bench, caplog):
    async def run():
        made = bench()
        with caplog.at_level(logging.INFO):
            async with made:
                await made.send(_octets(reports(2))[:-1])
                await made.send(_octets(reports(3, flags=0x21)))
                await _until(lambda: made.server.reports_written == 3)
                metrics = made.server.metrics()
        assert metrics["reports_written"] == 3
        assert metrics["dropped.ipfix.truncated_message"] == 1
        assert metrics["limit.peers"] == 256
        assert metrics["limit.epochs.contexts"] == 100_000
        assert metrics["certificate_expires_ms"] > 1_700_000_000_000

    asyncio.run(run())
    assert "limits: peers 256, handshakes 64, handshake_s 10, " in caplog.text


def test_an_end_in_mid_message_is_one_count(bench):
    async def run():
        made = bench()
        async with made:
            await made.send(_octets(reports(2))[:-1])
        assert made.rows() == []
        assert made.server.drops == {"ipfix.truncated_message": 1}

    asyncio.run(run())


def test_a_session_without_finals_is_incomplete(bench):
    async def run():
        made = bench()
        async with made:
            await made.send(_octets(reports(2)))
        assert [row["outcome"] for row in made.rows()] == ["incomplete"] * 2

    asyncio.run(run())


def test_reconnecting_is_a_new_transport_session(bench):
    async def run():
        made = bench()
        async with made:
            await made.send(_octets(reports(1, flags=0x21)))
            await made.send(_octets(reports(1, flags=0x21)))
        assert [row["transportSession"] for row in made.rows()] == [1, 2]
        assert [row["outcome"] for row in made.rows()] == ["complete"] * 2

    asyncio.run(run())


# Who may connect


def test_a_name_that_is_not_allowed_is_refused_and_logged(bench, shared_authority, caplog):
    async def run():
        made = bench()
        context = shared_authority.client(shared_authority.issue("stranger.example"))
        async with made:
            reader, writer = await made.connect(context)
            writer.write(_octets(reports(1)))
            with contextlib.suppress(OSError, ssl.SSLError):
                assert await reader.read() == b""
            await _close(writer)
            await _until(lambda: not made.server.peers)
            await made.send(_octets(reports(1, flags=0x21)))
        assert made.server.counters["refused_name"] == 1
        assert made.sessions() == [("probe-1.example", "closed by the exporter")]
        assert len(made.rows()) == 1

    asyncio.run(run())
    assert ("its certificate names stranger.example, which is not allowed" in caplog.text)


def test_a_common_name_counts_when_there_is_no_alternative_name(bench, shared_authority):
    async def run():
        made = bench(allowed=["cn-probe"])
        context = shared_authority.client(common_name_only(shared_authority, "cn-probe"))
        async with made:
            await made.send(_octets(reports(1, flags=0x21)), context=context)
        assert made.sessions() == [("cn-probe", "closed by the exporter")]

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["none", "foreign", "expired", "tls 1.2", "plain"])
def test_what_is_no_client_of_our_authority_is_refused(bench, shared_authority, tmp_path, kind,
                                                       caplog):
    async def run():
        made = bench()
        context = shared_authority.client(None)
        if kind == "foreign":
            other = Authority.make(tmp_path / "other")
            context = other.client(trust=shared_authority.folder / "ca.pem")
        elif kind == "expired":
            context = shared_authority.client(shared_authority.issue("old.example", days=0))
        elif kind == "tls 1.2":
            context = shared_authority.client()
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        async with made:
            if kind == "plain":
                _, writer = await asyncio.open_connection("127.0.0.1", made.port)
                writer.write(_octets(reports(1)))
                await _close(writer)
            else:
                with contextlib.suppress(OSError, ssl.SSLError):
                    reader, writer = await made.connect(context)
                    writer.write(_octets(reports(1)))
                    await reader.read()
                    await _close(writer)
            await _until(lambda: made.server.counters["handshake_failed"])
            await made.send(_octets(reports(1, flags=0x21)))
        assert made.server.counters["handshake_failed"] == 1
        assert len(made.rows()) == 1

    asyncio.run(run())
    assert caplog.text.count("TLS handshake failed") == 1


def test_renewed_certificates_serve_the_next_handshake(bench, authority):
    async def run():
        made = bench(authority)
        async with made:
            await made.send(_octets(reports(1, flags=0x21)))
            Authority.make(authority.folder.parent / "new")
            for file in ("ca.pem", "collector.pem", "collector.key", "exporter.pem",
                         "exporter.key"):
                (authority.folder / file).write_bytes(
                    (authority.folder.parent / "new" / file).read_bytes())
            await made.send(_octets(reports(1, flags=0x21)))
        assert len(made.rows()) == 2

    asyncio.run(run())


# Slow, silent and hostile peers


def test_a_silent_handshake_ends_and_harms_nobody(bench):
    async def run():
        made = bench(handshake_s=0.3)
        async with made:
            _, silent = await asyncio.open_connection("127.0.0.1", made.port)
            await made.send(_octets(reports(1, flags=0x21)))
            await _until(lambda: made.server.counters["handshake_failed"] == 1)
            await _close(silent)
        assert len(made.rows()) == 1

    asyncio.run(run())


def test_a_host_that_only_connects_does_not_keep_others_out(bench):
    """127.0.0.2 holds every handshake; who comes from elsewhere takes the place of its oldest."""
    async def run():
        made = bench(handshake_s=60, handshakes=3)
        async with made, contextlib.AsyncExitStack() as stack:
            silent = []
            for _ in range(5):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", made.port, local_addr=("127.0.0.2", 0))
                stack.push_async_callback(_close, writer)
                silent.append(reader)
            await _until(lambda: made.server.counters["refused_handshakes_limit"] == 2)
            stack.push_async_callback(_close, (await made.connect())[1])
            await _until(lambda: made.server.sessions_begun == 1)
            assert made.server.counters["refused_handshakes_limit"] == 3
            assert await asyncio.wait_for(silent[0].read(), 60) == b"", "the oldest was ended"

    asyncio.run(run())


def test_handshakes_and_peers_are_bounded(bench, caplog):
    async def run():
        made = bench(handshake_s=5, handshakes=2, peers=3)
        async with made:
            silent = [(await asyncio.open_connection("127.0.0.1", made.port))[1]
                      for _ in range(3)]
            await _until(lambda: made.server.counters["refused_handshakes_limit"] == 1)
            for writer in silent:
                await _close(writer)
            await _until(lambda: not made.server.peers)
            live = [(await made.connect())[1] for _ in range(3)]
            await _until(lambda: len(list(made.store.session_rows())) == 3)
            _, over = await asyncio.open_connection("127.0.0.1", made.port)
            await _until(lambda: made.server.counters["refused_peers_limit"] == 1)
            for writer in (*live, over):
                await _close(writer)
        assert made.server.counters["handshake_failed"] == 2

    asyncio.run(run())
    assert "the limit of 3 peers is reached" in caplog.text
    assert "the limit of 2 handshakes is reached" in caplog.text


def test_an_idle_peer_is_closed_with_a_reason(bench):
    async def run():
        made = bench(idle_s=0.2, tick_s=0.05)
        async with made:
            reader, writer = await made.connect()
            writer.write(_octets(reports(1)))
            async with asyncio.timeout(5):
                with contextlib.suppress(OSError, ssl.SSLError):
                    assert await reader.read() == b""
            await _close(writer)
        assert made.sessions() == [("probe-1.example", "idle for 0.2 s")]
        assert made.rows()[0]["outcome"] == "incomplete"

    asyncio.run(run())


def test_lost_framing_closes_its_connection_only(bench):
    async def run():
        made = bench()
        async with made:
            reader, hostile = await made.connect()
            _, good = await made.connect()
            octets = _octets(reports(2, flags=0x21))
            good.write(octets[:700])
            hostile.write(_octets(reports(1)) + message(version=9))
            async with asyncio.timeout(5):
                with contextlib.suppress(OSError, ssl.SSLError):
                    await reader.read()
            await _close(hostile)
            good.write(octets[700:])
            await _close(good)
        assert sorted(row["outcome"] for row in made.rows()) == [
            "complete", "complete", "incomplete"]
        reasons = sorted(reason for _, reason in made.sessions())
        assert reasons[0] == "closed by the exporter"
        assert reasons[1].startswith("protocol error: message at octet ")
        assert reasons[1].endswith(" has version 9, must be 10")

    asyncio.run(run())


def test_a_connection_that_is_reset_is_a_session_that_ended(bench):
    async def run():
        made = bench()
        async with made:
            _, writer = await made.connect()
            writer.write(_octets(reports(1)))
            await writer.drain()
            await _until(lambda: made.rows())
            writer.transport.abort()
            await _until(lambda: not made.server.peers)
        assert made.rows()[0]["outcome"] == "incomplete"

    asyncio.run(run())


# Stopping and the store


def test_a_stop_stores_what_was_read_and_ends_the_sessions(bench):
    async def run():
        made = bench()
        await made.__aenter__()
        _, writer = await made.connect()
        writer.write(_octets(reports(40)))
        await writer.drain()
        await _until(lambda: made.server.reports_written == 40)
        await made.server.stop()
        await _close(writer)
        assert [row["outcome"] for row in made.rows()] == ["incomplete"] * 40
        assert made.sessions() == [("probe-1.example", "collector stopped")]
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", made.port)) != 0

    asyncio.run(run())


def test_a_store_that_fails_holds_exporters_and_loses_nothing(bench, caplog):
    async def run():
        made = bench(queued_batches=1, read_octets=4096)
        async with made:
            await made.send(_octets(reports(5, flags=0x21)))
            await _until(lambda: len(made.rows()) == 5)
            pages = made.store._db.execute("PRAGMA page_count").fetchone()[0]
            _, writer = await made.connect()
            await _until(lambda: len(made.sessions()) == 2)
            made.store._db.execute(f"PRAGMA max_page_count = {pages}")
            writer.write(_octets(reports(3000, flags=0x21)))
            await _until(lambda: "trying again" in caplog.text)
            await asyncio.sleep(0.2)
            made.store._db.execute("PRAGMA max_page_count = 1000000")
            await _close(writer)
        assert len(made.rows()) == 3005
        assert made.server.counters["batches_not_stored"] == 0

    asyncio.run(run())
    assert caplog.text.count("database or disk is full") == 1


def test_a_stop_with_a_full_store_raises_one_clear_error(bench):
    async def run():
        made = bench(queued_batches=1, read_octets=4096)
        await made.__aenter__()
        _, writer = await made.connect()
        await _until(lambda: len(made.sessions()) == 1)
        pages = made.store._db.execute("PRAGMA page_count").fetchone()[0]
        made.store._db.execute(f"PRAGMA max_page_count = {pages}")
        writer.write(_octets(reports(3000, flags=0x21)))
        with contextlib.suppress(OSError):
            await asyncio.wait_for(writer.drain(), 0.3)
        await asyncio.sleep(0.2)
        with pytest.raises(StoreError) as caught:
            await made.server.stop()
        assert str(caught.value) == (f"store {made.store.path}: cannot write: database or disk is "
                                     f"full; free space")
        assert made.server.counters["batches_not_stored"] >= 2
        writer.transport.abort()

    asyncio.run(run())


def test_a_port_in_use_is_an_error_of_start(bench, tmp_path):
    async def run():
        made = bench()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with pytest.raises(OSError, match="in use"):
                await made.server.start("127.0.0.1", taken.getsockname()[1])

    asyncio.run(run())


def test_two_hundred_peers_at_once(bench):
    async def run():
        made = bench(peers=200, handshakes=200, handshake_s=60)
        octets = _octets(reports(1, flags=0x21))
        gate = asyncio.Semaphore(20)

        async def one():
            async with gate:
                _, writer = await made.connect()
            writer.write(octets)
            return writer

        async with made:
            writers = await asyncio.gather(*(one() for _ in range(200)))
            await _until(lambda: made.server.reports_written == 200, 60)
            assert made.server.peers == 200
            await asyncio.gather(*map(_close, writers))
        assert len(made.rows()) == 200

    asyncio.run(run())


@pytest.mark.parametrize("seconds", [0.1, 3.0, 30.0, 1e6, 4e18])
def test_any_bound_of_dead_peers_is_one_that_the_system_takes(seconds):
    with socket.socket() as connection:
        _find_dead(connection, seconds)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert 1 <= connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 32767
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == int(
            1000 * min(seconds, 32767.0))
