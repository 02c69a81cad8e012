"""The retained epochs as one array in the order of their ids.

Admission only takes ids above all before, so a new context goes to the end and a look-up is a
binary search.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..ipfix.records import Records, words
from .outcomes import EPOCH

__all__ = ["ContextTable", "as_rows"]

_WORDS = EPOCH.itemsize // 8
_SMALLEST = 64


class ContextTable:
    """EPOCH rows sorted by epoch id, in memory that grows and shrinks with their number.

    Rows are moved as 64-bit words: `words` and `rows` are two views of the same memory. Rows that
    leave at the front only move the beginning on.
    """

    def __init__(self) -> None:
        self._begin = self._end = 0
        self._ids: npt.NDArray[np.uint64] = np.zeros(_SMALLEST, np.uint64)
        self._words: npt.NDArray[np.uint64] = np.zeros((_SMALLEST, _WORDS), np.uint64)

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def ids(self) -> npt.NDArray[np.uint64]:
        """The epoch ids, increasing: shape (contexts,)."""
        return self._ids[self._begin:self._end]

    @property
    def words(self) -> npt.NDArray[np.uint64]:
        """Shape (contexts, words of EPOCH); writable."""
        return self._words[self._begin:self._end]

    @property
    def rows(self) -> Records:
        """Shape (contexts,), EPOCH; writable."""
        return as_rows(self.words)

    def take(self, slots: npt.NDArray[Any]) -> Records:
        """Copies of some rows, by slot or by mask."""
        if _neighbours(slots):
            return as_rows(self.words[slots[0]:slots[-1] + 1].copy())
        return as_rows(self.words[slots])

    def put(self, slots: npt.NDArray[np.intp], rows: npt.NDArray[np.uint64]) -> None:
        """Writes whole rows, as words, to increasing slots."""
        if _neighbours(slots):
            self.words[slots[0]:slots[-1] + 1] = rows
        else:
            self.words[slots] = rows

    def find(
        self, ids: npt.NDArray[np.uint64],
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        """Slot of each id, and whether it is there."""
        held = self.ids
        if not len(held):
            return np.zeros(len(ids), np.intp), np.zeros(len(ids), np.bool_)
        # Most often all that is held comes in its order: one look finds where it begins.
        begin = int(np.searchsorted(held, ids[0])) if len(ids) else 0
        if np.array_equal(held[begin:begin + len(ids)], ids):
            return np.arange(begin, begin + len(ids)), np.ones(len(ids), np.bool_)
        slots = np.minimum(np.searchsorted(held, ids), len(held) - 1)
        return slots, held[slots] == ids

    def append(self, rows: Records) -> None:
        """Rows with ids in increasing order, above all that are here."""
        if self._end + len(rows) > len(self._ids):
            self._move(max(_SMALLEST, 2 * (len(self) + len(rows))))
        end = self._end + len(rows)
        self._ids[self._end:end] = rows["report"]["epoch_id"]
        self._words[self._end:end] = words(rows)
        self._end = end

    def keep(self, kept: npt.NDArray[np.bool_]) -> None:
        """Forgets the rows that are not kept; gives memory back when an eighth is left in use."""
        if kept.all():
            return
        first = int(np.argmax(kept)) if kept.any() else len(kept)
        self._begin += first
        kept = kept[first:]
        if not kept.all():
            ids, moved = self.ids[kept], self.words[kept]
            self._end = self._begin + len(ids)
            self.ids[:], self.words[:] = ids, moved
        if len(self._ids) > max(_SMALLEST, 8 * len(self)):
            self._move(max(_SMALLEST, 2 * len(self)))

    def _move(self, size: int) -> None:
        """Into memory for `size` rows, to its front."""
        ids, moved = self.ids, self.words
        self._ids = np.zeros(size, np.uint64)
        self._words = np.zeros((size, _WORDS), np.uint64)
        self._begin, self._end = 0, len(ids)
        self.ids[:], self.words[:] = ids, moved


def as_rows(moved: npt.NDArray[np.uint64]) -> Records:
    """Words of whole rows, seen as EPOCH: shape (rows,)."""
    rows: Records = moved.view(EPOCH)
    return rows.reshape(-1)


def _neighbours(slots: npt.NDArray[Any]) -> bool:
    """Whether increasing slots follow one another without a gap; a mask never does."""
    return bool(len(slots) > 1 and slots.dtype != np.bool_
                and slots[-1] - slots[0] == len(slots) - 1)
