"""Frames octet by octet, without scapy: RoCEv2, PFC and what surrounds them.

Layers are functions from payload to octets, written inside out: ``ethernet(ipv4(udp(bth(...))))``.
`roce` puts the whole packet together and adds the right ICRC. FCS comes last: `with_fcs`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from ipaddress import ip_address

__all__ = [
    "DESTINATION_MAC", "PFC_MAC", "SOURCE_MAC", "bth", "checksum", "ethernet", "icrc", "ipv4",
    "ipv6", "mac_control", "pad", "pfc", "roce", "udp", "vxlan", "with_fcs",
]

SOURCE_MAC = bytes.fromhex("020000000001")
DESTINATION_MAC = bytes.fromhex("020000000002")
PFC_MAC = bytes.fromhex("0180c2000001")


def with_fcs(frame: bytes, *, wrong: bool = False) -> bytes:
    """The frame and its FCS (IEEE 802.3 3.2.9), least significant octet first."""
    return frame + ((zlib.crc32(frame) ^ wrong) & 0xFFFFFFFF).to_bytes(4, "little")


def pad(frame: bytes, octets: int = 60) -> bytes:
    """The frame with zero octets up to the minimum size; the FCS makes 64 of 60."""
    return frame.ljust(octets, b"\0")


def ethernet(ethertype: int, payload: bytes, *, tags: Sequence[tuple[int, int]] = (),
             source: bytes = SOURCE_MAC, destination: bytes = DESTINATION_MAC) -> bytes:
    """A frame without padding and FCS. `tags`: (TPID, TCI) from the outermost."""
    head = b"".join(struct.pack(">HH", *tag) for tag in tags)
    return destination + source + head + struct.pack(">H", ethertype) + payload


def checksum(octets: bytes) -> int:
    """The Internet checksum (RFC 1071) of an even number of octets."""
    total = sum(struct.unpack(f">{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ipv4(payload: bytes, *, source: str = "192.0.2.1", destination: str = "198.51.100.2",
         tos: int = 0, ttl: int = 64, identification: int = 1, flags: int = 0x4000,
         protocol: int = 17, options: bytes = b"", version: int = 4, ihl: int | None = None,
         length: int | None = None) -> bytes:
    """An IPv4 packet; `flags` is the whole 16-bit field with the fragment offset."""
    ihl = 5 + len(options) // 4 if ihl is None else ihl
    length = 20 + len(options) + len(payload) if length is None else length
    head = bytearray(struct.pack(
        ">BBHHHBBH", version << 4 | ihl, tos, length, identification, flags, ttl, protocol, 0))
    head += ip_address(source).packed + ip_address(destination).packed + options
    head[10:12] = checksum(bytes(head)).to_bytes(2, "big")
    return bytes(head) + payload


def ipv6(payload: bytes, *, source: str = "2001:db8::1", destination: str = "2001:db8::2",
         traffic_class: int = 0, flow: int = 0, hops: int = 64, next_header: int = 17,
         version: int = 6, length: int | None = None) -> bytes:
    """An IPv6 packet; `length` is the payload length field."""
    length = len(payload) if length is None else length
    head = struct.pack(
        ">IHBB", version << 28 | traffic_class << 20 | flow, length, next_header, hops)
    return head + ip_address(source).packed + ip_address(destination).packed + payload


def udp(payload: bytes, *, source: int = 49152, destination: int = 4791,
        length: int | None = None) -> bytes:
    """A UDP datagram, checksum 0."""
    length = 8 + len(payload) if length is None else length
    return struct.pack(">HHHH", source, destination, length, 0) + payload


def vxlan(inner: bytes, *, vni: int = 5000, flags: int = 0x08, port: int = 4789,
          sport: int = 49153, length: int | None = None) -> bytes:
    """A UDP datagram with a frame without FCS in VXLAN (RFC 7348 5)."""
    return udp(struct.pack(">B3xI", flags, vni << 8) + inner, source=sport, destination=port,
               length=length)


def bth(payload: bytes = b"", *, opcode: int = 0x04, psn: int = 0, qp: int = 0x12,
        pkey: int = 0xFFFF, pad_count: int = 0, tver: int = 0, solicited: bool = False,
        migrated: bool = False, fecn: bool = False, becn: bool = False,
        acknowledge: bool = False) -> bytes:
    """A Base Transport Header and what follows it, ICRC not included (IBTA Vol 1, 9.2)."""
    return struct.pack(
        ">BBHII", opcode, solicited << 7 | migrated << 6 | pad_count << 4 | tver, pkey,
        fecn << 31 | becn << 30 | qp, acknowledge << 31 | psn) + payload


def icrc(packet: bytes) -> bytes:
    """The ICRC of an IP packet that ends before it (IBTA Annex A17.3.3)."""
    masked = bytearray(packet)
    if packet[0] >> 4 == 4:
        start = 4 * (packet[0] & 15)
        for i in (1, 8, 10, 11):
            masked[i] = 0xFF
    else:
        start = 40
        masked[0] |= 0x0F
        for i in (1, 2, 3, 7):
            masked[i] = 0xFF
    for i in (6, 7, 12):
        masked[start + i] = 0xFF
    return zlib.crc32(masked, zlib.crc32(b"\xff" * 8)).to_bytes(4, "little")


def roce(payload: bytes = b"", *, version: int = 4, tags: Sequence[tuple[int, int]] = (),
         ip: dict | None = None, sport: int = 49152, wrong_icrc: bool = False,
         **fields) -> bytes:
    """A RoCEv2 frame without padding and FCS; `ip` and `fields` go to the IP header and the BTH.

    Extended headers are the payload's first octets. The payload is padded to four octets and the
    pad count set, unless `pad_count` is given: then nothing is added.
    """
    if "pad_count" not in fields:
        fields["pad_count"] = -len(payload) % 4
        payload += bytes(fields["pad_count"])
    layer3, ethertype = (ipv4, 0x0800) if version == 4 else (ipv6, 0x86DD)
    packet = layer3(udp(bth(payload, **fields) + bytes(4), source=sport), **(ip or {}))[:-4]
    check = icrc(packet)
    if wrong_icrc:
        check = bytes([check[0] ^ 1]) + check[1:]
    return ethernet(ethertype, packet + check, tags=tags)


def mac_control(opcode: int, parameters: bytes = b"", **fields) -> bytes:
    """A MAC Control frame of minimum size (IEEE 802.3 31.4); `fields` go to `ethernet`."""
    return pad(ethernet(
        0x8808, struct.pack(">H", opcode) + parameters, **{"destination": PFC_MAC, **fields}))


def pfc(quanta: dict[int, int], *, reserved: int = 0, others: int = 0, **fields) -> bytes:
    """A PFC frame: `quanta` of the enabled priorities, `others` in the fields of the rest."""
    vector = reserved << 8 | sum(1 << priority for priority in quanta)
    times = [quanta.get(priority, others) for priority in range(8)]
    return mac_control(0x0101, struct.pack(">9H", vector, *times), **fields)
