"""StreamTap: what counts as a beat, and as a frame."""

import random

import pytest

from rocetap_hdl.axi.tap import StreamTap
from support.axi_frames import Seen, axis_beats, frames_of
from support.simulate import simulate

END = {"tdata": 0, "tkeep": 1, "tlast": 1, "tuser": 0}
"""A last beat: what comes before it after a reset is not looked at."""


def tap(beats, bus_bytes, *, gap=0.0, stall=0.0, rng=None, woken=True):
    """The frames that the tap makes of beats, which hold while ``tready`` is low."""
    rng = rng or random.Random(1)
    dut = StreamTap(bus_bytes)
    pins = dut.axis

    async def clock(ctx, beat, *, valid, ready):
        for name, value in beat.items():
            ctx.set(getattr(pins, name), value)
        ctx.set(pins.tvalid, valid)
        ctx.set(pins.tready, ready)
        await ctx.tick()

    async def drive(ctx):
        if woken:
            await clock(ctx, END, valid=1, ready=1)
        for beat in beats:
            while rng.random() < gap:
                await clock(ctx, {**beat, "tdata": rng.getrandbits(8 * bus_bytes), "tlast": 1},
                            valid=0, ready=rng.random() < 0.5)
            while rng.random() < stall:
                await clock(ctx, beat, valid=1, ready=0)
            await clock(ctx, beat, valid=1, ready=1)
        await clock(ctx, END, valid=0, ready=1)
        await ctx.tick()

    return frames_of(simulate(dut, drive, dut.frames)[0], bus_bytes)


@pytest.mark.parametrize("bus_bytes", [1, 8, 64])
@pytest.mark.parametrize(("gap", "stall"), [(0, 0), (0.4, 0), (0, 0.4), (0.3, 0.3)])
def test_frames_of_every_length_come_through(bus_bytes, gap, stall):
    rng = random.Random(f"tap {bus_bytes} {gap} {stall}")
    frames = [rng.randbytes(size) for size in (*range(1, 3 * bus_bytes), 60, 61, 150)]
    beats = [beat for octets in frames for beat in axis_beats(octets, bus_bytes)]
    assert tap(beats, bus_bytes, gap=gap, stall=stall, rng=rng) == [Seen(f) for f in frames]


@pytest.mark.parametrize("bus_bytes", [1, 8, 64])
def test_a_bad_frame_is_an_error_at_its_end_only(bus_bytes):
    frames = [bytes([i]) * 70 for i in range(4)]
    beats = [beat for i, octets in enumerate(frames)
             for beat in axis_beats(octets, bus_bytes, bad=i in (1, 3))]
    assert tap(beats, bus_bytes) == [
        Seen(octets, error=i in (1, 3)) for i, octets in enumerate(frames)]


def holes(bus_bytes):
    """(beat of three, tkeep) of every kind that breaks the framing."""
    full = (1 << bus_bytes) - 1
    yield from ((0, full >> 1), (1, full >> 1), (0, full - 1), (1, 0), (2, 0), (2, full - 1))
    yield from ((2, 0b101), (2, 0b1011), (1, full & ~2), (2, 1 << bus_bytes - 1 | 1))
    yield 2, full ^ (1 << bus_bytes - 2)


@pytest.mark.parametrize("bus_bytes", [8, 64])
@pytest.mark.parametrize(("at", "keep"), list(enumerate(list(range(11)))))
def test_a_hole_anywhere_is_an_error(bus_bytes, at, keep):
    place, tkeep = list(holes(bus_bytes))[keep]
    good = bytes(range(3 * bus_bytes - 2))
    broken = list(axis_beats(good, bus_bytes))
    broken[place]["tkeep"] = tkeep
    found = tap([*axis_beats(good, bus_bytes), *broken, *axis_beats(good, bus_bytes)], bus_bytes)
    assert [frame.error for frame in found] == [False, True, False]
    assert found[0] == found[2] == Seen(good)


def test_one_octet_without_keep_is_an_error():
    beats = list(axis_beats(b"abc", 1))
    beats[1]["tkeep"] = 0
    assert [frame.error for frame in tap([*beats, *axis_beats(b"abc", 1)], 1)] == [True, False]


def test_after_a_reset_the_tap_waits_for_an_end():
    first, second = bytes(range(20)), bytes(range(30))
    beats = [*axis_beats(first, 8), *axis_beats(second, 8)]
    assert tap(beats[1:], 8, woken=False) == [Seen(second)]
    assert tap(beats, 8, woken=False) == [Seen(second)]


def test_latency_is_what_it_says():
    dut = StreamTap(8)

    async def drive(ctx):
        for clock in range(2 + StreamTap.LATENCY):
            for name, value in {**END, "tvalid": clock < 2, "tready": 1}.items():
                ctx.set(getattr(dut.axis, name), value)
            await ctx.tick()
            assert ctx.get(dut.frames.valid) == (clock == StreamTap.LATENCY)
    simulate(dut, drive)
