"""Speed of the simulated board: ``python -m rocetap_sim.bench``, or ``make bench``.

Start-up from the cache, clocks a second, and frames a second of generated RoCEv2 traffic whose
streams are provisioned, each by this process's own time, so that other programs count less.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rocetap.capture.discovery import discover
from rocetap.capture.reading import open_capture
from rocetap.capture.synth import SynthSettings, write_synthetic
from rocetap.link.driver import Driver
from rocetap.link.table import ConnectionTable, apply_writes
from rocetap.spec.registers import OperationKind

from .board import LINE_RATE_GAP, SimulatedBoard

__all__ = ["main"]

_IDLE_CYCLES = 200_000
_FRAMES = 50_000
_CONNECTIONS = 64
_WINDOW = 256


def _timed(action: Callable[[], object]) -> float:
    begin = time.process_time()
    action()
    return time.process_time() - begin


def _provision(board: SimulatedBoard, keys: list[int]) -> None:
    driver = Driver(board.transport(), clock=board.seconds, credit_window=0)
    info = driver.handshake()
    table = ConnectionTable(info.connections)
    for context, key in enumerate(keys):
        apply_writes(driver, table.insert(key, context))
        driver.operate(OperationKind.PROVISION, context, window=_WINDOW)
    driver.credit(60_000)


def main() -> None:
    """Prints one figure a line."""
    SimulatedBoard().close()
    begin = time.monotonic()
    board = SimulatedBoard()
    print(f"start from the cache: {time.monotonic() - begin:.3f} s")
    print(f"idle: {_IDLE_CYCLES / _timed(lambda: board.run(_IDLE_CYCLES)):,.0f} clocks/s")
    for payload in ("small", "large"):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "bench.pcap")
            write_synthetic(path, SynthSettings(packets=_FRAMES, connections=_CONNECTIONS,
                                                payload=payload))
            with open_capture(path) as capture:
                batches = list(capture.batches())
        board = SimulatedBoard()
        found = discover(batches).provisioning(_WINDOW)
        _provision(board, [one.key() for one in found.connections])
        for name, gap in (("line rate", LINE_RATE_GAP), ("no gap", 0)):
            before = board.counters
            seconds = _timed(lambda board=board, batches=batches, gap=gap: [
                board.feed(batch, gap_octets=gap, throttle=False) for batch in batches])
            after = board.counters
            print(f"{payload} payloads, {name}: "
                  f"{(after.frames - before.frames) / seconds:,.0f} frames/s, "
                  f"{(after.octets - before.octets) / seconds / 1e6:,.1f} MB/s, "
                  f"{(after.cycles - before.cycles) / seconds:,.0f} clocks/s")


if __name__ == "__main__":
    main()
