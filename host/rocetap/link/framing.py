"""Messages to frames and back: CRC-32, COBS, zero delimiters. Sans-IO."""

from __future__ import annotations

import zlib
from typing import Final

from ..spec.wire import MAX_MESSAGE_OCTETS
from . import cobs
from .errors import LinkLocalError

__all__ = ["CRC_OCTETS", "MAX_FRAME_OCTETS", "FrameDecoder", "encode_frame"]

CRC_OCTETS: Final = 4
MAX_FRAME_OCTETS: Final = cobs.encoded_octets_at_most(MAX_MESSAGE_OCTETS + CRC_OCTETS)
"""The longest frame without its delimiter."""


def encode_frame(message: bytes) -> bytes:
    """The frame of one message, its delimiter at the end."""
    if not 1 <= len(message) <= MAX_MESSAGE_OCTETS:
        raise LinkLocalError(
            f"message is {len(message)} octets, must be 1 to {MAX_MESSAGE_OCTETS}")
    return cobs.encode(message + zlib.crc32(message).to_bytes(CRC_OCTETS, "little")) + b"\0"


class FrameDecoder:
    """Octets in any pieces to messages whose CRC is right. Never raises.

    `crc_errors`: right form, wrong CRC. `format_errors`: no COBS, or nothing before the CRC.
    `oversize_errors`: longer than the longest message. Each dropped frame moves exactly one.
    """

    def __init__(self) -> None:
        self.crc_errors = 0
        self.format_errors = 0
        self.oversize_errors = 0
        self._partial = bytearray()
        self._skipping = False

    @property
    def partial_octets(self) -> int:
        """Octets of a frame whose end has not come; at most MAX_FRAME_OCTETS."""
        return len(self._partial)

    def receive(self, data: bytes) -> list[bytes]:
        """The messages that these octets complete, in order."""
        messages = []
        *ended, rest = data.split(b"\0")
        for piece in ended:
            self._append(piece)
            message = self._end()
            if message is not None:
                messages.append(message)
        self._append(rest)
        return messages

    def abandon(self) -> None:
        """Drops the frame begun, as when its end will not come; a format error if there is one."""
        if self._partial:
            self.format_errors += 1
        self._partial.clear()
        self._skipping = False

    def _append(self, piece: bytes) -> None:
        if self._skipping:
            return
        if len(self._partial) + len(piece) > MAX_FRAME_OCTETS:
            self.oversize_errors += 1
            self._partial.clear()
            self._skipping = True
        else:
            self._partial += piece

    def _end(self) -> bytes | None:
        skipped, self._skipping = self._skipping, False
        frame = bytes(self._partial)
        self._partial.clear()
        if skipped or not frame:
            return None
        try:
            packet = cobs.decode(frame)
        except cobs.CobsError:
            self.format_errors += 1
            return None
        if len(packet) > MAX_MESSAGE_OCTETS + CRC_OCTETS:
            self.oversize_errors += 1
            return None
        message, checksum = packet[:-CRC_OCTETS], packet[-CRC_OCTETS:]
        if not message:
            self.format_errors += 1
            return None
        if zlib.crc32(message) != int.from_bytes(checksum, "little"):
            self.crc_errors += 1
            return None
        return message
