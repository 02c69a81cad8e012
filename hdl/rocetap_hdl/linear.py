"""Linear maps over GF(2): CRC steps and hashes, as exclusive-ors of constants."""

from functools import reduce
from operator import xor

from amaranth.hdl import *

__all__ = ["linear_map"]


def _balanced(values):
    while len(values) > 1:
        values = [reduce(xor, values[at:at + 2]) for at in range(0, len(values), 2)]
    return values[0]


def linear_map(word, columns, width):
    """The exclusive-or of ``columns[i]``, each ``width`` bits, over all i where ``word[i]`` is set.

    Synthesis makes one tree of XOR gates of each result bit. It is written as a choice of constants
    and not as parities of bits because simulators run that on whole words.
    """
    if len(columns) != len(word):
        raise ValueError(f"{len(columns)} columns for a word of {len(word)} bits, must be as many")
    return _balanced([Mux(word[i], Const(column, width), 0) for i, column in enumerate(columns)])
