"""Register accesses from one clock to another."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from rocetap.spec.wire import Status

from ..layouts import RegisterBus

__all__ = ["BusCrossing"]


class BusCrossing(wiring.Component):
    """Carries the register bus from clock domain ``i_domain`` to ``sync``, one access at a time.

    A four-phase handshake: ``ask`` and ``answer`` are the only signals that are synchronized; what
    goes with them is steady for two clocks of the receiver before it is read. An access takes about
    three clocks of each side more than the responder needs.

    An access that is not answered within ``patience`` clocks of ``i_domain`` (the clock of ``sync``
    stands still, or it is in reset) is REFUSED, so that the initiator's bus never hangs; it is done
    all the same when that ends.

    Resets touch neither side, so that the handshake stays whole. An initiator that is reset in the
    middle of an access gets no answer to it; the access is done. One that meets a reset of ``sync``
    is asked for until the responder has done it, which may be once more than before.
    """

    def __init__(self, *, i_domain, patience=4096):
        if patience < 64:
            raise ValueError(f"patience is {patience}, must be 64 or more")
        self._i_domain = i_domain
        self._patience = patience
        super().__init__({
            "i": In(RegisterBus()),
            "o": Out(RegisterBus()),
        })

    def elaborate(self, platform):
        m = Module()
        i, o, near = self.i, self.o, self._i_domain

        ask, abandoned = Signal(reset_less=True), Signal(reset_less=True)
        asked, answer = Signal(reset_less=True), Signal(reset_less=True)
        ask_far, answer_near = Signal(), Signal()
        m.submodules.answer_cdc = FFSynchronizer(answer, answer_near, o_domain=near)
        m.submodules.ask_cdc = FFSynchronizer(ask, ask_far, o_domain="sync")
        write, address = Signal(reset_less=True), Signal(16, reset_less=True)
        write_data = Signal(64, reset_less=True)
        status, read_data = Signal(2, reset_less=True), Signal(64, reset_less=True)

        # The near side.
        waited = Signal(range(self._patience))
        late = waited == self._patience - 1
        m.d[near] += [waited.eq(Mux(i.request & ~i.done, waited + 1, 0)), i.done.eq(0)]
        with m.If(ask):
            with m.If(~i.request | i.done):
                m.d[near] += abandoned.eq(1)
            with m.If(answer_near):
                m.d[near] += [
                    ask.eq(0),
                    i.done.eq(i.request & ~i.done & ~abandoned),
                    i.status.eq(status),
                    i.read_data.eq(read_data),
                ]
        with m.Elif(i.request & ~i.done & ~answer_near):
            m.d[near] += [
                ask.eq(1), abandoned.eq(0), write.eq(i.write), address.eq(i.address),
                write_data.eq(i.write_data),
            ]
        with m.If(late):
            m.d[near] += [i.done.eq(1), i.status.eq(Status.REFUSED), abandoned.eq(1)]

        # The far side.
        m.d.comb += [o.request.eq(asked), o.write.eq(write), o.address.eq(address),
                     o.write_data.eq(write_data)]
        with m.If(asked):
            with m.If(o.done):
                m.d.sync += [asked.eq(0), answer.eq(1), status.eq(o.status),
                             read_data.eq(o.read_data)]
        with m.Elif(answer):
            m.d.sync += answer.eq(ask_far)
        with m.Else():
            m.d.sync += asked.eq(ask_far)
        return m
