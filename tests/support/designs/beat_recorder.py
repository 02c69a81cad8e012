"""A design with the probe's ports that sends every beat it sees over the link, with its time.

For tests of the simulated board itself. One record is ``RECORD_OCTETS``: time (8), port (1), then
the beat's payload as octets, least significant first. The octet 0 on the link holds records back,
any other lets them go. A beat on every port in one clock is recorded for each. When DEPTH records
wait and another comes, an assertion fails.
"""

from amaranth.hdl import Assert, Cat, Const, Format, Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rocetap_hdl.layouts import frame_beat, frame_stream

DEPTH = 2048


def record_octets(bus_bytes):
    """Octets of one record."""
    return 9 + -(-frame_beat(bus_bytes).size // 8)


class BeatRecorder(wiring.Component):
    def __init__(self, *, bus_bytes, ports):
        self.bus_bytes = bus_bytes
        super().__init__({
            "frames": In(frame_stream(bus_bytes)).array(ports),
            "time": In(64),
            "link_rx": In(stream.Signature(unsigned(8))),
            "link_tx": Out(stream.Signature(unsigned(8))),
            "snapshot_level": Out(16),
            "snapshot_room": Out(16),
        })

    def elaborate(self, platform):
        m = Module()
        octets = record_octets(self.bus_bytes)
        m.submodules.memory = memory = Memory(shape=unsigned(8 * octets), depth=DEPTH, init=[])
        read = memory.read_port(domain="comb")
        pointer_bits = DEPTH.bit_length()
        tail, head = Signal(pointer_bits), Signal(pointer_bits)
        level = Signal(pointer_bits)
        m.d.comb += level.eq(tail - head)
        m.d.comb += [self.snapshot_level.eq(level), self.snapshot_room.eq(DEPTH - level)]

        place = tail
        for number, frames in enumerate(self.frames):
            write = memory.write_port()
            m.d.comb += [
                write.en.eq(frames.valid), write.addr.eq(place),
                write.data.eq(Cat(self.time, Const(number, 8), frames.payload))]
            following = Signal(pointer_bits)
            m.d.comb += following.eq(place + frames.valid)
            place = following
        m.d.sync += tail.eq(place)
        with m.If((place - head)[:pointer_bits] > DEPTH):
            m.d.sync += Assert(0, Format("more than {} beats wait", Const(DEPTH, 16)))

        held, index = Signal(), Signal(range(octets))
        m.d.comb += self.link_rx.ready.eq(1)
        with m.If(self.link_rx.valid):
            m.d.sync += held.eq(self.link_rx.payload == 0)
        m.d.comb += [
            read.addr.eq(head),
            self.link_tx.payload.eq(read.data.word_select(index, 8)),
            self.link_tx.valid.eq((level != 0) & (~held | (index != 0)))]
        with m.If(self.link_tx.valid & self.link_tx.ready):
            m.d.sync += index.eq(index + 1)
            with m.If(index == octets - 1):
                m.d.sync += [index.eq(0), head.eq(head + 1)]
        return m
