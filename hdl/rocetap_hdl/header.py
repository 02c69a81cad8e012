"""The head of each frame in one register, beat by beat."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .layouts import frame_beat, frame_stream

__all__ = ["HEADER_OCTETS", "LENGTH_BITS", "HeaderCapture", "captured_beat", "octets"]

HEADER_OCTETS = 14 + 2 * 4 + 60 + 8 + 12
"""Ethernet, two tags, the longest IPv4 header, UDP, BTH: 102."""

LENGTH_BITS = 15
"""Octets are counted up to here; a longer frame has a count with the top bit set."""


def octets(field, start, count):
    """`count` octets of `field` from octet `start`, as one number in network order."""
    return Cat(field[8 * i:8 * i + 8] for i in reversed(range(start, start + count)))


def captured_beat(bus_bytes, head=HEADER_OCTETS):
    """A beat, and what is known of its frame with it.

    ``index`` numbers the beat from 0, saturating. ``octets``: the frame's first ``head`` octets,
    the first on the wire in bits 7:0; those that have not come yet are left from frames before.
    ``time`` is the arrival of the first beat.
    """
    return data.StructLayout({
        "beat": frame_beat(bus_bytes),
        "index": unsigned(LENGTH_BITS - (bus_bytes - 1).bit_length()),
        "octets": unsigned(8 * head),
        "time": unsigned(64),
    })


class HeaderCapture(wiring.Component):
    """Numbers the beats of a frame and collects its head, the first ``head`` octets.

    ``beats`` gives every beat `LATENCY` clocks after it came; ``time`` is sampled with the first.
    """

    LATENCY = 2

    def __init__(self, bus_bytes, *, head=HEADER_OCTETS):
        self._bus_bytes = bus_bytes
        self._head = head
        super().__init__({
            "frames": In(frame_stream(bus_bytes)),
            "time": In(64),
            "beats": Out(stream.Signature(captured_beat(bus_bytes, head), always_ready=True)),
        })

    def elaborate(self, platform):
        m = Module()
        n = self._bus_bytes
        out = self.beats.payload

        # Clock 1: the beat in a register, with its number.
        valid = Signal()
        beat = Signal.like(self.frames.payload)
        index = Signal.like(out.index)
        time = Signal(64)
        m.d.sync += [valid.eq(self.frames.valid), beat.eq(self.frames.payload)]
        with m.If(self.frames.valid):
            with m.If(self.frames.p.first):
                m.d.sync += [index.eq(0), time.eq(self.time)]
            with m.Elif(~index.all()):
                m.d.sync += index.eq(index + 1)

        # Clock 2: its octets in their places.
        m.d.sync += [
            self.beats.valid.eq(valid), out.beat.eq(beat), out.index.eq(index), out.time.eq(time)]
        for row in range(-(-self._head // n)):
            low, high = row * n, min(self._head, (row + 1) * n)
            with m.If(valid & (index == row)):
                m.d.sync += out.octets[8 * low:8 * high].eq(beat.data)
        return m
