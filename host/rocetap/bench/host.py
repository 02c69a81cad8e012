"""The host's figures: encoding, decoding with validation, the store, and epochs coming and going.

`ipfixDump` (libfixbuf), where it is installed, prints the same records in the same run: to a pipe
that this process empties. Of both sides the best of as many turns counts, each by its own CPU time.
"""

from __future__ import annotations

import resource
import shutil
import struct
import subprocess
import tempfile
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from ..collect.session import Batch, CollectorSession
from ..collect.settings import CollectorSettings, EpochLimits
from ..collect.store import SqliteStore
from ..ipfix.exporting import ExportingSession
from ..ipfix.records import Records
from .figures import Figure, best, peak_kib
from .workload import TIME, epochs, rounds

__all__ = ["MemoryRun", "epochs_come_and_go", "host_figures"]

_CONNECTIONS: Final = 1024
_RATE: Final = "records per CPU second"
_READ: Final = 1 << 18
"""Octets a read, as the server does."""
_IN_A_TRANSACTION: Final = 32
_TURNS: Final = 3
"""Of each side of a comparison."""
_RECORD: Final = struct.Struct("!Q4s4sIHQQQQIHQQQQIQQQ")
Progress = Callable[[str, int, int], None]


def host_figures(scale: float, progress: Progress) -> list[Figure]:
    """All figures. `scale` 1.0 takes about half a minute."""
    turns = max(2, round(400 * scale))
    batches = [rows.copy() for rows in rounds(_CONNECTIONS, turns)]
    count = turns * _CONNECTIONS
    steps = iter(range(1, 8))

    def measured(what: str, records: int, action: Callable[[], object]) -> float:
        progress(what, next(steps), 7)
        return records / best(action, _TURNS)

    by_struct = measured("struct", count // 8, lambda: _pack_one_by_one(count // 8))
    encoded = measured("encode", count, lambda: _encode(batches))
    stream = b"".join(_encode(batches))
    decoded = measured("decode", count, lambda: _receive(stream, lambda batch: None))
    again = measured("store, reports again and again", count, lambda: _store(stream))
    fresh = max(20_000, round(150_000 * scale))
    once = b"".join(_encode([epochs(1, fresh, final=True)]))
    stored = measured("store, a row each", fresh, lambda: _store(once))
    figures = [
        Figure("encode, struct record by record", by_struct, _RATE),
        Figure("encode into messages", encoded, _RATE, encoded / by_struct,
               "encode, struct record by record", 5_000_000),
        Figure("decode and validate", decoded, _RATE, decoded / by_struct,
               "encode, struct record by record", 2_500_000),
        Figure("decode, validate, store: every record a new row", stored, _RATE,
               stored / by_struct, "encode, struct record by record", 200_000),
        Figure("decode, validate, store: reports of 1,024 epochs", again, _RATE,
               again / by_struct, "encode, struct record by record", 200_000),
    ]
    dump = shutil.which("ipfixDump")
    if dump:
        progress("ipfixDump", next(steps), 7)
        few = min(turns, 60)
        for what, ours, octets, records in (
                ("new rows", stored, once, fresh),
                ("reports of 1,024 epochs", again, b"".join(_encode(batches[:few])),
                 few * _CONNECTIONS)):
            rate = _ipfixdump(dump, octets, records)
            name = f"ipfixDump --rfc5610 --data, {what}"
            figures += [Figure(name, rate, _RATE),
                        Figure(f"with the store, to ipfixDump, {what}", ours, _RATE,
                               ours / rate, name, 2.0)]
    progress("epochs", 7, 7)
    run = epochs_come_and_go(round(1_000_000 * scale))
    figures += [
        Figure("epochs admitted and retired", run.epochs_per_s, "epochs per CPU second"),
        Figure("memory that grew over the second half of them", run.grown_kib, "KiB", reach=256),
        Figure("most memory of this process", peak_kib(), "KiB"),
    ]
    return figures


def _pack_one_by_one(count: int) -> bytes:
    """What NumPy is measured against: the same record by a compiled struct."""
    pack, address = _RECORD.pack, bytes(4)
    return b"".join([
        pack(1, address, address, number, 0xFFFF, TIME, TIME, number, 1, 256, 32, 60, 40, 20, 0, 0,
             5, 100_000, 1) for number in range(count)])


def _encode(batches: list[Records]) -> list[bytes]:
    session = ExportingSession(1)
    messages = session.start(TIME)
    for rows in batches:
        messages += session.sequence(rows, TIME)
    return messages


def _receive(stream: bytes, take: Callable[[Batch], object]) -> None:
    """Reads of the server's size, as TCP would cut them."""
    session = CollectorSession()
    octets = memoryview(stream)
    for position in range(0, len(octets), _READ):
        batch = session.receive(octets[position:position + _READ], 1000 * TIME)
        if batch.error is not None or batch.counters.keys() - {"flow_keys.not_advertised"}:
            raise AssertionError(f"a good stream was refused: {batch.error} {batch.counters}")
        take(batch)


def _store(stream: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="rocetap-bench-") as folder, closing(
            SqliteStore(Path(folder) / "store.db")) as store:
        session_id = store.open_session("bench", "here", 32473, 1000 * TIME)
        gathered: list[tuple[int, Batch]] = []

        def take(batch: Batch) -> None:
            gathered.append((session_id, batch))
            if len(gathered) == _IN_A_TRANSACTION:
                store.write(gathered)
                gathered.clear()

        _receive(stream, take)
        store.write(gathered)


def _ipfixdump(dump: str, stream: bytes, count: int) -> float:
    """Records a second of its own CPU time, the best of _TURNS."""
    return max(_ipfixdump_once(dump, stream, count) for _ in range(_TURNS))


def _ipfixdump_once(dump: str, stream: bytes, count: int) -> float:
    with tempfile.NamedTemporaryFile(suffix=".ipfix") as file:
        file.write(stream)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with subprocess.Popen([dump, "--in", file.name, "--rfc5610", "--data"],
                              stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            while process.stdout.read(_READ):
                pass
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, dump)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return count / seconds


class MemoryRun:
    """What a run of epochs that come and go took."""

    def __init__(self, count: int, seconds: float, grown_octets: int, retained: int) -> None:
        self.epochs_per_s = count / seconds
        self.grown_kib = grown_octets / 1024
        self.retained = retained


def epochs_come_and_go(count: int, contexts: int = 2000) -> MemoryRun:
    """Admits and retires `count` epochs, of which at most `contexts` are retained at a time.
    `grown_octets`: Python memory at the end less that at half the way."""
    session = CollectorSession(CollectorSettings(epochs=EpochLimits(
        contexts=contexts, closed_retention_ms=1)))
    exporter = ExportingSession(1)
    session.receive(b"".join(exporter.start(TIME)), 0)
    step = contexts // 2
    turns = max(2, count // step)
    marks = []

    def run() -> None:
        for turn in range(turns):
            if turn == turns // 2:
                marks.append(tracemalloc.get_traced_memory()[0])
            rows = epochs(1 + turn * step, step, final=True)
            session.receive(b"".join(exporter.sequence(rows, TIME)), 10 * turn)
            session.tick(10 * turn + 5)
        marks.append(tracemalloc.get_traced_memory()[0])

    tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        seconds = best(run, 1)
    finally:
        if not tracing:
            tracemalloc.stop()
    return MemoryRun(turns * step, seconds, marks[1] - marks[0], session.contexts)
