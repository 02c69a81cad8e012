"""Epoch rows and their outcomes: what the collector keeps of an epoch, and hands to the store."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

import numpy as np
import numpy.typing as npt

from ..ipfix.records import SEQUENCE_REPORT, Records

__all__ = ["EPOCH", "EndReason", "Outcome", "Qualification", "State", "outcomes"]


class Outcome(IntEnum):
    """The outcome in the stored result."""

    open = 0
    """Not retired yet."""
    complete = 1
    """Reports from id one through a valid final one, none missing."""
    incomplete = 2
    """No final report came, or reports are missing, or one could not be interpreted."""
    invalid = 3
    """A report broke a rule."""


class Qualification(IntFlag):
    """What qualifies an epoch's reports. None of these says anything about the network."""

    firstReportMissing = 0x01
    """The first report received had an id above one."""
    reportGap = 0x02
    """Reports are missing between the ones received."""
    unsupportedFlags = 0x04
    """A report with unassigned flag bits came: kept raw, not interpreted."""


class State(IntEnum):
    OPEN = 0
    FINAL = 1
    INVALID = 2


class EndReason(IntEnum):
    """Why an epoch was retired without a final report."""

    none = 0
    inactivity = 1
    session_end = 2


EPOCH: Final = np.dtype([
    ("report", SEQUENCE_REPORT),     # latest accepted one; before any: key only, report_id 0
    ("last_seen_ms", "u8"),          # collector's clock, the last report of any kind
    ("reports", "u8"),               # accepted reports
    ("missing", "u8"),               # report ids that never came below the latest of any kind
    ("state", "u1"),                 # State
    ("rule", "u1"),                  # Rule that made it invalid
    ("qualifications", "u1"),        # Qualification
    ("ended", "u1"),                 # EndReason
    ("reserved", "u4"),
    ("serial", "u8"),                # number of the epoch in its Transport Session, from 1
    ("unread_id", "u8"),             # the latest report, when its flag bits were not known; else 0
    ("unread_digest", "u8"),         # of its content
])


def outcomes(epochs: Records) -> npt.NDArray[np.uint8]:
    """The Outcome of each row of EPOCH."""
    state = epochs["state"]
    covered = (epochs["missing"] == 0) & (epochs["qualifications"] == 0)
    result = np.full(len(epochs), Outcome.open, np.uint8)
    result[(state == State.FINAL) & covered] = Outcome.complete
    result[(state == State.FINAL) & ~covered] = Outcome.incomplete
    result[(state == State.OPEN) & (epochs["ended"] != 0)] = Outcome.incomplete
    result[state == State.INVALID] = Outcome.invalid
    return result
