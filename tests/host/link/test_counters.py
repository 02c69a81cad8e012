"""CounterTracker: restarts and wraps; never negative, never huge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocetap.link.counters import CounterTracker, CounterUpdate


def test_restart_seen_by_the_boot_id():
    tracker = CounterTracker()
    assert tracker.update(1, {"frames": 5_000_000}) == CounterUpdate({"frames": 0}, first=True)
    assert tracker.update(2, {"frames": 1_200}) == CounterUpdate({"frames": 1_200}, restarted=True)
    assert tracker.totals == {"frames": 5_001_200}


def test_restart_with_a_larger_value_than_before():
    tracker = CounterTracker()
    tracker.update(1, {"frames": 100})
    assert tracker.update(2, {"frames": 150}).deltas == {"frames": 150}
    assert tracker.totals == {"frames": 250}


def test_a_true_wrap_of_32_bits():
    tracker = CounterTracker(bits=32)
    tracker.update(1, {"errors": 0xFFFF_FF00})
    assert tracker.update(1, {"errors": 0x100}) == CounterUpdate({"errors": 512})
    assert tracker.totals == {"errors": 0x1_0000_0100}


@pytest.mark.parametrize("bits", [32, 64])
def test_a_step_back_is_a_restart_without_a_new_boot_id(bits):
    tracker = CounterTracker(bits=bits)
    tracker.update(1, {"a": 5_000, "b": 7})
    update = tracker.update(1, {"a": 4_999, "b": 9})
    assert update == CounterUpdate({"a": 4_999, "b": 9}, restarted=True)
    assert tracker.totals == {"a": 9_999, "b": 16}


def test_another_process_goes_on_without_covering_the_time_twice():
    first = CounterTracker()
    first.update(1, {"frames": 100})
    first.update(1, {"frames": 180})
    second = CounterTracker(totals=first.totals, boot_id=first.boot_id, last=first.last)
    assert second.update(1, {"frames": 200}) == CounterUpdate({"frames": 20})
    assert second.totals == {"frames": 200}


def test_a_counter_that_comes_later_and_one_that_is_left_out():
    tracker = CounterTracker()
    tracker.update(1, {"a": 10})
    assert tracker.update(1, {"b": 5}).deltas == {"b": 0}
    assert tracker.update(1, {"a": 12, "b": 6}).deltas == {"a": 2, "b": 1}
    tracker.update(2, {"a": 1})
    assert tracker.update(2, {"a": 1, "b": 3}) == CounterUpdate({"a": 0, "b": 3})
    assert tracker.totals == {"a": 13, "b": 9}


def test_a_value_that_does_not_fit_changes_nothing():
    tracker = CounterTracker(bits=32)
    tracker.update(1, {"a": 10})
    with pytest.raises(ValueError, match=r"^counter a is 4294967296, must fit 32 bits$"):
        tracker.update(2, {"a": 1 << 32})
    assert tracker.update(1, {"a": 11}) == CounterUpdate({"a": 1})


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2**31 - 1))))
def test_totals_are_what_was_counted(steps):
    """Any row of counting and resetting, wraps of a 32-bit counter among them."""
    tracker = CounterTracker(bits=32)
    tracker.update(0, {"n": 0})
    boot, counter, counted = 0, 0, 0
    for reset, amount in steps:
        if reset:
            boot, counter = boot + 1, 0
        counter = (counter + amount) % 2**32
        counted += amount
        update = tracker.update(boot, {"n": counter})
        assert update.deltas == {"n": amount}
        assert update.restarted == reset
        assert tracker.totals == {"n": counted}
