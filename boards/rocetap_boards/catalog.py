"""Which boards there are. A board's module is imported only when the board is asked for."""

from __future__ import annotations

import importlib
from typing import Any, Final

from rocetap.errors import RocetapError

__all__ = ["BOARDS", "UnknownBoard", "find_board"]

BOARDS: Final[dict[str, str]] = {
    "ax7325b": "ax7325b:AX7325B",
    "butterstick": "butterstick:BUTTERSTICK",
    "colorlight_5a75b": "colorlight_5a75b:COLORLIGHT_5A75B",
    "ecpix5": "ecpix5:ECPIX5",
    "genesys2": "genesys2:GENESYS2",
    "kcu105": "kcu105:KCU105",
    "rfsoc4x2": "rfsoc4x2:RFSOC4X2",
    "versa_ecp5": "versa_ecp5:VERSA_ECP5",
    "versa_ecp5_5g": "versa_ecp5:VERSA_ECP5_5G",
}
"""Name -> module:variable of this package."""


class UnknownBoard(RocetapError):
    """No board of that name."""


def find_board(name: str) -> Any:
    """The board; its type says how it is built."""
    if name not in BOARDS:
        raise UnknownBoard(f"BOARD {name!r} is not known; there are {', '.join(sorted(BOARDS))}")
    module, _, variable = BOARDS[name].partition(":")
    return getattr(importlib.import_module(f"rocetap_boards.{module}"), variable)
