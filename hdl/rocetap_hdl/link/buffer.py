"""Two places in a stream: what is on one side of them is in no path with the other side."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["StreamBuffer"]


class StreamBuffer(wiring.Component):
    """Passes a stream on, one item a clock, one clock later; ``valid``, ``payload`` and ``ready``
    are all registers.

    ``i.ready`` falls a clock after ``o`` was held up; the item that comes in that clock waits in
    the second place.
    """

    latency = 1

    def __init__(self, shape):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        waits = Signal()
        second = Signal.like(Value.cast(self.i.payload))
        out = Value.cast(self.o.payload)
        m.d.comb += self.i.ready.eq(~waits)
        with m.If(self.o.ready | ~self.o.valid):
            m.d.sync += [
                self.o.valid.eq(waits | self.i.valid), waits.eq(0),
                out.eq(Mux(waits, second, Value.cast(self.i.payload))),
            ]
        with m.Elif(~waits):
            m.d.sync += [waits.eq(self.i.valid), second.eq(Value.cast(self.i.payload))]
        return m
