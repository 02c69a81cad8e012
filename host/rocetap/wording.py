"""Numbers with their nouns, as people read them."""

from __future__ import annotations

__all__ = ["counted"]


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
