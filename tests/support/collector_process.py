"""`rocetap collect` as a process, and a plain exporter that keeps count of what it handed over."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from rocetap.ipfix.exporting import ExportingSession
from support.ipfix_tools import reports

__all__ = ["CollectorProcess", "NumberedExporter"]

_SECONDS = 60


class CollectorProcess:
    """Listens when made. `log`: its stderr so far; `metrics`: HOST:PORT of its numbers."""

    def __init__(self, folder: Path, pki: Path, *options: str, port: int = 0,
                 store: str = "store.db", **process: object) -> None:
        self.folder = folder
        self._port_file = folder / "port"
        self._port_file.unlink(missing_ok=True)
        self._log = folder / f"collect-{time.monotonic_ns()}.log"
        with self._log.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rocetap.cli", "collect", "--pki", str(pki), "--store",
                 str(folder / store), "--allow", "probe-1.example", "--listen",
                 f"127.0.0.1:{port}", "--port-file", str(self._port_file), "--metrics",
                 "127.0.0.1:0", *options], stderr=stream, **process)
        self.wait_for(self._port_file.exists)
        self.port = int(self._port_file.read_text())
        self.wait_for(lambda: "metrics and health on " in self.log)
        self.metrics = self.log.split("metrics and health on ")[1].split()[0].strip('",}')

    @property
    def log(self) -> str:
        return self._log.read_text()

    def numbers(self) -> dict[str, float]:
        """/metrics, by name and labels as they stand there."""
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {line.rpartition(" ")[0].removeprefix("rocetap_collector_"):
                float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}

    def health(self) -> tuple[int, dict[str, object]]:
        """Status and object of /healthz."""
        try:
            with urllib.request.urlopen(f"http://{self.metrics}/healthz", timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def wait_for(self, condition, seconds: float = _SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit code after a signal."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(_SECONDS)

    def __enter__(self) -> CollectorProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.end(signal.SIGKILL)


class NumberedExporter:
    """Sends one report after the other, each a complete epoch with its own number as requests.

    `handed`: the highest number given to a socket so far; `begun`: the first numbers of the
    sessions. A broken connection is made again at once, with the number after the last one handed
    over.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self.handed, self.begun = 0, []
        self._context = context
        self._line: ssl.SSLSocket | None = None

    def connect(self, port: int) -> None:
        """A new Transport Session: Templates first, epoch ids from 1."""
        self.drop()
        plain = socket.create_connection(("127.0.0.1", port), timeout=10)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self._line = self._context.wrap_socket(plain, server_hostname="collector.example")
        self._session = ExportingSession(1)
        self._epoch = 0
        self.begun.append(self.handed + 1)
        for message in self._session.start(1):
            self._line.sendall(message)

    def send(self, count: int) -> None:
        """OSError when the connection is gone; what was handed over until then stays counted."""
        rows = reports(count, self._epoch + 1, flags=0x21,
                       requests=range(self.handed + 1, self.handed + count + 1))
        self.handed += count
        self._epoch += count
        assert self._line is not None
        for message in self._session.sequence(rows, 1):
            self._line.sendall(message)

    def drop(self, *, reset: bool = False) -> None:
        """Ends the connection: in order, or by a reset."""
        line, self._line = self._line, None
        if line is None:
            return
        with contextlib.suppress(OSError):
            if reset:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            else:
                line.settimeout(1)
                line.unwrap()
        line.close()
