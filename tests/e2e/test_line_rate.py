"""Minimum frames at the minimum gap through the Verilated gateware: every one is counted."""

import json
import sys
import zlib
from types import SimpleNamespace

import numpy as np
import pytest

from rocetap.cli import main
from rocetap.cli.bench import print_rows
from rocetap.link.driver import Driver
from rocetap.link.poll import read_counters
from rocetap.spec.classes import FrameClass
from rocetap_sim import line_rate
from rocetap_sim.board import FrameFlag, SimulatedBoard
from rocetap_sim.line_rate import PATTERNS, WINDOW, LineRate, measure, minimum_frames
from support.classify import Arrival, classify
from support.frames import DESTINATION_MAC, mac_control, pad, pfc, with_fcs

FRAMES = 2000
WIDTHS = (8, 64)    # one octet a beat takes ten times the clocks: `rocetap bench gateware` has it
ORDER, MANY, JUMP, LATE, BREAK, PFC = PATTERNS


@pytest.mark.parametrize("first", [0, (1 << 24) - 20, 3 << 23])
@pytest.mark.parametrize("name", PATTERNS)
def test_frames_are_minimum_frames_with_the_right_icrc(name, first):
    pattern = PATTERNS[name]
    batch = minimum_frames(pattern, first, 64, rate=1e6)
    frames = [batch.data[at:at + 60].tobytes() for at in batch.offsets]
    found = [classify(Arrival(with_fcs(frame))) for frame in frames]
    number = np.arange(first, first + 64)
    is_pfc = pattern.is_pfc(number)
    assert [one.frame_class for one in found] == [
        FrameClass.PFC if yes else FrameClass.ELIGIBLE_REQUEST for yes in is_pfc]
    requests = [(one.psn, one.key["qp"] - 0x100) for one in found if one.key]
    assert requests == list(zip((pattern.psn(number) % (1 << 24))[~is_pfc].tolist(),
                                pattern.connection(number)[~is_pfc].tolist(), strict=True))
    assert batch.time_ns.tolist() == (number * 1000).tolist()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PATTERNS)
def test_no_frame_is_lost(name, width):
    measured = measure(width, name, FRAMES)
    clock_mhz = {8: 156.25, 64: 322.265625}[width]
    assert measured.row == LineRate(
        width, name, FRAMES, FRAMES, FRAMES * 84 // width, round(clock_mhz * 1e6 * width / 84, 1),
        clock_mhz)
    half = FRAMES // 2
    assert measured.classes == (
        {FrameClass.ELIGIBLE_REQUEST: half, FrameClass.PFC: half} if name == PFC else
        {FrameClass.ELIGIBLE_REQUEST: FRAMES})
    assert measured.pfc == (half if name == PFC else 0)
    assert measured.unprovisioned == 0

    totals = {counter: value for counter, value in measured.totals.items() if value}
    if name == BREAK:
        # The records of a storm do not fit the link: those that found no room are counted.
        assert measured.closures > 0
        assert measured.dropped > FRAMES // 4
        assert measured.closures + measured.dropped == FRAMES - 1
        assert totals == {"requests": measured.closures + 1}
        return
    assert measured.dropped == measured.closures == 0
    assert totals == {
        ORDER: {"requests": FRAMES}, MANY: {"requests": FRAMES}, PFC: {"requests": half},
        JUMP: {"requests": FRAMES, "skipped": (FRAMES - 1) * (WINDOW - 1),
               "expired": (FRAMES - 2) * (WINDOW - 1)},
        LATE: {"requests": FRAMES, "skipped": half - 1, "filled": half - 1, "late": 1}}[name]


def capture(frames):
    """Frames as `SimulatedBoard.feed` takes them."""
    sizes = np.array([len(frame) for frame in frames])
    return SimpleNamespace(
        data=np.frombuffer(b"".join(frames), np.uint8), offsets=np.cumsum(sizes) - sizes,
        captured=sizes, original=sizes, time_ns=0, interface=0)


