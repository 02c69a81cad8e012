"""GmiiReceive: frames from their SFD on, whatever surrounds them."""

import random

import pytest

from rocetap_hdl.mac.receive import GmiiReceive
from support.frames import pad, roce, with_fcs
from support.mac_bench import GmiiOctet, Received, gap, on_the_line, received
from support.simulate import simulate

GOOD = with_fcs(pad(roce(psn=7)))


def run(line, *, enable=lambda clock: True, blind=0):
    dut = GmiiReceive()

    async def drive(ctx):
        clock = 0
        for octet in [*gap(blind or 1), *line, *gap(4)]:
            while not enable(clock):
                ctx.set(dut.i.enable, 0)
                await ctx.tick()
                clock += 1
            ctx.set(dut.i.enable, 1)
            ctx.set(dut.i.valid, octet.valid)
            ctx.set(dut.i.error, octet.error)
            ctx.set(dut.i.data, octet.data)
            await ctx.tick()
            clock += 1
    [beats] = simulate(dut, drive, dut.o)
    return received(beats)


@pytest.mark.parametrize("octets", [12, 5, 1])
@pytest.mark.parametrize("preamble", [7, 1, 0])
def test_gaps_and_preambles(octets, preamble):
    rng = random.Random(f"receive {octets} {preamble}")
    frames = [rng.randbytes(rng.choice((1, 2, 60, 64, 65, 150))) for _ in range(15)]
    line = [octet for frame in frames
            for octet in (*on_the_line(frame, preamble=preamble), *gap(octets))]
    assert run(line) == [Received(frame) for frame in frames]


def test_long_preambles_and_a_damaged_one():
    line = [*on_the_line(GOOD, preamble=40), *gap(),
            GmiiOctet(1, 0, 0x54), *on_the_line(GOOD, preamble=3), *gap()]
    assert run(line) == [Received(GOOD)] * 2


BAD = {  # what is on the line, and the frame it becomes; between two good ones
    "error in the middle": (on_the_line(GOOD, error_at=30), Received(GOOD, error=True)),
    "error in the first octet": (on_the_line(GOOD, error_at=0), Received(GOOD, error=True)),
    "error in the last octet": (on_the_line(GOOD, error_at=len(GOOD) - 1),
                                Received(GOOD, error=True)),
    "error in the SFD": (on_the_line(GOOD, error_at=-1), Received(GOOD, error=True)),
    "error in the preamble": (on_the_line(GOOD, error_at=-4), Received(GOOD, error=True)),
    "error between frames": (gap(9, error_at=4), None),
    "error right before the preamble": (gap(3, error_at=2), None),
    "error right behind the frame": (gap(3, error_at=0), None),
    "preamble alone": (on_the_line(b"", sfd=False), "one octet"),
    "SFD alone": (on_the_line(b"", preamble=0), "one octet"),
    "preamble and SFD": (on_the_line(b""), "one octet"),
    "one octet": (on_the_line(b"\x07"), Received(b"\x07")),
    "ten octets": (on_the_line(bytes(10)), Received(bytes(10))),
    "an SFD in the data": (on_the_line(b"\xd5" * 5), Received(b"\xd5" * 5)),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("octets", [12, 1])
def test_odd_things_on_the_line(name, octets):
    line, becomes = BAD[name]
    seen = run([*on_the_line(GOOD), *gap(octets), *line, *gap(octets), *on_the_line(GOOD)])
    assert (seen[0], seen[-1]) == (Received(GOOD), Received(GOOD))
    if becomes == "one octet":
        [odd] = seen[1:-1]
        assert (len(odd.octets), odd.error, odd.lost) == (1, True, False)
    else:
        assert seen[1:-1] == ([becomes] if becomes else [])


def test_blind_up_to_the_first_gap():
    dut = GmiiReceive()

    async def drive(ctx):
        ctx.set(dut.i.enable, 1)
        for octet in [*on_the_line(GOOD)[20:], *gap(1), *on_the_line(GOOD), *gap(3)]:
            ctx.set(dut.i.valid, octet.valid)
            ctx.set(dut.i.data, octet.data)
            await ctx.tick()
    [beats] = simulate(dut, drive, dut.o)
    assert received(beats) == [Received(GOOD)]


def test_clocks_without_enable_are_none():
    rng = random.Random("enable")
    frames = [rng.randbytes(64) for _ in range(5)]
    line = [octet for frame in frames for octet in (*on_the_line(frame), *gap(1))]
    assert run(line, enable=lambda clock: rng.random() < 0.4) == [Received(f) for f in frames]


def test_latency():
    dut = GmiiReceive()
    clocks = []

    async def drive(ctx):
        ctx.set(dut.i.enable, 1)
        for clock, octet in enumerate([*gap(1), *on_the_line(b"ab", preamble=0), *gap(4)]):
            ctx.set(dut.i.valid, octet.valid)
            ctx.set(dut.i.data, octet.data)
            if ctx.get(dut.o.valid):
                clocks.append((clock, ctx.get(dut.o.p.data)))
            await ctx.tick()
    simulate(dut, drive)
    # The octets came in clocks 2 and 3.
    assert clocks == [(2 + dut.LATENCY, ord("a")), (3 + dut.LATENCY, ord("b"))]
