"""Board records to reports: the epoch ids and report ids of one Transport Session.

The sequence profile (Identity and Epoch Lifecycle; Export Profile and Template) asks that an epoch
id is nonzero, never reused in a Transport Session and Observation Domain, and allocated when the
epoch's first report is serialized, so that first reports leave in increasing order; and that report
ids count from one, by one for each report serialized. So ids are given here, in the order in which
records are handed to the session, and a record dropped before takes none. A new session needs a new
book and, on the board, new epochs.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
import numpy.typing as npt

from rocetap.export.clock import BoardClock
from rocetap.ipfix.records import SEQUENCE_REPORT, Records
from rocetap.link.records import RecordArray
from rocetap.provisioning import Connection
from rocetap.spec.flags import KNOWN_FLAGS, SequenceFlag
from rocetap.spec.records import RecordKind

__all__ = ["MAX_ID", "EpochBook"]

MAX_ID: Final = (1 << 64) - 1
"""Epoch ids and report ids are unsigned64 and never wrap."""

_TAGS: Final = 1 << 16
_COPIED: Final = {
    "window": "window", "pending": "pending", "abandoned": "abandoned", "requests": "requests",
    "skipped": "skipped", "filled": "filled", "expired": "expired", "repeated": "repeated",
    "late": "late"}
"""Field of a report -> field of a record."""

_STATE: Final = np.dtype([
    ("known", "?"), ("final", "?"), ("tag", "u2"), ("epoch", "u4"), ("epoch_id", "u8"),
    ("report_id", "u8"), ("start_ms", "u8")])
"""The latest epoch of a context; `epoch_id` 0 when no id was left for it."""


class EpochBook:
    """Turns records of up to `contexts` contexts into reports. Work is O(records), in NumPy.

    `drops` counts records that became no report, by reason: "unknown_tag" (of no connection that
    was provisioned), "after_final" (of an epoch whose final report has left), "report_ids" and
    "epoch_ids" (none left).
    """

    def __init__(self, contexts: int, clock: BoardClock, *, max_epoch_id: int = MAX_ID,
                 max_report_id: int = MAX_ID) -> None:
        self._clock = clock
        self._max_epoch_id = max_epoch_id
        self._max_report_id = max_report_id
        self._state = np.zeros(contexts, _STATE)
        self._rows = np.zeros(1, SEQUENCE_REPORT)
        self._context_of_row = np.full(1, -1, np.int64)
        self._row_of_tag = np.zeros(_TAGS, np.int64)
        self._epochs_given = 0
        self.drops: Counter[str] = Counter()

    @property
    def epochs_given(self) -> int:
        """Epoch ids given so far; they are 1 to this."""
        return self._epochs_given

    @property
    def exhausted(self) -> bool:
        """Whether no epoch id is left: the session must end."""
        return self._epochs_given >= self._max_epoch_id

    @property
    def open_epochs(self) -> int:
        """Epochs that have a report and no final one."""
        state = self._state
        return int(np.count_nonzero(state["known"] & ~state["final"] & (state["epoch_id"] > 0)))

    def contexts_to_close(self) -> list[int]:
        """Contexts whose open epoch has one report id left; that one is for its final report."""
        state = self._state
        full = (state["known"] & ~state["final"] & (state["epoch_id"] > 0)
                & (state["report_id"] >= np.uint64(self._max_report_id - 1)))
        found: list[int] = np.flatnonzero(full).tolist()
        return found

    def provision(self, context: int, tag: int, connection: Connection,
                  observation_point: int) -> None:
        """Records of `context` that carry `tag` are of this connection from now on."""
        row = np.zeros(1, SEQUENCE_REPORT)
        row["observation_point"] = observation_point
        row["source"] = np.void(int(connection.source).to_bytes(16, "big"))
        row["destination"] = np.void(int(connection.destination).to_bytes(16, "big"))
        row["qp"], row["pkey"] = connection.destination_qp, connection.partition_key
        row["vid"], row["cvid"] = connection.vlan, connection.inner_vlan
        row["ipv6"] = connection.source.version == 6
        if not connection.generation_verified:
            row["flags"] = SequenceFlag.generationUnverified
        index = self._row_of_tag[tag]
        if not index:
            index = self._row_of_tag[tag] = len(self._rows)
            self._rows = np.concatenate([self._rows, row])
            self._context_of_row = np.append(self._context_of_row, context)
        else:
            self._rows[index] = row[0]
            self._context_of_row[index] = context

    def board_restarted(self) -> None:
        """The board has lost its epochs and numbers new ones from 1 again: what was open stays
        without a final report, and nothing that comes continues it."""
        self._state["known"] = False

    def serialize(self, records: RecordArray) -> Records:
        """The reports of the SEQUENCE records among `records`, in their order.

        `records`: RECORD_DTYPE, shape (n,). Result: SEQUENCE_REPORT, shape (m,), m <= n.
        """
        records = records[records["kind"] == RecordKind.SEQUENCE]
        rows = self._row_of_tag[records["tag"]]
        right = (rows > 0) & (self._context_of_row[rows] == records["context"])
        self._drop("unknown_tag", ~right)
        records, rows = records[right], rows[right]
        if not len(records):
            return np.zeros(0, SEQUENCE_REPORT)
        return self._give_ids(records, rows)

    def _drop(self, reason: str, dropped: npt.NDArray[np.bool_]) -> None:
        count = int(np.count_nonzero(dropped))
        if count:
            self.drops[reason] += count

    def _give_ids(self, records: RecordArray, rows: npt.NDArray[np.int64]) -> Records:
        # Sorted by context, in order within it, each epoch is one run of neighbours. A run that
        # goes on with the context's latest epoch takes over what is in the state.
        order = np.argsort(records["context"], kind="stable")
        sorted_records = records[order]
        context = sorted_records["context"].astype(np.int64)
        state = self._state[context]
        size = len(order)
        place = np.arange(size)

        first_of_context = np.ones(size, np.bool_)
        first_of_context[1:] = context[1:] != context[:-1]
        same = np.ones(size, np.bool_)
        for field in ("tag", "epoch"):
            same[1:] &= sorted_records[field][1:] == sorted_records[field][:-1]
        goes_on = (state["known"] & (state["tag"] == sorted_records["tag"])
                   & (state["epoch"] == sorted_records["epoch"]))
        starts = np.where(first_of_context, ~goes_on, ~same)
        run = np.maximum.accumulate(np.where(starts | first_of_context, place, 0))

        epoch_id, start_ms, report_before = self._epochs(sorted_records, state, order, starts)
        epoch_id, start_ms, report_before = epoch_id[run], start_ms[run], report_before[run]
        report_id = report_before + (place - run + 1).astype(np.uint64)

        final = (sorted_records["flags"] & SequenceFlag.finalEpoch) != 0
        finals_before = np.cumsum(final) - final
        after_final = finals_before > finals_before[run]
        after_final |= (state["final"] & goes_on)[run] & ~starts[run]
        without_epoch = (epoch_id == 0) & ~after_final
        limit = np.uint64(self._max_report_id)
        without_report = ~after_final & ~without_epoch & ~final & (report_id >= limit)
        for reason, dropped in (("after_final", after_final), ("epoch_ids", without_epoch),
                                ("report_ids", without_report)):
            self._drop(reason, dropped)
        kept = ~(after_final | without_epoch | without_report)
        report_id = np.minimum(report_id, limit)

        self._remember(sorted_records, context, epoch_id, start_ms, report_id,
                       final | after_final, first_of_context)
        reports = np.zeros(size, SEQUENCE_REPORT)
        reports[order] = self._fill(sorted_records, rows[order], epoch_id, report_id, start_ms)
        chosen = np.zeros(size, np.bool_)
        chosen[order] = kept
        return reports[chosen]

    def _epochs(self, records: RecordArray, state: npt.NDArray[np.void],
                order: npt.NDArray[np.int64], starts: npt.NDArray[np.bool_],
                ) -> tuple[npt.NDArray[np.uint64], ...]:
        """Epoch id, flow start and latest report id, right at the first record of each run. New
        ids follow the order in which the records came, not the order of contexts."""
        starts_in_order = np.zeros(len(order), np.bool_)
        starts_in_order[order] = starts
        number = np.cumsum(starts_in_order)[order].astype(np.uint64)
        new_id = np.uint64(self._epochs_given) + number
        left = self._max_epoch_id - self._epochs_given
        new_id[number > np.uint64(left)] = 0
        self._epochs_given += min(int(np.count_nonzero(starts)), left)
        return (np.where(starts, new_id, state["epoch_id"]),
                np.where(starts, self._clock.to_ms(records["first_time"]), state["start_ms"]),
                np.where(starts, np.uint64(0), state["report_id"]))

    def _remember(self, records: RecordArray, context: npt.NDArray[np.int64],
                  epoch_id: npt.NDArray[np.uint64], start_ms: npt.NDArray[np.uint64],
                  report_id: npt.NDArray[np.uint64], final: npt.NDArray[np.bool_],
                  first_of_context: npt.NDArray[np.bool_]) -> None:
        last = np.append(first_of_context[1:], True)
        where = context[last]
        self._state["known"][where] = True
        for field, values in (("final", final), ("tag", records["tag"]),
                              ("epoch", records["epoch"]), ("epoch_id", epoch_id),
                              ("report_id", report_id), ("start_ms", start_ms)):
            self._state[field][where] = values[last]

    def _fill(self, records: RecordArray, rows: npt.NDArray[np.int64],
              epoch_id: npt.NDArray[np.uint64], report_id: npt.NDArray[np.uint64],
              start_ms: npt.NDArray[np.uint64]) -> Records:
        reports = self._rows[rows]
        for field, source in _COPIED.items():
            reports[field] = records[source]
        reports["flags"] |= records["flags"] & np.uint16(KNOWN_FLAGS)
        reports["epoch_id"], reports["report_id"] = epoch_id, report_id
        reports["flow_start_ms"] = start_ms
        reports["flow_end_ms"] = np.maximum(self._clock.to_ms(records["last_time"]), start_ms)
        return reports
