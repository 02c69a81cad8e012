import numpy as np

from rocetap.ipfix.records import KEY_WORDS, PFC_READING, SEQUENCE_REPORT, words
from support.ipfix_tools import reports


def test_layouts_are_whole_words_without_gaps():
    for dtype in (SEQUENCE_REPORT, PFC_READING):
        assert dtype.itemsize % 8 == 0
        assert sum(dtype[name].itemsize for name in dtype.names) == dtype.itemsize


def test_the_first_words_are_key_window_and_flow_start():
    fixed = ["observation_point", "source", "destination", "epoch_id", "qp", "pkey", "vid", "cvid",
             "ipv6", "reserved", "window", "flow_start_ms"]
    assert list(SEQUENCE_REPORT.names[:len(fixed)]) == fixed
    assert sum(SEQUENCE_REPORT[name].itemsize for name in fixed) == 8 * KEY_WORDS


def test_words_see_every_octet():
    rows = reports(2)
    other = rows.copy()
    assert (words(rows) == words(other)).all()
    for name in SEQUENCE_REPORT.names:
        changed = rows.copy()
        field = changed[name]
        field[1] = b"\1" * 16 if field.dtype.kind == "V" else not field[1]
        different = np.flatnonzero((words(changed) != words(rows)).any(axis=1))
        assert different.tolist() == [1], name
