"""Registers by name: their addresses, how a message calls them, and reads joined to bursts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from ..spec.registers import BANKS, MAX_PORTS, REGISTERS, Bank, Register, bank_address
from ..spec.wire import MAX_BURST
from .errors import LinkLocalError

__all__ = ["Burst", "Item", "bank_named", "describe", "items_addresses", "join", "register_named"]

Item: TypeAlias = str | tuple[str, int]
"""What a read may ask for: the name of a register, or (name of a bank, port)."""


@dataclass(frozen=True)
class Burst:
    """`count` registers from `address` on."""

    address: int
    count: int


def register_named(name: str, access: str) -> Register:
    """The register, when it can be accessed that way ("r" or "w"); else LinkLocalError."""
    register = REGISTERS.get(name)
    if register is None:
        raise LinkLocalError(f"unknown register {name!r}, known are {', '.join(REGISTERS)}")
    if access not in register.access:
        raise LinkLocalError(f"register {name} cannot be {_VERBS[access]}")
    return register


def bank_named(name: str, access: str) -> Bank:
    """The bank, when it can be accessed that way ("r" or "w"); else LinkLocalError."""
    bank = BANKS.get(name)
    if bank is None:
        raise LinkLocalError(f"unknown bank {name!r}, known are {', '.join(BANKS)}")
    if access not in bank.access:
        raise LinkLocalError(f"bank {name} cannot be {_VERBS[access]}")
    return bank


_VERBS = {"r": "read", "w": "written"}


def items_addresses(items: Iterable[Item]) -> dict[Item, tuple[int, ...]]:
    """Each item's addresses, one for a register and `count` for a bank; all must be readable."""
    addresses: dict[Item, tuple[int, ...]] = {}
    for item in items:
        if isinstance(item, str):
            addresses[item] = (register_named(item, "r").address,)
        else:
            name, port = item
            bank = bank_named(name, "r")
            try:
                addresses[item] = tuple(
                    bank_address(name, port, index) for index in range(bank.count))
            except ValueError as error:
                raise LinkLocalError(str(error)) from None
    return addresses


def join(addresses: Iterable[int]) -> list[Burst]:
    """The fewest bursts of at most MAX_BURST that cover these addresses and no others."""
    bursts: list[Burst] = []
    for address in sorted(set(addresses)):
        last = bursts[-1] if bursts else None
        if last and address == last.address + last.count and last.count < MAX_BURST:
            bursts[-1] = Burst(last.address, last.count + 1)
        else:
            bursts.append(Burst(address, 1))
    return bursts


def describe(address: int, count: int = 1) -> str:
    """The register's name and address, for a message."""
    text = f"{_name(address)} at 0x{address:04x}"
    return text if count == 1 else f"{text} and {count - 1} more"


def _name(address: int) -> str:
    for name, register in REGISTERS.items():
        if register.address == address:
            return name
    for name, bank in BANKS.items():
        port, index = divmod(address - bank.base, bank.stride) if bank.stride else (
            0, address - bank.base)
        if 0 <= index < bank.count and 0 <= port < (MAX_PORTS if bank.stride else 1):
            return f"{name}[{port}][{index}]" if bank.stride else f"{name}[{index}]"
    return "no register"
