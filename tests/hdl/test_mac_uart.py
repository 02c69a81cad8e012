"""The UART against a line of bits with clocks of its own."""

import random

import pytest

from rocetap_hdl.mac.uart import UartReceive, UartTransmit, bit_clocks
from support.refuses import refuses
from support.simulate import simulate


def bits_of(octet, *, stop=1):
    return [0, *(octet >> n & 1 for n in range(8)), stop]


def line_of(octets, *, clocks, skew=1.0, idle=lambda: 0, stop=1):
    """The line's level in each of the receiver's clocks; ``skew``: length of the sender's bit."""
    levels, at = [1] * 20, 20.0
    for octet in octets:
        for bit in bits_of(octet, stop=stop):
            at += clocks * skew
            levels += [bit] * (round(at) - len(levels))
        rest = idle()
        levels += [1] * rest
        at += rest
    return levels + [1] * 40


def receive(levels, *, clocks, ready=lambda: True):
    dut = UartReceive(clocks=clocks)
    stats = {"framing": 0, "overrun": 0}

    async def drive(ctx):
        for level in levels:
            ctx.set(dut.line, level)
            ctx.set(dut.octets.ready, ready())
            stats["framing"] += ctx.get(dut.stat_framing)
            stats["overrun"] += ctx.get(dut.stat_overrun)
            await ctx.tick()
    [octets] = simulate(dut, drive, dut.octets)
    return bytes(octets), stats


@pytest.mark.parametrize("skew", [1.0, 0.97, 1.03])
@pytest.mark.parametrize("clocks", [4, 10, 42])
def test_every_octet_back_to_back_at_every_skew(clocks, skew):
    if clocks == 4 and skew != 1.0:
        skew = 1.0 + (skew - 1.0) / 4      # four samples a bit see no more
    octets = bytes(random.Random(f"uart {clocks}").sample(range(256), 24)) + b"\0\xff\x55"
    seen, stats = receive(line_of(octets, clocks=clocks, skew=skew), clocks=clocks)
    assert seen == octets
    assert stats == {"framing": 0, "overrun": 0}


def test_a_low_stop_bit_drops_the_octet_and_no_more():
    levels = (line_of(b"a", clocks=10) + line_of(b"x", clocks=10, stop=0)
              + line_of(b"b", clocks=10))
    assert receive(levels, clocks=10) == (b"ab", {"framing": 1, "overrun": 0})


def test_a_break_is_one_framing_error():
    levels = line_of(b"a", clocks=10) + [0] * 500 + line_of(b"b", clocks=10)
    assert receive(levels, clocks=10) == (b"ab", {"framing": 1, "overrun": 0})


def test_a_spike_is_no_start_bit():
    levels = [1] * 20 + [0] * 3 + [1] * 30 + line_of(b"z", clocks=10)
    assert receive(levels, clocks=10)[0] == b"z"


def test_an_octet_that_is_not_taken_is_dropped_and_counted():
    levels = line_of(b"abc", clocks=10)
    clock = iter(range(len(levels)))
    seen, stats = receive(levels, clocks=10, ready=lambda: next(clock) > len(levels) - 5)
    assert seen == b"a"
    assert stats == {"framing": 0, "overrun": 2}


@pytest.mark.parametrize("clocks", [4, 42])
def test_transmit(clocks):
    octets = random.Random("out").randbytes(12)
    dut, levels = UartTransmit(clocks=clocks), []

    async def drive(ctx):
        queue = list(octets)
        for clock in range(len(octets) * 10 * clocks + 5 * clocks):
            ctx.set(dut.octets.valid, bool(queue) and clock > 3)
            ctx.set(dut.octets.payload, queue[0] if queue else 0)
            taken = ctx.get(dut.octets.valid) and ctx.get(dut.octets.ready)
            levels.append(ctx.get(dut.line))
            await ctx.tick()
            if taken:
                queue.pop(0)
    simulate(dut, drive)
    start = levels.index(0)
    bits = levels[start + clocks // 2::clocks]
    # Back to back but for the clock in which the next octet is taken.
    assert receive(levels, clocks=clocks)[0] == octets
    assert bits[:10] == bits_of(octets[0])
    assert len(levels) - levels[::-1].index(0) <= start + len(octets) * (10 * clocks + 1)


def test_bit_clocks():
    assert bit_clocks(125_000_000, 3_000_000) == 42
    assert bit_clocks(125_000_000, 1_000_000) == 125
    refuses("baud is 50000000, must be a quarter of 125000000 Hz at most and within 1.5% of a "
            "whole divisor of it", lambda: bit_clocks(125_000_000, 50_000_000))
    refuses("baud is 9300000, must be a quarter of 80000000 Hz at most and within 1.5% of a whole "
            "divisor of it", lambda: bit_clocks(80_000_000, 9_300_000))
    refuses("clocks is 3, must be 4 or more", lambda: UartReceive(clocks=3))
    refuses("clocks is 3, must be 4 or more", lambda: UartTransmit(clocks=3))
