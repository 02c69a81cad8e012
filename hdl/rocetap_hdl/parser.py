"""The header parser: frames in, one verdict a frame out."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .delay import later
from .ethernet import FCS_OCTETS
from .fcs import FrameCheck
from .header import HEADER_OCTETS, HeaderCapture
from .icrc import STARTS, InvariantCheck
from .layers import Layers
from .layouts import frame_stream, verdict_stream
from .pfc import pfc_event
from .verdict import Judge
from .vxlan import (
    FIRST_UDP_OCTET,
    INNER_IP_STARTS,
    TUNNEL_OCTETS,
    Tunnel,
    TunnelChoice,
)

__all__ = ["MAX_OCTETS", "MIN_OCTETS", "Parser"]

MIN_OCTETS = 64
"""minFrameSize, FCS included (IEEE 802.3 table 4-2)."""

MAX_OCTETS = 14 + 2 * 4 + 9216 + 4
"""Longest frame by default, FCS included: an MTU of 9,216 octets and two tags."""


class Parser(wiring.Component):
    """Classifies every frame and reads the connection key, PSN and opcode of RoCEv2 packets.

    Parameters: ``bus_bytes``, octets a beat: 1, 8 or 64. ``has_fcs``: whether frames end with
    their FCS. Without, as NICs pass them on, none is checked: a wrong one must come as ``error``.
    Lengths below count the FCS all the same: a frame that has 60 octets without it is no RUNT.
    ``vxlan``: whether the frame in a VXLAN packet (UDP 4789 or 8472, with a valid VNI) is parsed in
    the outer one's place, as a frame without FCS and of any length; its key has ``tunnelled`` and
    ``vni`` set, and its own VLAN ids. It ends with the outer IP packet. MAC Control in there is
    NOT_ROCE, another VXLAN packet TUNNELLED. Without, VXLAN is TUNNELLED and not looked into.

    ``frames``: one beat a clock, gaps anywhere, frames back to back; at 64 octets a beat a frame
    every clock. Nothing in here ever waits: it is one pipeline. Every frame must end: a ``first``
    beat in the middle of a frame begins another one and the unfinished one has no verdict.
    ``time``: ns, sampled with a frame's first beat. ``cfg_check_icrc``: 0 means that every ICRC
    counts as right. ``cfg_max_octets``: longest frame that is not OVERSIZE, FCS included;
    MAX_OCTETS by default. Both are to be steady while frames pass.

    ``verdicts``: exactly one a frame, in order, `latency` clocks after its last beat. ``pfc``:
    valid with the verdict of each good PFC frame and with no other.

    Precedence of classes: LOST, MAC_ERROR, OVERSIZE, RUNT, BAD_FCS, then content as
    :class:`.verdict.Content`, :class:`.transport.Transport`, with ``vxlan``
    :class:`.vxlan.Tunnel`, and :class:`.verdict.Judge` have it. A
    sliced frame is never a RUNT, its FCS and ICRC are not checked and its IP length is not held
    against the frame's; it is SLICED_SHORT when its octets end before it is sure that it is no
    RoCEv2 packet, or before the end of the BTH. The UDP checksum is not checked.
    """

    def __init__(self, bus_bytes, *, has_fcs=True, vxlan=False):
        if bus_bytes not in (1, 8, 64):
            raise ValueError(f"bus_bytes is {bus_bytes}, must be 1, 8 or 64")
        self._bus_bytes = bus_bytes
        self._has_fcs = has_fcs
        self._vxlan = vxlan
        self._until_choice = (Layers.PACKET_LATENCY + InvariantCheck.LATENCY
                              + (Tunnel.LATENCY + Layers.PACKET_LATENCY if vxlan else 0))
        self._until_judged = self._until_choice + (TunnelChoice.LATENCY if vxlan else 0)
        self.latency = HeaderCapture.LATENCY + self._until_judged + Judge.LATENCY
        super().__init__({
            "frames": In(frame_stream(bus_bytes)),
            "time": In(64),
            "cfg_check_icrc": In(1, init=1),
            "cfg_max_octets": In(14, init=MAX_OCTETS),
            "verdicts": Out(verdict_stream()),
            "pfc": Out(stream.Signature(pfc_event, always_ready=True)),
        })

    def elaborate(self, platform):
        m = Module()
        n = self._bus_bytes
        head = TUNNEL_OCTETS if self._vxlan else HEADER_OCTETS
        m.submodules.capture = capture = HeaderCapture(n, head=head)
        m.submodules.layers = layers = Layers(
            latency=self._until_choice, has_fcs=self._has_fcs)
        m.submodules.icrc = icrc = InvariantCheck(n, starts=STARTS)
        m.submodules.judge = judge = Judge()

        m.d.comb += [
            capture.frames.valid.eq(self.frames.valid),
            capture.frames.payload.eq(self.frames.payload),
            capture.time.eq(self.time),
        ]
        fcs_good = Const(1)
        if self._has_fcs:
            m.submodules.fcs = fcs = FrameCheck(n)
            m.d.comb += [
                fcs.frames.valid.eq(self.frames.valid),
                fcs.frames.payload.eq(self.frames.payload),
            ]
            wait = HeaderCapture.LATENCY + self._until_judged - FrameCheck.LATENCY
            fcs_good = later(m, "checked", wait, fcs=fcs.results.payload).fcs

        # The layers, and the ICRC beside layer 4. Every beat goes along, with what is known by
        # then; what is said of a frame comes with its last beat.
        beat = capture.beats.p.beat
        index = capture.beats.p.index
        last_octet = index if n == 1 else Cat(beat.end, index)
        m.d.comb += [
            layers.heads.valid.eq(capture.beats.valid),
            layers.heads.p.octets.eq(capture.beats.p.octets),
            layers.heads.p.last_octet.eq(last_octet),
            layers.heads.p.sliced.eq(beat.sliced),
        ]
        located = later(m, "located", Layers.PACKET_LATENCY, beat=beat, index=index)
        self._find_packet(m, icrc, located, layers, layers.packets.p.tags)

        content, icrc_good, valid = layers.o.payload, icrc.results.payload, icrc.results.valid
        if self._vxlan:
            choice = self._open_tunnel(m, capture, layers, located, icrc)
            content, icrc_good, valid = choice.o.payload, choice.icrc, choice.o.valid

        # The frame as a whole.
        last_with_fcs = last_octet + (0 if self._has_fcs else FCS_OCTETS)
        whole = later(
            m, "whole", self._until_judged, lost=beat.lost, error=beat.error, sliced=beat.sliced,
            time=capture.beats.p.time, oversize=last_with_fcs >= self.cfg_max_octets,
            runt=last_with_fcs < MIN_OCTETS - 1)
        m.d.comb += [
            judge.i.valid.eq(valid),
            judge.i.p.time.eq(whole.time),
            *(judge.i.p[name].eq(content[name])
              for name in ("frame_class", "key", "psn", "opcode")),
            judge.event.eq(content.pfc),
            *(judge.state[name].eq(whole[name]) for name in ("lost", "error", "oversize")),
            judge.state.runt.eq(whole.runt & ~whole.sliced),
            judge.state.bad_fcs.eq(~fcs_good & ~whole.sliced),
            judge.state.bad_icrc.eq(~icrc_good & ~whole.sliced & self.cfg_check_icrc),
        ]
        connect(m, judge.o, flipped(self.verdicts))
        connect(m, judge.pfc, flipped(self.pfc))
        return m

    @staticmethod
    def _find_packet(m, icrc, located, layers, place):
        """Says to the ICRC, with every beat, where the packet is."""
        ip = layers.packets
        m.d.comb += [
            icrc.beats.valid.eq(ip.valid),
            icrc.beats.p.beat.eq(located.beat),
            icrc.beats.p.index.eq(located.index),
            icrc.beats.p.place.eq(place),
            *(icrc.beats.p[name].eq(ip.p[name]) for name in ("ipv6", "words", "length")),
        ]

    def _open_tunnel(self, m, capture, layers, located, icrc):
        """The layers and the ICRC once more, over the frame in the tunnel."""
        until_inner = Tunnel.LATENCY + Layers.PACKET_LATENCY
        m.submodules.tunnel = tunnel = Tunnel()
        m.submodules.inner_layers = inner = Layers(
            latency=Layers.PACKET_LATENCY + InvariantCheck.LATENCY, has_fcs=False, control=False)
        m.submodules.inner_icrc = inner_icrc = InvariantCheck(
            self._bus_bytes, starts=INNER_IP_STARTS)
        m.submodules.choice = choice = TunnelChoice()

        rest = later(m, "rest", Layers.PACKET_LATENCY,
                     octets=capture.beats.p.octets[8 * FIRST_UDP_OCTET:])
        m.d.comb += [
            tunnel.packets.valid.eq(layers.packets.valid),
            tunnel.packets.payload.eq(layers.packets.payload),
            tunnel.octets.eq(rest.octets),
            inner.heads.valid.eq(tunnel.o.valid),
            inner.heads.payload.eq(tunnel.o.p.head),
        ]
        outer = later(m, "outer_place", Layers.PACKET_LATENCY, place=tunnel.o.p.place)
        inner_located = later(
            m, "inner_located", until_inner, beat=located.beat, index=located.index)
        self._find_packet(m, inner_icrc, inner_located, inner, outer.place + inner.packets.p.tags)

        outer_icrc = later(m, "outer_icrc", until_inner, good=icrc.results.payload)
        vxlan = later(m, "vxlan", Layers.PACKET_LATENCY + InvariantCheck.LATENCY,
                      state=tunnel.o.p.state, vni=tunnel.o.p.vni)
        m.d.comb += [
            choice.outer.valid.eq(inner_icrc.results.valid),
            choice.outer.payload.eq(layers.o.payload),
            choice.inner.valid.eq(inner_icrc.results.valid),
            choice.inner.payload.eq(inner.o.payload),
            choice.outer_icrc.eq(outer_icrc.good),
            choice.inner_icrc.eq(inner_icrc.results.payload),
            choice.state.eq(vxlan.state),
            choice.vni.eq(vxlan.vni),
        ]
        return choice
