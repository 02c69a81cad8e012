"""Snapshot records as NumPy arrays, many at once."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..spec.records import RECORD_FIELDS, RECORD_OCTETS
from .errors import LinkRemoteError

__all__ = ["RECORD_DTYPE", "RecordArray", "decode_records"]

RECORD_DTYPE: Final = np.dtype(
    [(name, f"<u{bits // 8}") for name, bits in RECORD_FIELDS.items()])
"""One record of `rocetap.spec.records`: its fields in order, little-endian, no padding."""

assert RECORD_DTYPE.itemsize == RECORD_OCTETS

RecordArray: TypeAlias = npt.NDArray[Any]
"""Array of RECORD_DTYPE, shape (records,)."""


def decode_records(octets: bytes | bytearray) -> RecordArray:
    """The records, shape (len(octets) / RECORD_OCTETS,), a copy of their own.

    Octets that are no whole number of records raise LinkRemoteError.
    """
    if len(octets) % RECORD_OCTETS:
        raise LinkRemoteError(f"{len(octets)} octets are no whole number of records of "
                              f"{RECORD_OCTETS} octets")
    return np.frombuffer(bytes(octets), RECORD_DTYPE).copy()
