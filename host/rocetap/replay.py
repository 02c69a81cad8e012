"""A capture through the whole chain: simulated board, link, IPFIX over TLS, collector, store.

No part is left out or replaced: the frames go through the Verilated gateware at its pins, the very
driver reads it over its link, reports travel over mutually authenticated TLS 1.3 to a collector
that validates them, and the result is what that collector stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from rocetap import pki
from rocetap.capture.discovery import Discovery, discover
from rocetap.capture.frames import CaptureError
from rocetap.capture.reading import Capture, open_capture
from rocetap.collect.server import CollectorServer
from rocetap.collect.store import SqliteStore
from rocetap.collect.tls import ServerIdentity
from rocetap.errors import RocetapError
from rocetap.export.board import Board
from rocetap.export.clock import BoardClock
from rocetap.export.endpoint import Endpoint
from rocetap.export.epochs import EpochBook
from rocetap.export.tls import Limits, Session, client_context, connect
from rocetap.ipfix.exporting import ExportingSession
from rocetap.ipfix.records import Records
from rocetap.link.driver import Driver
from rocetap.link.records import RecordArray
from rocetap.provisioning import Port, Provisioning
from rocetap.spec.classes import FrameClass
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import MAX_PORTS

__all__ = [
    "BOARD_CONNECTIONS", "BOARD_WINDOW", "Progress", "ReplayResult", "replay", "simulated_board",
]

BOARD_CONNECTIONS: Final = 1024
BOARD_WINDOW: Final = 256
"""What the simulated board of a replay is built for."""

EXPORTER_NAME: Final = "exporter.replay"
COLLECTOR_NAME: Final = "collector.replay"

Progress = Callable[[str, int, int], None]
"""Takes what is going on, frames done, and frames in all (0 while that is not known)."""

_LIMITS: Final = Limits(settle=0.05)
_ANSWER_S: Final = 300.0
"""For a sweep over all contexts, on a busy machine."""


def _silent(stage: str, done: int, total: int) -> None:
    pass


@dataclass
class ReplayResult:
    """What came out at the far end.

    `sequence` and `pfc`: the collector's rows, by Information Element names. `frames`: what the
    board made of the frames, by class. `disabled`: connections that a violation disabled before
    they had an epoch. `dropped`: records that did not make it into a row, by reason. `warnings`:
    oddities of the capture. `truncation`: where the capture is cut, None if it is whole.
    """

    sequence: list[dict[str, Any]] = field(default_factory=list)
    pfc: list[dict[str, Any]] = field(default_factory=list)
    frames: Counter[FrameClass] = field(default_factory=Counter)
    disabled: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    truncation: CaptureError | None = None


def replay(path: str, *, window: int = 64, provisioning: Provisioning | None = None,
           progress: Progress = _silent, report: Callable[[str], None] | None = None,
           ) -> ReplayResult:
    """Pushes the capture at `path` ("-" is standard input) through the chain.

    Without a provisioning every RC request stream in the capture is provisioned with `window`.
    `report` takes a line for each stage of building the board. Raises RocetapError for a capture
    that cannot be read or needs more than the board has.
    """
    if provisioning is None:
        _check_window(window)
    with _two_passes(path) as source:
        progress("reading the capture", 0, 0)
        with source.open() as capture:
            found = discover(capture.batches())
            truncation, warnings = capture.truncation, capture.warnings
        plan = _plan(found, window, provisioning)
        board = simulated_board(len(plan.ports), report)
        try:
            result = asyncio.run(_Run(board, plan, found.frames, progress).run(source))
        finally:
            board.close()
    result.warnings = [source.named(line) for line in warnings]
    result.truncation = source.renamed(truncation) if truncation is not None else None
    return result


def _check_window(window: int) -> None:
    if not 1 <= window <= BOARD_WINDOW:
        raise RocetapError(f"window {window} is out of range: this board takes 1 to {BOARD_WINDOW}")


class _Source:
    """A capture that can be read twice. `shown` replaces the path in messages."""

    def __init__(self, path: str, shown: str) -> None:
        self._path = path
        self._shown = shown

    @contextlib.contextmanager
    def open(self) -> Iterator[Capture]:
        try:
            with open_capture(self._path) as capture:
                yield capture
        except CaptureError as error:
            raise self.renamed(error) from None

    def named(self, line: str) -> str:
        return line.replace(self._path, self._shown) if self._path != self._shown else line

    def renamed(self, error: CaptureError) -> CaptureError:
        error.args = (self.named(str(error)),)
        return error


@contextlib.contextmanager
def _two_passes(path: str) -> Iterator[_Source]:
    """A file as it is; a pipe by way of a temporary file."""
    if path != "-" and (not os.path.exists(path) or os.path.isfile(path) or os.path.isdir(path)):
        yield _Source(path, path)
        return
    if path == "-" and sys.stdin.isatty():
        raise RocetapError("standard input is a terminal: name a capture file, or pipe one in")
    with tempfile.NamedTemporaryFile(prefix="rocetap-") as spool:
        if path == "-":
            shutil.copyfileobj(sys.stdin.buffer, spool)
        else:
            with open(path, "rb") as stream:
                shutil.copyfileobj(stream, spool)
        spool.flush()
        yield _Source(spool.name, "standard input" if path == "-" else path)


def _plan(found: Discovery, window: int, given: Provisioning | None) -> Provisioning:
    """What the board shall watch; its ports are the capture's interfaces, in their order."""
    needed = max(found.interfaces, default=0) + 1
    if needed > MAX_PORTS:
        raise RocetapError(f"the capture has frames of interface {needed - 1}, but a board has at "
                           f"most {MAX_PORTS} ports: split the capture")
    if given is None:
        streams = len(found.streams)
        if streams > BOARD_CONNECTIONS:
            raise RocetapError(
                f"the capture has {streams} request streams, but the board has contexts for "
                f"{BOARD_CONNECTIONS}: give --provision FILE with those to watch (rocetap discover "
                "writes one)")
        discovered = found.provisioning(window)
        return Provisioning(
            discovered.observation_domain, discovered.observation_point,
            [Port(f"port{index}", index + 1) for index in range(needed)], discovered.connections)
    if len(given.ports) < needed:
        raise RocetapError(
            f"the capture has frames of interface {needed - 1}, but the provisioning names "
            f"{len(given.ports)} ports: add [[port]] tables, one for each interface of the capture")
    if len(given.connections) > BOARD_CONNECTIONS:
        raise RocetapError(
            f"{len(given.connections)} connections, but the board has contexts for "
            f"{BOARD_CONNECTIONS}: leave some out of the provisioning")
    for one in given.connections:
        _check_window(one.window)
    return given


