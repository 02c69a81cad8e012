"""Finds every RC request stream in a capture, and makes a provisioning of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

import numpy as np
from numpy.typing import NDArray

from rocetap.provisioning import Connection, Port, Provisioning
from rocetap.spec.opcodes import (
    CNP,
    ELIGIBLE_REQUESTS,
    RC_RESPONSES,
    Opcode,
    is_rc,
)

from .frames import FrameBatch
from .packets import RocePackets, parse_roce

__all__ = ["Discovery", "Stream", "StreamKey", "discover", "opcode_name"]

_KEY_OCTETS = 16 + 16 + 4 + 2 + 2 + 2 + 2


def opcode_name(code: int) -> str:
    """"RDMA_READ_REQUEST (0x0c)", or only the number where no standard names it."""
    try:
        return f"{Opcode(code).name} (0x{code:02x})"
    except ValueError:
        return f"opcode 0x{code:02x}"


@dataclass(frozen=True)
class StreamKey:
    """What tells one request stream from another; never the UDP source port."""

    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    destination_qp: int
    partition_key: int
    vlan: int = 0
    inner_vlan: int = 0


@dataclass
class Stream:
    """One request stream: packets by opcode, in order of the streams' first packets."""

    key: StreamKey
    packets: dict[int, int] = field(default_factory=dict)
    """Opcode -> packets; responses and CNPs are not among them."""

    @property
    def requests(self) -> int:
        """Packets with an opcode that the profile counts, 0x00 to 0x0B."""
        return sum(count for code, count in self.packets.items() if code in ELIGIBLE_REQUESTS)

    @property
    def outside(self) -> dict[int, int]:
        """Opcodes outside the profile, with their packets: one of them disables the connection."""
        return {code: count for code, count in sorted(self.packets.items())
                if code not in ELIGIBLE_REQUESTS}


@dataclass
class Discovery:
    """What a capture holds."""

    streams: list[Stream] = field(default_factory=list)
    frames: int = 0
    roce_packets: int = 0
    interfaces: list[int] = field(default_factory=list)
    """Indices of the capture's interfaces that have frames."""

    def provisioning(self, window: int) -> Provisioning:
        """All streams with the window W, and a port for each interface of the capture."""
        ports = [Port(f"port{index}", index + 1) for index in self.interfaces or [0]]
        return Provisioning(
            observation_domain=1, observation_point=1, ports=ports,
            connections=[_connection(stream.key, window) for stream in self.streams])


def discover(batches: Iterable[FrameBatch]) -> Discovery:
    """Scans batches of frames. A stream is a key with at least one RC request opcode."""
    found = Discovery()
    table: dict[bytes, dict[int, int]] = {}
    interfaces: set[int] = set()
    for batch in batches:
        packets = parse_roce(batch)
        found.frames += len(batch)
        found.roce_packets += len(packets)
        interfaces.update(np.unique(batch.interface).tolist())
        _count(packets, table)
    found.interfaces = sorted(interfaces)
    found.streams = [Stream(_unpack(key), counts) for key, counts in table.items()
                     if any(is_rc(code) for code in counts)]
    return found


def _count(packets: RocePackets, table: dict[bytes, dict[int, int]]) -> None:
    """Adds the requests of one batch to the table: packed key -> opcode -> packets."""
    request = np.flatnonzero(~np.isin(packets.opcode, [*RC_RESPONSES, CNP]))
    if not len(request):
        return
    rows = _pack(packets, request)
    _, first, counts = np.unique(rows.view(f"V{rows.shape[1]}").ravel(), return_index=True,
                                 return_counts=True)
    for index in np.argsort(first).tolist():
        row = rows[first[index]].tobytes()
        opcodes = table.setdefault(row[:_KEY_OCTETS], {})
        opcodes[row[-1]] = opcodes.get(row[-1], 0) + int(counts[index])


def _pack(packets: RocePackets, chosen: NDArray[np.intp]) -> NDArray[np.uint8]:
    """Rows of key octets and the opcode."""
    rows = np.empty((len(chosen), _KEY_OCTETS + 1), np.uint8)
    rows[:, :16] = packets.source[chosen]
    rows[:, 16:32] = packets.destination[chosen]
    at = 32
    for column, octets in ((packets.destination_qp, 4), (packets.partition_key, 2),
                           (packets.vlan, 2), (packets.inner_vlan, 2),
                           (packets.ipv6.astype(np.int64), 2), (packets.opcode, 1)):
        for shift in reversed(range(octets)):
            rows[:, at] = column[chosen] >> 8 * shift & 0xFF
            at += 1
    return rows


def _unpack(row: bytes) -> StreamKey:
    numbers = [int.from_bytes(row[a:b], "big")
               for a, b in ((32, 36), (36, 38), (38, 40), (40, 42), (42, 44))]
    qp, partition_key, vlan, inner_vlan, ipv6 = numbers
    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    if ipv6:
        source, destination = IPv6Address(row[:16]), IPv6Address(row[16:32])
    else:
        source, destination = IPv4Address(row[12:16]), IPv4Address(row[28:32])
    return StreamKey(source, destination, qp, partition_key, vlan, inner_vlan)


def _connection(key: StreamKey, window: int) -> Connection:
    return Connection(
        source=key.source, destination=key.destination, destination_qp=key.destination_qp,
        partition_key=key.partition_key, vlan=key.vlan, inner_vlan=key.inner_vlan, window=window)
