"""What goes down the window engine's pipe: packets, and the host's operations between them."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.classes import LOSES_CAPTURE, FrameClass
from rocetap.spec.registers import OperationKind

from .layouts import operation, operation_stream
from .table import lookup_stream

__all__ = ["OperationArbiter", "Sweep"]


class OperationArbiter(wiring.Component):
    """Joins packets, closures of exhausted epochs, host operations and the sweep to one stream.

    ``busy`` holds back all but packets. What wins, in this order: a packet (it cannot wait), a
    closure for exhaustion, a host operation, the sweep. Host operation and sweep are held with
    ``ready`` low until a clock without a packet. One closure for exhaustion waits at a time; the
    engine asks again with the next request of a context that found the place taken. Latency is one
    clock.
    """

    def __init__(self, *, connections):
        self.connections = connections
        context_bits = max(1, (connections - 1).bit_length())
        super().__init__({
            "lookups": In(lookup_stream(connections)),
            "busy": In(1),
            "exhausted": In(1),
            "exhausted_context": In(context_bits),
            "host": In(wiring.Signature({
                "payload": Out(operation(connections)), "valid": Out(1), "ready": In(1)})),
            "sweep": In(wiring.Signature({
                "payload": Out(operation(connections)), "valid": Out(1), "ready": In(1)})),
            "operations": Out(operation_stream(connections)),
        })

    def elaborate(self, platform):
        m = Module()
        out = Signal(operation(self.connections))
        valid = Signal()
        m.d.sync += [self.operations.payload.eq(out), self.operations.valid.eq(valid)]

        waiting = Signal()
        waiting_context = Signal.like(self.exhausted_context)
        with m.If(self.exhausted & ~waiting):
            m.d.sync += [waiting.eq(1), waiting_context.eq(self.exhausted_context)]

        lookup = self.lookups.payload
        with m.If(self.lookups.valid):
            loses = Cat(lookup.frame_class == item for item in LOSES_CAPTURE).any()
            eligible = lookup.frame_class == FrameClass.ELIGIBLE_REQUEST
            m.d.comb += [
                valid.eq(1),
                out.kind.eq(Mux(loses, OperationKind.NOTHING,
                                Mux(eligible, OperationKind.REQUEST, OperationKind.VIOLATION))),
                out.raise_generation.eq(loses),
                out.context.eq(lookup.context),
                out.psn.eq(lookup.psn),
                out.time.eq(lookup.time),
            ]
        with m.Elif(self.busy):
            pass
        with m.Elif(waiting):
            m.d.comb += [valid.eq(1), out.kind.eq(OperationKind.CLOSE),
                         out.context.eq(waiting_context)]
            m.d.sync += waiting.eq(0)
        with m.Elif(self.host.valid):
            m.d.comb += [valid.eq(1), out.eq(self.host.payload), self.host.ready.eq(1)]
        with m.Elif(self.sweep.valid):
            m.d.comb += [valid.eq(1), out.eq(self.sweep.payload), self.sweep.ready.eq(1)]
        return m


class Sweep(wiring.Component):
    """One operation for each context of a range, then a marker; waits while records have no room.

    ``start`` with ``kind``, ``first``, ``last`` (inclusive), ``reasons`` and ``cookie`` begins one;
    ``busy`` until its marker is in the pipe. ``room`` must be low while the snapshot FIFO could
    not take the record of one more operation.
    """

    def __init__(self, *, connections):
        self.connections = connections
        context_bits = max(1, (connections - 1).bit_length())
        super().__init__({
            "start": In(1),
            "kind": In(4),
            "first": In(context_bits),
            "last": In(context_bits),
            "reasons": In(16),
            "cookie": In(16),
            "busy": Out(1),
            "room": In(1),
            "operations": Out(wiring.Signature({
                "payload": Out(operation(connections)), "valid": Out(1), "ready": In(1)})),
        })

    def elaborate(self, platform):
        m = Module()
        now = Signal(operation(self.connections))
        last = Signal.like(self.last)
        cookie = Signal(16)
        at_last = Signal()       # known a clock after a context, which is offered no earlier
        out = self.operations
        m.d.comb += out.payload.eq(now)
        m.d.sync += at_last.eq(now.context == last)
        # Valid never falls without a transfer: room only decides when it rises.
        with m.If(~self.busy):
            with m.If(self.start):
                m.d.sync += [
                    self.busy.eq(1), now.eq(0), now.kind.eq(self.kind),
                    now.context.eq(self.first), now.reasons.eq(self.reasons),
                    last.eq(self.last), cookie.eq(self.cookie),
                ]
        with m.Elif(~out.valid):
            m.d.sync += out.valid.eq(self.room)
        with m.Elif(out.ready):
            m.d.sync += out.valid.eq(0)
            with m.If(now.kind == OperationKind.MARKER):
                m.d.sync += self.busy.eq(0)
            with m.Elif(at_last):
                m.d.sync += [now.kind.eq(OperationKind.MARKER), now.tag.eq(cookie)]
            with m.Else():
                m.d.sync += now.context.eq(now.context + 1)
        return m
