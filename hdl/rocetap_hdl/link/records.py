"""Pushed records: the snapshot FIFO's records as RECORD messages, as far as credit goes."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.records import RECORD_OCTETS
from rocetap.spec.wire import MessageType

from ..layouts import record_stream
from .octets import packet_stream

__all__ = ["RecordSender"]

HEADER_OCTETS = 3           # type, serial
WORD_OCTETS = 8
MAX_CREDIT = (1 << 16) - 1

assert RECORD_OCTETS % WORD_OCTETS == 0


class RecordSender(wiring.Component):
    """Sends one RECORD for each record while there is credit; each takes one credit.

    ``credit_grant`` adds ``credit_amount``; the credit saturates at 65535. A grant in the clock in
    which a record takes its credit counts in full: both happen. ``serial`` numbers the RECORDs from
    0 after a reset, modulo 2^16.

    A record is taken from ``records`` with its last octet, until then its stream holds it.
    Throughput: one octet a clock, and 1 clock between records.
    """

    records: In(record_stream())
    o: Out(packet_stream())
    credit_grant: In(1)
    credit_amount: In(16)

    def elaborate(self, platform):
        m = Module()

        credit = Signal(16)
        taken = Signal()
        granted = Signal(17)
        m.d.comb += granted.eq(credit - taken + Mux(self.credit_grant, self.credit_amount, 0))
        m.d.sync += credit.eq(Mux(granted > MAX_CREDIT, MAX_CREDIT, granted))

        serial = Signal(16)
        header_at = Signal(range(HEADER_OCTETS))
        word_count = RECORD_OCTETS // WORD_OCTETS
        word = Signal(8 * WORD_OCTETS)
        words = Signal(range(word_count + 1))    # index of the next word
        word_at = Signal(range(WORD_OCTETS))
        final = Signal()                         # the word on its way is the last one
        last_octet = Signal()                    # and so is the octet of the word
        # A word is used eight octets after it was chosen, or a header's length.
        next_word = Signal(8 * WORD_OCTETS)
        m.d.sync += next_word.eq(
            self.records.payload.as_value().word_select(words, 8 * WORD_OCTETS))

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [header_at.eq(0), words.eq(0), word_at.eq(0)]
                with m.If(self.records.valid & (credit != 0)):
                    m.d.comb += taken.eq(1)
                    m.next = "HEADER"

            with m.State("HEADER"):
                m.d.comb += self.o.valid.eq(1)
                with m.Switch(header_at):
                    with m.Case(0):
                        m.d.comb += self.o.payload.data.eq(MessageType.RECORD)
                    with m.Case(1):
                        m.d.comb += self.o.payload.data.eq(serial[:8])
                    with m.Default():
                        m.d.comb += self.o.payload.data.eq(serial[8:])
                with m.If(self.o.ready):
                    m.d.sync += header_at.eq(header_at + 1)
                    with m.If(header_at == HEADER_OCTETS - 1):
                        m.d.sync += [word.eq(next_word), words.eq(1), final.eq(word_count == 1),
                                     last_octet.eq(0), serial.eq(serial + 1)]
                        m.next = "RECORD"

            with m.State("RECORD"):
                m.d.comb += [
                    self.o.valid.eq(1),
                    self.o.payload.data.eq(word[:8]),
                    self.o.payload.last.eq(last_octet & final),
                    self.records.ready.eq(self.o.ready & self.o.payload.last),
                ]
                with m.If(self.o.ready):
                    m.d.sync += [word.eq(word >> 8), word_at.eq(word_at + 1),
                                 last_octet.eq(word_at == WORD_OCTETS - 2)]
                    with m.If(last_octet):
                        m.d.sync += [word.eq(next_word), words.eq(words + 1),
                                     final.eq(words == word_count - 1)]
                    with m.If(self.o.payload.last):
                        m.next = "IDLE"
        return m
