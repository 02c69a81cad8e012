"""The management interface: one access to a PHY's register at a time."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .signals import mdio_pins

__all__ = ["FRAME_BITS", "MdioMaster"]

FRAME_BITS = 64
"""Preamble 32, ST 2, OP 2, PHYAD 5, REGAD 5, TA 2, data 16 (IEEE 802.3 22.2.4.5)."""

_READ_TURN = 46
"""First bit that the PHY may drive in a read."""


class MdioMaster(wiring.Component):
    """A clause 22 station. MDC is the clock divided by ``2 * half``.

    ``start`` with ``write``, ``phy``, ``register`` and ``value`` begins an access, which takes
    ``FRAME_BITS * 2 * half`` clocks; ``done`` strobes at its end. ``result`` is then what was read,
    and ``answered`` whether a PHY pulled the turnaround low: where there is none it stays high.
    """

    def __init__(self, *, half):
        if half < 2:
            raise ValueError(f"half is {half} clocks, must be 2 or more")
        self._half = half
        super().__init__({
            "pins": Out(mdio_pins()),
            "start": In(1), "write": In(1), "phy": In(5), "register": In(5), "value": In(16),
            "busy": Out(1), "done": Out(1), "result": Out(16), "answered": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        pins = self.pins
        ticks, left = Signal(range(self._half)), Signal(range(FRAME_BITS + 1))
        word, write = Signal(FRAME_BITS), Signal()
        at = Signal(range(FRAME_BITS + 1))
        m.d.comb += [self.busy.eq(left != 0), at.eq(FRAME_BITS - left)]
        m.d.sync += self.done.eq(0)

        def bits(value, count):
            return [(value >> i) & 1 if isinstance(value, int) else value[i]
                    for i in reversed(range(count))]

        # Most significant bit first; bit 0 of `word` is the first on the line.
        head = [*([C(1)] * 32), C(0), C(1), ~self.write, self.write,
                *bits(self.phy, 5), *bits(self.register, 5), C(1), C(0), *bits(self.value, 16)]
        m.d.comb += [
            pins.o.eq(word[0]),
            pins.oe.eq(self.busy & (write | (at < _READ_TURN))),
        ]
        with m.If(~self.busy):
            m.d.sync += [ticks.eq(0), pins.mdc.eq(0)]
            with m.If(self.start):
                m.d.sync += [word.eq(Cat(head)), write.eq(self.write), left.eq(FRAME_BITS)]
        with m.Elif(ticks != self._half - 1):
            m.d.sync += ticks.eq(ticks + 1)
        with m.Else():
            m.d.sync += [ticks.eq(0), pins.mdc.eq(~pins.mdc)]
            # What a PHY drives is steady when MDC rises; what it takes changes when MDC falls.
            with m.If(~pins.mdc):
                m.d.sync += self.result.eq(Cat(pins.i, self.result))
                with m.If(at == _READ_TURN + 1):
                    m.d.sync += self.answered.eq(~pins.i)
            with m.Else():
                m.d.sync += [word.eq(word >> 1), left.eq(left - 1)]
                with m.If(left == 1):
                    m.d.sync += self.done.eq(1)
        return m
