"""Minimum frames at the minimum gap through the simulated board, and how many of them it counted.

A minimum frame takes 84 octets of the line: 64 with its FCS, and 20 of preamble and gap (IEEE 802.3
4.4.2). Frames are fed unthrottled, whatever the probe does; then its counters and records say what
became of each.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address

import numpy as np
from numpy.typing import NDArray

from rocetap.errors import RocetapError
from rocetap.link.driver import Driver
from rocetap.link.poll import read_counters
from rocetap.link.table import ConnectionTable, apply_writes
from rocetap.spec.classes import FrameClass
from rocetap.spec.flags import SequenceFlag
from rocetap.spec.keys import pack_key
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import OperationKind

from .board import CLOCK_HZ, LINE_RATE_GAP, SimulatedBoard

__all__ = [
    "DEFAULT_FRAMES", "PATTERNS", "WIDTHS", "LineRate", "LineRateError", "Measured", "Pattern",
    "line_rate", "measure", "minimum_frames",
]

DEFAULT_FRAMES = 1_000_000
WIDTHS = (1, 8, 64)
CONNECTIONS = 1024
WINDOW = 256
"""What the board is built for: all of it is used."""

FRAME_OCTETS = 60
"""minFrameSize without its FCS (IEEE 802.3 table 4-2)."""

LINE_OCTETS = FRAME_OCTETS + 4 + LINE_RATE_GAP

PSNS = 1 << 24
COUNTERS = ("requests", "skipped", "filled", "expired", "repeated", "late")
_CHUNK = 50_000
_PFC_PRIORITY = 3
_SOURCE, _DESTINATION, _PARTITION, _FIRST_QP = "192.0.2.1", "198.51.100.2", 0xFFFF, 0x100
_QP_AT, _PSN_AT, _ICRC_AT = 14 + 20 + 8 + 5, 14 + 20 + 8 + 9, 14 + 20 + 8 + 12

Progress = Callable[[str, int, int], None]
"""Takes what is going on, frames done, and frames in all."""


class LineRateError(RocetapError):
    """The board did not say what became of the frames."""


@dataclass(frozen=True)
class Pattern:
    """What the frames do. Of frame n (an array): `connection` and `psn`, and whether it is a PFC
    frame in their place. `closes`: each request but the first closes an epoch of one request."""

    connections: int
    connection: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    psn: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    is_pfc: Callable[[NDArray[np.int64]], NDArray[np.bool_]] = lambda n: np.zeros(n.shape, bool)
    closes: bool = False


def _first(n: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.zeros_like(n)


PATTERNS = {
    "in order, one connection": Pattern(1, _first, lambda n: n),
    "all to different ones of 1,024 connections": Pattern(
        CONNECTIONS, lambda n: n % CONNECTIONS, lambda n: n // CONNECTIONS),
    "every packet a jump of W": Pattern(1, _first, lambda n: n * WINDOW),
    "alternating late and forward": Pattern(1, _first, lambda n: n ^ 1),
    "serialDiscontinuity on each packet": Pattern(
        1, _first, lambda n: n * (PSNS // 2), closes=True),
    "PFC between": Pattern(1, _first, lambda n: n // 2, is_pfc=lambda n: n % 2 == 1),
}


@dataclass(frozen=True)
class LineRate:
    """A row. `frames_counted`: those that both a class counter and, as requests of an epoch or
    as a PFC frame, another counter accounts for. `cycles`: clocks that the frames took.
    `line_rate_frames_per_second`: what the bus carries at `clock_mhz`."""

    bus_bytes: int
    pattern: str
    frames_offered: int
    frames_counted: int
    cycles: int
    line_rate_frames_per_second: float
    clock_mhz: float


@dataclass(frozen=True)
class Measured:
    """What the board said. `classes`: frames of each class that is not zero. `totals`: the counters
    `COUNTERS` over all records. `pfc`: frames of the priority that the PFC frames pause.
    `closures`: final records that arrived, `dropped`: records that found no room."""

    row: LineRate
    classes: dict[FrameClass, int]
    totals: dict[str, int]
    pfc: int
    closures: int
    dropped: int
    unprovisioned: int


@dataclass(frozen=True)
class _Batch:
    """Frames as `SimulatedBoard.feed` takes them."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    captured: int
    original: int
    time_ns: NDArray[np.int64]
    interface: int = 0


