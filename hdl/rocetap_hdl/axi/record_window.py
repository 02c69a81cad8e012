"""Snapshot records as registers, for a host without a link."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.axi import AXI_REGISTERS, RECORD_WINDOW, RECORD_WORDS, record_word
from rocetap.spec.wire import Status

from ..layouts import RegisterBus, record_stream

__all__ = ["RecordWindow"]

_INDEX_BITS = 4


class RecordWindow(wiring.Component):
    """Answers for the record registers of :mod:`rocetap.spec.axi`; every other access goes on to
    ``registers``.

    The first record of ``records`` stands in the window, the same in every read, until it is
    popped. Its words are REFUSED while there is none, and so is a pop. ``level``: records waiting,
    the one in the window among them.

    An access to a register of this component is done `LATENCY` clock after its request.
    """

    LATENCY = 1

    bus: In(RegisterBus())
    registers: Out(RegisterBus())
    records: In(record_stream())
    level: In(16)

    def elaborate(self, platform):
        m = Module()
        bus, registers, records = self.bus, self.registers, self.records
        assert record_word(0) % (1 << _INDEX_BITS) == 0
        assert RECORD_WORDS <= 1 << _INDEX_BITS

        own = bus.address >= RECORD_WINDOW
        own_done, status, read_data = Signal(), Signal(2), Signal(64)
        m.d.comb += [
            registers.request.eq(bus.request & ~own),
            registers.write.eq(bus.write),
            registers.address.eq(bus.address),
            registers.write_data.eq(bus.write_data),
            bus.done.eq(Mux(own, own_done, registers.done)),
            bus.status.eq(Mux(own, status, registers.status)),
            bus.read_data.eq(Mux(own, read_data, registers.read_data)),
        ]

        words = Cat(Value.cast(records.payload), C(0, 64 * RECORD_WORDS - len(
            Value.cast(records.payload)))).as_unsigned()
        if_any = Mux(records.valid, Status.OK, Status.REFUSED)
        decide = bus.request & own & ~own_done
        m.d.sync += own_done.eq(decide)
        with m.If(decide):
            m.d.sync += status.eq(Status.NO_REGISTER)
            with m.If(bus.write):
                with m.If(bus.address == AXI_REGISTERS["record_pop"].address):
                    m.d.sync += status.eq(if_any)
                    m.d.comb += records.ready.eq(1)
            with m.Elif(bus.address == AXI_REGISTERS["record_level"].address):
                m.d.sync += [status.eq(Status.OK), read_data.eq(self.level)]
            with m.Elif((bus.address[_INDEX_BITS:] == record_word(0) >> _INDEX_BITS)
                        & (bus.address[:_INDEX_BITS] < RECORD_WORDS)):
                m.d.sync += [
                    status.eq(if_any),
                    read_data.eq(words.word_select(bus.address[:_INDEX_BITS], 64)),
                ]
        return m
