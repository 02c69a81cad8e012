"""Big-endian structured arrays for records of elements in their full length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ..spec.elements import DataType, Element
from .records import Records

__all__ = ["PFC_COLUMNS", "SEQUENCE_COLUMNS", "encode_pfc", "encode_sequence", "wire_dtype"]

_UNSIGNED: Final = {
    DataType.unsigned8, DataType.unsigned16, DataType.unsigned32, DataType.unsigned64,
    DataType.dateTimeMilliseconds,
}

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
         f">u{element.octets}" if element.data_type in _UNSIGNED else f"V{element.octets}")
        for element in elements])


def low_octets(records: Records, column: str) -> np.ndarray:
    """The last four of a column's sixteen octets, as a view of `records`."""
    fields = records.dtype.fields
    assert fields is not None
    offset = fields[column][1] + 12
    view = np.dtype({"names": ["low"], "formats": ["V4"], "offsets": [offset],
                     "itemsize": records.dtype.itemsize})
    return records.view(view)["low"]


def encode_sequence(reports: Records, dtype: np.dtype[np.void]) -> Records:
    """Reports (SEQUENCE_REPORT) as records of one sequence Template, in the same order."""
    out = np.empty(len(reports), dtype)
    for name in dtype.names or ():
        column = SEQUENCE_COLUMNS[name]
        out[name] = low_octets(reports, column) if "IPv4" in name else reports[column]
    return out


def encode_pfc(readings: Records, dtype: np.dtype[np.void]) -> Records:
    """Readings (PFC_READING) as records of one PFC Options Template, in the same order."""
    out = np.empty(len(readings), dtype)
    for name in dtype.names or ():
        out[name] = readings[PFC_COLUMNS[name]]
    return out
