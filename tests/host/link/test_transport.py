"""Transports on pseudo-terminals and local sockets: what can go wrong is said in one line."""

import contextlib
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import tty

import pytest

from rocetap.link.errors import TransportClosed, TransportOpenError
from rocetap.link.transport import open_transport


class Terminal:
    """A pseudo-terminal; the test is the board at its master end."""

    def __init__(self):
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        self.name = os.ttyname(slave)
        os.close(slave)

    def close(self):
        if self.master is not None:
            os.close(self.master)
            self.master = None


@pytest.fixture
def terminal():
    terminal = Terminal()
    yield terminal
    terminal.close()


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def url(server):
    return f"socket://127.0.0.1:{server.getsockname()[1]}"


def exactly(text):
    return f"^{re.escape(text)}$"


def test_octets_both_ways_over_a_terminal(terminal):
    line = open_transport(terminal.name)
    every = bytes(range(256))
    line.write(every)
    assert os.read(terminal.master, 1000) == every
    os.write(terminal.master, every)
    received = b""
    while len(received) < 256:
        piece = line.read(100, 1)
        assert 0 < len(piece) <= 100
        received += piece
    assert received == every
    line.close()
    line.close()


def test_octets_both_ways_over_a_socket(listener):
    line = open_transport(url(listener))
    board, _ = listener.accept()
    line.write(b"to the board")
    assert board.recv(100) == b"to the board"
    board.sendall(b"to the host")
    assert line.read(100, 1) == b"to the host"
    line.close()
    assert board.recv(100) == b""
    board.close()


def check_times(line, send):
    start = time.monotonic()
    assert line.read(4096, 0.05) == b""
    assert time.monotonic() - start >= 0.04
    assert line.read(4096, 0) == b""
    send(b"x")
    start = time.monotonic()
    assert line.read(4096, 20) == b"x"
    assert time.monotonic() - start < 10
    line.close()


def test_times_of_a_terminal(terminal):
    check_times(open_transport(terminal.name), lambda octets: os.write(terminal.master, octets))


def test_times_of_a_socket(listener):
    line = open_transport(url(listener))
    board, _ = listener.accept()
    with board:
        check_times(line, board.sendall)


def test_a_write_larger_than_the_lines_buffer_waits(listener):
    line = open_transport(url(listener))
    board, _ = listener.accept()
    octets = bytes(range(256)) * (1 << 15)
    received = bytearray()

    def drain():
        time.sleep(0.1)
        while len(received) < len(octets):
            received.extend(board.recv(1 << 20))

    thread = threading.Thread(target=drain)
    thread.start()
    line.write(octets)
    thread.join()
    assert bytes(received) == octets
    line.close()
    board.close()


def test_a_line_that_takes_nothing(listener, monkeypatch):
    monkeypatch.setattr("rocetap.link.transport.WRITE_TIMEOUT_S", 0.1)
    line = open_transport(url(listener))
    board, _ = listener.accept()
    with pytest.raises(TransportClosed, match=exactly(
            f"{url(listener)}: takes no more octets for 0.1 s")):
        line.write(bytes(1 << 26))
    line.close()
    board.close()


def test_a_port_in_use_is_refused_and_its_owner_loses_nothing(terminal):
    first = open_transport(terminal.name)
    for _ in range(3):
        os.write(terminal.master, b"reply")
        with pytest.raises(TransportOpenError, match=exactly(
                f"cannot open {terminal.name}: in use by another program; close it, or choose "
                "another port")):
            open_transport(terminal.name)
        assert first.read(100, 1) == b"reply"
    first.close()
    open_transport(terminal.name).close()


def test_a_killed_program_leaves_no_lock(terminal):
    program = ("import sys, time; from rocetap.link.transport import open_transport; "
               "line = open_transport(sys.argv[1]); print('open', flush=True); time.sleep(60)")
    with subprocess.Popen([sys.executable, "-c", program, terminal.name],
                          stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(TransportOpenError, match="in use by another program"):
            open_transport(terminal.name)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    open_transport(terminal.name).close()


def test_no_permission(terminal):
    """As root, a child gives its rights up first: root may open anything."""
    os.chmod(terminal.name, 0)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            open_transport(terminal.name)
            os.write(writer, b"opened")
        except TransportOpenError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    text = os.read(reader, 1000).decode()
    os.close(reader)
    assert re.fullmatch(
        re.escape(f"cannot open {terminal.name}: permission denied; join the group that may open "
                  "it (")
        + r"(\w+) here: sudo usermod -aG \1 \$USER\), then log in again", text), text


@pytest.mark.parametrize("name", ["127.0.0.1:9000", "localhost:4950", "[::1]:1"])
def test_an_address_without_its_scheme_is_seen(name):
    with pytest.raises(TransportOpenError, match=exactly(
            f"cannot open {name}: no such serial port; a board behind TCP is socket://{name}")):
        open_transport(name)


def test_what_to_look_at_depends_on_the_kind_of_line(listener, terminal):
    name = url(listener)
    with contextlib.closing(open_transport(name)) as line:
        assert line.advice == (
            f"see whether a board is behind {name} and whether another program uses it")
    with contextlib.closing(open_transport(terminal.name)) as line:
        assert line.advice == "check cable, baud rate and power"


def test_no_such_port():
    with pytest.raises(TransportOpenError,
                       match=r"^cannot open /dev/ttyNone: no such port; ports here: [\w/, ]+$"):
        open_transport("/dev/ttyNone")


def test_a_file_that_is_no_port(tmp_path):
    path = tmp_path / "with a space"
    path.write_bytes(b"")
    with pytest.raises(TransportOpenError, match=f"^cannot open {re.escape(str(path))}: ") as error:
        open_transport(str(path))
    assert "\n" not in str(error.value)


def test_connection_refused(listener):
    name = url(listener)
    listener.close()
    with pytest.raises(TransportOpenError, match=exactly(
            f"cannot open {name}: connection refused; is the simulated board running there?")):
        open_transport(name)


@pytest.mark.parametrize(("name", "text"), [
    ("socket://nowhere", "must be socket://HOST:PORT"),
    ("socket://127.0.0.1:99999", "must be socket://HOST:PORT"),
    ("loop://", "must be a serial port or socket://HOST:PORT"),
    ("rfc2217://127.0.0.1:1", "must be a serial port or socket://HOST:PORT"),
])
def test_names_that_are_no_line(name, text):
    with pytest.raises(TransportOpenError, match=exactly(f"cannot open {name}: {text}")):
        open_transport(name)


def test_the_master_closes_while_a_read_waits(terminal):
    line = open_transport(terminal.name)
    threading.Timer(0.1, terminal.close).start()
    start = time.monotonic()
    with pytest.raises(TransportClosed, match=f"^{terminal.name}: ") as error:
        line.read(100, 30)
    assert time.monotonic() - start < 10
    assert "\n" not in str(error.value)
    with pytest.raises(TransportClosed, match=f"^{terminal.name}: "):
        line.write(b"x")
    line.close()
    with pytest.raises(TransportClosed, match=exactly(f"{terminal.name}: was closed")):
        line.read(1, 0)
    with pytest.raises(TransportClosed, match=exactly(f"{terminal.name}: was closed")):
        line.write(b"x")


def test_the_other_end_of_a_socket_closes(listener):
    line = open_transport(url(listener))
    board, _ = listener.accept()
    board.close()
    with pytest.raises(TransportClosed, match=exactly(f"{url(listener)}: closed at the other end")):
        line.read(100, 5)
    line.close()
