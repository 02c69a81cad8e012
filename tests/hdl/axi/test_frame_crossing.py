"""FrameCrossing: between clocks of every ratio, through overflows and resets of either side."""

import random

import pytest
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.sim import Simulator

from rocetap_hdl.axi.frame_crossing import FrameCrossing
from support.axi_frames import Seen, frames_of
from support.classify import Arrival
from support.parser_bench import beats as frame_beats

BUS = 8
LOST = Seen(b"", lost=True)


def cross(drive, *, i_period, o_period=10e-9, phase=0.0, depth=32):
    """Runs ``drive(ctx, dut, resets)`` in the port's clock and gives the frames of the other side.

    ``resets``: the reset signals of port and core.
    """
    m = Module()
    m.domains.port = port = ClockDomain()
    m.domains.sync = sync = ClockDomain()
    m.submodules.dut = dut = FrameCrossing(BUS, i_domain="port", depth=depth)
    resets = {"port": Signal(), "core": Signal()}
    m.d.comb += [port.rst.eq(resets["port"]), sync.rst.eq(resets["core"])]
    sim = Simulator(m)
    sim.add_clock(i_period, phase=phase, domain="port")
    sim.add_clock(o_period, domain="sync")
    seen = []

    async def watch(ctx):
        async for _, reset, valid, beat in ctx.tick().sample(dut.o.valid, dut.o.payload):
            if valid and not reset:
                seen.append(beat)

    async def bench(ctx):
        await drive(ctx, dut, resets)
        for _ in range(depth):
            await ctx.tick()

    sim.add_testbench(bench)
    sim.add_testbench(watch, background=True)
    sim.run()
    return frames_of(seen, BUS)


async def settle(ctx, clocks=24):
    """Until a reset has passed to both sides."""
    await ctx.tick("port").repeat(clocks)
    await ctx.tick("sync").repeat(clocks)


async def send(ctx, dut, frames, *, gap=0.0, rng=None):
    for octets in frames:
        for beat in frame_beats(Arrival(octets), BUS):
            while gap and rng.random() < gap:
                ctx.set(dut.i.valid, 0)
                await ctx.tick("port")
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.payload, beat)
            await ctx.tick("port")
    ctx.set(dut.i.valid, 0)


@pytest.mark.parametrize(("i_period", "phase"), [
    (10e-9, 0.0), (10e-9, 3e-9), (10.07e-9, 1e-9), (17.3e-9, 2e-9), (33e-9, 0.0)])
@pytest.mark.parametrize("gap", [0.0, 0.3])
def test_a_core_that_is_not_slower_loses_nothing(i_period, phase, gap):
    rng = random.Random(f"crossing {i_period} {phase} {gap}")
    frames = [rng.randbytes(rng.randrange(1, 90)) for _ in range(80)]

    async def drive(ctx, dut, resets):
        await settle(ctx)
        await send(ctx, dut, frames, gap=gap, rng=rng)

    assert cross(drive, i_period=i_period, phase=phase) == [LOST, *map(Seen, frames)]


@pytest.mark.parametrize("i_period", [3.1e-9, 4.9e-9, 9e-9])
@pytest.mark.parametrize("size", [8, 60, 200])
def test_what_a_slower_core_loses_is_lost_in_its_place(i_period, size):
    frames = [number.to_bytes(2, "big") * (size // 2)
              for number in range(12_000 // (size + 20))]

    async def drive(ctx, dut, resets):
        await settle(ctx)
        await send(ctx, dut, frames)
        await settle(ctx, 200)
        await send(ctx, dut, [b"tail"])

    first, *seen, tail = cross(drive, i_period=i_period, depth=8)
    assert (first, tail) == (LOST, Seen(b"tail"))
    before = -1
    gaps = unfinished = 0
    for at, frame in enumerate(seen):
        if frame.octets is None:
            assert seen[at + 1] == LOST
            unfinished += 1
        elif frame == LOST:
            gaps += 1
            before = None
        else:
            number = int.from_bytes(frame.octets[:2], "big")
            assert frame == Seen(frames[number])
            assert before is None or number == before + 1
            before = number
    assert gaps > 1
    assert unfinished > 0 or size < 200
    assert sum(frame not in (LOST, Seen(None)) for frame in seen) < len(frames)


@pytest.mark.parametrize("i_period", [4e-9, 10.3e-9, 27e-9])
def test_a_reset_of_the_port_loses_frames(i_period):
    frames = [bytes([number]) * 50 for number in range(6)]

    async def drive(ctx, dut, resets):
        await settle(ctx)
        await send(ctx, dut, frames[:2])
        await settle(ctx)
        for beat in list(frame_beats(Arrival(frames[2]), BUS))[:3]:
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.payload, beat)
            await ctx.tick("port")
        ctx.set(dut.i.valid, 0)
        await settle(ctx)
        ctx.set(resets["port"], 1)
        await ctx.tick("port")
        ctx.set(resets["port"], 0)
        await settle(ctx)
        await send(ctx, dut, frames[3:], gap=0.8, rng=random.Random(3))

    assert cross(drive, i_period=i_period) == [
        LOST, Seen(frames[0]), Seen(frames[1]), Seen(None), LOST, *map(Seen, frames[3:])]


@pytest.mark.parametrize("beats_before", range(1, 7))
def test_a_reset_of_the_core_starts_with_a_whole_frame(beats_before):
    frames = [bytes([number]) * 50 for number in range(3)]

    async def drive(ctx, dut, resets):
        await settle(ctx)
        for beat in list(frame_beats(Arrival(frames[0]), BUS))[:beats_before]:
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.payload, beat)
            await ctx.tick("port")
        ctx.set(dut.i.valid, 0)
        await settle(ctx)
        ctx.set(resets["core"], 1)
        await ctx.tick("port").repeat(24)
        ctx.set(resets["core"], 0)
        for beat in list(frame_beats(Arrival(frames[0]), BUS))[beats_before:]:
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.payload, beat)
            await ctx.tick("port")
        await send(ctx, dut, frames[1:])

    assert cross(drive, i_period=9.7e-9, o_period=9.1e-9) == [
        LOST, Seen(None), *map(Seen, frames[1:])]
