"""ReceivePort: from the flip-flops to the core's clock, with the link's state in between."""

import random

import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

from rocetap_hdl.mac.port import STEADY_CLOCKS, ReceivePort
from rocetap_hdl.mac.signals import Speed
from support.mac_bench import Received, gap, on_the_line, received

LOST = Received(b"", lost=True)
UP = {"link": 1, "speed": Speed.MBIT_1000, "full_duplex": 1}


class Bench:
    """A port, RXC of its own, and frames on the line."""

    def __init__(self, *, ppm=0, **options):
        m = Module()
        m.domains.sync = ClockDomain()
        m.domains.rx0 = ClockDomain(reset_less=True)
        m.submodules.dut = self.dut = ReceivePort("rx0", **{"gigabit_only": False, **options})
        self.sim = Simulator(m)
        self.sim.add_clock(8e-9, domain="sync")
        self.ppm = ppm
        self.idle = 0
        self.beats = []
        self.stats = {"lost": 0, "activity": 0}

    def run(self, story, *, rxc=8e-9):
        self.sim.add_clock(rxc * (1 - self.ppm * 1e-6), phase=1.7e-9, domain="rx0")

        async def drive(ctx):
            self.ctx = ctx
            await story(self)
            await ctx.tick().repeat(40)

        async def watch(ctx):
            dut = self.dut
            async for _, _, valid, beat, lost, activity in ctx.tick().sample(
                    dut.frames.valid, dut.frames.payload, dut.lost, dut.activity):
                if valid:
                    self.beats.append(beat)
                self.stats["lost"] += lost
                self.stats["activity"] += activity
        self.sim.add_testbench(drive)
        self.sim.add_testbench(watch, background=True)
        self.sim.run()
        frames = received(self.beats)
        assert self.stats["lost"] == frames.count(LOST)
        assert self.stats["activity"] == len(frames) - frames.count(LOST)
        return frames

    def state(self, **fields):
        self.ctx.set(self.dut.state, {**UP, **fields})

    async def send(self, line, *, nibbles=False):
        ctx, rx = self.ctx, self.dut.rx
        for octet in line:
            data = octet.data if octet.valid else self.idle * 0x11
            halves = [(data & 15,) * 2, (data >> 4,) * 2] if nibbles else [(data & 15, data >> 4)]
            for low, high in halves:
                ctx.set(rx.low, low)
                ctx.set(rx.high, high)
                ctx.set(rx.ctl_low, octet.valid)
                ctx.set(rx.ctl_high, octet.valid ^ octet.error)
                await ctx.tick("rx0")


@pytest.mark.parametrize("ppm", [-100, 0, 100])
@pytest.mark.parametrize("octets", [12, 5])
def test_line_rate_at_every_tolerance(ppm, octets):
    rng = random.Random(f"port {ppm} {octets}")
    frames = [rng.randbytes(64) for _ in range(15)] + [rng.randbytes(1518)]
    bench = Bench(ppm=ppm)

    async def story(bench):
        bench.state()
        await bench.send(gap(60))
        for frame in frames:
            await bench.send([*on_the_line(frame), *gap(octets)])
        await bench.send(gap(20))
    assert bench.run(story) == [LOST, *map(Received, frames)]


@pytest.mark.parametrize("speed", [Speed.MBIT_10, Speed.MBIT_100])
def test_slow_links(speed):
    bench = Bench()
    frames = [bytes(range(64)), b"\xd5" * 64]

    async def story(bench):
        bench.state(speed=speed)
        await bench.send(gap(30))
        for frame in frames:
            await bench.send([*on_the_line(frame), *gap(12)], nibbles=True)
        await bench.send(gap(10))
        assert not bench.ctx.get(bench.dut.unsupported)
        assert bench.ctx.get(bench.dut.usable)
    assert bench.run(story, rxc=40e-9) == [LOST, *map(Received, frames)]


@pytest.mark.parametrize(("fields", "usable"), [
    ({}, True), ({"speed": Speed.MBIT_100}, False), ({"speed": Speed.MBIT_10}, False),
    ({"full_duplex": 0}, False), ({"link": 0}, False)])
def test_gigabit_only(fields, usable):
    bench = Bench(gigabit_only=True)

    async def story(bench):
        bench.state(**fields)
        await bench.send(gap(40))
        await bench.send([*on_the_line(bytes(64)), *gap(20)])
        assert bench.ctx.get(bench.dut.usable) == usable
        assert bench.ctx.get(bench.dut.unsupported) == (not usable and fields.get("link", 1))
    assert bench.run(story) == ([LOST, Received(bytes(64))] if usable else [])


def test_a_link_that_falls_is_a_gap():
    bench = Bench()
    a, b, c = (bytes([n]) * 64 for n in range(3))

    async def story(bench):
        bench.state()
        await bench.send(gap(40))
        await bench.send([*on_the_line(a), *gap(30)])
        bench.state(link=0)
        await bench.send([*on_the_line(b), *gap(30)])
        bench.state()
        await bench.send(gap(10))
        await bench.send([*on_the_line(c), *gap(30)])
    assert bench.run(story) == [LOST, Received(a), LOST, Received(c)]


def test_a_clock_that_stops_with_the_link_is_a_gap_all_the_same():
    """RXC may stand still while there is no link: the core says so by its own clock."""
    bench = Bench()

    async def story(bench):
        bench.state()
        await bench.send([*gap(40), *on_the_line(bytes(64)), *gap(30)])
        bench.state(link=0)
        await bench.ctx.tick().repeat(30)
        assert bench.stats["lost"] == 2
    assert bench.run(story) == [LOST, Received(bytes(64)), LOST]


def test_in_band_status():
    bench = Bench(in_band=True, gigabit_only=True)
    seen = []

    async def story(bench):
        async def say(idle, clocks):
            bench.idle = idle
            await bench.send(gap(clocks))
            link = bench.dut.link
            seen.append((bench.ctx.get(link.link), bench.ctx.get(link.speed),
                         bench.ctx.get(link.full_duplex), bench.ctx.get(bench.dut.usable),
                         bench.ctx.get(bench.dut.unsupported)))
        await say(0b1101, STEADY_CLOCKS // 2)
        await say(0b1101, STEADY_CLOCKS)
        await bench.send([*on_the_line(bytes(64)), *gap(20)])
        await say(0b0000, 20)
        await say(0b1011, STEADY_CLOCKS + 40)
    assert bench.run(story) == [Received(bytes(64)), LOST]
    assert seen == [(0, 0, 0, 0, 0), (1, 2, 1, 1, 0), (0, 2, 1, 0, 0), (1, 1, 1, 0, 1)]
