"""The window engine against the reference model: every operation, every transition of the table.

The engine takes one operation a clock here, several contexts mixed, most of the time the same
context back to back.
"""

import random

import pytest

from rocetap.spec.flags import SequenceFlag
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import OperationKind
from rocetap_hdl.window import WindowEngine
from support.impair import edge_distances, impaired_psns
from support.reference import M
from support.simulate import simulate
from support.window_bench import COUNTERS, Expectation, check, run_engine


def single(psns, window, *, ends=True, word=256):
    """The final (or last) records of one connection that saw these PSNs."""
    expectation = Expectation()
    expectation.provision(0, window, 7)
    for time, psn in enumerate(psns):
        expectation.request(0, psn % M, 1000 + time)
    if ends:
        expectation.close(0)
    else:
        expectation.snapshot(0)
    return check(expectation, connections=1, word=word)


# The specification's verification examples, each by its name.

def test_example_reordered_and_repeated():
    (record,) = single([100, 102, 101, 103, 102], 4, ends=False)
    assert [record[name] for name in COUNTERS[:8]] == [5, 1, 1, 0, 0, 0, 1, 0]


def test_example_position_before_the_first():
    (record,) = single([100, 99, 100], 4, ends=False)
    assert [record[name] for name in COUNTERS[:8]] == [3, 0, 0, 0, 0, 0, 1, 1]


def test_example_expiry_and_closure():
    (record,) = single([100, 102, 106], 4, ends=False)
    assert [record[name] for name in COUNTERS[:8]] == [3, 4, 0, 1, 0, 3, 0, 0]
    (record,) = single([100, 102, 106], 4)
    assert [record[name] for name in COUNTERS[:8]] == [3, 4, 0, 1, 3, 0, 0, 0]
    assert record["flags"] == SequenceFlag.finalEpoch


def test_example_wrap_and_half_space():
    (record,) = single([16777214, 16777215, 0, 1], 4, ends=False)
    assert [record[name] for name in COUNTERS[:8]] == [4, 0, 0, 0, 0, 0, 0, 0]
    first, second = single([5, 5 + (1 << 23)], 256)
    assert first["flags"] == SequenceFlag.finalEpoch | SequenceFlag.serialDiscontinuity
    assert (first["requests"], second["requests"]) == (1, 1)


def test_example_window_of_one():
    records = single([10, 11, 13, 14], 1)
    assert [(r["requests"], r["skipped"], r["pending"]) for r in records] == [(2, 0, 0), (2, 0, 0)]


def test_example_read_and_capture_fault():
    """An observed READ disables the profile, later SENDs included; a fault starts fresh state."""
    expectation = Expectation()
    expectation.provision(0, 16, 1)
    expectation.request(0, 1, 1)
    expectation.request(0, 3, 2)
    expectation.violation(0)
    expectation.request(0, 4, 3)
    expectation.snapshot(0)
    expectation.close(0)
    expectation.provision(0, 16, 2)
    expectation.request(0, 9, 4)
    expectation.request(0, 11, 5)
    expectation.request(0, 10, 6, raise_generation=1)
    expectation.close(0)
    got = check(expectation, connections=1)
    flag = SequenceFlag
    assert [record["flags"] for record in got] == [
        flag.finalEpoch | flag.profileViolation, flag.finalEpoch | flag.captureDiscontinuity,
        flag.finalEpoch]
    assert [record["abandoned"] for record in got] == [1, 1, 0]


# Every transition at its edges, and random ones.

