"""Delay: every depth, one value a clock."""

import pytest
from amaranth.lib import data

from rocetap_hdl.delay import Delay
from support.refuses import refuses
from support.simulate import simulate


@pytest.mark.parametrize("clocks", [1, 2, 3, 4, 5, 10, 17])
def test_every_value_comes_again(clocks):
    dut = Delay(16, clocks)
    seen = []

    async def drive(ctx):
        for clock in range(4 * clocks):
            ctx.set(dut.i, 100 + clock)
            seen.append(ctx.get(dut.o))
            await ctx.tick()
    simulate(dut, drive)
    assert seen == [0] * clocks + [100 + clock for clock in range(3 * clocks)]


@pytest.mark.parametrize("clocks", [2, 4])
def test_fields_stay_fields(clocks):
    dut = Delay(data.StructLayout({"low": 3, "high": 5}), clocks)

    async def drive(ctx):
        ctx.set(dut.i, {"low": 5, "high": 17})
        await ctx.tick().repeat(clocks)
        assert (ctx.get(dut.o.low), ctx.get(dut.o.high)) == (5, 17)
    simulate(dut, drive)


def test_no_clock():
    refuses("delay is 0 clocks, must be 1 or more", lambda: Delay(8, 0))
