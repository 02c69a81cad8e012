"""The serial port of a board, by the numbers of its USB adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from serial.tools import list_ports

from .loader import LoadError
from .names import Loadable

__all__ = ["find_port"]


def find_port(board: Loadable, *, comports: Callable[[], Iterable[Any]] = list_ports.comports,
              ) -> str:
    """The device of the board's UART; LoadError when there is none, or more than one."""
    if board.usb is None:
        raise LoadError(f"{board.title} has no UART of its own: connect an adapter and give its "
                        "port with --port")
    vendor, product, interface = board.usb
    matches = sorted(str(info.device) for info in comports()
                     if (info.vid, info.pid) == (vendor, product)
                     and _interface(info) in (None, interface))
    if not matches:
        raise LoadError(f"no serial port of {board.title} (USB {vendor:04x}:{product:04x}, "
                        f"interface {interface}): plug its USB cable in, or give the port with "
                        "--port")
    if len(matches) > 1:
        raise LoadError(f"{len(matches)} serial ports may be {board.title}: "
                        f"{', '.join(matches)}; give one of them with --port")
    return matches[0]


def _interface(info: Any) -> int | None:
    """The USB interface, from a location such as 1-2:1.1; None where it is not said."""
    _, dot, number = str(info.location or "").rpartition(".")
    return int(number) if dot and ":" in str(info.location) and number.isdigit() else None