@pytest.mark.parametrize("window", [1, 2, 4, 100, 255, 256])
def test_edges_from_a_full_and_from_a_young_window(window):
    """Every distance at which the algorithm changes its mind, from windows of every age."""
    half = max(1, window // 2)
    expectation = Expectation()
    expectation.provision(0, window, 3)
    time = 0
    for moves in ((), (1,), (half, half), (window, 1), (1, window, window)):
        for distance in edge_distances(window):
            high = M - 5
            expectation.request(0, high, time)
            for move in moves:
                high += move
                time += 1
                expectation.request(0, high % M, time)
            expectation.request(0, (high + distance) % M, time + 1)
            expectation.close(0)
            time += 2
    check(expectation, connections=1)


@pytest.mark.parametrize("window", [1, 2, 4, 100, 256])
def test_impaired_packets_back_to_back(window):
    """One context, a packet every clock; the long runs are in tests/e2e, on the Verilated board."""
    expectation = Expectation()
    expectation.provision(0, window, 1)
    for time, psn in enumerate(impaired_psns(500, window, seed=window)):
        expectation.request(0, psn, time)
        if time % 100 == 99:
            expectation.snapshot(0)
    expectation.close(0)
    check(expectation, connections=1)


@pytest.mark.parametrize(("word", "seed", "idle"), [
    (2, 1, 0.0), (4, 2, 0.3), (16, 3, 0.0), (64, 4, 0.1), (256, 5, 0.0), (256, 6, 0.3)])
def test_everything_mixed(word, seed, idle):
    """All operations on four contexts, capture discontinuities between, causes combined."""
    rng = random.Random(seed)
    expectation = Expectation()
    windows, walks = {}, {}

    def provision(context, **values):
        windows[context] = rng.choice([1, 2, word, max(1, word // 2), rng.randint(1, word)])
        walks[context] = iter(impaired_psns(5000, windows[context], rng.randrange(1 << 30)))
        expectation.provision(context, windows[context], rng.randrange(1 << 16), **values)

    for context in range(4):
        provision(context)
    context = 0
    actions = {"request": 90, "snapshot": 4, "close": 2, "remove": 0.5, "violation": 1,
               "provision": 1.5}
    for time in range(1200):
        if rng.random() < 0.4:
            context = rng.randrange(4)
        values = {"raise_generation": 1} if rng.random() < 0.01 else {}
        action = rng.choices(list(actions), list(actions.values()))[0]
        if action == "request":
            expectation.request(context, next(walks[context]), time, **values)
        elif action == "snapshot":
            expectation.snapshot(context, **values)
        elif action == "close":
            expectation.close(context, rng.choice([0, SequenceFlag.stateExhaustion]), **values)
        elif action == "remove":
            expectation.close(context, 0, OperationKind.REMOVE, **values)
        elif action == "violation":
            expectation.violation(context, **values)
        else:
            provision(context, **values)
    got = check(expectation, connections=4, word=word, idle=idle, seed=seed)
    flags = {record["flags"] for record in got if record["kind"] == RecordKind.SEQUENCE}
    for flag in SequenceFlag:
        assert flag == SequenceFlag.generationUnverified or any(f & flag for f in flags), flag.name


def test_what_was_never_provisioned_counts_nothing():
    kinds = (OperationKind.REQUEST, OperationKind.SNAPSHOT, OperationKind.VIOLATION,
             OperationKind.CLOSE, OperationKind.REMOVE)
    assert run_engine([{"kind": kind, "context": 1} for kind in kinds], connections=2) == []


def test_marker_comes_behind_what_was_before_it():
    operations = [{"kind": OperationKind.PROVISION, "context": 0, "window": 4, "tag": 1},
                  {"kind": OperationKind.REQUEST, "context": 0, "psn": 1, "time": 2},
                  {"kind": OperationKind.CLOSE, "context": 0},
                  {"kind": OperationKind.MARKER, "context": 0, "tag": 0xC0DE}]
    got = run_engine(operations, connections=1)
    assert [(record["kind"], record["tag"]) for record in got] == [
        (RecordKind.SEQUENCE, 1), (RecordKind.MARKER, 0xC0DE)]
    assert all(got[1][name] == 0 for name in COUNTERS)


def test_exhaustion_is_told_before_a_counter_could_pass_its_width():
    """Implementations MUST close before overflow; narrow counters reach their bound here."""
    dut = WindowEngine(connections=2, word=4, counter_bits=9)
    told = []

    async def drive(ctx):
        async def send(**operation):
            ctx.set(dut.operations.payload, operation)
            ctx.set(dut.operations.valid, 1)
            await ctx.tick()
            ctx.set(dut.operations.valid, 0)
        await send(kind=int(OperationKind.PROVISION), context=1, window=4, tag=1)
        for number in range(450):
            await send(kind=int(OperationKind.REQUEST), context=1, psn=number, time=number)
            if ctx.get(dut.exhausted):
                told.append(number)
                assert ctx.get(dut.exhausted_context) == 1
                break
        await send(kind=int(OperationKind.CLOSE), context=1)
        await ctx.tick().repeat(dut.latency + 1)

    (records,) = simulate(dut, drive, dut.records)
    # Told behind the pipe, once three quarters of the width are reached.
    assert told == [3 * 128 - 1 + dut.latency]
    assert [record.requests for record in records] == [told[0] + 1]
    assert told[0] + 1 < 512


@pytest.mark.parametrize(("parameters", "message"), [
    ({"connections": 0}, "connections is 0, must be 1 or more"),
    ({"connections": 1, "word": 3}, "word is 3, must be a power of two from 2"),
    ({"connections": 1, "word": 1}, "word is 1, must be a power of two from 2"),
    ({"connections": 1, "word": 1 << 23},
     "word is 8388608, must be at most 2^22, a quarter of the PSN space"),
    ({"connections": 1, "counter_bits": 65},
     "counter_bits is 65, must be 15 to 64 with a word of 256"),
    ({"connections": 1, "counter_bits": 14},
     "counter_bits is 14, must be 15 to 64 with a word of 256"),
])
def test_parameters_that_cannot_be(parameters, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        WindowEngine(**parameters)
    assert str(error.value) == message
