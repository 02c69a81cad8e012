"""The queue's bound, its order and its counts."""

import numpy as np
import pytest

from rocetap.export.queue import ReportQueue
from rocetap.ipfix.records import PFC_READING
from rocetap.link.records import RECORD_DTYPE


def records(epochs, *, final=()):
    rows = np.zeros(len(epochs), RECORD_DTYPE)
    rows["epoch"] = epochs
    rows["flags"] = [1 if epoch in final else 0 for epoch in epochs]
    return rows


def readings(totals):
    rows = np.zeros(len(totals), PFC_READING)
    rows["total"] = totals
    return rows


def epochs(taken):
    return taken["epoch"].tolist()


def test_records_leave_in_order_and_once():
    queue = ReportQueue(10)
    queue.put_records(records([1, 2]))
    queue.put_records(records([3]))
    assert len(queue) == 3
    assert epochs(queue.take(2)[0]) == [1, 2]
    assert epochs(queue.take(9)[0]) == [3]
    assert epochs(queue.take(9)[0]) == []
    assert not queue.drops


def test_old_snapshots_make_room_before_any_final():
    queue = ReportQueue(4)
    queue.put_records(records([1, 2, 3, 4], final=[1]))
    queue.put_records(records([5, 6]))
    assert epochs(queue.take(9)[0]) == [1, 4, 5, 6]
    assert queue.drops == {"snapshot": 2}


def test_finals_go_only_when_nothing_else_is_left():
    queue = ReportQueue(2)
    queue.put_records(records([1, 2, 3, 4], final=[1, 2, 3]))
    assert epochs(queue.take(9)[0]) == [2, 3]
    assert queue.drops == {"snapshot": 1, "final": 1}


def test_what_comes_in_is_what_leaves_or_is_counted():
    queue = ReportQueue(5)
    rng = np.random.default_rng(3)
    put = taken = 0
    for _ in range(200):
        count = int(rng.integers(0, 9))
        queue.put_records(records(list(range(count)), final=[0, 3]))
        put += count
        taken += len(queue.take(int(rng.integers(0, 4)))[0])
    assert put == taken + len(queue) + sum(queue.drops.values())
    assert len(queue) <= 5


def test_a_later_reading_replaces_the_waiting_one():
    queue = ReportQueue(1)
    queue.put_readings(readings([1, 2]))
    queue.put_readings(readings([3, 4]))
    assert queue.take(1)[1]["total"].tolist() == [3, 4]
    assert len(queue.take(1)[1]) == 0
    assert (queue.drops, queue.readings_dropped) == ({}, 2)


def test_clear_forgets_and_says_how_many():
    queue = ReportQueue(5)
    queue.put_records(records([1, 2]))
    queue.put_readings(readings([1]))
    assert (len(queue), queue.records) == (3, 2)
    assert queue.clear() == 2
    assert (len(queue), queue.readings_dropped) == (0, 1)


def test_the_limit_is_checked():
    with pytest.raises(ValueError, match=r"^queue limit is 0 records, must be 1 or more$"):
        ReportQueue(0)
