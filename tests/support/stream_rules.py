"""The rules of every ready/valid stream, as one component that only watches.

The same asserts fire in Amaranth's simulator, are compiled by Verilator (``--assert``), and are
what the prover proves; as assumptions they make the other side of a stream well-behaved.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assert, Assume, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

__all__ = ["StreamRules", "holds_payload", "keeps_valid", "never_waits", "watch"]


def keeps_valid(name: str) -> str:
    """The message of a stream whose valid fell without a transfer."""
    return f"{name}: valid stays until ready"


def holds_payload(name: str) -> str:
    """The message of a stream whose payload changed while it waited."""
    return f"{name}: the payload holds until ready"


def never_waits(name: str, clocks: int) -> str:
    """The message of a stream that had something to send, but for so long did not offer it."""
    return f"{name}: valid comes within {clocks} clocks without ready"


class StreamRules(wiring.Component):
    """Watches one stream with a payload of ``width`` bits. In every clock:

    - valid that met no ready is still valid in the next clock;
    - and its payload is the same;
    - with ``patience``: while ``due`` is high and ready low, valid rises within so many clocks, so
      it does not wait for ready. (Whether it depends on ready within a clock is a matter of the
      netlist: `support.formal.combinational_path`.)

    ``assume``: these are assumed, not asserted: the stream comes from outside the design.
    Payloads of always-ready streams never wait, so nothing is asked of them.
    """

    def __init__(self, width: int, *, name: str, patience: int | None = None,
                 assume: bool = False) -> None:
        self._name = name
        self._patience = patience
        self._rule = Assume if assume else Assert
        super().__init__({"valid": In(1), "ready": In(1), "payload": In(width), "due": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        waited = Signal()
        offered = Signal.like(self.payload)
        m.d.sync += [waited.eq(self.valid & ~self.ready), offered.eq(self.payload)]
        # Rules are looked at when the clock ticks: then all wires have settled.
        with m.If(waited):
            m.d.sync += [
                self._rule(self.valid, keeps_valid(self._name)),
                self._rule(self.payload == offered, holds_payload(self._name)),
            ]
        if self._patience is not None:
            idle = Signal(range(self._patience + 1))
            with m.If(self.valid | self.ready | ~self.due):
                m.d.sync += idle.eq(0)
            with m.Elif(idle != self._patience):
                m.d.sync += idle.eq(idle + 1)
            m.d.sync += self._rule(idle != self._patience,
                                   never_waits(self._name, self._patience))
        return m


def watch(m: Module, name: str, stream: Any, *, due: Any = 0, **options: Any) -> StreamRules:
    """Binds the rules to a stream, seen from either side, as the submodule ``rules_<name>``."""
    payload = Value.cast(stream.payload)
    rules = StreamRules(len(payload), name=name, **options)
    m.submodules[f"rules_{name}"] = rules
    m.d.comb += [rules.valid.eq(stream.valid), rules.ready.eq(stream.ready),
                 rules.payload.eq(payload), rules.due.eq(due)]
    return rules
