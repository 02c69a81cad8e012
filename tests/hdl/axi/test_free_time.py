"""FreeTime: nanoseconds by exact arithmetic, through every carry."""

from fractions import Fraction

import pytest

from rocetap_hdl.axi.free_time import FreeTime
from support.refuses import refuses
from support.simulate import simulate


@pytest.mark.parametrize("start", [0, (1 << 32) - 1000, (1 << 63) - 2])
@pytest.mark.parametrize("mhz", ["322.265625", "156.25", "125", "250", "1000", "999.9", "3000"])
def test_time_is_the_clock_times_its_period(mhz, start):
    period = Fraction(1000) / Fraction(mhz)
    step = Fraction(round(period * 2**32), 2**32)
    assert abs(step - period) <= Fraction(1, 2**33)
    dut = FreeTime(period, start=start)

    async def drive(ctx):
        for clock in range(1500):
            assert ctx.get(dut.time) == start + int(max(0, clock - FreeTime.LATENCY) * step)
            await ctx.tick()
    simulate(dut, drive)


@pytest.mark.parametrize(("period", "shown"), [(Fraction(1, 10), "0.1"), (1025, "1025.0")])
def test_period_that_is_not_made(period, shown):
    refuses(f"period is {shown} ns, must be 0.125 to 1024 ns", lambda: FreeTime(period))
