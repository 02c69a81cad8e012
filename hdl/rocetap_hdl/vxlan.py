"""VXLAN (RFC 7348): where the frame in the tunnel is, and which of the two frames counts."""

from amaranth.hdl import *
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.classes import FrameClass

from .ethernet import frame_head
from .header import HEADER_OCTETS, LENGTH_BITS, octets
from .icrc import IP_WORDS
from .icrc import STARTS as OUTER_IP_STARTS
from .ip import ip_header
from .layers import frame_content

__all__ = [
    "FIRST_UDP_OCTET", "INNER_IP_STARTS", "TUNNEL_OCTETS", "Tunnel", "TunnelChoice", "TunnelState",
    "tunnel_header",
]

UDP_OCTETS = 8
VXLAN_OCTETS = 8
ETHERNET_OCTETS = 14

I_FLAG = 3
"""RFC 7348 5: set for a valid VNI. The other flags are to be ignored on receipt."""

LEAST_UDP_LENGTH = UDP_OCTETS + VXLAN_OCTETS + ETHERNET_OCTETS

FIRST_UDP_OCTET = OUTER_IP_STARTS[0] + 4 * IP_WORDS[0]
"""Of the frame: UDP behind an untagged IPv4 header without options. Tags and options move it on by
words, which is a tunnel's ``place``."""

PLACES = len(OUTER_IP_STARTS) + len(IP_WORDS) - 1

WINDOW_OCTETS = UDP_OCTETS + VXLAN_OCTETS + HEADER_OCTETS
"""From the outer UDP header to the end of the inner frame's head."""

TUNNEL_OCTETS = FIRST_UDP_OCTET + 4 * (PLACES - 1) + WINDOW_OCTETS
"""Octets of a frame that all of this may need: 200."""

_FIRST_INNER_IP = FIRST_UDP_OCTET + UDP_OCTETS + VXLAN_OCTETS + ETHERNET_OCTETS
INNER_IP_STARTS = range(
    _FIRST_INNER_IP, _FIRST_INNER_IP + 4 * (PLACES + len(OUTER_IP_STARTS) - 1), 4)
"""Octets of the frame where the inner IP header may start, by place and inner tags in all."""


class TunnelState(enum.Enum, shape=unsigned(2)):
    """What a UDP datagram to a VXLAN port is."""

    OPEN = 0        # the inner frame counts
    CLOSED = 1      # no valid VNI: not parsed further
    MALFORMED = 2   # UDP length other than the IP length leaves, or without room for an inner frame
    SHORT = 3       # the tap cut the frame before the inner one's EtherType could stand


tunnel_header = data.StructLayout({
    "state": TunnelState,         # if the outer packet's class is TUNNELLED, else anything
    "vni": unsigned(24),
    "place": unsigned(4),         # which of 13 places UDP has
    "head": frame_head,           # of the inner frame, which has no FCS
})


