"""The connection table never gives a context for a key that it does not hold."""

import hashlib

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cat, Const, Elaboratable, Module, Signal, Value

from rocetap.spec.classes import ATTRIBUTABLE, LOSES_CAPTURE
from rocetap.spec.keys import KEY_BITS, WAYS
from rocetap_hdl import table
from support.formal import free, mutant, prove, refute

KEY = int.from_bytes(hashlib.sha512(b"any key").digest()) % (1 << KEY_BITS)
"""The table knows keys by comparison only, so one stands for all."""

CONNECTIONS = 8         # the smallest table: 4 slots in each of 4 ways
NO_FALSE_MATCH = "a look-up gives a context only if its key was committed with it"
HELD = "the table holds what was committed, only"
LATENCY = "a look-up, or the strobe that it missed, comes after latency clocks, and only then"
PAYLOAD = "a look-up carries its verdict's class, PSN and time"


def any_map(m, name, word, columns, width):
    """In place of the hash: any slot may be read for any key. What holds then, holds for every
    hash."""
    return AnySeq(width)


GARBAGE = ('p.put(f"entry_{way}", read.data, 3)', """p.put(f"entry_{way}", entry(Mux(
    p.get(f"collides_{way}", 3), garbage(entry.size), Value.cast(read.data))), 3)""")
"""Block RAM may give anything for a slot in the clock in which it is written."""


class OneKey(Elaboratable):
    """Commits and look-ups of all kinds, but for one key and one context that are never committed
    together; the context may be any. A look-up of the key that hits must give another context."""

    def __init__(self, *changes):
        module = mutant(table, GARBAGE, *changes, linear_map=any_map, garbage=AnySeq)
        self._dut = module.ConnectionTable(connections=CONNECTIONS)

    def elaborate(self, platform):
        m = Module()
        dut = self._dut
        m.submodules.dut = inside = dut.elaborate(platform)
        free(m, dut)
        key, context = Const(KEY, KEY_BITS), Signal(dut.context_bits)
        m.d.comb += [
            context.eq(AnyConst(dut.context_bits)),
            Assume(~(dut.commit & dut.commit_valid & (dut.commit_key == key)
                     & (dut.commit_context == context))),
        ]
        verdict, out = dut.verdicts.payload, dut.lookups.payload
        asks = Cat(verdict.frame_class == item for item in ATTRIBUTABLE).any()
        loses = Cat(verdict.frame_class == item for item in LOSES_CAPTURE).any()
        carried = Cat(verdict.frame_class, verdict.psn, verdict.time)
        past = [dut.verdicts.valid & asks, dut.verdicts.valid & loses,
                Value.cast(verdict.key) == key, carried]
        for clock in range(dut.latency):
            later = [Signal(Value.cast(value).shape(), name=f"past_{clock}_{i}")
                     for i, value in enumerate(past)]
            m.d.sync += [now.eq(before) for now, before in zip(later, past, strict=True)]
            past = later
        asked, lost, mine, carried = past
        m.d.comb += [
            Assert(dut.lookups.valid == (lost | (asked & out.hit)), LATENCY),
            Assert(dut.missed == (asked & ~out.hit), LATENCY),
        ]
        with m.If(dut.lookups.valid):
            m.d.comb += [
                Assert(~(mine & out.hit & (out.context == context)), NO_FALSE_MATCH),
                Assert(Cat(out.frame_class, out.psn, out.time) == carried, PAYLOAD),
            ]
        for way in range(WAYS):     # for the induction
            for slot in range(dut.slots):
                look = getattr(inside.submodules, f"way{way}").read_port(domain="comb")
                entry = look.data
                m.d.comb += [
                    look.addr.eq(slot),
                    Assert(~(entry.valid & (entry.key == key) & (entry.context == context)), HELD),
                ]
        return m


def test_no_false_match():
    """By induction over 9 clocks, one more than the look-up takes, and whatever the hash is."""
    prove(OneKey(), depth=9, induction=True)


BROKEN = {
    "first_part_not_compared": (("for at in range(0, KEY_BITS, COMPARED)), 4)",
                                 "for at in range(COMPARED, KEY_BITS, COMPARED)), 4)"),
                                NO_FALSE_MATCH),
    "first_part_of_a_commit": (("for at in range(0, KEY_BITS, COMPARED)), 2)",
                                "for at in range(COMPARED, KEY_BITS, COMPARED)), 2)"),
                               NO_FALSE_MATCH),
    "memory_trusted_in_a_write": (('Mux(p.get(f"collides_{way}", 5),', 'Mux(0,'), NO_FALSE_MATCH),
    "any_part_is_enough": (('p.get(f"same_{way}", 5).all()', 'p.get(f"same_{way}", 5).any()'),
                           NO_FALSE_MATCH),
    "key_of_another": (('wanted = p.get("key", 4)', 'wanted = p.get("key", 3)'), NO_FALSE_MATCH),
    "removed_still_hits": ((' & p.get(f"valid_{way}", 5)', ""), NO_FALSE_MATCH),
    "context_of_another_way": (('Mux(hits[way], p.get(f"context_{way}", 6), context)',
                                'Mux(hits[way], context, context)'), NO_FALSE_MATCH),
    "early": (('"hit", Cat(hits).any(), 6)', '"hit", Cat(hits).any(), 7)'), NO_FALSE_MATCH),
}


def test_broken_tables_are_found():
    """To 10 clocks: some commits, and the look-up."""
    refute({name: (OneKey(change), broken)
            for name, (change, broken) in BROKEN.items()}, depth=10)
