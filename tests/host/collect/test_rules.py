import numpy as np
import pytest

from rocetap.collect.rules import Rule, check
from support.ipfix_tools import reports

MOST = (1 << 64) - 1
FINAL = 0x21


def _rule(**columns):
    """The rule one report breaks, with a good one on either side that must stay good."""
    rows = reports(3)
    for name, value in columns.items():
        rows[name][1] = value
    codes = check(rows)
    assert codes[[0, 2]].tolist() == [0, 0]
    return Rule(codes[1])


@pytest.mark.parametrize("columns", [
    {},
    {"epoch_id": MOST, "report_id": MOST},
    {"qp": (1 << 24) - 1},
    {"window": 1}, {"window": 1 << 22},
    {"vid": 4095, "cvid": 4095},
    {"skipped": 63, "pending": 63},
    {"window": 4, "skipped": 10, "filled": 2, "expired": 5, "pending": 3},
    {"flags": 0x3F, "skipped": 9, "abandoned": 9},
    {"flags": 1},
    {"requests": 1},
    {"requests": 10, "repeated": 3, "late": 4, "filled": 2, "skipped": 2},
    {"requests": MOST, "repeated": MOST - 1},
    {"skipped": MOST, "expired": MOST},
    {"flow_end_ms": 1_700_000_000_000},
])
def test_reports_that_keep_every_rule(columns):
    assert _rule(**columns) is Rule.OK


@pytest.mark.parametrize(("rule", "columns"), [
    (Rule.EPOCH_ID_ZERO, {"epoch_id": 0}),
    (Rule.REPORT_ID_ZERO, {"report_id": 0}),
    (Rule.QP_RANGE, {"qp": 1 << 24}),
    (Rule.QP_RANGE, {"qp": 1 << 31}),
    (Rule.WINDOW_RANGE, {"window": 0}),
    (Rule.WINDOW_RANGE, {"window": (1 << 22) + 1}),
    (Rule.VLAN_RANGE, {"vid": 4096}),
    (Rule.VLAN_RANGE, {"cvid": 4096}),
    (Rule.UNKNOWN_FLAGS, {"flags": 0x0060}),
    (Rule.UNKNOWN_FLAGS, {"flags": 0x8000}),
    (Rule.REASON_WITHOUT_FINAL, {"flags": 0x22}),
    (Rule.REASON_WITHOUT_FINAL, {"flags": 0x04}),
    (Rule.REASON_WITHOUT_FINAL, {"flags": 0x08}),
    (Rule.REASON_WITHOUT_FINAL, {"flags": 0x10}),
    (Rule.PENDING_IN_FINAL, {"flags": FINAL, "pending": 1, "skipped": 1}),
    (Rule.ABANDONED_BEFORE_FINAL, {"abandoned": 1, "skipped": 1}),
    (Rule.PENDING_RANGE, {"pending": 64, "skipped": 64}),
    (Rule.PENDING_RANGE, {"window": 1, "pending": 1, "skipped": 1}),
    (Rule.POSITIONS, {"skipped": 1}),
    (Rule.POSITIONS, {"pending": 1}),
    (Rule.POSITIONS, {"filled": 1}),
    (Rule.POSITIONS, {"expired": 1}),
    (Rule.POSITIONS, {"flags": FINAL, "abandoned": 1}),
    (Rule.POSITIONS, {"skipped": 2, "expired": MOST, "filled": 3}),
    (Rule.POSITIONS, {"skipped": 0, "expired": MOST, "filled": 1}),
    (Rule.REQUESTS_ZERO, {"requests": 0}),
    (Rule.PACKETS, {"requests": 10, "repeated": 10}),
    (Rule.PACKETS, {"requests": 10, "late": 10}),
    (Rule.PACKETS, {"requests": 10, "filled": 10, "skipped": 10}),
    (Rule.PACKETS, {"requests": 10, "repeated": 4, "late": 4, "filled": 2, "skipped": 2}),
    (Rule.PACKETS, {"requests": 10, "repeated": MOST, "late": 2}),
    (Rule.FLOW_TIMES, {"flow_end_ms": 1_699_999_999_999}),
])
def test_each_rule(rule, columns):
    assert _rule(**columns) is rule


def test_of_a_report_with_unknown_flags_only_identity_and_ranges_are_checked():
    assert _rule(flags=0x0060, skipped=5, pending=99) is Rule.UNKNOWN_FLAGS
    assert _rule(flags=0x0060, qp=1 << 24) is Rule.QP_RANGE


@pytest.mark.parametrize("seed", [1, 2])
def test_arithmetic_against_unbounded_integers(seed):
    """Random counters near all bounds, against the relations written with Python's integers."""
    rng = np.random.default_rng(seed)
    pool = np.array([0, 1, 2, 3, 63, 64, MOST // 2, MOST - 1, MOST], np.uint64)
    rows = reports(4000)
    for name in ("skipped", "filled", "expired", "abandoned", "repeated", "requests", "late"):
        rows[name] = rng.choice(pool, len(rows))
    rows["pending"] = rng.integers(0, 3, len(rows))
    rows["flags"] = rng.choice([0x20, 0x21], len(rows))
    # Half of them with positions that add up.
    for row in rows[::2]:
        total = sum(int(row[n]) for n in ("filled", "expired", "abandoned", "pending"))
        row["skipped"] = total if total <= MOST else row["skipped"]
    good = check(rows) == Rule.OK
    expected = []
    for row in rows:
        r = {name: int(row[name]) for name in rows.dtype.names
             if rows.dtype[name].kind == "u"}
        final = r["flags"] & 1
        expected.append(
            r["skipped"] == r["filled"] + r["expired"] + r["abandoned"] + r["pending"]
            and r["repeated"] + r["late"] + r["filled"] <= r["requests"] - 1
            and (r["pending"] == 0 if final else r["abandoned"] == 0))
    assert good.tolist() == expected
    assert 0 < sum(expected) < len(expected)
