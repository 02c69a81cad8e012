"""The self-test: known frames through the board's internal loop-back, and every counter looked at.

The host writes a frame into the board and lets it play it into a port, in place of what comes from
the line. From there on it is a frame like any other: parser, connection table, window engine,
counter banks, snapshot FIFO and link are those of the capture. MACs, PHYs and cables are not in it.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

import numpy as np

from rocetap.capture.encode import RoceFlow, pfc_frame
from rocetap.errors import RocetapError
from rocetap.link.driver import Driver
from rocetap.link.errors import RequestFailed
from rocetap.link.poll import BoardCounters, read_counters
from rocetap.link.records import RecordArray
from rocetap.link.table import ConnectionTable, apply_writes
from rocetap.spec.classes import FrameClass
from rocetap.spec.keys import pack_key
from rocetap.spec.opcodes import CNP, CNP_PAYLOAD_OCTETS
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import PORT_STATE, SELFTEST_WORDS, OperationKind
from rocetap.spec.wire import Status

__all__ = ["Played", "SelftestError", "SelftestReport", "frames", "port_states", "selftest"]

WINDOW: Final = 16
CONTEXT: Final = 0
TAG: Final = 0x5E1F
MIN_FRAME_OCTETS: Final = 60
PRIORITY: Final = 3
_QP: Final = 0x5E1F
_WRITE_FIRST, _WRITE_MIDDLE, _SEND_ONLY, _ACKNOWLEDGE = 0x06, 0x07, 0x04, 0x11
_CREDIT: Final = 64
_QUIET_S: Final = 0.05
_ANSWER_S: Final = 0.2
_LOOKS: Final = 20
"""How often it is looked for what must come; each look is a round trip or waits `_ANSWER_S`."""


class SelftestError(RocetapError):
    """The self-test could not be done, or found a fault."""


@dataclass(frozen=True)
class Played:
    """A frame, how it is played, and the one class counter that each of it must move."""

    what: str
    octets: bytes
    frame_class: FrameClass
    times: int = 1
    wrong_fcs: bool = False
    mac_error: bool = False


@dataclass
class SelftestReport:
    """What was played, and what was found wrong: nothing on a good board."""

    frames: int = 0
    counters: int = 0
    faults: list[str] = field(default_factory=list)


def _flow(version: int) -> RoceFlow:
    source, destination = ((ip_address("192.0.2.1"), ip_address("198.51.100.2")) if version == 4
                           else (ip_address("2001:db8::1"), ip_address("2001:db8::2")))
    return RoceFlow(source_mac=bytes.fromhex("020000000001"), destination_qp=_QP,
                    destination_mac=bytes.fromhex("020000000002"), source=source,
                    destination=destination)


def _padded(frame: bytes) -> bytes:
    return frame.ljust(MIN_FRAME_OCTETS, b"\0")


def frames() -> Iterator[Played]:
    """The frames of the self-test, in order. Those of IPv4 are of the one connection that it
    provisions: PSN 0xFFFFFE, over the wrap, with a gap, a late one that fills it, and repeats."""
    flow, other = _flow(4), _flow(6)
    request = FrameClass.ELIGIBLE_REQUEST
    for psn in (0xFFFFFE, 0xFFFFFF, 0x000000, 0x000003):
        yield Played(f"request, PSN 0x{psn:06x}",
                     _padded(flow.packet(_SEND_ONLY, psn, bytes(18) + bytes(2), pad=2)), request)
    yield Played("late request that fills a position",
                 _padded(flow.packet(_WRITE_MIDDLE, 1, bytes(64))), request)
    yield Played("the same request, 20 times in a row",
                 _padded(flow.packet(_WRITE_MIDDLE, 1, bytes(64))), request, times=20)
    yield Played("request before the first one",
                 _padded(flow.packet(_SEND_ONLY, 0xFFFFFD, bytes(4))), request)
    yield Played("request over IPv6, of no connection", _padded(
        other.packet(_WRITE_FIRST, 7, bytes(16) + bytes(40))), request)
    bad_icrc = bytearray(flow.packet(_SEND_ONLY, 9, bytes(40)))
    bad_icrc[-1] ^= 1
    yield Played("acknowledgement", _padded(flow.packet(_ACKNOWLEDGE, 5, bytes(4))),
                 FrameClass.RESPONSE)
    yield Played("congestion notification", _padded(
        flow.packet(CNP, 0, bytes(CNP_PAYLOAD_OCTETS), becn=True)), FrameClass.CNP)
    yield Played("request with a wrong FCS", _padded(flow.packet(_SEND_ONLY, 4, bytes(20))),
                 FrameClass.BAD_FCS, wrong_fcs=True)
    yield Played("request that the MAC marks bad", _padded(flow.packet(_SEND_ONLY, 4, bytes(20))),
                 FrameClass.MAC_ERROR, mac_error=True)
    yield Played("runt", bytes(59), FrameClass.RUNT)
    yield Played("frame of another protocol", _padded(
        bytes.fromhex("020000000002020000000001") + struct.pack(">H", 0x88B5)),
        FrameClass.NOT_ROCE, times=3)
    yield Played("PFC frame, XOFF", _padded(pfc_frame(
        bytes.fromhex("020000000001"), {PRIORITY: 0xFFFF})), FrameClass.PFC, times=2)
    yield Played("PFC frame, XON", _padded(pfc_frame(
        bytes.fromhex("020000000001"), {PRIORITY: 0})), FrameClass.PFC)
    yield Played("request with a wrong ICRC", _padded(bytes(bad_icrc)), FrameClass.BAD_ICRC)


EXPECTED: Final = {
    "window": WINDOW, "requests": 26, "skipped": 2, "filled": 1, "expired": 0, "abandoned": 1,
    "pending": 0, "repeated": 20, "late": 1}
"""The connection's last report: the wrong ICRC closes it."""