# -------------------------------------------------------------------- frames


def _request(qp: int, psn: int) -> bytes:
    """A SEND ONLY without payload, padded: one packet of 44 octets and its right ICRC."""
    masked = b"".join((
        struct.pack(">BBHHHBBH", 0x45, 0xFF, 44, 0, 0x4000, 0xFF, 17, 0xFFFF),
        ip_address(_SOURCE).packed, ip_address(_DESTINATION).packed,
        struct.pack(">HHHH", 0xC000, 4791, 24, 0xFFFF),
        struct.pack(">BBHII", 0x04, 0x00, _PARTITION, 0xFF << 24 | qp, psn)))
    icrc = zlib.crc32(masked, zlib.crc32(b"\xff" * 8)).to_bytes(4, "little")
    packet = bytearray(masked)
    for at, octets in ((1, b"\0"), (8, b"\x40"), (10, b"\0\0"), (26, b"\0\0"), (32, b"\0")):
        packet[at:at + len(octets)] = octets
    total = sum(struct.unpack(">10H", packet[:20]))
    total = (total & 0xFFFF) + (total >> 16)
    packet[10:12] = (~((total & 0xFFFF) + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
    frame = bytes.fromhex("020000000002 020000000001 0800") + packet + icrc
    return frame.ljust(FRAME_OCTETS, b"\0")


def _pfc() -> bytes:
    frame = bytes.fromhex("0180c2000001 020000000001 8808 0101") + struct.pack(
        ">9H", 1 << _PFC_PRIORITY, *(0xFFFF * (n == _PFC_PRIORITY) for n in range(8)))
    return frame.ljust(FRAME_OCTETS, b"\0")


def _icrc_of(frame: bytes) -> int:
    return int.from_bytes(frame[_ICRC_AT:_ICRC_AT + 4], "little")


def _psn_changes() -> NDArray[np.uint32]:
    """What each value of each PSN octet adds to the ICRC: a CRC is linear. Shape (3, 256)."""
    base = _icrc_of(_request(_FIRST_QP, 0))
    return np.array([[base ^ _icrc_of(_request(_FIRST_QP, value << shift)) for value in range(256)]
                     for shift in (16, 8, 0)], dtype=np.uint32)


def minimum_frames(pattern: Pattern, first: int, count: int, *,
                   rate: float) -> _Batch:
    """Frames `first` to ``first + count`` of the pattern, `rate` a second."""
    number = np.arange(first, first + count, dtype=np.int64)
    connection = pattern.connection(number)
    psn = pattern.psn(number) % PSNS
    templates = np.frombuffer(
        b"".join(_request(_FIRST_QP + index, 0) for index in range(pattern.connections)),
        np.uint8).reshape(-1, FRAME_OCTETS)
    frames = templates[connection]
    octets = np.stack([psn >> 16, psn >> 8 & 0xFF, psn & 0xFF])
    frames[:, _PSN_AT:_PSN_AT + 3] = octets.T
    icrc = frames[:, _ICRC_AT:_ICRC_AT + 4].copy().view("<u4")[:, 0]
    for changes, values in zip(_psn_changes(), octets, strict=True):
        icrc = icrc ^ changes[values]
    frames[:, _ICRC_AT:_ICRC_AT + 4] = icrc.astype("<u4").view(np.uint8).reshape(-1, 4)
    frames[pattern.is_pfc(number)] = np.frombuffer(_pfc(), np.uint8)
    return _Batch(frames.reshape(-1), np.arange(count, dtype=np.int64) * FRAME_OCTETS,
                  FRAME_OCTETS, FRAME_OCTETS, (number * (1e9 / rate)).astype(np.int64))


# -------------------------------------------------------------------- the board


def _provision(driver: Driver, connections: int) -> None:
    info = driver.handshake()
    table = ConnectionTable(info.connections)
    for context in range(connections):
        key = pack_key(
            source=int(ip_address(_SOURCE)), destination=int(ip_address(_DESTINATION)),
            qp=_FIRST_QP + context, pkey=_PARTITION)
        apply_writes(driver, table.insert(key, context))
        driver.operate(OperationKind.PROVISION, context, window=WINDOW)


def _records(driver: Driver, connections: int) -> Iterator[NDArray]:
    """All records of what went through, up to the marker behind a report of each context."""
    cookie = 0x5A5A
    driver.sweep(OperationKind.SNAPSHOT, 0, connections - 1, cookie=cookie)
    for _ in range(100_000):
        driver.poll(1e-3)
        records = driver.take_records()
        yield records
        if np.any((records["kind"] == RecordKind.MARKER) & (records["tag"] == cookie)):
            return
    raise LineRateError("the board gave no report of its contexts; rocetap doctor says more")


def measure(bus_bytes: int, name: str, frames: int,
            progress: Progress = lambda stage, done, total: None) -> Measured:
    """Feeds `frames` of the pattern `name` to a board of its own, without a pause, and asks it.

    Records come out over the link meanwhile, as fast as that is.
    """
    pattern = PATTERNS[name]
    clock_hz = CLOCK_HZ[bus_bytes]
    rate = clock_hz * bus_bytes / LINE_OCTETS
    board = SimulatedBoard(bus_bytes, connections=CONNECTIONS, word=WINDOW)
    try:
        driver = Driver(board.transport(), clock=board.seconds, credit_window=0)
        _provision(driver, pattern.connections)
        driver.credit(0xFFFF)
        cycles = 0
        for first in range(0, frames, _CHUNK):
            progress(f"{bus_bytes} octets a beat, {name}", first, frames)
            batch = minimum_frames(pattern, first, min(_CHUNK, frames - first), rate=rate)
            before = board.counters.cycles
            board.feed(batch, gap_octets=LINE_RATE_GAP, throttle=False)
            cycles += board.counters.cycles - before
        totals, closures = dict.fromkeys(COUNTERS, 0), 0
        for records in _records(driver, pattern.connections):
            reports = records[records["kind"] == RecordKind.SEQUENCE]
            for counter in COUNTERS:
                totals[counter] += int(reports[counter].sum())
            closures += int(np.count_nonzero(reports["flags"] & SequenceFlag.finalEpoch))
        counters = read_counters(driver)
    finally:
        board.close()

    classes = {FrameClass(index): value
               for index, value in enumerate(counters.frame_class[0]) if value}
    pfc = counters.pfc_received[0][_PFC_PRIORITY]
    dropped = counters.state["records_dropped"]
    by_class = classes.get(FrameClass.ELIGIBLE_REQUEST, 0) + classes.get(FrameClass.PFC, 0)
    # Where a pattern closes epochs, each has one request, those whose record found no room too.
    by_content = totals["requests"] + pfc + (dropped if pattern.closes else 0)
    return Measured(
        LineRate(bus_bytes, name, frames, min(by_class, by_content), cycles, round(rate, 1),
                 clock_hz / 1e6),
        classes, totals, pfc, closures, dropped, counters.state["unprovisioned"])


def line_rate(frames: int = DEFAULT_FRAMES,
              progress: Progress = lambda stage, done, total: None) -> list[LineRate]:
    """Every pattern at every width. With a million frames each it takes a good part of an hour."""
    return [measure(bus_bytes, name, frames, progress).row
            for bus_bytes in WIDTHS for name in PATTERNS]
