"""A gate in a frame stream: whole frames pass or nothing does."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import frame_stream

__all__ = ["FrameGate"]


class FrameGate(wiring.Component):
    """Passes frames while ``open`` is up, `LATENCY` clock later.

    What the gate keeps from the probe is a gap in the capture, which one ``lost`` beat says. With
    ``announces`` it comes in the clock after ``open`` has fallen, whether there were frames or not:
    for a link that went down, on which nobody knows what was lost. Without, it comes when ``open``
    has risen again, and only if a beat was kept back meanwhile.

    A frame that the gate closes on is left without an end; one that it opens on is not passed, and
    says that something was kept back. ``lost`` beats pass like frames of one beat. After a reset a
    gate that announces waits for a frame to begin; the other one passes what comes, be it the rest
    of a frame.
    """

    LATENCY = 1

    def __init__(self, bus_bytes, *, announces):
        self._bus_bytes = bus_bytes
        self._announces = announces
        super().__init__({
            "i": In(frame_stream(bus_bytes)),
            "open": In(1),
            "o": Out(frame_stream(bus_bytes)),
        })

    def elaborate(self, platform):
        m = Module()
        beat = self.i.p
        lost = self.o.payload.shape().const({"first": 1, "last": 1, "lost": 1})
        was_open, inside, owed = Signal(), Signal(), Signal()
        fresh = Signal(init=not self._announces)
        m.d.sync += [was_open.eq(self.open), self.o.valid.eq(0), self.o.payload.eq(beat)]

        passes = self.open & ~owed & (beat.first | inside | fresh)
        with m.If(self.i.valid):
            m.d.sync += [self.o.valid.eq(passes), inside.eq(passes & ~beat.last)]
        with m.If(~self.open | (self.i.valid & (beat.first | beat.last))):
            m.d.sync += fresh.eq(0)
        with m.If(~self.open):
            m.d.sync += inside.eq(0)
            if not self._announces:
                with m.If(self.i.valid | inside):
                    m.d.sync += owed.eq(1)

        if self._announces:
            m.d.comb += owed.eq(was_open & ~self.open)
        give = owed if self._announces else owed & self.open
        with m.If(give):
            m.d.sync += [self.o.valid.eq(1), self.o.payload.eq(lost), inside.eq(0)]
            if not self._announces:
                # A beat that meets it is lost with it.
                m.d.sync += owed.eq(0)
        return m
