"""Start-up of PHYs and what they say of their links, over MDIO."""

from dataclasses import dataclass

from amaranth.hdl import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from .mdio import MdioMaster
from .signals import LINK_STATE, Speed, mdio_pins

__all__ = ["PHY_STATE", "Phy", "PhyMonitor"]

CONTROL, STATUS, IDENTIFIER = 0, 1, 2
ADVERTISEMENT, PARTNER, GIGABIT_CONTROL, GIGABIT_STATUS = 4, 5, 9, 10
"""Registers (IEEE 802.3 22.2.4, table 22-6; 28.2.4; 40.5.1.1)."""

_RESTART = 0x1200               # auto-negotiation enabled, and restarted (22.2.4.1)
_LINK_BIT = 2                   # link status, low until read once it fell (22.2.4.2.13)
_GIGABIT_FULL = 0x0200          # advertise 1000BASE-T full duplex, not half (40.5.1.1)
_PARTNER_GIGABIT_BIT = 11
_ALL_SLOW = 0x01E1              # IEEE 802.3, 10 and 100 Mbit/s, both duplexes (annex 28B)
_NO_SLOW = 0x0001
_NO_PHY = 0xFFFF                # what a bus without a PHY reads

PHY_STATE = data.StructLayout({"found": 1, "link": LINK_STATE})


@dataclass(frozen=True)
class Phy:
    """One PHY. ``address`` on its bus; None: the lowest that answers. ``writes``: (register, value)
    pairs after its reset, before it negotiates, in order."""

    address: int | None = None
    writes: tuple[tuple[int, int], ...] = ()


class PhyMonitor(wiring.Component):
    """Resets the PHYs of one bus, sets them up, and polls them for ever.

    ``reset`` is up for ``reset_clocks`` after this component's own reset; ``settle_clocks`` later
    the first access follows, ``poll_clocks`` lie between two rounds. ``slow``: whether 10 and 100
    Mbit/s are advertised beside 1000 full duplex, which always is. A PHY that does not answer is
    looked for in each round; when it does again it is set up again.

    ``states``: one for each PHY. A link that fell and came back between two polls is down for one
    round (the status bit is latched). Speed and duplex are the best that both ends have (28B.3); a
    partner that does not negotiate has what the PHY found out (28.2.3.1).
    """

    def __init__(self, phys, *, slow, reset_clocks, settle_clocks, poll_clocks, half):
        self._phys = tuple(phys)
        self._slow = slow
        self._clocks = (reset_clocks, settle_clocks, poll_clocks)
        self._half = half
        super().__init__({
            "pins": Out(mdio_pins()),
            "reset": Out(1, init=1),
            "states": Out(PHY_STATE).array(len(self._phys)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.mdio = mdio = MdioMaster(half=self._half)
        wiring.connect(m, mdio.pins, wiring.flipped(self.pins))
        reset_clocks, settle_clocks, poll_clocks = self._clocks
        wait = Signal(range(max(self._clocks) + 1))
        turn = Signal(range(len(self._phys)))
        address, asked = Signal(5), Signal()
        step = Signal(range(max(len(self._setup(phy)) for phy in self._phys) + 1))
        status, partner = Signal(), Signal(16)
        addresses = [Signal(5, name=f"address_{i}") for i in range(len(self._phys))]
        gave_up = address == 31

        def access(then, **fields):
            """Starts the access once; ``then`` is what follows when it is done."""
            m.d.comb += [getattr(mdio, name).eq(value) for name, value in fields.items()]
            m.d.comb += mdio.start.eq(~asked)
            m.d.sync += asked.eq(1)
            with m.If(mdio.done):
                m.d.sync += asked.eq(0)
                then()

        def each(do):
            with m.Switch(turn):
                for index, phy in enumerate(self._phys):
                    with m.Case(index):
                        do(index, phy)

        with m.FSM():
            with m.State("RESET"):
                m.d.sync += wait.eq(wait + 1)
                with m.If(wait == reset_clocks):
                    m.d.sync += [self.reset.eq(0), wait.eq(0)]
                    m.next = "SETTLE"
            with m.State("SETTLE"):
                m.d.sync += wait.eq(wait + 1)
                with m.If(wait == settle_clocks):
                    m.next = "TURN"
            with m.State("TURN"):
                m.d.sync += [wait.eq(0), step.eq(0)]

                def begin(index, phy):
                    m.d.sync += address.eq(
                        Mux(self.states[index].found, addresses[index], phy.address or 0))
                    m.next = "SEARCH"
                    with m.If(self.states[index].found):
                        m.next = "STATUS"

                each(begin)
            with m.State("SEARCH"):
                def found(index, phy):
                    with m.If(mdio.answered & (mdio.result != _NO_PHY)):
                        m.d.sync += addresses[index].eq(address)
                        m.next = "SETUP"
                    with m.Elif(gave_up if phy.address is None else 1):
                        m.next = "NEXT"
                    with m.Else():
                        m.d.sync += address.eq(address + 1)

                access(lambda: each(found), phy=address, register=IDENTIFIER)
            with m.State("SETUP"):
                def write(index, phy):
                    steps = self._setup(phy)
                    with m.Switch(step):
                        for number, (register, value) in enumerate(steps):
                            with m.Case(number):
                                m.d.comb += [mdio.register.eq(register), mdio.value.eq(value)]

                def written(index, phy):
                    m.d.sync += step.eq(step + 1)
                    with m.If(step == len(self._setup(phy)) - 1):
                        m.d.sync += self.states[index].found.eq(1)
                        m.next = "NEXT"

                each(write)
                access(lambda: each(written), phy=address, write=1)
            with m.State("STATUS"):
                def gone(index, phy):
                    m.d.sync += self.states[index].eq(0)

                def up():
                    m.d.sync += status.eq(mdio.result[_LINK_BIT])
                    m.next = "PARTNER"
                    with m.If(~mdio.answered | (mdio.result == _NO_PHY)):
                        each(gone)
                        m.next = "NEXT"

                access(up, phy=address, register=STATUS)
            with m.State("PARTNER"):
                def slow():
                    m.d.sync += partner.eq(mdio.result)
                    m.next = "GIGABIT"

                access(slow, phy=address, register=PARTNER)
            with m.State("GIGABIT"):
                def all_known():
                    each(lambda index, phy: self._resolve(
                        m, self.states[index].link, status, partner,
                        mdio.result[_PARTNER_GIGABIT_BIT]))
                    m.next = "NEXT"

                access(all_known, phy=address, register=GIGABIT_STATUS)
            with m.State("NEXT"):
                last = turn == len(self._phys) - 1
                m.d.sync += wait.eq(wait + 1)
                with m.If(~last | (wait == poll_clocks)):
                    m.d.sync += turn.eq(Mux(last, 0, turn + 1))
                    m.next = "TURN"
        return m

    def _setup(self, phy):
        return (*phy.writes, (ADVERTISEMENT, _ALL_SLOW if self._slow else _NO_SLOW),
                (GIGABIT_CONTROL, _GIGABIT_FULL), (CONTROL, _RESTART))

    @staticmethod
    def _resolve(m, state, link, partner, gigabit):
        """The highest of the common abilities (annex 28B.3)."""
        speed = Mux(gigabit, Speed.MBIT_1000,
                    Mux(partner[7:9].any(), Speed.MBIT_100, Speed.MBIT_10))
        full = gigabit | partner[8] | (partner[6] & ~partner[7])
        m.d.sync += [state.link.eq(link), state.speed.eq(speed), state.full_duplex.eq(full)]
