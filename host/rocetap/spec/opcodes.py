"""BTH opcodes and what this probe does with each (IBTA Vol 1, 9.2; Annex A17; sequence profile).

A wire-facing opcode is always a plain 8-bit number: vendors use values that no table names.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = [
    "BTH_OCTETS", "CNP", "CNP_PAYLOAD_OCTETS", "ELIGIBLE_REQUESTS", "EXTENDED_HEADER_OCTETS",
    "ICRC_OCTETS", "RC_REQUESTS", "RC_RESPONSES", "ROCEV2_UDP_PORT", "Opcode",
    "extended_header_octets", "is_rc",
]

ROCEV2_UDP_PORT: Final = 4791
"""Destination UDP port of RoCEv2 (IANA; IBTA Annex A17). The source port is never looked at."""

BTH_OCTETS: Final = 12
"""Base Transport Header (IBTA Vol 1, 9.2)."""

ICRC_OCTETS: Final = 4
"""Invariant CRC after the payload (IBTA Vol 1, 7.8.1; Annex A17.3.3)."""


class Opcode(IntEnum):
    """The Reliable Connection opcodes and the CNP, by the standard's names (IBTA Vol 1, 9.2.1)."""

    SEND_FIRST = 0x00
    SEND_MIDDLE = 0x01
    SEND_LAST = 0x02
    SEND_LAST_WITH_IMMEDIATE = 0x03
    SEND_ONLY = 0x04
    SEND_ONLY_WITH_IMMEDIATE = 0x05
    RDMA_WRITE_FIRST = 0x06
    RDMA_WRITE_MIDDLE = 0x07
    RDMA_WRITE_LAST = 0x08
    RDMA_WRITE_LAST_WITH_IMMEDIATE = 0x09
    RDMA_WRITE_ONLY = 0x0A
    RDMA_WRITE_ONLY_WITH_IMMEDIATE = 0x0B
    RDMA_READ_REQUEST = 0x0C
    RDMA_READ_RESPONSE_FIRST = 0x0D
    RDMA_READ_RESPONSE_MIDDLE = 0x0E
    RDMA_READ_RESPONSE_LAST = 0x0F
    RDMA_READ_RESPONSE_ONLY = 0x10
    ACKNOWLEDGE = 0x11
    ATOMIC_ACKNOWLEDGE = 0x12
    COMPARE_SWAP = 0x13
    FETCH_ADD = 0x14
    SEND_LAST_WITH_INVALIDATE = 0x16
    SEND_ONLY_WITH_INVALIDATE = 0x17
    FLUSH = 0x1C
    ATOMIC_WRITE = 0x1D
    CNP = 0x81


CNP: Final = 0x81
"""Congestion Notification Packet (IBTA Annex A17.9.3); never touches a request stream."""

CNP_PAYLOAD_OCTETS: Final = 16
"""The CNP's reserved octets behind its BTH (IBTA Annex A17.9.3)."""

ELIGIBLE_REQUESTS: Final = range(0x0C)
"""SEND and RDMA WRITE, all forms: what the profile counts (Applicability and Provisioning)."""

RC_RESPONSES: Final = range(0x0D, 0x13)
"""READ responses and acknowledges: they carry the other direction's PSNs."""

RC_REQUESTS: Final = tuple(code for code in range(0x20) if code not in RC_RESPONSES)
"""Everything in RC space that is no response: what makes a stream of requests, known or not."""

_RETH, _AETH, _IMM, _ATOMIC_ETH, _ATOMIC_ACK_ETH, _IETH, _DETH, _RDETH, _XRCETH, _FETH = (
    16, 4, 4, 28, 8, 4, 8, 4, 4, 4)
# IBTA Vol 1, 9.3.1-9.3.6 and table 38; FETH and ATOMIC WRITE from the Memory Placement Extensions.
_RC: Final[dict[int, int]] = {
    0x00: 0, 0x01: 0, 0x02: 0, 0x03: _IMM, 0x04: 0, 0x05: _IMM,
    0x06: _RETH, 0x07: 0, 0x08: 0, 0x09: _IMM, 0x0A: _RETH, 0x0B: _RETH + _IMM,
    0x0C: _RETH, 0x0D: _AETH, 0x0E: 0, 0x0F: _AETH, 0x10: _AETH, 0x11: _AETH,
    0x12: _AETH + _ATOMIC_ACK_ETH, 0x13: _ATOMIC_ETH, 0x14: _ATOMIC_ETH,
    0x16: _IETH, 0x17: _IETH, 0x1C: _FETH + _RETH, 0x1D: _RETH,
}
_UC: Final[dict[int, int]] = {0x20 + code: _RC[code] for code in range(0x0C)}
_RD: Final[dict[int, int]] = {
    0x40 + code: _RC[code] + (_RDETH if code in RC_RESPONSES else _RDETH + _DETH)
    for code in range(0x15)}
_UD: Final[dict[int, int]] = {0x64: _DETH, 0x65: _DETH + _IMM}
_XRC: Final[dict[int, int]] = {
    0xA0 + code: size + (0 if code in RC_RESPONSES else _XRCETH)
    for code, size in _RC.items() if code <= 0x17}

EXTENDED_HEADER_OCTETS: Final[dict[int, int]] = {**_RC, **_UC, **_RD, **_UD, **_XRC, CNP: 0}
"""Octets of extended headers behind the BTH, for every opcode that a standard defines."""


def extended_header_octets(opcode: int) -> int:
    """Octets between BTH and payload; 0 for an opcode that no standard defines."""
    return EXTENDED_HEADER_OCTETS.get(opcode, 0)


def is_rc(opcode: int) -> bool:
    """Whether an opcode lies in Reliable Connection space (its three high bits are 000)."""
    return opcode >> 5 == 0
