"""A UART: 8 data bits, no parity, one stop bit."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["UartReceive", "UartTransmit", "bit_clocks"]

_MOST_ERROR = 0.015
"""What a bit's length may be off: half of what ten bits of two clocks can bear, a good half."""


def bit_clocks(clock_hz, baud):
    """Clocks of one bit; ValueError when no whole number comes near enough."""
    clocks = max(1, round(clock_hz / baud))
    error = abs(clock_hz / clocks / baud - 1)
    if clocks < 4 or error > _MOST_ERROR:
        raise ValueError(f"baud is {baud}, must be a quarter of {clock_hz} Hz at most and within "
                         f"{_MOST_ERROR:.1%} of a whole divisor of it")
    return clocks


class UartReceive(wiring.Component):
    """Octets of a line. ``clocks`` of a bit, 4 or more.

    Each bit is looked at in its middle. An octet whose stop bit is low is dropped with a strobe of
    ``stat_framing``; the line must then be high before another one begins. An octet that finds
    ``octets`` not ready is dropped too, with ``stat_overrun``: one waits.
    """

    def __init__(self, *, clocks):
        if clocks < 4:
            raise ValueError(f"clocks is {clocks}, must be 4 or more")
        self._clocks = clocks
        super().__init__({
            "line": In(1), "octets": Out(stream.Signature(8)),
            "stat_framing": Out(1), "stat_overrun": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        line = Signal(init=1)
        m.submodules.line_cdc = FFSynchronizer(self.line, line, init=1)
        ticks, bits, word = Signal(range(self._clocks)), Signal(range(10)), Signal(8)
        sample = ticks == 0
        m.d.sync += ticks.eq(Mux(sample, self._clocks - 1, ticks - 1))
        with m.If(self.octets.valid & self.octets.ready):
            m.d.sync += self.octets.valid.eq(0)

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [ticks.eq(self._clocks // 2 - 1), bits.eq(0)]
                with m.If(~line):
                    m.next = "START"
            with m.State("START"):
                with m.If(sample):
                    m.next = "DATA"
                    with m.If(line):    # a spike, no start bit
                        m.next = "IDLE"
            with m.State("DATA"):
                with m.If(sample):
                    m.d.sync += [word.eq(Cat(word[1:], line)), bits.eq(bits + 1)]
                    with m.If(bits == 7):
                        m.next = "STOP"
            with m.State("STOP"):
                with m.If(sample):
                    m.next = "IDLE"
                    with m.If(~line):
                        m.d.comb += self.stat_framing.eq(1)
                        m.next = "HIGH"
                    with m.Elif(self.octets.valid & ~self.octets.ready):
                        m.d.comb += self.stat_overrun.eq(1)
                    with m.Else():
                        m.d.sync += [self.octets.valid.eq(1), self.octets.payload.eq(word)]
            with m.State("HIGH"):
                with m.If(line):
                    m.next = "IDLE"
        return m


class UartTransmit(wiring.Component):
    """Octets to a line, back to back: ten bits of ``clocks`` each."""

    def __init__(self, *, clocks):
        if clocks < 4:
            raise ValueError(f"clocks is {clocks}, must be 4 or more")
        self._clocks = clocks
        super().__init__({"octets": In(stream.Signature(8)), "line": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        ticks, left, word = Signal(range(self._clocks)), Signal(range(11)), Signal(9)
        m.d.comb += self.octets.ready.eq(left == 0)
        with m.If(left == 0):
            m.d.sync += ticks.eq(self._clocks - 1)
            with m.If(self.octets.valid):
                m.d.sync += [word.eq(Cat(self.octets.payload, 1)), left.eq(10), self.line.eq(0)]
        with m.Elif(ticks == 0):
            m.d.sync += [ticks.eq(self._clocks - 1), left.eq(left - 1)]
            with m.If(left != 1):
                m.d.sync += [self.line.eq(word[0]), word.eq(Cat(word[1:], 1))]
        with m.Else():
            m.d.sync += ticks.eq(ticks - 1)
        return m
