"""From a stream that passes by to frames: the tap."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..layouts import frame_stream
from .pins import axi_stream_tap

__all__ = ["StreamTap"]


class StreamTap(wiring.Component):
    """Watches an AXI4-Stream and never holds it up. A beat counts where ``tvalid & tready``.

    Clean framing: every beat but the last has all octets kept, the last at least its first one and
    no hole. A frame that breaks this anywhere, or whose last beat has ``tuser``, ends with
    ``error``. After a reset the tap is blind up to the first ``tlast``: it may have woken in the
    middle of a frame, which nothing but an end can tell from a whole one.

    Latency is `LATENCY` clock; one beat a clock.
    """

    LATENCY = 1

    def __init__(self, bus_bytes):
        self._bus_bytes = bus_bytes
        super().__init__({
            "axis": In(axi_stream_tap(bus_bytes)),
            "frames": Out(frame_stream(bus_bytes)),
        })

    def elaborate(self, platform):
        m = Module()
        n = self._bus_bytes
        axis, out = self.axis, self.frames.payload

        # Contiguous from octet 0: no kept octet behind one that is not.
        keep = axis.tkeep
        hole = Signal()
        m.d.comb += hole.eq(
            ~keep[0] | (~keep[:-1] & keep[1:]).any() | (~axis.tlast & ~keep.all()))
        end = Signal.like(out.end)
        for lane in range(n):
            with m.If(keep[lane]):
                m.d.comb += end.eq(lane)

        beat = axis.tvalid & axis.tready
        blind, inside, broken = Signal(init=1), Signal(), Signal()
        m.d.sync += [
            self.frames.valid.eq(beat & ~blind),
            out.data.eq(axis.tdata),
            out.first.eq(~inside),
            out.last.eq(axis.tlast),
            out.end.eq(end),
            out.error.eq(axis.tlast & (axis.tuser | broken | hole)),
        ]
        with m.If(beat):
            m.d.sync += [
                inside.eq(~axis.tlast),
                broken.eq(~axis.tlast & (broken | hole)),
            ]
            with m.If(axis.tlast):
                m.d.sync += blind.eq(0)
        return m
