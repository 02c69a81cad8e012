"""The snapshot FIFO: whole records between the window engine and the link."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from rocetap.spec.records import RECORD_BITS

from .layouts import record_stream

__all__ = ["SnapshotFifo"]


class SnapshotFifo(wiring.Component):
    """Holds ``depth`` records. The engine cannot wait: a record that finds no room is dropped and
    counted in ``dropped``, and the epoch is then incomplete at the collector, which is the truth.

    ``level``: records waiting. ``room``: whether at least half the FIFO is free, which is what
    operations that can wait are asked to wait for. Latency from input to output: two clocks.
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
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=RECORD_BITS, depth=self.depth)
        m.d.comb += [
            fifo.w_data.eq(Value.cast(self.input.payload)),
            fifo.w_en.eq(self.input.valid),
            Value.cast(self.output.payload).eq(fifo.r_data),
            self.output.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.output.ready),
            self.level.eq(fifo.level),
        ]
        m.d.sync += self.room.eq(fifo.level < self.depth // 2)
        with m.If(self.input.valid & ~fifo.w_rdy):
            m.d.sync += self.dropped.eq(self.dropped + 1)
        return m
