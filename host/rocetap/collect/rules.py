"""Rules that one report must meet by itself (sequence profile, Collector Processing and the
relations of the Bounded Sequence Observation Algorithm), on whole arrays."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from ..ipfix.records import Records, word_of, word_with, words
from ..spec.flags import CLOSURE_REASONS, UNASSIGNED_FLAGS, SequenceFlag

__all__ = ["MAX_WINDOW", "Rule", "check"]

MAX_WINDOW: Final = 1 << 22
_FINAL: Final = int(SequenceFlag.finalEpoch)

_WORD: Final = {name: word_of(name) for name in (
    "epoch_id", "qp", "window", "report_id", "flags", "flow_start_ms", "flow_end_ms", "skipped",
    "filled", "expired", "abandoned", "repeated", "requests", "late")}
_FINAL_BIT: Final = word_with(flags=_FINAL)
_UNASSIGNED: Final = word_with(flags=UNASSIGNED_FLAGS)
_REASONS: Final = word_with(flags=CLOSURE_REASONS)
_PENDING: Final = word_with(pending=(1 << 32) - 1)
_WINDOW: Final = word_with(window=(1 << 32) - 1)
_TOO_HIGH_IN_QP: Final = word_with(qp=0xFF00_0000, vid=0xF000)
_TOO_HIGH_IN_CVID: Final = word_with(cvid=0xF000)
_LARGE: Final = np.uint64(60)


def _shift(mask: np.uint64) -> np.uint64:
    return np.uint64((int(mask) & -int(mask)).bit_length() - 1)


_PENDING_SHIFT, _WINDOW_SHIFT = _shift(_PENDING), _shift(_WINDOW)

Mask = npt.NDArray[np.bool_]


class Rule(IntEnum):
    """Which rule a report breaks first; the names are what counters and the store show."""

    OK = 0
    # of the report itself
    EPOCH_ID_ZERO = 1
    REPORT_ID_ZERO = 2
    QP_RANGE = 3
    WINDOW_RANGE = 4
    VLAN_RANGE = 5
    UNKNOWN_FLAGS = 6
    REASON_WITHOUT_FINAL = 7
    PENDING_IN_FINAL = 8
    ABANDONED_BEFORE_FINAL = 9
    PENDING_RANGE = 10
    POSITIONS = 11
    REQUESTS_ZERO = 12
    PACKETS = 13
    FLOW_TIMES = 14
    # between reports of one epoch
    CONFLICTING_REPORT = 20
    AFTER_FINAL = 21
    WINDOW_CHANGED = 22
    GENERATION_CHANGED = 23
    FLOW_START_CHANGED = 24
    TOTAL_DECREASED = 25


def check(reports: Records) -> npt.NDArray[np.uint8]:
    """The first rule each report breaks, 0 for none: shape (reports,).

    Of a report with unassigned flag bits only identity and ranges are checked: what its counters
    mean is not known.
    """
    codes = np.zeros(len(reports), np.uint8)
    odd = np.flatnonzero(_odd(words(reports)))
    if len(odd):
        codes[odd] = _first_broken(words(reports)[odd].view(reports.dtype).reshape(-1))
    return codes


def _odd(report: npt.NDArray[np.uint64]) -> Mask:
    """The reports, as words, that may break a rule: all that do, and those with numbers so large
    that a sum could wrap. Few passes, as nearly all reports break none."""
    column = {name: report[:, word] for name, word in _WORD.items()}
    flags = column["flags"]
    pending = flags & _PENDING
    pending >>= _PENDING_SHIFT
    window = column["window"] & _WINDOW
    window >>= _WINDOW_SHIFT
    abandoned, filled, expired = column["abandoned"], column["filled"], column["expired"]
    repeated, late, requests = column["repeated"], column["late"], column["requests"]
    final = flags & _FINAL_BIT != 0
    odd: Mask = (column["qp"] & _TOO_HIGH_IN_QP) | (column["window"] & _TOO_HIGH_IN_CVID) != 0
    odd |= (flags & _UNASSIGNED) | ((filled | expired | abandoned | repeated | late) >> _LARGE) != 0
    odd |= (column["epoch_id"] == 0) | (column["report_id"] == 0)
    odd |= (pending >= window) | (window > MAX_WINDOW)
    odd |= np.where(final, pending, (flags & _REASONS) | abandoned) != 0
    odd |= column["skipped"] != filled + expired + abandoned + pending
    odd |= repeated + late + filled >= requests
    odd |= column["flow_end_ms"] < column["flow_start_ms"]
    return odd


def _first_broken(reports: Records) -> npt.NDArray[np.uint8]:
    codes = np.zeros(len(reports), np.uint8)

    def rule(code: Rule, broken: Mask) -> None:
        if broken.any():
            codes[broken & (codes == 0)] = code

    window, flags, pending = reports["window"], reports["flags"], reports["pending"]
    rule(Rule.EPOCH_ID_ZERO, reports["epoch_id"] == 0)
    rule(Rule.REPORT_ID_ZERO, reports["report_id"] == 0)
    rule(Rule.QP_RANGE, reports["qp"] >> 24 != 0)
    rule(Rule.WINDOW_RANGE, (window == 0) | (window > MAX_WINDOW))
    rule(Rule.VLAN_RANGE, (reports["vid"] | reports["cvid"]) >> 12 != 0)
    rule(Rule.UNKNOWN_FLAGS, flags & UNASSIGNED_FLAGS != 0)
    final = flags & _FINAL != 0
    abandoned = np.ascontiguousarray(reports["abandoned"])
    rule(Rule.REASON_WITHOUT_FINAL, ~final & (flags & CLOSURE_REASONS != 0))
    rule(Rule.PENDING_IN_FINAL, final & (pending != 0))
    rule(Rule.ABANDONED_BEFORE_FINAL, ~final & (abandoned != 0))
    rule(Rule.PENDING_RANGE, pending >= window)
    filled, requests = np.ascontiguousarray(reports["filled"]), reports["requests"]
    rule(Rule.POSITIONS, _is_not_sum(
        reports["skipped"], filled, reports["expired"], abandoned, pending))
    rule(Rule.REQUESTS_ZERO, requests == 0)
    rule(Rule.PACKETS, _left(
        requests - np.uint64(1), reports["repeated"], reports["late"], filled)[1])
    rule(Rule.FLOW_TIMES, reports["flow_end_ms"] < reports["flow_start_ms"])
    return codes


def _left(
    total: npt.NDArray[np.uint64], *parts: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint64], Mask]:
    """What is left of `total` after its parts, and where they are more than it. Nothing wraps
    unseen: each part is compared before it is taken off."""
    over = np.zeros(len(total), np.bool_)
    left = total
    for part in parts:
        over |= part > left
        left = left - part
    return left, over


def _is_not_sum(total: npt.NDArray[np.uint64], *parts: npt.NDArray[np.uint64]) -> Mask:
    left, over = _left(total, *parts)
    over |= left != 0
    return over
