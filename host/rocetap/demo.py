"""The demonstration: a live probe on one machine.

A capture is generated and played into the simulated board, which stands behind a TCP port as a real
board stands behind its serial port. The daemon reads it from there and exports over mutually
authenticated TLS 1.3 to the collector, which stores; both are the very programs of
`rocetap export` and `rocetap collect`.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rocetap import pki
from rocetap.capture.discovery import discover
from rocetap.capture.reading import open_capture
from rocetap.capture.synth import SynthSettings, write_synthetic
from rocetap.capture.traffic import Impairments
from rocetap.collect.server import CollectorServer
from rocetap.collect.store import SqliteStore
from rocetap.collect.tls import ServerIdentity
from rocetap.errors import RocetapError
from rocetap.export.daemon import Daemon
from rocetap.export.endpoint import Endpoint
from rocetap.export.hub import Settings
from rocetap.export.tls import client_context
from rocetap.link.driver import Driver
from rocetap.link.transport import open_transport
from rocetap.provisioning import Provisioning
from rocetap.replay import Progress, simulated_board
from rocetap.spec.classes import FRAME_CLASSES, FrameClass
from rocetap.wording import counted

__all__ = ["DemoResult", "run_demo"]

EXPORTER_NAME: Final = "probe.demo"
COLLECTOR_NAME: Final = "collector.demo"

_TRAFFIC: Final = SynthSettings(
    packets=5_000, connections=8, seed=20, reads=1, cnp=0.01, pfc=0.01, payload="small",
    impairments=Impairments(gap=0.004, repeat=0.004, late=0.008))
_INTERVAL_S: Final = 0.5
_WAIT_S: Final = 120.0


@dataclass
class DemoResult:
    """What the collector stored, by Information Element names, the daemon's own summary, and the
    frames."""

    sequence: list[dict[str, Any]]
    pfc: list[dict[str, Any]]
    summary: str
    offered: int
    """Frames played into the board."""
    frames: Counter[FrameClass]
    """What the board made of them."""


class _Gate:
    """A capture player that gives no frame before it is opened: epochs begin with the session."""

    def __init__(self, player: Any) -> None:
        self._player = player
        self.is_open = False
        self.frames = 0

    @property
    def finished(self) -> bool:
        return bool(self._player.finished)

    def due(self, now: float) -> Any:
        return self._player.due(now) if self.is_open else None

    def sent(self, index: int) -> None:
        self.frames = max(self.frames, index)
        self._player.sent(index)

    def wait_s(self, now: float) -> float | None:
        wait: float | None = self._player.wait_s(now) if self.is_open else 1.0
        return wait


_PUT_IN = {"missing": "requests left out", "repeated": "sent again", "late": "delayed",
           "reads": "READ"}
"""What the generator did -> how the demonstration says it. The table's counters are about positions
and not about causes, so none of these words is one of them."""


def run_demo(folder: Path, tell: Callable[[str], None], progress: Progress) -> DemoResult:
    """Runs the demonstration with its files in `folder`. `tell` takes one line a step."""
    capture = folder / "sample.pcap"
    summary = write_synthetic(capture, _TRAFFIC)
    put_in = ", ".join(f"{summary.done[what]} {name}" for what, name in _PUT_IN.items())
    tell(f"capture generated: {summary.frames} frames; put in: {put_in}")
    with open_capture(str(capture)) as opened:
        plan = discover(opened.batches()).provisioning(64)
    tell(f"{counted(len(plan.connections), 'request stream')} found and provisioned, W = 64")
    pki.init(folder / "pki", EXPORTER_NAME, COLLECTOR_NAME, days=1)
    tell("development PKI made: an authority, one exporter, one collector")
    board = simulated_board(1, tell)
    store = SqliteStore(folder / "flows.db")
    try:
        daemon = asyncio.run(_run(folder, capture, plan, board, store, tell, progress,
                                  summary.frames))
        return DemoResult(list(store.sequence_rows()), list(store.pfc_rows()), daemon.summary(),
                          summary.frames, _frames(daemon))
    finally:
        store.close()
        board.close()


async def _run(folder: Path, capture: Path, plan: Provisioning, board: Any, store: SqliteStore,
               tell: Callable[[str], None], progress: Progress, frames: int) -> Daemon:
    sim_server = importlib.import_module("rocetap_sim.server")
    sim_player = importlib.import_module("rocetap_sim.player")
    gate = _Gate(sim_player.CapturePlayer(lambda: open_capture(str(capture)).batches(), speed=0))
    served = sim_server.BoardServer(board, player=gate, delay_s=0.0)
    served.start()
    try:
        host, port = served.address
        tell(f"simulated board at socket://{host}:{port}")
        files = pki.credentials(folder / "pki", pki.COLLECTOR)
        collector = CollectorServer(
            ServerIdentity(files.authority, files.certificate, files.key), {EXPORTER_NAME}, store)
        tls_port = await collector.start("127.0.0.1", 0)
        tell(f"collector listens on 127.0.0.1:{tls_port}, TLS 1.3, client certificate required")
        daemon = Daemon(
            Settings(Endpoint("127.0.0.1", tls_port), COLLECTOR_NAME, interval=_INTERVAL_S,
                     domain=plan.observation_domain),
            client_context(pki.credentials(folder / "pki", pki.EXPORTER)), plan,
            lambda: Driver(open_transport(f"socket://{host}:{port}"), clock=time.monotonic),
            fresh=True)
        try:
            await _watch(daemon, gate, frames, tell, progress)
        finally:
            await collector.stop(drain_s=5.0)
        return daemon
    finally:
        await asyncio.to_thread(served.stop)


def _frames(daemon: Daemon) -> Counter[FrameClass]:
    """The board's classification counters as the daemon read them last."""
    totals = daemon.hub.board.totals
    return Counter({kind: totals.get(f"frame_class/0/{index}", 0)
                    for index, kind in enumerate(FRAME_CLASSES)})


async def _watch(daemon: Daemon, gate: _Gate, frames: int, tell: Callable[[str], None],
                 progress: Progress) -> None:
    running = asyncio.create_task(daemon.run())
    try:
        tell("daemon provisions the board and opens the export session")
        await _until(lambda: daemon.hub.statistics.sessions > 0, running)
        tell(f"session accepted, shown by a TLS {daemon.hub.statistics.proof}"
             if daemon.hub.statistics.proof == "ticket" else "session accepted")
        gate.is_open = True
        while not gate.finished:
            progress("through the gateware", gate.frames, frames)
            await _until(lambda: gate.finished, running, poll_s=0.1, once=True)
        tell("all frames are through; epochs are closed and the session ended")
    finally:
        daemon.stop()
        await running


async def _until(condition: Callable[[], bool], running: asyncio.Task[None], *,
                 poll_s: float = 0.02, once: bool = False) -> None:
    """Waits for the condition, or `poll_s` with `once`; what ends the daemon is raised."""
    deadline = time.monotonic() + _WAIT_S
    while not condition():
        await asyncio.wait([running], timeout=poll_s)
        if running.done():
            running.result()
            raise RocetapError("the daemon ended by itself")
        if once:
            return
        if time.monotonic() > deadline:
            raise RocetapError(f"the demonstration did not come on in {_WAIT_S:g} s")
