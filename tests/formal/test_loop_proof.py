"""StateLoop is an ideal memory: every operation sees what the last one that wrote left."""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Elaboratable, Module, Signal

from rocetap_hdl import loop
from support.formal import free, mutant, prove, refute

SEES = "an operation sees what was written last"
HOLDS = "the memory holds what was written last"
DEPTH = 10


class IdealMemory(Elaboratable):
    """A loop beside one word of an ideal memory, at an address that may be any.

    The word is what the operations that left the loop wrote there; each operation on it must see
    just that. For the induction: the loop's own memory holds it, too.
    """

    def __init__(self, module=loop, *, width=2, depth=4):
        self._dut = module.StateLoop(width, depth)

    def elaborate(self, platform):
        m = Module()
        dut = self._dut
        latency = dut.latency
        watched = Signal.like(dut.address)
        free(m, dut)
        m.d.comb += [watched.eq(AnyConst(watched.shape())), Assume(~dut.write | dut.live)]

        inside = dut.elaborate(platform)
        look = inside.submodules.memory.read_port(domain="comb")
        m.submodules.dut = inside
        m.d.comb += look.addr.eq(watched)

        word = Signal.like(dut.next)
        live, write, here = (Signal(latency, name=f"{name}_s")
                             for name in ("live", "write", "here"))
        m.d.sync += [live.eq(Cat(dut.live, live)), write.eq(Cat(dut.write, write)),
                     here.eq(Cat(dut.address == watched, here))]
        m.d.comb += Assert(look.data == word, HOLDS)
        with m.If(live[-1] & here[-1]):
            m.d.comb += Assert(dut.state == word, SEES)
            with m.If(write[-1]):
                m.d.sync += word.eq(dut.next)
        return m


def test_operations_at_every_distance():
    """By induction: any operations, writing or not, at any distance, for any length of time."""
    prove(IdealMemory(), depth=DEPTH, induction=True)


BROKEN = {
    # One of the three forwarding paths each, then which of them wins, then what does not write.
    "youngest_dropped": (("Mux(hits[0], result,", "Mux(0, result,"), SEES),
    "middle_dropped": (("Mux(hits[1], older[0],", "Mux(0, older[0],"), SEES),
    "oldest_dropped": (("Mux(hits[2], older[1], fetched)", "Mux(0, older[1], fetched)"), SEES),
    "oldest_wins": (("Mux(hits[1], older[0], Mux(hits[2], older[1], fetched))",
                     "Mux(hits[2], older[1], Mux(hits[1], older[0], fetched))"), SEES),
    "reader_forwarded": (('& p.get("write", i))', '& p.get("live", i))'), SEES),
    "reader_stored": (('write.en.eq(p.get("write", 3))', 'write.en.eq(p.get("live", 3))'), HOLDS),
}


def test_broken_loops_are_found():
    """To 10 clocks: the loop's own three, and operations at the largest distance that forwards."""
    refute({name: (IdealMemory(mutant(loop, change)), broken)
            for name, (change, broken) in BROKEN.items()}, depth=DEPTH)
