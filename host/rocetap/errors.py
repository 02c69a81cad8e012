"""The base of every error that a user can meet: one clear line and an exit code.

Commands turn a `RocetapError` into one line on stderr and leave with its `exit_code`; anything
else that reaches a command's top is a bug and keeps its traceback.
"""

from __future__ import annotations

__all__ = ["RocetapError"]


class RocetapError(Exception):
    """`str(error)` is the whole message: what is wrong, where, and what to do, on one line."""

    exit_code: int = 2

    def __init__(self, message: str, *, exit_code: int | None = None) -> None:
        super().__init__(message)
        if exit_code is not None:
            self.exit_code = exit_code
