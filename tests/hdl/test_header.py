"""HeaderCapture: places, numbers and times, at every width and with gaps."""

import random

import pytest

from rocetap_hdl.header import HEADER_OCTETS, LENGTH_BITS, HeaderCapture
from support.classify import Arrival
from support.parser_bench import beats
from support.simulate import simulate


@pytest.mark.parametrize("gap", [0.0, 0.4])
@pytest.mark.parametrize("width", [1, 8, 64])
def test_head_at_each_end(width, gap):
    """With the last beat all octets of the head that the frame has are in place."""
    dut = HeaderCapture(width)
    rng = random.Random(f"header {width} {gap}")
    frames = [rng.randbytes(count) for count in (64, 1, 101, 102, 103, 200, 7, 8, 9, 65, 128)]
    starts = []

    async def drive(ctx):
        clock = 0
        for frame in frames:
            for beat in beats(Arrival(frame), width, rng):
                while rng.random() < gap:
                    ctx.set(dut.frames.valid, 0)
                    ctx.set(dut.time, clock)
                    await ctx.tick()
                    clock += 1
                ctx.set(dut.frames.valid, 1)
                ctx.set(dut.frames.payload, beat)
                ctx.set(dut.time, clock)
                if beat["first"]:
                    starts.append(clock)
                await ctx.tick()
                clock += 1
        ctx.set(dut.frames.valid, 0)
        await ctx.tick().repeat(HeaderCapture.LATENCY + 1)

    captured = simulate(dut, drive, dut.beats)[0]
    lasts = [beat for beat in captured if beat["beat"]["last"]]
    assert len(captured) == sum(-(-len(frame) // width) for frame in frames)
    for frame, beat, start in zip(frames, lasts, starts, strict=True):
        head = beat["octets"].to_bytes(HEADER_OCTETS, "little")
        assert head[:min(len(frame), HEADER_OCTETS)] == frame[:HEADER_OCTETS]
        assert beat["index"] == (len(frame) - 1) // width
        assert beat["time"] == start


def test_number_of_a_beat_saturates():
    dut = HeaderCapture(64)
    most = (1 << LENGTH_BITS) // 64 - 1

    async def drive(ctx):
        ctx.set(dut.frames.valid, 1)
        for clock in range(most + 20):
            ctx.set(dut.frames.p.first, clock == 0)
            await ctx.tick()
        ctx.set(dut.frames.valid, 0)
        await ctx.tick().repeat(HeaderCapture.LATENCY + 1)
    numbers = [beat["index"] for beat in simulate(dut, drive, dut.beats)[0]]
    assert numbers == [*range(most), *[most] * 20]
