import numpy as np

from rocetap.collect.comparison import KEY_OCTETS, Verdict, compare
from rocetap.collect.outcomes import EPOCH, State
from rocetap.collect.rules import Rule
from rocetap.ipfix.records import SEQUENCE_REPORT
from support.ipfix_tools import reports


def _row(**columns):
    row = np.zeros(1, EPOCH)
    row["report"] = reports(1, **columns)
    row["reports"] = 1
    return row[0]


def test_the_key_ends_before_the_window():
    assert SEQUENCE_REPORT.fields["window"][1] == KEY_OCTETS


def test_the_next_report_is_accepted():
    row = _row()
    assert compare(row, reports(1, report_id=2)[0], Rule.OK) == Verdict(None, changed=True)
    assert row["report"]["report_id"] == 2
    assert row["reports"] == 2


def test_an_invalid_epoch_stays_as_it_was():
    row = _row()
    row["state"] = State.INVALID
    before = row.tobytes()
    assert compare(row, reports(1, report_id=2)[0], Rule.OK) == Verdict("report.of_invalid_epoch")
    assert row.tobytes() == before
