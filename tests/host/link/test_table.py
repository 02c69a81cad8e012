"""ConnectionTable against a model of the gateware's look-up: every key findable at every write."""

import random
import re

import pytest

from rocetap.link.driver import Driver
from rocetap.link.errors import LinkLocalError, TableFull
from rocetap.link.table import ConnectionTable, SlotWrite, apply_writes
from rocetap.spec.keys import KEY_BITS, WAYS, hash_key, slot_of, slots_for
from rocetap.spec.registers import KEY_WORDS, REGISTERS
from support.link_fake import FakeBoard, FakeLine


class Memory:
    """The gateware's ways: what a look-up of a key finds, as a set of contexts."""

    def __init__(self, slots, fill=None):
        self.slots = slots
        self.ways = [dict(fill or {}) for _ in range(WAYS)]

    def write(self, write):
        if write.valid:
            self.ways[write.way][write.slot] = write.key, write.context
        else:
            self.ways[write.way].pop(write.slot, None)

    def find(self, key):
        digest = hash_key(key)
        found = {way.get(slot_of(digest, number, self.slots)) for number, way in
                 enumerate(self.ways)}
        return {entry[1] for entry in found if entry and entry[0] == key}


def a_key(dice):
    return dice.getrandbits(KEY_BITS)


@pytest.mark.parametrize(("connections", "seed"), [(1, 1), (8, 2), (64, 3), (64, 4), (1024, 5)])
def test_filling_to_the_last_connection_keeps_every_key_findable(connections, seed):
    dice = random.Random(seed)
    table = ConnectionTable(connections)
    memory = Memory(table.slots)
    contexts = {}
    moves = 0
    for context in range(connections):
        key = a_key(dice)
        writes = table.insert(key, context)
        moves += len(writes) - 1
        for write in writes:
            memory.write(write)
            if connections <= 64 or len(writes) > 1:
                assert all(memory.find(old) == {its} for old, its in contexts.items())
        contexts[key] = context
        assert memory.find(key) == {context}
    assert len(table) == connections
    assert moves or connections < 1024
    with pytest.raises(TableFull, match=re.escape(
            f"connection table is full: {connections} of {connections} connections; remove one, "
            "or use a board built for more") + "$"):
        table.insert(a_key(dice), 0)


def test_a_crowded_table_still_moves_keys_without_a_gap():
    """Few slots and many keys, so that paths are long: a slot table a quarter of the usual."""
    dice = random.Random(6)
    table = ConnectionTable(256)
    table.slots = 64
    memory = Memory(64)
    contexts = {}
    longest = 0
    while True:
        key = a_key(dice)
        try:
            writes = table.insert(key, len(contexts))
        except TableFull as error:
            text = str(error)
            break
        longest = max(longest, len(writes))
        for write in writes:
            memory.write(write)
            if len(writes) > 2:
                assert all(memory.find(old) == {its} for old, its in contexts.items())
        contexts[key] = len(contexts)
    assert text == (f"connection table has no place for one more key: {len(contexts)} of 256 "
                    "connections; remove one, or use a board built for more")
    assert longest >= 4
    assert len(contexts) > 240
    assert len(table) == len(contexts)
    assert all(memory.find(key) == {context} for key, context in contexts.items())
    stored = [entry[0] for way in memory.ways for entry in way.values()]
    assert sorted(stored) == sorted(contexts), "no stale copy is left behind"


def test_removing_and_changing():
    dice = random.Random(7)
    table = ConnectionTable(32)
    memory = Memory(table.slots)
    contexts = {}
    for step in range(400):
        if contexts and (len(contexts) == 32 or dice.random() < 0.4):
            key = dice.choice(list(contexts))
            if dice.random() < 0.5:
                writes = table.remove(key)
                del contexts[key]
                assert key not in table
                assert table.context_of(key) is None
            else:
                contexts[key] = step % 32
                writes = table.insert(key, step % 32)
                assert len(writes) == 1
        else:
            key = a_key(dice)
            contexts[key] = step % 32
            writes = table.insert(key, step % 32)
        for write in writes:
            memory.write(write)
        for old, its in contexts.items():
            assert memory.find(old) == {its}
            assert table.context_of(old) == its
        assert memory.find(key) == ({contexts[key]} if key in contexts else set())
    assert sum(map(len, memory.ways)) == len(contexts)


def test_rewriting_a_memory_that_holds_anything():
    dice = random.Random(8)
    table = ConnectionTable(16)
    keys = [a_key(dice) for _ in range(10)]
    for context, key in enumerate(keys):
        table.insert(key, context)
    stale = a_key(dice)
    memory = Memory(table.slots, dict.fromkeys(range(table.slots), (stale, 3)))
    writes = table.rewrite()
    assert len(writes) == WAYS * table.slots
    for write in writes:
        memory.write(write)
    assert memory.find(stale) == set()
    assert [memory.find(key) for key in keys] == [{context} for context in range(10)]


@pytest.mark.parametrize(("call", "text"), [
    (lambda table: table.insert(1 << KEY_BITS, 0), f"key is {1 << KEY_BITS:#x}, must fit 346 bits"),
    (lambda table: table.insert(0, 8), "context is 8, must be 0 to 7"),
    (lambda table: table.remove(5), "key 0x5 is not in the connection table"),
    (lambda table: ConnectionTable(0), "connections is 0, must be 1 to 32768"),
])
def test_errors(call, text):
    with pytest.raises(LinkLocalError, match=f"^{re.escape(text)}$"):
        call(ConnectionTable(8))


def test_writes_go_to_the_board_in_order():
    board = FakeBoard()
    line = FakeLine(board)
    key = sum((index + 1) << (64 * index) for index in range(KEY_WORDS))
    driver = Driver(line, clock=line.clock)
    apply_writes(driver, [
        SlotWrite(2, 9, valid=True, key=key, context=33), SlotWrite(1, 8, valid=False)])
    commit = REGISTERS["table_commit"].address
    assert board.writes == [
        *((0x20 + index, index + 1) for index in range(KEY_WORDS)),
        (commit, 9 | 2 << 16 | 1 << 20 | 33 << 32), (commit, 8 | 1 << 16)]
    assert line.writes == 2
    with pytest.raises(LinkLocalError, match=r"^5 words of a key, must be 6$"):
        driver.commit_key(range(5), slot=0)


def test_the_table_has_the_gatewares_size():
    assert ConnectionTable(1024).slots == slots_for(1024) == 512
