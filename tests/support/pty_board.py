"""A FakeBoard at the far end of a pseudo-terminal, under a name that outlives the cable."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import threading
import time
import tty

__all__ = ["PtyBoard"]


class PtyBoard:
    """`path`: a symbolic link to the terminal, as /dev/serial/by-id has. `piece`, `gap_s` and
    `latency_s`: how replies arrive, in pieces of so many octets, so far apart, so late."""

    def __init__(self, board, path, *, piece=0, gap_s=0.0, latency_s=0.0):
        self.board, self.path = board, path
        self.piece, self.gap_s, self.latency_s = piece, gap_s, latency_s
        self._master = None
        self._thread = None

    def plug(self):
        """A new terminal under the same name."""
        self._master, slave = pty.openpty()
        tty.setraw(slave)
        name = os.ttyname(slave)
        os.close(slave)
        beside = self.path.with_name("new")
        beside.symlink_to(name)
        beside.replace(self.path)
        self._thread = threading.Thread(target=self._serve, args=(self._master,), daemon=True)
        self._thread.start()

    def unplug(self):
        """The cable is out: the terminal is gone, and its name."""
        self.path.unlink(missing_ok=True)
        master, self._master = self._master, None
        self._thread.join(5)
        os.close(master)

    def inject(self, octets):
        """Stray octets towards the host."""
        os.write(self._master, octets)

    def _serve(self, master):
        line = self.board.transport()
        while self._master == master:
            try:
                if select.select([master], [], [], 0.002)[0]:
                    line.write(os.read(master, 1 << 16))
                octets = line.read(1 << 16, 0)
                if octets:
                    time.sleep(self.latency_s)
                    self._send(master, octets)
            except OSError:  # nobody has the terminal open
                time.sleep(0.01)

    def _send(self, master, octets):
        size = self.piece or len(octets)
        for start in range(0, len(octets), size):
            piece = octets[start:start + size]
            while piece and self._master == master:
                piece = piece[os.write(master, piece):]
            time.sleep(self.gap_s)

    def __enter__(self):
        self.plug()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(AttributeError):
            self.unplug()
