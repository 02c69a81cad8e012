"""CounterBank and Counters: exact at every read, all at once, around the wrap and after a reset."""

import random
from collections import Counter

import pytest
from amaranth.hdl import ResetInserter, Signal

from rocetap.spec.classes import FrameClass
from rocetap.spec.registers import BANKS
from rocetap_hdl.counters import CounterBank, Counters
from support.refuses import refuses
from support.simulate import simulate


def bank_run(count, clocks, traffic, *, bits=64, seed=1, reset_at=None):
    """Drives ``traffic(rng, clock)`` into a bank and reads counters at random; checks each read
    against the true values at its start and its end. Gives the last values and the true ones."""
    reset = Signal()
    bank = CounterBank(count, bits=bits)
    dut = ResetInserter(reset)(bank)
    rng = random.Random(f"counters {seed}")
    true = [0] * count
    reads = 0

    async def drive(ctx):
        nonlocal true, reads
        history = []
        index, since = 0, 0
        for clock in range(clocks):
            restart = clock == reset_at
            ctx.set(reset, restart)
            increments = traffic(rng, clock)
            ctx.set(bank.increment, increments)
            if clock - since > CounterBank.latency and rng.random() < 0.05:
                index, since = rng.randrange(count), clock
            ctx.set(bank.index, index)
            history.append(list(true))
            true = [0] * count if restart else [
                old + (increments >> i & 1) for i, old in enumerate(true)]
            if restart:
                since = clock + 1
            if clock - since >= CounterBank.latency:
                low = history[clock - CounterBank.latency][index]
                span = history[clock][index] - low
                assert (ctx.get(bank.value) - low) % (1 << bits) <= span
                reads += 1
            await ctx.tick()
        ctx.set(bank.increment, 0)
        final = []
        for i in range(count):
            ctx.set(bank.index, i)
            await ctx.tick().repeat(CounterBank.latency)
            final.append(ctx.get(bank.value))
            await ctx.tick().repeat(CounterBank.latency)
            assert ctx.get(bank.value) == final[-1]
        assert final == [value % (1 << bits) for value in true]
    simulate(dut, drive)
    assert reads > clocks / 3
    return true


@pytest.mark.parametrize("count", [2, 7, 54])
def test_all_counters_in_every_clock(count):
    true = bank_run(count, 1500, lambda rng, clock: (1 << count) - 1)
    assert true == [1500] * count


@pytest.mark.parametrize("bits", [2, 5, 9, 64])
def test_random_traffic_and_wrap(bits):
    """Narrow counters wrap many times; what a read may be is then taken modulo 2^bits."""
    true = bank_run(6, 3000, lambda rng, clock: rng.getrandbits(6) & rng.getrandbits(6), bits=bits)
    assert bits == 64 or min(true) > 1 << bits


def test_reset_starts_from_zero_and_keeps_what_comes_after():
    """In every phase of a visit: the memory is not cleared, its old words must not come back."""
    for reset_at in range(700, 711):
        true = bank_run(5, 1000, lambda rng, clock: rng.getrandbits(5), reset_at=reset_at)
        assert 0 < max(true) < 300


def test_carry_between_the_halves():
    """A 16-bit counter over the bound of its low half, read at every moment: never torn."""
    bank_run(2, 1200, lambda rng, clock: 1, bits=16)


def run_counters(ports, events):
    """(bank, port, index) -> value after ``events``, a list of clocks: (port, kind, payload)."""
    dut = Counters(ports)
    values = {}

    async def drive(ctx):
        for clock in events:
            for port in range(ports):
                for stream in (dut.classes[port], dut.received[port], dut.transmitted[port]):
                    ctx.set(stream.valid, 0)
            for port, kind, payload in clock:
                stream = getattr(dut, kind)[port]
                ctx.set(stream.valid, 1)
                ctx.set(stream.payload, payload)
            await ctx.tick()
        for port in range(ports):
            for stream in (dut.classes[port], dut.received[port], dut.transmitted[port]):
                ctx.set(stream.valid, 0)
        for bank, name in enumerate(("frame_class", "pfc_received", "pfc_transmitted")):
            for port in range(ports):
                for index in range(BANKS[name].count):
                    ctx.set(dut.bank, bank)
                    ctx.set(dut.port, port)
                    ctx.set(dut.index, index)
                    await ctx.tick().repeat(Counters.latency)
                    values[name, port, index] = ctx.get(dut.value)
    simulate(dut, drive)
    return values


@pytest.mark.parametrize("ports", [1, 2])
def test_banks_against_a_count_in_python(ports):
    """Every counter is read, those that must stay zero too."""
    rng = random.Random(f"banks {ports}")
    expected = Counter()
    events = []
    for _ in range(400):
        clock = []
        for port in range(ports):
            if rng.random() < 0.8:
                frame_class = rng.choice([one for one in FrameClass if one != FrameClass.CNP])
                clock.append((port, "classes", frame_class))
                expected["frame_class", port, frame_class] += 1
            for kind in ("received", "transmitted"):
                if rng.random() < 0.3:
                    vector, xoff = rng.getrandbits(8) & 0xF7, rng.getrandbits(8)
                    clock.append((port, kind, {"vector": vector, "xoff": xoff}))
                    for n in range(8):
                        expected[f"pfc_{kind}", port, n] += vector >> n & 1
                        expected[f"pfc_{kind}", port, 8 + n] += (vector & xoff) >> n & 1
        events.append(clock)
    values = run_counters(ports, events)
    assert values == {key: expected[key] for key in values}
    assert values["frame_class", 0, FrameClass.CNP] == values["pfc_received", 0, 3] == 0


@pytest.mark.parametrize(("count", "bits"), [(1, 64), (4, 1)])
def test_bank_that_is_not_made(count, bits):
    refuses(f"count is {count} and bits is {bits}, both must be 2 or more",
            lambda: CounterBank(count, bits=bits))
