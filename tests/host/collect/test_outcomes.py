import numpy as np
import pytest

from rocetap.collect.outcomes import EPOCH, EndReason, Outcome, Qualification, State, outcomes


@pytest.mark.parametrize(("columns", "outcome"), [
    ({}, Outcome.open),
    ({"state": State.FINAL}, Outcome.complete),
    ({"state": State.FINAL, "missing": 1, "qualifications": Qualification.reportGap},
     Outcome.incomplete),
    ({"state": State.FINAL, "missing": 1}, Outcome.incomplete),
    ({"state": State.FINAL, "missing": 4, "qualifications": Qualification.firstReportMissing},
     Outcome.incomplete),
    ({"state": State.FINAL, "qualifications": Qualification.unsupportedFlags},
     Outcome.incomplete),
    ({"ended": EndReason.inactivity}, Outcome.incomplete),
    ({"ended": EndReason.session_end}, Outcome.incomplete),
    ({"state": State.INVALID}, Outcome.invalid),
    ({"state": State.INVALID, "ended": EndReason.session_end}, Outcome.invalid),
])
def test_outcomes(columns, outcome):
    """Complete report coverage: from id one through a valid final record without report gaps; a
    session end or silence without a final report is incomplete (Collector Processing)."""
    rows = np.zeros(2, EPOCH)
    for name, value in columns.items():
        rows[name][1] = value
    assert outcomes(rows).tolist() == [Outcome.open, outcome]


def test_rows_are_whole_words():
    assert EPOCH.itemsize % 8 == 0
