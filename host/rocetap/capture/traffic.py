"""Request streams for synthetic captures: messages, impairments and the answers to them."""

from __future__ import annotations

import struct
from collections import Counter, deque
from dataclasses import dataclass
from random import Random
from typing import Final

from rocetap.spec.opcodes import Opcode

from .encode import RoceFlow

__all__ = ["PSN_MODULUS", "Impairments", "RequestStream"]

PSN_MODULUS: Final = 1 << 24
_MAX_GAP, _MAX_REPEAT, _MAX_LATE = 8, 16, 6
_VERY_LATE, _VERY_LATE_SHARE = range(70, 300), 0.125
"""Packets that one late packet in eight waits for: behind a window of 64, and of 256 sometimes."""
_LEAST_JUMP, _MOST_JUMP = (1 << 22) + 1, (1 << 23) - 1
"""Jumps that no window up to 2^22 covers."""
_PATTERN = bytes((31 * i ^ i >> 3) & 0xFF for i in range(3 * 4096))


@dataclass(frozen=True)
class Impairments:
    """Chances per request packet, 0 to 1."""

    gap: float = 0.0
    """1 to 8 packets are missing at the tap and never come."""
    repeat: float = 0.0
    """The sender goes back 1 to 16 packets and sends them again."""
    late: float = 0.0
    """The packet comes 1 to 6 packets of its stream later, one in eight 70 to 299."""
    jump: float = 0.0
    """The PSN jumps ahead, beyond any window."""


@dataclass(frozen=True)
class _Request:
    opcode: int
    psn: int
    body: bytes
    pad: int
    ack_request: bool


