"""The driver: registers by name, operations, and pushed records, over any transport.

One request is under way at a time; records that arrive meanwhile are kept. The driver has no clock
and opens nothing: time is a function given to it, the line is a `Transport`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from ..spec.fingerprint import layout_hash
from ..spec.registers import KEY_WORDS, LAYOUT_VERSION, MAGIC, OperationKind, bank_address
from ..spec.wire import Status
from .bursts import Item, bank_named, describe, items_addresses, join, register_named
from .errors import (
    BoardRestarted,
    LayoutMismatch,
    LinkLocalError,
    LinkRemoteError,
    LinkTimeout,
    NotABoard,
    RequestFailed,
)
from .messages import Credit, Read, Reply, Write
from .records import RecordArray
from .session import MAX_CREDIT, LinkSession

__all__ = ["BoardInfo", "Driver", "Transport"]

_READ_OCTETS: Final = 1 << 16
_SEQUENCES: Final = 1 << 16
_WRITABLE_KINDS: Final = tuple(kind for kind in OperationKind if kind >= OperationKind.SNAPSHOT)
_KINDS_WITH_TAG: Final = (OperationKind.PROVISION, OperationKind.MARKER)


class Transport(Protocol):
    """A line to the board. Any method raises TransportClosed once the line is gone."""

    def write(self, data: bytes, /) -> None:
        """Sends all of `data`."""

    def read(self, max_octets: int, timeout_s: float, /) -> bytes:
        """What has arrived, as soon as there is something; b"" after `timeout_s` without."""

    def close(self) -> None:
        """Frees the line. May be called twice."""


@dataclass(frozen=True)
class BoardInfo:
    """What the handshake found. `max_window` in PSN positions; `version` of the gateware.

    `vxlan`: 1 when frames in VXLAN are parsed; `transmitted`: 1 when PFC frames that its ports emit
    are counted; else 0.
    `restarted`: the board's boot id is another than the one known before.
    """

    connections: int
    ports: int
    bus_bytes: int
    max_window: int
    version: int
    vxlan: int
    transmitted: int
    boot_id: int
    restarted: bool


class Driver:
    """The board, by register names.

    `timeout_s`: how long the line may be quiet before a request is sent again with the same
    sequence number, which the board does not do twice; a reply that comes in pieces may take
    `patience` times as long. After `tries` of them LinkTimeout; the next command works. Octets of a
    reply that stopped halfway are dropped.

    `credit_window`: records that the board may have under way or the driver may hold untaken; the
    driver tops credit up in `poll`. 0: only `credit` gives any. `stall_s`: quiet time with credit
    outstanding after which `poll` looks whether credit was used by records that did not arrive, and
    whether the board was reset. `clock`: seconds, monotone. `random_bits(n)`: n random bits.
    `known_boot_id`: from an earlier process, to recognize a restart in between.
    """

    def __init__(
        self, transport: Transport, *, clock: Callable[[], float], timeout_s: float = 0.25,
        tries: int = 3, patience: float = 8.0, credit_window: int = 1024, stall_s: float = 1.0,
        known_boot_id: int | None = None,
        random_bits: Callable[[int], int] = secrets.randbits,
    ) -> None:
        if timeout_s <= 0 or tries < 1 or patience < 1:
            raise LinkLocalError(f"timeout_s is {timeout_s}, tries is {tries}, patience is "
                                 f"{patience}, must be above 0, at least 1 and at least 1")
        if not 0 <= credit_window <= MAX_CREDIT:
            raise LinkLocalError(f"credit_window is {credit_window}, must be 0 to {MAX_CREDIT}")
        self.session = LinkSession()
        self.board: BoardInfo | None = None
        self.stale_replies = 0
        self.retries = 0
        self._transport = transport
        self._clock = clock
        self._timeout_s = timeout_s
        self._tries = tries
        self._patience = patience
        self._credit_window = credit_window
        self._stall_s = stall_s
        self._boot_id = known_boot_id
        self._random_bits = random_bits
        self._sequence = random_bits(16)
        self._quiet_since = clock()

    @property
    def advice(self) -> str:
        """What to look at when the board does not answer, by the kind of line."""
        return str(getattr(self._transport, "advice", "check cable, baud rate and power"))

    # Registers

    def read(self, name: str) -> int:
        """The register's value."""
        return self._read(register_named(name, "r").address, 1)[0]

    def read_fields(self, name: str) -> dict[str, int]:
        """The register's fields."""
        return register_named(name, "r").unpack(self.read(name))

    def read_bank(self, name: str, port: int = 0) -> tuple[int, ...]:
        """The bank's registers of one port."""
        return self.read_many([(name, port)])[(name, port)]

    def read_many(self, items: Iterable[Item]) -> dict[Item, tuple[int, ...]]:
        """The values of registers (by name) and banks (by name and port), in the fewest bursts.

        Bursts go in the order of addresses, lowest first. Each register is whole in itself, but
        time passes between bursts.
        """
        addresses = items_addresses(items)
        words: dict[int, int] = {}
        for burst in join(address for group in addresses.values() for address in group):
            values = self._read(burst.address, burst.count)
            words.update(zip(range(burst.address, burst.address + burst.count), values,
                             strict=True))
        return {item: tuple(words[address] for address in group)
                for item, group in addresses.items()}

    def write(self, name: str, **fields: int) -> None:
        """Writes a register: its fields by name (those left out are 0), or `value=` when it is one
        number. A register that does not take the value raises RequestFailed."""
        self._write(register_named(name, "w").address, (self._pack(name, fields),))

    def write_bank(self, name: str, values: Iterable[int], port: int = 0) -> None:
        """Writes the bank's registers of one port, all of them."""
        bank = bank_named(name, "w")
        words = tuple(values)
        if len(words) != bank.count:
            raise LinkLocalError(f"{len(words)} values for bank {name}, must be {bank.count}")
        self._write(bank_address(name, port, 0), words)

    def commit_key(self, words: Iterable[int], **fields: int) -> None:
        """Stages a key, least significant word first, and commits it with the fields of
        `table_commit`: one burst, so one round trip."""
        key = tuple(words)
        if len(key) != KEY_WORDS:
            raise LinkLocalError(f"{len(key)} words of a key, must be {KEY_WORDS}")
        self._write(bank_address("table_key", 0, 0), (*key, self._pack("table_commit", fields)))

    # Operations

    def operate(self, kind: OperationKind, context: int, reasons: int = 0, *,
                window: int | None = None, tag: int = 0) -> None:
        """Puts one operation into the window engine's pipe.

        PROVISION needs `window` and takes `tag`; MARKER takes `tag`, its cookie; CLOSE and REMOVE
        take `reasons`.
        """
        self._check_kind(kind, _WRITABLE_KINDS)
        self._check_context("context", context)
        if kind == OperationKind.PROVISION:
            most = self.board.max_window if self.board else (1 << 24) - 1
            if window is None or not 1 <= window <= most:
                raise LinkLocalError(f"window is {window}, must be 1 to {most}")
        elif window is not None:
            raise LinkLocalError(f"window is {window}, only PROVISION takes one")
        operation = self._pack("operation", {
            "kind": kind, "context": context, "reasons": reasons})
        if kind in _KINDS_WITH_TAG:
            argument = self._pack("operation_argument", {"window": window or 0, "tag": tag})
            self._write(register_named("operation_argument", "w").address, (argument, operation))
        else:
            self._write(register_named("operation", "w").address, (operation,))

    def sweep(self, kind: OperationKind, first: int, last: int, reasons: int = 0,
              cookie: int = 0) -> None:
        """Starts the operation (SNAPSHOT or CLOSE) for contexts `first` to `last`, a MARKER with
        `cookie` behind; while one runs, RequestFailed with status REFUSED."""
        self._check_kind(kind, (OperationKind.SNAPSHOT, OperationKind.CLOSE))
        self._check_context("first context", first)
        self._check_context("last context", last)
        if first > last:
            raise LinkLocalError(f"first context is {first}, last is {last}: nothing between")
        self.write("sweep", kind=kind, first=first, last=last, reasons=reasons, cookie=cookie)

    # Records

    @property
    def records_missed(self) -> int:
        """RECORDs that the board numbered and that never arrived whole."""
        return self.session.records_missed

    def credit(self, amount: int) -> None:
        """Lets the board push that many more records."""
        if not 1 <= amount <= MAX_CREDIT:
            raise LinkLocalError(f"credit is {amount}, must be 1 to {MAX_CREDIT}")
        what = f"CREDIT of {amount}"
        self.session.granted(amount)    # before the records that use it can come
        self._done(self._transact(Credit(self._next_sequence(), amount), what), what)
        self._quiet_since = self._clock()

    def take_records(self) -> RecordArray:
        """The records that came since the last call, array of RECORD_DTYPE."""
        return self.session.take_records()

    def poll(self, timeout_s: float) -> int:
        """Waits for records, at most `timeout_s`; gives how many are held now.

        Before that it gives credit when the board has none, for nothing could come; behind it, it
        tops credit up. Raises BoardRestarted when it finds a new boot id on that occasion:
        handshake again. Wants a handshake before when there is a credit window.
        """
        before = self.session.records_received
        keeps_credit = self._credit_window and self.board
        if keeps_credit and not self.session.credit_outstanding:
            self._keep_credit()
        waits = self.session.records_received == before
        deadline = self._clock() + (timeout_s if waits else 0.0)
        while True:
            self._pump(max(0.0, deadline - self._clock()))
            if self.session.records_received != before or self._clock() >= deadline:
                break
        if keeps_credit:
            self._keep_credit()
        return self.session.records_held

    def _keep_credit(self) -> None:
        session = self.session
        if session.credit_outstanding and self._clock() - self._quiet_since >= self._stall_s:
            state = self.read_many(["boot_id", "snapshot_level"])
            self.check_boot_id(state["boot_id"][0])
            if state["snapshot_level"][0] and self._clock() - self._quiet_since >= self._stall_s:
                session.credit_gone()
            self._quiet_since = self._clock()
        free = self._credit_window - session.credit_outstanding - session.records_held
        if free > 0 and 2 * free >= self._credit_window:
            self.check_boot_id(self.read("boot_id"))
            self.credit(free)

    # The board's identity

    def handshake(self) -> BoardInfo:
        """Makes sure that this is a rocetap board of the same tables, and gives it a boot id when
        it has none. Begin with it, and do it again after BoardRestarted or a new transport.

        Records held from before a restart are still there to take afterwards; no new ones come
        before the next `poll` or `credit`.
        """
        try:
            state = self.read_many(["magic", "layout", "boot_id", "capacity"])
        except RequestFailed as error:
            raise NotABoard(f"no rocetap board: {error}") from None
        magic, layout, boot_id, capacity = (
            state[name][0] for name in ("magic", "layout", "boot_id", "capacity"))
        if magic != MAGIC:
            raise NotABoard(f"no rocetap board: magic is 0x{magic:016x}, must be 0x{MAGIC:016x}")
        fields = register_named("capacity", "r").unpack(capacity)
        if layout != layout_hash():
            raise LayoutMismatch(
                f"board has layout 0x{layout:016x} (version {fields['version']}), this software "
                f"0x{layout_hash():016x} (version {LAYOUT_VERSION}): load the bitstream of this "
                "release, or install the release of that bitstream")
        if boot_id == 0:
            boot_id = self._random_bits(64) or 1
            self.write("boot_id", value=boot_id)
            fresh = True
        else:
            fresh = False
        restarted = self._boot_id is not None and boot_id != self._boot_id
        if restarted or fresh:
            self.session.restarted()
        self._boot_id = boot_id
        self.board = BoardInfo(boot_id=boot_id, restarted=restarted, **fields)
        return self.board

    def check_boot_id(self, boot_id: int) -> None:
        """Raises BoardRestarted when that is not the boot id of the handshake."""
        if boot_id != self._boot_id:
            self.board = None
            raise BoardRestarted(f"board restarted: its boot id is 0x{boot_id:016x}, was "
                                 f"0x{self._boot_id or 0:016x}")

    def reconnect(self, transport: Transport) -> BoardInfo:
        """Goes on over a new transport, after TransportClosed on the old one, and shakes hands.

        Records held stay; those that were on the line are found missed when the next one comes,
        unless the board was reset meanwhile.
        """
        self._transport.close()
        self._transport = transport
        self.session.frames.abandon()
        return self.handshake()

    def close(self) -> None:
        """Closes the transport."""
        self._transport.close()

    # Requests

    def _read(self, address: int, count: int) -> tuple[int, ...]:
        what = f"READ of {describe(address, count)}"
        reply = self._transact(Read(self._next_sequence(), address, count), what)
        if reply.status is Status.OK and len(reply.values) != count:
            raise LinkRemoteError(f"{what} got {len(reply.values)} registers, must be {count}")
        return self._done(reply, what)

    def _write(self, address: int, values: tuple[int, ...]) -> None:
        what = f"WRITE of {describe(address, len(values))}"
        self._done(self._transact(Write(self._next_sequence(), address, values), what), what)

    @staticmethod
    def _done(reply: Reply, what: str) -> tuple[int, ...]:
        if reply.status is Status.NO_REGISTER:
            raise RequestFailed(f"{what} failed: the board has no such register", reply.status)
        if reply.status is Status.REFUSED:
            raise RequestFailed(f"{what} refused: value out of range, or busy", reply.status)
        return reply.values

    def _next_sequence(self) -> int:
        self._sequence = (self._sequence + 1) % _SEQUENCES
        return self._sequence

    def _transact(self, message: Read | Write | Credit, what: str) -> Reply:
        octets = self.session.send(message)
        got = 0
        for attempt in range(self._tries):
            if attempt:
                self.retries += 1
            self._transport.write(octets)
            quiet_from = sent = self._clock()
            limit = sent + self._patience * self._timeout_s
            while (now := self._clock()) < (deadline := min(quiet_from + self._timeout_s, limit)):
                count, replies = self._pump(deadline - now)
                got += count
                if count:
                    quiet_from = self._clock()
                for reply in replies:
                    if reply.sequence == message.sequence:
                        return reply
                    self.stale_replies += 1
            if now - quiet_from >= self._timeout_s:
                self.session.frames.abandon()
        raise LinkTimeout(
            f"no whole reply to {what}: {self._tries} tries of {self._timeout_s:g} s, {got} octets "
            f"got; {self.advice}")

    def _pump(self, timeout_s: float) -> tuple[int, list[Reply]]:
        data = self._transport.read(_READ_OCTETS, timeout_s)
        if not data:
            return 0, []
        before = self.session.records_received
        replies = self.session.receive(data)
        if self.session.records_received != before:
            self._quiet_since = self._clock()
        return len(data), replies

    # Checks

    @staticmethod
    def _pack(name: str, fields: dict[str, int]) -> int:
        register = register_named(name, "w")
        if not register.fields:
            if fields.keys() != {"value"} or not 0 <= fields["value"] < 1 << 64:
                raise LinkLocalError(f"register {name} takes value= of 64 bits, got {fields}")
            return fields["value"]
        unknown = fields.keys() - dict(register.fields).keys()
        if unknown:
            raise LinkLocalError(f"register {name} has no field {', '.join(sorted(unknown))}, it "
                                 f"has {', '.join(field for field, _ in register.fields)}")
        try:
            return register.pack(**fields)
        except ValueError as error:
            raise LinkLocalError(f"{name}: {error}") from None

    @staticmethod
    def _check_kind(kind: OperationKind, allowed: tuple[OperationKind, ...]) -> None:
        if kind not in allowed:
            raise LinkLocalError(f"operation kind is {getattr(kind, 'name', kind)}, must be "
                                 f"{', '.join(item.name for item in allowed)}")

    def _check_context(self, name: str, context: int) -> None:
        contexts = self.board.connections if self.board else 1 << 14
        if not 0 <= context < contexts:
            raise LinkLocalError(f"{name} is {context}, must be 0 to {contexts - 1}")
