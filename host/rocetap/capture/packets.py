"""A light parse of whole batches, for scanning captures for RoCEv2 packets.

This is not the metering: the gateware does that. It reads Ethernet, up to two VLAN tags, IPv4,
IPv6, UDP and the BTH of all frames at once, and leaves out what the gateware attributes to
nothing: fragments, extension headers, three tags, tunnels, lengths that cannot be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocetap.spec.opcodes import BTH_OCTETS, ROCEV2_UDP_PORT

from .frames import FrameBatch

__all__ = ["VLAN_TYPES", "RocePackets", "parse_roce"]

VLAN_TYPES = (0x8100, 0x88A8, 0x9100)
"""EtherTypes of VLAN tags (IEEE 802.1Q; 0x9100 by custom)."""

_ETHERNET_OCTETS, _TAG_OCTETS, _IPV6_OCTETS, _UDP_OCTETS = 14, 4, 40, 8
_UDP = 17
_MORE_FRAGMENTS_OR_OFFSET = 0x3FFF

Column = NDArray[np.int64]


@dataclass(frozen=True)
class RocePackets:
    """The RoCEv2 packets of a batch; all arrays have one element a packet."""

    frame: Column
    """Index in the batch."""
    opcode: Column
    destination_qp: Column
    partition_key: Column
    psn: Column
    vlan: Column
    """VLAN id of the only or outer tag, 0 without one."""
    inner_vlan: Column
    """VLAN id of the inner of two tags, 0 without one."""
    ipv6: NDArray[np.bool_]
    source: NDArray[np.uint8]
    """Shape (packets, 16); an IPv4 address stands in the last four octets."""
    destination: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.frame)


class _Gather:
    """Reads big-endian numbers at many places; beyond the data it reads zeros."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._data = data
        self._last = max(len(data) - 1, 0)

    def octets(self, at: Column, count: int) -> NDArray[np.uint8]:
        """Shape (places, count)."""
        if not len(self._data):
            return np.zeros((len(at), count), np.uint8)
        places = at[:, None] + np.arange(count)
        return np.where(places <= self._last, self._data[np.minimum(places, self._last)],
                        0).astype(np.uint8)

    def number(self, at: Column, count: int) -> Column:
        value = np.zeros(len(at), np.int64)
        for column in self.octets(at, count).T:
            value = value << 8 | column
        return value


def parse_roce(batch: FrameBatch) -> RocePackets:
    """The packets whose BTH is whole in the capture, whatever their opcode."""
    read = _Gather(batch.data)
    frame = np.flatnonzero(batch.captured >= _ETHERNET_OCTETS)
    at = batch.offsets[frame].astype(np.int64)
    stop = at + batch.captured[frame]
    wire_stop = at + batch.original[frame]
    cut = wire_stop > stop
    vlan, inner_vlan, ethertype, at = _tags(read, at)
    ipv6 = ethertype == 0x86DD
    header, ip_stop, good = _ip(read, at, ipv6, ethertype)
    udp = at + header
    bth = udp + _UDP_OCTETS
    good &= (bth + BTH_OCTETS <= np.minimum(stop, ip_stop)) & ((ip_stop <= wire_stop) | cut)
    good &= read.number(udp + 2, 2) == ROCEV2_UDP_PORT
    keep = np.flatnonzero(good)
    at, bth, ipv6 = at[keep], bth[keep], ipv6[keep]
    return RocePackets(
        frame=frame[keep], opcode=read.number(bth, 1), destination_qp=read.number(bth + 5, 3),
        partition_key=read.number(bth + 2, 2), psn=read.number(bth + 9, 3),
        vlan=vlan[keep], inner_vlan=inner_vlan[keep], ipv6=ipv6,
        source=_address(read, at, ipv6, 12, 8), destination=_address(read, at, ipv6, 16, 24))


def _tags(read: _Gather, at: Column) -> tuple[Column, Column, Column, Column]:
    """Outer and inner VLAN id, the EtherType behind up to two tags, where the header behind is."""
    kind = read.number(at + 12, 2)
    tci = read.number(at + 14, 2)
    second = read.number(at + 16, 2)
    inner_tci = read.number(at + 18, 2)
    third = read.number(at + 20, 2)
    one = np.isin(kind, VLAN_TYPES)
    two = one & np.isin(second, VLAN_TYPES)
    ethertype = np.where(two, third, np.where(one, second, kind))
    behind = at + _ETHERNET_OCTETS + _TAG_OCTETS * (one.astype(np.int64) + two)
    return np.where(one, tci & 0xFFF, 0), np.where(two, inner_tci & 0xFFF, 0), ethertype, behind


def _ip(read: _Gather, at: Column, ipv6: NDArray[np.bool_],
        ethertype: Column) -> tuple[Column, Column, NDArray[np.bool_]]:
    """Length of the IP header, where the IP packet ends, and whether it holds whole UDP."""
    first = read.number(at, 1)
    version = first >> 4
    length = read.number(at + 2, 2)
    ihl = (first & 0xF) * 4
    good4 = ((ethertype == 0x0800) & (version == 4) & (ihl >= 20)
             & (read.number(at + 6, 2) & _MORE_FRAGMENTS_OR_OFFSET == 0)
             & (read.number(at + 9, 1) == _UDP))
    good6 = ipv6 & (version == 6) & (read.number(at + 6, 1) == _UDP)
    header = np.where(ipv6, _IPV6_OCTETS, ihl)
    end = at + np.where(ipv6, _IPV6_OCTETS + read.number(at + 4, 2), length)
    return header, end, good4 | good6


def _address(read: _Gather, at: Column, ipv6: NDArray[np.bool_], offset4: int,
             offset6: int) -> NDArray[np.uint8]:
    address = np.zeros((len(at), 16), np.uint8)
    address[:, 12:] = read.octets(at + offset4, 4)
    address[ipv6] = read.octets(at[ipv6] + offset6, 16)
    return address
