"""Frames from a port's clock to the core's."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import frame_beat, frame_stream
from .async_queue import AsyncQueue

__all__ = ["FrameCrossing"]


class FrameCrossing(wiring.Component):
    """A queue of ``depth`` beats from clock domain ``i_domain`` to ``sync``.

    ``o`` gives a beat in every clock that finds one. A core clock that is not slower than the
    port's never lets it fill. A frame that finds no room for one of its beats is lost, and those
    that come until half of the queue is free: one ``lost`` beat stands in their place. A frame that
    had begun is left without an end before it.

    A reset of ``i_domain`` is a gap too, and gives a ``lost`` beat, the first one at power-up. A
    reset of ``sync`` drops what is in the queue and what comes while it lasts; what comes out after
    it begins with a frame's first beat.
    """

    def __init__(self, bus_bytes, *, i_domain, depth=32):
        self._bus_bytes = bus_bytes
        self._i_domain = i_domain
        self._queue = AsyncQueue(frame_beat(bus_bytes).size, depth=depth, i_domain=i_domain)
        super().__init__({
            "i": In(frame_stream(bus_bytes)),
            "o": Out(frame_stream(bus_bytes)),
        })

    def elaborate(self, platform):
        m = Module()
        layout = frame_beat(self._bus_bytes)
        m.submodules.queue = queue = self._queue
        lost = layout.const({"first": 1, "last": 1, "lost": 1}).as_value()

        # Port side. An owed `lost` beat goes first; a frame that meets it is lost too.
        owed, dropping = Signal(init=1), Signal()
        taken = self.i.valid & ~owed & (self.i.p.first | ~dropping)
        m.d.comb += [
            queue.i_data.eq(Mux(owed, lost, Value.cast(self.i.payload))),
            queue.i_valid.eq((owed & queue.i_roomy) | taken),
        ]
        with m.If(owed & queue.i_roomy & queue.i_ready):
            m.d[self._i_domain] += owed.eq(0)
        with m.If(taken & ~queue.i_ready):
            m.d[self._i_domain] += owed.eq(1)
        with m.If(self.i.valid):
            m.d[self._i_domain] += dropping.eq(~(taken & queue.i_ready))

        # Core side.
        beat, blind = Signal(layout), Signal(init=1)
        seen = queue.o_valid & (beat.first | ~blind)
        m.d.comb += [Value.cast(beat).eq(queue.o_data), queue.o_ready.eq(1)]
        m.d.sync += [self.o.valid.eq(seen), self.o.payload.eq(beat)]
        with m.If(seen):
            m.d.sync += blind.eq(0)
        return m
