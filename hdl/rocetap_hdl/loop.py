"""State in memory, read, changed and written back every clock, the same word back to back."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .pipeline import Pipeline

__all__ = ["StateLoop"]


class StateLoop(wiring.Component):
    """One word of state per address, in block RAM, with a read-modify-write every clock.

    ``live``, ``address`` and ``write`` belong to stage 0: whether there is an operation, which word
    it is about, and whether it will write (never without ``live``).
    Three clocks later (``StateLoop.latency``) ``state`` is the word as all earlier operations left
    it, and ``next``, a function of it in the same clock, is written if ``write`` was set.

    Back-to-back operations on one word see each other: the memory is read two clocks before the
    state register, so the last three results are forwarded to that register. Nothing but one
    multiplexer stands between ``next`` and the state register, which keeps the loop short.

    What wins: of several results for one address the youngest. The memory port is never read for a
    result that is still being written, so its read-during-write behaviour does not matter.
    All words are ``init`` (zeros) before the first write.
    """

    latency = 3

    def __init__(self, shape, depth):
        self.shape = shape
        self.depth = depth
        super().__init__({
            "live": In(1),
            "address": In(range(max(2, depth))),
            "write": In(1),
            "state": Out(shape),
            "next": In(shape),
        })

    def elaborate(self, platform):
        m = Module()
        width = Shape.cast(self.shape).width
        m.submodules.memory = memory = Memory(shape=unsigned(width), depth=max(2, self.depth),
                                              init=[], attrs={"no_rw_check": 1})
        read, write = memory.read_port(), memory.write_port()

        # Stages: 0 address, 1 memory output, 2 its register and the forwarding, 3 state and result.
        p = Pipeline(m, self.live)
        p.put("address", self.address, 0)
        p.put("write", self.write, 0, mark=True)

        fetched = Signal(width, reset_less=True)
        state = Signal(width, reset_less=True)
        result = Signal(width)
        older = [Signal(width, name=f"result_s{i}", reset_less=True) for i in (4, 5)]
        m.d.comb += [
            read.addr.eq(self.address),
            read.en.eq(self.live),
            Value.cast(self.state).eq(state),
            result.eq(Value.cast(self.next)),
            write.addr.eq(p.get("address", 3)),
            write.data.eq(result),
            write.en.eq(p.get("write", 3)),
        ]
        with m.If(p.get("live", 1)):
            m.d.sync += fetched.eq(read.data)
        for stage, source, register in ((3, result, older[0]), (4, older[0], older[1])):
            with m.If(p.get("write", stage)):
                m.d.sync += register.eq(source)

        # An operation at stage 2 was read from memory before those at stages 3, 4 and 5 had
        # written. Whether they hit is known a clock ahead, and whether their addresses are the same
        # another clock: two operations keep their distance on the way.
        hits = [Signal(name=f"hit_s{i}") for i in (3, 4, 5)]
        for hit, i in zip(hits, (2, 3, 4), strict=True):
            same = Signal(name=f"same_s{i}")
            m.d.sync += [same.eq(p.get("address", 0) == p.get("address", i - 1)),
                         hit.eq(same & p.get("write", i))]
        with m.If(p.get("live", 2)):
            m.d.sync += state.eq(Mux(hits[0], result,
                                     Mux(hits[1], older[0], Mux(hits[2], older[1], fetched))))
        return m
