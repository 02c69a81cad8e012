"""FrameCheck: the FCS of whole frames of every length."""

import random

import pytest

from rocetap_hdl.fcs import FrameCheck
from support.classify import Arrival
from support.frames import with_fcs
from support.parser_bench import beats
from support.simulate import simulate


@pytest.mark.parametrize("width", [1, 8, 64])
def test_frames_of_every_length(width):
    """From no octet but the FCS to 200, good and bad in turn, each bad one wrong in one bit."""
    dut = FrameCheck(width)
    rng = random.Random(f"fcs {width}")
    frames = []
    for count in range(0, 201, 3 if width == 1 else 1):
        frame = with_fcs(rng.randbytes(count))
        place = rng.randrange(len(frame))
        bad = bytearray(frame)
        bad[place] ^= 1 << rng.randrange(8)
        frames += [frame, bytes(bad)]

    async def drive(ctx):
        ctx.set(dut.frames.valid, 1)
        for frame in frames:
            for beat in beats(Arrival(frame), width, rng):
                ctx.set(dut.frames.payload, beat)
                await ctx.tick()
        ctx.set(dut.frames.valid, 0)
        await ctx.tick().repeat(FrameCheck.LATENCY + 1)
    assert simulate(dut, drive, dut.results) == [[1, 0] * (len(frames) // 2)]
