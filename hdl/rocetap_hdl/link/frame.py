"""The CRC-32 at the end of each frame: appended on the way out, checked on the way in."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rocetap.spec.wire import MAX_MESSAGE_OCTETS

from .octets import CRC_OCTETS, message_stream, packet_stream, raw_frame_stream

__all__ = ["FrameChecker", "FrameSealer"]


class FrameSealer(wiring.Component):
    """Appends the CRC to each packet, least significant octet first.

    Throughput: one octet a clock, ``CRC_OCTETS`` clocks without input a packet. Latency: none, the
    packet's octets pass through combinationally.
    """

    i: In(packet_stream())
    o: Out(packet_stream())

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = CRC32_ISO_HDLC().create()

        index = Signal(range(CRC_OCTETS))
        with m.FSM():
            with m.State("PACKET"):
                m.d.comb += [
                    self.o.payload.data.eq(self.i.payload.data),
                    self.o.valid.eq(self.i.valid),
                    self.i.ready.eq(self.o.ready),
                    crc.data.eq(self.i.payload.data),
                    crc.valid.eq(self.i.valid & self.o.ready),
                ]
                with m.If(self.i.valid & self.o.ready & self.i.payload.last):
                    m.next = "CRC"
            with m.State("CRC"):
                m.d.comb += [
                    self.o.payload.data.eq(crc.crc.word_select(index, 8)),
                    self.o.payload.last.eq(index == CRC_OCTETS - 1),
                    self.o.valid.eq(1),
                ]
                with m.If(self.o.ready):
                    m.d.sync += index.eq(index + 1)
                    with m.If(self.o.payload.last):
                        m.d.comb += crc.start.eq(1)
                        m.next = "PACKET"
        return m


class FrameChecker(wiring.Component):
    """Delivers the message of a frame whose CRC is right; drops and counts any other.

    The frame waits in a memory of one longest frame until its CRC is known. ``stat_format`` strobes
    for a frame that was aborted, is longer than the longest message or has no octet before its CRC;
    ``stat_crc`` for one that has the right form but a wrong CRC. Never both.

    Latency: 3 clocks from the frame's last octet to the message's first. Throughput: one octet a
    clock in, then one octet a clock out; the next frame waits meanwhile.
    """

    i: In(raw_frame_stream())
    o: Out(message_stream())
    stat_crc: Out(1)
    stat_format: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = CRC32_ISO_HDLC().create()
        longest = MAX_MESSAGE_OCTETS + CRC_OCTETS
        m.submodules.memory = memory = Memory(    # what is delivered was written clocks ago
            shape=8, depth=longest, init=[], attrs={"no_rw_check": 1})
        write = memory.write_port()
        read = memory.read_port()

        count = Signal(range(longest + 1))   # octets of the frame so far
        oversize = Signal()
        aborted = Signal()
        index = Signal(range(longest + 1))   # of the octet on `o`

        m.d.comb += [
            write.addr.eq(count),
            write.data.eq(self.i.payload.data),
            self.o.payload.data.eq(read.data),
            self.o.payload.first.eq(index == 0),
            self.o.payload.last.eq(index == self.o.payload.length - 1),
        ]

        with m.FSM():
            with m.State("RECEIVE"):
                m.d.comb += [
                    self.i.ready.eq(1),
                    crc.data.eq(self.i.payload.data),
                    crc.valid.eq(self.i.valid),
                ]
                with m.If(self.i.valid):
                    with m.If(count == longest):
                        m.d.sync += oversize.eq(1)
                    with m.Else():
                        m.d.comb += write.en.eq(1)
                        m.d.sync += count.eq(count + 1)
                    m.d.sync += aborted.eq(self.i.payload.abort)
                    with m.If(self.i.payload.last):
                        m.next = "CHECK"

            with m.State("CHECK"):
                m.d.comb += [crc.start.eq(1), read.addr.eq(0)]
                m.d.sync += [
                    count.eq(0),
                    oversize.eq(0),
                    index.eq(0),
                    self.o.payload.length.eq(count - CRC_OCTETS),
                ]
                m.next = "RECEIVE"
                with m.If(aborted | oversize | (count <= CRC_OCTETS)):
                    m.d.comb += self.stat_format.eq(1)
                with m.Elif(~crc.match_detected):
                    m.d.comb += self.stat_crc.eq(1)
                with m.Else():
                    m.next = "DELIVER"

            with m.State("DELIVER"):
                m.d.comb += [self.o.valid.eq(1), read.addr.eq(index)]
                with m.If(self.o.ready):
                    m.d.comb += read.addr.eq(index + 1)
                    m.d.sync += index.eq(index + 1)
                    with m.If(self.o.payload.last):
                        m.next = "RECEIVE"
        return m
