"""The register map: 64-bit registers at 16-bit addresses, each read in one clock, never torn.

`REGISTERS` names the single ones, `BANKS` the repeated ones. Gateware decodes from this table, the
driver goes by name, the reference page in docs/ is generated from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from .classes import FRAME_CLASSES
from .keys import KEY_BITS

__all__ = [
    "BANKS", "KEY_WORDS", "LAYOUT_VERSION", "MAGIC", "MAX_PORTS", "PORT_STATE", "REGISTERS",
    "SELFTEST_WORDS", "Bank", "Field", "OperationKind", "Register", "bank_address",
]

MAGIC: Final = int.from_bytes(b"rocetap\0", "little")
LAYOUT_VERSION: Final = 1
KEY_WORDS: Final = -(-KEY_BITS // 64)
MAX_PORTS: Final = 8
SELFTEST_WORDS: Final = 32


class OperationKind(IntEnum):
    """What goes down the window engine's pipe. The host writes those from SNAPSHOT on."""

    NOTHING = 0
    REQUEST = 1
    """An eligible request of the context."""
    VIOLATION = 2
    """An unsupported or malformed request of the context: closes and disables."""
    SNAPSHOT = 3
    """A report of the epoch as it stands."""
    CLOSE = 4
    """Closes the epoch, with the reasons given; the next request starts a new one."""
    PROVISION = 5
    """Closes the epoch if there is one, sets window and tag, and enables the context."""
    REMOVE = 6
    """Closes the epoch if there is one, with the reasons given, and disables the context."""
    MARKER = 7
    """A record that says: all before this is done."""


@dataclass(frozen=True)
class Field:
    """Bits of a register, `low` the least significant one."""

    low: int
    bits: int


@dataclass(frozen=True)
class Register:
    """One 64-bit register. `access`: "r", "w" or "rw". `fields` may be empty: one number."""

    address: int
    access: str
    meaning: str
    fields: tuple[tuple[str, Field], ...] = ()

    def pack(self, **values: int) -> int:
        """The register's value from its fields; a value out of range raises."""
        table = dict(self.fields)
        word = 0
        for name, value in values.items():
            field = table[name]
            if not 0 <= value < 1 << field.bits:
                raise ValueError(f"register field {name} is {value}, must fit {field.bits} bits")
            word |= value << field.low
        return word

    def unpack(self, word: int) -> dict[str, int]:
        """The fields of a value that was read."""
        return {name: (word >> field.low) & ((1 << field.bits) - 1)
                for name, field in self.fields}


REGISTERS: Final[dict[str, Register]] = {
    "magic": Register(0x0000, "r", "'rocetap' and a zero octet, least significant octet first"),
    "layout": Register(0x0001, "r", "hash of these tables, rocetap.spec.fingerprint"),
    "boot_id": Register(0x0002, "rw", "0 after a reset; the driver writes a random number"),
    "capacity": Register(0x0003, "r", "what this board was built for", (
        ("connections", Field(0, 16)), ("ports", Field(16, 4)), ("vxlan", Field(20, 1)),
        ("transmitted", Field(21, 1)), ("bus_bytes", Field(24, 8)),
        ("max_window", Field(32, 24)), ("version", Field(56, 8)))),
    "time": Register(0x0004, "r", "the board's clock, ns"),
    "control": Register(0x0005, "rw", "switches; all are set after a reset", (
        ("check_icrc", Field(0, 1)),)),
    "capture_generation": Register(0x0006, "r", "number of capture discontinuities so far"),
    "records_dropped": Register(0x0007, "r", "records that found no room in the snapshot FIFO"),
    "snapshot_level": Register(0x0008, "r", "records waiting in the snapshot FIFO"),
    "link_errors": Register(0x0009, "r", "frames from the host that were dropped", (
        ("crc", Field(0, 32)), ("format", Field(32, 32)))),
    "unprovisioned": Register(0x000A, "r", "attributable requests that no table entry matched"),
    "port_state": Register(0x000B, "r", "what the MACs know of their links, one octet a port "
                           "(PORT_STATE); 0 where a board has no MAC to ask", tuple(
        (f"port{port}", Field(8 * port, 8)) for port in range(MAX_PORTS))),
    "operation_argument": Register(0x0010, "rw", "for PROVISION: window and tag", (
        ("window", Field(0, 24)), ("tag", Field(32, 16)))),
    "operation": Register(0x0011, "w", "puts one operation into the pipe", (
        ("kind", Field(0, 4)), ("context", Field(16, 16)), ("reasons", Field(32, 16)))),
    "sweep": Register(0x0012, "w", "SNAPSHOT or CLOSE for each context from first to last, then "
                      "a MARKER with the cookie; answered at once, refused while one runs", (
        ("kind", Field(0, 4)), ("first", Field(4, 14)), ("last", Field(18, 14)),
        ("reasons", Field(32, 16)), ("cookie", Field(48, 16)))),
    "selftest": Register(0x0013, "w", "plays the frame in selftest_frame into a port, as often as "
                         "`times` says, FCS appended; refused while one plays, and absent with its "
                         "frame where a board has no self-test", (
        ("octets", Field(0, 9)), ("port", Field(16, 3)), ("wrong_fcs", Field(24, 1)),
        ("mac_error", Field(25, 1)), ("times", Field(32, 16)))),
    "table_commit": Register(0x0020 + KEY_WORDS, "w", "writes the staged key into a slot, in one "
                             "clock; behind table_key, so that one burst does both", (
        ("slot", Field(0, 16)), ("way", Field(16, 4)), ("valid", Field(20, 1)),
        ("context", Field(32, 16)))),
}

PORT_STATE: Final[dict[str, Field]] = {
    "link": Field(0, 1),            # the link is up
    "speed": Field(1, 2),           # 0: 10, 1: 100, 2: 1000 Mbit/s
    "full_duplex": Field(3, 1),
    "unsupported": Field(4, 1),     # up, but at a speed or duplex that this board does not capture
    "found": Field(5, 1),           # the PHY answers
    "inline": Field(6, 1),          # frames of this port go out on the other one
    "overflow": Field(7, 1),        # a frame was cut on its way out, since the last reset
}
"""The octet of one port in `port_state`."""


@dataclass(frozen=True)
class Bank:
    """Registers in a row: `base + port * stride + index`, index in range(count)."""

    base: int
    stride: int
    count: int
    access: str
    meaning: str


BANKS: Final[dict[str, Bank]] = {
    "table_key": Bank(0x0020, 0, KEY_WORDS, "w", "the staged key, least significant word first"),
    "selftest_frame": Bank(0x0040, 0, SELFTEST_WORDS, "w", "the frame that selftest plays, without "
                           "FCS; octet 0 is the least significant one of word 0"),
    "frame_class": Bank(0x0100, 0x20, len(FRAME_CLASSES), "r", "frames of each class, per port"),
    "pfc_received": Bank(0x0200, 0x20, 16, "r", "received PFC frames per port: 8 totals by "
                         "priority, then 8 with quanta above zero (XOFF)"),
    "pfc_transmitted": Bank(0x0300, 0x20, 16, "r", "transmitted PFC frames, as received ones"),
}


def bank_address(name: str, port: int, index: int) -> int:
    """The address of one register of a bank; ports and indices count from 0."""
    bank = BANKS[name]
    if not 0 <= index < bank.count:
        raise ValueError(f"index of {name} is {index}, must be 0 to {bank.count - 1}")
    if not 0 <= port < (MAX_PORTS if bank.stride else 1):
        raise ValueError(f"port of {name} is {port}, must be 0 to {MAX_PORTS - 1}")
    return bank.base + port * bank.stride + index