def simulated_board(ports: int, report: Callable[[str], None] | None = None) -> Any:
    """The rocetap_sim.board.SimulatedBoard of a replay. Host software does not need the simulator
    to be installed, so it is looked for here and nowhere else."""
    try:
        module = importlib.import_module("rocetap_sim.board")
    except ImportError as error:
        raise RocetapError(f"the simulated board is not installed ({error.name} is missing): "
                           "install rocetap with its extra [sim]") from None
    settings: dict[str, Any] = {"ports": ports, "connections": BOARD_CONNECTIONS,
                                "word": BOARD_WINDOW}
    if report is not None:
        settings["report"] = report
    return module.SimulatedBoard(**settings)


class _Run:
    """One replay from an idle board to the collector's rows."""

    def __init__(self, board: Any, plan: Provisioning, frames: int,
                 progress: Progress) -> None:
        self._simulated = board
        self._plan = plan
        self._frames = frames
        self._progress = progress
        self._clock = BoardClock.identity()
        self._book = EpochBook(BOARD_CONNECTIONS, self._clock)
        self._exporting = ExportingSession(plan.observation_domain)
        self._result = ReplayResult()

    async def run(self, source: _Source) -> ReplayResult:
        with tempfile.TemporaryDirectory(prefix="rocetap-") as folder:
            directory = Path(folder)
            pki.init(directory, EXPORTER_NAME, COLLECTOR_NAME, days=1)
            store = SqliteStore(directory / "store.db")
            try:
                await self._through(source, directory, store)
                self._result.sequence = list(store.sequence_rows())
                self._result.pfc = list(store.pfc_rows())
                for row in store.dropped_rows():
                    self._result.dropped[f"collector: {row['reason']}"] += row["count"]
            finally:
                store.close()
        for reason, count in self._book.drops.items():
            self._result.dropped[f"exporter: {reason}"] += count
        return self._result

    async def _through(self, source: _Source, directory: Path, store: SqliteStore) -> None:
        files = pki.credentials(directory, pki.COLLECTOR)
        identity = ServerIdentity(files.authority, files.certificate, files.key)
        server = CollectorServer(identity, {EXPORTER_NAME}, store)
        port = await server.start("127.0.0.1", 0)
        try:
            context = client_context(pki.credentials(directory, pki.EXPORTER))
            session = await connect(Endpoint("127.0.0.1", port), COLLECTOR_NAME, context, _LIMITS)
            try:
                await session.send(self._exporting.start(_now()))
                await session.prove_acceptance()
                await self._push(source, session)
                if not await session.close():
                    raise RocetapError("the collector did not confirm the end of the session")
            finally:
                await session.abort()
        finally:
            await server.stop(drain_s=10.0)

    async def _push(self, source: _Source, session: Session) -> None:
        # Time-outs of the link count simulated time, so that a busy machine makes none.
        driver = Driver(self._simulated.transport(), clock=self._simulated.seconds)
        board = Board(driver, self._plan, self._clock, monotonic=time.monotonic,
                      answer_s=_ANSWER_S)
        await asyncio.to_thread(board.start, fresh=True)
        for one in board.placements:
            self._book.provision(one.context, one.tag, one.connection, one.observation_point)
        done = 0
        with source.open() as capture:
            for batch in capture.batches():
                start = 0
                while start < len(batch):
                    start = await asyncio.to_thread(self._feed, batch, start)
                    self._progress("through the gateware", done + start, self._frames)
                    await self._send(session, await asyncio.to_thread(board.poll, 0))
                done += len(batch)
        self._progress("closing epochs", done, self._frames)
        await self._send(session, await asyncio.to_thread(board.close_epochs))
        sample = await asyncio.to_thread(board.read_pfc)
        await session.send(self._exporting.pfc(sample.readings, _now()))
        assert sample.counters is not None
        for row in sample.counters.frame_class:
            self._result.frames.update(
                {kind: row[kind] for kind in FrameClass if row[kind]})
        lost = sample.counters.state["records_dropped"]
        if lost:
            self._result.dropped["board: no room in the snapshot FIFO"] += lost

    def _feed(self, batch: Any, start: int) -> int:
        return int(self._simulated.feed(batch, start=start))

    async def _send(self, session: Session, records: RecordArray) -> None:
        self._result.disabled += int(np.count_nonzero(records["kind"] == RecordKind.DISABLED))
        reports: Records = self._book.serialize(records)
        if len(reports):
            await session.send(self._exporting.sequence(reports, _now()))


def _now() -> int:
    return int(time.time()) & 0xFFFF_FFFF
