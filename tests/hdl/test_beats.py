"""Beats: the words of a move, in order, against a list of positions."""

import random

import pytest

from rocetap_hdl.beats import Beats
from support.simulate import simulate


def words_of(first, count, ring, word):
    """(cell, positions in it) of a range of a ring, in order."""
    cells = []
    for position in range(first, first + count):
        cell, place = divmod(position % ring, word)
        if not cells or cells[-1][0] != cell:
            cells.append((cell, []))
        cells[-1][1].append(place)
    return cells


@pytest.mark.parametrize(("ring_bits", "word_bits", "seed"), [(2, 1, 1), (5, 2, 2), (8, 6, 3)])
def test_moves_of_every_length(ring_bits, word_bits, seed):
    rng = random.Random(seed)
    ring, word = 1 << ring_bits, 1 << word_bits
    lengths = (0, 1, word, word + 1, ring - 1, ring)
    moves = [(rng.randrange(ring), rng.choice(lengths), rng.randrange(ring), rng.choice(lengths),
              number % 256) for number in range(200)]
    dut = Beats(ring_bits, word_bits, 8)

    async def drive(ctx):
        for asked_from, asked, opened_from, opened, rest in moves:
            ctx.set(dut.moves.payload, {
                "asked_from": asked_from, "asked_count": asked, "opened_from": opened_from,
                "opened_count": opened, "rest": rest})
            ctx.set(dut.moves.valid, 1)
            await ctx.tick().until(dut.moves.ready)
            ctx.set(dut.moves.valid, 0)
            while rng.random() < 0.3:
                await ctx.tick()
        await ctx.tick().repeat(2 * ring // word + 4)

    (beats,) = simulate(dut, drive, dut.beats)
    beats = iter(beats)
    for asked_from, asked, opened_from, opened, rest in moves:
        expected = [(cell, places, []) for cell, places in words_of(asked_from, asked, ring, word)]
        expected += [(cell, [], places)
                     for cell, places in words_of(opened_from, opened, ring, word)]
        for index, (cell, asks, opens) in enumerate(expected or [(None, [], [])]):
            beat = next(beats)
            last = index == max(0, len(expected) - 1)
            assert (beat.first, beat.last, beat.rest) == (index == 0, last, rest)
            assert beat.asked_count == len(asks)
            assert beat.opened_count == len(opens) - (last and opened > 0)
            if cell is not None:
                assert beat.cell == cell
                assert (beat.asked_from if asks else beat.opened_from) == (asks or opens)[0]
    assert next(beats, None) is None


@pytest.mark.parametrize("word_bits", [0, 4, 5])
def test_words_that_do_not_divide_the_ring(word_bits):
    message = f"word_bits is {word_bits}, must be 1 to 3 on a ring of 2^4 positions"
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        Beats(4, word_bits, 1)
    assert str(error.value) == message
