"""Layer 4: UDP (RFC 768) and the Base Transport Header (IBTA Vol 1, 9.2; Annex A17)."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.classes import FrameClass
from rocetap.spec.opcodes import (
    BTH_OCTETS,
    CNP,
    ELIGIBLE_REQUESTS,
    EXTENDED_HEADER_OCTETS,
    ICRC_OCTETS,
    RC_RESPONSES,
    ROCEV2_UDP_PORT,
)

from .header import LENGTH_BITS, octets
from .ip import ip_header

__all__ = ["Transport", "transport_header"]

UDP_OCTETS = 8
VXLAN_PORTS = (4789, 8472)
"""RFC 7348, and the port that Linux used before it."""

transport_header = data.StructLayout({
    "frame_class": unsigned(5),   # of an IP packet, as if FCS and ICRC were right
    "opcode": unsigned(8),
    "pkey": unsigned(16),
    "qp": unsigned(24),
    "psn": unsigned(24),
})


class Transport(wiring.Component):
    """Finds UDP behind the IP header, the BTH behind UDP, and the packet's class.

    One header a clock, `LATENCY` clocks each. The first of these that holds decides; one that needs
    octets which a sliced frame does not have does not hold:

    1. IP version wrong, or IHL below 5: MALFORMED_IP.
    2. IP length below the IP header's, or beyond the end of an unsliced frame: MALFORMED_IP.
    3. A fragment: IP_FRAGMENT. Another IPv6 extension header: IPV6_EXTENSION. Not UDP: NOT_ROCE.
    4. IP length too short for a UDP header: MALFORMED_IP.
    5. UDP destination 4789 or 8472: TUNNELLED. Not 4791: NOT_ROCE.
    6. IP length too short for a BTH: MALFORMED_IP.
    7. Sliced before the end of the BTH: SLICED_SHORT.
    8. Opcode 0x0D to 0x12: RESPONSE. 0x81: CNP. However malformed: neither may touch the state of
       a request stream.
    9. TVer not 0; headers, pad and ICRC longer than the UDP length; UDP length other than the IP
       length leaves, be it too short for a BTH that the IP packet holds: MALFORMED_ROCE.
    10. Opcode 0x00 to 0x0B: ELIGIBLE_REQUEST. Any other: UNSUPPORTED_REQUEST.
    """

    LATENCY = 3

    i: In(stream.Signature(ip_header, always_ready=True))
    o: Out(stream.Signature(transport_header, always_ready=True))

    def elaborate(self, platform):
        m = Module()
        valid = Signal(2)
        m.d.sync += [valid.eq(Cat(self.i.valid, valid)), self.o.valid.eq(valid[1])]

        # Clock 1: UDP and BTH to a fixed place; lengths relative to it.
        ip = self.i.payload
        header_octets = ip.words << 2
        upper = Signal(8 * (UDP_OCTETS + BTH_OCTETS))
        length = Signal(signed(18))
        available = Signal(signed(LENGTH_BITS + 1))
        sliced = Signal()
        early = Signal(data.StructLayout(dict.fromkeys(
            ("malformed", "fragment", "extension", "other", "udp"), 1)))
        with m.Switch(ip.words):
            for words in range(5, 16):
                with m.Case(words):
                    start = 32 * (words - 5)
                    m.d.sync += upper.eq(ip.upper[start:start + len(upper)])
        beyond = ~ip.sliced & (ip.length > ip.available)
        m.d.sync += [
            length.eq(ip.length - header_octets),
            available.eq(ip.available - header_octets),
            sliced.eq(ip.sliced),
            early.malformed.eq(ip.bad_version | (ip.length_known & beyond)),
            early.fragment.eq(ip.fragment),
            early.extension.eq(ip.extension),
            early.other.eq(ip.other),
            early.udp.eq(ip.udp),
        ]
        length_known = Signal()
        m.d.sync += length_known.eq(ip.length_known)

        # Clock 2: what the fields say.
        def known(count):
            return ~sliced | (available >= count)

        port = octets(upper, 2, 2)
        udp_length = octets(upper, 4, 2)
        bth = upper[8 * UDP_OCTETS:]
        opcode = bth[0:8]
        extended = Array(Const(EXTENDED_HEADER_OCTETS.get(code, 0), 6) for code in range(256))
        fixed = UDP_OCTETS + BTH_OCTETS + ICRC_OCTETS
        fields = Signal(transport_header)
        wanted = Signal(7)
        granted = Signal(16)
        ruled = Signal(data.StructLayout(dict.fromkeys(
            ("malformed", "fragment", "extension", "other", "stub", "tunnelled", "elsewhere",
             "no_bth", "short", "odd", "response", "cnp", "eligible"), 1)))
        m.d.sync += [
            fields.opcode.eq(opcode),
            fields.pkey.eq(octets(bth, 2, 2)),
            fields.qp.eq(octets(bth, 5, 3)),
            fields.psn.eq(octets(bth, 9, 3)),
            wanted.eq(extended[opcode] + bth[12:14] + fixed),
            granted.eq(udp_length),
            ruled.malformed.eq(early.malformed | (length_known & (length < 0))),
            ruled.fragment.eq(early.fragment),
            ruled.extension.eq(early.extension),
            ruled.other.eq(early.other),
            ruled.stub.eq(early.udp & (length < UDP_OCTETS)),
            ruled.tunnelled.eq(
                early.udp & known(4) & Cat(port == other for other in VXLAN_PORTS).any()),
            ruled.elsewhere.eq(early.udp & known(4) & (port != ROCEV2_UDP_PORT)),
            ruled.no_bth.eq(early.udp & known(4) & (length < UDP_OCTETS + BTH_OCTETS)),
            ruled.short.eq(~known(UDP_OCTETS + BTH_OCTETS)),
            ruled.odd.eq((bth[8:12] != 0) | (udp_length != length)),
            ruled.response.eq((opcode >= RC_RESPONSES[0]) & (opcode <= RC_RESPONSES[-1])),
            ruled.cnp.eq(opcode == CNP),
            ruled.eligible.eq(opcode <= ELIGIBLE_REQUESTS[-1]),
        ]

        # Clock 3: the first that holds.
        out = self.o.payload
        m.d.sync += [out.eq(fields)]
        rules = (
            (ruled.malformed, FrameClass.MALFORMED_IP),
            (ruled.fragment, FrameClass.IP_FRAGMENT),
            (ruled.extension, FrameClass.IPV6_EXTENSION),
            (ruled.other, FrameClass.NOT_ROCE),
            (ruled.stub, FrameClass.MALFORMED_IP),
            (ruled.tunnelled, FrameClass.TUNNELLED),
            (ruled.elsewhere, FrameClass.NOT_ROCE),
            (ruled.no_bth, FrameClass.MALFORMED_IP),
            (ruled.short, FrameClass.SLICED_SHORT),
            (ruled.response, FrameClass.RESPONSE),
            (ruled.cnp, FrameClass.CNP),
            (ruled.odd | (wanted > granted), FrameClass.MALFORMED_ROCE),
            (ruled.eligible, FrameClass.ELIGIBLE_REQUEST),
        )
        frame_class = Const(FrameClass.UNSUPPORTED_REQUEST, 5)
        for holds, value in reversed(rules):
            frame_class = Mux(holds, Const(value, 5), frame_class)
        m.d.sync += out.frame_class.eq(frame_class)
        return m
