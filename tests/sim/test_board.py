"""The simulated board at its pins, seen by a design that records every beat."""

import os
import random
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from rocetap.link.errors import TransportClosed
from rocetap_sim import build
from rocetap_sim.board import FrameFlag, GatewareStopped
from rocetap_sim.cache import Cache
from rocetap_sim.toolchain import Verilator, find_verilator
from support.beats import Recording, SeenFrame, batch_of, recorder_board

WIDTHS = (1, 8, 64)


def on_the_wire(frame):
    """What a MAC makes of a frame: padded to 60 octets, then the FCS (IEEE 802.3, 3.2.8, 3.2.9)."""
    padded = frame.ljust(60, b"\0")
    return padded + zlib.crc32(padded).to_bytes(4, "little")


@pytest.mark.parametrize("bus_bytes", WIDTHS)
def test_frames_of_every_length_go_out_whole(bus_bytes):
    rng = random.Random(1)
    sizes = [*range(1, 150), 1514, *([9014] if bus_bytes > 1 else [])]
    frames = [rng.randbytes(size) for size in sizes]
    times = np.array([rng.getrandbits(64) for _ in frames], dtype=np.uint64)
    board = recorder_board(bus_bytes)
    recording = Recording(board)
    batch = batch_of(frames, time_ns=times)
    for index, (frame, time) in enumerate(zip(frames, times, strict=True)):
        assert board.feed(batch, start=index, stop=index + 1) == index + 1
        assert recording.take() == [SeenFrame(on_the_wire(frame), 0, int(time))]
    assert board.counters.frames == len(frames)
    assert board.counters.octets == sum(map(len, frames))


