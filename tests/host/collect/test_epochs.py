"""Each rule of Collector Processing that stands between reports, by name."""

from collections import Counter

import pytest

from rocetap.collect.epochs import EpochBook
from rocetap.collect.outcomes import EndReason, Outcome, Qualification, State, outcomes
from rocetap.collect.rules import Rule, check
from rocetap.collect.settings import EpochLimits
from support.epoch_bench import NOW, Bench, final, report
from support.ipfix_tools import address, reports


@pytest.fixture(params=["one batch", "report by report"])
def send(request):
    """Sends reports together or one at a time: the same must come of it."""
    def together(*batches, **limits):
        return Bench(**limits).send(*batches)

    def apart(*batches, **limits):
        bench = Bench(**limits)
        for batch in batches:
            bench.send(batch)
        return bench

    return together if request.param == "one batch" else apart


def test_reports_from_one_through_a_final_are_complete(send):
    bench = send(report(1), report(2), final(3))
    assert bench.outcome() is Outcome.complete
    assert bench.latest()["requests"] == 30
    assert bench.rows[1]["reports"] == 3
    assert not bench.counters


def test_an_epoch_without_a_final_is_open_then_incomplete(send):
    bench = send(report(1), report(2))
    assert bench.outcome() is Outcome.open
    bench.take(bench.book.end())
    assert bench.outcome() is Outcome.incomplete
    assert bench.rows[1]["ended"] == EndReason.session_end
    assert bench.latest()["requests"] == 20
    assert len(bench.book) == 0


def test_a_report_gap_qualifies_but_does_not_invalidate(send):
    bench = send(report(1), report(4), final(5))
    assert bench.rows[1]["missing"] == 2
    assert bench.rows[1]["qualifications"] == Qualification.reportGap
    assert bench.latest()["requests"] == 50
    assert bench.outcome() is Outcome.incomplete


def test_a_first_report_above_one_is_a_gap(send):
    bench = send(report(3), final(4))
    assert bench.rows[1]["missing"] == 2
    assert bench.rows[1]["qualifications"] == Qualification.firstReportMissing
    assert bench.outcome() is Outcome.incomplete


def test_an_identical_repeat_of_the_latest_is_ignored(send):
    bench = send(report(1), report(2), report(2), final(3), final(3))
    assert bench.outcome() is Outcome.complete
    assert bench.rows[1]["reports"] == 3
    assert bench.counters == {"report.repeat": 2}


@pytest.mark.parametrize("columns", [
    {"requests": 21}, {"flow_end_ms": 1_700_000_000_501}, {"flags": 0x21}, {"pending": 1,
                                                                           "skipped": 1}])
def test_different_content_under_the_latest_id_invalidates(send, columns):
    bench = send(report(1), report(2), report(2, **columns))
    assert bench.outcome() is Outcome.invalid
    assert bench.rows[1]["rule"] == Rule.CONFLICTING_REPORT
    assert bench.latest()["requests"] == 20
    assert bench.raw == [Rule.CONFLICTING_REPORT]


def test_a_smaller_id_is_stale_and_changes_nothing(send):
    bench = send(report(1), report(2), report(1, requests=99), final(3))
    assert bench.outcome() is Outcome.complete
    assert bench.latest()["requests"] == 30
    assert bench.counters == {"report.stale": 1}


def test_a_stale_report_that_breaks_a_rule_changes_nothing(send):
    bench = send(report(1), report(3), report(2, skipped=5))
    assert bench.outcome() is Outcome.open
    assert bench.counters == {"report.stale": 1, "rule.positions": 1}


@pytest.mark.parametrize("late", [report(4), final(4), report(9, skipped=7)])
def test_nothing_extends_a_final(send, late):
    bench = send(report(1), report(2), final(3), late)
    assert bench.outcome() is Outcome.invalid
    assert bench.rows[1]["rule"] == Rule.AFTER_FINAL
    assert bench.latest()["report_id"] == 3


def test_a_conflict_with_a_final_invalidates(send):
    bench = send(report(1), final(2), final(2, requests=99))
    assert bench.outcome() is Outcome.invalid


