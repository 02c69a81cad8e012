"""The epochs of one Transport Session and Observation Domain: admission, cumulative comparison,
outcomes, retirement (sequence profile, Collector Processing).

A batch is compared as a whole: each report with the one before it of its epoch. Only the epochs
where that does not simply hold (a gap, a repeat, a rule broken) are gone through report by report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..ipfix.records import (
    KEY_WORDS,
    SEQUENCE_REPORT,
    TOTALS,
    Records,
    word_of,
    word_with,
    words,
)
from ..spec.flags import UNASSIGNED_FLAGS, SequenceFlag
from .comparison import compare
from .contexts import ContextTable, as_rows
from .outcomes import EPOCH, EndReason, State
from .rules import Rule
from .settings import EpochLimits

__all__ = ["MAX_EPOCHS", "BookResult", "EpochBook", "Serials"]

MAX_EPOCHS: Final = (1 << 36) - 1
"""Epochs of one Transport Session that can be told apart in the store; more are refused."""

_UNVERIFIED = np.uint16(SequenceFlag.generationUnverified)
_REPORT_WORDS = SEQUENCE_REPORT.itemsize // 8
_ID_WORD = word_of("report_id")
_FLAGS_WORD = word_of("flags")
_TOTAL_WORDS = tuple(map(word_of, TOTALS))
_FINAL_BIT = word_with(flags=SequenceFlag.finalEpoch)
_UNVERIFIED_BIT = word_with(flags=SequenceFlag.generationUnverified)
_LONG_ROUND = 256
"""Reports in a round that are worth a pass of their own."""
_Indices = npt.NDArray[np.intp]


@dataclass
class BookResult:
    """What one batch changed."""

    parts: list[Records] = field(default_factory=list)
    """EPOCH rows to store; of several for one epoch the last counts."""
    counters: Counter[str] = field(default_factory=Counter)
    raw: list[tuple[int, Rule]] = field(default_factory=list)
    """Reports to keep raw, by index in the batch, and why."""
    repeats: set[int] = field(default_factory=set)
    """Of the reports gone through one by one, those that repeat the latest of their epoch."""

    def changed(self, rows: Records) -> None:
        """Adds rows, if there are any."""
        if len(rows):
            self.parts.append(rows)


class Serials:
    """Numbers for the epochs of one Transport Session, over all its domains."""

    def __init__(self) -> None:
        self.given = 0

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """The next `count` numbers; the first is 1."""
        first = self.given + 1
        self.given += count
        return np.arange(first, first + count, dtype=np.uint64)


class EpochBook:
    """Retained epochs. `high_water` is the highest epoch id ever admitted or refused here.

    `others`: how many contexts the other domains of the session hold; the limit is for all.
    `serials`: the session's.
    """

    def __init__(
        self, limits: EpochLimits, others: Callable[[], int] = lambda: 0,
        serials: Serials | None = None,
    ) -> None:
        self.limits, self._others = limits, others
        self._serials = serials or Serials()
        self.high_water = 0
        self._table = ContextTable()

    def __len__(self) -> int:
        return len(self._table)

    def process(
        self, reports: Records, codes: npt.NDArray[np.uint8], now_ms: int,
        set_ends: Sequence[int] = (),
    ) -> BookResult:
        """Takes a batch in the order received. `codes`: the Rule each breaks by itself.

        `set_ends`: where each Data Set of the batch ends. While there is room the batch is taken
        as a whole; where it runs short, Set by Set, so that nothing depends on how the transport
        cut the stream into batches: what ends in a Set makes room for what begins in it.
        """
        result = BookResult()
        keyed = codes != Rule.EPOCH_ID_ZERO
        if not keyed.all():
            result.counters[_counter(Rule.EPOCH_ID_ZERO)] += int((~keyed).sum())
        indices = np.flatnonzero(keyed)
        short = self._is_short(reports["epoch_id"][indices])
        stretches = np.split(indices, np.searchsorted(indices, set_ends)) if short else [indices]
        for stretch in stretches:
            for order in _parts(stretch, reports["epoch_id"]):
                if short:
                    slots, known = self._table.find(reports["epoch_id"][order])
                    self._compare(reports, codes, order[known], slots[known], now_ms, result)
                    order = order[~known]
                slots, order = self._find_or_admit(reports, order, now_ms, result.counters)
                self._compare(reports, codes, order, slots, now_ms, result)
        # Whatever became of it, a report with unassigned flag bits is preserved, once.
        unknown = np.flatnonzero(reports["flags"] & UNASSIGNED_FLAGS).tolist()
        if unknown:
            kept = {index for index, _ in result.raw} | result.repeats
            result.raw += [(index, Rule.UNKNOWN_FLAGS) for index in unknown if index not in kept]
        return result

    def retire(self, now_ms: int) -> BookResult:
        """Forgets closed epochs after their retention, and silent ones as incomplete."""
        rows = self._table.rows
        age = np.maximum(now_ms - rows["last_seen_ms"].astype(np.int64), 0)
        active = rows["state"] == State.OPEN
        silent = active & (age > self.limits.inactivity_ms)
        rows["ended"][silent] = EndReason.inactivity
        result = BookResult()
        result.changed(self._table.take(silent))
        if silent.any():
            result.counters["epoch.inactive"] += int(silent.sum())
        self._table.keep(~silent & (active | (age <= self.limits.closed_retention_ms)))
        return result

    def end(self) -> BookResult:
        """The Transport Session has ended: epochs without a final report stay incomplete."""
        rows = self._table.rows
        cut = rows["state"] == State.OPEN
        rows["ended"][cut] = EndReason.session_end
        result = BookResult()
        result.changed(self._table.take(cut))
        self._table.keep(np.zeros(len(rows), np.bool_))
        return result

    def _find_or_admit(
        self, reports: Records, order: _Indices, now_ms: int, counters: Counter[str],
    ) -> tuple[_Indices, _Indices]:
        """(slot, index in the batch) of each report that has a context, epochs side by side."""
        ids = reports["epoch_id"][order]
        slots, known = self._table.find(ids)
        if known.all():
            return slots, order
        unknown = order[_firsts(ids) & ~known]
        unknown.sort()
        refused = self._admit(_taken(reports, unknown), now_ms)
        slots, known = self._table.find(ids)
        # Further reports of an epoch that was refused are orphans, in this batch or in another.
        for name, count in (("resource.contexts", refused),
                            ("report.orphan", int((~known).sum()) - refused)):
            if count:
                counters[name] += count
        return slots[known], order[known]

    def _is_short(self, ids: npt.NDArray[np.uint64]) -> bool:
        """Whether there may be no room for all epochs of a batch that are not here."""
        free = min(self.limits.contexts - self._others() - len(self._table),
                   MAX_EPOCHS - self._serials.given)
        if len(ids) <= free:
            return False
        return len(np.unique(ids[~self._table.find(ids)[1]])) > free

    def _admit(self, firsts: Records, now_ms: int) -> int:
        """New contexts for first sightings in the order received, of ids above the high water;
        the high water rises whether there is room or not. How many there was no room for."""
        ids = firsts["epoch_id"]
        before = np.maximum.accumulate(
            np.concatenate([np.array([self.high_water], np.uint64), ids]))
        admitted = _taken(firsts, np.flatnonzero(ids > before[:-1]))
        self.high_water = int(before[-1])
        room = self._room(len(admitted))
        refused = len(admitted) - room
        admitted = admitted[:room]
        new = np.zeros(len(admitted), EPOCH)
        new["last_seen_ms"] = now_ms
        new["serial"] = self._serials.take(len(admitted))
        moved = words(new)
        moved[:, :KEY_WORDS] = words(admitted)[:, :KEY_WORDS]
        as_rows(moved)["report"]["flags"] = admitted["flags"] & _UNVERIFIED
        self._table.append(as_rows(moved))
        return refused

    def _room(self, wanted: int) -> int:
        """How many new contexts fit, after closed ones made way, the longest unseen first."""
        limit = max(0, self.limits.contexts - self._others())
        wanted = min(wanted, MAX_EPOCHS - self._serials.given)
        if len(self._table) + wanted > limit:
            rows = self._table.rows
            closed = np.flatnonzero(rows["state"] != State.OPEN)
            # More than asked for, so that the array is not moved for each batch.
            spare = min(len(closed), max(wanted, limit // 8))
            oldest = closed[np.argsort(rows["last_seen_ms"][closed], kind="stable")[:spare]]
            kept = np.ones(len(rows), np.bool_)
            kept[oldest] = False
            self._table.keep(kept)
        return max(0, min(wanted, limit - len(self._table)))

    def _compare(
        self, reports: Records, codes: npt.NDArray[np.uint8], order: _Indices, slots: _Indices,
        now_ms: int, result: BookResult,
    ) -> None:
        if not len(order):
            return
        moved = words(_taken(reports, order))
        alone = bool((slots[1:] > slots[:-1]).all())
        starts = np.arange(len(order)) if alone else np.flatnonzero(_firsts(slots))
        taken = slots if alone else slots[starts]
        rows = self._table.take(taken)
        held = words(rows)
        # Each report against the one before it: its neighbour in the batch, or the epoch's latest.
        plain = codes[order] == Rule.OK
        goes_on = _continues(held[:, :_REPORT_WORDS], moved if alone else moved[starts])
        goes_on &= (rows["state"] == State.OPEN) & (rows["unread_id"] == 0)
        if alone:
            plain &= goes_on
            ends, last = starts + 1, moved
        else:
            plain[1:] &= _continues(moved[:-1], moved[1:]) | (slots[1:] != slots[:-1])
            plain[starts] &= goes_on
            ends = np.append(starts[1:], len(order))
            last = moved[ends - 1]
        good = None if plain.all() else np.logical_and.reduceat(plain, starts)
        if good is not None:
            careful = zip(starts[~good], ends[~good], strict=True)
            taken, held, last = taken[good], held[good], last[good]
            starts, ends = starts[good], ends[good]
        held[:, :_REPORT_WORDS] = last
        rows = as_rows(held)
        rows["state"] = held[:, _FLAGS_WORD] & _FINAL_BIT != 0
        rows["reports"] += np.uint64(1) if alone else (ends - starts).astype(np.uint64)
        rows["last_seen_ms"] = now_ms
        self._table.put(taken, held)
        result.changed(rows)
        if good is not None:
            table = self._table.rows
            slow = [slots[begin] for begin, end in careful
                    if self._one_by_one(reports, codes, order[begin:end], table[slots[begin]],
                                        now_ms, result)]
            result.changed(as_rows(self._table.words[np.array(slow, np.intp)]))

    def _one_by_one(
        self, reports: Records, codes: npt.NDArray[np.uint8], indices: _Indices, row: Any,
        now_ms: int, result: BookResult,
    ) -> bool:
        """Goes through the reports of one epoch; whether its row changed."""
        changed = False
        for index in indices.tolist():
            code = Rule(codes[index])
            verdict = compare(row, reports[index], code)
            if code != Rule.OK:
                result.counters[_counter(code)] += 1
            if verdict.counter is not None:
                result.counters[verdict.counter] += 1
            if verdict.counter != "report.key_changed":
                row["last_seen_ms"] = now_ms
            if verdict.counter == "report.repeat":
                result.repeats.add(index)
            if verdict.raw is not None:
                result.raw.append((index, verdict.raw))
            changed |= verdict.changed
        return changed


def _continues(
    before: npt.NDArray[np.uint64], after: npt.NDArray[np.uint64],
) -> npt.NDArray[np.bool_]:
    """Where a report, as words, plainly continues the one before: same key, window, flow start and
    generation qualification, next id, no total below, and the one before not final."""
    plain: npt.NDArray[np.bool_] = (
        after[:, _ID_WORD] == before[:, _ID_WORD] + np.uint64(1))
    for column in range(KEY_WORDS):
        plain &= before[:, column] == after[:, column]
    flags = before[:, _FLAGS_WORD]
    plain &= (flags & _FINAL_BIT) | ((flags ^ after[:, _FLAGS_WORD]) & _UNVERIFIED_BIT) == 0
    for column in _TOTAL_WORDS:
        plain &= after[:, column] >= before[:, column]
    return plain


def _parts(order: _Indices, epoch_ids: npt.NDArray[np.uint64]) -> list[_Indices]:
    """A batch in parts where the reports of one epoch stand side by side.

    An exporter sends its epochs in turn, round after round: each round is taken as it stands.
    Where rounds are short, the whole batch is brought into the order of the ids instead.
    """
    ids = epoch_ids[order]
    cuts = np.flatnonzero(ids[1:] <= ids[:-1]) + 1
    if len(cuts) <= len(order) // _LONG_ROUND:
        return [part for part in np.split(order, cuts) if len(part)]
    return [order[np.argsort(ids, kind="stable")]]


def _taken(reports: Records, indices: _Indices) -> Records:
    """Some reports: neighbours as they stand, others moved as words, which field by field would
    take several times as long."""
    if len(indices) and (indices[1:] - indices[:-1] == 1).all():
        return reports[indices[0]:indices[-1] + 1]
    taken: Records = words(reports)[indices].view(reports.dtype)
    return taken.reshape(-1)


def _firsts(groups: npt.NDArray[np.intp] | npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """True where a new group begins; equal numbers stand side by side."""
    first = np.ones(len(groups), np.bool_)
    first[1:] = groups[1:] != groups[:-1]
    return first


def _counter(rule: Rule) -> str:
    return f"rule.{rule.name.lower()}"
