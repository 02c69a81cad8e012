"""The header parser: frames in, one verdict a frame out."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .delay import Delay
from .ethernet import FCS_OCTETS, Ethernet
from .fcs import FrameCheck
from .header import HeaderCapture
from .icrc import InvariantCheck
from .ip import Ip
from .layouts import frame_stream, verdict_stream
from .pfc import PfcDetector, pfc_event
from .transport import Transport
from .verdict import Content, Judge

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

    ``frames``: one beat a clock, gaps anywhere, frames back to back; at 64 octets a beat a frame
    every clock. Nothing in here ever waits: it is one pipeline. Every frame must end: a ``first``
    beat in the middle of a frame begins another one and the unfinished one has no verdict.
    ``time``: ns, sampled with a frame's first beat. ``cfg_check_icrc``: 0 means that every ICRC
    counts as right. ``cfg_max_octets``: longest frame that is not OVERSIZE, FCS included;
    MAX_OCTETS by default. Both are to be steady while frames pass.

    ``verdicts``: exactly one a frame, in order, `latency` clocks after its last beat. ``pfc``:
    valid with the verdict of each good PFC frame and with no other.

    Precedence of classes: LOST, MAC_ERROR, OVERSIZE, RUNT, BAD_FCS, then content as
    :class:`.verdict.Content`, :class:`.transport.Transport` and :class:`.verdict.Judge` have it. A
    sliced frame is never a RUNT, its FCS and ICRC are not checked and its IP length is not held
    against the frame's; it is SLICED_SHORT when its octets end before it is sure that it is no
    RoCEv2 packet, or before the end of the BTH. The UDP checksum is not checked.
    """

    latency = (HeaderCapture.LATENCY + Ethernet.LATENCY + Ip.LATENCY + InvariantCheck.LATENCY
               + Judge.LATENCY)

    def __init__(self, bus_bytes, *, has_fcs=True):
        if bus_bytes not in (1, 8, 64):
            raise ValueError(f"bus_bytes is {bus_bytes}, must be 1, 8 or 64")
        self._bus_bytes = bus_bytes
        self._has_fcs = has_fcs
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
        m.submodules.capture = capture = HeaderCapture(n)
        m.submodules.ethernet = ethernet = Ethernet(has_fcs=self._has_fcs)
        m.submodules.ip = ip = Ip()
        m.submodules.control = control = PfcDetector()
        m.submodules.transport = transport = Transport()
        m.submodules.content = content = Content()
        m.submodules.icrc = icrc = InvariantCheck(n)
        m.submodules.judge = judge = Judge()

        # Clocks after a beat's arrival, by stage.
        at_capture = HeaderCapture.LATENCY
        at_ethernet = at_capture + Ethernet.LATENCY
        at_control = at_ethernet + PfcDetector.LATENCY
        at_ip = at_ethernet + Ip.LATENCY
        at_transport = at_ip + Transport.LATENCY
        at_content = at_transport + Content.LATENCY
        at_icrc = at_ip + InvariantCheck.LATENCY

        def later(name, clocks, **fields):
            layout = data.StructLayout({key: value.shape() for key, value in fields.items()})
            m.submodules[name] = delay = Delay(layout, clocks)
            m.d.comb += [delay.i[key].eq(value) for key, value in fields.items()]
            return delay.o

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
            fcs_good = later("checked", at_icrc - FrameCheck.LATENCY, fcs=fcs.results.payload).fcs

        # The layers one behind the other. Every beat goes along, with what is known by then.
        beat = capture.beats.p.beat
        index = capture.beats.p.index
        last_octet = index if n == 1 else Cat(beat.end, index)
        header = ethernet.headers.p
        m.d.comb += [
            ethernet.heads.valid.eq(capture.beats.valid),
            ethernet.heads.p.octets.eq(capture.beats.p.octets),
            ethernet.heads.p.last_octet.eq(last_octet),
            ethernet.heads.p.sliced.eq(beat.sliced),
            *(sink.i.valid.eq(ethernet.headers.valid) for sink in (ip, control)),
            *(sink.i.payload.eq(header) for sink in (ip, control)),
        ]
        connect(m, ip.o, transport.i)

        # The ICRC beside layer 4; its result comes with the frame's last beat.
        located = later("located", at_ip - at_capture, beat=beat, index=index)
        m.d.comb += [
            icrc.beats.valid.eq(ip.o.valid),
            icrc.beats.p.beat.eq(located.beat),
            icrc.beats.p.index.eq(located.index),
            *(icrc.beats.p[name].eq(ip.o.p[name]) for name in ("tags", "ipv6", "words", "length")),
        ]

        # The class by content.
        found = later("found", at_transport - at_ethernet, **{
            name: header[name] for name in ("short", "too_deep", "rocev1", "ipv4", "ipv6")})
        mac_control = later("mac_control", at_transport - at_control, found=control.o.payload)
        m.d.comb += [
            content.i.valid.eq(transport.o.valid),
            *(content.i.p[name].eq(found[name]) for name in ("short", "too_deep", "rocev1")),
            content.i.p.is_ip.eq(found.ipv4 | found.ipv6),
            content.i.p.control.eq(mac_control.found),
            content.i.p.ip_class.eq(transport.o.p.frame_class),
        ]

        # Everything waits for the ICRC.
        bth = later("bth", at_icrc - at_transport, **{
            name: transport.o.p[name] for name in ("opcode", "psn", "pkey", "qp")})
        judged = later("judged", at_icrc - at_content, **{
            name: content.o.p[name] for name in ("frame_class", "pfc")})
        tags = later("tags", at_icrc - at_ethernet, **{
            name: header[name] for name in ("outer_vid", "inner_vid")})
        addresses = later("addresses", at_icrc - at_ip, **{
            name: ip.o.p[name] for name in ("ipv6", "source", "destination")})
        last_with_fcs = last_octet + (0 if self._has_fcs else FCS_OCTETS)
        whole = later(
            "whole", at_icrc - at_capture,
            lost=beat.lost, error=beat.error, sliced=beat.sliced, time=capture.beats.p.time,
            oversize=last_with_fcs >= self.cfg_max_octets, runt=last_with_fcs < MIN_OCTETS - 1)

        verdict = judge.i.p
        m.d.comb += [
            judge.i.valid.eq(icrc.results.valid),
            verdict.frame_class.eq(judged.frame_class),
            verdict.time.eq(whole.time),
            verdict.psn.eq(bth.psn),
            verdict.opcode.eq(bth.opcode),
            *(verdict.key[name].eq(bth[name]) for name in ("qp", "pkey")),
            *(verdict.key[name].eq(tags[name]) for name in ("outer_vid", "inner_vid")),
            *(verdict.key[name].eq(addresses[name]) for name in (
                "ipv6", "source", "destination")),
            judge.event.eq(judged.pfc),
            *(judge.state[name].eq(whole[name]) for name in ("lost", "error", "oversize")),
            judge.state.runt.eq(whole.runt & ~whole.sliced),
            judge.state.bad_fcs.eq(~fcs_good & ~whole.sliced),
            judge.state.bad_icrc.eq(
                ~icrc.results.payload & ~whole.sliced & self.cfg_check_icrc),
        ]
        connect(m, judge.o, flipped(self.verdicts))
        connect(m, judge.pfc, flipped(self.pfc))
        return m
