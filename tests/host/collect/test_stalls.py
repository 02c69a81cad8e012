"""Peers that cut, stall, vanish or attack, each beside one that does its work."""

import asyncio
import contextlib
import ctypes
import os
import socket
import ssl
import struct
import threading
import time

import pytest

from rocetap.collect.server import CollectorServer, ServerSettings
from rocetap.collect.store import SqliteStore
from rocetap.collect.tls import ServerIdentity
from rocetap.pki import credentials
from support.collector_bench import connect, until
from support.ipfix_tools import data_set, message, opened, reports, template_record


@contextlib.asynccontextmanager
async def _serving(authority, folder, **settings):
    files = credentials(authority.folder, "collector")
    store = SqliteStore(folder / "store.db")
    server = CollectorServer(
        ServerIdentity(files.authority, files.certificate, files.key), ["probe-1.example"], store,
        ServerSettings(**settings))
    server.port = await server.start("127.0.0.1", 0)
    server.rows = lambda: list(store.sequence_rows())
    server.sessions = lambda: list(store.session_rows())
    try:
        yield server
    finally:
        await server.stop()
        store.close()


async def _close(writer):
    writer.close()
    with contextlib.suppress(OSError, ssl.SSLError):
        await writer.wait_closed()


def _messages(count):
    """The session's first octets, then `count` messages of a report each."""
    session, start = opened()
    return start, [b"".join(session.sequence(reports(1, number, flags=0x21), 1))
                   for number in range(1, count + 1)]


async def _beside(server, authority, work):
    """Runs `work`; meanwhile another exporter sends a report each few ms, and none of them waits
    for long. Gives the longest wait, and how many it sent."""
    writer = await connect(authority, server.port)
    start, messages = _messages(2000)
    writer.write(start)
    done = asyncio.create_task(work)
    longest, sent = 0.0, 0
    while not done.done() and sent < len(messages):
        before, begin = server.reports_written, time.monotonic()
        writer.write(messages[sent])
        sent += 1
        await until(lambda before=before: server.reports_written > before)
        longest = max(longest, time.monotonic() - begin)
        await asyncio.sleep(0.005)
    await done
    await _close(writer)
    return longest, sent


