"""LiteResponder: halves of registers, responses, and channels that wait."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from rocetap.spec.axi import AXI_REGISTERS, byte_address
from rocetap_hdl.axi.lite import LiteResponder
from rocetap_hdl.axi.pins import Response
from support.register_bus import RegisterMemory

OKAY, SLVERR, DECERR = Response.OKAY, Response.SLVERR, Response.DECERR
ALL_ONES = 0xFFFF_FFFF
STATUS = byte_address(AXI_REGISTERS["access_status"].address)


class Manager:
    """Drives the five channels; each waits a random number of clocks, up to `slowest`."""

    def __init__(self, ctx, axi, rng, slowest):
        self.ctx, self.axi, self.rng, self.slowest = ctx, axi, rng, slowest

    async def _pause(self):
        for _ in range(self.rng.randrange(self.slowest + 1)):
            await self.ctx.tick()

    async def _hold(self, valid, ready):
        self.ctx.set(valid, 1)
        await self.ctx.tick().until(ready)
        self.ctx.set(valid, 0)

    async def read(self, address):
        """(response, data)"""
        ctx, axi = self.ctx, self.axi
        await self._pause()
        ctx.set(axi.araddr, address)
        await self._hold(axi.arvalid, axi.arready)
        await self._pause()
        ctx.set(axi.rready, 1)
        response, data = await ctx.tick().sample(axi.rresp, axi.rdata).until(axi.rvalid)
        ctx.set(axi.rready, 0)
        return Response(response), data

    async def write(self, address, data, strobes=15):
        ctx, axi = self.ctx, self.axi
        first = self.rng.choice((axi.awvalid, axi.wvalid))
        ctx.set(axi.awaddr, address)
        ctx.set(axi.wdata, data)
        ctx.set(axi.wstrb, strobes)
        ctx.set(first, 1)
        for _ in range(self.rng.randrange(self.slowest + 1)):
            assert (ctx.get(axi.awready), ctx.get(axi.wready)) == (0, 0)
            await ctx.tick()
        ctx.set(axi.awvalid, 1)
        ctx.set(axi.wvalid, 1)
        await ctx.tick().until(axi.awready & axi.wready)
        ctx.set(axi.awvalid, 0)
        ctx.set(axi.wvalid, 0)
        await self._pause()
        ctx.set(axi.bready, 1)
        (response,) = await ctx.tick().sample(axi.bresp).until(axi.bvalid)
        ctx.set(axi.bready, 0)
        return Response(response)

    async def read64(self, number):
        low = await self.read(byte_address(number))
        high = await self.read(byte_address(number) + 4)
        return (low[0], high[0]), high[1] << 32 | low[1]

    async def write64(self, number, value):
        return (await self.write(byte_address(number), value & ALL_ONES),
                await self.write(byte_address(number) + 4, value >> 32))


def run(drive, *, slowest=0, seed=1):
    """Runs ``drive(manager, memory)``; gives the memory."""
    m = Module()
    m.submodules.dut = dut = LiteResponder()
    memory = RegisterMemory(dut.bus, random.Random(seed), slowest)

    async def bench(ctx):
        await drive(Manager(ctx, dut.axi, random.Random(seed), slowest), memory)

    sim = Simulator(m)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.add_testbench(memory.run, background=True)
    sim.run()
    return memory


@pytest.mark.parametrize("slowest", [0, 3])
def test_registers_are_written_and_read_whole(slowest):
    rng = random.Random(f"lite {slowest}")

    async def drive(manager, memory):
        for _ in range(30):
            number, value = rng.randrange(0x300), rng.getrandbits(64)
            assert await manager.write64(number, value) == (OKAY, OKAY)
            assert await manager.read64(number) == ((OKAY, OKAY), value)

    memory = run(drive, slowest=slowest)
    assert len(memory.accesses) == 60      # each register once a write and once a read


def test_a_register_is_read_at_one_moment():
    async def drive(manager, memory):
        memory.words[9] = 0x00000001_FFFFFFFF
        low = await manager.read(byte_address(9))
        memory.words[9] += 1
        high = byte_address(9) + 4
        assert (low, await manager.read(high)) == ((OKAY, ALL_ONES), (OKAY, 1))
        assert await manager.read(high) == (OKAY, 1)        # it may be read again
        assert await manager.read64(9) == ((OKAY, OKAY), 2 << 32)

    assert len(run(drive).accesses) == 2


def test_a_high_word_without_its_low_word():
    async def drive(manager, memory):
        assert await manager.read(byte_address(4) + 4) == (SLVERR, ALL_ONES)
        assert await manager.write(byte_address(4) + 4, 1) == SLVERR
        await manager.read(byte_address(4))
        assert await manager.read(byte_address(5) + 4) == (SLVERR, ALL_ONES)
        assert await manager.read(byte_address(4) + 4) == (OKAY, 4)
        await manager.write(byte_address(6), 1)
        assert await manager.write(byte_address(7) + 4, 1) == SLVERR
        assert await manager.write(byte_address(6) + 4, 1) == SLVERR    # what was kept is gone
        assert await manager.write64(6, 3) == (OKAY, OKAY)
        assert await manager.write(byte_address(6) + 4, 1) == SLVERR    # each low word once

    assert [access for access in run(drive).accesses if access[0]] == [(True, 6, 3)]


def test_reads_between_the_halves_of_a_write_and_the_other_way_round():
    async def drive(manager, memory):
        memory.words[2] = 7 << 32 | 8
        await manager.write(byte_address(3), 5)
        assert await manager.read(byte_address(2)) == (OKAY, 8)
        assert await manager.write(byte_address(3) + 4, 6) == OKAY
        assert await manager.read(byte_address(2) + 4) == (OKAY, 7)

    assert run(drive).words[3] == 6 << 32 | 5


@pytest.mark.parametrize("strobes", [0, 1, 7, 14])
@pytest.mark.parametrize("half", [0, 1])
def test_a_write_without_all_strobes_does_nothing(strobes, half):
    async def drive(manager, memory):
        halves = [15, 15]
        halves[half] = strobes
        answers = [await manager.write(byte_address(8) + 4 * i, 1, halves[i]) for i in range(2)]
        assert answers == [SLVERR if half == 0 else OKAY, SLVERR]
    assert run(drive).accesses == []


def test_statuses_are_responses_and_are_counted():
    async def drive(manager, memory):
        async def status():
            answers, value = await manager.read64(AXI_REGISTERS["access_status"].address)
            assert answers == (OKAY, OKAY)
            return AXI_REGISTERS["access_status"].unpack(value)

        assert await status() == {"last_write": 0, "failed": 0}
        assert await manager.write64(0x3F0, 1) == (OKAY, DECERR)
        assert await status() == {"last_write": 3, "failed": 1}
        assert await manager.write64(0x310, 1) == (OKAY, SLVERR)
        assert await status() == {"last_write": 2, "failed": 2}
        assert await manager.read64(0x3F0) == ((DECERR, SLVERR), (1 << 64) - 1)
        assert await manager.read(byte_address(0x310)) == (SLVERR, ALL_ONES)
        assert await status() == {"last_write": 2, "failed": 5}
        assert await manager.write(byte_address(1), 1) == OKAY       # no whole register yet
        assert (await status())["last_write"] == 2
        assert await manager.write(byte_address(1) + 4, 1) == OKAY
        assert await status() == {"last_write": 0, "failed": 5}
        assert await manager.write(byte_address(1), 1, 3) == SLVERR
        assert await status() == {"last_write": 2, "failed": 6}

    run(drive)


def test_a_failed_low_word_leaves_no_high_word():
    async def drive(manager, memory):
        assert await manager.read(byte_address(1)) == (OKAY, 0xABCD)
        assert await manager.read(byte_address(0x310)) == (SLVERR, ALL_ONES)
        assert await manager.read(byte_address(0x310) + 4) == (SLVERR, ALL_ONES)
        assert await manager.read(byte_address(1) + 4) == (SLVERR, ALL_ONES)
    run(drive)


def test_reads_and_writes_take_turns():
    m = Module()
    m.submodules.dut = dut = LiteResponder()
    memory = RegisterMemory(dut.bus, random.Random(1))
    order = []

    async def bench(ctx):
        for pin in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
            ctx.set(getattr(dut.axi, pin), 1)
        ctx.set(dut.axi.wstrb, 15)
        sampled = ctx.tick().sample(dut.axi.bvalid, dut.axi.rvalid)
        async for _, _, wrote, read in sampled:
            if wrote or read:
                order.append("w" if wrote else "r")
            if len(order) == 20:
                break

    sim = Simulator(m)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.add_testbench(memory.run, background=True)
    sim.run()
    assert order == ["w", "r"] * 10


def test_an_answer_stands_until_it_is_taken():
    m = Module()
    m.submodules.dut = dut = LiteResponder()

    async def bench(ctx):
        ctx.set(dut.axi.araddr, STATUS)
        ctx.set(dut.axi.arvalid, 1)
        await ctx.tick().until(dut.axi.arready)
        await ctx.tick().until(dut.axi.rvalid)
        for _ in range(5):
            assert (ctx.get(dut.axi.rvalid), ctx.get(dut.axi.arready)) == (1, 0)
            await ctx.tick()

    sim = Simulator(m)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.run()
