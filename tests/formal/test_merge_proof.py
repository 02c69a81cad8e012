"""VerdictMerge keeps each port's order, and a gap in it is marked as LOST."""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Elaboratable, Module, Signal

from rocetap.spec.classes import ATTRIBUTABLE, LOSES_CAPTURE, FrameClass
from rocetap_hdl import merge
from support.formal import free, mutant, prove, refute

DEPTH = 12
ORDER = "a port's verdicts come in order, without a gap that is not marked LOST"
KNOWN = "no verdict comes that did not go in"


class NumberedVerdicts(Elaboratable):
    """Two ports, queues of two. The verdicts of one port, either, are numbered by their PSN and
    known by the last bit of their time, so a gap shows."""

    def __init__(self, module=merge):
        self._dut = module.VerdictMerge(ports=2, depth=2)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self._dut
        free(m, dut)
        port = Signal()
        m.d.comb += port.eq(AnyConst(1))
        offered = Signal(24)
        for number, source in enumerate(dut.inputs):
            m.d.comb += Assume(source.payload.time[0] == number)
            matters = source.valid & Cat(source.payload.frame_class == item for item in
                                         (*ATTRIBUTABLE, *LOSES_CAPTURE)).any()
            with m.If((port == number) & matters):
                m.d.comb += Assume(source.payload.psn == offered)
                m.d.sync += offered.eq(offered + 1)
        out = dut.output.payload
        due, marked = Signal(24), Signal()
        with m.If(dut.output.valid & (out.time[0] == port)):
            with m.If(out.frame_class == FrameClass.LOST):
                m.d.sync += marked.eq(1)
            with m.Else():
                m.d.comb += [Assert(marked | (out.psn == due), ORDER),
                             Assert((out.psn >= due) & (out.psn < offered), KNOWN)]
                m.d.sync += [due.eq(out.psn + 1), marked.eq(0)]
        return m


def test_order_and_loss():
    """To 12 clocks, verdicts every clock: the queues of two overflow and drain several times."""
    prove(NumberedVerdicts(), depth=DEPTH)


BROKEN = {
    "loss_not_owed": (("overflow.eq(Mux(queue.w_rdy, overflow & offered, overflow | offered))",
                       "overflow.eq(0)"), ORDER),
    "verdict_in_place_of_mark": (("Mux(overflow, Value.cast(lost), Value.cast(source.payload))",
                                  "Value.cast(source.payload)"), ORDER),
    "mark_is_a_verdict": (("lost.frame_class.eq(FrameClass.LOST)",
                           "lost.frame_class.eq(FrameClass.ELIGIBLE_REQUEST)"), KNOWN),
    "lossy_class_dropped": (("for item in (*ATTRIBUTABLE, *LOSES_CAPTURE)",
                             "for item in ATTRIBUTABLE"), ORDER),
}


def test_broken_merges_are_found():
    """To 12 clocks."""
    refute({name: (NumberedVerdicts(mutant(merge, change)), broken)
            for name, (change, broken) in BROKEN.items()}, depth=DEPTH)
