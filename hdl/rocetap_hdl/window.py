"""The window engine: the bounded PSN sequence window of every connection.

One operation a clock goes in, whatever it is and whichever context it names, and each takes the
same way: five short loops over memory, with pure pipeline between them.

===========  =========================================================================
stage 0-3    **generation loop**: at which capture generation the context last had a
             request
stage 1-4    **high-water loop**: is the context enabled, is an epoch active, and its
             high-water PSN H. A request moves H (or not) by the sign of
             ``psn - H - 1`` alone, so this loop is one subtraction.
stage 4-7    **span loop**: how many positions below H are retained, ``min(H - S, W - 1)``.
stage 8-11   masks: the positions that fall below the new low edge L, the new positions
stage 11     **bitmap loop**: one word of R bits, ring index = PSN mod R, bit = SEEN
stage 12-16  how many PENDING positions did the masks meet
stage 17     **counter loop**: totals, and the record when the operation asks for one
===========  =========================================================================

A forward move of d positions forgets those that fall below L (their PENDING ones are expired),
makes d - 1 new ones PENDING and marks one SEEN: two masks on one word. What lies outside the
retained span is never looked at, so nothing is initialized or swept.
"""

from amaranth.hdl import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.flags import SequenceFlag
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import OperationKind

from .layouts import operation_stream, record_stream
from .loop import StateLoop
from .mask import COUNT_STAGES, RANGE_STAGES, any_set, popcount, range_mask
from .pipeline import Pipeline

__all__ = ["WindowEngine"]

HIGH = StateLoop.latency + 1
REACH = HIGH + 1
SPAN = REACH + 2
RANGES = SPAN + 1
BITMAP = RANGES + RANGE_STAGES
"""Stages at which the loops compute. Between HIGH and SPAN it is found how far an operation
reaches, between SPAN and BITMAP masks are made of ranges."""
COUNTED = BITMAP + 1 + COUNT_STAGES
COUNTERS = COUNTED + 1


