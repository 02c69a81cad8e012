"""The simulated board behind a TCP port, for ``socket://HOST:PORT``.

One loop clocks the board and carries octets: in small steps with pauses while nothing happens, at
full speed while there is something to do. The board's time is this machine's. As on a UART, what
the board says while nobody is connected is gone.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable

from rocetap.errors import RocetapError

from .board import SimulatedBoard
from .player import CapturePlayer

__all__ = ["BoardServer", "ServerError", "open_listener"]

_BUSY_CYCLES = 4096
"""Clocks in one turn of the loop while something happens."""

_IDLE_CYCLES = 64
_IDLE_S = 0.02
"""Clocks, and the wait for octets before them, while nothing happens: a few percent of a core."""

_OCTETS = 1 << 16


class ServerError(RocetapError):
    """The port cannot be served."""


def open_listener(host: str, port: int) -> socket.socket:
    """A listening socket; what stands in the way raises ServerError. For those who want to know
    before the board is built."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=4)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number and number > 0 else str(error)
        raise ServerError(f"cannot listen on {host}:{port}: {reason}; choose another address, or "
                          "port 0 for a free one") from None


class BoardServer:
    """Serves one client at a time on `host`:`port`; port 0 takes a free one, see `address`.

    A second client is told so in one line and closed. `player` gives frames, from `delay_s` seconds
    after the first client came on, so that it can provision first; frames wait while the snapshot
    FIFO is full, unless `throttle` is false. `log` gets one line for each event. `listener`: from
    `open_listener`, instead of host and port; the server closes it.
    """

    def __init__(self, board: SimulatedBoard, host: str = "127.0.0.1", port: int = 0, *,
                 player: CapturePlayer | None = None, delay_s: float = 1.0, throttle: bool = True,
                 log: Callable[[str], None] = lambda line: None,
                 listener: socket.socket | None = None) -> None:
        self._board = board
        self._player = player
        self._delay_s = delay_s
        self._throttle = throttle
        self._log = log
        self._start_frames: float | None = None
        self._client: socket.socket | None = None
        self._unsent = b""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._listener = listener or open_listener(host, port)
        self._listener.setblocking(False)
        name = self._listener.getsockname()
        self.address: tuple[str, int] = (name[0], name[1])
        board.follow_wall_clock()

    def serve(self) -> None:
        """Serves until `stop`, in this thread; closes everything at the end."""
        try:
            while not self._stopping.is_set():
                self._turn()
        finally:
            self._drop_client()
            self._listener.close()

    def start(self) -> None:
        """Serves in a thread of its own, until `stop`."""
        def run() -> None:
            try:
                self.serve()
            except BaseException as error:
                self._failure = error

        self._thread = threading.Thread(target=run, name="simulated board", daemon=True)
        self._thread.start()

    def request_stop(self) -> None:
        """Lets `serve` return after its turn; may be called from anywhere, a signal too."""
        self._stopping.set()

    def stop(self) -> None:
        """Ends `serve`; waits for the thread of `start` and raises what ended it, if anything."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._failure is not None:
            raise self._failure

    # ---------------------------------------------------------------- one turn of the loop

    def _turn(self) -> None:
        now = time.monotonic()
        busy = self._feed(now)
        readable, writable, _ = self._select(0.0 if busy or self._unsent else self._pause_s(now))
        if self._listener in readable:
            self._accept()
        received = self._receive() if self._client in readable else 0
        self._clock(_BUSY_CYCLES if busy or received else _IDLE_CYCLES)
        if self._unsent and (self._client in writable or received):
            self._send()

    def _pause_s(self, now: float) -> float:
        if self._player is None or self._start_frames is None:
            return _IDLE_S
        wait = max(self._start_frames - now, self._player.wait_s(now) or 0.0)
        return max(0.0, min(_IDLE_S, wait))

    def _select(self, timeout_s: float):
        reading = [self._listener]
        writing = []
        if self._client is not None:
            # A client that does not read is not read from either.
            if len(self._unsent) < 1 << 20:
                reading.append(self._client)
            if self._unsent:
                writing.append(self._client)
        return select.select(reading, writing, [], timeout_s)

    def _feed(self, now: float) -> bool:
        if self._player is None or self._start_frames is None or now < self._start_frames:
            return False
        due = self._player.due(now)
        if due is None:
            if self._player.finished:
                self._player = None
                self._log("the capture is sent")
            return False
        batch, start, stop = due
        self._player.sent(self._board.feed(batch, start=start, stop=stop, throttle=self._throttle,
                                           patience=1024))
        return True

    def _clock(self, cycles: int) -> None:
        """Clocks the board while it has octets for the host, and `cycles` until the first."""
        before = self._board.counters.cycles
        while len(self._unsent) < 1 << 20:
            self._board.run_until_output(cycles, _OCTETS)
            octets = self._board.read(_OCTETS)
            if self._client is not None:
                self._unsent += octets
            if not octets or self._board.counters.cycles - before >= 1 << 16:
                break
            cycles = _IDLE_CYCLES  # what follows an answer follows at once

    # ---------------------------------------------------------------- the client

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            client, peer = self._listener.accept()
            if self._client is not None:
                self._log(f"refused {peer[0]}:{peer[1]}: another client is connected")
                with contextlib.suppress(OSError):
                    client.sendall(b"rocetap sim: another client is connected\n")
                client.close()
                return
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._client, self._unsent = client, b""
            self._log(f"client {peer[0]}:{peer[1]} connected")
            if self._start_frames is None:
                self._start_frames = time.monotonic() + self._delay_s

    def _receive(self) -> int:
        try:
            octets = self._client.recv(_OCTETS)
        except BlockingIOError:
            return 0
        except OSError:
            octets = b""
        if not octets:
            self._drop_client()
            return 0
        rest = octets
        while rest:
            rest = rest[self._board.write(rest):]
            if rest:
                self._clock(_BUSY_CYCLES)
        return len(octets)

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[self._client.send(self._unsent):]
        except BlockingIOError:
            return
        except OSError:
            self._drop_client()

    def _drop_client(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client, self._unsent = None, b""
            self._log("client disconnected")