def port_states(driver: Driver) -> list[dict[str, int]]:
    """What the MACs know of each port's link; {} for a port of a board without MACs."""
    word = driver.read("port_state")
    ports = driver.board.ports if driver.board else 0
    octets = [word >> 8 * port & 0xFF for port in range(ports)]
    return [{name: octet >> at.low & (1 << at.bits) - 1 for name, at in PORT_STATE.items()}
            if octet else {} for octet in octets]


def selftest(driver: Driver, *, sleep: Callable[[float], None] = time.sleep,
             progress: Callable[[str], None] = lambda line: None) -> SelftestReport:
    """Plays `frames` into every port of the board, one after another, and compares all counters.

    The driver has shaken hands and gives no credit of its own (credit_window 0). Context 0 and its
    place in the table are written over: provision again afterwards. A port on which frames arrive
    meanwhile cannot be tested: SelftestError.
    """
    board = driver.board
    assert board is not None
    report = SelftestReport()
    for port in range(board.ports):
        progress(f"port {port}: looking whether it is quiet")
        earlier = driver.read_bank("frame_class", port)
        sleep(_QUIET_S)
        before = read_counters(driver)
        if before.frame_class[port] != earlier:
            raise SelftestError(f"port {port} has traffic: unplug its cable, or stop the sender, "
                                "and run the self-test again")
        progress(f"port {port}: playing frames")
        driver.credit(_CREDIT)
        _provision(driver, board.connections)
        _records(driver, cookie=0x5E00 + port)
        for played in frames():
            _play(driver, port, played, report)
        records = _records(driver, cookie=0x5E80 + port)
        _check_counters(port, before, read_counters(driver), report)
        _check_report(port, records, report)
    return report


def _provision(driver: Driver, connections: int) -> None:
    key = pack_key(source=int(ip_address("192.0.2.1")),
                   destination=int(ip_address("198.51.100.2")), qp=_QP, pkey=0xFFFF)
    apply_writes(driver, ConnectionTable(connections).insert(key, CONTEXT))
    driver.operate(OperationKind.PROVISION, CONTEXT, window=WINDOW, tag=TAG)


def _play(driver: Driver, port: int, played: Played, report: SelftestReport) -> None:
    """Plays one frame and looks what it moved."""
    padded = played.octets.ljust(8 * SELFTEST_WORDS, b"\0")
    before = driver.read_bank("frame_class", port)
    try:
        driver.write_bank("selftest_frame", (
            int.from_bytes(padded[at:at + 8], "little") for at in range(0, len(padded), 8)))
        driver.write("selftest", octets=len(played.octets), port=port, times=played.times,
                     wrong_fcs=int(played.wrong_fcs), mac_error=int(played.mac_error))
    except RequestFailed as error:
        if error.status is Status.NO_REGISTER:
            raise SelftestError("this board has no self-test in its gateware: load a bitstream "
                                "that has it (rocetap load)") from None
        raise
    report.frames += played.times
    moved: dict[str, int] = {}
    for _ in range(_LOOKS):
        after = driver.read_bank("frame_class", port)
        moved = {FrameClass(index).name: new - old for index, (old, new) in enumerate(
            zip(before, after, strict=True)) if new != old}
        if sum(moved.values()) >= played.times:
            break
    report.counters += len(FrameClass)
    if moved != {played.frame_class.name: played.times}:
        counted = ", ".join(f"{name} by {count}" for name, count in moved.items()) or "nothing"
        report.faults.append(f"port {port}, {played.what}: moved {counted}, must be "
                             f"{played.frame_class.name} by {played.times}")


def _records(driver: Driver, *, cookie: int) -> RecordArray:
    """Records up to a marker of its own, which goes behind all that was played before it."""
    driver.operate(OperationKind.MARKER, CONTEXT, tag=cookie)
    records = driver.take_records()
    for _ in range(_LOOKS):
        if any((records["kind"] == RecordKind.MARKER) & (records["tag"] == cookie)):
            return records
        driver.poll(_ANSWER_S)
        records = np.concatenate((records, driver.take_records()))
    raise SelftestError("the board sends no records: no answer came to a marker")


def _check_counters(port: int, before: BoardCounters, after: BoardCounters,
                    report: SelftestReport) -> None:
    """What the frames moved together, beside their classes."""
    received = {PRIORITY: 3, 8 + PRIORITY: 2}
    for name, old, new in (("received", before.pfc_received, after.pfc_received),
                           ("transmitted", before.pfc_transmitted, after.pfc_transmitted)):
        for index in range(16):
            what = f"{name} {'PFC' if index < 8 else 'XOFF'} frames of priority {index % 8}"
            _compare(report, f"port {port}, {what}", new[port][index] - old[port][index],
                     received.get(index, 0) if name == "received" else 0)
    for name, want in (("unprovisioned", 1), ("records_dropped", 0)):
        _compare(report, f"port {port}, {name}", after.state[name] - before.state[name], want)


def _check_report(port: int, records: RecordArray, report: SelftestReport) -> None:
    mine = records[(records["kind"] == RecordKind.SEQUENCE) & (records["tag"] == TAG)]
    _compare(report, f"port {port}, reports of the connection", len(mine), 1)
    if len(mine):
        for name, want in EXPECTED.items():
            _compare(report, f"port {port}, {name} of the connection", int(mine[-1][name]), want)


def _compare(report: SelftestReport, what: str, found: int, want: int) -> None:
    report.counters += 1
    if found != want:
        report.faults.append(f"{what}: {found}, must be {want}")
