"""Files that a command writes: whole or not at all, and nothing else is ever replaced.

A regular file is written beside its place and moved there, so that whoever reads it finds the old
one or the new one. Whatever else stands there (a device, a FIFO, a socket, what a process has open
under /dev/fd) is written as it is: moving a file into its place would destroy it. Symbolic links
are followed and stay.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from rocetap.errors import RocetapError

__all__ = ["is_replaceable", "refuse_existing", "refuse_input", "remove_written", "write_whole",
           "written"]

_DESCRIPTORS: Final = re.compile(r"/proc/[^/]+(/task/[^/]+)?/fd")
_LINKS: Final = 40
"""So many links in a row are a loop, as for the system itself."""


@contextlib.contextmanager
def written(path: Path, *, mode: int | None = None) -> Iterator[BinaryIO]:
    """A stream whose octets become the file when the block ends well.

    `mode`: permissions of the file; without it those of the file that is replaced, or 0o666 less
    the umask. Raises RocetapError for every OSError, also one of the block.
    """
    try:
        if not is_replaceable(path):
            with path.open("wb") as stream:
                yield stream
            return
        with _beside(_target(path), mode) as stream:
            yield stream
    except OSError as error:
        raise RocetapError(f"cannot write {path}: {error.strerror or error}") from None


def write_whole(path: Path, content: bytes | str, *, mode: int | None = None) -> None:
    """The file with this content, a text in UTF-8; see `written`."""
    with written(path, mode=mode) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


def remove_written(path: Path) -> None:
    """Removes a regular file that was written; links and everything else stay."""
    with contextlib.suppress(OSError):
        if path.exists() and is_replaceable(path):
            _target(path).unlink()


def refuse_input(option: str, output: Path, what: str, *inputs: Path) -> None:
    """Raises RocetapError when the file to be written is one of those that are read, under
    whatever name, also where none is there yet: it would be gone before it is read."""
    for path in inputs:
        with contextlib.suppress(OSError):
            if os.path.realpath(output) == os.path.realpath(path) or output.samefile(path):
                raise RocetapError(f"{option} {output}: is {what}; give another file")


def refuse_existing(option: str, output: Path, *, force: bool) -> None:
    """Raises RocetapError when a file would be replaced and nobody said that it may."""
    with contextlib.suppress(OSError):
        if not force and output.exists() and is_replaceable(output):
            raise RocetapError(f"{option} {output}: exists; give --force to replace it")


def is_replaceable(path: Path) -> bool:
    """Whether a file may be moved to that place: nothing is there, or a regular file under a name
    of its own. Raises OSError for a place that cannot be looked at."""
    if _is_descriptor(path):
        return False
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _is_descriptor(path: Path) -> bool:
    """Whether the path leads to a file that a process has open, as /dev/stdout does."""
    for _ in range(_LINKS):
        folder = os.path.realpath(path.parent)
        if _DESCRIPTORS.fullmatch(folder):
            return True
        if not path.is_symlink():
            return False
        path = Path(folder) / path.readlink()
    return False


@contextlib.contextmanager
def _beside(place: Path, mode: int | None) -> Iterator[BinaryIO]:
    beside = place.with_name(f".rocetap-{os.getpid()}-{secrets.token_hex(4)}")
    kept = _kept_mode(place)
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL,
                             0o666 if mode is None else mode)
    except PermissionError:
        if kept is None:
            raise
        with place.open("wb") as stream:   # the folder takes no new file, the file new content
            yield stream
        return
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if mode is None and kept is not None:
                os.fchmod(descriptor, kept)
            yield stream
            stream.flush()
            os.fsync(descriptor)
        _move(beside, place)
    finally:
        beside.unlink(missing_ok=True)


def _kept_mode(place: Path) -> int | None:
    """Permissions of the file that is there; one that may not be written is not replaced."""
    try:
        mode = stat.S_IMODE(place.stat().st_mode)
    except FileNotFoundError:
        return None
    if not os.access(place, os.W_OK, effective_ids=True):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return mode


def _move(beside: Path, place: Path) -> None:
    try:
        beside.replace(place)
    except OSError as error:
        if error.errno != errno.EBUSY:     # a file that is a mount of its own keeps its place
            raise
        shutil.copyfile(beside, place)
