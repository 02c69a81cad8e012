"""One poll of all counters that a board has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..spec.registers import REGISTERS
from .bursts import Item
from .driver import Driver
from .errors import LinkLocalError

__all__ = ["BoardCounters", "read_counters"]

_BANKS: Final = ("frame_class", "pfc_received", "pfc_transmitted")
_STATE: Final = tuple(
    name for name, register in REGISTERS.items()
    if "r" in register.access and register.address <= REGISTERS["unprovisioned"].address)


@dataclass(frozen=True)
class BoardCounters:
    """`state`: the single registers from `magic` to `unprovisioned`, by name. The others: a row for
    each port, in the order of the banks of `rocetap.spec.registers`."""

    state: dict[str, int]
    frame_class: tuple[tuple[int, ...], ...]
    pfc_received: tuple[tuple[int, ...], ...]
    pfc_transmitted: tuple[tuple[int, ...], ...]

    @property
    def boot_id(self) -> int:
        """The boot id under which all of these were read."""
        return self.state["boot_id"]


def read_counters(driver: Driver) -> BoardCounters:
    """All counters of the board, in 1 + 3 · ports round trips. Wants a handshake before.

    The boot id is read behind the banks, so what is returned is of one boot: when the board was
    reset meanwhile, BoardRestarted and no values.
    """
    if driver.board is None:
        raise LinkLocalError("no handshake yet: the number of ports is not known")
    ports = range(driver.board.ports)
    items: list[Item] = [(bank, port) for bank in _BANKS for port in ports]
    rows = driver.read_many(items)
    state = {str(name): values[0] for name, values in driver.read_many(_STATE).items()}
    driver.check_boot_id(state["boot_id"])
    banks = {bank: tuple(rows[(bank, port)] for port in ports) for bank in _BANKS}
    return BoardCounters(state, **banks)
