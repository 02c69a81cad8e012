"""Two network namespaces with a cable between them, for tests of a path that goes silent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Cable", "namespaces_permitted"]

_CLONE_NEWNET = 0x4000_0000
_NOWHERE = "02:00:00:00:00:fe"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


def _enter(file: Path) -> None:
    with open(file, "rb") as handle:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(handle.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


def namespaces_permitted() -> bool:
    """Whether this process may make a cable; decided by making one."""
    try:
        with Cable.laid() as cable, cable.inside(0):
            return True
    except (OSError, subprocess.SubprocessError):
        return False


class Cable:
    """Ends 0 and 1, `addresses` theirs. Sockets made `inside` an end stay there."""

    addresses = ("192.0.2.1", "192.0.2.2")

    def __init__(self) -> None:
        self.names = tuple(f"rocetap-{os.getpid()}-{end}" for end in range(2))

    @classmethod
    @contextlib.contextmanager
    def laid(cls) -> Iterator[Cable]:
        """Makes the namespaces, removes them at the end."""
        cable = cls()
        try:
            for name in cable.names:
                _ip("netns", "add", name)
            _ip("-n", cable.names[0], "link", "add", "v0", "type", "veth", "peer", "name", "v0",
                "netns", cable.names[1])
            for name, address in zip(cable.names, cable.addresses, strict=True):
                _ip("-n", name, "address", "add", f"{address}/24", "dev", "v0")
                _ip("-n", name, "link", "set", "v0", "up")
                _ip("-n", name, "link", "set", "lo", "up")
            yield cable
        finally:
            for name in cable.names:
                subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    @contextlib.contextmanager
    def inside(self, end: int) -> Iterator[None]:
        """This thread is at that end meanwhile."""
        with open("/proc/thread-self/ns/net", "rb") as before:
            _enter(Path("/run/netns") / self.names[end])
            try:
                yield
            finally:
                _enter(Path(f"/proc/self/fd/{before.fileno()}"))

    def cut(self) -> None:
        """Frames go to nobody from now on, in both directions, and nothing says so."""
        for end, name in enumerate(self.names):
            _ip("-n", name, "neigh", "replace", self.addresses[1 - end], "lladdr", _NOWHERE,
                "dev", "v0", "nud", "permanent")

    def mend(self) -> None:
        """As it was before `cut`."""
        for end, name in enumerate(self.names):
            _ip("-n", name, "neigh", "del", self.addresses[1 - end], "dev", "v0")
