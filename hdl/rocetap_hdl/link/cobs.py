"""Consistent Overhead Byte Stuffing (S. Cheshire, M. Baker, IEEE/ACM Trans. Networking 7(2), 1999).

A packet is cut into groups of up to 254 octets without a zero. Each group goes out as a code, its
octets plus one, and the octets; a code below 255 stands for a zero after them, but for the packet's
last group. So the zero octet is free to end the packet.
"""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from ..queue import BlockQueue
from .octets import octet_stream, packet_stream, raw_frame_stream

__all__ = ["CobsDecoder", "CobsEncoder"]

GROUP_OCTETS = 254


class CobsDecoder(wiring.Component):
    """Octets of the wire to frames.

    Any octets are taken. A delimiter without anything before it is no frame. A frame that ends
    inside a group, or that holds no octet, ends with ``abort``.

    Throughput: one octet a clock. Latency: an octet comes out with the one after it, since only
    then it is known whether it is the last.
    """

    i: In(octet_stream())
    o: Out(raw_frame_stream())

    def elaborate(self, platform):
        m = Module()

        # `held` is the newest decoded octet. It moves to the output register when another octet
        # or the delimiter follows.
        held = Signal(8)
        holding = Signal()
        first = Signal(init=1)
        in_frame = Signal()
        remaining = Signal(8)
        zero_after_group = Signal()

        octet = self.i.payload
        take = Signal()
        m.d.comb += [
            self.i.ready.eq(~self.o.valid | self.o.ready),
            take.eq(self.i.valid & self.i.ready),
        ]

        is_end = octet == 0
        is_code = remaining == 0
        decoded = Signal()
        value = Signal(8)
        m.d.comb += [
            decoded.eq(~is_end & Mux(is_code, in_frame & zero_after_group, 1)),
            value.eq(Mux(is_code, 0, octet)),
        ]

        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

        with m.If(take & ((decoded & holding) | (is_end & in_frame))):
            m.d.sync += [
                self.o.valid.eq(1),
                self.o.payload.data.eq(held),
                self.o.payload.first.eq(first),
                self.o.payload.last.eq(is_end),
                self.o.payload.abort.eq(is_end & (~is_code | ~holding)),
                first.eq(is_end),
            ]

        with m.If(take & decoded):
            m.d.sync += [held.eq(value), holding.eq(1)]

        with m.If(take & is_end):
            m.d.sync += [holding.eq(0), in_frame.eq(0), remaining.eq(0)]
        with m.Elif(take & is_code):
            m.d.sync += [
                in_frame.eq(1),
                remaining.eq(octet - 1),
                zero_after_group.eq(octet != GROUP_OCTETS + 1),
            ]
        with m.Elif(take):
            m.d.sync += remaining.eq(remaining - 1)

        return m


class CobsEncoder(wiring.Component):
    """Packets to octets of the wire, each packet ended by the zero delimiter.

    A group waits in a data FIFO until its code is known; codes wait in a FIFO of their own, deep
    enough that many short groups going out cover a long one coming in.

    Throughput: one octet out each clock that ``o.ready`` is high while packets of up to
    ``GROUP_OCTETS`` octets wait. Latency: 3 clocks from a group's last octet to its code when
    nothing is ahead. Input stalls for one clock after a packet whose last octet is zero.
    """

    i: In(packet_stream())
    o: Out(octet_stream())

    DATA_DEPTH = 512
    CODES_DEPTH = 128

    def elaborate(self, platform):
        m = Module()
        m.submodules.data = data = BlockQueue(8, self.DATA_DEPTH)
        m.submodules.codes = codes = SyncFIFOBuffered(width=9, depth=self.CODES_DEPTH)

        # Whether both take one more is said a clock late, so it is said early.
        room = Signal()
        m.d.sync += room.eq((codes.level < self.CODES_DEPTH - 2)
                            & (data.level < self.DATA_DEPTH - 2))

        # In: a code is due at a zero, at a full group and at the packet's end. A packet that ends
        # with a zero asks for two: that of the zero and that of the empty group after it.
        length = Signal(range(GROUP_OCTETS + 1))
        closing = Signal()
        is_zero = self.i.payload.data == 0
        is_full = length == GROUP_OCTETS - 1
        code = Signal(8)
        ends = Signal()

        m.d.comb += [
            codes.w_data.eq(Cat(code, ends)),
            data.i.payload.eq(self.i.payload.data),
        ]
        with m.If(closing):
            m.d.comb += [code.eq(1), ends.eq(1), codes.w_en.eq(room)]
            with m.If(room):
                m.d.sync += closing.eq(0)
        with m.Else():
            m.d.comb += [
                self.i.ready.eq(room),
                code.eq(length + Mux(is_zero, 1, 2)),
                ends.eq(self.i.payload.last & ~is_zero),
            ]
            with m.If(self.i.valid & room):
                m.d.comb += data.i.valid.eq(~is_zero)
                with m.If(is_zero | is_full | self.i.payload.last):
                    m.d.comb += codes.w_en.eq(1)
                    m.d.sync += length.eq(0)
                with m.Else():
                    m.d.sync += length.eq(length + 1)
                m.d.sync += closing.eq(self.i.payload.last & is_zero)

        # Out: the code, its octets, and the delimiter behind the last group.
        group_ends = Signal()
        remaining = Signal(8)
        with m.FSM():
            with m.State("CODE"):
                m.d.comb += [
                    self.o.payload.eq(codes.r_data[:8]),
                    self.o.valid.eq(codes.r_rdy),
                    codes.r_en.eq(self.o.ready),
                ]
                m.d.sync += [
                    remaining.eq(codes.r_data[:8] - 1),
                    group_ends.eq(codes.r_data[8]),
                ]
                with m.If(codes.r_rdy & self.o.ready):
                    with m.If(codes.r_data[:8] != 1):
                        m.next = "DATA"
                    with m.Elif(codes.r_data[8]):
                        m.next = "END"
            with m.State("DATA"):
                m.d.comb += [
                    self.o.payload.eq(data.o.payload),
                    self.o.valid.eq(data.o.valid),
                    data.o.ready.eq(self.o.ready),
                ]
                with m.If(data.o.valid & self.o.ready):
                    m.d.sync += remaining.eq(remaining - 1)
                    with m.If(remaining == 1):
                        m.next = "CODE"
                        with m.If(group_ends):
                            m.next = "END"
            with m.State("END"):
                m.d.comb += [self.o.payload.eq(0), self.o.valid.eq(1)]
                with m.If(self.o.ready):
                    m.next = "CODE"

        return m
