"""Joins the verdicts of several ports, in each port's order, to one stream for the table."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from rocetap.spec.classes import ATTRIBUTABLE, LOSES_CAPTURE, FrameClass

from .layouts import Verdict, verdict_stream

__all__ = ["VerdictMerge"]


class VerdictMerge(wiring.Component):
    """Only verdicts that matter to a connection are kept: ATTRIBUTABLE and LOSES_CAPTURE classes.

    With one port this is a wire. With more, each port has a queue of ``depth`` and takes turns.
    Verdicts that matter belong to frames of at least 58 octets, so at 8 octets a clock and up to
    four ports they come more slowly than they leave. A queue that is full all the same is a capture
    discontinuity: the port's next verdict in the queue is preceded by a LOST one.
    """

    def __init__(self, *, ports, depth=16):
        if ports < 1:
            raise ValueError(f"ports is {ports}, must be 1 or more")
        self.ports = ports
        self.depth = depth
        super().__init__({
            "inputs": In(verdict_stream()).array(ports),
            "output": Out(verdict_stream()),
        })

    def elaborate(self, platform):
        m = Module()
        out = self.output
        if self.ports == 1:
            m.d.comb += [out.valid.eq(self.inputs[0].valid),
                         out.payload.eq(self.inputs[0].payload)]
            return m

        width = Shape.cast(Verdict).width
        queues, overflown = [], []
        for port, source in enumerate(self.inputs):
            queue = SyncFIFOBuffered(width=width, depth=self.depth)
            m.submodules[f"queue{port}"] = queue
            matters = Cat(source.payload.frame_class == item
                          for item in (*ATTRIBUTABLE, *LOSES_CAPTURE)).any()
            overflow = Signal(name=f"overflow{port}")
            offered = source.valid & matters
            # While a loss is owed, a place goes to the LOST verdict first; the frame that comes in
            # that very clock is lost with it.
            lost = Signal(Verdict, name=f"lost{port}")
            m.d.comb += [
                lost.frame_class.eq(FrameClass.LOST),
                lost.time.eq(source.payload.time),
                queue.w_data.eq(Mux(overflow, Value.cast(lost), Value.cast(source.payload))),
                queue.w_en.eq(overflow | offered),
            ]
            m.d.sync += overflow.eq(Mux(queue.w_rdy, overflow & offered, overflow | offered))
            queues.append(queue)
            overflown.append(overflow)

        turn = Signal(range(self.ports))
        m.d.sync += turn.eq(Mux(turn == self.ports - 1, 0, turn + 1))
        with m.Switch(turn):
            for port, queue in enumerate(queues):
                with m.Case(port):
                    m.d.comb += [queue.r_en.eq(1), out.valid.eq(queue.r_rdy),
                                 Value.cast(out.payload).eq(queue.r_data)]
        return m
