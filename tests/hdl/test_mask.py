"""Ring masks and bit counts: every input of small rings, random ones of large."""

import random

import pytest
from amaranth.hdl import Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from rocetap_hdl.mask import COUNT_STAGES, RANGE_STAGES, any_set, popcount, range_mask
from rocetap_hdl.pipeline import Pipeline


class Ring(wiring.Component):
    def __init__(self, width):
        self.width = width
        bits = (width - 1).bit_length()
        super().__init__({"start": In(bits), "count": In(bits + 1), "mask": Out(width)})

    def elaborate(self, platform):
        m = Module()
        p = Pipeline(m, Const(1))
        m.d.comb += self.mask.eq(range_mask(p, "ring", self.start, self.count, 0, self.width))
        return m


class Counts(wiring.Component):
    def __init__(self, width):
        self.width = width
        super().__init__({"word": In(width), "count": Out(width.bit_length()), "any": Out(1)})

    def elaborate(self, platform):
        m = Module()
        p = Pipeline(m, Const(1))
        m.d.comb += [self.count.eq(popcount(p, "count", self.word, 0)),
                     self.any.eq(any_set(p, "any", self.word, 0))]
        return m


def pipelined(dut, latency, inputs, output):
    """One input a clock; returns the outputs that belong to them."""
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    got = []

    async def drive(ctx):
        for at in range(len(inputs) + latency):
            for name, value in (inputs[at] if at < len(inputs) else {}).items():
                ctx.set(getattr(dut, name), value)
            if at >= latency:
                got.append(output(ctx))
            await ctx.tick()
    sim.add_testbench(drive)
    sim.run()
    return got


def ring(start, count, width):
    return sum(1 << ((start + i) % width) for i in range(count))


@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_range_mask_exhaustively(width):
    inputs = [{"start": s, "count": c} for s in range(width) for c in range(width + 1)]
    dut = Ring(width)
    got = pipelined(dut, RANGE_STAGES, inputs, lambda ctx: ctx.get(dut.mask))
    assert got == [ring(i["start"], i["count"], width) for i in inputs]


@pytest.mark.parametrize("width", [64, 256])
def test_range_mask_of_wide_rings(width):
    rng = random.Random(width)
    inputs = [{"start": rng.randrange(width), "count": rng.choice([0, 1, width, width - 1,
                                                                   rng.randrange(width + 1)])}
              for _ in range(300)]
    dut = Ring(width)
    got = pipelined(dut, RANGE_STAGES, inputs, lambda ctx: ctx.get(dut.mask))
    assert got == [ring(i["start"], i["count"], width) for i in inputs]


@pytest.mark.parametrize("width", [2, 4, 16, 100, 256])
def test_counts(width):
    rng = random.Random(width)
    words = [0, (1 << width) - 1, 1, 1 << (width - 1),
             *(rng.getrandbits(width) for _ in range(100))]
    dut = Counts(width)
    got = pipelined(dut, COUNT_STAGES, [{"word": word} for word in words],
                    lambda ctx: (ctx.get(dut.count), ctx.get(dut.any)))
    assert got == [(word.bit_count(), int(word != 0)) for word in words]
