"""Lamps: what each LED says."""

from rocetap_hdl.mac.lamps import LAMPS, Lamps
from support.simulate import simulate

TICK = 4


def watch(settings, clocks=40 * TICK):
    """For each LED by name: how often it was on, in per cent, and the clock it first was."""
    dut, on, first = Lamps(tick_clocks=TICK), dict.fromkeys(LAMPS, 0), {}

    async def drive(ctx):
        for name, value in settings.items():
            if not callable(value):
                ctx.set(getattr(dut, name), value)
        for clock in range(clocks):
            for name, value in settings.items():
                if callable(value):
                    ctx.set(getattr(dut, name), value(clock))
            await ctx.tick()
            value = ctx.get(dut.o)
            for index, name in enumerate(LAMPS):
                if value >> index & 1:
                    on[name] += 1
                    first.setdefault(name, clock)
    simulate(dut, drive)
    return {name: round(100 * count / clocks) for name, count in on.items()}


QUIET = {"alive": 50, "host": 0, "link0": 0, "trouble0": 0, "link1": 0, "trouble1": 0, "lost": 0,
         "full": 0}


def near(seen, **expected):
    assert all(abs(seen[name] - value) <= 12 for name, value in {**QUIET, **expected}.items()), seen


def test_quiet():
    near(watch({"found": 3}))


def test_links():
    near(watch({"found": 3, "usable": 0b01}), link0=100)
    near(watch({"found": 3, "usable": 0b10}), link1=100)
    near(watch({"found": 3, "usable": 0b11, "activity": 0b10}), link0=100, link1=50)


def test_troubles():
    near(watch({"found": 0b10}), trouble0=100)
    near(watch({"found": 0b01}), trouble1=100)
    near(watch({"found": 3, "unsupported": 0b10}), trouble1=50)


def test_events_are_stretched():
    for name in ("host", "lost", "full"):
        once = watch({"found": 3, name: lambda clock: clock == 3}, clocks=10 * TICK)
        assert 10 <= once[name] <= 20, once
        near(watch({"found": 3, name: 1}), **{name: 100})
