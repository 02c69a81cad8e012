"""From AXI4-Lite to the register bus: 64-bit registers as pairs of 32-bit words."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.axi import ADDRESS_BITS, AXI_REGISTERS
from rocetap.spec.wire import Status

from ..layouts import RegisterBus
from .pins import Response, axi_lite

__all__ = ["LiteResponder"]


class LiteResponder(wiring.Component):
    """AXI4-Lite subordinate (Arm IHI 0022, B1), initiator on the register bus.

    The address map is :mod:`rocetap.spec.axi`. **Read**: the low word reads the whole register at
    one moment and keeps the high word; the high word is what was kept, and may be read again.
    **Write**: the low word is kept; the high word writes the whole register. So low goes before
    high, and both to the same register: a high word whose low word was not the last low word of its
    direction is SLVERR and does nothing. So is a write without all four strobes, which also drops
    what was kept. ``Status.REFUSED`` is SLVERR, ``Status.NO_REGISTER`` DECERR; what is read with an
    error is all ones. Protection bits are not looked at.

    One access at a time; when a read and a write wait, they take turns. An answer stands until it
    is taken.
    """

    axi: In(axi_lite())
    bus: Out(RegisterBus())

    def elaborate(self, platform):
        m = Module()
        axi, bus = self.axi, self.bus
        number, high = Signal(ADDRESS_BITS - 3), Signal()
        data, whole = Signal(32), Signal()
        write, response, read_data = Signal(), Signal(Response), Signal(32)

        # The kept halves, and whose they are.
        low, low_of, low_kept = Signal(32), Signal.like(number), Signal()
        upper, upper_of, upper_kept = Signal(32), Signal.like(number), Signal()
        last_write, failed = Signal(Response), Signal(32)

        m.d.comb += [
            bus.write.eq(write), bus.address.eq(number), bus.write_data.eq(Cat(low, data)),
            axi.bresp.eq(response), axi.rresp.eq(response), axi.rdata.eq(read_data),
        ]

        def answer(code, value=0xFFFF_FFFF):
            m.d.sync += [response.eq(code), read_data.eq(value)]
            if code != Response.OKAY:
                m.d.sync += failed.eq(failed + 1)
            m.next = "ANSWER"

        with m.FSM():
            with m.State("IDLE"):
                writes, reads = axi.awvalid & axi.wvalid, axi.arvalid
                with m.If(writes & ~(reads & write)):
                    m.d.comb += [axi.awready.eq(1), axi.wready.eq(1)]
                    m.d.sync += [
                        write.eq(1), high.eq(axi.awaddr[2]), number.eq(axi.awaddr[3:]),
                        data.eq(axi.wdata), whole.eq(axi.wstrb.all()),
                    ]
                    m.next = "WRITE"
                with m.Elif(reads):
                    m.d.comb += axi.arready.eq(1)
                    m.d.sync += [
                        write.eq(0), high.eq(axi.araddr[2]), number.eq(axi.araddr[3:])]
                    m.next = "READ"

            with m.State("WRITE"):
                m.d.sync += low_kept.eq(0)
                with m.If(~whole | (high & ~(low_kept & (low_of == number)))):
                    m.d.sync += last_write.eq(Response.SLVERR)
                    answer(Response.SLVERR)
                with m.Elif(high):
                    m.next = "BUS"
                with m.Else():
                    m.d.sync += [low.eq(data), low_of.eq(number), low_kept.eq(1)]
                    answer(Response.OKAY)

            with m.State("READ"):
                with m.If(high):
                    with m.If(upper_kept & (upper_of == number)):
                        answer(Response.OKAY, upper)
                    with m.Else():
                        answer(Response.SLVERR)
                with m.Elif(number == AXI_REGISTERS["access_status"].address):
                    m.d.sync += [upper.eq(failed), upper_of.eq(number), upper_kept.eq(1)]
                    answer(Response.OKAY, last_write)
                with m.Else():
                    m.d.sync += upper_kept.eq(0)
                    m.next = "BUS"

            with m.State("BUS"):
                m.d.comb += bus.request.eq(1)
                with m.If(bus.done):
                    for status, code in ((Status.OK, Response.OKAY),
                                         (Status.NO_REGISTER, Response.DECERR),
                                         (Status.REFUSED, Response.SLVERR)):
                        with m.If(bus.status == status):
                            with m.If(write):
                                m.d.sync += last_write.eq(code)
                            if status == Status.OK:
                                with m.If(~write):
                                    m.d.sync += [upper.eq(bus.read_data[32:]),
                                                 upper_of.eq(number), upper_kept.eq(1)]
                                answer(code, bus.read_data[:32])
                            else:
                                answer(code)

            with m.State("ANSWER"):
                m.d.comb += [axi.bvalid.eq(write), axi.rvalid.eq(~write)]
                with m.If(Mux(write, axi.bready, axi.rready)):
                    m.next = "IDLE"
        return m
