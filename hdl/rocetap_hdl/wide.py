"""The window engine for windows of more than one word: several beats a move, a queue ahead."""

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.fifo import SyncFIFOBuffered

from .beats import Beats, move
from .pipeline import Pipeline
from .window import COUNTED, SPAN, WindowEngine

__all__ = ["WideWindowEngine"]

MARKS = ("is_request", "is_marker", "is_close", "is_remove", "request", "forward", "back", "fresh",
         "retained", "breaks", "closes", "reports", "disables", "sets")
VALUES = ("context", "psn", "time", "tag", "context_tag", "W", "reasons", "stale", "violation",
          "skips")


class WideWindowEngine(WindowEngine):
    """A window of up to ``word * words`` positions for every context; else as WindowEngine.

    High-water mark and span are one word of state whatever W is, so the loops on them stay as they
    are, one operation a clock. What they resolve waits in a queue of ``queue`` operations for the
    sequencer (:class:`.beats.Beats`), which visits the words of the bitmap one a clock: the words
    that a move drops, then those that it opens. A request in order costs two beats, one beyond a
    gap of d positions about 2 + d / word more; a report or a closure W / word.

    What wins: a request that finds the queue full is not counted, and is a capture discontinuity:
    the generation is raised with the next operation, so nothing is joined across it. ``busy`` asks
    host operations to wait before that.
    """

    latency = None
    """It depends on what is ahead in the queue."""

    def __init__(self, *, connections, word=256, words=16, queue=64, **parameters):
        if words < 2 or words & (words - 1):
            raise ValueError(f"words is {words}, must be a power of two from 2; a window of one "
                             "word is WindowEngine's")
        if queue < 4 * SPAN:
            raise ValueError(f"queue is {queue}, must be {4 * SPAN} or more: what is on its way to "
                             "it has to fit")
        super().__init__(connections=connections, word=word, **parameters)
        if word * words > 1 << (self.psn_bits - 2):
            raise ValueError(f"word * words is {word * words}, must be at most "
                             f"2^{self.psn_bits - 2}, a quarter of the PSN space")
        if (word * words - 1).bit_length() + 7 > self.counter_bits:
            raise ValueError(f"counter_bits is {self.counter_bits}, must be "
                             f"{(word * words - 1).bit_length() + 7} or more with a window of "
                             f"{word * words}")
        self.words = words
        self.queue = queue
        self.ring_bits = (word * words - 1).bit_length()

    def elaborate(self, platform):
        m = Module()
        p = self._operations(m, self._admit(m))
        self._generation(m, p)
        self._high_water(m, p)
        self._reach(m, p)
        self._span(m, p)

        rest = data.StructLayout({
            **dict.fromkeys(MARKS, 1),
            **{name: p.get(name, SPAN).shape() for name in VALUES},
        })
        m.submodules.beats = beats = Beats(self.ring_bits, (self.word - 1).bit_length(), rest)
        moves = self._moves(p, rest)
        width = Shape.cast(moves.shape()).width
        m.submodules.queue = queue = SyncFIFOBuffered(width=width, depth=self.queue)
        m.d.comb += [
            queue.w_data.eq(Value.cast(moves)), queue.w_en.eq(p.get("live", SPAN)),
            Value.cast(beats.moves.payload).eq(queue.r_data),
            beats.moves.valid.eq(queue.r_rdy), queue.r_en.eq(beats.moves.ready),
        ]
        m.d.sync += self.busy.eq(queue.level > self.queue - 2 * SPAN)

        q = self._beats(m, beats.beats)
        self._bitmap(m, q, address="cell", depth=self.connections * self.words,
                     opened="opened_count", write="writes")
        self._counters(m, q, self._summed(m, q))
        return m

    def _admit(self, m):
        """The operations that the queue has room for; what had none is owed as a discontinuity."""
        source = self.operations
        admitted = Signal.like(source.payload)
        valid = Signal()
        owed = Signal()
        m.d.comb += [
            admitted.eq(source.payload),
            admitted.raise_generation.eq(source.payload.raise_generation | owed),
            valid.eq(source.valid & ~self.busy),
        ]
        with m.If(source.valid):
            m.d.sync += owed.eq(self.busy)
        return valid, admitted

    def _moves(self, p, rest):
        """What the loops resolved, as a move over the ring and what goes along."""
        moves = Signal(move(self.ring_bits, rest))
        needs = (p.get("forward", SPAN) | p.get("breaks", SPAN) | p.get("closes", SPAN)
                 | p.get("reports", SPAN))
        self_set = p.get("fresh", SPAN) | p.get("retained", SPAN)
        m = p.module
        m.d.comb += [
            moves.asked_from.eq(p.get("asked_from", SPAN)),
            moves.asked_count.eq(Mux(needs, p.get("asked_count", SPAN), 0)),
            moves.opened_from.eq(Mux(self_set, p.get("psn", SPAN), p.get("opened_from", SPAN))),
            moves.opened_count.eq(Mux(p.get("forward", SPAN), p.get("skips", SPAN) + 1, self_set)),
            *(moves.rest[name].eq(p.get(name, SPAN)) for name in (*MARKS, *VALUES)),
        ]
        return moves

    def _beats(self, m, beats):
        """The pipeline behind the sequencer: stages go on from SPAN, marks come with last beats."""
        q = Pipeline(m, beats.valid, "beats_pipeline", first=SPAN)
        payload = beats.payload
        last = beats.valid & payload.last
        for name in MARKS:
            q.put(name, payload.rest[name] & last, SPAN, mark=True)
        for name in VALUES:
            q.put(name, payload.rest[name], SPAN)
        for name in ("asked_from", "asked_count", "opened_from", "opened_count", "first"):
            q.put(name, payload[name], SPAN)
        q.put("cell", Cat(payload.cell, payload.rest.context), SPAN)
        q.put("writes", beats.valid & payload.rest.is_request, SPAN, mark=True)
        return q

    def _summed(self, m, q):
        """What all beats of a move so far have found PENDING."""
        found = Signal(self.ring_bits + 1)
        before = Signal(self.ring_bits + 1)
        m.d.comb += found.eq(q.get("pending", COUNTED) + Mux(q.get("first", COUNTED), 0, before))
        with m.If(q.get("live", COUNTED)):
            m.d.sync += before.eq(found)
        return found


