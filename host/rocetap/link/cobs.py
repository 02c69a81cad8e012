"""Consistent Overhead Byte Stuffing (S. Cheshire, M. Baker, IEEE/ACM Trans. Networking 7(2), 1999).

Without the delimiters: `framing` puts them. Gives the very octets of the gateware's encoder.
"""

from __future__ import annotations

from typing import Final

__all__ = ["GROUP_OCTETS", "CobsError", "decode", "encode", "encoded_octets_at_most"]

GROUP_OCTETS: Final = 254
"""The longest run without a zero in one group."""


class CobsError(ValueError):
    """These octets are no COBS encoding."""


def encode(packet: bytes) -> bytes:
    """The encoding, free of zeros. A packet that ends with a full group gets no empty one after."""
    out = bytearray()
    runs = packet.split(b"\0")
    for number, run in enumerate(runs):
        start = 0
        while len(run) - start >= GROUP_OCTETS:
            out.append(GROUP_OCTETS + 1)
            out += run[start:start + GROUP_OCTETS]
            start += GROUP_OCTETS
        is_last = number == len(runs) - 1
        if not (is_last and start and start == len(run)):
            out.append(len(run) - start + 1)
            out += run[start:]
    return bytes(out)


def decode(octets: bytes) -> bytes:
    """The packet. A zero, a group that is cut and an empty encoding raise CobsError."""
    if not octets:
        raise CobsError("empty encoding")
    if 0 in octets:
        raise CobsError(f"zero octet at {octets.index(0)}")
    out = bytearray()
    position = 0
    size = len(octets)
    while position < size:
        code = octets[position]
        end = position + code
        if end > size:
            raise CobsError(f"group at octet {position} is {code - 1} octets, "
                            f"{size - position - 1} are there")
        out += octets[position + 1:end]
        if code <= GROUP_OCTETS and end < size:
            out.append(0)
        position = end
    return bytes(out)


def encoded_octets_at_most(packet_octets: int) -> int:
    """The longest encoding of a packet of that many octets, also by an encoder that puts an empty
    group behind a full one."""
    return packet_octets + packet_octets // GROUP_OCTETS + 1
