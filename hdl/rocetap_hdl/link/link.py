"""The link, whole: octets of the wire on one side, register bus and records on the other."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..layouts import RegisterBus, record_stream
from .buffer import StreamBuffer
from .cobs import CobsDecoder, CobsEncoder
from .frame import FrameChecker, FrameSealer
from .octets import MESSAGE, PACKET, octet_stream, packet_stream
from .records import RecordSender
from .requests import RequestProcessor

__all__ = ["HostLink", "PacketArbiter"]


class PacketArbiter(wiring.Component):
    """Joins replies and records, packet by packet. Replies go first when both wait.

    Throughput: one octet a clock, 1 clock between packets. A packet that was offered is kept until
    its end.
    """

    replies: In(packet_stream())
    records: In(packet_stream())
    o: Out(packet_stream())

    def elaborate(self, platform):
        m = Module()
        with m.FSM():
            with m.State("IDLE"):
                with m.If(self.replies.valid):
                    m.next = "REPLY"
                with m.Elif(self.records.valid):
                    m.next = "RECORD"
            for state, source in (("REPLY", self.replies), ("RECORD", self.records)):
                with m.State(state):
                    m.d.comb += [
                        self.o.payload.eq(source.payload),
                        self.o.valid.eq(source.valid),
                        source.ready.eq(self.o.ready),
                    ]
                    with m.If(source.valid & source.ready & source.payload.last):
                        m.next = "IDLE"
        return m


class HostLink(wiring.Component):
    """The board's end of the link, :mod:`rocetap.spec.wire`.

    Any octets on ``rx`` are taken and nothing but a good request has an effect; the first good
    frame behind a delimiter is answered whatever came before it. ``crc_errors`` counts frames with
    a wrong CRC, ``format_errors`` those that were cut, too long, of an unknown type or a wrong
    length, both modulo 2^32.

    ``rx`` is held up while a request is done and its reply leaves. On ``tx`` one octet a clock
    while records wait and credit lasts: a record costs the clocks of its COBS frame.
    """

    rx: In(octet_stream())
    tx: Out(octet_stream())
    bus: Out(RegisterBus())
    records: In(record_stream())
    crc_errors: Out(32)
    format_errors: Out(32)

    def elaborate(self, platform):
        m = Module()
        m.submodules.decoder = decoder = CobsDecoder()
        m.submodules.checker = checker = FrameChecker()
        m.submodules.requests = requests = RequestProcessor()
        m.submodules.sender = sender = RecordSender()
        m.submodules.arbiter = arbiter = PacketArbiter()
        m.submodules.sealer = sealer = FrameSealer()
        m.submodules.encoder = encoder = CobsEncoder()
        # Ways through several parts in one clock end here.
        m.submodules.message = message = StreamBuffer(MESSAGE)
        m.submodules.record = record = StreamBuffer(PACKET)
        m.submodules.packet = packet = StreamBuffer(PACKET)
        m.submodules.sealed = sealed = StreamBuffer(PACKET)

        connect(m, flipped(self.rx), decoder.i)
        connect(m, decoder.o, checker.i)
        connect(m, checker.o, message.i)
        connect(m, message.o, requests.i)
        connect(m, requests.bus, flipped(self.bus))
        connect(m, flipped(self.records), sender.records)
        connect(m, requests.o, arbiter.replies)
        connect(m, sender.o, record.i)
        connect(m, record.o, arbiter.records)
        connect(m, arbiter.o, packet.i)
        connect(m, packet.o, sealer.i)
        connect(m, sealer.o, sealed.i)
        connect(m, sealed.o, encoder.i)
        connect(m, encoder.o, flipped(self.tx))

        bad_crc, bad_form, bad_message = Signal(), Signal(), Signal()
        m.d.sync += [
            sender.credit_grant.eq(requests.credit_grant),
            sender.credit_amount.eq(requests.credit_amount),
            bad_crc.eq(checker.stat_crc),
            bad_form.eq(checker.stat_format),
            bad_message.eq(requests.stat_format),
        ]
        with m.If(bad_crc):
            m.d.sync += self.crc_errors.eq(self.crc_errors + 1)
        m.d.sync += self.format_errors.eq(self.format_errors + (bad_form + bad_message))
        return m
