"""The AXI4-Lite address map of the core for other designs.

Every 64-bit register has eight octets of address: its low word at ``8 * number`` and its high word
at ``8 * number + 4``. Below RECORD_WINDOW a register's number is its address in the register map;
the registers here exist on AXI4-Lite only, where no link carries records.
"""

from __future__ import annotations

from typing import Final

from .records import RECORD_BITS
from .registers import BANKS, MAX_PORTS, REGISTERS, Field, Register

__all__ = ["ADDRESS_BITS", "AXI_REGISTERS", "RECORD_WINDOW", "RECORD_WORDS", "byte_address",
           "record_word"]

ADDRESS_BITS: Final = 14
"""Bits of an octet address: 16 KiB."""

RECORD_WINDOW: Final = 0x400
"""First number that is no register of the map."""

RECORD_WORDS: Final = -(-RECORD_BITS // 64)
"""64-bit words of a record."""

AXI_REGISTERS: Final[dict[str, Register]] = {
    "record_level": Register(0x0400, "r", "records waiting in the snapshot FIFO; the first of them "
                             "is in the record window"),
    "record_pop": Register(0x0401, "w", "any value: the record in the window is done with, the "
                           "next one takes its place; refused when there is none"),
    "access_status": Register(0x07FF, "r", "what became of writes, for masters that drop BRESP; "
                              "reading it is no access that counts", (
        ("last_write", Field(0, 2)), ("failed", Field(32, 32)))),
}
"""Register.address is the register's number. ``last_write``: BRESP of the last write of a whole
register (0 OKAY, 2 SLVERR, 3 DECERR); ``failed``: accesses answered by other than OKAY, modulo
2^32."""

_RECORD_BASE: Final = 0x0410

assert AXI_REGISTERS["access_status"].address >= _RECORD_BASE + RECORD_WORDS
assert all(register.address < RECORD_WINDOW for register in REGISTERS.values())
assert all(bank.base + (MAX_PORTS - 1) * bank.stride + bank.count <= RECORD_WINDOW
           for bank in BANKS.values())


def record_word(index: int) -> int:
    """The number of one 64-bit word of the record window; word 0 has the record's octets 0 to 7."""
    if not 0 <= index < RECORD_WORDS:
        raise ValueError(f"record word is {index}, must be 0 to {RECORD_WORDS - 1}")
    return _RECORD_BASE + index


def byte_address(number: int) -> int:
    """The octet address of a register's low word; its high word is four octets further."""
    if not 0 <= number < 1 << ADDRESS_BITS - 3:
        raise ValueError(f"register is 0x{number:x}, must be 0 to "
                         f"0x{(1 << ADDRESS_BITS - 3) - 1:x}")
    return 8 * number
