"""The snapshot record: what the board sends for one context, and its order of octets.

Fields stand in the order of the table, least significant octet first, without padding: octet 0 of
the record is bits 7:0 of the first field. The gateware's layout and the host's decoder both come
from this table.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["RECORD_BITS", "RECORD_FIELDS", "RECORD_OCTETS", "RecordKind"]


class RecordKind(IntEnum):
    """What a record says."""

    SEQUENCE = 1
    """A snapshot of an epoch; finalEpoch in `flags` when the epoch has closed with it."""
    MARKER = 2
    """All operations written before the marker are done; `tag` is the marker's cookie."""
    DISABLED = 3
    """A violation disabled a context that had no active epoch; counters are zero."""


RECORD_FIELDS: Final[dict[str, int]] = {
    "kind": 8,          # RecordKind
    "reserved": 8,      # zero
    "context": 16,      # index of the context
    "tag": 16,          # the provisioning's tag, or the marker's cookie
    "flags": 16,        # rdmaSequenceFlags; generationUnverified is the host's to add
    "epoch": 32,        # board-local number of the context's epoch, first is 1, modulo 2^32
    "window": 32,       # W
    "pending": 32,      # positions PENDING now; 0 in a final record
    "abandoned": 32,    # positions PENDING at closure; 0 before
    "first_time": 64,   # arrival of the first accounted packet, ns of the board's clock
    "last_time": 64,    # arrival of the last accounted packet, ns of the board's clock
    "requests": 64,
    "skipped": 64,
    "filled": 64,
    "expired": 64,
    "repeated": 64,
    "late": 64,         # unclassifiedLate
}
"""Field name -> bits."""

RECORD_BITS: Final = sum(RECORD_FIELDS.values())
RECORD_OCTETS: Final = RECORD_BITS // 8
