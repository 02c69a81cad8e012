"""Masks over a ring of bits, and counting bits: pure pipeline, written as operations on words.

Words and not single bits, because the same text has to be fast as simulated native code, too.
"""

from amaranth.hdl import *

__all__ = ["COUNT_STAGES", "RANGE_STAGES", "any_set", "popcount", "range_mask"]

RANGE_STAGES = 3
"""Clocks from start and count to the mask of `range_mask`."""


def _ones(width):
    return Const((1 << width) - 1, width)


def _parts(position, width):
    """The comparison ``i >= position`` of every i, in two digits: which high digits lie above the
    position's, which is the same, and which low digits are at or above its low digit."""
    low_bits = (width - 1).bit_length() // 2
    low, high = position[:low_bits], position[low_bits:]
    highs, lows = width >> low_bits, 1 << low_bits
    all_high, all_low = _ones(highs), _ones(lows)
    above = ((all_high << high) << 1)[:highs]
    same = (Const(1, highs) << high)[:highs]
    return above, same, (all_low << low)[:lows]


def _at_least(parts, width):
    """The word of ``i >= position``, one block of low digits for each high digit."""
    above, same, at_least = parts
    lows = len(at_least)
    return Cat(Mux(above[a], _ones(lows), Mux(same[a], at_least, 0)) for a in range(len(above)))


def range_mask(p, name, start, count, stage, width):
    """Bits start, start+1, ... start+count-1 of a ring of ``width`` (a power of two), count from 0
    to width, as the value ``name`` of pipeline ``p``, born RANGE_STAGES after ``stage``.

    With end = start + count: when the sum wraps the range is what is at or above start or below
    end, else what is both. Both ends of the count (none, all) need no case of their own.
    """
    bits = (width - 1).bit_length()
    p.put(f"{name}_start", start[:bits], stage)
    p.put(f"{name}_end", (start[:bits] + count)[:bits + 1], stage)
    words = []
    for edge in (f"{name}_start", f"{name}_end"):
        parts = _parts(p.get(edge, stage + 1)[:bits], width)
        for number, part in enumerate(parts):
            p.put(f"{edge}_part{number}", part, stage + 1)
        parts = [p.get(f"{edge}_part{number}", stage + 2) for number in range(len(parts))]
        p.put(f"{edge}_word", _at_least(parts, width), stage + 2)
        words.append(p.get(f"{edge}_word", stage + RANGE_STAGES))
    wraps = p.get(f"{name}_end", stage + RANGE_STAGES)[bits]
    above, beyond = words
    return p.put(name, Mux(wraps, above | ~beyond, above & ~beyond), stage + RANGE_STAGES)


COUNT_STAGES = 4
"""Stages from a word to the number of its set bits, or to whether any is set, at any width."""


def _groups(length, stage):
    """How many neighbours are combined at a stage so that one value is left at the end."""
    group = 1
    while group ** (COUNT_STAGES - stage) < length:
        group += 1
    return group


def popcount(p, name, word, stage):
    """How many bits of ``word`` are set: the value ``name``, born COUNT_STAGES after ``stage``.

    The first stage counts in columns: the word is cut into slices, and bit i of all slices makes
    one small number, held as bit planes. So it is a few operations on whole slices.
    """
    group = _groups(len(word), 0)
    size = -(-len(word) // group)
    planes = []
    for at in range(0, len(word), size):
        carry = word[at:at + size]
        for index, plane in enumerate(planes):
            planes[index], carry = plane ^ carry, plane & carry
        if len(planes) < group.bit_length():
            planes.append(carry)
    for index, plane in enumerate(planes):
        p.put(f"{name}_plane{index}", plane, stage)
    planes = [p.get(f"{name}_plane{index}", stage + 1) for index in range(len(planes))]
    numbers = [Cat(plane[i] for plane in planes if i < len(plane)) for i in range(size)]
    top = len(word).bit_length()
    for at in range(1, COUNT_STAGES):
        group = _groups(len(numbers), at)
        sums = []
        for first in range(0, len(numbers), group):
            part = numbers[first:first + group]
            key = f"{name}_{at}_{first}"
            p.put(key, Value.cast(sum(part[1:], start=part[0]))[:top], stage + at)
            sums.append(p.get(key, stage + at + 1))
        numbers = sums
    return p.put(name, numbers[0], stage + COUNT_STAGES)


def any_set(p, name, word, stage):
    """Whether any bit of ``word`` is set: the value ``name``, born COUNT_STAGES after ``stage``."""
    for at in range(COUNT_STAGES):
        group = _groups(len(word), at)
        key = f"{name}_{at}"
        p.put(key, Cat(word[i:i + group].any() for i in range(0, len(word), group)), stage + at)
        word = p.get(key, stage + at + 1)
    return p.put(name, word[0], stage + COUNT_STAGES)
