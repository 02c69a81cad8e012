"""The receiving MAC: octets of GMII in, frames out."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import frame_stream
from .signals import gmii

__all__ = ["PREAMBLE", "SFD", "GmiiReceive"]

PREAMBLE = 0x55
SFD = 0xD5
"""Preamble and start frame delimiter (IEEE 802.3 3.2.1, 3.2.2), first bit least significant."""


class GmiiReceive(wiring.Component):
    """Frames from the octet behind the SFD to the FCS inclusive.

    A frame begins at its SFD, however many octets of preamble there are before it, none at all
    too. It ends where ``valid`` falls. One clock of gap is enough: this MAC needs no more. A frame
    in which ``error`` was up, from its preamble on, ends with ``error``; between frames it means
    nothing. What begins and never comes to an SFD, or ends right behind it, is one bad frame of one
    octet: it was something on the line. Length and FCS are the parser's to judge.

    After a reset the MAC is blind up to the first gap. An octet leaves `LATENCY` clocks after it
    came, the last one with the gap.
    """

    LATENCY = 2

    i: In(gmii())
    o: Out(frame_stream(1))

    def elaborate(self, platform):
        m = Module()
        i, out = self.i, self.o.payload
        held, first, bad = Signal(8), Signal(), Signal()
        m.d.sync += [self.o.valid.eq(0), out.end.eq(0)]

        def give(*, last, error=0, starts=first):
            m.d.sync += [
                self.o.valid.eq(1), out.data.eq(held), out.first.eq(starts), out.last.eq(last),
                out.error.eq(error), first.eq(0),
            ]

        def begin():
            m.d.sync += bad.eq(bad | i.error)
            with m.If(i.data == SFD):
                m.d.sync += first.eq(1)
                m.next = "FIRST"
            with m.Else():
                m.next = "PREAMBLE"

        with m.If(i.enable):
            with m.FSM():
                with m.State("BLIND"):
                    with m.If(~i.valid):
                        m.next = "IDLE"
                with m.State("IDLE"):
                    m.d.sync += bad.eq(0)
                    with m.If(i.valid):
                        begin()
                        m.d.sync += bad.eq(i.error)
                with m.State("PREAMBLE"):
                    with m.If(i.valid):
                        begin()
                    with m.Else():
                        give(last=1, error=1, starts=1)
                        m.next = "IDLE"
                with m.State("FIRST"):
                    m.d.sync += [held.eq(i.data), bad.eq(bad | i.error)]
                    with m.If(i.valid):
                        m.next = "DATA"
                    with m.Else():
                        give(last=1, error=1, starts=1)
                        m.next = "IDLE"
                with m.State("DATA"):
                    m.d.sync += held.eq(i.data)
                    with m.If(i.valid):
                        give(last=0)
                        m.d.sync += bad.eq(bad | i.error)
                    with m.Else():
                        give(last=1, error=bad)
                        m.next = "IDLE"
        return m
