"""BlockQueue: everything in order, at full rate, and never a read of what is being written."""

import re

import pytest
from amaranth.hdl import *

from rocetap_hdl.queue import BlockQueue
from support.link_bench import PRESSURES, run_streams
from support.simulate import simulate


@pytest.mark.parametrize("pressure", [*PRESSURES, (1.0, 0.1)])
@pytest.mark.parametrize("depth", [2, 3, 16])
@pytest.mark.parametrize("every_clock", [True, False])
def test_everything_in_order(pressure, depth, every_clock):
    dut = BlockQueue(8, depth, every_clock=every_clock)
    items = [(5 * number + depth) % 256 for number in range(300)]
    (taken,) = run_streams(dut, [(dut.i, items)], [dut.o], pressure=pressure, seed=depth)
    assert taken == items


def test_an_item_a_clock_after_its_latency():
    dut = BlockQueue(8, 16)

    async def drive(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.i.valid, 1)
        for number in range(100):
            ctx.set(dut.i.payload, number)
            assert ctx.get(dut.i.ready)
            assert ctx.get(dut.o.valid) == (number >= dut.latency)
            if number >= dut.latency:
                assert ctx.get(dut.o.payload) == number - dut.latency
            await ctx.tick()

    simulate(dut, drive)


@pytest.mark.parametrize("depth", [2, 5, 8])
def test_it_holds_depth_items(depth):
    dut = BlockQueue(8, depth)

    async def drive(ctx):
        ctx.set(dut.i.valid, 1)
        for number in range(depth):
            assert ctx.get(dut.level) == number
            assert ctx.get(dut.i.ready)
            await ctx.tick()
        await ctx.tick().repeat(5)
        assert ctx.get(dut.level) == depth
        assert not ctx.get(dut.i.ready)

    simulate(dut, drive)


@pytest.mark.parametrize("pressure", PRESSURES)
def test_no_read_meets_a_write(pressure):
    dut = BlockQueue(8, 4)
    inside = dut.elaborate(None)
    memory = inside.submodules.memory
    read, write = memory.read_ports[0], memory.write_ports[0]
    meets = Signal()
    inside.d.comb += meets.eq(read.en & write.en & (read.addr == write.addr))
    met = Signal()
    with inside.If(meets):
        inside.d.sync += met.eq(1)

    class Inside(Elaboratable):
        def elaborate(self, platform):
            return inside

    async def look(ctx):
        async for _, _, now in ctx.tick().sample(met):
            assert not now

    items = list(range(200))
    (taken,) = run_streams(Inside(), [(dut.i, items)], [dut.o], pressure=pressure, extra=[look])
    assert taken == items


def test_a_depth_that_cannot_be():
    with pytest.raises(ValueError, match=f"^{re.escape('depth is 1, must be 2 or more')}$"):
        BlockQueue(8, 1)
