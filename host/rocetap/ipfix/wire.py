"""Big-endian structured arrays for records of elements in their full length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ..spec.elements import DataType, Element
from .records import Records

__all__ = ["INTEGERS", "PFC_COLUMNS", "SEQUENCE_COLUMNS", "Decoder", "Encoder", "wire_dtype"]

INTEGERS: Final = frozenset({
    DataType.unsigned8, DataType.unsigned16, DataType.unsigned32, DataType.unsigned64,
    DataType.dateTimeMilliseconds,
})
"""Types that travel as big-endian unsigned integers."""

_CHUNK: Final = 2048
"""Rows copied at a time: they stay in the cache for all columns."""

SEQUENCE_COLUMNS: Final[dict[str, str]] = {
    "observationPointId": "observation_point",
    "sourceIPv4Address": "source", "sourceIPv6Address": "source",
    "destinationIPv4Address": "destination", "destinationIPv6Address": "destination",
    "rdmaDestinationQP": "qp",
    "rdmaPartitionKey": "pkey",
    "flowStartMilliseconds": "flow_start_ms",
    "flowEndMilliseconds": "flow_end_ms",
    "rdmaSequenceEpochId": "epoch_id",
    "rdmaSequenceReportId": "report_id",
    "rdmaSequenceWindow": "window",
    "rdmaSequenceFlags": "flags",
    "skippedPsnTotalCount": "skipped",
    "filledPsnTotalCount": "filled",
    "expiredPsnTotalCount": "expired",
    "abandonedPsnTotalCount": "abandoned",
    "pendingPsnCount": "pending",
    "repeatedPsnTotalCount": "repeated",
    "requestPacketTotalCount": "requests",
    "unclassifiedLatePacketTotalCount": "late",
    "dot1qVlanId": "vid",
    "dot1qCustomerVlanId": "cvid",
}
"""Element name -> column of SEQUENCE_REPORT."""

PFC_COLUMNS: Final[dict[str, str]] = {
    "observationPointId": "observation_point",
    "ingressPhysicalInterface": "interface", "egressPhysicalInterface": "interface",
    "pfcPriority": "priority",
    "observationTimeMilliseconds": "time_ms",
    "pfcControlFrameTotalCount": "total",
}
"""Element name -> column of PFC_READING."""


def wire_dtype(elements: Sequence[Element]) -> np.dtype[np.void]:
    """Packed dtype of one record: integers big-endian, all else as raw octets."""
    return np.dtype([
        (element.name,
         f">u{element.octets}" if element.data_type in INTEGERS else f"V{element.octets}")
        for element in elements])


class Encoder:
    """Copies columns into records of one Template, a few thousand rows at a time.

    `elements`: the Template's fields; `columns`: element name -> column of `dtype`. Integers are
    swapped to network order; addresses are copied as they stand, in words of four or eight octets.
    """

    def __init__(
        self, elements: Sequence[Element], columns: dict[str, str], dtype: np.dtype[np.void],
    ) -> None:
        self.dtype = wire_dtype(elements)
        self.octets: Final = self.dtype.itemsize
        """Octets of one record."""
        offsets = [0]
        for element in elements:
            offsets.append(offsets[-1] + element.octets)
        pairs = field_pairs(elements, offsets, columns, dtype)
        self._to, self._source = _views(pairs, self.octets, dtype.itemsize)

    def __call__(self, records: Records) -> Records:
        """The records in the same order; shape as given."""
        out = np.empty(len(records), self.dtype)
        _copy(out.view(self._to), records.view(self._source))
        return out


class Decoder:
    """The way back: records of one Template, all fields in full length, into columns.

    `fields`: (element, offset in the record) of those that go into columns; `octets`: length of a
    record.
    """

    def __init__(
        self, fields: Sequence[tuple[Element, int]], octets: int, columns: dict[str, str],
        dtype: np.dtype[np.void],
    ) -> None:
        self.dtype = dtype
        pairs = field_pairs([element for element, _ in fields],
                            [offset for _, offset in fields], columns, dtype)
        self._source, self._to = _views(pairs, octets, dtype.itemsize)

    def __call__(self, records: Records) -> Records:
        """Columns in host order; those without a field are zero."""
        out = np.zeros(len(records), self.dtype)
        _copy(out.view(self._to), records.view(self._source))
        return out


_Pair = tuple[str, int, str, int]
"""Format and offset on the wire, format and offset in the columns."""


def field_pairs(
    elements: Sequence[Element], offsets: Sequence[int], columns: dict[str, str],
    dtype: np.dtype[np.void],
) -> list[_Pair]:
    """What is copied to where. An IPv4 address meets the last four octets of its column."""
    fields = dtype.fields
    assert fields is not None
    pairs = []
    for element, position in zip(elements, offsets, strict=False):
        kind, begin = fields[columns[element.name]][:2]
        if element.data_type in INTEGERS:
            pairs.append((f">u{element.octets}", position, kind.str, begin))
        else:
            begin += kind.itemsize - element.octets
            step = min(element.octets, 8)
            pairs += [(f"u{step}", position + offset, f"u{step}", begin + offset)
                      for offset in range(0, element.octets, step)]
    return pairs


def _views(
    pairs: list[_Pair], wire_octets: int, column_octets: int,
) -> tuple[np.dtype[np.void], np.dtype[np.void]]:
    wire = _view([(kind, offset) for kind, offset, _, _ in pairs], wire_octets)
    return wire, _view([(kind, offset) for _, _, kind, offset in pairs], column_octets)


def _view(fields: list[tuple[str, int]], size: int) -> np.dtype[np.void]:
    return np.dtype({
        "names": [str(index) for index in range(len(fields))],
        "formats": [kind for kind, _ in fields],
        "offsets": [offset for _, offset in fields],
        "itemsize": size})


def _copy(to: Records, source: Records) -> None:
    for first in range(0, len(to), _CHUNK):
        rows = slice(first, first + _CHUNK)
        for name in to.dtype.names or ():
            to[name][rows] = source[name][rows]
