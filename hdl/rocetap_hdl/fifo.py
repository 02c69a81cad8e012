"""The snapshot FIFO: whole records between the window engine and the link."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rocetap.spec.records import RECORD_BITS

from .layouts import record_stream

__all__ = ["SnapshotFifo"]


class SnapshotFifo(wiring.Component):
    """Holds ``depth`` records. The engine cannot wait: a record that finds no room is dropped and
    counted in ``dropped``, and the epoch is then incomplete at the collector, which is the truth.

    ``level``: records waiting. ``room``: whether at least half the FIFO is free, which is what
    operations that can wait are asked to wait for. Latency from input to output: three clocks.

    A record is fetched only when it has been in memory for a clock, so that reads and writes never
    meet; it goes through a register of its own, as block RAM is slow to give its data. A record
    leaves in every second clock at most: its reader takes far longer for it.
    """

    def __init__(self, *, depth=512):
        if depth < 64:
            raise ValueError(f"depth is {depth}, must be 64 or more: a whole pipe of operations "
                             "has to fit in half of it")
        self.depth = depth
        super().__init__({
            "input": In(record_stream(always_ready=True)),
            "output": Out(record_stream()),
            "dropped": Out(64),
            "level": Out(range(depth + 1)),
            "room": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=RECORD_BITS, depth=self.depth, init=[])
        write, read = memory.write_port(), memory.read_port()
        taken, fetch, move, leaves = Signal(), Signal(), Signal(), Signal()
        stored = Signal(range(self.depth + 1))     # in memory, to be fetched
        fetched = Signal()                         # on the memory's output
        place, following = Signal.like(write.addr), Signal.like(read.addr)
        full = Signal()
        out = self.output
        m.d.comb += [
            full.eq(self.level == self.depth),
            taken.eq(self.input.valid & ~full),
            leaves.eq(out.valid & out.ready),
            move.eq(fetched & ~out.valid),
            fetch.eq((stored != 0) & ~fetched),
            write.addr.eq(place),
            write.data.eq(Value.cast(self.input.payload)),
            write.en.eq(taken),
            read.addr.eq(following),
            read.en.eq(fetch),
        ]
        for pointer, moves in ((place, taken), (following, fetch)):
            with m.If(moves):
                m.d.sync += pointer.eq(Mux(pointer == self.depth - 1, 0, pointer + 1))
        m.d.sync += [
            stored.eq(stored + taken - fetch),
            self.level.eq(self.level + taken - leaves),
            self.room.eq(self.level < self.depth // 2),
            fetched.eq(fetch | (fetched & ~move)),
            out.valid.eq(move | (out.valid & ~out.ready)),
        ]
        with m.If(move):
            m.d.sync += Value.cast(out.payload).eq(read.data)
        with m.If(self.input.valid & full):
            m.d.sync += self.dropped.eq(self.dropped + 1)
        return m
