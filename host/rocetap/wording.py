"""Numbers with their nouns, as people read them."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["as_toml", "counted"]


_LONGEST_NUMBER: Final = 256
"""Bits of an integer that is shown; Python writes no number of more than 4,300 digits."""


def as_toml(value: Any) -> str:
    """A value as a TOML file would have it, on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, str):
        return f"'{value}'" if value.isprintable() and "'" not in value else repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {as_toml(one)}' for name, one in value.items())}}}"
    return str(value)


def counted(count: int, noun: str) -> str:
    """"1 epoch", "2 epochs"; of "part of a table" the first word takes the plural."""
    if count == 1:
        return f"1 {noun}"
    head, of, rest = noun.partition(" of ")
    return f"{count} {_plural(head)}{of}{rest}"


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "tch", "sh")) else "s")
