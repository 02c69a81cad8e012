"""PhyMonitor: reset, search, set-up, and what the registers say of the link."""

import pytest

from rocetap_hdl.mac.phy import Phy, PhyMonitor
from rocetap_hdl.mac.signals import Speed
from support.mdio_phy import MdioPhy
from support.simulate import simulate

HALF, RESET, SETTLE, POLL = 2, 20, 30, 10
LINK = 1 << 2
ACCESS = 64 * 2 * HALF + 4


class Bus:
    """A monitor and PHYs on one bus. ``story(bus)`` runs beside them."""

    def __init__(self, phys, here, *, slow=True):
        self.dut = PhyMonitor(phys, slow=slow, reset_clocks=RESET, settle_clocks=SETTLE,
                              poll_clocks=POLL, half=HALF)
        self.here = here
        self.clock = 0
        self.first_access = self.reset_fell = None

    def run(self, story):
        async def drive(ctx):
            self.ctx = ctx
            await story(self)
        simulate(self.dut, drive)
        assert all(phy.bad_frames == 0 for phy in self.here)

    async def tick(self, clocks=1):
        ctx, dut = self.ctx, self.dut
        for _ in range(clocks):
            ctx.set(dut.pins.i, min([1, *(phy.line for phy in self.here)]))
            before = ctx.get(dut.pins.mdc)
            await ctx.tick()
            self.clock += 1
            if not ctx.get(dut.reset) and self.reset_fell is None:
                self.reset_fell = self.clock
            if ctx.get(dut.pins.mdc) and not before:
                self.first_access = self.first_access or self.clock
                line = ctx.get(dut.pins.o) if ctx.get(dut.pins.oe) else None
                for phy in self.here:
                    phy.rising(line)

    async def accesses(self, count):
        await self.tick(count * ACCESS + 2 * POLL)

    def state(self, index=0):
        state = self.dut.states[index]
        return {name: self.ctx.get(value) for name, value in (
            ("found", state.found), ("link", state.link.link), ("speed", state.link.speed),
            ("full", state.link.full_duplex))}


def phy(address, *, partner=0, gigabit=0, link=True):
    one = MdioPhy(address)
    one.registers.update({1: 0x7949 | (LINK if link else 0), 2: 0x0141, 5: partner, 10: gigabit})
    return one


def test_reset_then_settling_then_search_and_setup():
    there = phy(3)

    async def story(bus):
        await bus.tick(RESET)
        assert bus.ctx.get(bus.dut.reset)
        assert bus.first_access is None
        await bus.accesses(14)
        assert RESET <= bus.reset_fell <= RESET + 3
        assert bus.first_access >= RESET + SETTLE
        assert there.reads[0] == 2
        assert there.writes == [(22, 7), (4, 0x01E1), (9, 0x0200), (0, 0x1200)]
        assert bus.state()["found"] == 1
    Bus([Phy(writes=((22, 7),))], [there]).run(story)


def test_inline_advertises_gigabit_alone():
    there = phy(0)

    async def story(bus):
        await bus.accesses(10)
        assert there.writes == [(4, 0x0001), (9, 0x0200), (0, 0x1200)]
    Bus([Phy()], [there], slow=False).run(story)


RESULTS = {
    "1000 full": (0x45E1, 0x0800, (Speed.MBIT_1000, 1)),
    "1000 half only": (0x0001, 0x0400, (Speed.MBIT_10, 0)),
    "100 full": (0x01E1, 0, (Speed.MBIT_100, 1)),
    "100 half": (0x0081, 0, (Speed.MBIT_100, 0)),
    "10 full": (0x0041, 0, (Speed.MBIT_10, 1)),
    "10 half": (0x0021, 0, (Speed.MBIT_10, 0)),
    "100 half and 10 full": (0x00C1, 0, (Speed.MBIT_100, 0)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_the_best_of_both_ends(name):
    partner, gigabit, (speed, full) = RESULTS[name]

    async def story(bus):
        await bus.accesses(12)
        assert bus.state() == {"found": 1, "link": 1, "speed": speed, "full": full}
    Bus([Phy()], [phy(0, partner=partner, gigabit=gigabit)]).run(story)


def test_a_latched_fall_is_seen():
    """The link bit reads low once after a fall, however short it was."""
    there = phy(0, gigabit=0x0800)
    downs = []

    class Latched(type(there)):
        def on_read(self, register):
            value = self.registers[register]
            if register == 1 and downs:
                value &= ~LINK
                downs.clear()
            return value
    there.__class__ = Latched
    seen = []

    async def story(bus):
        await bus.accesses(12)
        assert bus.state()["link"] == 1
        downs.append(1)
        for _ in range(40):
            await bus.tick(ACCESS // 2)
            seen.append(bus.state()["link"])
    Bus([Phy()], [there]).run(story)
    assert 0 in seen
    assert seen[-1] == 1


def test_two_phys_on_one_bus():
    first, second = phy(0, gigabit=0x0800), phy(1, link=False)

    async def story(bus):
        await bus.accesses(24)
        assert bus.state(0) == {"found": 1, "link": 1, "speed": Speed.MBIT_1000, "full": 1}
        assert bus.state(1) == {"found": 1, "link": 0, "speed": Speed.MBIT_10, "full": 0}
        assert first.writes == second.writes
    Bus([Phy(address=0), Phy(address=1)], [first, second]).run(story)


def test_a_phy_that_is_gone_is_looked_for_and_set_up_again():
    there = phy(1, gigabit=0x0800)

    async def story(bus):
        await bus.accesses(12)
        assert bus.state()["link"] == 1
        bus.here.clear()
        await bus.accesses(8)
        assert bus.state() == {"found": 0, "link": 0, "speed": 0, "full": 0}
        there.writes.clear()
        there.power_up()
        bus.here.append(there)
        await bus.accesses(45)
        assert bus.state()["link"] == 1
        assert there.writes == [(4, 0x01E1), (9, 0x0200), (0, 0x1200)]
    Bus([Phy()], [there]).run(story)


def test_no_phy_at_all_leaves_the_link_down():
    async def story(bus):
        await bus.accesses(70)
        assert bus.state() == {"found": 0, "link": 0, "speed": 0, "full": 0}
    Bus([Phy()], []).run(story)
