"""Linear maps over GF(2): CRC steps and hashes."""

from functools import reduce
from operator import xor

from amaranth.hdl import *
from amaranth.lib.memory import Memory

__all__ = ["linear_map"]

GROUP = 4
"""Bits that are looked up together: a table of four inputs is one LUT4 for each result bit."""


def _sums(columns):
    """The result for each value of a few bits."""
    sums = [0]
    for column in columns:
        sums += [value ^ column for value in sums]
    return sums


def linear_map(m, name, word, columns, width):
    """The exclusive-or of ``columns[i]``, each ``width`` bits, over all i where ``word[i]`` is set.

    Combinational. Written as small read-only memories, four bits of the word each, and a balanced
    tree of XOR: synthesis makes LUTs of the memories, simulators look them up, whole words at a
    time. The memories become submodules of ``m``, named after ``name``.
    """
    if len(columns) != len(word):
        raise ValueError(f"{len(columns)} columns for a word of {len(word)} bits, must be as many")
    terms = []
    for low in range(0, len(word), GROUP):
        part = word[low:low + GROUP]
        memory = Memory(shape=unsigned(width), depth=1 << len(part),
                        init=_sums(columns[low:low + GROUP]))
        m.submodules[f"{name}_{low}"] = memory
        port = memory.read_port(domain="comb")
        m.d.comb += port.addr.eq(part)
        terms.append(port.data)
    while len(terms) > 1:
        terms = [reduce(xor, terms[at:at + 2]) for at in range(0, len(terms), 2)]
    return terms[0]
