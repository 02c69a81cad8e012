"""Waits between tries: growing, capped, spread out."""

import random

from rocetap.export.backoff import Backoff


def test_waits_double_up_to_the_cap_and_stay_in_their_half():
    backoff = Backoff(initial=1.0, cap=30.0, random=random.Random(4))
    waits = [backoff.next() for _ in range(8)]
    for wait, ceiling in zip(waits, (1, 2, 4, 8, 16, 30, 30, 30), strict=True):
        assert ceiling / 2 <= wait <= ceiling
    assert len(set(waits)) == len(waits)


def test_a_success_makes_the_next_wait_short_again():
    backoff = Backoff(initial=1.0, cap=30.0, random=random.Random(4))
    for _ in range(6):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 1.0


def test_a_year_of_failures_does_not_overflow():
    backoff = Backoff(initial=0.5, cap=30.0, random=random.Random(4), failures=10**6)
    assert 15.0 <= backoff.next() <= 30.0


def test_two_probes_do_not_knock_together():
    first = Backoff(random=random.Random(1))
    second = Backoff(random=random.Random(2))
    assert [first.next() for _ in range(3)] != [second.next() for _ in range(3)]