class Tunnel(wiring.Component):
    """Moves the inner frame of a VXLAN packet to the front. One packet a clock.

    ``packets``: the outer IP header; with it ``octets``, the frame's octets from FIRST_UDP_OCTET on
    to TUNNEL_OCTETS. The inner frame ends where the outer IP packet does, never at the frame's end;
    in a frame that the tap cut, where its octets do.
    """

    LATENCY = 3

    packets: In(stream.Signature(ip_header, always_ready=True))
    octets: In(8 * (TUNNEL_OCTETS - FIRST_UDP_OCTET))
    o: Out(stream.Signature(tunnel_header, always_ready=True))

    def elaborate(self, platform):
        m = Module()
        ip, out = self.packets.payload, self.o.payload
        valid = Signal(self.LATENCY)
        m.d.sync += valid.eq(Cat(self.packets.valid, valid))

        # Clock 1: how far, and how long. Clock 2: by single words. Clock 3: by four words.
        place = Signal(range(PLACES))
        length, available = Signal(signed(18)), Signal(signed(LENGTH_BITS + 1))
        sliced = Signal()
        header_octets = ip.words << 2
        m.d.sync += [
            place.eq(ip.tags + ip.words - IP_WORDS[0]),
            length.eq(ip.length - header_octets),
            available.eq(ip.available - header_octets),
            sliced.eq(ip.sliced),
        ]
        window = Signal.like(self.octets)
        m.d.sync += window.eq(self.octets)
        known = [Cat(place, length, available, sliced)]
        for _ in range(2):
            held = Signal.like(known[-1], name=f"known_{len(known)}")
            m.d.sync += held.eq(known[-1])
            known.append(held)
        by_words, whole = Signal.like(window), Signal(8 * WINDOW_OCTETS)
        m.d.sync += [
            by_words.eq(window >> Cat(C(0, 5), place[:2])),
            whole.eq(by_words >> Cat(C(0, 7), known[1][2:len(place)])),
        ]

        facts = data.View(data.StructLayout({
            "place": place.shape(), "length": length.shape(), "available": available.shape(),
            "sliced": 1}), known[-1])
        udp_length = octets(whole, 4, 2)
        flags = whole[8 * UDP_OCTETS:8 * (UDP_OCTETS + 1)]
        inner_octets = Mux(facts.sliced, facts.available, facts.length) - UDP_OCTETS - VXLAN_OCTETS

        def captured(count):
            return ~facts.sliced | (facts.available >= count)

        m.d.comb += [
            self.o.valid.eq(valid[-1]),
            out.vni.eq(octets(whole, UDP_OCTETS + 4, 3)),
            out.place.eq(facts.place),
            out.head.octets.eq(whole[8 * (UDP_OCTETS + VXLAN_OCTETS):]),
            out.head.last_octet.eq(inner_octets - 1),
            out.head.sliced.eq(facts.sliced),
        ]
        with m.If(captured(6) & ((udp_length != facts.length) | (udp_length < LEAST_UDP_LENGTH))):
            m.d.comb += out.state.eq(TunnelState.MALFORMED)
        with m.Elif(captured(UDP_OCTETS + 1) & ~flags[I_FLAG]):
            m.d.comb += out.state.eq(TunnelState.CLOSED)
        with m.Elif(~captured(LEAST_UDP_LENGTH)):
            m.d.comb += out.state.eq(TunnelState.SHORT)
        return m


class TunnelChoice(wiring.Component):
    """Takes the outer or the inner frame's content. One a clock, `LATENCY` clock each.

    ``icrc`` of each is whether its ICRC is right. The inner frame's key gets the VNI.
    """

    LATENCY = 1

    outer: In(stream.Signature(frame_content, always_ready=True))
    inner: In(stream.Signature(frame_content, always_ready=True))
    outer_icrc: In(1)
    inner_icrc: In(1)
    state: In(TunnelState)
    vni: In(24)
    o: Out(stream.Signature(frame_content, always_ready=True))
    icrc: Out(1)

    def elaborate(self, platform):
        m = Module()
        out = self.o.payload
        tunnelled = Signal()
        m.d.comb += tunnelled.eq(self.outer.p.frame_class == FrameClass.TUNNELLED)
        m.d.sync += [
            self.o.valid.eq(self.outer.valid),
            out.eq(self.outer.payload),
            self.icrc.eq(self.outer_icrc),
        ]
        with m.If(tunnelled):
            m.d.sync += [
                out.eq(self.inner.payload),
                out.key.tunnelled.eq(1),
                out.key.vni.eq(self.vni),
                self.icrc.eq(self.inner_icrc),
            ]
            with m.Switch(self.state):
                with m.Case(TunnelState.CLOSED):
                    m.d.sync += out.frame_class.eq(FrameClass.TUNNELLED)
                with m.Case(TunnelState.MALFORMED):
                    m.d.sync += out.frame_class.eq(FrameClass.MALFORMED_IP)
                with m.Case(TunnelState.SHORT):
                    m.d.sync += out.frame_class.eq(FrameClass.SLICED_SHORT)
        return m
