"""Built things by key, each in a folder of its own, made once even by two processes at once."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["Cache", "default_cache_folder"]

_KEEP = 16
"""Folders kept; the least recently used beyond go, if they were not used for a day."""

_DAY_S = 86_400.0


def default_cache_folder() -> Path:
    """``build/sim`` of a clone, else the user's cache folder.

    The package lies in a clone when the project's pyproject.toml stands two folders above it.
    """
    root = Path(__file__).resolve().parents[2]
    if (root / "pyproject.toml").is_file() and (root / "hdl" / "rocetap_hdl").is_dir():
        return root / "build" / "sim"
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "rocetap" / "sim"


class Cache:
    """Folders by key below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def get(self, key: str, build: Callable[[Path], None],
            waiting: Callable[[], None] = lambda: None) -> Path:
        """The folder of `key`; if there is none yet, `build` fills an empty one first.

        It appears under its key only when `build` has returned, by one rename. Another process
        that builds the same key is waited for (`waiting` is called once before that) and its
        result is taken. When `build` raises, nothing remains.
        """
        target = self.root / key
        if target.is_dir():
            os.utime(target)
            return target
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / f"{key}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.is_dir():
                self._build(target, build)
                self._prune(target)
        return target

    def _build(self, target: Path, build: Callable[[Path], None]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="building-", dir=self.root))
        try:
            build(folder)
            folder.rename(target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _prune(self, newest: Path) -> None:
        built = sorted((path for path in self.root.iterdir() if path.is_dir()),
                       key=lambda path: path.stat().st_mtime, reverse=True)
        for path in built[_KEEP:]:
            if path != newest and time.time() - path.stat().st_mtime > _DAY_S:
                shutil.rmtree(path, ignore_errors=True)
                (self.root / f"{path.name}.lock").unlink(missing_ok=True)
