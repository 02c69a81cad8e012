"""The link's messages: COBS frames with a CRC-32, over any stream of octets.

One frame is COBS(message | CRC-32 of the message, least significant octet first) and a zero octet.
CRC-32 is the catalogue's CRC-32/ISO-HDLC (zlib.crc32; amaranth.lib.crc.catalog.CRC32_ISO_HDLC).
All numbers in messages are least significant octet first.

Host to board::

    READ    0x01  sequence u16  address u16  count u8                  1 <= count <= MAX_BURST
    WRITE   0x02  sequence u16  address u16  count u8  count * u64
    CREDIT  0x03  sequence u16  amount u16                             that many more RECORDs

Board to host::

    REPLY   0x81  sequence u16  status u8  count u8  count * u64       data only of a good READ
    RECORD  0x82  serial u16    record (RECORD_OCTETS)                 serial: modulo 2^16

The board does one request at a time and answers each with one REPLY. A WRITE or CREDIT with the
sequence number of the last one is not done again: its REPLY is repeated, so that the host may ask
again after a time-out. A READ forgets that number. A burst goes to consecutive addresses and stops
at the first that fails. A frame with a wrong CRC, an unknown type or a wrong length is counted and
gets no answer. Credit starts at 0; it saturates at 65535.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["MAX_BURST", "MAX_MESSAGE_OCTETS", "MessageType", "Status"]

MAX_BURST: Final = 32
"""Registers in one READ or WRITE."""

MAX_MESSAGE_OCTETS: Final = 6 + 8 * MAX_BURST
"""The longest message without its CRC."""


class MessageType(IntEnum):
    """First octet of a message."""

    READ = 0x01
    WRITE = 0x02
    CREDIT = 0x03
    REPLY = 0x81
    RECORD = 0x82


class Status(IntEnum):
    """Outcome of a request."""

    OK = 0
    NO_REGISTER = 1
    """Nothing at that address, or not for that access."""
    REFUSED = 2
    """The register did not take the value: out of range, or busy."""
