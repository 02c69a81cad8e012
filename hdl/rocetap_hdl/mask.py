"""Masks over a ring of bits, and counting bits: pure pipeline."""

from amaranth.hdl import *

from .pipeline import Pipeline

__all__ = ["COUNT_STAGES", "RANGE_STAGES", "any_set", "popcount", "range_mask"]

RANGE_STAGES = 3
"""Clocks from start and count to the mask of `range_mask`."""


def _thermometer(position, width):
    """Parts of the comparison ``i >= position`` for every i: (high parts below, equal, low)."""
    low_bits = (width - 1).bit_length() // 2
    low, high = position[:low_bits], position[low_bits:]
    below = Cat(high < a for a in range(max(1, width >> low_bits)))
    equal = Cat(high == a for a in range(max(1, width >> low_bits)))
    at_most = Cat(low <= b for b in range(1 << low_bits))
    return below, equal, at_most


def _at_least(parts, index, width):
    low_bits = (width - 1).bit_length() // 2
    below, equal, at_most = parts
    a, b = index >> low_bits, index & ((1 << low_bits) - 1)
    return below[a] | (equal[a] & at_most[b])


def range_mask(m, name, start, count, width):
    """Bits start, start+1, ... start+count-1 of a ring of ``width`` (a power of two), count from 0
    to width. The mask comes RANGE_STAGES clocks after its inputs.

    With end = start + count: when the sum wraps the range is what is at or above start or below
    end, else what is both. Both ends of the count (none, all) need no case of their own.
    """
    bits = (width - 1).bit_length()
    p = Pipeline(m, f"{name}_range")
    total = Signal(bits + 2, name=f"{name}_total")
    m.d.comb += total.eq(start[:bits] + count)
    p.put(f"{name}_start", start[:bits], 0)
    p.put(f"{name}_end", total[:bits], 0)
    p.put(f"{name}_wraps", total[bits], 0)
    parts = []
    for end in ("start", "end"):
        position = p.get(f"{name}_{end}", 1)
        kept = []
        for part, value in zip(("below", "equal", "at_most"), _thermometer(position, width),
                               strict=True):
            register = Signal(len(value), name=f"{name}_{end}_{part}", reset_less=True)
            m.d.sync += register.eq(value)
            kept.append(register)
        parts.append(kept)
    wraps = p.get(f"{name}_wraps", 2)
    mask = Signal(width, name=f"{name}_mask", reset_less=True)
    for index in range(width):
        above = _at_least(parts[0], index, width)
        under = ~_at_least(parts[1], index, width)
        m.d.sync += mask[index].eq(Mux(wraps, above | under, above & under))
    return mask


COUNT_STAGES = 4
"""Clocks from a word to the number of its set bits, or to whether any is set, at any width."""


def _reduce(m, name, bits, combine):
    """Combines bits to one value in COUNT_STAGES registers, in groups of equal size."""
    values = list(bits)
    for stage in range(COUNT_STAGES):
        group = 1
        while group ** (COUNT_STAGES - stage) < len(values):
            group += 1
        combined = []
        for at in range(0, len(values), group):
            value = combine(values[at:at + group])
            register = Signal(value.shape(), name=f"{name}_{stage}_{at}", reset_less=True)
            m.d.sync += register.eq(value)
            combined.append(register)
        values = combined
    return values[0]


def popcount(m, name, word):
    """How many bits of ``word`` are set, COUNT_STAGES clocks later."""
    top = len(word).bit_length()

    def add(values):
        total = Value.cast(sum(values[1:], start=values[0]))
        return total[:top]

    return _reduce(m, name, word, add)


def any_set(m, name, word):
    """Whether any bit of ``word`` is set, COUNT_STAGES clocks later."""
    return _reduce(m, name, word, lambda values: Cat(values).any())
