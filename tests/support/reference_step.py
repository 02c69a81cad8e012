"""The sequence profile's step in hardware, slow and plain: the window engine is proved equal to it.

One connection, one operation a clock, nothing kept back. SEEN and PENDING are sets: one bit for
each position of the whole PSN ring, which is narrow here. It follows the profile's table of
transitions (Bounded Sequence Observation Algorithm) position by position and shares nothing with
the engine but the layouts of operation and record.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.flags import SequenceFlag
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import OperationKind
from rocetap_hdl.layouts import RECORD, operation

__all__ = ["COUNTERS", "ReferenceStep", "State"]

COUNTERS = ("requests", "skipped", "filled", "expired", "repeated", "late")


class State:
    """What a connection remembers; all bits of it in `signals`.

    ``interrupted``: capture discontinuities since the epoch's last request. ``forwards``: forward
    advances of the epoch, which no report shows.
    """

    def __init__(self, psn_bits: int, counter_bits: int, generation_bits: int) -> None:
        self.enabled = Signal()
        self.active = Signal()
        self.interrupted = Signal(generation_bits)
        self.window = Signal(24)
        self.tag = Signal(16)
        self.H = Signal(psn_bits)
        self.seen = Signal(1 << psn_bits)
        self.pending = Signal(1 << psn_bits)
        self.requests, self.skipped, self.filled, self.expired, self.repeated, self.late = (
            Signal(counter_bits, name=name) for name in COUNTERS)
        self.forwards = Signal(counter_bits)
        self.first_time = Signal(64)
        self.last_time = Signal(64)
        self.epoch = Signal(32)

    @property
    def signals(self) -> dict[str, Any]:
        return vars(self)


class ReferenceStep(wiring.Component):
    """``record`` is what the operation of this very clock must report, when ``reports``.

    ``here``: the operation names this connection. ``state`` is the connection before it.
    ``interruptions`` counts this operation's own discontinuity, too.
    """

    def __init__(self, *, connections: int, psn_bits: int, counter_bits: int,
                 generation_bits: int) -> None:
        self.psn_bits = psn_bits
        self.counter_bits = counter_bits
        self.state = State(psn_bits, counter_bits, generation_bits)
        self.interruptions = Signal(generation_bits + 1)
        super().__init__({
            "live": In(1),
            "here": In(1),
            "operation": In(operation(connections)),
            "reports": Out(1),
            "record": Out(RECORD),
        })

    @staticmethod
    def count(positions: Any) -> Any:
        """How many positions a set has."""
        return sum((positions[i] for i in range(1, len(positions))), start=positions[0])

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        now, ask = self.state, self.operation
        kind = Signal(4)
        m.d.comb += [
            kind.eq(Mux(self.live & self.here, ask.kind, OperationKind.NOTHING)),
            self.interruptions.eq(now.interrupted
                                  + (self.live & ask.raise_generation & now.active)),
        ]
        m.d.sync += now.interrupted.eq(self.interruptions)
        interrupted = self.interruptions != 0

        def report(reasons: Any, *, final: bool) -> None:
            """A report of the epoch as it stands."""
            pending = self.count(now.pending)
            m.d.comb += [
                self.reports.eq(1),
                self.record.kind.eq(RecordKind.SEQUENCE),
                self.record.flags.eq(reasons),
                self.record.abandoned.eq(pending if final else 0),
                self.record.pending.eq(0 if final else pending),
                *(self.record[name].eq(now.signals[name])
                  for name in (*COUNTERS, "epoch", "window", "first_time", "last_time")),
            ]

        def close(reasons: Any) -> None:
            flag = SequenceFlag
            report(reasons | flag.finalEpoch | Mux(interrupted, flag.captureDiscontinuity, 0),
                   final=True)
            m.d.sync += now.active.eq(0)

        def start() -> None:
            m.d.sync += [
                now.active.eq(1), now.interrupted.eq(0), now.H.eq(psn),
                now.seen.eq(1 << psn), now.pending.eq(0),
                *(now.signals[name].eq(name == "requests") for name in COUNTERS),
                now.forwards.eq(0), now.first_time.eq(ask.time), now.last_time.eq(ask.time),
                now.epoch.eq(now.epoch + 1),
            ]

        psn = Signal(self.psn_bits)
        m.d.comb += [psn.eq(ask.psn), self.record.tag.eq(now.tag),
                     self.record.context.eq(ask.context)]
        with m.Switch(kind):
            with m.Case(OperationKind.REQUEST), m.If(now.enabled):
                with m.If(~now.active):
                    start()
                with m.Elif(interrupted):
                    close(0)
                    start()
                with m.Else():
                    self._request(m, psn, close, start)
            with m.Case(OperationKind.VIOLATION), m.If(now.enabled):
                with m.If(now.active):
                    close(SequenceFlag.profileViolation)
                with m.Else():
                    m.d.comb += [self.reports.eq(1), self.record.kind.eq(RecordKind.DISABLED),
                                 self.record.flags.eq(SequenceFlag.profileViolation)]
                m.d.sync += now.enabled.eq(0)
            with m.Case(OperationKind.SNAPSHOT):
                with m.If(now.active & interrupted):
                    close(0)
                with m.Elif(now.active):
                    report(0, final=False)
            with m.Case(OperationKind.CLOSE, OperationKind.REMOVE):
                with m.If(now.active):
                    close(ask.reasons)
                with m.If(kind == OperationKind.REMOVE):
                    m.d.sync += now.enabled.eq(0)
            with m.Case(OperationKind.PROVISION):
                with m.If(now.active):
                    close(0)
                m.d.sync += [now.enabled.eq(1), now.window.eq(ask.window), now.tag.eq(ask.tag)]
            with m.Case(OperationKind.MARKER):
                m.d.comb += [self.reports.eq(1), self.record.kind.eq(RecordKind.MARKER),
                             self.record.tag.eq(ask.tag), self.record.context.eq(0)]
        return m

    def _request(self, m: Module, psn: Any, close: Any, start: Any) -> None:
        """Per-Request Transitions of an active epoch."""
        now = self.state
        ring = 1 << self.psn_bits
        half = ring // 2
        u = Signal(self.psn_bits)
        m.d.comb += u.eq(psn - now.H)
        with m.If((u == half) | ((u < half) & (u > now.window))):
            close(SequenceFlag.serialDiscontinuity)
            start()
        with m.Else():
            m.d.sync += [now.requests.eq(now.requests + 1), now.interrupted.eq(0),
                         now.last_time.eq(self.operation.time)]
            with m.If((u != 0) & (u < half)):
                self._advance(m, psn, u)
            with m.Elif(now.seen.bit_select(psn, 1)):
                m.d.sync += now.repeated.eq(now.repeated + 1)
            with m.Elif(now.pending.bit_select(psn, 1)):
                m.d.sync += [now.filled.eq(now.filled + 1), now.seen.bit_select(psn, 1).eq(1),
                             now.pending.bit_select(psn, 1).eq(0)]
            with m.Else():
                m.d.sync += now.late.eq(now.late + 1)

    def _advance(self, m: Module, psn: Any, u: Any) -> None:
        """d = u from 1 to W: the positions between become PENDING, what falls below L expires."""
        now = self.state
        expires = []
        for position in range(1 << self.psn_bits):
            above = Signal(self.psn_bits, name=f"above_{position}")     # the old H
            below = Signal(self.psn_bits, name=f"below_{position}")     # the new one
            m.d.comb += [above.eq(position - now.H), below.eq(psn - position)]
            skipped = (above != 0) & (above < u)
            kept = below < now.window
            m.d.sync += [
                now.seen[position].eq((now.seen[position] | (position == psn)) & kept),
                now.pending[position].eq((now.pending[position] | skipped) & kept),
            ]
            expires.append((now.pending[position] | skipped) & ~kept)
        m.d.sync += [now.H.eq(psn), now.forwards.eq(now.forwards + 1),
                     now.skipped.eq(now.skipped + u - 1),
                     now.expired.eq(now.expired + sum(expires))]
