"""The snapshot FIFO: whole records between the window engine and the link."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .layouts import RECORD, record_stream
from .queue import BlockQueue

__all__ = ["SnapshotFifo"]


class SnapshotFifo(wiring.Component):
    """Holds ``depth`` records. The engine cannot wait: a record that finds no room is dropped and
    counted in ``dropped``, and the epoch is then incomplete at the collector, which is the truth.

    ``level``: records waiting. ``room``: whether at least half the FIFO is free, which is what
    operations that can wait are asked to wait for. Latency from input to output: BlockQueue's.
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
        m.submodules.queue = queue = BlockQueue(RECORD, self.depth, every_clock=False)
        connect(m, queue.o, flipped(self.output))
        m.d.comb += [
            queue.i.payload.eq(self.input.payload),
            queue.i.valid.eq(self.input.valid),
            self.level.eq(queue.level),
        ]
        m.d.sync += self.room.eq(self.level < self.depth // 2)
        with m.If(self.input.valid & ~queue.i.ready):
            m.d.sync += self.dropped.eq(self.dropped + 1)
        return m
