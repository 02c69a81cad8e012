"""FramePlayer: the frame in its memory, as often as asked, in whole beats."""

import random

import pytest

from rocetap.spec.registers import SELFTEST_WORDS
from rocetap_hdl.player import GAP_CLOCKS, FramePlayer
from support.frames import with_fcs
from support.simulate import simulate


async def load(ctx, dut, frame):
    padded = frame.ljust(8 * SELFTEST_WORDS, b"\xEE")
    ctx.set(dut.write, 1)
    for index in range(SELFTEST_WORDS):
        ctx.set(dut.index, index)
        ctx.set(dut.word, int.from_bytes(padded[8 * index:8 * index + 8], "little"))
        await ctx.tick()
    ctx.set(dut.write, 0)


def play(width, frame, **how):
    """Beats with their clocks, and when ``busy`` was up."""
    dut, beats, busy = FramePlayer(width), [], []

    async def drive(ctx):
        await load(ctx, dut, frame)
        for name, value in ({"octets": len(frame), "times": 1} | how).items():
            ctx.set(getattr(dut, name), value)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for clock in range((len(frame) + 60) * how.get("times", 1) + 80):
            if ctx.get(dut.busy):
                busy.append(clock)
            if ctx.get(dut.frames.valid):
                beats.append((clock, ctx.get(dut.frames.payload)))
            await ctx.tick()
    simulate(dut, drive)
    return beats, busy


def frames_of(beats, width):
    frames, octets = [], b""
    for _, beat in beats:
        assert bool(beat["first"]) == (octets == b"")
        count = beat["end"] + 1 if beat["last"] else width
        octets += beat["data"].to_bytes(width, "little")[:count]
        if beat["last"]:
            frames.append((octets, beat["error"]))
            octets = b""
    assert octets == b""
    return frames


@pytest.mark.parametrize("width", [1, 8, 64])
@pytest.mark.parametrize("size", [1, 60, 61, 64, 8 * SELFTEST_WORDS])
def test_frames_of_every_size_and_width(width, size):
    frame = random.Random(f"player {size}").randbytes(size)
    beats, busy = play(width, frame, times=2)
    assert frames_of(beats, width) == [(with_fcs(frame), 0)] * 2
    assert busy[0] == 0
    assert busy == [*range(busy[-1] + 1)]
    assert beats[-1][0] < busy[-1]


@pytest.mark.parametrize("width", [1, 8])
def test_faults(width):
    frame = bytes(range(60))
    assert frames_of(play(width, frame, wrong_fcs=1)[0], width) == [
        (with_fcs(frame, wrong=True), 0)]
    assert frames_of(play(width, frame, mac_error=1)[0], width) == [(with_fcs(frame), 1)]


def test_line_rate_and_gap():
    frame = bytes(60)
    beats, busy = play(1, frame, times=3)
    firsts = [clock for clock, beat in beats if beat["first"]]
    lasts = [clock for clock, beat in beats if beat["last"]]
    # One clock for the FCS to be known is part of a frame here.
    assert [last - first for first, last in zip(firsts, lasts, strict=True)] == [64] * 3
    assert {first - last for first, last in zip(firsts[1:], lasts, strict=False)} <= set(
        range(GAP_CLOCKS, GAP_CLOCKS + 4))
    assert busy[-1] >= lasts[-1] + GAP_CLOCKS - 2
