"""Whether a file has changed, by its place, size and time; pure but for os.stat."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["FileWatch"]


class FileWatch:
    """Looks at one file whenever it is asked.

    A change counts once it has stayed the same for a whole `look` interval, so that a file that is
    being written is not taken half.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = self._pending = self._state()

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def changed(self) -> bool:
        """True once for each change: the file is there, and as it was at the look before."""
        state = self._state()
        settled, self._pending = state == self._pending, state
        if state is None or state == self._known or not settled:
            return False
        self._known = state
        return True

    def taken(self) -> None:
        """The file was read for another reason: as it is now, it is no change."""
        self._known = self._pending = self._state()
