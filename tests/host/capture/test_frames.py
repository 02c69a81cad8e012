from __future__ import annotations

import numpy as np

from rocetap.capture.frames import Frame, FrameBatch, TruncatedCapture, link_type_name


def test_frames_of_a_batch_one_by_one():
    batch = FrameBatch(
        np.frombuffer(b"..abcdef", np.uint8), np.array([2, 5], np.uint64),
        np.array([3, 2], np.uint32), np.array([3, 9], np.uint32), np.array([7, 2**63], np.uint64),
        np.array([0, 4], np.uint16), np.array([False, True]))
    assert len(batch) == 2
    assert list(batch.frames()) == [
        Frame(b"abc", 3, 7, 0, False), Frame(b"de", 9, 2**63, 4, True)]


def test_link_types_by_name():
    assert link_type_name(197) == "197 (ERF)"
    assert link_type_name(9999) == "9999"


def test_a_truncation_says_where_and_why_and_exits_with_three():
    error = TruncatedCapture("a.pcap", offset=40, record=3, reason="the file ends")
    assert str(error) == (
        "a.pcap: record 3 at octet 40: the file ends; all 2 records before it were read")
    assert error.exit_code == 3
