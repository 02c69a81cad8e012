"""The self-test's frames: written over the link, played into a port."""

from amaranth.hdl import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.registers import SELFTEST_WORDS

from .layouts import frame_stream
from .mac.fcs_append import FcsAppend

__all__ = ["FramePlayer"]

WORD_OCTETS = 8
GAP_CLOCKS = 20
"""As long as preamble, SFD and gap at one octet a clock (IEEE 802.3 4.4.2)."""


class FramePlayer(wiring.Component):
    """Plays the frame in its memory ``times`` times, one octet a clock and `GAP_CLOCKS` between.

    ``write`` puts ``word`` at ``index``. ``start`` with ``octets``, ``times``, ``wrong_fcs`` and
    ``mac_error`` begins; they are to be steady until ``busy`` falls. Each frame gets its FCS; with
    ``mac_error`` it ends with ``error``. ``busy`` rises in the clock after ``start`` and falls
    `GAP_CLOCKS` after the last frame.

    ``frames``: the frames in beats of ``bus_bytes``, the last octet at most ``bus_bytes`` clocks
    behind the line's.
    """

    def __init__(self, bus_bytes):
        self._bus_bytes = bus_bytes
        super().__init__({
            "write": In(1), "index": In(range(SELFTEST_WORDS)), "word": In(64),
            "start": In(1), "octets": In(range(WORD_OCTETS * SELFTEST_WORDS + 1)),
            "times": In(16), "wrong_fcs": In(1), "mac_error": In(1),
            "busy": Out(1),
            "frames": Out(frame_stream(bus_bytes)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.words = words = memory.Memory(shape=64, depth=SELFTEST_WORDS, init=[])
        store, fetch = words.write_port(), words.read_port()
        m.d.comb += [store.addr.eq(self.index), store.data.eq(self.word), store.en.eq(self.write)]
        m.submodules.fcs = fcs = FcsAppend()

        at, left, gap = Signal.like(self.octets), Signal(16), Signal(range(GAP_CLOCKS + 1))
        following, last_at = Signal.like(at), Signal.like(at)
        m.d.comb += [
            following.eq(at), fetch.addr.eq(following[3:]),
            fcs.i.p.data.eq(fetch.data.word_select(at[:3], 8)),
            fcs.i.p.first.eq(at == 0), fcs.i.p.last.eq(at == last_at),
            fcs.i.p.error.eq(self.mac_error), fcs.wrong.eq(self.wrong_fcs), fcs.o.ready.eq(1),
        ]
        m.d.sync += [at.eq(following), last_at.eq(self.octets - 1)]
        with m.FSM() as state:
            m.d.comb += self.busy.eq(~state.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.comb += following.eq(0)
                m.d.sync += [left.eq(self.times), gap.eq(0)]
                with m.If(self.start):
                    m.next = "GAP"
            with m.State("GAP"):
                m.d.comb += following.eq(0)
                m.d.sync += gap.eq(gap + 1)
                with m.If(gap == GAP_CLOCKS):
                    m.d.sync += left.eq(left - 1)
                    m.next = "FRAME"
                    with m.If(left == 0):
                        m.next = "IDLE"
            with m.State("FRAME"):
                # The FCS of the frame before has left, so every octet is taken at once.
                m.d.comb += [fcs.i.valid.eq(1), following.eq(at + 1)]
                with m.If(fcs.i.p.last):
                    m.next = "END"
            with m.State("END"):
                m.d.sync += gap.eq(0)
                with m.If(fcs.o.valid & fcs.o.p.last):
                    m.next = "GAP"

        self._pack(m, fcs.o)
        return m

    def _pack(self, m, octets):
        """Octets to whole beats."""
        n, out = self._bus_bytes, self.frames.payload
        lane, first = Signal(range(max(2, n))), Signal(init=1)
        full = lane == n - 1
        m.d.sync += self.frames.valid.eq(octets.valid & (octets.p.last | full))
        with m.If(octets.valid):
            m.d.sync += [
                out.data.word_select(lane, 8).eq(octets.p.data),
                out.first.eq(first), out.last.eq(octets.p.last),
                out.end.eq(Mux(octets.p.last, lane, 0)), out.error.eq(octets.p.error),
                lane.eq(Mux(octets.p.last | full, 0, lane + 1)),
            ]
            with m.If(octets.p.last | full):
                m.d.sync += first.eq(octets.p.last)
