"""The request processor: messages in, register accesses and credit out, one reply a request."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rocetap.spec.wire import MAX_BURST, MessageType, Status

from ..layouts import RegisterBus
from .octets import message_stream, packet_stream

__all__ = ["RequestProcessor"]

BURST_HEADER_OCTETS = 6     # READ, WRITE: type, sequence, address, count
CREDIT_OCTETS = 5
REPLY_HEADER_OCTETS = 5     # type, sequence, status, count
WORD_OCTETS = 8


class RequestProcessor(wiring.Component):
    """Does one request of :mod:`rocetap.spec.wire` at a time and replies to it.

    A message of an unknown type or a wrong length has no effect but a strobe of ``stat_format``:
    all of that is known before the first access. A WRITE or CREDIT with the sequence number of the
    one done last is not done again, its reply is repeated; a READ forgets that number. A burst
    stops at the first register that fails, also where it would run past address 0xFFFF.

    ``credit_grant`` strobes with ``credit_amount`` for each CREDIT that is done.

    Latency: a READ of n registers replies n·(2 + the bus's own clocks) clocks after its last octet;
    the reply then flows at one octet a clock. The next message waits until the reply has left.
    """

    i: In(message_stream())
    o: Out(packet_stream())
    bus: Out(RegisterBus())
    credit_grant: Out(1)
    credit_amount: Out(16)
    stat_format: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.results = results = Memory(shape=64, depth=MAX_BURST, init=[])
        store = results.write_port()
        fetch = results.read_port()

        octet = self.i.payload.data
        length = self.i.payload.length

        kind = Signal(8)
        sequence = Signal(16)
        address = Signal(17)                        # one bit more: the end of the address space
        count = Signal(range(MAX_BURST + 1))
        at = Signal(range(BURST_HEADER_OCTETS))     # octet of the header
        word = Signal(64)
        word_at = Signal(range(WORD_OCTETS))
        words = Signal(range(MAX_BURST + 1))        # accesses done
        status = Signal(2)                          # of the request done last
        reply_count = Signal(range(MAX_BURST + 1))
        out_at = Signal(range(REPLY_HEADER_OCTETS))

        done_sequence = Signal(16)                  # of the last WRITE or CREDIT
        done_valid = Signal()
        repeated = Signal()
        # Asked for by octets that come clocks after the number's.
        m.d.sync += repeated.eq(done_valid & (done_sequence == sequence))

        is_read = kind == MessageType.READ
        remember = [done_sequence.eq(sequence), done_valid.eq(1), status.eq(Status.OK)]

        # What the first octet, and for bursts the count, says about the message's form.
        fits_kind = Signal()
        fits_count = Signal()
        with m.Switch(octet):
            with m.Case(MessageType.READ):
                m.d.comb += fits_kind.eq(length == BURST_HEADER_OCTETS)
            with m.Case(MessageType.WRITE):
                m.d.comb += fits_kind.eq(length > BURST_HEADER_OCTETS)
            with m.Case(MessageType.CREDIT):
                m.d.comb += fits_kind.eq(length == CREDIT_OCTETS)
        m.d.comb += fits_count.eq(
            (octet != 0) & (octet <= MAX_BURST)
            & (is_read | (length == BURST_HEADER_OCTETS + WORD_OCTETS * octet)))

        failed = Signal()
        outside = address[16]
        access_done = Signal()
        access_status = Signal(2)
        m.d.comb += [
            self.bus.address.eq(address),
            self.bus.write_data.eq(word),
            access_done.eq(outside | self.bus.done),
            access_status.eq(Mux(outside, Status.NO_REGISTER, self.bus.status)),
            failed.eq(access_status != Status.OK),
            store.addr.eq(words),
            store.data.eq(self.bus.read_data),
        ]

        with m.FSM():
            with m.State("HEADER"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [words.eq(0), word_at.eq(0), reply_count.eq(0), out_at.eq(0)]
                with m.If(self.i.valid):
                    m.d.sync += at.eq(at + 1)
                    with m.Switch(at):
                        with m.Case(0):
                            m.d.sync += kind.eq(octet)
                            with m.If(~fits_kind):
                                m.d.comb += self.stat_format.eq(1)
                                m.d.sync += at.eq(0)
                                with m.If(~self.i.payload.last):
                                    m.next = "DROP"
                        with m.Case(1):
                            m.d.sync += sequence[:8].eq(octet)
                        with m.Case(2):
                            m.d.sync += sequence[8:].eq(octet)
                        with m.Case(3):
                            m.d.sync += address.eq(octet)
                        with m.Case(4):
                            m.d.sync += address[8:].eq(octet)
                            with m.If(kind == MessageType.CREDIT):
                                m.d.sync += at.eq(0)
                                m.next = "CREDIT"
                        with m.Case(5):
                            m.d.sync += [count.eq(octet), at.eq(0)]
                            with m.If(~fits_count):
                                m.d.comb += self.stat_format.eq(1)
                                with m.If(~self.i.payload.last):
                                    m.next = "DROP"
                            with m.Elif(is_read):
                                m.d.sync += [done_valid.eq(0), status.eq(Status.OK)]
                                m.next = "READ"
                            with m.Elif(repeated):
                                m.next = "SKIP"
                            with m.Else():
                                m.d.sync += remember
                                m.next = "WORD"

            with m.State("DROP"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid & self.i.payload.last):
                    m.next = "HEADER"

            with m.State("SKIP"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid & self.i.payload.last):
                    m.next = "REPLY"

            with m.State("CREDIT"):
                m.d.comb += [
                    self.credit_amount.eq(address[:16]),
                    self.credit_grant.eq(~repeated),
                ]
                with m.If(~repeated):
                    m.d.sync += remember
                m.next = "REPLY"

            with m.State("WORD"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    m.d.sync += [word.eq(Cat(word[8:], octet)), word_at.eq(word_at + 1)]
                    with m.If(word_at == WORD_OCTETS - 1):
                        m.next = "WRITE"

            with m.State("WRITE"):
                m.d.comb += [self.bus.request.eq(~outside), self.bus.write.eq(1)]
                with m.If(access_done):
                    m.d.sync += [
                        status.eq(access_status),
                        words.eq(words + 1),
                        address.eq(address + 1),
                    ]
                    with m.If(words == count - 1):
                        m.next = "REPLY"
                    with m.Elif(failed):
                        m.next = "SKIP"
                    with m.Else():
                        m.next = "WORD"

            with m.State("READ"):
                m.d.comb += [self.bus.request.eq(~outside), store.en.eq(access_done)]
                with m.If(access_done):
                    m.d.sync += [
                        status.eq(access_status),
                        words.eq(words + 1),
                        address.eq(address + 1),
                    ]
                    m.next = "READ_NEXT"

            with m.State("READ_NEXT"):
                with m.If(status != Status.OK):
                    m.next = "REPLY"
                with m.Elif(words == count):
                    m.d.sync += reply_count.eq(count)
                    m.next = "REPLY"
                with m.Else():
                    m.next = "READ"

            with m.State("REPLY"):
                m.d.comb += [
                    self.o.valid.eq(1),
                    self.o.payload.last.eq(
                        (out_at == REPLY_HEADER_OCTETS - 1) & (reply_count == 0)),
                ]
                with m.Switch(out_at):
                    with m.Case(0):
                        m.d.comb += self.o.payload.data.eq(MessageType.REPLY)
                    with m.Case(1):
                        m.d.comb += self.o.payload.data.eq(sequence[:8])
                    with m.Case(2):
                        m.d.comb += self.o.payload.data.eq(sequence[8:])
                    with m.Case(3):
                        m.d.comb += self.o.payload.data.eq(status)
                    with m.Default():
                        m.d.comb += self.o.payload.data.eq(reply_count)
                m.d.sync += [words.eq(0), word_at.eq(0)]
                with m.If(self.o.ready):
                    m.d.sync += out_at.eq(out_at + 1)
                    with m.If(out_at == REPLY_HEADER_OCTETS - 1):
                        m.d.sync += [word.eq(fetch.data), words.eq(1)]
                        m.next = "REPLY_WORDS"
                        with m.If(reply_count == 0):
                            m.next = "HEADER"

            # `words` is one ahead of the word on its way, so that the memory has the next one.
            with m.State("REPLY_WORDS"):
                m.d.comb += [
                    self.o.valid.eq(1),
                    self.o.payload.data.eq(word[:8]),
                    self.o.payload.last.eq(
                        (word_at == WORD_OCTETS - 1) & (words == reply_count)),
                ]
                with m.If(self.o.ready):
                    m.d.sync += [word.eq(word >> 8), word_at.eq(word_at + 1)]
                    with m.If(word_at == WORD_OCTETS - 1):
                        m.d.sync += [word.eq(fetch.data), words.eq(words + 1)]
                    with m.If(self.o.payload.last):
                        m.next = "HEADER"

        m.d.comb += fetch.addr.eq(words)
        return m
