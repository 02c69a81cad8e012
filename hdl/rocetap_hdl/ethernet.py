"""Layer 2: tags off, EtherType read (IEEE 802.3 3.2.6; IEEE 802.1Q 9.3-9.6)."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .header import HEADER_OCTETS, LENGTH_BITS, octets

__all__ = ["FCS_OCTETS", "PACKET_OCTETS", "Ethernet", "ethernet_header", "frame_head"]

TPIDS = (0x8100, 0x88A8, 0x9100)
"""Customer and service tag (IEEE 802.1Q table 9-1), and the older QinQ value still in use."""

ETHERTYPES = {"ipv4": 0x0800, "ipv6": 0x86DD, "mac_control": 0x8808, "rocev1": 0x8915}
"""IANA's and IEEE's registries; IEEE 802.3 31.4.1.3; IBTA Annex A16.4."""

PFC_ADDRESS = 0x0180C2000001
"""IEEE 802.3 31D.2, the MAC Control multicast address."""

FCS_OCTETS = 4
"""IEEE 802.3 3.2.9."""

PACKET_OCTETS = HEADER_OCTETS - 22
"""What is kept of the octets behind the EtherType: 80."""

frame_head = data.StructLayout({
    "octets": unsigned(8 * HEADER_OCTETS),
    "last_octet": unsigned(LENGTH_BITS),   # index of the last octet so far, placeholders among them
    "sliced": 1,
})

ethernet_header = data.StructLayout({
    "tags": unsigned(2),                   # 0, 1 or 2
    "too_deep": 1,                         # a third tag
    "short": 1,                            # ends before the EtherType
    "outer_vid": unsigned(12),             # of the only or outer tag, else 0
    "inner_vid": unsigned(12),             # of the inner of two tags, else 0
    **dict.fromkeys(ETHERTYPES, 1),
    "pfc_address": 1,                      # destination is 01-80-C2-00-00-01
    "sliced": 1,
    "available": signed(LENGTH_BITS + 1),  # octets of the frame behind the EtherType, without FCS
    "packet": unsigned(8 * PACKET_OCTETS),
})


class Ethernet(wiring.Component):
    """Strips up to two tags. One head a clock, `LATENCY` clocks each.

    ``has_fcs``: whether a frame's last four octets are its FCS, or placeholders for it.
    """

    LATENCY = 2

    heads: In(stream.Signature(frame_head, always_ready=True))
    headers: Out(stream.Signature(ethernet_header, always_ready=True))

    def __init__(self, *, has_fcs=True):
        self._has_fcs = has_fcs
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        head, out = self.heads.payload, self.headers.payload

        # Clock 1: where tags are.
        valid = Signal()
        held = Signal.like(head)
        tag = Signal(3)
        m.d.sync += [valid.eq(self.heads.valid), held.eq(head)]
        for i in range(3):
            tpid = octets(head.octets, 12 + 4 * i, 2)
            m.d.sync += tag[i].eq(Cat(tpid == value for value in TPIDS).any())
        to_pfc = Signal()
        m.d.sync += to_pfc.eq(octets(head.octets, 0, 6) == PFC_ADDRESS)

        # Clock 2: take them off. The FCS is no part of the packet, nor is a placeholder for it.
        captured = Signal(signed(LENGTH_BITS + 2))
        m.d.comb += captured.eq(held.last_octet + 1 - (FCS_OCTETS if self._has_fcs else 0))
        m.d.sync += [self.headers.valid.eq(valid), out.pfc_address.eq(to_pfc),
                     out.sliced.eq(held.sliced), out.too_deep.eq(tag.all())]
        vids = [octets(held.octets, 14 + 4 * i, 2)[:12] for i in range(2)]
        for tags, found in enumerate((~tag[0], tag[0] & ~tag[1], tag[0] & tag[1])):
            start = 14 + 4 * tags
            ethertype = octets(held.octets, start - 2, 2)
            with m.If(found):
                m.d.sync += [
                    out.tags.eq(tags),
                    out.outer_vid.eq(vids[0] if tags > 0 else 0),
                    out.inner_vid.eq(vids[1] if tags > 1 else 0),
                    out.short.eq(captured < start),
                    out.available.eq(captured - start),
                    out.packet.eq(held.octets[8 * start:8 * (start + PACKET_OCTETS)]),
                ]
                for name, value in ETHERTYPES.items():
                    m.d.sync += out[name].eq(ethertype == value)
        return m