class RequestStream:
    """One direction of a connection. Only `Random.random` and `getrandbits` are used: their values
    for a seed are the same in every Python.

    `flow` carries the requests, `answers` the responses to them (to the requester's queue pair).
    """

    def __init__(self, flow: RoceFlow, answers: RoceFlow, *, start: int, mtu: int,
                 impairments: Impairments, rng: Random) -> None:
        self._flow, self._answers = flow, answers
        self._psn, self._mtu = start % PSN_MODULUS, mtu
        self._rng = rng
        self._chances = ((impairments.gap, self._gap), (impairments.repeat, self._go_back),
                         (impairments.late, self._hold), (impairments.jump, self._jump))
        self._ports = [49152 + rng.getrandbits(14) for _ in range(8)]
        self._message: deque[tuple[int, int, bytes]] = deque()
        self._messages = 0
        self._backlog: deque[_Request] = deque()
        self._held: _Request | None = None
        self._held_for = 0
        self._history: deque[_Request] = deque(maxlen=_MAX_REPEAT)
        self._unacknowledged = 0
        self._newest = self._psn
        self.done: Counter[str] = Counter()
        """What was put in: requests, and "missing", "repeated", "late", "jumps", "reads"."""

    def next_frame(self) -> bytes:
        """The next request frame as the tap sees it."""
        self.done["requests"] += 1
        self._unacknowledged += 1
        request = self._next_request()
        self._newest = request.psn
        return self._frame(request)

    def acknowledgement(self) -> bytes | None:
        """A coalesced ACK, now and then; in the answers' direction, with this stream's PSN."""
        if self._unacknowledged <= 7 * self._rng.random():
            return None
        self._unacknowledged = 0
        return self._answers.acknowledge(self._newest, self._messages,
                                         source_port=self._port())

    def congestion_notification(self) -> bytes:
        """A CNP to the requester."""
        return self._answers.congestion_notification(self._port())

    def read(self, packets: int) -> list[bytes]:
        """A READ request, which the profile does not cover, and its `packets` responses: they
        take up this stream's PSNs."""
        self.done["reads"] += 1
        psn, length = self._psn, packets * self._mtu
        self._psn = (psn + packets) % PSN_MODULUS
        self._message.clear()
        frames = [self._flow.packet(Opcode.RDMA_READ_REQUEST, psn, _reth(length),
                                    source_port=self._port(), ack_request=True)]
        for index in range(packets):
            opcode, aeth = Opcode.RDMA_READ_RESPONSE_MIDDLE, b""
            if packets == 1:
                opcode, aeth = Opcode.RDMA_READ_RESPONSE_ONLY, b"\x1f\0\0\1"
            elif index == 0:
                opcode, aeth = Opcode.RDMA_READ_RESPONSE_FIRST, b"\x1f\0\0\1"
            elif index == packets - 1:
                opcode, aeth = Opcode.RDMA_READ_RESPONSE_LAST, b"\x1f\0\0\1"
            frames.append(self._answers.packet(
                opcode, (psn + index) % PSN_MODULUS, aeth + _PATTERN[:self._mtu],
                source_port=self._port()))
        return frames

    def _next_request(self) -> _Request:
        if self._held is not None:
            self._held_for -= 1
            if self._held_for < 0:
                request, self._held = self._held, None
                return request
        if self._backlog:
            return self._backlog.popleft()
        return self._impaired()

    def _impaired(self) -> _Request:
        """The next packet after the impairment that the dice choose, if one."""
        chance = self._rng.random()
        for rate, impair in self._chances:
            if chance < rate:
                return impair()
            chance -= rate
        return self._new()

    def _gap(self) -> _Request:
        missing = 1 + int(self._rng.random() * _MAX_GAP)
        for _ in range(missing):
            self._new()
        self.done["missing"] += missing
        return self._new()

    def _go_back(self) -> _Request:
        count = 1 + int(self._rng.random() * _MAX_REPEAT)
        again = list(self._history)[-count:]
        self.done["repeated"] += len(again)
        self._backlog.extend(again)
        return self._backlog.popleft() if again else self._new()

    def _hold(self) -> _Request:
        """One packet at a time waits; meanwhile no other is held."""
        if self._held is None:
            self._held = self._new()
            self._held_for = 1 + int(self._rng.random() * _MAX_LATE)
            if self._rng.random() < _VERY_LATE_SHARE:
                self._held_for = _VERY_LATE[int(self._rng.random() * len(_VERY_LATE))]
            self.done["late"] += 1
        return self._new()

    def _jump(self) -> _Request:
        self._psn = (self._psn + _LEAST_JUMP
                     + int(self._rng.random() * (_MOST_JUMP - _LEAST_JUMP))) % PSN_MODULUS
        self._history.clear()
        self.done["jumps"] += 1
        return self._new()

    def _new(self) -> _Request:
        """The next packet of the message, with the next PSN."""
        if not self._message:
            self._begin_message()
        opcode, size, header = self._message.popleft()
        pad = -size % 4
        start = self._psn % 4096
        body = header + _PATTERN[start:start + size] + bytes(pad)
        request = _Request(opcode, self._psn, body, pad, not self._message)
        self._psn = (self._psn + 1) % PSN_MODULUS
        self._history.append(request)
        return request

    def _begin_message(self) -> None:
        """SEND or WRITE, with or without immediate data, of one to eight packets."""
        bits = self._rng.getrandbits(16)
        write, immediate = bits & 1, bits >> 1 & 1
        packets = 1 if bits >> 2 & 1 else 2 + (bits >> 3) % 7
        last = int(self._rng.random() * (self._mtu + 1))
        self._messages += 1
        first_header = _reth((packets - 1) * self._mtu + last) if write else b""
        last_header = struct.pack(">I", bits) if immediate else b""
        if packets == 1:
            opcode = Opcode.RDMA_WRITE_ONLY if write else Opcode.SEND_ONLY
            self._message.append((opcode + immediate, last, first_header + last_header))
            return
        first = Opcode.RDMA_WRITE_FIRST if write else Opcode.SEND_FIRST
        self._message.append((first, self._mtu, first_header))
        self._message.extend([(first + 1, self._mtu, b"")] * (packets - 2))
        self._message.append((first + 2 + immediate, last, last_header))

    def _frame(self, request: _Request) -> bytes:
        return self._flow.packet(request.opcode, request.psn, request.body, pad=request.pad,
                                 source_port=self._port(), ack_request=request.ack_request,
                                 identification=request.psn & 0xFFFF)

    def _port(self) -> int:
        return self._ports[int(self._rng.random() * 8)]


def _reth(length: int) -> bytes:
    """RDMA Extended Transport Header (IBTA Vol 1, 9.3.3)."""
    return struct.pack(">QII", 0x7F00_0000_1000, 0x1234, length)
