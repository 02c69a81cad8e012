"""linear_map: every single bit, and sums of them; by linearity that is all inputs."""

import random
from functools import reduce
from operator import xor

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from rocetap_hdl.linear import linear_map


class Map(wiring.Component):
    def __init__(self, columns, width):
        self.columns, self.width = columns, width
        super().__init__({"word": In(len(columns)), "result": Out(width)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.result.eq(linear_map(m, "map", self.word, self.columns, self.width))
        return m


@pytest.mark.parametrize("bits", [1, 3, 4, 5, 32, 67])
def test_bits_and_their_sums(bits):
    rng = random.Random(bits)
    columns = [rng.getrandbits(32) for _ in range(bits)]
    dut = Map(columns, 32)
    words = [0, *(1 << i for i in range(bits)), *(rng.getrandbits(bits) for _ in range(50))]
    sim = Simulator(dut)

    async def drive(ctx):
        for word in words:
            ctx.set(dut.word, word)
            assert ctx.get(dut.result) == reduce(
                xor, (column for i, column in enumerate(columns) if word >> i & 1), 0)
    sim.add_testbench(drive)
    sim.run()


def test_columns_that_do_not_fit():
    m = Module()
    with pytest.raises(ValueError, match=r"^1 columns for a word of 2 bits, must be as many$"):
        linear_map(m, "map", Map([0, 0], 4).word, [1], 4)
