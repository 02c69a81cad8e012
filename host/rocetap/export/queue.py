"""What waits for the collector: bounded, and what the bound drops is counted by reason.

Records wait without ids (:mod:`.epochs` gives them when they are serialized), so a snapshot that is
dropped here leaves no report gap: the epoch's next report carries the same totals and more. A final
report has no successor, so it goes last.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from rocetap.ipfix.records import PFC_READING, Records
from rocetap.link.records import RECORD_DTYPE, RecordArray
from rocetap.spec.flags import SequenceFlag

__all__ = ["ReportQueue"]


class ReportQueue:
    """Up to `limit` board records, oldest first out, and the latest PFC readings.

    `drops` counts records by reason: "snapshot" and "final" (oldest first) found the queue full.
    `readings_dropped`: PFC readings that a later reading of all counters replaced, or that were
    cleared.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"queue limit is {limit} records, must be 1 or more")
        self._limit = limit
        self._records = np.zeros(0, RECORD_DTYPE)
        self._readings = np.zeros(0, PFC_READING)
        self.drops: Counter[str] = Counter()
        self.readings_dropped = 0

    def __len__(self) -> int:
        """Records and readings that wait."""
        return len(self._records) + len(self._readings)

    @property
    def records(self) -> int:
        """Records that wait."""
        return len(self._records)

    def put_records(self, records: RecordArray) -> None:
        """Adds records; the oldest snapshots, then the oldest finals, make room."""
        if not len(records):
            return
        waiting = np.concatenate([self._records, records])
        excess = len(waiting) - self._limit
        if excess > 0:
            final = (waiting["flags"] & SequenceFlag.finalEpoch) != 0
            order = np.concatenate([np.flatnonzero(~final), np.flatnonzero(final)])
            dropped = order[:excess]
            finals = int(np.count_nonzero(final[dropped]))
            self._count("final", finals)
            self._count("snapshot", excess - finals)
            waiting = np.delete(waiting, dropped)
        self._records = waiting

    def put_readings(self, readings: Records) -> None:
        """Replaces the waiting readings by a later reading of all counters."""
        self.readings_dropped += len(self._readings)
        self._readings = readings

    def take(self, most: int) -> tuple[RecordArray, Records]:
        """Up to `most` of the oldest records, and all readings; they wait no longer."""
        records, self._records = self._records[:most], self._records[most:]
        readings, self._readings = self._readings, np.zeros(0, PFC_READING)
        return records, readings

    def clear(self) -> int:
        """Forgets everything, as a new session must; how many records that were."""
        count = len(self._records)
        self.readings_dropped += len(self._readings)
        self._records = np.zeros(0, RECORD_DTYPE)
        self._readings = np.zeros(0, PFC_READING)
        return count

    def _count(self, reason: str, dropped: int) -> None:
        if dropped:
            self.drops[reason] += dropped
