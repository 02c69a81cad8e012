"""FrameGate: whole frames or nothing, and a gap in the capture said once."""

import random

import pytest

from rocetap_hdl.mac.gate import FrameGate
from support.mac_bench import Received, received
from support.simulate import simulate

LOST = Received(b"", lost=True)
A, B, C = (Received(bytes([65 + n]) * 5) for n in range(3))


def beats_of(frame):
    for at, octet in enumerate(frame.octets):
        yield {"data": octet, "first": at == 0, "last": at == len(frame.octets) - 1}


def run(story, *, announces):
    """``story``: (open, beat or None) clock by clock."""
    dut = FrameGate(1, announces=announces)

    async def drive(ctx):
        for open_, beat in story:
            ctx.set(dut.open, open_)
            ctx.set(dut.i.valid, beat is not None)
            ctx.set(dut.i.payload, beat or {})
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(3)
    [beats] = simulate(dut, drive, dut.o)
    return beats


def frames(beats):
    """Whole frames; one without an end is left out, as the parser does."""
    whole, octets = [], []
    for beat in beats:
        if beat["first"]:
            octets = []
        octets.append(beat)
        if beat["last"]:
            whole += received(octets)
            octets = []
    return whole


def up(frame, open_=1):
    return [(open_, beat) for beat in beats_of(frame)]


@pytest.mark.parametrize("announces", [True, False])
def test_open_is_a_wire(announces):
    story = [*up(A), (1, None), *up(B), *up(C)]
    assert frames(run(story, announces=announces)) == [A, B, C]


def test_latency():
    dut, clocks = FrameGate(1, announces=True), []

    async def drive(ctx):
        ctx.set(dut.open, 1)
        for clock in range(5):
            ctx.set(dut.i.valid, clock == 2)
            ctx.set(dut.i.p.first, 1)
            if ctx.get(dut.o.valid):
                clocks.append(clock)
            await ctx.tick()
    simulate(dut, drive)
    assert clocks == [2 + FrameGate.LATENCY]


@pytest.mark.parametrize("pause", [0, 3])
def test_a_link_that_falls_is_said_at_once_and_once(pause):
    idle = [(0, None)] * 4
    story = [*up(A), *[(1, None)] * pause, *idle, *up(B, 0), *idle, *up(C)]
    assert frames(run(story, announces=True)) == [A, LOST, C]


def test_closing_in_a_frame_leaves_it_without_an_end():
    story = [*up(A)[:3], *[(0, beat) for _, beat in up(A)[3:]], *up(B)]
    assert frames(run(story, announces=True)) == [LOST, B]


def test_opening_in_a_frame_does_not_pass_its_rest():
    story = [(0, None), *[(0, beat) for _, beat in up(A)[:2]], *up(A)[2:], *up(B)]
    assert frames(run(story, announces=True)) == [B]
    assert frames(run(story, announces=False)) == [LOST, B]


def test_without_announcement_only_what_was_kept_back_is_said():
    quiet = [*up(A), *[(0, None)] * 5, *up(B)]
    assert frames(run(quiet, announces=False)) == [A, B]
    kept = [*up(A), *up(B, 0), (1, None), *up(C)]
    assert frames(run(kept, announces=False)) == [A, LOST, C]


def test_a_frame_cut_in_a_pause_is_kept_back():
    """The gate closes and opens again between two of its beats."""
    story = [*up(A)[:2], (0, None), (1, None), *up(A)[2:], *up(B)]
    assert frames(run(story, announces=False)) == [LOST, B]


def test_power_up_with_the_link_down_says_nothing():
    assert frames(run([(0, None)] * 4 + up(A), announces=True)) == [A]


@pytest.mark.parametrize("seed", range(6))
def test_random_openings_never_pass_half_a_frame(seed):
    """Every frame that comes out is one that went in, and where one is missing something says so:
    nothing is joined across a gap."""
    rng = random.Random(f"gate {seed}")
    story, sent, open_ = [], [], 1
    for number in range(60):
        frame = Received(number.to_bytes(2, "big") + bytes(rng.randrange(0, 4)))
        sent.append(frame)
        for beat in beats_of(frame):
            if rng.random() < 0.1:
                open_ = 1 - open_
            while rng.random() < 0.2:
                story.append((open_, None))
            story.append((open_, beat))
    seen = frames(run([*story, (1, None), (1, None)], announces=False))
    at = -1
    for frame, before in zip(seen, [None, *seen], strict=False):
        if frame.lost:
            continue
        number = sent.index(frame)
        assert number == at + 1 or (before and before.lost), (number, at)
        at = number
    assert LOST in seen


def test_the_rest_of_a_frame_that_a_reset_cut():
    """In front of a parser it is a bad frame, as without a gate; of a link it is nothing."""
    story = [*up(A)[2:], *up(B)]
    assert run(story, announces=False)[:3] == [beat for beat in run(story, announces=False)
                                               if beat["data"] == ord("A")]
    assert frames(run(story, announces=False)[3:]) == [B]
    assert frames(run(story, announces=True)) == [B]
    quiet = [(1, None), (0, None), (0, None), *up(B)]
    assert frames(run(quiet, announces=False)) == [B]
