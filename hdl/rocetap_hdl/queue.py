"""A queue in block RAM whose output is a register."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["BlockQueue"]


class BlockQueue(wiring.Component):
    """Holds ``depth`` items of ``shape``, one in and one out a clock; ``latency`` clocks from input
    to output. ``level``: items held. Without ``every_clock`` one goes out in two clocks, and no
    path leads from ``o.ready`` into the memory: for wide items that stay a while.

    An item is fetched only when it has been in memory for a clock, so that reads and writes never
    meet: synthesis need not care what a read would give then. What comes from memory goes through a
    register, because block RAM is slow to give its data.
    """

    latency = 3

    def __init__(self, shape, depth, *, every_clock=True):
        if depth < 2:
            raise ValueError(f"depth is {depth}, must be 2 or more")
        self.depth = depth
        self._every_clock = every_clock
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)),
            "level": Out(range(depth + 1)),
        })

    def elaborate(self, platform):
        m = Module()
        width = Shape.cast(Value.cast(self.i.payload).shape()).width
        m.submodules.memory = memory = Memory(
            shape=unsigned(width), depth=self.depth, init=[], attrs={"no_rw_check": 1})
        write, read = memory.write_port(), memory.read_port()
        taken, fetch, move = Signal(), Signal(), Signal()
        stored = Signal(range(self.depth + 1))     # in memory, to be fetched
        fetched = Signal()                         # on the memory's output
        place, following = Signal.like(write.addr), Signal.like(read.addr)
        out = self.o
        follows = out.ready if self._every_clock else 0     # one takes the place of another
        m.d.comb += [
            self.i.ready.eq(self.level != self.depth),
            taken.eq(self.i.valid & self.i.ready),
            move.eq(fetched & (~out.valid | follows)),
            fetch.eq((stored != 0) & (~fetched | (move if self._every_clock else 0))),
            write.addr.eq(place),
            write.data.eq(Value.cast(self.i.payload)),
            write.en.eq(taken),
            read.addr.eq(following),
            read.en.eq(fetch),
        ]
        for pointer, moves in ((place, taken), (following, fetch)):
            with m.If(moves):
                m.d.sync += pointer.eq(Mux(pointer == self.depth - 1, 0, pointer + 1))
        m.d.sync += [
            stored.eq(stored + taken - fetch),
            self.level.eq(self.level + taken - (out.valid & out.ready)),
            fetched.eq(fetch | (fetched & ~move)),
            out.valid.eq(move | (out.valid & ~out.ready)),
        ]
        with m.If(move):
            m.d.sync += Value.cast(out.payload).eq(read.data)
        return m
