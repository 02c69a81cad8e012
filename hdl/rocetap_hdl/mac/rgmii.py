"""RGMII behind its DDR flip-flops to GMII and back (RGMII 2.0)."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .receive import SFD
from .signals import LINK_STATE, gmii, rgmii_rx, rgmii_tx

__all__ = ["RgmiiReceive", "RgmiiTransmit"]


class RgmiiReceive(wiring.Component):
    """Octets of received frames, in the clock of RXC. `LATENCY` clocks.

    At 1000 Mbit/s there is an octet in every clock. With ``cfg_nibbles``, 100 and 10 Mbit/s, RXC is
    25 or 2.5 MHz and a clock carries a nibble, the low one of an octet first (IEEE 802.3 22.2.3):
    the SFD says where an octet begins, and what precedes it comes as octets of preamble. A frame
    that ends in half an octet gets one more octet with ``error``.

    ``status``: what the PHY says in the last clock between frames, where it says anything.
    """

    LATENCY = 2

    rx: In(rgmii_rx())
    cfg_nibbles: In(1)
    o: Out(gmii())
    status: Out(LINK_STATE)

    def elaborate(self, platform):
        m = Module()
        valid, error = Signal(), Signal()
        low, high = Signal(4), Signal(4)
        m.d.sync += [
            valid.eq(self.rx.ctl_low), error.eq(self.rx.ctl_low ^ self.rx.ctl_high),
            low.eq(self.rx.low), high.eq(self.rx.high),
        ]
        with m.If(~valid & ~error):
            m.d.sync += Value.cast(self.status).eq(low)

        aligned, half = Signal(), Signal()
        before, error_before = Signal(4), Signal()
        octet = Cat(before, low)
        m.d.sync += [before.eq(low), error_before.eq(error)]
        with m.If(~self.cfg_nibbles):
            m.d.sync += [
                self.o.enable.eq(1), self.o.valid.eq(valid), self.o.error.eq(error),
                self.o.data.eq(Cat(low, high)), aligned.eq(0), half.eq(0),
            ]
        with m.Elif(valid):
            m.d.sync += [
                self.o.valid.eq(1), self.o.enable.eq(~aligned | half),
                self.o.data.eq(octet), self.o.error.eq(error | (aligned & error_before)),
            ]
            with m.If(aligned):
                m.d.sync += half.eq(~half)
            with m.Elif(octet == SFD):
                m.d.sync += aligned.eq(1)
        with m.Else():
            cut = aligned & half
            m.d.sync += [self.o.enable.eq(1), self.o.valid.eq(cut), self.o.error.eq(cut | error),
                         aligned.eq(0), half.eq(0)]
        return m


class RgmiiTransmit(wiring.Component):
    """Octets at 1000 Mbit/s, one a clock, to the DDR flip-flops. `LATENCY` clock."""

    LATENCY = 1

    i: In(gmii())
    tx: Out(rgmii_tx())

    def elaborate(self, platform):
        m = Module()
        m.d.sync += [
            self.tx.low.eq(self.i.data[:4]), self.tx.high.eq(self.i.data[4:]),
            self.tx.ctl_low.eq(self.i.valid), self.tx.ctl_high.eq(self.i.valid ^ self.i.error),
        ]
        return m
