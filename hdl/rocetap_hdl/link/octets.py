"""Payloads of the streams inside the link."""

from amaranth.hdl import unsigned
from amaranth.lib import data, stream

from rocetap.spec.wire import MAX_MESSAGE_OCTETS

__all__ = ["CRC_OCTETS", "MESSAGE", "PACKET", "RAW_FRAME", "message_stream", "octet_stream",
           "packet_stream", "raw_frame_stream"]

CRC_OCTETS = 4
"""The frame's trailing CRC-32."""

PACKET = data.StructLayout({"data": 8, "last": 1})
"""One octet of a packet on its way out. A packet has at least one octet."""

RAW_FRAME = data.StructLayout({"data": 8, "first": 1, "last": 1, "abort": 1})
"""One octet of a received frame, not checked. ``abort``, when ``last``: the frame cannot be right,
``data`` may then be no octet of it."""

MESSAGE = data.StructLayout({
    "data": 8,
    "first": 1,
    "last": 1,
    "length": unsigned(MAX_MESSAGE_OCTETS.bit_length()),
})
"""One octet of a received and checked message. ``length``: its octets, the same in each beat."""


def octet_stream():
    """Octets of the wire."""
    return stream.Signature(8)


def packet_stream():
    """Packets on their way out."""
    return stream.Signature(PACKET)


def raw_frame_stream():
    """Frames as received."""
    return stream.Signature(RAW_FRAME)


def message_stream():
    """Messages whose CRC was right."""
    return stream.Signature(MESSAGE)
