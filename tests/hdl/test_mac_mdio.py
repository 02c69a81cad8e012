"""MdioMaster against a PHY that reads the bus as IEEE 802.3 22.2.4.5 has it."""

import random
from itertools import pairwise

import pytest

from rocetap_hdl.mac.mdio import FRAME_BITS, MdioMaster
from support.mdio_phy import MdioPhy
from support.refuses import refuses
from support.simulate import simulate

HALF = 3


def run(accesses, phys):
    """(result, answered) of each access (write, phy, register, value)."""
    dut, out, edges = MdioMaster(half=HALF), [], []

    async def drive(ctx):
        clock = 0

        async def tick():
            nonlocal clock
            ctx.set(dut.pins.i, min([1, *(phy.line for phy in phys)]))
            before = ctx.get(dut.pins.mdc)
            await ctx.tick()
            clock += 1
            if ctx.get(dut.pins.mdc) and not before:
                edges.append(clock)
                line = ctx.get(dut.pins.o) if ctx.get(dut.pins.oe) else None
                for phy in phys:
                    phy.rising(line)
        for write, phy, register, value in accesses:
            for name, given in (("write", write), ("phy", phy), ("register", register),
                                ("value", value), ("start", 1)):
                ctx.set(getattr(dut, name), given)
            begun = clock
            await tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.value, 0)
            while not ctx.get(dut.done):
                assert ctx.get(dut.busy)
                await tick()
            assert clock - begun == FRAME_BITS * 2 * HALF + 1
            out.append((ctx.get(dut.result), bool(ctx.get(dut.answered))))
            assert not ctx.get(dut.busy)
    simulate(dut, drive)
    assert all(b - a >= 2 * HALF for a, b in pairwise(edges))
    assert all(phy.bad_frames == 0 for phy in phys)
    return out


@pytest.mark.parametrize("seed", range(2))
def test_reads_and_writes(seed):
    rng = random.Random(f"mdio {seed}")
    phys = [MdioPhy(address) for address in (0, 7, 31)]
    words = {(phy.address, register): rng.getrandbits(16) for phy in phys for register in range(32)}
    for (address, register), value in words.items():
        next(phy for phy in phys if phy.address == address).registers[register] = value
    accesses, expected = [], []
    for _ in range(25):
        write, address = rng.randrange(2), rng.choice((0, 7, 31, 12))
        register, value = rng.randrange(32), rng.getrandbits(16)
        accesses.append((write, address, register, value))
        if write:
            expected.append(None)
            if address != 12:
                words[address, register] = value
        else:
            expected.append((words.get((address, register), 0xFFFF), address != 12))
    seen = run(accesses, phys)
    assert [one if want else None for one, want in zip(seen, expected, strict=True)] == expected
    for phy in phys:
        assert phy.registers == {r: words[phy.address, r] for r in range(32)}


def test_nobody_there():
    assert run([(0, 5, 2, 0)], []) == [(0xFFFF, False)]


def test_refuses():
    refuses("half is 1 clocks, must be 2 or more", lambda: MdioMaster(half=1))
