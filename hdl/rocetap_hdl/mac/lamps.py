"""LEDs that mean something."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LAMPS", "Lamps"]

LAMPS = ("alive", "host", "link0", "trouble0", "link1", "trouble1", "lost", "full")
"""What each LED says, in the order of a board's LEDs; a board with fewer has the first of them."""


class Lamps(wiring.Component):
    """One LED for each of `LAMPS`. A tick is about 1/16 s; events are stretched to 1 to 2.

    alive: blinks once a second while the core's clock runs. host: octets come from the host.
    linkP: the link of port P is up and captured, dark for a moment with each frame. troubleP: its
    PHY does not answer (steady), or its speed is not supported (blinks). lost: frames were lost on
    some port. full: the snapshot FIFO has dropped a record, or is more than half full.
    """

    def __init__(self, *, tick_clocks):
        self._tick_clocks = tick_clocks
        super().__init__({
            "host": In(1), "lost": In(1), "full": In(1),
            "usable": In(2), "activity": In(2), "found": In(2, init=0b11), "unsupported": In(2),
            "o": Out(len(LAMPS)),
        })

    def elaborate(self, platform):
        m = Module()
        clocks, ticks = Signal(range(self._tick_clocks)), Signal(4)
        tick = clocks == self._tick_clocks - 1
        m.d.sync += clocks.eq(Mux(tick, 0, clocks + 1))
        with m.If(tick):
            m.d.sync += ticks.eq(ticks + 1)

        def stretched(name, event):
            left = Signal(2, name=f"{name}_left")
            with m.If(event):
                m.d.sync += left.eq(2)
            with m.Elif(tick & (left != 0)):
                m.d.sync += left.eq(left - 1)
            return left != 0

        # A busy link flickers: dark in every other tick with frames.
        links = [self.usable[port] & ~(stretched(f"activity{port}", self.activity[port]) & ticks[0])
                 for port in range(2)]
        troubles = [~self.found[port] | (self.unsupported[port] & ticks[1]) for port in range(2)]
        m.d.sync += self.o.eq(Cat(
            ticks[3], stretched("host", self.host), links[0], troubles[0], links[1], troubles[1],
            stretched("lost", self.lost), stretched("full", self.full)))
        return m
