"""The board behind a TCP port, as a plain socket and through the host's own transport."""

import contextlib
import re
import socket
import threading
import time

import numpy as np
import pytest

from rocetap.link.transport import open_transport
from rocetap_sim.player import CapturePlayer
from rocetap_sim.server import BoardServer, ServerError
from support.beats import batch_of, recorder_board
from support.designs.beat_recorder import record_octets

RECORD = record_octets(8)
LIMIT_S = 60.0


class Log(list):
    """Lines, and a wait for one of them."""

    def until(self, start):
        deadline = time.monotonic() + LIMIT_S
        while not any(line.startswith(start) for line in self):
            assert time.monotonic() < deadline, f"no line begins {start!r}: {list(self)}"
            time.sleep(0.005)


@pytest.fixture
def serve():
    """Starts servers and ends them, raising what ended them before."""
    servers = []

    def start(**options):
        log = Log()
        server = BoardServer(recorder_board(), log=log.append, **{"delay_s": 0.0, **options})
        server.start()
        servers.append(server)
        return server, log

    yield start
    for server in servers:
        server.stop()


def receive(line, count):
    line.settimeout(LIMIT_S)
    octets = b""
    while len(octets) < count:
        more = line.recv(count - len(octets))
        assert more, f"closed after {len(octets)} of {count} octets"
        octets += more
    return octets


def frames(count):
    return [number.to_bytes(2, "big") * 30 for number in range(count)]


def test_a_capture_goes_through_to_the_client(serve):
    batch = batch_of(frames(500))
    server, log = serve(player=CapturePlayer(lambda: [batch], speed=0))
    before = time.time_ns()
    with socket.create_connection(server.address) as line:
        octets = receive(line, 500 * 8 * RECORD)
    first_beats = [octets[at:at + RECORD] for at in range(0, len(octets), 8 * RECORD)]
    assert [int.from_bytes(beat[9:11], "big") for beat in first_beats] == [*range(500)]
    times = [int.from_bytes(beat[:8], "little") for beat in first_beats]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= time.time_ns()
    log.until("the capture is sent")


def test_frames_begin_only_when_a_client_came(serve):
    batch = batch_of(frames(1))
    server, _ = serve(player=CapturePlayer(lambda: [batch], speed=0))
    time.sleep(0.1)
    with socket.create_connection(server.address) as line:
        assert len(receive(line, 8 * RECORD)) == 8 * RECORD


def test_the_hosts_transport_opens_it(serve):
    batch = batch_of(frames(1))
    # pyserial drops what comes while it opens, so the frame waits a moment.
    server, _ = serve(player=CapturePlayer(lambda: [batch], speed=0), delay_s=0.3)
    transport = open_transport("socket://{}:{}".format(*server.address))
    try:
        octets = b""
        while len(octets) < 8 * RECORD:
            more = transport.read(4096, LIMIT_S)
            assert more
            octets += more
    finally:
        transport.close()
    assert int.from_bytes(octets[9:11], "big") == 0


def test_octets_from_the_client_reach_the_board(serve):
    batch = batch_of(frames(40), time_ns=np.arange(40, dtype=np.uint64) * 20_000_000)
    server, _ = serve(player=CapturePlayer(lambda: [batch]))
    with socket.create_connection(server.address) as line:
        got = len(receive(line, 8 * RECORD))
        line.sendall(b"\0")    # hold records back
        line.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            while got < 40 * 8 * RECORD:
                got += len(line.recv(4096))
        assert got < 30 * 8 * RECORD
        line.sendall(b"\1")
        receive(line, 40 * 8 * RECORD - got)


def test_a_second_client_is_told_and_closed(serve):
    server, log = serve()
    with socket.create_connection(server.address) as first:
        log.until("client ")
        with socket.create_connection(server.address) as second:
            second.settimeout(LIMIT_S)
            answer = b""
            while more := second.recv(100):
                answer += more
        assert answer == b"rocetap sim: another client is connected\n"
        log.until("refused ")
        assert re.fullmatch(r"refused 127\.0\.0\.1:\d+: another client is connected", log[1])
        first.sendall(b"\1")
    log.until("client disconnected")
    with socket.create_connection(server.address):
        deadline = time.monotonic() + LIMIT_S
        while sum(line.endswith(" connected") and line.startswith("client") for line in log) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.005)


def test_a_port_in_use_is_one_line(serve):
    server, _ = serve()
    host, port = server.address
    with pytest.raises(ServerError) as error:
        BoardServer(recorder_board(), host, port)
    assert str(error.value) == (
        f"cannot listen on {host}:{port}: Address already in use; choose another address, or port "
        "0 for a free one")


def test_idle_it_takes_little_of_a_core(serve):
    server, log = serve()
    with socket.create_connection(server.address):
        log.until("client ")
        before = time.process_time()
        time.sleep(1.0)
        assert time.process_time() - before < 0.3


def test_stop_raises_what_ended_the_server():
    def broken():
        raise RuntimeError("no such capture")
        yield

    server = BoardServer(recorder_board(), player=CapturePlayer(broken, speed=0), delay_s=0.0)
    server.start()
    with socket.create_connection(server.address):
        deadline = time.monotonic() + LIMIT_S
        while any(one.name == "simulated board" for one in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.005)
    with pytest.raises(RuntimeError, match=r"^no such capture$"):
        server.stop()
