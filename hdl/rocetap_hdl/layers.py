"""Layers 2 to 4 of one frame, one behind the other, and what they make of it."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .delay import later
from .ethernet import Ethernet, frame_head
from .ip import Ip, ip_header
from .layouts import KEY
from .pfc import PfcDetector, pfc_event
from .transport import Transport
from .verdict import Content

__all__ = ["Layers", "frame_content"]

frame_content = data.StructLayout({
    "frame_class": unsigned(5),   # by content alone, as if FCS and ICRC were right
    "key": KEY,                   # not tunnelled
    "psn": unsigned(24),
    "opcode": unsigned(8),
    "pfc": pfc_event,
})


class Layers(wiring.Component):
    """From a frame's head to its content. One head a clock.

    Parameters: ``latency``, clocks from a head to its content, more than `LATENCY`: it is for the
    caller to say, as what is known early waits in one delay then. ``has_fcs``: whether the frame's
    last four octets are its FCS or placeholders. ``control``: whether MAC Control frames count as
    such; without they are NOT_ROCE.

    ``packets`` gives the IP header `PACKET_LATENCY` clocks after its head, for every head: whether
    there is one, the content says.
    """

    PACKET_LATENCY = Ethernet.LATENCY + Ip.LATENCY
    LATENCY = PACKET_LATENCY + Transport.LATENCY + Content.LATENCY

    heads: In(stream.Signature(frame_head, always_ready=True))
    packets: Out(stream.Signature(ip_header, always_ready=True))
    o: Out(stream.Signature(frame_content, always_ready=True))

    def __init__(self, *, latency, has_fcs=True, control=True):
        if latency <= self.LATENCY:
            raise ValueError(f"latency is {latency}, must be above {self.LATENCY}")
        self._latency = latency
        self._has_fcs = has_fcs
        self._control = control
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.ethernet = ethernet = Ethernet(has_fcs=self._has_fcs)
        m.submodules.ip = ip = Ip()
        m.submodules.transport = transport = Transport()
        m.submodules.content = content = Content()

        # Clocks after a head, by stage.
        at_ethernet = Ethernet.LATENCY
        at_ip = self.PACKET_LATENCY
        at_transport = at_ip + Transport.LATENCY
        at_content = self.LATENCY

        header = ethernet.headers.p
        connect(m, flipped(self.heads), ethernet.heads)
        connect(m, ethernet.headers, ip.i)
        connect(m, ip.o, transport.i)
        m.d.comb += [self.packets.valid.eq(ip.o.valid), self.packets.payload.eq(ip.o.payload)]

        # The class by content.
        findings = ("short", "sliced", "too_deep", "rocev1")
        found = later(m, "found", at_transport - at_ethernet, **{
            name: header[name] for name in (*findings, "ipv4", "ipv6")})
        m.d.comb += [
            content.i.valid.eq(transport.o.valid),
            *(content.i.p[name].eq(found[name]) for name in findings),
            content.i.p.is_ip.eq(found.ipv4 | found.ipv6),
            content.i.p.ip_class.eq(transport.o.p.frame_class),
        ]
        if self._control:
            m.submodules.control = control = PfcDetector()
            m.d.comb += [
                control.i.valid.eq(ethernet.headers.valid), control.i.payload.eq(header)]
            m.d.comb += content.i.p.control.eq(later(
                m, "mac_control", at_transport - at_ethernet - PfcDetector.LATENCY,
                found=control.o.payload).found)

        # Everything else waits.
        end = self._latency
        bth = later(m, "bth", end - at_transport, **{
            name: transport.o.p[name] for name in ("opcode", "psn", "pkey", "qp")})
        judged = later(m, "judged", end - at_content, valid=content.o.valid, **{
            name: content.o.p[name] for name in ("frame_class", "pfc")})
        vids = later(m, "vids", end - at_ethernet, **{
            name: header[name] for name in ("outer_vid", "inner_vid")})
        addresses = later(m, "addresses", end - at_ip, **{
            name: ip.o.p[name] for name in ("ipv6", "source", "destination")})
        out = self.o.payload
        m.d.comb += [
            self.o.valid.eq(judged.valid),
            out.frame_class.eq(judged.frame_class),
            out.pfc.eq(judged.pfc),
            out.psn.eq(bth.psn),
            out.opcode.eq(bth.opcode),
            *(out.key[name].eq(bth[name]) for name in ("qp", "pkey")),
            *(out.key[name].eq(vids[name]) for name in ("outer_vid", "inner_vid")),
            *(out.key[name].eq(addresses[name]) for name in ("ipv6", "source", "destination")),
        ]
        return m
