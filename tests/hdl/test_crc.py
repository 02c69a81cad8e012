"""Crc32 against zlib: every start and every end within a beat, sums back to back."""

import random
import zlib

import pytest

from rocetap_hdl.crc import INITIAL, RESIDUE, Crc32, advance
from support.simulate import simulate

WIDTHS = (1, 8, 64)


def with_crc(octets):
    return octets + zlib.crc32(octets).to_bytes(4, "little")


def beats(octets, leading, width, rng):
    """The covered octets behind `leading` others, in whole beats, junk outside of them."""
    end = leading + len(octets)
    line = rng.randbytes(leading) + octets
    line += rng.randbytes(-len(line) % width)
    for at in range(0, len(line), width):
        last = at + width >= end
        yield {
            "data": int.from_bytes(line[at:at + width], "little"),
            "first": at == 0, "leading": leading if at == 0 else rng.randrange(width),
            "last": last, "end": end - at - 1 if last else rng.randrange(width)}


def check(sums, width, *, gap=0.0, initial=INITIAL):
    """(octets, leading) of each sum -> what the component says of it, and after how many clocks."""
    dut = Crc32(width, initial=initial)
    rng = random.Random(f"crc {width} {gap}")

    async def drive(ctx):
        for octets, leading in sums:
            for beat in beats(octets, leading, width, rng):
                while rng.random() < gap:
                    ctx.set(dut.beats.valid, 0)
                    await ctx.tick()
                ctx.set(dut.beats.valid, 1)
                ctx.set(dut.beats.payload, beat)
                await ctx.tick()
        ctx.set(dut.beats.valid, 0)
        await ctx.tick().repeat(Crc32.LATENCY + 1)
    return simulate(dut, drive, dut.results)[0]


@pytest.mark.parametrize("gap", [0.0, 0.4])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_start_and_end(width, gap):
    rng = random.Random(f"starts {width}")
    sums, expected = [], []
    for leading in range(width):
        for count in {0, 1, 2, leading, width - 1, width, rng.randrange(3 * width)}:
            octets = with_crc(rng.randbytes(count))
            place, bit = rng.randrange(len(octets)), 1 << rng.randrange(8)
            wrong = octets[:place] + bytes([octets[place] ^ bit]) + octets[place + 1:]
            sums += [(octets, leading), (wrong, leading)]
            expected += [1, 0]
    assert check(sums, width, gap=gap) == expected


@pytest.mark.parametrize("width", WIDTHS)
def test_another_initial_register(width):
    """Octets that went before are no more than another start of the register."""
    before = b"before"
    initial = zlib.crc32(before) ^ 0xFFFFFFFF
    octets = b"and after"
    whole = octets + zlib.crc32(before + octets).to_bytes(4, "little")
    assert check([(whole, 0), (with_crc(octets), 0)], width, initial=initial) == [1, 0]


def test_latency():
    dut = Crc32(8)
    seen = []

    async def drive(ctx):
        for clock in range(20):
            ctx.set(dut.beats.valid, clock == 3)
            ctx.set(dut.beats.p.first, 1)
            ctx.set(dut.beats.p.last, 1)
            if ctx.get(dut.results.valid):
                seen.append(clock)
            await ctx.tick()
    simulate(dut, drive)
    assert seen == [3 + Crc32.LATENCY]


@pytest.mark.parametrize("octets", [b"", b"\0", b"123456789"])
def test_residue_is_that_of_any_octets(octets):
    register = zlib.crc32(with_crc(octets)) ^ 0xFFFFFFFF
    assert register == RESIDUE


@pytest.mark.parametrize("count", [0, 1, 5, 64])
def test_advance_is_zero_octets(count):
    assert advance(INITIAL, count) == zlib.crc32(bytes(count)) ^ 0xFFFFFFFF
