"""AsyncQueue: order and bounds between clocks of every ratio, whatever is reset."""

import random

import pytest
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.sim import Simulator

from rocetap_hdl.axi.async_queue import AsyncQueue
from support.refuses import refuses

WIDTH = 12


@pytest.mark.parametrize(("i_period", "o_period"), [
    (10e-9, 10e-9), (10e-9, 10.3e-9), (10e-9, 3.7e-9), (3.1e-9, 10e-9)])
@pytest.mark.parametrize(("offered", "wanted"), [(1.0, 1.0), (1.0, 0.3), (0.3, 1.0), (0.5, 0.5)])
@pytest.mark.parametrize("resets", [False, True])
def test_words_come_out_as_they_went_in(i_period, o_period, offered, wanted, resets):
    rng = random.Random(f"queue {i_period} {o_period} {offered} {wanted} {resets}")
    m = Module()
    m.domains.near = near = ClockDomain()
    m.domains.sync = sync = ClockDomain()
    m.submodules.dut = dut = AsyncQueue(WIDTH, depth=8, i_domain="near")
    near_rst, sync_rst = Signal(), Signal()
    m.d.comb += [near.rst.eq(near_rst), sync.rst.eq(sync_rst)]
    sim = Simulator(m)
    sim.add_clock(i_period, phase=1e-9, domain="near")
    sim.add_clock(o_period, domain="sync")
    sent, seen, full = [], [], 0

    async def write(ctx):
        nonlocal full
        for _ in range(800):
            word = rng.randrange(1 << WIDTH)
            ctx.set(dut.i_data, word)
            ctx.set(dut.i_valid, rng.random() < offered)
            ctx.set(near_rst, resets and rng.random() < 0.2)
            _, _, valid, ready = await ctx.tick("near").sample(dut.i_valid, dut.i_ready)
            if valid and ready:
                sent.append(word)
            full += not ready
        ctx.set(dut.i_valid, 0)

    async def read(ctx):
        while True:
            ctx.set(dut.o_ready, rng.random() < wanted)
            ctx.set(sync_rst, resets and rng.random() < 0.2)
            _, _, valid, ready, data = await ctx.tick().sample(
                dut.o_valid, dut.o_ready, dut.o_data)
            if valid and ready:
                seen.append(data)

    sim.add_testbench(write)
    sim.add_testbench(read, background=True)
    sim.run()
    sim.run_until(i_period * 800 + o_period * 200 + 1e-6)
    assert seen == sent
    assert len(sent) > 50
    if offered / i_period > 1.5 * wanted / o_period:
        assert full > 0
    if wanted == 1 and o_period <= i_period:
        assert full == 0


@pytest.mark.parametrize("depth", [4, 12, 0])
def test_depth_that_is_not_made(depth):
    refuses(f"depth is {depth}, must be a power of two from 8",
            lambda: AsyncQueue(8, depth=depth, i_domain="near"))
