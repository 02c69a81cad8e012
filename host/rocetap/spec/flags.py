"""rdmaSequenceFlags (sequence profile, Qualification Flags): masks, not bit positions."""

from __future__ import annotations

from enum import IntFlag
from typing import Final

__all__ = ["CLOSURE_REASONS", "KNOWN_FLAGS", "UNASSIGNED_FLAGS", "SequenceFlag", "flag_names"]


class SequenceFlag(IntFlag):
    """The six assigned masks."""

    finalEpoch = 0x0001
    profileViolation = 0x0002
    captureDiscontinuity = 0x0004
    stateExhaustion = 0x0008
    serialDiscontinuity = 0x0010
    generationUnverified = 0x0020


KNOWN_FLAGS: Final = 0x003F
UNASSIGNED_FLAGS: Final = 0xFFC0
CLOSURE_REASONS: Final = 0x001E
"""Reasons that MUST be zero in a report without finalEpoch."""


def flag_names(flags: int) -> list[str]:
    """The names of the assigned masks that are set, lowest first; unassigned bits as hex."""
    names = [flag.name or "" for flag in SequenceFlag if flags & flag]
    unknown = flags & UNASSIGNED_FLAGS
    return names + ([f"0x{unknown:04x}"] if unknown else [])
