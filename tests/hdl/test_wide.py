"""Windows of several words against the reference model, and what a full queue does."""

import random

import pytest

from rocetap.spec.flags import SequenceFlag
from rocetap.spec.registers import OperationKind
from rocetap_hdl.wide import WideWindowEngine
from support.impair import edge_distances, impaired_psns
from support.reference import M
from support.window_bench import Expectation, check, run_engine


def wide_check(expectation, *, queue=1024, **parameters):
    return check(expectation, engine=WideWindowEngine, queue=queue, **parameters)


@pytest.mark.parametrize(("word", "words"), [(2, 2), (4, 8), (64, 64)])
def test_edges(word, words):
    """Every distance at which the algorithm changes its mind, from windows of every age."""
    expectation = Expectation()
    time = 0
    for window in (word * words, word * words - 1, word + 1):
        expectation.provision(0, window, 3)
        for moves in ((), (1, window), (window // 2, window)):
            for distance in edge_distances(window):
                high = M - 3
                expectation.request(0, high, time)
                for move in moves:
                    high += move
                    time += 1
                    expectation.request(0, high % M, time)
                expectation.request(0, (high + distance) % M, time + 1)
                expectation.close(0)
                time += 2
    wide_check(expectation, word=word, words=words, connections=1, idle=0.9)


@pytest.mark.parametrize(("word", "words", "window", "seed"), [
    (4, 4, 16, 1), (4, 4, 9, 2), (16, 8, 128, 3), (64, 64, 4096, 4), (64, 64, 3000, 5)])
def test_impaired_packets(word, words, window, seed):
    expectation = Expectation()
    walks = [iter(impaired_psns(200, window, seed + 10 * context)) for context in range(3)]
    for context in range(3):
        expectation.provision(context, window, context + 1)
    rng = random.Random(seed)
    for time in range(400):
        context = rng.choices(range(3), (6, 1, 1))[0]
        psn = next(walks[context], None)
        if psn is not None:
            expectation.request(context, psn, time)
        if time % 90 == 89:
            expectation.snapshot(context)
        if time % 200 == 199:
            expectation.violation(context)
            expectation.provision(context, window, time)
    for context in range(3):
        expectation.close(context)
    wide_check(expectation, word=word, words=words, connections=3, idle=0.8, seed=seed)


def test_a_full_queue_is_a_capture_discontinuity():
    """Requests that found no room are in no counter, and nothing is joined across them."""
    window, queue = 64, 32
    operations = [{"kind": OperationKind.PROVISION, "context": 0, "window": window, "tag": 1}]
    # Each packet a jump of W: a beat for every word twice, far more than a clock.
    psns = [(10 + window * step) % M for step in range(150)]
    for step, psn in enumerate(psns):
        operations.append({"kind": OperationKind.REQUEST, "context": 0, "psn": psn, "time": step})
        if step % 50 == 49:
            operations.append(1500)
    operations.append({"kind": OperationKind.CLOSE, "context": 0})
    got = run_engine(operations, engine=WideWindowEngine, connections=1, word=4, words=16,
                     queue=queue)
    flag = SequenceFlag
    assert len(got) == 3
    for record in got:
        assert record["flags"] == flag.finalEpoch | flag.captureDiscontinuity
        # Back to back within an epoch: last - first is the number of packets between.
        assert record["last_time"] - record["first_time"] == record["requests"] - 1
        assert record["skipped"] == (record["requests"] - 1) * (window - 1)
        assert record["skipped"] == record["expired"] + record["abandoned"]
    assert sum(record["requests"] for record in got) < len(psns)


@pytest.mark.parametrize(("parameters", "message"), [
    ({"words": 1}, "words is 1, must be a power of two from 2; a window of one word is "
                   "WindowEngine's"),
    ({"words": 3}, "words is 3, must be a power of two from 2; a window of one word is "
                   "WindowEngine's"),
    ({"words": 1 << 15}, "word * words is 8388608, must be at most 2^22, a quarter of the PSN "
                         "space"),
    ({"queue": 8}, "queue is 8, must be 28 or more: what is on its way to it has to fit"),
    ({"counter_bits": 18}, "counter_bits is 18, must be 19 or more with a window of 4096"),
])
def test_parameters_that_cannot_be(parameters, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        WideWindowEngine(connections=1, **parameters)
    assert str(error.value) == message


def test_the_largest_window_is_a_parameter():
    """2^22 positions, the profile's bound on W: the engine elaborates with its memory."""
    dut = WideWindowEngine(connections=1, word=256, words=1 << 14)
    assert dut.ring_bits == 22
    run = run_engine([{"kind": OperationKind.PROVISION, "context": 0, "window": 1 << 22, "tag": 1},
                      {"kind": OperationKind.REQUEST, "context": 0, "psn": 5, "time": 1},
                      {"kind": OperationKind.REQUEST, "context": 0, "psn": 7, "time": 2},
                      {"kind": OperationKind.CLOSE, "context": 0}],
                     engine=WideWindowEngine, connections=1, word=256, words=1 << 14)
    assert [(r["requests"], r["skipped"], r["abandoned"]) for r in run] == [(2, 1, 1)]