@pytest.mark.parametrize(("columns", "rule"), [
    ({"window": 63}, Rule.WINDOW_CHANGED),
    ({"flags": 0}, Rule.GENERATION_CHANGED),
    ({"flow_start_ms": 1_700_000_000_001}, Rule.FLOW_START_CHANGED),
])
def test_what_is_immutable_within_an_epoch(send, columns, rule):
    bench = send(report(1), report(2, **columns))
    assert bench.outcome() is Outcome.invalid
    assert bench.rows[1]["rule"] == rule
    assert bench.latest()["report_id"] == 1


@pytest.mark.parametrize(("name", "first"), [
    ("requests", {}), ("repeated", {}), ("late", {"late": 2}),
    ("skipped", {"skipped": 4, "filled": 1, "expired": 1, "pending": 2}),
    ("filled", {"skipped": 4, "filled": 2, "pending": 2}),
    ("expired", {"skipped": 4, "expired": 2, "pending": 2}),
])
def test_totals_never_decrease(send, name, first):
    lower = dict(first)
    lower[name] = int(report(1, **first)[name][0]) - 1
    if name in ("filled", "expired"):
        lower["pending"] = 3
    if name == "skipped":
        lower["pending"] = 1
    bench = send(report(1, **first),
                 report(2, **({"requests": 10, "repeated": 1} | lower)))
    assert bench.rows[1]["rule"] == Rule.TOTAL_DECREASED
    assert bench.outcome() is Outcome.invalid


def test_equal_totals_and_a_falling_pending_are_fine(send):
    bench = send(report(1, skipped=4, pending=4),
                 report(2, requests=10, repeated=1, skipped=4, expired=4))
    assert bench.outcome() is Outcome.open
    assert not bench.counters


def test_abandoned_rises_only_with_the_final(send):
    bench = send(report(1, skipped=4, pending=4), final(2, skipped=4, abandoned=4))
    assert bench.outcome() is Outcome.complete


def test_a_report_that_breaks_a_rule_by_itself_invalidates_its_epoch(send):
    bench = send(report(1), report(2, skipped=3), final(3))
    assert bench.outcome() is Outcome.invalid
    assert bench.rows[1]["rule"] == Rule.POSITIONS
    assert bench.latest()["report_id"] == 1
    assert bench.counters == {"rule.positions": 1, "epoch.invalid": 1,
                              "report.of_invalid_epoch": 1}
    assert bench.raw == [Rule.POSITIONS]


def test_an_epoch_whose_first_report_breaks_a_rule_is_invalid_and_publishes_nothing(send):
    bench = send(report(1, skipped=3), report(2))
    assert bench.outcome() is Outcome.invalid
    assert bench.rows[1]["reports"] == 0
    assert bench.latest()["skipped"] == 0
    assert bench.latest()["qp"] == 0x012345


def test_a_report_id_of_zero_invalidates(send):
    bench = send(report(1), report(0, requests=20, repeated=0))
    assert bench.rows[1]["rule"] == Rule.REPORT_ID_ZERO


def test_an_epoch_id_of_zero_is_no_epoch(send):
    bench = send(report(1, epoch_id=0))
    assert not bench.rows
    assert bench.counters == {"rule.epoch_id_zero": 1}
    assert bench.book.high_water == 0


KEYS = [{"observation_point": 8}, {"source": address(192, 0, 2, 9)},
        {"destination": address(192, 0, 2, 9)}, {"qp": 5}, {"pkey": 1}, {"vid": 3}, {"cvid": 3},
        {"ipv6": True}]


@pytest.mark.parametrize("columns", KEYS)
def test_a_changed_full_key_under_a_retained_id_is_rejected(send, columns):
    """The namespace is part of the key: it cannot change within an epoch."""
    bench = send(report(1), report(2, **columns), final(2))
    assert bench.counters == {"report.key_changed": 1}
    assert bench.outcome() is Outcome.complete


@pytest.mark.parametrize("flags", [0x0060, 0x8020, 0x0061])
def test_unknown_flag_bits_are_kept_raw_and_not_interpreted(send, flags):
    bench = send(report(1), report(2, flags=flags), final(3))
    assert bench.raw == [Rule.UNKNOWN_FLAGS]
    assert bench.rows[1]["qualifications"] == Qualification.unsupportedFlags
    assert bench.rows[1]["missing"] == 0, "it came, though it was not interpreted"
    assert bench.rows[1]["reports"] == 2
    assert bench.outcome() is Outcome.incomplete
    assert bench.latest()["requests"] == 30


