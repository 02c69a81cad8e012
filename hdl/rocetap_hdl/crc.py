"""CRC-32 over a stream of up to N octets a clock, for the FCS and the ICRC.

CRC-32 of IEEE 802.3 3.2.9 (IBTA Vol 1, 7.8.1 takes the same polynomial). One XOR network serves
every length. Octets of a beat that are not covered are forced to zero; zero octets only advance the
register, so the first beat starts from a state that is short of `leading` of them, and the good end
is known for every number of trailing ones.
"""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .linear import linear_map

__all__ = ["INITIAL", "RESIDUE", "Crc32", "advance", "crc_beat"]

POLYNOMIAL = 0xEDB88320
"""IEEE 802.3 3.2.9, the coefficient of x^0 in bit 31: octets go least significant bit first."""

INITIAL = 0xFFFFFFFF
"""The register before the first octet."""

RESIDUE = 0xDEBB20E3
"""The register after any octets and their CRC: complemented, least significant octet first."""

GROUP_OCTETS = 8
"""Octets whose contribution is summed in one clock; the next clock sums the groups."""


def advance(state, octets):
    """The register after `octets` zero octets."""
    for _ in range(8 * octets):
        state = (state >> 1) ^ (POLYNOMIAL if state & 1 else 0)
    return state


def crc_beat(bus_bytes):
    """One beat: `leading` octets are not covered when `first`, those behind `end` when `last`.

    A beat that is `first` starts a sum, whatever came before; a beat that is `last` gives a result.
    """
    lanes = max(1, (bus_bytes - 1).bit_length())
    return data.StructLayout({
        "data": unsigned(8 * bus_bytes),
        "first": 1,
        "leading": unsigned(lanes),
        "last": 1,
        "end": unsigned(lanes),
    })


class Crc32(wiring.Component):
    """Checks that covered octets end with their own CRC.

    Parameters: ``bus_bytes`` octets a beat; ``initial``, the register before the first covered
    octet. ``results`` is valid `LATENCY` clocks after each `last` beat, its payload says whether
    the CRC is right. One beat a clock, gaps anywhere, sums back to back.

    The loop of the register is one XOR tree: everything else is added to the data ahead of it, the
    expected end too, so that right means zero.
    """

    LATENCY = 5

    def __init__(self, bus_bytes, *, initial=INITIAL):
        self._bus_bytes = bus_bytes
        self._initial = initial
        super().__init__({
            "beats": In(stream.Signature(crc_beat(bus_bytes), always_ready=True)),
            "results": Out(stream.Signature(1, always_ready=True)),
        })

    def elaborate(self, platform):
        m = Module()
        n = self._bus_bytes
        beat = self.beats.payload

        # Clock 1: force to zero.
        covered = [
            ~(beat.first & (beat.leading > i)) & ~(beat.last & (beat.end < i)) for i in range(n)]
        forced = Signal(8 * n)
        m.d.sync += forced.eq(beat.data & Cat(bit.replicate(8) for bit in covered))

        # Clock 2: what each group adds to the register, and what start and expected end add.
        starts = Array(Const(advance(self._initial, n - k), 32) for k in range(n))
        ends = Array(Const(advance(RESIDUE, n - 1 - k), 32) for k in range(n))
        edge = Signal.like(beat)
        m.d.sync += edge.eq(beat)
        added = Signal(32)
        m.d.sync += added.eq(
            Mux(edge.first, starts[edge.leading], 0)
            ^ Mux(edge.last, ends[edge.end], 0))
        groups = []
        for low in range(0, n, GROUP_OCTETS):
            octets = range(low, min(n, low + GROUP_OCTETS))
            columns = [advance(1 << b, n - i) for i in octets for b in range(8)]
            group = Signal(32, name=f"group_{low}")
            m.d.sync += group.eq(linear_map(
                m, f"octets_{low}", forced[8 * low:8 * (low + len(octets))], columns, 32))
            groups.append(group)

        # Clock 3: their sum.
        total = Signal(32)
        terms = added
        for group in groups:
            terms = terms ^ group
        m.d.sync += total.eq(terms)

        # Clock 4: the register. A first beat leaves the old state behind.
        valid = Signal(4)
        first = Signal(3)
        last = Signal(4)
        m.d.sync += [
            valid.eq(Cat(self.beats.valid, valid)),
            first.eq(Cat(beat.first, first)),
            last.eq(Cat(beat.last, last)),
        ]
        state = Signal(32)
        moved = linear_map(m, "moved", state, [advance(1 << b, n) for b in range(32)], 32)
        with m.If(valid[2]):
            m.d.sync += state.eq(total ^ Mux(first[2], 0, moved))

        # Clock 5: right is zero.
        m.d.sync += [
            self.results.valid.eq(valid[3] & last[3]),
            self.results.payload.eq(state == 0),
        ]
        return m
