"""The invariant CRC of RoCEv2 packets (IBTA Vol 1, 7.8.1; Annex A17.3.3)."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .crc import INITIAL, Crc32, advance
from .header import LENGTH_BITS
from .layouts import frame_beat

__all__ = ["InvariantCheck", "icrc_beat"]

PSEUDO_LRH_OCTETS = 8
"""Octets of ones that stand for the local route header (A17.3.3)."""

IPV4_MASKED = (1, 8, 10, 11)
"""Type of service, time to live, header checksum. Options are covered as they are."""

IPV6_MASKED = (1, 2, 3, 7)
"""Traffic class and flow label but for the half octet behind the version; hop limit."""

UDP_MASKED = (6, 7, 12)
"""Checksum; the BTH's FECN, BECN and reserved bits. From the UDP header's first octet on."""

STARTS = range(14, 22 + 1, 4)
"""Octet of the frame where IP starts, by number of tags. Tags are not covered."""

IP_WORDS = range(5, 15 + 1)
"""32-bit words of an IP header: IHL, or 10."""

SHORTEST = 32
"""No RoCEv2 packet is shorter (44 octets with IPv4), and beats with the length field end before."""


def _seed():
    state = INITIAL
    for _ in range(PSEUDO_LRH_OCTETS):
        state = advance(state ^ 0xFF, 1)
    return state


def icrc_beat(bus_bytes):
    """A beat and where its frame's layers are: what :class:`.ip.Ip` knows with that beat.

    Right from the beat on that completes the octets it rests on; no covered octet comes before.
    """
    return data.StructLayout({
        "beat": frame_beat(bus_bytes),
        "index": unsigned(LENGTH_BITS - (bus_bytes - 1).bit_length()),
        "place": unsigned(4),      # which of the component's ``starts`` IP has
        "ipv6": 1,
        "words": unsigned(4),
        "length": unsigned(17),
    })


class InvariantCheck(wiring.Component):
    """Says of each frame whether its packet ends in the right ICRC.

    Parameters: ``bus_bytes``; ``starts``, the octets of a frame where its IP header may start,
    four apart.

    The packet ends where the IP length says, never at the frame's end. ``results`` is valid
    `LATENCY` clocks after each frame's last beat, one a frame, in order; wrong when the frame ends
    before the packet, meaningless when the frame is not RoCEv2.
    """

    LATENCY = 3 + Crc32.LATENCY + 1

    def __init__(self, bus_bytes, *, starts=STARTS):
        self._bus_bytes = bus_bytes
        self._starts = starts
        super().__init__({
            "beats": In(stream.Signature(icrc_beat(bus_bytes), always_ready=True)),
            "results": Out(stream.Signature(1, always_ready=True)),
        })

    def elaborate(self, platform):
        m = Module()
        n = self._bus_bytes
        starts = self._starts
        anchors = range(IP_WORDS[0], IP_WORDS[-1] + len(starts))
        pattern_octets = starts[0] + 4 * anchors[-1] + UDP_MASKED[-1] + 1
        lane_bits = (n - 1).bit_length()
        m.submodules.crc = crc = Crc32(n, initial=_seed())

        valid = Signal(3)
        m.d.sync += valid.eq(Cat(self.beats.valid, valid))
        at = [self.beats.payload]
        for clock in range(2):
            held = Signal.like(self.beats.payload, name=f"held_{clock}")
            m.d.sync += held.eq(at[-1])
            at.append(held)

        # Clock 1: where UDP starts, in words, and where the packet ends. Until a frame's length has
        # come, an earlier frame's stands there: one that could end the sum before is too short for
        # RoCEv2.
        anchor = Signal(range(anchors[-1] + 1))
        end = Signal(18)
        long_enough = Signal()
        m.d.sync += [
            long_enough.eq(at[0].length >= SHORTEST),
            anchor.eq(at[0].words + at[0].place),
            end.eq(at[0].length + (starts[0] - 1) + (at[0].place << 2)),
        ]

        # Clock 2: which octets of the frame count as ones, and which beats the packet has.
        ones = [Const(0)] * (-(-pattern_octets // n) * n)
        half = list(ones)
        for place, octet in enumerate(starts):
            found = at[1].place == place
            for masked, version in ((IPV4_MASKED, ~at[1].ipv6), (IPV6_MASKED, at[1].ipv6)):
                for i in masked:
                    ones[octet + i] = ones[octet + i] | (found & version)
            half[octet] = half[octet] | (found & at[1].ipv6)
        for words in anchors:
            for i in UDP_MASKED:
                octet = starts[0] + 4 * words + i
                ones[octet] = ones[octet] | (anchor == words)
        pattern = Signal(len(ones))
        halves = Signal(len(half))
        first, last = Signal(), Signal()
        leading = Signal.like(crc.beats.p.leading)
        lane_end = Signal.like(crc.beats.p.end)
        start = Signal(range(starts[-1] + 1))
        m.d.comb += start.eq(starts[0] + (at[1].place << 2))
        m.d.sync += [
            pattern.eq(Cat(ones)), halves.eq(Cat(half)),
            first.eq(at[1].index == start >> lane_bits),
            last.eq(long_enough & (at[1].index == end >> lane_bits)),
            leading.eq(start[:lane_bits]),
            lane_end.eq(end[:lane_bits]),
        ]

        # Clock 3: put the ones in.
        def of_beat(bits):
            return Array([bits[i:i + n] for i in range(0, len(bits), n)] + [Const(0, n)])[
                at[2].index]

        whole, lower = of_beat(pattern), of_beat(halves)
        ones_mask = Cat(Cat((whole[i] | lower[i]).replicate(4), whole[i].replicate(4))
                        for i in range(n))
        m.d.sync += [
            crc.beats.valid.eq(valid[1]),
            crc.beats.p.data.eq(at[2].beat.data | ones_mask),
            crc.beats.p.first.eq(first),
            crc.beats.p.leading.eq(leading),
            crc.beats.p.last.eq(last),
            crc.beats.p.end.eq(lane_end),
        ]

        # Last clock: a packet's result waits for its frame's end.
        delay = Crc32.LATENCY + 3
        frame_first, frame_last = Signal(delay), Signal(delay)
        m.d.sync += [
            frame_first.eq(Cat(self.beats.valid & self.beats.p.beat.first, frame_first)),
            frame_last.eq(Cat(self.beats.valid & self.beats.p.beat.last, frame_last)),
        ]
        kept, now = Signal(), Signal()
        with m.If(crc.results.valid):
            m.d.comb += now.eq(crc.results.payload)
        with m.Elif(~frame_first[-1]):
            m.d.comb += now.eq(kept)
        m.d.sync += [
            kept.eq(now),
            self.results.valid.eq(frame_last[-1]),
            self.results.payload.eq(now),
        ]
        return m
