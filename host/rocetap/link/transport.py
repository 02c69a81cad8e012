"""Lines to a board: a serial port, or `socket://HOST:PORT` to a simulated one. POSIX.

pyserial opens and configures; reading and writing go to its file descriptor, so that a read gives
what is there as soon as something is there, for both kinds of line alike.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import select
import time
from pathlib import Path
from typing import Any, Final

import serial
from serial.tools import list_ports

from .errors import TransportClosed, TransportOpenError

__all__ = ["DEFAULT_BAUD", "SOCKET_SCHEME", "SerialTransport", "open_transport"]

DEFAULT_BAUD: Final = 3_000_000
"""The board's UART, bits a second."""

SOCKET_SCHEME: Final = "socket://"
WRITE_TIMEOUT_S: Final = 5.0

_BUSY: Final = (errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK)


class SerialTransport:
    """A `rocetap.link.driver.Transport` on an open pyserial port, which it owns.

    Reads and writes raise TransportClosed when the other end is gone; a write also when nothing of
    it is taken for WRITE_TIMEOUT_S. `advice`: what to look at when nothing answers.
    """

    def __init__(self, port: Any, name: str) -> None:
        self.name = name
        self.advice = (
            f"see whether a board is behind {name} and whether another program uses it"
            if name.startswith(SOCKET_SCHEME) else "check cable, baud rate and power")
        self._port = port
        self._fd: int = port.fileno()
        self._open = True

    def write(self, data: bytes, /) -> None:
        """Sends all of `data`."""
        rest = memoryview(data)
        while rest:
            self._check_open()
            try:
                if not select.select([], [self._fd], [], WRITE_TIMEOUT_S)[1]:
                    raise TransportClosed(
                        f"{self.name}: takes no more octets for {WRITE_TIMEOUT_S:g} s")
                rest = rest[os.write(self._fd, rest):]
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._gone(error) from None

    def read(self, max_octets: int, timeout_s: float, /) -> bytes:
        """What has arrived, at most `max_octets`; b"" after `timeout_s` without."""
        self._check_open()
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                left = max(0.0, deadline - time.monotonic())
                if not select.select([self._fd], [], [], left)[0]:
                    return b""
                data = os.read(self._fd, max_octets)
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._gone(error) from None
            if not data:
                raise TransportClosed(f"{self.name}: closed at the other end")
            return data

    def close(self) -> None:
        """Closes the port. May be called twice."""
        self._open = False
        with contextlib.suppress(OSError, serial.SerialException):
            self._port.close()

    def _check_open(self) -> None:
        if not self._open:
            raise TransportClosed(f"{self.name}: was closed")

    def _gone(self, error: OSError) -> TransportClosed:
        return TransportClosed(f"{self.name}: line is gone ({os.strerror(error.errno or 0)})")


def open_transport(name: str, baud: int = DEFAULT_BAUD) -> SerialTransport:
    """Opens a serial port, for this program alone, or `socket://HOST:PORT`.

    Whatever stands in the way raises TransportOpenError with one line that says what to do.
    """
    is_socket = name.startswith(SOCKET_SCHEME)
    if "://" in name and not is_socket:
        raise TransportOpenError(
            f"cannot open {name}: must be a serial port or {SOCKET_SCHEME}HOST:PORT")
    try:
        port = serial.serial_for_url(
            name, baudrate=baud, timeout=0, **({} if is_socket else {"exclusive": True}))
    except (serial.SerialException, OSError, ValueError) as error:
        # pyserial wraps what the system said, for sockets without its number.
        cause = error.__context__ if isinstance(error.__context__, OSError) else error
        number = getattr(cause, "errno", None) or getattr(error, "errno", None)
        raise TransportOpenError(_reason(name, is_socket, number, cause)) from None
    if not is_socket:
        # FTDI adapters hold small replies for 16 ms unless told; ports without the setting do not.
        with contextlib.suppress(ValueError, NotImplementedError, OSError):
            port.set_low_latency_mode(True)
    return SerialTransport(port, name)


def _reason(name: str, is_socket: bool, number: int | None, cause: BaseException) -> str:
    start = f"cannot open {name}: "
    if number in (errno.EACCES, errno.EPERM):
        return start + f"permission denied; {_permission_hint(name)}"
    if not is_socket and number in _BUSY:
        return start + "in use by another program; close it, or choose another port"
    if not is_socket and number in (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.EIO):
        if not name.startswith("/") and _is_host_and_port(name):
            return start + f"no such serial port; a board behind TCP is {SOCKET_SCHEME}{name}"
        ports = sorted(info.device for info in list_ports.comports())
        return start + f"no such port; ports here: {', '.join(ports) or 'none'}"
    if number == errno.ECONNREFUSED:
        return start + "connection refused; is the simulated board running there?"
    if is_socket and not _is_host_and_port(name):
        return start + f"must be {SOCKET_SCHEME}HOST:PORT"
    text = os.strerror(number) if number and number > 0 else " ".join(str(cause).split())
    return start + text


def _is_host_and_port(name: str) -> bool:
    host, _, port = name.removeprefix(SOCKET_SCHEME).rpartition(":")
    return bool(host) and port.isascii() and port.isdigit() and int(port) < 1 << 16


def _permission_hint(name: str) -> str:
    """The group that may open the device, `dialout` on Debian and Ubuntu."""
    try:
        group = grp.getgrgid(Path(name).stat().st_gid).gr_name
    except (OSError, KeyError):
        group = "dialout"
    if group == "root":
        group = "dialout"
    return (f"join the group that may open it ({group} here: sudo usermod -aG {group} $USER), then "
            "log in again")
