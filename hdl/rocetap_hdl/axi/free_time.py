"""A clock of its own for designs that have no time to give."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

__all__ = ["FreeTime"]

FRACTION_BITS = 32


class FreeTime(wiring.Component):
    """Nanoseconds since reset, counted from a clock of ``period`` ns (a Fraction, 1/8 to 1024),
    from ``start`` on.

    ``time`` moves in whole nanoseconds. The period is kept to 2^-32 ns, so counting adds an error
    of at most 2^-33 ns a clock to the clock's own: 0.1 parts in 10^9 at 322 MHz. Each addition is
    32 bits long at most, one clock behind the other; ``time`` is `LATENCY` clocks old.
    """

    LATENCY = 2

    def __init__(self, period, *, start=0):
        if not 1 / 8 <= period <= 1024:
            raise ValueError(f"period is {float(period)} ns, must be 0.125 to 1024 ns")
        self._step = round(period * (1 << FRACTION_BITS))
        self._start = start
        super().__init__({"time": Out(64, init=start)})

    def elaborate(self, platform):
        m = Module()
        whole, part = self._step >> FRACTION_BITS, self._step & ((1 << FRACTION_BITS) - 1)
        fraction, carry = Signal(FRACTION_BITS), Signal()
        step, low, low_carry = Signal(range(whole + 1)), Signal(
            32, init=self._start & 0xFFFF_FFFF), Signal()
        m.d.sync += [
            Cat(fraction, carry).eq(fraction + part),
            step.eq(whole),
            Cat(low, low_carry).eq(low + step + carry),
            self.time[:32].eq(low),
            self.time[32:].eq(self.time[32:] + low_carry),
        ]
        return m
