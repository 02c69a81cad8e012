"""GmiiTransmit behind its queue: what goes out, how far apart, and what is said of it."""

import random

import pytest

from rocetap_hdl.mac.transmit import GAPS, GmiiTransmit
from support.frames import pad, pfc, roce, with_fcs
from support.mac_bench import Received, frames_in, received
from support.simulate import simulate

FRAMES = [with_fcs(pad(roce(psn=3))), with_fcs(pfc({3: 9})), b"\x01", bytes(range(100))]


def queue_of(frames, *, errors=frozenset()):
    for number, frame in enumerate(frames):
        for at, octet in enumerate(frame):
            last = at == len(frame) - 1
            yield {"data": octet, "first": at == 0, "last": last,
                   "error": last and number in errors}


class Line:
    """A transmitter with a queue of octets that `play` fills."""

    def __init__(self):
        self.dut = GmiiTransmit()
        self.line, self.sent = [], []

    def play(self, octets, *, clocks, level=lambda clock: 0, up=lambda clock: True,
             dry=lambda clock: False):
        dut, queue = self.dut, list(octets)

        async def drive(ctx):
            for clock in range(clocks):
                ctx.set(dut.up, up(clock))
                ctx.set(dut.level, level(clock))
                ctx.set(dut.frames.valid, bool(queue) and not dry(clock))
                ctx.set(dut.frames.payload, queue[0] if queue else {})
                taken = ctx.get(dut.frames.valid) and ctx.get(dut.frames.ready)
                self.line.append((ctx.get(dut.o.valid), ctx.get(dut.o.error), ctx.get(dut.o.data)))
                await ctx.tick()
                if taken:
                    queue.pop(0)
        [beats] = simulate(dut, drive, dut.sent)
        self.sent = received(beats)
        return frames_in(self.line)


def test_frames_go_out_as_they_are():
    line = Line()
    seen = line.play(queue_of(FRAMES), clocks=500)
    assert [(frame, preamble, error) for _, frame, preamble, error in seen] == [
        (frame, 7, False) for frame in FRAMES]
    assert [before for before, *_ in seen[1:]] == [12] * 3
    assert line.sent == [Received(frame) for frame in FRAMES]


@pytest.mark.parametrize(("level", "octets"), [
    (0, 12), (15, 12), (16, 8), (255, 8), (256, 5), (1000, 5)])
def test_the_gap_shrinks_as_the_queue_grows(level, octets):
    seen = Line().play(queue_of([bytes(64)] * 4), clocks=400, level=lambda clock: level)
    assert [before for before, *_ in seen[1:]] == [octets] * 3
    assert GAPS[0] == (0, 12)


def test_latency():
    line = Line()
    line.play(queue_of([b"a"]), clocks=60, dry=lambda clock: clock < 30)
    # Offered in clock 30, with the gap long over.
    assert line.line[30 + GmiiTransmit.LATENCY] == (1, 0, ord("a"))


def test_a_bad_frame_goes_out_bad():
    line = Line()
    seen = line.play(queue_of(FRAMES, errors={1}), clocks=500)
    assert [error for *_, error in seen] == [False, True, False, False]
    assert [frame for _, frame, *_ in seen] == FRAMES
    assert [frame.error for frame in line.sent] == [False, True, False, False]


def test_a_queue_that_runs_dry_cuts_the_frame():
    line = Line()
    frames = [bytes(64), b"next" * 16]
    seen = line.play(queue_of(frames), clocks=400, dry=lambda clock: 40 <= clock < 60)
    assert [error for *_, error in seen] == [True, False]
    assert len(seen[0][1]) < 64
    assert seen[1][1] == frames[1]
    assert [frame.error for frame in line.sent] == [True, False]


def test_a_frame_without_an_end_is_cut_by_the_next():
    line = Line()
    queue = list(queue_of([bytes(64)]))[:30] + list(queue_of([b"next" * 16]))
    seen = line.play(queue, clocks=300)
    assert [(len(frame), error) for _, frame, _, error in seen] == [(31, True), (64, False)]
    assert [(len(frame.octets), frame.error) for frame in line.sent] == [(31, True), (64, False)]


def test_nothing_goes_out_while_the_link_is_down():
    line = Line()
    seen = line.play(queue_of(FRAMES), clocks=400, up=lambda clock: False)
    assert seen == []
    assert line.sent == []
    assert not any(valid for valid, *_ in line.line)


def test_a_link_that_falls_cuts_the_frame_and_drops_the_rest():
    line = Line()
    frames = [bytes(100), bytes(64), b"last" * 16]
    seen = line.play(queue_of(frames), clocks=600, up=lambda clock: clock < 60 or clock > 160)
    assert [(error, frame == frames[2]) for _, frame, _, error in seen] == [
        (True, False), (False, True)]
    assert [frame.error for frame in line.sent] == [True, False]


@pytest.mark.parametrize("seed", range(3))
def test_random(seed):
    rng = random.Random(f"transmit {seed}")
    frames = [rng.randbytes(rng.randrange(1, 90)) for _ in range(25)]
    errors = frozenset(n for n in range(25) if rng.random() < 0.2)
    line = Line()
    seen = line.play(queue_of(frames, errors=errors), clocks=3000,
                     level=lambda clock: rng.choice((0, 20, 400)))
    assert [(frame, error) for _, frame, _, error in seen] == [
        (frame, n in errors) for n, frame in enumerate(frames)]
    assert all(5 <= before <= 12 for before, *_ in seen[1:])
    assert line.sent == [Received(frame, error=n in errors) for n, frame in enumerate(frames)]
