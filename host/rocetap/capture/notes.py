"""Odd things that do not stop the reading: the first of each kind in words, the rest counted."""

from __future__ import annotations

__all__ = ["Notes"]


class Notes:
    """Bounded by its kinds: a file with a million odd records gives one line."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._count: dict[str, int] = {}

    def add(self, kind: str, line: str, count: int = 1) -> None:
        """`line` is kept when it is the first of its kind."""
        self._first.setdefault(kind, line)
        self._count[kind] = self._count.get(kind, 0) + count

    def lines(self) -> list[str]:
        """One line a kind, in order of appearance."""
        return [line + (f" ({self._count[kind] - 1} more alike)" if self._count[kind] > 1 else "")
                for kind, line in self._first.items()]
