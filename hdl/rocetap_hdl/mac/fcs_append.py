"""The frame check sequence of frames that have none."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.crc.catalog import CRC32_ETHERNET
from amaranth.lib.wiring import In, Out

from .signals import FORWARDED

__all__ = ["FcsAppend"]

FCS_OCTETS = 4


class FcsAppend(wiring.Component):
    """Gives each frame its FCS (IEEE 802.3 3.2.9), four octets behind its last one.

    With ``wrong`` in the clock of a frame's last octet, one bit of it is inverted. ``error`` goes
    to the last octet of the FCS. The clock after a frame's last octet takes nothing, nor do the
    four of its FCS; else an octet passes in each clock, with no clock of latency.
    """

    i: In(stream.Signature(FORWARDED))
    wrong: In(1)
    o: Out(stream.Signature(FORWARDED))

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = CRC32_ETHERNET(data_width=8).create()
        i, o = self.i, self.o
        left, rest, error, wrong = Signal(range(FCS_OCTETS + 1)), Signal(32), Signal(), Signal()
        loading = Signal()
        taken = i.valid & i.ready
        m.d.comb += [
            crc.start.eq(loading), crc.valid.eq(taken), crc.data.eq(i.p.data),
        ]
        m.d.sync += loading.eq(0)
        with m.If(left != 0):
            m.d.comb += [
                o.valid.eq(1), o.p.data.eq(rest[:8]), o.p.last.eq(left == 1),
                o.p.error.eq(error & (left == 1))]
            with m.If(o.ready):
                m.d.sync += [left.eq(left - 1), rest.eq(rest >> 8)]
        with m.Elif(loading):
            m.d.sync += [rest.eq(crc.crc ^ wrong), left.eq(FCS_OCTETS)]
        with m.Else():
            m.d.comb += [
                o.valid.eq(i.valid), i.ready.eq(o.ready),
                o.p.data.eq(i.p.data), o.p.first.eq(i.p.first)]
            with m.If(taken & i.p.last):
                m.d.sync += [loading.eq(1), error.eq(i.p.error), wrong.eq(self.wrong)]
        return m
