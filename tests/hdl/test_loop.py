"""StateLoop against a plain dictionary: every distance between operations on one word."""

import random

import pytest
from amaranth.sim import Simulator

from rocetap_hdl.loop import StateLoop


def run_loop(operations, depth=4):
    """Adds each operation's number to its word; returns the states that the operations saw."""
    dut = StateLoop(16, depth)
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    seen = []

    async def drive(ctx):
        pipe = [None] * StateLoop.latency
        for operation in [*operations, *[None] * (StateLoop.latency + 1)]:
            address, write, _ = operation or (0, 0, None)
            ctx.set(dut.live, operation is not None)
            ctx.set(dut.address, address)
            ctx.set(dut.write, write)
            due = pipe.pop(0)
            pipe.append(operation)
            if due is not None:
                state = ctx.get(dut.state)
                seen.append(state)
                ctx.set(dut.next, (state + due[2]) & 0xFFFF)
            await ctx.tick()
    sim.add_testbench(drive)
    sim.run()
    return seen


def expected(operations):
    words, seen = {}, []
    for operation in operations:
        if operation is None:
            continue
        address, write, add = operation
        state = words.get(address, 0)
        seen.append(state)
        if write:
            words[address] = (state + add) & 0xFFFF
    return seen


@pytest.mark.parametrize("distance", range(1, 7))
def test_two_operations_at_every_distance(distance):
    operations = [(2, 1, 5), *[None] * (distance - 1), (2, 1, 7), *[None] * 9, (2, 0, 0)]
    assert run_loop(operations) == [0, 5, 12]


def test_same_word_back_to_back():
    operations = [(1, 1, 3)] * 50
    assert run_loop(operations) == [3 * i for i in range(50)]


def test_operation_that_does_not_write_is_not_forwarded():
    assert run_loop([(1, 1, 3), (1, 0, 9), (1, 1, 1), (1, 0, 0)]) == [0, 3, 3, 4]


@pytest.mark.parametrize("seed", range(4))
def test_random_operations(seed):
    rng = random.Random(seed)
    operations = [None if rng.random() < 0.2
                  else (rng.randrange(3), rng.random() < 0.8, rng.randrange(1 << 16))
                  for _ in range(500)]
    assert run_loop(operations) == expected(operations)