@pytest.mark.parametrize(("bus_bytes", "gap", "size", "cycles"), [
    (8, 20, 60, 84 * 1000 // 8), (8, 20, 61, 85 * 1000 // 8), (8, 0, 60, 8 * 1000),
    (8, 0, 61, 9 * 1000), (1, 20, 60, 84 * 1000), (1, 5, 60, 69 * 1000),
    (64, 20, 60, 84 * 1000 // 64), (64, 20, 61, 2 * 1000), (64, 0, 60, 1000),
])
def test_line_rate_is_exact_on_average(bus_bytes, gap, size, cycles):
    board = recorder_board(bus_bytes)
    frames = batch_of([bytes(size)] * 1000)
    assert board.feed(frames, gap_octets=gap, throttle=False) == 1000
    assert abs(board.counters.cycles - cycles) <= 1
    assert board.counters.waited == 0


def test_faults_and_marks_are_each_in_one_frame():
    frames = [bytes([number]) * 70 for number in range(6)]
    flags = [0, FrameFlag.BAD_FCS, 0, FrameFlag.MAC_ERROR, FrameFlag.LOST_BEFORE, 0]
    board = recorder_board()
    board.feed(batch_of(frames, lost=[0, 0, 0, 0, 0, 1]), flags=flags)
    good = [SeenFrame(on_the_wire(frame), 0, time) for time, frame in enumerate(frames)]
    wrong = bytearray(good[1].octets)
    wrong[-1] ^= 0x80
    assert Recording(board).take() == [
        good[0], SeenFrame(bytes(wrong), 0, 1), good[2],
        SeenFrame(good[3].octets, 0, 3, error=True),
        SeenFrame(bytes(8), 0, 3, lost=True), good[4],
        SeenFrame(bytes(8), 0, 4, lost=True), good[5]]


def test_short_frames_stay_short_when_told():
    board = recorder_board()
    board.feed(batch_of([b"abcdefghij"]), flags=FrameFlag.NO_PADDING)
    assert Recording(board).take() == [
        SeenFrame(b"abcdefghij" + zlib.crc32(b"abcdefghij").to_bytes(4, "little"), 0, 0)]


@pytest.mark.parametrize("captured", [0, 1, 20, 54, 59, 60, 128])
def test_cut_frames_are_marked_and_not_padded(captured):
    frame = bytes(range(200))[:captured]
    board = recorder_board()
    board.feed(batch_of([b"x" * 64, frame, b"y" * 64], original=[64, 1098, 64]))
    seen = Recording(board).take()
    assert seen[1] == SeenFrame(frame + bytes(4), 0, 1, sliced=True)
    assert [one.sliced for one in seen] == [False, True, False]


def test_interfaces_go_to_ports_modulo_their_number():
    board = recorder_board(8, 2)
    frames = [bytes([number]) * 60 for number in range(5)]
    board.feed(batch_of(frames, interface=[0, 1, 2, 3, 1]))
    assert [(one.port, one.octets[0]) for one in Recording(board).take()] == [
        (0, 0), (1, 1), (0, 2), (1, 3), (1, 4)]


def test_concurrent_ports_take_the_time_of_the_longer_one():
    frames = batch_of([bytes([number]) * 60 for number in range(30)],
                      interface=[number % 3 == 0 for number in range(30)],
                      lost=[number == 3 for number in range(30)])
    board = recorder_board(8, 2)
    assert board.feed(frames, throttle=False, concurrent=True) == 30
    assert abs(board.counters.cycles - 20 * 84 // 8) <= 1
    seen = Recording(board).take()
    assert [one.octets[0] for one in seen if one.port == 0] == [
        number for number in range(30) if number % 3]
    assert [(one.lost, one.octets[0]) for one in seen if one.port == 1] == [
        (False, 0), (True, 0), *((False, number) for number in range(3, 30, 3))]
    assert all(one.octets == on_the_wire(one.octets[:60]) for one in seen if not one.lost)


# ------------------------------------------------------------------ throttle


def test_throttled_frames_wait_for_room_and_none_is_dropped():
    board = recorder_board(asserts=True)
    frames = [number.to_bytes(2, "big") * 40 for number in range(300)]
    assert board.feed(batch_of(frames)) == 300
    assert board.counters.waited > 0
    assert [one.octets for one in Recording(board).take()] == [on_the_wire(f) for f in frames]


def test_feed_comes_back_when_nobody_takes_the_records():
    board = recorder_board(asserts=True)
    board.write(b"\0")    # hold
    frames = batch_of([number.to_bytes(2, "big") * 40 for number in range(300)])
    board.run(4)
    sent = board.feed(frames, patience=1000)
    assert 0 < sent < 300
    assert board.counters.waited == 1000
    assert board.snapshot_room < 64
    assert board.feed(frames, start=sent, patience=1000) == sent
    board.write(b"\1")    # let go
    assert board.feed(frames, start=sent, patience=1000) == 300
    assert [int.from_bytes(one.octets[:2], "big") for one in Recording(board).take()] == [
        *range(300)]


def test_without_throttle_frames_come_whatever_happens():
    board = recorder_board(asserts=True)
    board.write(b"\0")
    with pytest.raises(GatewareStopped, match=r"^the gateware stopped: more than 2048 beats wait"):
        board.feed(batch_of([bytes(60)] * 400), throttle=False)


# ------------------------------------------------------------------ bad arguments


@pytest.mark.parametrize(("change", "options", "message"), [
    ({"offsets": np.array([0, 61], np.uint64)}, {}, r"frame 1 ends at octet 121 of 120"),
    ({"captured": np.array([60], np.uint32)}, {},
     r"captured has 1 elements, must be 2"),
    ({}, {"start": 3}, r"start is 3 and stop 2, must be in order and at most 2"),
    ({}, {"start": 1, "stop": 0}, r"start is 1 and stop 0, must be in order and at most 2"),
    ({}, {"flags": [0, 0, 0]}, r"flags has 3 elements, must be 2"),
    ({}, {"concurrent": True}, r"concurrent frames cannot be throttled: give throttle=False"),
])
def test_arrays_that_do_not_fit_are_refused(change, options, message):
    batch = batch_of([bytes(60)] * 2)
    vars(batch).update(change)
    board = recorder_board()
    with pytest.raises(ValueError, match=f"^{message}$"):
        board.feed(batch, **options)
    assert board.counters.frames == 0


# ------------------------------------------------------------------ link and clock


def test_reading_the_link_clocks_the_board_until_the_time_out():
    board = recorder_board()
    transport = board.transport()
    assert transport.read(100, 0.0) == b""
    assert board.counters.cycles == 0
    assert transport.read(100, 0.000_01) == b""
    assert board.counters.cycles == 1563    # 1562.5 clocks, and not less than asked
    assert board.seconds() == pytest.approx(0.000_01, rel=0.01)
    board.feed(batch_of([bytes(60)]))
    assert len(transport.read(100, 1.0)) == 100
    assert len(transport.read(100, 1.0)) == 44
    assert transport.read(100, 1.0) == b""


def test_a_time_out_shorter_than_a_clock_is_a_clock():
    """Else who waits for a moment between two clocks would wait for ever."""
    board = recorder_board(64)
    before = board.counters.cycles
    assert board.transport().read(1, 1e-15) == b""
    assert board.counters.cycles == before + 1


def test_more_octets_than_the_queue_holds_are_written():
    board = recorder_board()
    board.transport().write(b"\0" * (3 << 19))
    assert board.counters.cycles >= 1 << 19
    board.run(1 << 20)
    assert board.write(b"\1") == 1


def test_a_closed_line_says_so():
    transport = recorder_board().transport()
    transport.close()
    transport.close()
    for use in (lambda: transport.read(1, 0.1), lambda: transport.write(b"x")):
        with pytest.raises(TransportClosed, match=r"^simulated board: was closed$"):
            use()


def test_reset_empties_the_board():
    board = recorder_board()
    board.write(b"\0")
    board.run(2)
    board.feed(batch_of([bytes(60)]))
    assert board.snapshot_level == 8
    board.reset()
    assert board.snapshot_level == 0
    assert board.read(10) == b""


def test_two_boards_do_not_share_state():
    one, other = recorder_board(), recorder_board()
    one.feed(batch_of([bytes(60)]))
    assert Recording(other).take() == []
    assert len(Recording(one).take()) == 1


# ------------------------------------------------------------------ building


def test_a_second_start_loads_without_elaborating():
    recorder_board()
    code = ("import sys, time; begin = time.monotonic()\n"
            "from rocetap_sim.board import SimulatedBoard\n"
            "from rocetap_sim.design import Design\n"
            "SimulatedBoard(design=Design('support.designs.beat_recorder', 'BeatRecorder',"
            " (('bus_bytes', 8), ('ports', 1))))\n"
            "print('amaranth' in sys.modules, time.monotonic() - begin < 5)\n")
    tests = str(Path(__file__).parents[1])
    outcome = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "PYTHONPATH": tests, "PYTHONHOME": sys.base_prefix})
    assert (outcome.stdout, outcome.stderr) == ("False True\n", "")


def test_builds_in_folders_with_spaces_and_says_what_it_does(tmp_path, monkeypatch):
    packaged = find_verilator()
    root = tmp_path / "my roce probe" / "site packages" / "verilator"
    root.parent.mkdir(parents=True)
    root.symlink_to(packaged.root)
    monkeypatch.setattr(build, "find_verilator", lambda: Verilator(
        root / "bin" / packaged.program.name, root, packaged.version))
    lines = []
    design = recorder_board().design
    library = build.build_library(design, cache=Cache(tmp_path / "my roce probe" / "build"),
                                  report=lines.append)
    assert library.is_file()
    assert sorted(path.name for path in library.parent.iterdir()) == ["board.so", "probe.v"]
    assert lines[0] == (f"building the simulated board, {design}; this happens once for each state "
                        "of the gateware")
    assert [line[:5] for line in lines[1:4]] == ["[1/3]", "[2/3]", "[3/3]"]
