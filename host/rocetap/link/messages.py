"""The five messages of `rocetap.spec.wire`, each a value with its octets."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..spec.records import RECORD_OCTETS
from ..spec.wire import MAX_BURST, MessageType, Status
from .errors import LinkLocalError, LinkRemoteError

__all__ = ["Credit", "FromBoard", "FromHost", "Read", "RecordMessage", "Reply", "Write",
           "decode_from_board", "decode_from_host"]

_BURST: Final = struct.Struct("<BHHB")
_CREDIT: Final = struct.Struct("<BHH")
_REPLY: Final = struct.Struct("<BHBB")
_RECORD: Final = struct.Struct("<BH")
_WORD_OCTETS: Final = 8


def _check(name: str, value: int, bits: int) -> None:
    if not 0 <= value < 1 << bits:
        raise LinkLocalError(f"{name} is {value}, must fit {bits} bits")


def _check_burst(count: int) -> None:
    if not 1 <= count <= MAX_BURST:
        raise LinkLocalError(f"burst is {count} registers, must be 1 to {MAX_BURST}")


@dataclass(frozen=True)
class Read:
    """READ: `count` registers from `address` on."""

    sequence: int
    address: int
    count: int

    def encode(self) -> bytes:
        """The message's octets; a field out of range raises LinkLocalError."""
        _check("sequence", self.sequence, 16)
        _check("address", self.address, 16)
        _check_burst(self.count)
        return _BURST.pack(MessageType.READ, self.sequence, self.address, self.count)


@dataclass(frozen=True)
class Write:
    """WRITE: `values` to the registers from `address` on."""

    sequence: int
    address: int
    values: tuple[int, ...]

    def encode(self) -> bytes:
        """The message's octets; a field out of range raises LinkLocalError."""
        _check("sequence", self.sequence, 16)
        _check("address", self.address, 16)
        _check_burst(len(self.values))
        for value in self.values:
            _check("register value", value, 64)
        header = _BURST.pack(MessageType.WRITE, self.sequence, self.address, len(self.values))
        return header + struct.pack(f"<{len(self.values)}Q", *self.values)


@dataclass(frozen=True)
class Credit:
    """CREDIT: the board may push `amount` more records."""

    sequence: int
    amount: int

    def encode(self) -> bytes:
        """The message's octets; a field out of range raises LinkLocalError."""
        _check("sequence", self.sequence, 16)
        _check("amount", self.amount, 16)
        return _CREDIT.pack(MessageType.CREDIT, self.sequence, self.amount)


@dataclass(frozen=True)
class Reply:
    """REPLY to the request of that sequence number; `values` only after a good READ."""

    sequence: int
    status: Status
    values: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """The message's octets; a field out of range raises LinkLocalError."""
        _check("sequence", self.sequence, 16)
        if len(self.values) > MAX_BURST:
            _check_burst(len(self.values))
        header = _REPLY.pack(MessageType.REPLY, self.sequence, self.status, len(self.values))
        return header + struct.pack(f"<{len(self.values)}Q", *self.values)


@dataclass(frozen=True)
class RecordMessage:
    """RECORD: one snapshot record, RECORD_OCTETS, and its number."""

    serial: int
    record: bytes

    def encode(self) -> bytes:
        """The message's octets; a field out of range raises LinkLocalError."""
        _check("serial", self.serial, 16)
        if len(self.record) != RECORD_OCTETS:
            raise LinkLocalError(
                f"record is {len(self.record)} octets, must be {RECORD_OCTETS}")
        return _RECORD.pack(MessageType.RECORD, self.serial) + self.record


FromHost: TypeAlias = Read | Write | Credit
FromBoard: TypeAlias = Reply | RecordMessage


def _expect(name: str, message: bytes, octets: int) -> None:
    if len(message) != octets:
        raise LinkRemoteError(f"{name} message is {len(message)} octets, must be {octets}")


def _words(message: bytes, offset: int) -> tuple[int, ...]:
    return struct.unpack_from(f"<{(len(message) - offset) // _WORD_OCTETS}Q", message, offset)


def decode_from_board(message: bytes) -> FromBoard:
    """The message that the board sent; anything else raises LinkRemoteError."""
    kind = message[0] if message else None
    if kind == MessageType.RECORD:
        _expect("RECORD", message, _RECORD.size + RECORD_OCTETS)
        return RecordMessage(_RECORD.unpack_from(message)[1], message[_RECORD.size:])
    if kind == MessageType.REPLY:
        if len(message) < _REPLY.size:
            _expect("REPLY", message, _REPLY.size)
        _, sequence, status, count = _REPLY.unpack_from(message)
        _expect("REPLY", message, _REPLY.size + _WORD_OCTETS * count)
        if count > MAX_BURST:
            raise LinkRemoteError(f"REPLY has {count} registers, must be at most {MAX_BURST}")
        try:
            known = Status(status)
        except ValueError:
            raise LinkRemoteError(f"REPLY has status {status}, must be 0 to "
                                  f"{max(Status).value}") from None
        return Reply(sequence, known, _words(message, _REPLY.size))
    raise LinkRemoteError(_unknown(kind))


def decode_from_host(message: bytes) -> FromHost:
    """The message that the host sent; anything else raises LinkRemoteError."""
    kind = message[0] if message else None
    if kind == MessageType.CREDIT:
        _expect("CREDIT", message, _CREDIT.size)
        _, sequence, amount = _CREDIT.unpack(message)
        return Credit(sequence, amount)
    if kind in (MessageType.READ, MessageType.WRITE):
        name = MessageType(kind).name
        if len(message) < _BURST.size:
            _expect(name, message, _BURST.size)
        _, sequence, address, count = _BURST.unpack_from(message)
        if not 1 <= count <= MAX_BURST:
            raise LinkRemoteError(f"{name} has {count} registers, must be 1 to {MAX_BURST}")
        if kind == MessageType.READ:
            _expect(name, message, _BURST.size)
            return Read(sequence, address, count)
        _expect(name, message, _BURST.size + _WORD_OCTETS * count)
        return Write(sequence, address, _words(message, _BURST.size))
    raise LinkRemoteError(_unknown(kind))


def _unknown(kind: int | None) -> str:
    return "empty message" if kind is None else f"unknown message type 0x{kind:02x}"
