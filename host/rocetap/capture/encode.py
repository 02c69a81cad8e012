"""Writes RoCEv2, PFC and a few other frames, octet for octet, without FCS.

Own encoder for synthetic captures. ICRC: CRC-32 over eight octets of ones and the packet from the
IP header on, with the fields that a router may change set to ones (IBTA Vol 1, 7.8.1; Annex
A17.3.3), least significant octet first on the wire.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from zlib import crc32

from rocetap.spec.opcodes import (
    BTH_OCTETS,
    CNP,
    CNP_PAYLOAD_OCTETS,
    ICRC_OCTETS,
    ROCEV2_UDP_PORT,
    Opcode,
)

__all__ = ["RoceFlow", "pad_frame", "pfc_frame"]

MIN_FRAME_OCTETS: Final = 60
"""Shortest frame without FCS (IEEE 802.3 3.2.8)."""
PFC_ADDRESS: Final = bytes.fromhex("0180c2000001")
"""Destination of MAC Control frames (IEEE 802.3 31D.2)."""

_ICRC_SEED = crc32(b"\xff" * 8)
_UDP_OCTETS = 8
_IPV4_OCTETS = 20
_TTL = 64
_DONT_FRAGMENT = 0x4000
_MIGRATED = 0x40
"""MigReq, which real Reliable Connection traffic has set."""
_IPV4 = struct.Struct(">BBHHHBBH4s4sHHHHBBHII")
_IPV6 = struct.Struct(">IHBB16s16sHHHHBBHII")


class RoceFlow:
    """One direction between two queue pairs: all that its packets have in common."""

    def __init__(self, *, source_mac: bytes, destination_mac: bytes,
                 source: IPv4Address | IPv6Address, destination: IPv4Address | IPv6Address,
                 destination_qp: int, partition_key: int = 0xFFFF,
                 tags: tuple[tuple[int, int], ...] = (), traffic_class: int = 0x68) -> None:
        """`tags`: (TPID, TCI) from the outside in. `traffic_class`: the octet with DSCP and ECN."""
        self.destination_qp = destination_qp
        self.partition_key = partition_key
        self._ipv6 = source.version == 6
        ethertype = 0x86DD if self._ipv6 else 0x0800
        self._ethernet = (destination_mac + source_mac
                          + b"".join(struct.pack(">HH", *tag) for tag in tags)
                          + struct.pack(">H", ethertype))
        self._source, self._destination = source.packed, destination.packed
        self._traffic_class = traffic_class
        words = () if self._ipv6 else struct.unpack(">4H", self._source + self._destination)
        self._sum = 0x4500 + _DONT_FRAGMENT + (_TTL << 8) + 17 + sum(words)

    def packet(self, opcode: int, psn: int, body: bytes = b"", *, pad: int = 0,
               source_port: int = 49152, ack_request: bool = False, becn: bool = False,
               migrated: bool = True, traffic_class: int | None = None,
               identification: int = 0) -> bytes:
        """One frame. `body`: extended headers, payload and `pad` pad octets, of which the BTH
        tells; it is not padded to the least Ethernet length."""
        udp_octets = _UDP_OCTETS + BTH_OCTETS + len(body) + ICRC_OCTETS
        flags = (_MIGRATED if migrated else 0) | pad << 4
        low = ack_request << 31 | psn
        octet = self._traffic_class if traffic_class is None else traffic_class
        if self._ipv6:
            header = _IPV6.pack(
                6 << 28 | octet << 20, udp_octets, 17, _TTL, self._source, self._destination,
                source_port, ROCEV2_UDP_PORT, udp_octets, 0,
                opcode, flags, self.partition_key, becn << 30 | self.destination_qp, low)
            masked = _IPV6.pack(
                0x6FFF_FFFF, udp_octets, 17, 0xFF, self._source, self._destination,
                source_port, ROCEV2_UDP_PORT, udp_octets, 0xFFFF,
                opcode, flags, self.partition_key, 0xFF << 24 | self.destination_qp, low)
        else:
            length = _IPV4_OCTETS + udp_octets
            header = _IPV4.pack(
                0x45, octet, length, identification, _DONT_FRAGMENT, _TTL, 17,
                _fold(self._sum + octet + length + identification), self._source,
                self._destination, source_port, ROCEV2_UDP_PORT, udp_octets, 0,
                opcode, flags, self.partition_key, becn << 30 | self.destination_qp, low)
            masked = _IPV4.pack(
                0x45, 0xFF, length, identification, _DONT_FRAGMENT, 0xFF, 17, 0xFFFF,
                self._source, self._destination, source_port, ROCEV2_UDP_PORT, udp_octets, 0xFFFF,
                opcode, flags, self.partition_key, 0xFF << 24 | self.destination_qp, low)
        icrc = crc32(body, crc32(masked, _ICRC_SEED))
        return b"".join((self._ethernet, header, body, icrc.to_bytes(4, "little")))

    def acknowledge(self, psn: int, message: int, *, syndrome: int = 0x1F,
                    source_port: int = 49152) -> bytes:
        """An ACK frame with its AETH: syndrome and message sequence number."""
        aeth = struct.pack(">I", syndrome << 24 | message & 0xFFFFFF)
        return self.packet(Opcode.ACKNOWLEDGE, psn, aeth, source_port=source_port)

    def congestion_notification(self, source_port: int = 0) -> bytes:
        """A CNP: PSN 0, BECN set, sixteen reserved octets (Annex A17.9.3)."""
        return self.packet(CNP, 0, bytes(CNP_PAYLOAD_OCTETS), source_port=source_port, becn=True,
                           migrated=False)


def _fold(total: int) -> int:
    """The IPv4 header checksum of a sum of 16-bit words (RFC 791, 3.1)."""
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def pad_frame(frame: bytes) -> bytes:
    """The frame, padded to the least Ethernet length."""
    return frame.ljust(MIN_FRAME_OCTETS, b"\0")


def pfc_frame(source_mac: bytes, quanta: dict[int, int]) -> bytes:
    """A PFC frame (IEEE 802.3 31D): priority -> pause time in quanta; 0 resumes (XON)."""
    vector = sum(1 << priority for priority in quanta)
    times = [quanta.get(priority, 0) for priority in range(8)]
    return pad_frame(PFC_ADDRESS + source_mac
                     + struct.pack(">HHH8H", 0x8808, 0x0101, vector, *times))
