"""systemd's notification protocol, sd_notify(3): one datagram to the socket in NOTIFY_SOCKET."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

__all__ = ["notify", "ready", "reloading", "stopping", "watchdog_interval"]


def notify(state: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Sends `state`, lines of NAME=VALUE; whether somebody was there to take it.

    Without NOTIFY_SOCKET nothing happens: the program was not started by systemd.
    """
    path = environment.get("NOTIFY_SOCKET", "")
    if path[:1] not in ("/", "@"):
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
            # An abstract name begins with a zero octet; "@" stands for it.
            line.connect("\0" + path[1:] if path[0] == "@" else path)
            line.sendall(state.encode())
    except OSError:
        return False
    return True


def ready(status: str) -> bool:
    """The service runs (again)."""
    return notify(f"READY=1\nSTATUS={status}")


def reloading() -> bool:
    """The service reads its configuration again; `ready` ends that."""
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    return notify(f"RELOADING=1\nMONOTONIC_USEC={now}")


def stopping() -> bool:
    """The service ends in order."""
    return notify("STOPPING=1")


def watchdog_interval(environment: Mapping[str, str] = os.environ) -> float | None:
    """Seconds between two `notify("WATCHDOG=1")`, half of what systemd waits; None: it does not."""
    text, owner = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not text.isdecimal() or int(text) == 0 or owner not in ("", str(os.getpid())):
        return None
    return int(text) / 2e6
