"""Cuts a move over a large ring into beats of one word each."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Beats", "beat", "move"]


def move(ring_bits, rest):
    """One operation's way over its ring: it asks about ``asked_count`` positions, then opens
    ``opened_count`` positions, the last of which it sets. ``rest`` goes along."""
    return data.StructLayout({
        "asked_from": unsigned(ring_bits), "asked_count": unsigned(ring_bits + 1),
        "opened_from": unsigned(ring_bits), "opened_count": unsigned(ring_bits + 1),
        "rest": rest,
    })


def beat(ring_bits, word_bits, rest):
    """One word of a move: in word ``cell`` of the ring, the positions that are asked about, those
    that are opened, and in the last beat, when something is opened, the position that is set."""
    return data.StructLayout({
        "cell": unsigned(max(1, ring_bits - word_bits)),
        "asked_from": unsigned(word_bits), "asked_count": unsigned(word_bits + 1),
        "opened_from": unsigned(word_bits), "opened_count": unsigned(word_bits + 1),
        "first": 1, "last": 1,
        "rest": rest,
    })


class Beats(wiring.Component):
    """``moves`` in, a beat a clock out: first the words that are asked about, then those that are
    opened. A move that does neither is one beat. The next move follows in the next clock.

    A position that is set is counted in ``opened_count`` of the move, but not in that of its beat:
    it is the position right behind those that the beat opens.
    """

    def __init__(self, ring_bits, word_bits, rest):
        if not 1 <= word_bits < ring_bits:
            raise ValueError(f"word_bits is {word_bits}, must be 1 to {ring_bits - 1} on a ring of "
                             f"2^{ring_bits} positions")
        self.ring_bits = ring_bits
        self.word_bits = word_bits
        super().__init__({
            "moves": In(stream.Signature(move(ring_bits, rest))),
            "beats": Out(stream.Signature(beat(ring_bits, word_bits, rest), always_ready=True)),
        })

    def elaborate(self, platform):
        m = Module()
        bits, word = self.word_bits, 1 << self.word_bits
        now = Signal.like(self.moves.payload)
        busy, first = Signal(), Signal()
        asks = now.asked_count != 0
        at = Signal(self.ring_bits)
        left = Signal(self.ring_bits + 1)
        room = Signal(bits + 1)
        take = Signal(bits + 1)
        ends = Signal()
        last = Signal()
        m.d.comb += [
            at.eq(Mux(asks, now.asked_from, now.opened_from)),
            left.eq(Mux(asks, now.asked_count, now.opened_count)),
            room.eq(word - at[:bits]),
            ends.eq(left <= room),
            take.eq(Mux(ends, left, room)),
            last.eq(ends & (~asks | (now.opened_count == 0))),
            self.moves.ready.eq(~busy | last),
        ]
        with m.If(self.moves.ready):
            m.d.sync += [now.eq(self.moves.payload), busy.eq(self.moves.valid), first.eq(1)]
        with m.Else():
            m.d.sync += first.eq(0)
            with m.If(asks):
                m.d.sync += [now.asked_from.eq(at + take), now.asked_count.eq(left - take)]
            with m.Else():
                m.d.sync += [now.opened_from.eq(at + take), now.opened_count.eq(left - take)]

        out = self.beats.payload
        m.d.comb += [
            self.beats.valid.eq(busy),
            out.cell.eq(at[bits:]),
            out.asked_from.eq(at[:bits]),
            out.asked_count.eq(Mux(asks, take, 0)),
            out.opened_from.eq(at[:bits]),
            out.opened_count.eq(Mux(asks, 0, take - (last & (left != 0)))),
            out.first.eq(first),
            out.last.eq(last),
            out.rest.eq(now.rest),
        ]
        return m
