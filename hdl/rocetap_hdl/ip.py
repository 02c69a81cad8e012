"""Layer 3: IPv4 with options (RFC 791) and IPv6 (RFC 8200), up to what says where layer 4 is."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .ethernet import ethernet_header
from .header import LENGTH_BITS, octets

__all__ = ["Ip", "ip_header"]

UDP = 17
IPV6_FRAGMENT = 44
IPV6_EXTENSIONS = (0, 43, 50, 51, 60, 135, 139, 140, 253, 254)
"""IANA's IPv6 extension header types, all but the fragment header: nothing behind one is read."""

UPPER_OCTETS = 60
"""From the shortest IPv4 header's end to where a BTH can end."""

ip_header = data.StructLayout({
    "ipv6": 1,
    "tags": unsigned(2),
    "words": unsigned(4),                  # header length in 32-bit words: IHL, or 10
    "length": unsigned(17),                # of the packet, header included, as the header says
    "source": unsigned(128),
    "destination": unsigned(128),
    "bad_version": 1,                      # version other than the EtherType's, or IHL below 5
    "length_known": 1,
    "fragment": 1,
    "extension": 1,
    "other": 1,                            # another protocol than UDP
    "udp": 1,
    "sliced": 1,
    "available": signed(LENGTH_BITS + 1),  # octets of the frame from the IP header on, without FCS
    "upper": unsigned(8 * UPPER_OCTETS),   # from octet 20 of the packet on
})


class Ip(wiring.Component):
    """Reads the IP header. One header a clock, `LATENCY` clock each.

    No flag is set on the strength of octets that a sliced frame does not have. ``fragment``: DF
    does not matter, an IPv4 packet with MF or an offset is one, whatever its protocol.
    """

    LATENCY = 1

    i: In(stream.Signature(ethernet_header, always_ready=True))
    o: Out(stream.Signature(ip_header, always_ready=True))

    def elaborate(self, platform):
        m = Module()
        frame, out = self.i.payload, self.o.payload
        packet = frame.packet

        def known(count):
            return ~frame.sliced | (frame.available >= count)

        m.d.sync += [
            self.o.valid.eq(self.i.valid),
            out.ipv6.eq(frame.ipv6),
            out.tags.eq(frame.tags),
            out.sliced.eq(frame.sliced),
            out.available.eq(frame.available),
            out.upper.eq(packet[8 * 20:]),
        ]
        version = packet[4:8]
        ihl = packet[0:4]
        protocol = packet[8 * 9:8 * 10]
        next_header = packet[8 * 6:8 * 7]
        with m.If(frame.ipv6):
            extension = Cat(next_header == number for number in IPV6_EXTENSIONS).any()
            fragment = next_header == IPV6_FRAGMENT
            udp = next_header == UDP
            m.d.sync += [
                out.words.eq(10),
                out.length.eq(octets(packet, 4, 2) + 40),
                out.source.eq(octets(packet, 8, 16)),
                out.destination.eq(octets(packet, 24, 16)),
                out.bad_version.eq(known(1) & (version != 6)),
                out.length_known.eq(known(6)),
                out.fragment.eq(known(7) & fragment),
                out.extension.eq(known(7) & extension),
                out.other.eq(known(7) & ~fragment & ~extension & ~udp),
                out.udp.eq(known(7) & udp),
            ]
        with m.Else():
            m.d.sync += [
                out.words.eq(ihl),
                out.length.eq(octets(packet, 2, 2)),
                out.source.eq(octets(packet, 12, 4)),
                out.destination.eq(octets(packet, 16, 4)),
                out.bad_version.eq(known(1) & ((version != 4) | (ihl < 5))),
                out.length_known.eq(known(4)),
                out.fragment.eq(known(8) & octets(packet, 6, 2)[:14].any()),
                out.extension.eq(0),
                out.other.eq(known(10) & (protocol != UDP)),
                out.udp.eq(known(10) & (protocol == UDP)),
            ]
        return m
