"""The connection table: from a packet's key to the context that the host gave it."""

from functools import reduce
from operator import xor

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rocetap.spec.classes import ATTRIBUTABLE, LOSES_CAPTURE
from rocetap.spec.keys import KEY_BITS, MAX_SLOT_BITS, WAYS, hash_columns, slots_for

from .layouts import verdict_stream
from .pipeline import Pipeline

__all__ = ["ConnectionTable", "lookup_stream"]


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
    one way, in one clock: no look-up sees half an entry of another key. A key that stands in two
    ways while the host moves it gives its context from either; the lowest way wins.
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
        p = Pipeline(m)
        verdict = self.verdicts.payload
        attributable = reduce(lambda a, b: a | b,
                              (verdict.frame_class == item for item in ATTRIBUTABLE))
        loses = reduce(lambda a, b: a | b,
                       (verdict.frame_class == item for item in LOSES_CAPTURE))
        p.put("asks", self.verdicts.valid & attributable, 0, reset=True)
        p.put("loses", self.verdicts.valid & loses, 0, reset=True)
        p.put("key", Value.cast(verdict.key), 0)
        for name in ("frame_class", "psn", "time"):
            p.put(name, verdict[name], 0)

        # Stages 1 and 2: each hash bit is the parity of half the key's bits, in groups of 16.
        slot_bits = (self.slots - 1).bit_length()
        columns = hash_columns()
        key = p.get("key", 0)
        for way in range(WAYS):
            digits = []
            for bit in range(way * MAX_SLOT_BITS, way * MAX_SLOT_BITS + slot_bits):
                inputs = [key[i] for i in range(KEY_BITS) if columns[i] >> bit & 1]
                groups = []
                for at in range(0, len(inputs), 16):
                    group = Signal(name=f"hash_{bit}_{at}", reset_less=True)
                    m.d.sync += group.eq(reduce(xor, inputs[at:at + 16]))
                    groups.append(group)
                digit = Signal(name=f"hash_{bit}", reset_less=True)
                m.d.sync += digit.eq(reduce(xor, groups))
                digits.append(digit)

            # Stage 3: memory output. 4: its register. 5 and 6: comparison of the whole key.
            entry = data.StructLayout({"key": KEY_BITS, "context": self.context_bits, "valid": 1})
            memory = Memory(shape=entry, depth=self.slots, init=[])
            m.submodules[f"way{way}"] = memory
            read, write = memory.read_port(), memory.write_port()
            m.d.comb += [
                read.addr.eq(Cat(digits)),
                read.en.eq(1),
                write.addr.eq(self.commit_slot),
                write.en.eq(self.commit & (self.commit_way == way)),
                write.data.key.eq(self.commit_key),
                write.data.context.eq(self.commit_context),
                write.data.valid.eq(self.commit_valid),
            ]
            found = Signal(entry, name=f"found_{way}", reset_less=True)
            m.d.sync += found.eq(read.data)
            wanted = p.get("key", 4)
            same = []
            for at in range(0, KEY_BITS, 24):
                part = Signal(name=f"same_{way}_{at}", reset_less=True)
                m.d.sync += part.eq(found.key[at:at + 24] == wanted[at:at + 24])
                same.append(part)
            p.put(f"valid_{way}", found.valid, 4)
            p.put(f"context_{way}", found.context, 4)
            hit = Signal(name=f"hit_{way}", reset_less=True)
            m.d.sync += hit.eq(Cat(same).all() & p.get(f"valid_{way}", 5))
            p.put(f"hit_{way}", hit, 6)

        # Stage 7: the lowest way that hits. Stage 8: out.
        hits = [p.get(f"hit_{way}", 6) for way in range(WAYS)]
        context = p.get(f"context_{WAYS - 1}", 6)
        for way in reversed(range(WAYS - 1)):
            context = Mux(hits[way], p.get(f"context_{way}", 6), context)
        chosen = Signal(self.context_bits, reset_less=True)
        hit_any = Signal(reset_less=True)
        m.d.sync += [chosen.eq(context), hit_any.eq(Cat(hits).any())]
        asks, loses = p.get("asks", 7), p.get("loses", 7)
        lookup = self.lookups.payload
        m.d.sync += [
            self.lookups.valid.eq((asks & hit_any) | loses),
            self.missed.eq(asks & ~hit_any),
            lookup.hit.eq(asks & hit_any),
            lookup.context.eq(chosen),
            *(lookup[name].eq(p.get(name, 7)) for name in ("frame_class", "psn", "time")),
        ]
        return m
