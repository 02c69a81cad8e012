"""Frame classes: every frame that the probe sees moves exactly one of these counters."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["ATTRIBUTABLE", "FRAME_CLASSES", "LOSES_CAPTURE", "FrameClass"]


class FrameClass(IntEnum):
    """What became of a frame. The order is the registers' order; see FRAME_CLASSES for meanings."""

    ELIGIBLE_REQUEST = 0
    UNSUPPORTED_REQUEST = 1
    MALFORMED_ROCE = 2
    BAD_ICRC = 3
    RESPONSE = 4
    CNP = 5
    ROCEV1 = 6
    NOT_ROCE = 7
    IP_FRAGMENT = 8
    IPV6_EXTENSION = 9
    TAGS_TOO_DEEP = 10
    MALFORMED_IP = 11
    TUNNELLED = 12
    PFC = 13
    MAC_CONTROL = 14
    BAD_PFC = 15
    BAD_FCS = 16
    MAC_ERROR = 17
    RUNT = 18
    OVERSIZE = 19
    SLICED_SHORT = 20
    LOST = 21
    PAUSE = 22
    TAGGED_PFC = 23


FRAME_CLASSES: Final[dict[FrameClass, str]] = {
    FrameClass.ELIGIBLE_REQUEST: "RoCEv2 request with opcode 0x00 to 0x0B, well formed",
    FrameClass.UNSUPPORTED_REQUEST: "RoCEv2 packet with another opcode, no response and no CNP",
    FrameClass.MALFORMED_ROCE: "whole BTH, but TVer not 0, or headers and pad longer than the UDP "
                               "length, or UDP length and IP length at odds",
    FrameClass.BAD_ICRC: "well formed request, but its ICRC is wrong under a good FCS",
    FrameClass.RESPONSE: "RoCEv2 response, opcode 0x0D to 0x12",
    FrameClass.CNP: "congestion notification packet, opcode 0x81",
    FrameClass.ROCEV1: "EtherType 0x8915",
    FrameClass.NOT_ROCE: "any other good frame",
    FrameClass.IP_FRAGMENT: "IPv4 or IPv6 fragment: never read as UDP",
    FrameClass.IPV6_EXTENSION: "IPv6 with another extension header: not parsed further",
    FrameClass.TAGS_TOO_DEEP: "three VLAN tags or more: not parsed further",
    FrameClass.MALFORMED_IP: "IP version, IHL or length that cannot be, or a frame that ends "
                             "before its IP length, or an IP length that ends inside the BTH",
    FrameClass.TUNNELLED: "VXLAN (UDP 4789 or 8472): not parsed further; in a build that parses "
                          "VXLAN, what has no valid VNI, or VXLAN in VXLAN",
    FrameClass.PFC: "good PFC frame (IEEE 802.3 31D)",
    FrameClass.MAC_CONTROL: "EtherType 0x8808 with another opcode than PFC's and PAUSE's",
    FrameClass.BAD_PFC: "untagged with opcode 0x0101, but to another destination than "
                        "01-80-C2-00-00-01, or cut by the tap",
    FrameClass.BAD_FCS: "frame check sequence wrong; attributed to nothing",
    FrameClass.MAC_ERROR: "the MAC marked the frame bad",
    FrameClass.RUNT: "fewer than 64 octets, FCS among them",
    FrameClass.OVERSIZE: "more octets than the configured maximum",
    FrameClass.SLICED_SHORT: "cut by the tap before the end of its BTH: a capture discontinuity",
    FrameClass.LOST: "the tap lost frames here: a capture discontinuity",
    FrameClass.PAUSE: "EtherType 0x8808 with opcode 0x0001 (IEEE 802.3 31B)",
    FrameClass.TAGGED_PFC: "opcode 0x0101 under a VLAN tag: not a PFC frame",
}

ATTRIBUTABLE: Final = (
    FrameClass.ELIGIBLE_REQUEST, FrameClass.UNSUPPORTED_REQUEST,
    FrameClass.MALFORMED_ROCE, FrameClass.BAD_ICRC)
"""Classes that are looked up in the connection table; all but the first close with
profileViolation (Applicability and Provisioning)."""

LOSES_CAPTURE: Final = (FrameClass.SLICED_SHORT, FrameClass.LOST)
"""Classes that raise the capture generation."""