def test_odd_pfc_frames_and_a_storm_of_xon():
    """XOFF, XON and source zero count; each invalid frame moves a class of its own; then 9,000
    XON frames at line rate."""
    odd = [pfc({3: 0xFFFF}), pfc({3: 0}), pfc({3: 0xFFFF}, source=bytes(6)),
           pfc({3: 0xFFFF}, destination=DESTINATION_MAC), pfc({3: 0xFFFF}, tags=((0x8100, 5),)),
           mac_control(0x0001, b"\xff\xff"), mac_control(0x0102, bytes(18)),
           pfc({3: 0xFFFF})[:42], pfc({3: 0xFFFF})]
    flags = np.zeros(len(odd), np.uint8)
    flags[-2:] = FrameFlag.NO_PADDING, FrameFlag.BAD_FCS
    board = SimulatedBoard()
    driver = Driver(board.transport(), clock=board.seconds, credit_window=0)
    driver.handshake()
    board.feed(capture(odd), flags=flags, throttle=False)
    board.feed(capture([pad(pfc({3: 0}))] * 9000), throttle=False)
    counters = read_counters(driver)
    board.close()
    assert {FrameClass(index): count
            for index, count in enumerate(counters.frame_class[0]) if count} == {
        FrameClass.PFC: 9003, FrameClass.BAD_PFC: 1, FrameClass.TAGGED_PFC: 1,
        FrameClass.PAUSE: 1, FrameClass.MAC_CONTROL: 1, FrameClass.RUNT: 1, FrameClass.BAD_FCS: 1}
    total, xoff = counters.pfc_received[0][3], counters.pfc_received[0][8 + 3]
    assert (xoff, total - xoff) == (2, 9001)
    assert sum(counters.pfc_received[0]) == total + xoff
    assert not any(counters.pfc_transmitted[0])


def bench_gateware(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        main(["bench", "gateware", "--part", "line_rate", "--frames", "50", *arguments])
    return left.value.code, capsys.readouterr().out


def test_command_prints_an_object_of_rows(monkeypatch, capsys):
    monkeypatch.setattr(line_rate, "WIDTHS", (8,))
    code, output = bench_gateware(capsys, "--json")
    assert code == 0
    [*rows] = json.loads(output)["line_rate"]
    assert [row["pattern"] for row in rows] == list(PATTERNS)
    assert rows[0] == {
        "bus_bytes": 8, "pattern": ORDER, "frames_offered": 50, "frames_counted": 50,
        "cycles": 525, "line_rate_frames_per_second": 14880952.4, "clock_mhz": 156.25}


def test_command_prints_a_table_and_fails_on_a_lost_frame(monkeypatch, capsys):
    rows = [LineRate(8, "some", 1_000_000, 999_999, 10_500_000, 14880952.4, 156.25)]
    monkeypatch.setattr(line_rate, "line_rate", lambda frames, progress: rows)
    code, output = bench_gateware(capsys)
    assert code == 1
    row = next(line for line in output.splitlines() if "some" in line)
    assert row.split() == [
        "8", "some", "1,000,000", "999,999", "10,500,000", "14,880,952.4", "156.25"]


def test_command_without_the_simulator(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rocetap_sim.line_rate", None)
    with pytest.raises(SystemExit) as left:
        main(["bench", "gateware"])
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        "rocetap: error: the simulated board is not installed (rocetap_sim.line_rate is missing): "
        "install rocetap with its extra [sim]\n")


def test_table_without_rows(capsys):
    print_rows("area_timing", [])
    assert capsys.readouterr().out == ""


def test_psn_changes_are_those_of_zlib():
    """The ICRC of generated frames is computed by octet tables; here it is computed whole."""
    batch = minimum_frames(PATTERNS[ORDER], 0xABCDEF, 1, rate=1.0)
    packet = bytearray(batch.data[14:58].tobytes())
    for at in (1, 8, 10, 11, 26, 27, 32):
        packet[at] = 0xFF
    assert zlib.crc32(packet[:-4], zlib.crc32(b"\xff" * 8)).to_bytes(4, "little") == packet[-4:]
