"""The window engine does what the profile's table says, step by step: it equals ReferenceStep.

And the reference's reports satisfy the accounting relations, always (Bounded Sequence Observation
Algorithm), so the engine's do as far as the two are proved equal.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Elaboratable, Module, Signal

from rocetap.spec.records import RecordKind
from rocetap_hdl import loop, mask, window
from support.formal import deep, free, mutant, prove, refute
from support.reference_step import COUNTERS, ReferenceStep

SIZES = {"connections": 2, "psn_bits": 4, "counter_bits": 9, "generation_bits": 2}
WORD = 4
LATENCY = window.WindowEngine.latency

REPORTS = "a record comes when the reference says so, only"
RECORD = "the record is the reference's"


class SameAsReference(Elaboratable):
    """Engine and reference side by side, fed the same operations, for a context that may be any.

    What is assumed: windows are what the register file lets through, 1 to the word; an epoch sees
    fewer discontinuities in a row than the (narrow) generation number can tell apart; times are
    small, they are only carried.
    """

    def __init__(self, module=window):
        self._dut = module.WindowEngine(word=WORD, **SIZES)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self._dut
        m.submodules.reference = reference = ReferenceStep(**SIZES)
        ask = dut.operations.payload
        watched = Signal.like(ask.context)
        free(m, dut)
        m.d.comb += [
            watched.eq(AnyConst(watched.shape())),
            reference.live.eq(dut.operations.valid),
            reference.here.eq(ask.context == watched),
            reference.operation.eq(ask),
            Assume((ask.window >= 1) & (ask.window <= WORD)),
            Assume(ask.psn[SIZES["psn_bits"]:] == 0),
            Assume(ask.time[2:] == 0),
            Assume(~reference.state.active | ~reference.interruptions[-1]),
        ]
        due = Cat(reference.live & reference.here, reference.reports, reference.record.as_value())
        for clock in range(LATENCY):
            later = Signal(due.shape(), name=f"due_{clock + 1}")
            m.d.sync += later.eq(due)
            due = later
        here, reports, record = due[0], due[1], due[2:]
        with m.If(here):
            m.d.comb += Assert(dut.records.valid == reports, REPORTS)
            with m.If(reports):
                m.d.comb += Assert(dut.records.payload.as_value() == record, RECORD)
        return m


def test_every_operation_does_what_the_reference_does():
    """The records of any 5 operations, one a clock: to 23 clocks, 18 of them the pipeline's.

    `make prove`: any 7."""
    prove(SameAsReference(), depth=LATENCY + deep(5, 7), timeout=deep(240, 3600))


def with_broken(name, *change):
    """An engine whose loops or masks are broken."""
    parts = {"StateLoop": (loop, "StateLoop"), "range_mask": (mask, "range_mask")}
    module, member = parts[name]
    return mutant(window, **{name: getattr(mutant(module, change), member)})


BROKEN = {
    "window_one_too_short": (mutant(window, ("u > window", "u >= window")), REPORTS),
    "half_space_is_late": (mutant(window, ("ahead & (half |", "ahead & (0 |")), REPORTS),
    "discontinuity_joined": (mutant(window, ("(~state.active | stale)", "~state.active")), RECORD),
    "violation_goes_on": (mutant(window, ("state.enabled & ~violation & ~", "state.enabled & ~")),
                          REPORTS),
    "forwarding_dropped": (with_broken("StateLoop", "Mux(hits[0], result,", "Mux(0, result,"),
                           REPORTS),
}
BROKEN_COUNTS = {
    "skips_one_more": (mutant(window, ("Mux(forward, distance - 1, 0)[:bits]",
                                       "Mux(forward, distance, 0)[:bits]")), RECORD),
    "mask_cut_at_the_wrap": (with_broken("range_mask", "Mux(wraps, above | ~beyond, above",
                                         "Mux(wraps, above, above"), RECORD),
}


def test_broken_engines_are_found():
    """By the third operation: to 21 clocks."""
    refute({name: (SameAsReference(module), broken)
            for name, (module, broken) in BROKEN.items()}, depth=LATENCY + 3)


def test_broken_counts_are_found():
    """By the fourth operation, the first that reports a forward move: to 22 clocks."""
    refute({name: (SameAsReference(module), broken)
            for name, (module, broken) in BROKEN_COUNTS.items()}, depth=LATENCY + 4)


SUM = "skipped = filled + expired + abandoned + pending"
BOUND = "pending is at most W - 1"
REQUESTS = "repeated + late + filled is at most requests - 1"
PHASE = "a final report has nothing pending, another nothing abandoned"
SOUND = "the retained positions are a run of at most W that ends with H, which is SEEN"


class Accounts(Elaboratable):
    """The reference's reports. What is assumed: no counter passes three quarters of its width,
    where the engine asks for the epoch to be closed."""

    def __init__(self, *, psn_bits=4, pending_counts=1):
        self._reference = ReferenceStep(connections=1, psn_bits=psn_bits, counter_bits=9,
                                        generation_bits=2)
        self._pending_counts = pending_counts

    def elaborate(self, platform):
        m = Module()
        m.submodules.reference = reference = self._reference
        now, record = reference.state, reference.record
        free(m, reference)
        m.d.comb += [
            Assume((reference.operation.window >= 1)
                   & (reference.operation.window <= 1 << (reference.psn_bits - 2))),
            *(Assume(now.signals[name][-2:] != 3) for name in COUNTERS),
        ]
        with m.If(reference.reports & (record.kind == RecordKind.SEQUENCE)):
            m.d.comb += [
                Assert(record.skipped == record.filled + record.expired
                       + self._pending_counts * (record.abandoned + record.pending), SUM),
                Assert(record.pending <= record.window - 1, BOUND),
                Assert(record.repeated + record.late + record.filled <= record.requests - 1,
                       REQUESTS),
                Assert(((record.flags[0] == 1) & (record.pending == 0))
                       | ((record.flags[0] == 0) & (record.abandoned == 0)), PHASE),
            ]

        # For the induction.
        pending = reference.count(now.pending)
        kept = now.seen | now.pending
        with m.If(now.enabled):
            m.d.comb += Assert((now.window >= 1)
                               & (now.window <= 1 << (reference.psn_bits - 2)), SOUND)
        with m.If(now.active):
            m.d.comb += [
                Assert(now.skipped == now.filled + now.expired + pending, SUM),
                Assert(now.repeated + now.late + now.filled + now.forwards + 1 == now.requests,
                       REQUESTS),
                Assert(now.enabled, SOUND),
                Assert(now.seen.bit_select(now.H, 1), SOUND),
                Assert((now.seen & now.pending) == 0, SOUND),
                Assert(pending <= now.window - 1, BOUND),
            ]
            for position in range(len(kept)):
                below = Signal(reference.psn_bits, name=f"below_{position}")
                m.d.comb += [
                    below.eq(now.H - position),
                    Assert(~kept[position] | ((below < now.window)
                           & ((below == 0) | kept[(position + 1) % len(kept)])), SOUND),
                ]
        return m


def test_accounts_always_balance():
    """By induction over 1 clock: the three relations in every report, W up to 4."""
    prove(Accounts(), depth=1, induction=True)


def test_other_accounts_do_not():
    """To 6 clocks: an epoch with something pending in its report."""
    refute({"pending_forgotten": (Accounts(pending_counts=0), SUM)}, depth=6)
