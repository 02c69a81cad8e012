"""BusCrossing: every access once, between any two clocks, and no hang."""

import random

import pytest
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.sim import Simulator

from rocetap.spec.wire import Status
from rocetap_hdl.axi.bus_crossing import BusCrossing
from support.refuses import refuses
from support.register_bus import RegisterMemory

CLOCKS = [(10e-9, 10e-9), (10e-9, 10.3e-9), (8e-9, 3.1e-9), (3.1e-9, 8e-9), (2e-9, 29e-9)]


class Bench:
    def __init__(self, near_period, sync_period, patience=4096):
        m = Module()
        m.domains.near = near = ClockDomain()
        m.domains.sync = sync = ClockDomain()
        m.submodules.dut = self.dut = BusCrossing(i_domain="near", patience=patience)
        self.near_rst, self.sync_rst = Signal(), Signal()
        m.d.comb += [near.rst.eq(self.near_rst), sync.rst.eq(self.sync_rst)]
        self.sim = Simulator(m)
        self.sim.add_clock(near_period, phase=1e-9, domain="near")
        self.sim.add_clock(sync_period, domain="sync")
        self.memory = RegisterMemory(self.dut.o, random.Random(1))

    def run(self, drive, *, responds=True):
        async def bench(ctx):
            await drive(ctx, self)
        self.sim.add_testbench(bench)
        if responds:
            self.sim.add_testbench(self.memory.run, background=True)
        self.sim.run()

    async def access(self, ctx, address, data=None):
        """(status, read data, clocks)"""
        bus = self.dut.i
        ctx.set(bus.address, address)
        ctx.set(bus.write, data is not None)
        ctx.set(bus.write_data, data or 0)
        ctx.set(bus.request, 1)
        clocks = 0
        while not ctx.get(bus.done):
            await ctx.tick("near")
            clocks += 1
            assert clocks < 5000
        result = Status(ctx.get(bus.status)), ctx.get(bus.read_data), clocks
        await ctx.tick("near")
        ctx.set(bus.request, 0)
        await ctx.tick("near")
        assert ctx.get(bus.done) == 0
        return result


@pytest.mark.parametrize(("near", "sync"), CLOCKS)
def test_every_access_is_done_once(near, sync):
    rng = random.Random(f"crossing {near} {sync}")
    bench = Bench(near, sync)
    expected = []

    async def drive(ctx, bench):
        kept = {}
        for _ in range(60):
            address = rng.choice((rng.randrange(4), rng.randrange(0x400)))
            data = rng.getrandbits(64) if rng.random() < 0.5 else None
            status, value, _ = await bench.access(ctx, address, data)
            expected.append((data is not None, address, data or 0))
            assert status == (Status.NO_REGISTER if address >= 0x380 else
                              Status.REFUSED if address >= 0x300 else Status.OK)
            if status == Status.OK and data is not None:
                kept[address] = data
            elif status == Status.OK:
                assert value == kept.get(address, address << 32 | 0xABCD)
            for _ in range(rng.randrange(4)):
                await ctx.tick("near")

    bench.run(drive)
    assert bench.memory.accesses == expected


@pytest.mark.parametrize(("near", "sync"), CLOCKS)
@pytest.mark.parametrize("after", [1, 3, 5, 8, 13])
def test_a_reset_of_the_initiator_takes_no_other_answer(near, sync, after):
    bench = Bench(near, sync)

    async def drive(ctx, bench):
        bus = bench.dut.i
        ctx.set(bus.address, 5)
        ctx.set(bus.write, 0)
        ctx.set(bus.request, 1)
        for _ in range(after):
            await ctx.tick("near")
            if ctx.get(bus.done):
                break
        ctx.set(bus.request, 0)
        ctx.set(bench.near_rst, 1)
        await ctx.tick("near")
        ctx.set(bench.near_rst, 0)
        assert (await bench.access(ctx, 6))[:2] == (Status.OK, 6 << 32 | 0xABCD)
        assert (await bench.access(ctx, 7))[:2] == (Status.OK, 7 << 32 | 0xABCD)

    bench.run(drive)
    assert [address for _, address, _ in bench.memory.accesses] in ([5, 6, 7], [6, 7])


@pytest.mark.parametrize(("near", "sync"), CLOCKS)
def test_an_access_that_meets_a_reset_of_the_core_is_done(near, sync):
    rng = random.Random(f"reset {near} {sync}")
    bench = Bench(near, sync)

    async def drive(ctx, bench):
        for number in range(40):
            bench_reset = rng.randrange(1, 20)
            bus = bench.dut.i
            ctx.set(bus.address, number)
            ctx.set(bus.request, 1)
            for clock in range(600):
                ctx.set(bench.sync_rst, bench_reset <= clock < bench_reset + 20)
                await ctx.tick("near")
                if ctx.get(bus.done):
                    break
            assert (ctx.get(bus.status), ctx.get(bus.read_data)) == (
                Status.OK, number << 32 | 0xABCD)
            await ctx.tick("near")
            ctx.set(bus.request, 0)
            for later in range(clock + 1, clock + rng.randrange(2, 30)):
                ctx.set(bench.sync_rst, bench_reset <= later < bench_reset + 20)
                await ctx.tick("near")
            ctx.set(bench.sync_rst, 0)

    bench.run(drive)
    assert [address for _, address, _ in bench.memory.accesses] == list(range(40))


def test_a_core_that_does_not_answer_is_refused_in_time():
    bench = Bench(10e-9, 7e-9, patience=64)

    async def drive(ctx, bench):
        for _ in range(3):
            assert await bench.access(ctx, 1) == (Status.REFUSED, 0, 64)
    bench.run(drive, responds=False)


def test_after_a_refusal_in_time_the_late_answer_is_nobodys():
    bench = Bench(10e-9, 10e-9, patience=64)
    bus = bench.dut.o

    async def far(ctx):
        await ctx.tick().until(bus.request)
        await ctx.tick().repeat(100)
        for value in (11, 22):
            await ctx.tick().until(bus.request)
            ctx.set(bus.read_data, value)
            ctx.set(bus.done, 1)
            await ctx.tick()
            ctx.set(bus.done, 0)

    async def drive(ctx, bench):
        assert (await bench.access(ctx, 1))[0] == Status.REFUSED
        assert (await bench.access(ctx, 2))[:2] == (Status.OK, 22)

    bench.sim.add_testbench(far, background=True)
    bench.run(drive, responds=False)


def test_latency():
    bench = Bench(10e-9, 10e-9)
    bench.memory._slowest = 0

    async def drive(ctx, bench):
        for _ in range(3):
            assert (await bench.access(ctx, 1))[2] <= 11
            await ctx.tick("near").repeat(8)
    bench.run(drive)


def test_patience_that_is_not_made():
    refuses("patience is 63, must be 64 or more", lambda: BusCrossing(i_domain="x", patience=63))
