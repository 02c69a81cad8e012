"""ForwardQueue: what cannot wait into what must, and a frame cut where there is no room."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import connect

from rocetap_hdl.mac.forward import ForwardQueue
from rocetap_hdl.mac.transmit import GmiiTransmit
from support.mac_bench import frames_in
from support.refuses import refuses
from support.simulate import simulate


def beats_of(frame, *, error=False):
    for at, octet in enumerate(frame):
        last = at == len(frame) - 1
        yield {"data": octet, "first": at == 0, "last": last, "error": last and error}


async def offer(ctx, dut, beat):
    ctx.set(dut.i.valid, beat is not None)
    ctx.set(dut.i.payload, beat or {})
    await ctx.tick()


def test_octets_come_out_as_they_went_in():
    rng = random.Random("forward")
    frames = [rng.randbytes(rng.randrange(1, 40)) for _ in range(20)]
    dut = ForwardQueue(depth=64)

    async def drive(ctx):
        ctx.set(dut.o.ready, 1)
        for number, frame in enumerate(frames):
            for beat in beats_of(frame, error=number % 4 == 0):
                await offer(ctx, dut, beat)
        await offer(ctx, dut, None)
        await ctx.tick().repeat(4)
        assert ctx.get(dut.level) == 0
    [out] = simulate(dut, drive, dut.o)
    expected = [(beat["data"], beat["first"], beat["last"], beat["error"])
                for number, frame in enumerate(frames)
                for beat in beats_of(frame, error=number % 4 == 0)]
    assert [(o["data"], o["first"], o["last"], o["error"]) for o in out] == expected


def test_lost_beats_do_not_go_in():
    dut = ForwardQueue(depth=64)

    async def drive(ctx):
        ctx.set(dut.o.ready, 1)
        await offer(ctx, dut, {"first": 1, "last": 1, "lost": 1})
        await offer(ctx, dut, None)
        await ctx.tick().repeat(4)
    [out] = simulate(dut, drive, dut.o)
    assert out == []


def test_a_full_queue_cuts_frames_and_says_so():
    """Nothing leaves at first: the second frame finds no room for its end, the third none."""
    dut = ForwardQueue(depth=64)
    overflows = 0

    async def drive(ctx):
        nonlocal overflows
        for size in (40, 40, 10):
            for beat in beats_of(bytes(size)):
                ctx.set(dut.i.valid, 1)
                ctx.set(dut.i.payload, beat)
                overflows += ctx.get(dut.overflow)
                await ctx.tick()
        await offer(ctx, dut, None)
        assert ctx.get(dut.level) == 64
        ctx.set(dut.o.ready, 1)
        await ctx.tick().repeat(70)
        for beat in beats_of(b"next"):
            await offer(ctx, dut, beat)
        await offer(ctx, dut, None)
        await ctx.tick().repeat(10)
    [out] = simulate(dut, drive, dut.o)
    assert overflows == 2
    assert [(o["first"], o["last"]) for o in out[:40]] == [(at == 0, at == 39) for at in range(40)]
    assert [(o["first"], o["last"]) for o in out[40:64]] == [(at == 0, False) for at in range(24)]
    assert bytes(o["data"] for o in out[64:]) == b"next"


@pytest.mark.parametrize("gap", [12, 8, 5])
def test_line_rate_through_queue_and_transmitter(gap):
    """Minimum frames with their preambles at the gap given, for ever: no octet is dropped, and
    every frame goes out whole."""
    m = Module()
    m.submodules.queue = queue = ForwardQueue(depth=1024)
    m.submodules.mac = mac = GmiiTransmit()
    connect(m, queue.o, mac.frames)
    m.d.comb += [mac.level.eq(queue.level), mac.up.eq(1)]
    frames = [bytes([n]) * 64 for n in range(60)]
    line, most = [], 0

    async def drive(ctx):
        nonlocal most

        async def clock(beat):
            nonlocal most
            ctx.set(queue.i.valid, beat is not None)
            ctx.set(queue.i.payload, beat or {})
            assert not ctx.get(queue.overflow)
            most = max(most, ctx.get(queue.level))
            line.append((ctx.get(mac.o.valid), ctx.get(mac.o.error), ctx.get(mac.o.data)))
            await ctx.tick()
        for frame in frames:
            for beat in [*beats_of(frame), *[None] * (8 + gap)]:
                await clock(beat)
        for _ in range(400):
            await clock(None)
    simulate(m, drive)
    seen = frames_in(line)
    assert [(frame, error) for _, frame, _, error in seen] == [(frame, False) for frame in frames]
    assert most <= {12: 15, 8: 32, 5: 300}[gap]
    if gap == 12:
        assert {before for before, *_ in seen[1:]} == {12}


def test_refuses():
    refuses("depth is 32, must be 64 or more", lambda: ForwardQueue(depth=32))
