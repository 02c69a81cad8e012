"""When frames are due: paced, at once, again and again; the clock is an argument."""

from types import SimpleNamespace

import numpy as np
import pytest

from rocetap_sim.player import CapturePlayer


def batch(*seconds):
    """Frames at these captured times, on top of a large epoch time."""
    times = np.array([1_700_000_000_000_000_000 + int(s * 1e9) for s in seconds], dtype=np.uint64)
    return SimpleNamespace(offsets=np.zeros(len(times), np.uint64), time_ns=times)


def take(player, now):
    """All frames due at `now`, as (batch, index)."""
    frames = []
    while (due := player.due(now)) is not None:
        one, start, stop = due
        frames += [(one, index) for index in range(start, stop)]
        player.sent(stop)
    return frames


def test_paced_by_captured_time():
    one = batch(0, 0.5, 0.5, 2)
    player = CapturePlayer(lambda: [one])
    assert take(player, 100.0) == [(one, 0)]
    assert player.wait_s(100.0) == pytest.approx(0.5)
    assert take(player, 100.4) == []
    assert take(player, 100.6) == [(one, 1), (one, 2)]
    assert take(player, 101.9) == []
    assert not player.finished
    assert take(player, 102.0) == [(one, 3)]
    assert player.finished
    assert player.wait_s(103.0) is None


def test_ten_times_faster():
    one = batch(0, 10)
    player = CapturePlayer(lambda: [one], speed=10.0)
    assert take(player, 0.0) == [(one, 0)]
    assert take(player, 0.99) == []
    assert take(player, 1.01) == [(one, 1)]


def test_later_batches_keep_the_first_frames_time():
    one, two = batch(0, 1), batch(3, 4)
    player = CapturePlayer(lambda: [one, two])
    assert take(player, 0.0) == [(one, 0)]
    assert take(player, 2.0) == [(one, 1)]
    assert take(player, 3.5) == [(two, 0)]
    assert take(player, 4.0) == [(two, 1)]


def test_at_once_in_slices():
    one = batch(*range(600))
    player = CapturePlayer(lambda: [one], speed=0)
    assert player.due(0.0) == (one, 0, 256)
    player.sent(100)
    assert player.due(0.0) == (one, 100, 356)
    assert take(player, 0.0) == [(one, index) for index in range(100, 600)]
    assert player.finished


def test_repeats_after_a_pause_and_opens_the_capture_again():
    opened = []

    def open_batches():
        opened.append(batch(0, 1))
        return [opened[-1]]

    player = CapturePlayer(open_batches, speed=0, repeat=True, pause_s=5.0)
    assert take(player, 10.0) == [(opened[0], 0), (opened[0], 1)]
    assert player.wait_s(11.0) == pytest.approx(4.0)
    assert take(player, 14.9) == []
    assert take(player, 15.0) == [(opened[1], 0), (opened[1], 1)]
    assert player.rounds == 2
    assert not player.finished


def test_a_captured_clock_that_steps_back_holds_nothing_up():
    one = batch(0, 5, 1, 1, 1, 6)
    player = CapturePlayer(lambda: [one])
    assert take(player, 0.0) == [(one, 0)]
    assert take(player, 2.0) == []
    assert take(player, 5.0) == [(one, index) for index in range(1, 5)]
    assert take(player, 6.0) == [(one, 5)]


def test_an_empty_capture_ends():
    player = CapturePlayer(list)
    assert take(player, 0.0) == []
    assert player.finished


def test_negative_speed():
    message = r"^speed is -1 and pause_s is 1\.0, must not be negative$"
    with pytest.raises(ValueError, match=message):
        CapturePlayer(list, speed=-1)
