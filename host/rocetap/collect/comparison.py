"""One report against the retained epoch it belongs to: every rule between reports, in order.

This is the careful path, for reports that do not simply continue their epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
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
    latest_id = int(row["unread_id"] or latest["report_id"])
    if row["state"] == State.INVALID:
        return Verdict("report.of_invalid_epoch")
    if code == Rule.REPORT_ID_ZERO:
        return _invalidate(row, code)
    if report["report_id"] < latest_id:
        return Verdict("report.stale")
    if report["report_id"] == latest_id:
        if _digest(report) == row["unread_digest"] if row["unread_id"] else (
                report.tobytes() == latest.tobytes()):
            return Verdict("report.repeat")
        return _invalidate(row, Rule.CONFLICTING_REPORT)
    if row["state"] == State.FINAL:
        return _invalidate(row, Rule.AFTER_FINAL)
    if code in (Rule.OK, Rule.UNKNOWN_FLAGS) and report["flags"] & UNASSIGNED_FLAGS:
        # Not interpreted, but it is the latest of the series: what follows is counted from it.
        _note_gap(row, report, latest_id)
        row["qualifications"] |= Qualification.unsupportedFlags
        row["unread_id"], row["unread_digest"] = report["report_id"], _digest(report)
        return Verdict("report.unsupported_flags", changed=True)
    broken = code or _broken(row, report)
    if broken:
        return _invalidate(row, Rule(broken))
    _note_gap(row, report, latest_id)
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


def _note_gap(row: Any, report: Any, latest_id: int) -> None:
    """`latest_id`: of the latest report of any kind, 0 before the first."""
    gap = int(report["report_id"]) - latest_id - 1
    if gap:
        row["missing"] += gap
        row["qualifications"] |= (
            Qualification.reportGap if latest_id else Qualification.firstReportMissing)


def _accept(row: Any, report: Any) -> None:
    row["unread_id"] = row["unread_digest"] = 0
    row["report"] = report
    row["reports"] += 1
    if report["flags"] & SequenceFlag.finalEpoch:
        row["state"] = State.FINAL


def _digest(report: Any) -> int:
    return int.from_bytes(blake2b(report.tobytes(), digest_size=8).digest())


def _invalidate(row: Any, rule: Rule) -> Verdict:
    row["state"] = State.INVALID
    row["rule"] = rule
    return Verdict("epoch.invalid", changed=True, raw=rule)
