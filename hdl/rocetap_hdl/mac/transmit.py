"""The transmitting MAC: a queue of octets in, GMII out, and word of what was emitted."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layouts import frame_stream
from .receive import PREAMBLE, SFD
from .signals import FORWARDED, gmii

__all__ = ["GAPS", "PREAMBLE_OCTETS", "GmiiTransmit"]

PREAMBLE_OCTETS = 7
"""Before the SFD (IEEE 802.3 3.2.1)."""

GAPS = ((0, 12), (16, 8), (256, 5))
"""(octets waiting, from which on; octets of gap at least). 12 is the standard's (IEEE 802.3 4.4.2);
a queue that grows, for its frames came with less or by a faster clock, is drained with the 8 that
any receiver must take, and at last with 5."""


class GmiiTransmit(wiring.Component):
    """Emits each frame of ``frames`` as it is, FCS and all, behind a preamble of 7 octets.

    ``level``: octets that wait, for the gap. ``up``: the link is; a frame that begins without is
    dropped, one that it leaves is cut. A frame with ``error`` is emitted with TX_ER in its last
    octet. One that the queue runs dry on, or that another begins in, is ended by one octet with
    TX_ER.

    ``sent``: every frame with at least one octet that was emitted, with its octets, in the clock
    after; ``error`` where it was cut or ended with TX_ER. Nothing that was dropped is in it.

    The first octet leaves `LATENCY` clocks after it is offered, when there is no gap to wait for.
    """

    LATENCY = 1 + PREAMBLE_OCTETS + 1

    frames: In(stream.Signature(FORWARDED))
    level: In(16)
    up: In(1)
    o: Out(gmii())
    sent: Out(frame_stream(1))

    def elaborate(self, platform):
        m = Module()
        head, o, sent = self.frames.p, self.o, self.sent.p
        offered, take = self.frames.valid, self.frames.ready

        gap_over, gap = Signal(), Signal(range(16), init=15)
        wanted = Signal(4)
        for least, octets in GAPS:
            with m.If(self.level >= least):
                m.d.comb += wanted.eq(octets)
        m.d.comb += gap_over.eq(gap >= wanted)

        at, first = Signal(range(PREAMBLE_OCTETS + 1)), Signal()
        m.d.comb += o.enable.eq(1)
        m.d.sync += [o.valid.eq(0), o.error.eq(0), o.data.eq(0), self.sent.valid.eq(0)]

        def emit(octet, *, error=0):
            m.d.sync += [o.valid.eq(1), o.error.eq(error), o.data.eq(octet)]

        def report(octet, *, last, error):
            m.d.sync += [self.sent.valid.eq(1), sent.data.eq(octet), sent.first.eq(first),
                         sent.last.eq(last), sent.error.eq(error), first.eq(0)]

        with m.FSM():
            with m.State("GAP"):
                m.d.sync += [gap.eq(Mux(gap.all(), gap, gap + 1)), at.eq(0), first.eq(1)]
                with m.If(offered & (~head.first | ~self.up)):
                    m.d.comb += take.eq(1)
                    with m.If(head.first & ~head.last):
                        m.next = "DROP"
                with m.Elif(offered & gap_over):
                    emit(PREAMBLE)
                    m.d.sync += at.eq(1)
                    m.next = "PREAMBLE"
            with m.State("DROP"):
                m.d.sync += gap.eq(Mux(gap.all(), gap, gap + 1))
                with m.If(offered):
                    m.d.comb += take.eq(~head.first)
                    with m.If(head.last | head.first):
                        m.next = "GAP"
            with m.State("PREAMBLE"):
                m.d.sync += [at.eq(at + 1), gap.eq(0)]
                emit(Mux(at == PREAMBLE_OCTETS, SFD, PREAMBLE))
                with m.If(at == PREAMBLE_OCTETS):
                    m.next = "DATA"
            with m.State("DATA"):
                with m.If(offered & (head.first == first) & self.up):
                    m.d.comb += take.eq(1)
                    emit(head.data, error=head.last & head.error)
                    report(head.data, last=head.last, error=head.last & head.error)
                    with m.If(head.last):
                        m.next = "GAP"
                with m.Else():
                    emit(0, error=1)
                    report(0, last=1, error=1)
                    m.next = "GAP"
        return m
