"""The host's end of the link without its line: octets in, replies and records out. Sans-IO."""

from __future__ import annotations

from typing import Final

from ..spec.records import RECORD_OCTETS
from .errors import LinkLocalError, LinkRemoteError
from .framing import FrameDecoder, encode_frame
from .messages import FromHost, Reply, decode_from_board
from .records import RecordArray, decode_records

__all__ = ["MAX_CREDIT", "MAX_HELD_RECORDS", "LinkSession"]

MAX_CREDIT: Final = (1 << 16) - 1
"""The board's credit saturates here."""

MAX_HELD_RECORDS: Final = 2 * MAX_CREDIT
"""Records kept until they are taken: more than any credit allows a board to have pushed."""

_SERIALS: Final = 1 << 16


class LinkSession:
    """Collects what the board sends and keeps the account of its credit.

    `records_missed`: RECORDs whose number never came, found by the gap before the next one.
    `records_discarded`: came while MAX_HELD_RECORDS were held. `message_errors`: frames with a
    right CRC that are no message of the board. `frames` counts the rest.
    """

    def __init__(self) -> None:
        self.frames = FrameDecoder()
        self.message_errors = 0
        self.records_received = 0
        self.records_missed = 0
        self.records_discarded = 0
        self.credit_outstanding = 0
        self._expected_serial: int | None = None
        self._held = bytearray()

    @property
    def records_held(self) -> int:
        """Records received and not yet taken."""
        return len(self._held) // RECORD_OCTETS

    def send(self, message: FromHost) -> bytes:
        """The octets that carry a request. They begin with a delimiter, which parts them from any
        noise or cut frame before."""
        return b"\0" + encode_frame(message.encode())

    def receive(self, data: bytes) -> list[Reply]:
        """The replies among these octets, in order; records are kept. Never raises."""
        replies = []
        for octets in self.frames.receive(data):
            try:
                message = decode_from_board(octets)
            except LinkRemoteError:
                self.message_errors += 1
                continue
            if isinstance(message, Reply):
                replies.append(message)
            else:
                self._keep(message.serial, message.record)
        return replies

    def take_records(self) -> RecordArray:
        """The records held, in the order in which they came, shape (records,)."""
        records = decode_records(self._held)
        self._held.clear()
        return records

    def granted(self, amount: int) -> None:
        """The board has got that much more credit."""
        if not 0 <= amount <= MAX_CREDIT:
            raise LinkLocalError(f"credit is {amount}, must be 0 to {MAX_CREDIT}")
        self.credit_outstanding = min(self.credit_outstanding + amount, MAX_CREDIT)

    def credit_gone(self) -> None:
        """What was granted will not be used: the RECORDs that used it did not arrive."""
        self.credit_outstanding = 0

    def restarted(self) -> None:
        """The board was reset: no credit, and serial numbers from 0. Records held stay held."""
        self.credit_outstanding = 0
        self._expected_serial = 0

    def _keep(self, serial: int, record: bytes) -> None:
        missed = 0
        if self._expected_serial is not None:
            missed = (serial - self._expected_serial) % _SERIALS
        self._expected_serial = (serial + 1) % _SERIALS
        self.records_received += 1
        self.records_missed += missed
        self.credit_outstanding = max(0, self.credit_outstanding - missed - 1)
        if self.records_held < MAX_HELD_RECORDS:
            self._held += record
        else:
            self.records_discarded += 1
