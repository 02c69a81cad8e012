"""The connection table: from a packet's key to the context that the host gave it."""

from functools import reduce
from operator import xor

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rocetap.spec.classes import ATTRIBUTABLE, LOSES_CAPTURE
from rocetap.spec.keys import KEY_BITS, WAYS, hash_columns, slot_of, slots_for

from .layouts import verdict_stream
from .linear import linear_map
from .pipeline import Pipeline

__all__ = ["ConnectionTable", "lookup_stream"]


HASHED = 64
HASH_PARTS = -(-KEY_BITS // HASHED)
COMPARED = 24
"""Bits of the key that are hashed, or compared, together in one clock."""


def lookup_stream(connections):
    """What the table says of a verdict. ``hit``: the key is provisioned as ``context``."""
    return stream.Signature(data.StructLayout({
        "frame_class": 5,
        "hit": 1,
        "context": max(1, (connections - 1).bit_length()),
        "psn": 24,
        "time": 64,
    }), always_ready=True)


class ConnectionTable(wiring.Component):
    """Exact match of whole keys in WAYS block RAMs, one look-up a clock, ``latency`` clocks.

    Only verdicts that matter to a connection come out: ATTRIBUTABLE classes that hit, and classes
    that lose capture. ``missed`` strobes for an attributable one that hit nothing.

    ``commit`` writes ``commit_key`` with ``commit_valid`` and ``commit_context`` into one slot of
    one way, in one clock: no look-up sees half an entry of another key, one that reads the slot in
    that very clock sees the new entry. A key that stands in two ways while the host moves it gives
    its context from either; the lowest way wins.
    """

    latency = 8

    def __init__(self, *, connections):
        self.connections = connections
        self.slots = slots_for(connections)
        self.context_bits = max(1, (connections - 1).bit_length())
        super().__init__({
            "verdicts": In(verdict_stream()),
            "lookups": Out(lookup_stream(connections)),
            "missed": Out(1),
            "commit": In(1),
            "commit_way": In(range(WAYS)),
            "commit_slot": In(range(self.slots)),
            "commit_valid": In(1),
            "commit_context": In(self.context_bits),
            "commit_key": In(KEY_BITS),
        })

    def elaborate(self, platform):
        m = Module()
        verdict = self.verdicts.payload
        attributable = Cat(verdict.frame_class == item for item in ATTRIBUTABLE).any()
        loses = Cat(verdict.frame_class == item for item in LOSES_CAPTURE).any()
        asks = Signal()
        matters = Signal()
        m.d.comb += [asks.eq(self.verdicts.valid & attributable),
                     matters.eq(asks | (self.verdicts.valid & loses))]
        p = Pipeline(m, self.verdicts.valid)
        p.put("asks", asks, 0, mark=True)
        p.put("matters", matters, 0, mark=True)
        p.put("key", Value.cast(verdict.key), 0)
        for name in ("frame_class", "psn", "time"):
            p.put(name, verdict[name], 0)

        # Stages 0 and 1: the hash, parts of the key first.
        slot_bits = (self.slots - 1).bit_length()
        columns = [self._slots_of(column, slot_bits) for column in hash_columns()]
        for part in range(HASH_PARTS):
            bits = slice(part * HASHED, (part + 1) * HASHED)
            p.put(f"hash_{part}", linear_map(
                m, f"hash_{part}", p.get("key", 0)[bits], columns[bits], WAYS * slot_bits), 0)
        p.put("hash", reduce(xor, (p.get(f"hash_{part}", 1) for part in range(HASH_PARTS))), 1)

        # What block RAM gives for a slot that is being written is not relied on: who reads it in
        # that clock compares with what is written.
        key = p.get("key", 2)
        p.put("commit_same", Cat(self.commit_key[at:at + COMPARED] == key[at:at + COMPARED]
                                 for at in range(0, KEY_BITS, COMPARED)), 2)
        p.put("commit_valid", self.commit_valid, 2)
        p.put("commit_context", self.commit_context, 2)
        p.put("commit_hit", p.get("commit_same", 3).all() & p.get("commit_valid", 3), 3)

        for way in range(WAYS):
            # Stage 2: the slot. 3: memory output. 4: its register. 5 and 6: the whole key compared.
            entry = data.StructLayout({"key": KEY_BITS, "context": self.context_bits, "valid": 1})
            memory = Memory(shape=entry, depth=self.slots, init=[], attrs={"no_rw_check": 1})
            m.submodules[f"way{way}"] = memory
            read, write = memory.read_port(), memory.write_port()
            slot = p.get("hash", 2).word_select(way, slot_bits)
            m.d.comb += [
                read.addr.eq(slot),
                read.en.eq(p.get("live", 2)),
                write.addr.eq(self.commit_slot),
                write.en.eq(self.commit & (self.commit_way == way)),
                write.data.key.eq(self.commit_key),
                write.data.context.eq(self.commit_context),
                write.data.valid.eq(self.commit_valid),
            ]
            p.put(f"collides_{way}", write.en & (slot == self.commit_slot), 2)
            p.put(f"entry_{way}", read.data, 3)
            found = p.get(f"entry_{way}", 4)
            wanted = p.get("key", 4)
            p.put(f"same_{way}", Cat(found.key[at:at + COMPARED] == wanted[at:at + COMPARED]
                                     for at in range(0, KEY_BITS, COMPARED)), 4)
            p.put(f"valid_{way}", found.valid, 4)
            p.put(f"context_{way}", Mux(p.get(f"collides_{way}", 4), p.get("commit_context", 4),
                                        found.context), 4)
            hit = p.get(f"same_{way}", 5).all() & p.get(f"valid_{way}", 5)
            p.put(f"hit_{way}", Mux(p.get(f"collides_{way}", 5), p.get("commit_hit", 5), hit), 5)

        # Stage 6: the lowest way that hits. Stage 8: out.
        hits = [p.get(f"hit_{way}", 6) for way in range(WAYS)]
        context = p.get(f"context_{WAYS - 1}", 6)
        for way in reversed(range(WAYS - 1)):
            context = Mux(hits[way], p.get(f"context_{way}", 6), context)
        p.put("context", context, 6)
        p.put("hit", Cat(hits).any(), 6)
        asks, hit = p.get("asks", 7), p.get("hit", 7)
        lookup = self.lookups.payload
        m.d.sync += [
            self.lookups.valid.eq(p.get("matters", 7) & (hit | ~asks)),
            self.missed.eq(asks & ~hit),
            lookup.hit.eq(asks & hit),
            *(lookup[name].eq(p.get(name, 7))
              for name in ("context", "frame_class", "psn", "time")),
        ]
        return m

    @staticmethod
    def _slots_of(digest, slot_bits):
        """The slots of all ways, side by side, that a digest names."""
        return sum(slot_of(digest, way, 1 << slot_bits) << (way * slot_bits)
                   for way in range(WAYS))
