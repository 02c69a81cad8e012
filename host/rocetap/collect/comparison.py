"""One report against the retained epoch it belongs to: every rule between reports, in order.

This is the careful path, for reports that do not simply continue their epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ..ipfix.records import TOTALS
from ..spec.flags import UNASSIGNED_FLAGS, SequenceFlag
from .outcomes import Qualification, State
from .rules import Rule

__all__ = ["KEY_OCTETS", "Verdict", "compare"]

KEY_OCTETS: Final = 60
"""Octets of a report, from its start, that are its full epoch key."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`counter`: what to count, None for an accepted report. `changed`: whether the epoch's row
    changed. `raw`: the Rule for which the report made its epoch invalid, so it is kept raw."""

    counter: str | None
    changed: bool = False
    raw: Rule | None = None


def compare(row: Any, report: Any, code: Rule) -> Verdict:
    """Applies one report to its epoch's row, an EPOCH record that is written to.

    `code`: the rule the report breaks by itself. The row's key is that of the epoch's first
    sighting; a report with another key is no part of the epoch.
    """
    latest = row["report"]
    if report.tobytes()[:KEY_OCTETS] != latest.tobytes()[:KEY_OCTETS]:
        return Verdict("report.key_changed")
    unknown = bool(report["flags"] & UNASSIGNED_FLAGS)
    if row["state"] == State.INVALID:
        return Verdict("report.of_invalid_epoch")
    if code == Rule.REPORT_ID_ZERO:
        return _invalidate(row, code)
    if report["report_id"] < latest["report_id"]:
        return Verdict("report.stale")
    if report["report_id"] == latest["report_id"]:
        if report.tobytes() == latest.tobytes():
            return Verdict("report.repeat")
        return _invalidate(row, Rule.CONFLICTING_REPORT)
    if row["state"] == State.FINAL:
        return _invalidate(row, Rule.AFTER_FINAL)
    if unknown and code in (Rule.OK, Rule.UNKNOWN_FLAGS):
        row["qualifications"] |= Qualification.unsupportedFlags
        return Verdict("report.unsupported_flags", changed=True)
    broken = code or _broken(row, report)
    if broken:
        return _invalidate(row, Rule(broken))
    _accept(row, report)
    return Verdict(None, changed=True)


def _broken(row: Any, report: Any) -> Rule:
    """The rule between this report and the latest that it breaks; the first accepted report
    breaks none."""
    latest = row["report"]
    if row["reports"] == 0:
        return Rule.OK
    if report["window"] != latest["window"]:
        return Rule.WINDOW_CHANGED
    if (report["flags"] ^ latest["flags"]) & SequenceFlag.generationUnverified:
        return Rule.GENERATION_CHANGED
    if report["flow_start_ms"] != latest["flow_start_ms"]:
        return Rule.FLOW_START_CHANGED
    if any(report[name] < latest[name] for name in TOTALS):
        return Rule.TOTAL_DECREASED
    return Rule.OK


def _accept(row: Any, report: Any) -> None:
    gap = int(report["report_id"]) - int(row["report"]["report_id"]) - 1
    if gap:
        row["missing"] += gap
        row["qualifications"] |= (
            Qualification.firstReportMissing if row["reports"] == 0 else Qualification.reportGap)
    row["report"] = report
    row["reports"] += 1
    if report["flags"] & SequenceFlag.finalEpoch:
        row["state"] = State.FINAL


def _invalidate(row: Any, rule: Rule) -> Verdict:
    row["state"] = State.INVALID
    row["rule"] = rule
    return Verdict("epoch.invalid", changed=True, raw=rule)
