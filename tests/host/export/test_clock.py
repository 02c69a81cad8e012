"""The clock map: right, monotone, and honest about its error."""

import random

import numpy as np
import pytest

from rocetap.export.clock import NS_PER_MS, BoardClock, ExportClock, Pairing

UTC = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


def paired(board, utc, round_trip=2_000):
    return Pairing(utc - round_trip // 2, board, utc + round_trip // 2)


def test_identity_keeps_the_captures_time_to_the_nanosecond():
    clock = BoardClock.identity()
    assert clock.to_ns([1_700_000_000_123_456_789]).tolist() == [1_700_000_000_123_456_789]
    assert clock.to_ms([1_700_000_000_123_999_999]).tolist() == [1_700_000_000_123]
    assert clock.error == 0


def test_one_pairing_gives_the_offset_and_its_error():
    clock = BoardClock()
    clock.pair(paired(5 * SECOND, UTC, round_trip=3_001))
    assert clock.to_ns([4 * SECOND, 6 * SECOND]).tolist() == [UTC - SECOND, UTC + SECOND]
    assert clock.error == 1_500


def test_a_forward_step_of_the_host_is_followed_at_once_and_the_past_stays():
    clock = BoardClock()
    clock.pair(paired(0, UTC))
    clock.pair(paired(10 * SECOND, UTC + 70 * SECOND))
    assert clock.to_ns([9 * SECOND, 10 * SECOND]).tolist() == [UTC + 9 * SECOND, UTC + 70 * SECOND]
    assert clock.error == 1_000


def test_a_backward_step_is_given_back_at_half_speed():
    clock = BoardClock()
    clock.pair(paired(0, UTC))
    clock.pair(paired(10 * SECOND, UTC + 7 * SECOND))
    assert clock.error == 3 * SECOND + 1_000
    times = clock.to_ns(np.array([10, 12, 14, 16, 20]) * SECOND) - UTC
    assert (times / SECOND).tolist() == [10, 11, 12, 13, 17]


def test_a_pairing_while_it_gives_back_starts_from_where_the_map_is():
    clock = BoardClock()
    clock.pair(paired(0, UTC))
    clock.pair(paired(10 * SECOND, UTC + 7 * SECOND))
    clock.pair(paired(12 * SECOND, UTC + 9 * SECOND))
    assert clock.error == 2 * SECOND + 1_000
    clock.pair(paired(14 * SECOND, UTC + 20 * SECOND))
    assert clock.error == 1_000
    assert clock.to_ns([14 * SECOND]).tolist() == [UTC + 20 * SECOND]


@pytest.mark.parametrize("seed", range(20))
def test_monotone_over_random_steps_and_a_drifting_crystal(seed):
    rng = random.Random(seed)
    clock, board, utc = BoardClock(), 0, UTC
    seen_board, seen_utc = [], []
    for _ in range(200):
        step = rng.randrange(1, 5 * SECOND)
        board += step + step // 10_000
        utc += step + rng.choice([0, 0, 0, -3 * SECOND, 2 * SECOND, -rng.randrange(SECOND)])
        clock.pair(paired(board, utc, rng.randrange(1, 20_000)))
        later = sorted(board + rng.randrange(SECOND) for _ in range(5))
        board = later[-1]
        seen_board += later
        seen_utc += clock.to_ns(later).tolist()
    assert seen_board == sorted(seen_board)
    assert seen_utc == sorted(seen_utc)


def test_the_map_keeps_a_bounded_number_of_segments():
    clock = BoardClock()
    for second in range(10_000):
        clock.pair(paired(second * SECOND, UTC + second * SECOND))
    assert len(clock._segments) <= 64
    assert clock.to_ns([0]).tolist() == [UTC]


def test_a_board_that_was_reset_starts_a_new_map():
    clock = BoardClock()
    clock.pair(paired(500 * SECOND, UTC))
    clock.restart()
    clock.pair(paired(SECOND, UTC + 3 * SECOND))
    assert clock.to_ms([2 * SECOND]).tolist() == [(UTC + 4 * SECOND) // NS_PER_MS]


def test_a_board_clock_that_jumps_back_is_mapped_anew():
    clock = BoardClock()
    clock.pair(paired(500 * SECOND, UTC))
    clock.pair(paired(SECOND, UTC + 3 * SECOND))
    assert clock.to_ns([2 * SECOND]).tolist() == [UTC + 4 * SECOND]
    assert clock.error == 1_000


def test_a_reset_board_goes_on_from_where_the_map_was():
    clock = BoardClock()
    clock.pair(paired(0, UTC))
    clock.pair(paired(10 * SECOND, UTC + 4 * SECOND))  # the host stepped back by 6 s
    clock.restart()
    clock.pair(paired(0, UTC + 5 * SECOND))
    assert clock.to_ns([0]).tolist() == [UTC + 10 * SECOND]
    assert clock.error == 5 * SECOND + 1_000
    assert clock.to_ns([10 * SECOND]).tolist() == [UTC + 15 * SECOND]


def test_a_board_clock_that_starts_again_unasked_does_not_go_back_either():
    clock = BoardClock()
    clock.pair(paired(50 * SECOND, UTC + 50 * SECOND))
    clock.pair(paired(1 * SECOND, UTC + 40 * SECOND))
    assert clock.to_ns([1 * SECOND]).tolist() == [UTC + 50 * SECOND]


class TestExportClock:
    def run(self, steps):
        """`steps`: (seconds that pass, seconds that the wall clock steps by); ms since UTC."""
        now, wall, given = 0.0, UTC, []
        clock = ExportClock(lambda: wall, lambda: now)
        for seconds, step in steps:
            now += seconds
            wall += int((seconds + step) * SECOND)
            given.append(clock.now_ms() - UTC // NS_PER_MS)
        return given

    def test_follows_a_good_clock(self):
        assert self.run([(0, 0), (1, 0), (2.5, 0)]) == [0, 1000, 3500]

    def test_a_step_forward_at_once_and_a_step_back_at_half_speed(self):
        assert self.run([(1, 0), (1, 60), (1, -4), (2, 0), (4, 0), (4, 0), (4, 0)]) == [
            1000, 62_000, 63_000, 64_000, 66_000, 69_000, 73_000]

    def test_never_before_what_it_gave_nor_before_the_latest_stamp(self):
        clock = ExportClock(lambda: UTC, lambda: 0.0)
        assert clock.now_ms(UTC // NS_PER_MS + 700) == UTC // NS_PER_MS + 700
        assert clock.now_ms() == UTC // NS_PER_MS + 700

    @pytest.mark.parametrize("seed", range(5))
    def test_monotone_through_any_steps(self, seed):
        rng = random.Random(seed)
        given = self.run([(rng.random() * 3, rng.choice([0, 0, rng.uniform(-100, 100)]))
                          for _ in range(300)])
        assert given == sorted(given)
