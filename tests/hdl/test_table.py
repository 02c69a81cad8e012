"""ConnectionTable against the host's placement of keys (rocetap.spec.keys)."""

import random

import pytest

from rocetap.spec.classes import ATTRIBUTABLE, FrameClass
from rocetap.spec.keys import KEY_BITS, KEY_FIELDS, WAYS, hash_key, pack_key, slot_of, unpack_key
from rocetap_hdl.table import ConnectionTable
from support.simulate import fields, simulate


def random_key(rng):
    return pack_key(**{name: rng.getrandbits(bits) for name, bits in KEY_FIELDS.items()})


def commit(ctx, dut, key, way, context, valid=1):
    ctx.set(dut.commit_key, key)
    ctx.set(dut.commit_way, way)
    ctx.set(dut.commit_slot, slot_of(hash_key(key), way, dut.slots))
    ctx.set(dut.commit_context, context)
    ctx.set(dut.commit_valid, valid)
    ctx.set(dut.commit, 1)


async def ask(ctx, dut, key, frame_class=FrameClass.ELIGIBLE_REQUEST, psn=0, time=0):
    ctx.set(dut.verdicts.payload, {"frame_class": int(frame_class), "key": unpack_key(key),
                                   "psn": psn, "time": time})
    ctx.set(dut.verdicts.valid, 1)
    await ctx.tick()
    ctx.set(dut.verdicts.valid, 0)


@pytest.mark.parametrize("connections", [1, 64, 1024])
def test_every_way_gives_the_context(connections):
    rng = random.Random(connections)
    dut = ConnectionTable(connections=connections)
    placed = [(random_key(rng), way, rng.randrange(connections)) for way in range(WAYS)]

    async def drive(ctx):
        for key, way, context in placed:
            commit(ctx, dut, key, way, context)
            await ctx.tick()
        ctx.set(dut.commit, 0)
        for at, (key, _, _) in enumerate(placed):
            await ask(ctx, dut, key, psn=at, time=1000 + at)
        await ctx.tick().repeat(dut.latency + 1)

    (lookups,) = simulate(dut, drive, dut.lookups)
    assert [fields(item) for item in lookups] == [
        {"frame_class": 0, "hit": 1, "context": context, "psn": at, "time": 1000 + at}
        for at, (_, _, context) in enumerate(placed)]


def test_latency_is_what_it_says():
    dut = ConnectionTable(connections=16)
    key = random_key(random.Random(1))
    waited = []

    async def drive(ctx):
        commit(ctx, dut, key, 2, 9)
        await ctx.tick()
        ctx.set(dut.commit, 0)
        await ask(ctx, dut, key)
        for clocks in range(1, 2 * dut.latency):
            if ctx.get(dut.lookups.valid):
                waited.append(clocks)
            await ctx.tick()

    simulate(dut, drive)
    assert waited == [dut.latency]


def test_no_false_match_on_any_single_bit():
    """Each bit of the key decides, whatever slot the changed key hashes to."""
    rng = random.Random(5)
    key = random_key(rng)
    dut = ConnectionTable(connections=2)  # few slots: changed keys meet the entry
    near = [key ^ (1 << bit) for bit in range(KEY_BITS)]
    same_slot = sum(slot_of(hash_key(key), w, dut.slots) == slot_of(hash_key(k), w, dut.slots)
                    for k in near for w in range(WAYS))
    assert same_slot > 100

    async def drive(ctx):
        for way in range(WAYS):
            commit(ctx, dut, key, way, 1)
            await ctx.tick()
        ctx.set(dut.commit, 0)
        missed = 0
        for other in [*near, key]:
            await ask(ctx, dut, other)
            missed += ctx.get(dut.missed)
        for _ in range(dut.latency + 1):
            await ctx.tick()
            missed += ctx.get(dut.missed)
        assert missed == KEY_BITS

    (lookups,) = simulate(dut, drive, dut.lookups)
    assert [item.context for item in lookups] == [1]


def test_a_moved_key_is_found_at_every_moment():
    rng = random.Random(6)
    dut = ConnectionTable(connections=64)
    key = random_key(rng)

    async def drive(ctx):
        commit(ctx, dut, key, 3, 7)
        await ctx.tick()
        ctx.set(dut.commit, 0)
        for at in range(30):
            if at == 10:
                commit(ctx, dut, key, 0, 7)
            elif at == 20:
                commit(ctx, dut, key, 3, 7, valid=0)
            else:
                ctx.set(dut.commit, 0)
            await ask(ctx, dut, key, psn=at)
        await ctx.tick().repeat(dut.latency + 1)

    (lookups,) = simulate(dut, drive, dut.lookups)
    assert [item.psn for item in lookups] == list(range(30))
    assert {item.context for item in lookups} == {7}


@pytest.mark.parametrize("frame_class", list(FrameClass))
def test_which_classes_pass(frame_class):
    """Only attributable classes are looked up; those that lose capture pass without a hit."""
    rng = random.Random(7)
    dut = ConnectionTable(connections=8)
    key = random_key(rng)

    async def drive(ctx):
        commit(ctx, dut, key, 1, 3)
        await ctx.tick()
        ctx.set(dut.commit, 0)
        await ask(ctx, dut, key, frame_class)
        missed = 0
        for _ in range(dut.latency + 1):
            missed += ctx.get(dut.missed)
            await ctx.tick()
        assert missed == 0

    (lookups,) = simulate(dut, drive, dut.lookups)
    got = [(item.frame_class, item.hit) for item in lookups]
    if frame_class in ATTRIBUTABLE:
        assert got == [(frame_class, 1)]
    elif frame_class in (FrameClass.LOST, FrameClass.SLICED_SHORT):
        assert got == [(frame_class, 0)]
    else:
        assert got == []


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_commits_and_lookups_in_the_same_clocks(seed):
    """Four keys of one slot of one way, all others empty: each look-up sees all commits up to the
    clock in which it reads, that of the very clock too, and no other way or slot."""
    rng = random.Random(seed)
    dut = ConnectionTable(connections=64)
    way, reads = 2, 2
    keys = []
    while len(keys) < 4:
        key = random_key(rng)
        if slot_of(hash_key(key), way, dut.slots) == 5:
            keys.append(key)
    commits, asked = [], []

    async def drive(ctx):
        for _ in range(600):
            does = rng.random()
            change = (rng.choice(keys), rng.randrange(64), rng.random() < 0.8)
            commits.append(change if does < 0.4 else None)
            if does < 0.4:
                commit(ctx, dut, change[0], way, *change[1:])
            elif does < 0.6:
                ctx.set(dut.commit, 1)
                ctx.set(dut.commit_way, 1)
            elif does < 0.8:
                ctx.set(dut.commit, 1)
                ctx.set(dut.commit_slot, 6)
            else:
                ctx.set(dut.commit, 0)
            asked.append(rng.choice(keys))
            await ask(ctx, dut, asked[-1])
        ctx.set(dut.commit, 0)
        await ctx.tick().repeat(dut.latency + 1)

    (lookups,) = simulate(dut, drive, dut.lookups)
    expected, held = [], (None, 0, False)
    for at, key in enumerate([None] * reads + asked):
        held = (commits[at] if at < len(commits) else None) or held
        if held[2] and key == held[0]:
            expected.append(held[1])
    assert len(expected) > 60
    assert [item.context for item in lookups] == expected