class WindowEngine(wiring.Component):
    """Sequence windows of ``connections`` contexts (Bounded Sequence Observation Algorithm).

    Parameters: ``word`` is R, the bits of a context's window word, a power of two from 2; every
    context has its own W from 1 to R. ``counter_bits`` up to 64: an epoch closes before one of its
    counters could pass that width. ``psn_bits`` (24) and ``generation_bits`` are narrowed only by
    proofs.

    Ports: ``operations`` in, one a clock; ``records`` out, ``latency`` clocks later, always taken;
    ``generation``: capture discontinuities so far; ``exhausted``: a strobe with the context whose
    counters near their bound: somebody has to send CLOSE for it, and it comes again with every
    further request until then. ``busy`` (never, here) asks operations that can wait to wait.

    What wins: ``raise_generation`` of an operation comes before the operation itself. A request on
    a context whose epoch is of an older generation closes it with captureDiscontinuity and starts a
    new one, whatever its PSN. A disabled context takes no request, no violation, no snapshot, no
    close: PROVISION alone enables it. PROVISION closes an epoch that is open, its final record
    carries the old window and tag.
    """

    latency = COUNTERS + 1

    def __init__(self, *, connections, word=256, counter_bits=64, psn_bits=24,
                 generation_bits=40):
        if connections < 1:
            raise ValueError(f"connections is {connections}, must be 1 or more")
        if word < 2 or word & (word - 1):
            raise ValueError(f"word is {word}, must be a power of two from 2")
        if word > 1 << (psn_bits - 2):
            raise ValueError(f"word is {word}, must be at most 2^{psn_bits - 2}, a quarter of the "
                             "PSN space")
        if not (word - 1).bit_length() + 7 <= counter_bits <= 64:
            raise ValueError(f"counter_bits is {counter_bits}, must be "
                             f"{(word - 1).bit_length() + 7} to 64 with a word of {word}")
        self.connections = connections
        self.word = word
        self.counter_bits = counter_bits
        self.psn_bits = psn_bits
        self.generation_bits = generation_bits
        self.context_bits = max(1, (connections - 1).bit_length())
        self.ring_bits = (word - 1).bit_length()
        super().__init__({
            "operations": In(operation_stream(connections)),
            "records": Out(record_stream(always_ready=True)),
            "generation": Out(generation_bits),
            "busy": Out(1),
            "exhausted": Out(1),
            "exhausted_context": Out(self.context_bits),
        })

    def elaborate(self, platform):
        m = Module()
        p = self._operations(m, (self.operations.valid, self.operations.payload))
        self._generation(m, p)
        self._high_water(m, p)
        self._reach(m, p)
        self._span(m, p)
        self._bitmap(m, p)
        self._counters(m, p, p.get("pending", COUNTED))
        return m

    def _operations(self, m, admitted):
        """Stage 0: the pipeline, with the operation's fields and a mark for each kind."""
        valid, operation = admitted
        p = Pipeline(m, valid)
        kind = Signal(4)
        m.d.comb += kind.eq(Mux(valid, operation.kind, OperationKind.NOTHING))
        for item in OperationKind:
            p.put(f"is_{item.name.lower()}", kind == item, 0, mark=True)
        p.put("touches", (kind != OperationKind.NOTHING) & (kind != OperationKind.MARKER), 0,
              mark=True)
        p.put("raises", valid & operation.raise_generation, 0, mark=True)
        for name in ("context", "psn", "time", "window", "tag", "reasons"):
            p.put(name, operation[name][:self.psn_bits] if name == "psn" else operation[name], 0)
        return p

    def _loop(self, m, p, name, shape, stage, write, *, address="context", depth=None):
        """A state loop that computes at ``stage``, over the contexts or what ``address`` names."""
        loop = StateLoop(shape, depth or self.connections)
        m.submodules[name] = loop
        begin = stage - StateLoop.latency
        m.d.comb += [loop.live.eq(p.get("live", begin)), loop.address.eq(p.get(address, begin)),
                     loop.write.eq(p.get(write, begin))]
        return loop

    def _generation(self, m, p):
        """Stage 3: whether captures were broken off since the context's last request. Requests of
        disabled contexts count too: no epoch is active then, so it makes no difference."""
        m.d.sync += self.generation.eq(self.generation + p.get("raises", HIGH - 2))
        loop = self._loop(m, p, "seen_generation", unsigned(self.generation_bits), HIGH - 1,
                          "is_request")
        m.d.comb += loop.next.eq(self.generation)
        p.put("outdated", loop.state != self.generation, HIGH - 1)

    def _high_water(self, m, p):
        """Stage 4: what becomes of the epoch, and H."""
        is_ = lambda name: p.get(f"is_{name}", HIGH)  # noqa: E731

        settings = self._loop(m, p, "settings", data.StructLayout({"window": 24, "tag": 16}), HIGH,
                              "is_provision")
        m.d.comb += [settings.next.window.eq(p.get("window", HIGH)),
                     settings.next.tag.eq(p.get("tag", HIGH))]
        p.put("W", settings.state.window, HIGH)
        p.put("context_tag", settings.state.tag, HIGH)

        loop = self._loop(m, p, "high", data.StructLayout({
            "not_high": self.psn_bits, "active": 1, "enabled": 1}), HIGH, "touches")
        state, after = loop.state, loop.next
        psn = p.get("psn", HIGH)
        beyond = Signal(self.psn_bits)
        stale = Signal()
        starts = Signal()
        request = Signal()
        violation = Signal()
        closes = Signal()
        m.d.comb += [
            # This is u - 1, with u = psn - H: its sign bit is clear for u from 1 to half the space.
            # The latter breaks the series, and u = 0 moves nothing either way. The complement of H
            # is kept so that it is a mere sum.
            beyond.eq(psn + state.not_high),
            stale.eq(state.active & p.get("outdated", HIGH)),
            request.eq(is_("request") & state.enabled),
            violation.eq(is_("violation") & state.enabled),
            starts.eq(request & (~state.active | stale)),
            closes.eq(is_("close") | is_("remove") | is_("provision") | violation
                      | ((is_("snapshot") | request) & stale)),

            after.not_high.eq(Mux(request & (starts | ~beyond[-1]), ~psn, state.not_high)),
            after.active.eq(request | (state.active & ~closes)),
            after.enabled.eq((state.enabled & ~violation & ~is_("remove")) | is_("provision")),
        ]
        p.put("u", (psn + state.not_high + 1)[:self.psn_bits], HIGH)
        p.put("high_before", ~state.not_high[:self.ring_bits], HIGH)
        p.put("starts", starts, HIGH, mark=True)
        p.put("request", request, HIGH, mark=True)
        p.put("stale", stale, HIGH)
        p.put("was_active", state.active, HIGH)
        p.put("closes", closes & state.active, HIGH, mark=True)
        p.put("reports", is_("snapshot") & state.active, HIGH, mark=True)
        p.put("disables", violation & ~state.active, HIGH, mark=True)
        p.put("violation", violation, HIGH)

    def _reach(self, m, p):
        """Stages 5 and 6: how far the request reaches against W."""
        bits = self.ring_bits
        u, window = p.get("u", REACH), p.get("W", REACH)
        behind = Signal(self.psn_bits)
        m.d.comb += behind.eq(-u)
        p.put("half", u == 1 << (self.psn_bits - 1), REACH)
        p.put("zero", u == 0, REACH)
        p.put("negative", u[-1], REACH)
        p.put("too_far", u > window, REACH)
        p.put("behind", behind, REACH)
        p.put("edge", (window - 1)[:bits], REACH)
        # A move of distance d is clipped when span + d > W - 1, which is span > W - 1 - d. That
        # limit is known before the span is, and is never below -1 for a move within the window.
        p.put("limit", (window + ~u[:bits + 1])[:bits + 1], REACH)
        p.put("distance", u[:bits + 1], REACH)
        p.put("opened_from", (p.get("high_before", REACH) + 1)[:bits], REACH)

        at = SPAN - 1
        half, zero, negative = (p.get(name, at) for name in ("half", "zero", "negative"))
        ahead = p.get("request", at) & ~p.get("starts", at)
        breaks = ahead & (half | (~negative & p.get("too_far", at)))
        p.put("breaks", breaks, at, mark=True)
        p.put("fresh", breaks | p.get("starts", at), at, mark=True)
        p.put("forward", ahead & ~breaks & ~negative & ~zero, at, mark=True)
        p.put("back", ahead & ~breaks & (negative | zero), at, mark=True)
        p.put("far_behind", p.get("behind", at)[bits:].any(), at)

    def _span(self, m, p):
        """Stage 7: how much is retained."""
        bits = self.ring_bits
        loop = self._loop(m, p, "span", unsigned(bits), SPAN, "is_request")
        fresh, forward = p.get("fresh", SPAN), p.get("forward", SPAN)
        distance, edge = p.get("distance", SPAN), p.get("edge", SPAN)
        limit = p.get("limit", SPAN).as_signed()
        left = Signal(signed(bits + 2))
        clipped = left[-1]
        m.d.comb += [
            left.eq(limit - loop.state),
            loop.next.eq(Mux(fresh, 0, Mux(
                forward, Mux(clipped, edge, loop.state + distance), loop.state))),
        ]
        p.put("retained", p.get("back", SPAN) & ~p.get("far_behind", SPAN)
              & (p.get("behind", SPAN)[:bits] <= loop.state), SPAN, mark=True)
        p.put("asked_from", (p.get("high_before", SPAN) - loop.state)[:bits], SPAN)
        # A forward move asks about the positions that fall below L; all else about all retained.
        dropped = loop.state - Mux(forward, limit, -1)
        p.put("asked_count", Mux(forward & ~clipped, 0, dropped)[:bits + 1], SPAN)
        p.put("skips", Mux(forward, distance - 1, 0)[:bits], SPAN)
        p.put("sets", p.get("fresh", SPAN) | forward | p.get("retained", SPAN), SPAN, mark=True)

    def _bitmap(self, m, p, *, address="context", depth=None, opened="skips", write="is_request"):
        """Stage 11: the word. Stages 12 to 16: which positions were there, counted."""
        bits = (self.word - 1).bit_length()
        asked = range_mask(p, "asked", p.get("asked_from", RANGES), p.get("asked_count", RANGES),
                           RANGES, self.word)
        opened = range_mask(p, "opened", p.get("opened_from", RANGES), p.get(opened, RANGES),
                            RANGES, self.word)
        p.put("position", (1 << p.get("psn", BITMAP - 1)[:bits])[:self.word], BITMAP - 1)
        position = p.get("position", BITMAP)

        loop = self._loop(m, p, "bitmap", unsigned(self.word), BITMAP, write, address=address,
                          depth=depth)
        m.d.comb += loop.next.eq((loop.state & ~opened)
                                 | Mux(p.get("sets", BITMAP), position, 0))
        p.put("pending_word", ~loop.state & asked, BITMAP)
        p.put("seen_word", loop.state & position, BITMAP)
        popcount(p, "pending", p.get("pending_word", BITMAP + 1), BITMAP + 1)
        any_set(p, "seen", p.get("seen_word", BITMAP + 1), BITMAP + 1)

    def _counters(self, m, p, pending):
        """Stage 17: the totals of the epoch, and the record of what they were before."""
        at = COUNTED
        forward, retained = p.get("forward", at), p.get("retained", at)
        seen = p.get("seen", at)
        p.put("found", pending, at)
        p.put("adds_expired", Mux(forward, pending, 0), at)
        p.put("adds_skipped", p.get("skips", at), at)
        p.put("adds_filled", retained & ~seen, at)
        p.put("adds_repeated", retained & seen, at)
        p.put("adds_late", p.get("back", at) & ~retained, at)

        totals = ("requests", "skipped", "filled", "expired", "repeated", "late")
        at = COUNTERS
        loop = self._loop(m, p, "counters", data.StructLayout({
            **dict.fromkeys(totals, self.counter_bits),
            "first_time": 64, "last_time": 64, "epoch": 32,
        }), at, "is_request")
        state, after = loop.state, loop.next
        fresh, request = p.get("fresh", at), p.get("request", at)
        m.d.comb += after.eq(state)
        near = Signal(len(totals))
        for i, name in enumerate(totals):
            adds = 1 if name == "requests" else p.get(f"adds_{name}", at)
            with m.If(fresh):
                m.d.comb += after[name].eq(1 if name == "requests" else 0)
            with m.Elif(request):
                m.d.comb += after[name].eq(state[name] + adds)
            m.d.comb += near[i].eq(state[name][-2:].all())
        with m.If(fresh):
            m.d.comb += [after.first_time.eq(p.get("time", at)), after.epoch.eq(state.epoch + 1)]
        with m.If(request):
            m.d.comb += after.last_time.eq(p.get("time", at))
        m.d.sync += [
            self.exhausted.eq(request & ~fresh & near.any()),
            self.exhausted_context.eq(p.get("context", at)),
        ]

        final = p.get("closes", at) | (p.get("breaks", at) & p.get("request", at))
        sequence = final | p.get("reports", at)
        marker, disables = p.get("is_marker", at), p.get("disables", at)
        reasons = Signal(16)
        flag = SequenceFlag
        m.d.comb += reasons.eq(
            Mux(final, flag.finalEpoch, 0)
            | Mux(p.get("violation", at), flag.profileViolation, 0)
            | Mux(final & p.get("stale", at), flag.captureDiscontinuity, 0)
            | Mux(final & p.get("breaks", at), flag.serialDiscontinuity, 0)
            | Mux(final & (p.get("is_close", at) | p.get("is_remove", at)), p.get("reasons", at),
                  0))
        record = self.records.payload
        m.d.sync += [
            self.records.valid.eq(sequence | marker | disables),
            record.eq(0),
            record.kind.eq(Mux(marker, RecordKind.MARKER,
                               Mux(disables, RecordKind.DISABLED, RecordKind.SEQUENCE))),
            record.tag.eq(Mux(marker, p.get("tag", at), p.get("context_tag", at))),
        ]
        with m.If(~marker):
            m.d.sync += [record.context.eq(p.get("context", at)), record.flags.eq(reasons)]
        with m.If(sequence):
            m.d.sync += [
                record.epoch.eq(state.epoch),
                record.window.eq(p.get("W", at)),
                record.pending.eq(Mux(final, 0, p.get("found", at))),
                record.abandoned.eq(Mux(final, p.get("found", at), 0)),
                record.first_time.eq(state.first_time),
                record.last_time.eq(state.last_time),
                *(record[name].eq(state[name]) for name in totals),
            ]
        return m
