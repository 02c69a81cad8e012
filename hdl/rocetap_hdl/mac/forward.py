"""From a received frame to the other port's transmitter."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from ..layouts import frame_stream
from .signals import FORWARDED

__all__ = ["ForwardQueue"]


class ForwardQueue(wiring.Component):
    """A queue of ``depth`` octets between a stream that cannot wait and a transmitter that must.

    Frames go in as they come, their beginning long before their end: a frame is not held back for
    its FCS. ``lost`` beats do not go in. An octet that finds no room is dropped, and the rest of
    its frame with it: the transmitter sees a frame without an end and cuts it. ``overflow`` strobes
    once for each such frame.

    ``level``: octets that wait. Latency 2 clocks.
    """

    def __init__(self, *, depth=1024):
        if depth < 64:
            raise ValueError(f"depth is {depth}, must be 64 or more")
        self._depth = depth
        super().__init__({
            "i": In(frame_stream(1)),
            "o": Out(stream.Signature(FORWARDED)),
            "level": Out(16),
            "overflow": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=FORWARDED.size, depth=self._depth)
        beat = self.i.p
        octet = Signal(FORWARDED)
        dropping = Signal()
        offered = self.i.valid & ~beat.lost & (beat.first | ~dropping)
        m.d.comb += [
            octet.data.eq(beat.data), octet.first.eq(beat.first), octet.last.eq(beat.last),
            octet.error.eq(beat.error),
            fifo.w_data.eq(octet.as_value()), fifo.w_en.eq(offered),
            self.overflow.eq(offered & ~fifo.w_rdy),
            self.o.valid.eq(fifo.r_rdy), Value.cast(self.o.payload).eq(fifo.r_data),
            fifo.r_en.eq(self.o.ready),
            self.level.eq(fifo.level),
        ]
        with m.If(offered):
            m.d.sync += dropping.eq(~fifo.w_rdy)
        return m