def test_case_13_messages_cut_anywhere_are_stored_once_and_nobody_waits(
        tmp_path, shared_authority):
    async def cut(server):
        start, messages = _messages(3)
        octets = start + b"".join(messages)
        tail = len(messages[2])
        for pieces in ([octets[i:i + 1] for i in range(len(octets))],
                       [start, messages[0][:3], None, messages[0][3:], *messages[1:]],
                       [octets[:-tail // 2], octets[-tail // 2:]]):
            writer = await connect(shared_authority, server.port)
            for piece in pieces:
                if piece is None:
                    await asyncio.sleep(3)
                else:
                    writer.write(piece)
                    await writer.drain()
            await _close(writer)
        writer = await connect(shared_authority, server.port)
        writer.write(octets[:-1])
        await _close(writer)

    async def run():
        async with _serving(shared_authority, tmp_path, tick_s=0.05) as server:
            longest, sent = await _beside(server, shared_authority, cut(server))
            await until(lambda: server.drops["ipfix.truncated_message"] == 1)
            await until(lambda: not server.peers and server.reports_written == sent + 11)
            counts = {}
            for row in server.rows():
                epochs = counts.setdefault(row["transportSession"], [])
                epochs.append(row["rdmaSequenceEpochId"])
            return longest, sent, sorted(counts.values(), key=len), dict(server.drops)

    longest, sent, sessions, drops = asyncio.run(run())
    assert sessions == [[1, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3], list(range(1, sent + 1))]
    assert drops == {"ipfix.truncated_message": 1}
    assert longest < 2.5, "another exporter waited for one that paused three seconds"


def _flood(authority, port, octets, stop):
    """Sends the octets again and again over a session of its own, as fast as they are taken."""
    with (contextlib.suppress(OSError),
          socket.create_connection(("127.0.0.1", port)) as plain,
          authority.client("exporter").wrap_socket(
              plain, server_hostname="collector.example") as line):
        while not stop.is_set():
            line.sendall(octets)


def test_a_peer_whose_octets_take_long_leaves_others_their_turn(tmp_path, shared_authority):
    """65,000 records of one empty string a message: what is dear to read, as fast as it goes."""
    records = 65_000
    flood = message(data_set(2, template_record(300, (82, 65535)))) + message(
        data_set(300, bytes(records)))

    async def run():
        async with _serving(shared_authority, tmp_path) as server:
            def messages():
                return server.drops["record.foreign"] // records

            stop = threading.Event()
            thread = threading.Thread(
                target=_flood, args=(shared_authority, server.port, flood, stop))
            thread.start()
            try:
                await until(lambda: messages() >= 5)
                before = messages()
                writer = await connect(shared_authority, server.port)
                start, [report] = _messages(1)
                writer.write(start + report)
                await until(lambda: server.reports_written == 1)
                between = messages() - before
                await _close(writer)
            finally:
                stop.set()
                for live in list(server.live):
                    live.transport.abort()
                await asyncio.to_thread(thread.join)
            return between

    between = asyncio.run(run())
    assert between < 24


SENT = opened()[0].records_sent + 1
"""Data Records before the hostile message: those of the options, and one report."""

HOSTILE = {
    "message length 0": message(sequence=SENT, length=0),
    "message length 15": message(sequence=SENT, length=15),
    "message length 65,535 with little data": message(sequence=SENT, length=65_535),
    "set length 0": message(data_set(256, b"", 0), sequence=SENT),
    "set length 3": message(data_set(256, b"", 3), sequence=SENT),
    "set length past the end": message(data_set(256, b"", 5000), sequence=SENT),
    "template id 255": message(data_set(2, template_record(255, (1, 4))), sequence=SENT),
    "field count 65,535": message(data_set(
        2, template_record(256, (1, 4), count=65_535)), sequence=SENT),
    "the same id redefined": message(data_set(2, template_record(257, (1, 4))), sequence=SENT),
    "scope count 0": message(data_set(3, template_record(300, (1, 4), scope=0)), sequence=SENT),
    "wrong version": message(version=9),
}
ENDS = {"message length 0", "message length 15", "wrong version"}


@pytest.mark.parametrize("name", HOSTILE)
def test_case_44_each_bad_input_is_counted_and_others_go_on(tmp_path, shared_authority, name):
    """The connection is closed only where framing is lost."""
    async def run():
        async with _serving(shared_authority, tmp_path) as server:
            good = await connect(shared_authority, server.port)
            start, messages = _messages(4)
            good.write(start + messages[0])
            hostile = await connect(shared_authority, server.port)
            hostile.write(start + messages[0] + HOSTILE[name])
            if name in ENDS:
                await until(lambda: server.peers == 1)
            elif name != "message length 65,535 with little data":
                await until(lambda: sum(server.drops.values()) > 0)
                assert server.peers == 2
                hostile.write(message(sequence=SENT))
            good.write(b"".join(messages[1:]))
            await until(lambda: server.reports_written == 5)
            await _close(hostile)
            await _close(good)
            await until(lambda: not server.peers)
            return [row["outcome"] for row in server.rows()], dict(server.drops)

    outcomes, drops = asyncio.run(run())
    assert outcomes == ["complete"] * 5
    assert len(drops) == (0 if name in ENDS else 1)


def test_case_22_fifty_silent_peers_are_freed_in_the_documented_bound(tmp_path,
                                                                      shared_authority):
    async def run():
        async with _serving(shared_authority, tmp_path, idle_s=1.0, tick_s=0.1) as server:
            before = len(os.listdir("/proc/self/fd"))
            writers = await asyncio.gather(*(
                connect(shared_authority, server.port) for _ in range(50)))
            await until(lambda: server.sessions_begun == 50, 20)
            begin = time.monotonic()
            await until(lambda: not server.peers, 10)
            waited = time.monotonic() - begin
            for writer in writers:
                await _close(writer)
            await until(lambda: len(os.listdir("/proc/self/fd")) <= before)
            return waited

    assert asyncio.run(run()) < 3.0


def test_case_22_every_connection_has_the_keepalive_of_the_bound(tmp_path, shared_authority):
    async def run(seconds):
        async with _serving(shared_authority, tmp_path, dead_peer_s=seconds) as server:
            writer = await connect(shared_authority, server.port)
            await until(lambda: server.live)
            served = next(iter(server.live)).get_extra_info("socket")
            values = [served.getsockopt(socket.IPPROTO_TCP, option) for option in (
                socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT,
                socket.TCP_USER_TIMEOUT)]
            assert served.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            await _close(writer)
            return values

    assert asyncio.run(run(30.0)) == [10, 5, 4, 30_000]
    assert asyncio.run(run(3.0)) == [1, 1, 2, 3000]


def _deaf(connection):
    """Drops whatever comes to a socket, in the kernel: to its peer it has vanished, without FIN
    and without reset (a classic BPF program of one instruction, return 0)."""
    program = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
    connection.setsockopt(socket.SOL_SOCKET, 26,  # SO_ATTACH_FILTER
                          struct.pack("HL", 1, ctypes.addressof(program)))


def test_case_22_fifty_vanished_peers_are_freed_by_keepalive(tmp_path, shared_authority):
    async def run():
        async with _serving(shared_authority, tmp_path, dead_peer_s=3.0) as server:
            before = len(os.listdir("/proc/self/fd"))
            writers = await asyncio.gather(*(
                connect(shared_authority, server.port) for _ in range(50)))
            await until(lambda: server.sessions_begun == 50, 20)
            for writer in writers:
                _deaf(writer.get_extra_info("socket"))
            begin = time.monotonic()
            await until(lambda: not server.peers, 20)
            waited = time.monotonic() - begin
            good = await connect(shared_authority, server.port)
            await _close(good)
            for writer in writers:
                writer.transport.abort()
            await until(lambda: len(os.listdir("/proc/self/fd")) <= before)
            await until(lambda: not server.peers)
            return waited, [row["end_reason"] for row in server.sessions()]

    waited, reasons = asyncio.run(run())
    assert 1.5 < waited < 12.0
    assert reasons[:50] == ["broken: Connection timed out"] * 50
    assert reasons[50:] == ["closed by the exporter"]