UNKNOWN = {"flags": 0x0060}


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(("then", "counters", "missing", "state"), [
    # an identical repeat of the latest report is ignored, and kept raw once
    ([report(3, **UNKNOWN)], {"report.repeat": 1}, 0, State.OPEN),
    ([report(3, **UNKNOWN), report(3, **UNKNOWN), report(4)], {"report.repeat": 2}, 0, State.OPEN),
    # different content under its id, interpreted or not
    ([report(3, requests=99, **UNKNOWN)], {"epoch.invalid": 1}, 0, State.INVALID),
    ([report(3)], {"epoch.invalid": 1}, 0, State.INVALID),
    ([report(3, flags=0x00A0)], {"epoch.invalid": 1}, 0, State.INVALID),
    # a smaller id is stale
    ([report(2)], {"report.stale": 1}, 0, State.OPEN),
    ([report(1, **UNKNOWN)], {"report.stale": 1}, 0, State.OPEN),
    # a gap is counted from it
    ([report(4)], {}, 0, State.OPEN),
    ([report(6)], {}, 2, State.OPEN),
    ([report(6, **UNKNOWN), report(7)], {}, 2, State.OPEN),
    ([final(4), report(5)], {"epoch.invalid": 1}, 0, State.INVALID),
])
def test_a_report_with_unknown_flags_is_the_latest_of_its_epoch(
        send, then, counters, missing, state, apart):
    bench = send(report(1), report(2), report(3, **UNKNOWN))
    before = Counter(bench.counters)
    if apart:
        for one in then:
            bench.send(one)
    else:
        bench = send(report(1), report(2), report(3, **UNKNOWN), *then)
    seen = bench.counters - before
    del seen["rule.unknown_flags"], seen["report.unsupported_flags"]
    assert seen == counters
    assert bench.rows[1]["missing"] == missing
    assert bench.rows[1]["state"] == state


def test_of_a_first_report_with_unknown_flags_the_next_is_no_first_one(send):
    bench = send(report(1, **UNKNOWN), report(3))
    assert bench.rows[1]["qualifications"] == (Qualification.unsupportedFlags
                                               | Qualification.reportGap)
    assert bench.rows[1]["missing"] == 1
    bench = send(report(2, **UNKNOWN), report(3))
    assert bench.rows[1]["qualifications"] == (Qualification.unsupportedFlags
                                               | Qualification.firstReportMissing)
    assert bench.rows[1]["missing"] == 1


@pytest.mark.parametrize("repeats", [1, 5])
def test_a_repeat_with_unknown_flags_is_kept_raw_once(send, repeats):
    bench = send(report(1), *[report(2, **UNKNOWN)] * (1 + repeats))
    assert bench.raw == [Rule.UNKNOWN_FLAGS]
    bench.send(*[report(2, **UNKNOWN)] * repeats)
    assert bench.raw == [Rule.UNKNOWN_FLAGS]
    bench.send(report(3, **UNKNOWN))
    assert bench.raw == [Rule.UNKNOWN_FLAGS] * 2


@pytest.mark.parametrize("odd", [
    {"epoch_id": 0}, {"epoch_id": 2}, {"qp": 5}, {"report_id": 1}, {"report_id": 3},
    {"report_id": 4, "qp": 1 << 24}])
def test_unknown_flags_are_kept_raw_whatever_becomes_of_the_report(send, odd):
    """Of no epoch, an orphan, of another key, stale, after a final, or wrong besides."""
    bench = send(report(1, epoch_id=1), final(2, epoch_id=1), report(1, epoch_id=3),
                 report(**({"report_id": 1, "flags": 0x60} | odd)))
    assert len(bench.raw) == 1


def test_a_first_report_with_unknown_flags_admits_its_epoch(send):
    """The order of first reports holds for it too: a later report of its epoch is no orphan."""
    bench = send(report(1, flags=0x0060), report(1, epoch_id=2), report(2))
    assert not bench.counters["report.orphan"]
    assert bench.latest()["requests"] == 20
    assert bench.rows[1]["reports"] == 1
    assert bench.book.high_water == 2


