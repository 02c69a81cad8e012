"""The frame check sequence over whole frames (IEEE 802.3 3.2.9)."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .crc import Crc32
from .layouts import frame_stream

__all__ = ["FrameCheck"]


class FrameCheck(wiring.Component):
    """Says of each frame whether its last four octets are its FCS.

    ``results`` is valid `LATENCY` clocks after each frame's last beat, one a frame, in order. What
    it says of a sliced frame or of a ``lost`` beat means nothing.
    """

    LATENCY = Crc32.LATENCY

    def __init__(self, bus_bytes):
        self._bus_bytes = bus_bytes
        super().__init__({
            "frames": In(frame_stream(bus_bytes)),
            "results": Out(stream.Signature(1, always_ready=True)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = Crc32(self._bus_bytes)
        m.d.comb += [
            crc.beats.valid.eq(self.frames.valid),
            crc.beats.p.data.eq(self.frames.p.data),
            crc.beats.p.first.eq(self.frames.p.first),
            crc.beats.p.last.eq(self.frames.p.last),
            crc.beats.p.end.eq(self.frames.p.end),
        ]
        connect(m, crc.results, flipped(self.results))
        return m