def test_an_unknown_id_at_or_below_the_high_water_is_an_orphan(send):
    bench = send(report(1, epoch_id=5), report(1, epoch_id=3), report(2, epoch_id=3))
    assert list(bench.rows) == [5]
    assert bench.counters == {"report.orphan": 2}
    assert bench.book.high_water == 5


def test_ids_need_not_be_consecutive(send):
    bench = send(report(1, epoch_id=5), report(1, epoch_id=500), report(1, epoch_id=501))
    assert sorted(bench.rows) == [5, 500, 501]
    assert not bench.counters


def test_a_retired_epoch_cannot_be_reopened():
    bench = Bench(closed_retention_ms=1000).send(final(1))
    bench.take(bench.book.retire(NOW + 1001))
    assert len(bench.book) == 0
    bench.send(report(2))
    assert bench.counters == {"report.orphan": 1}
    assert bench.outcome() is Outcome.complete


def test_admission_refused_for_resources_advances_the_high_water(send):
    bench = send(*(report(1, epoch_id=n) for n in range(1, 6)), report(2, epoch_id=5),
                 report(2, epoch_id=1), contexts=3)
    assert sorted(bench.rows) == [1, 2, 3]
    assert bench.book.high_water == 5
    assert bench.counters["resource.contexts"] + bench.counters["report.orphan"] == 3
    assert bench.counters["resource.contexts"] >= 2
    assert bench.rows[1]["reports"] == 2


def test_closed_epochs_make_way_before_open_ones():
    bench = Bench(contexts=3)
    bench.send(report(1, epoch_id=1), final(1, epoch_id=2), report(1, epoch_id=3))
    bench.send(report(1, epoch_id=4))
    assert not bench.counters
    bench.send(report(2, epoch_id=1), report(2, epoch_id=2))
    assert bench.counters == {"report.orphan": 1}
    assert bench.outcome(2) is Outcome.complete


def test_the_longest_unseen_make_way_an_eighth_at_a_time():
    bench = Bench(contexts=16)
    for epoch in range(1, 17):
        bench.send(final(1, epoch_id=epoch), now=NOW + epoch)
    bench.send(final(1, epoch_id=3), now=NOW + 100)
    bench.send(report(1, epoch_id=17))
    assert len(bench.book) == 15
    bench.send(*(final(1, epoch_id=epoch) for epoch in range(1, 17)))
    assert bench.counters == {"report.repeat": 15, "report.orphan": 2}
    assert bench.outcome(3) is Outcome.complete


def test_contexts_of_other_domains_count():
    book = EpochBook(EpochLimits(contexts=10), others=lambda: 8)
    result = book.process(reports(5), check(reports(5)), NOW)
    assert len(book) == 2
    assert result.counters == {"resource.contexts": 3}


def test_silence_leaves_an_epoch_incomplete():
    bench = Bench(inactivity_ms=5000).send(report(1), report(1, epoch_id=2))
    bench.send(report(2, epoch_id=2), now=NOW + 4000)
    bench.take(bench.book.retire(NOW + 5000))
    assert len(bench.book) == 2
    bench.take(bench.book.retire(NOW + 5001))
    assert bench.outcome() is Outcome.incomplete
    assert bench.rows[1]["ended"] == EndReason.inactivity
    assert bench.outcome(2) is Outcome.open
    assert bench.counters == {"epoch.inactive": 1}


def test_retirement_keeps_closed_epochs_for_their_retention():
    bench = Bench(closed_retention_ms=1000).send(final(1), report(1, epoch_id=2))
    bench.take(bench.book.retire(NOW + 1000))
    assert len(bench.book) == 2
    bench.send(report(2), now=NOW + 1000)
    assert bench.outcome() is Outcome.invalid


def test_a_million_epochs_leave_no_memory_behind():
    bench, sizes = Bench(contexts=5000), []
    for turn in range(200):
        rows = reports(5000, first_epoch=1 + 5000 * turn, flags=0x21)
        result = bench.book.process(rows, check(rows), NOW + turn)
        assert all((outcomes(rows) == Outcome.complete).all() for rows in result.parts)
        assert not result.counters
        sizes.append(len(bench.book))
    assert bench.book.high_water == 1_000_000
    assert max(sizes) <= 5000
    assert bench.book._table._words.nbytes < 3_000_000
