"""Template and Options Template Records (RFC 7011, 3.4), and their withdrawal (8.1)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ..spec.elements import Element
from .errors import MalformedMessageError

__all__ = [
    "FIRST_TEMPLATE_ID", "OPTIONS_TEMPLATE_SET", "TEMPLATE_SET", "VARIABLE", "Field", "Refusal",
    "Template", "Withdrawal", "encode_template", "parse_template_set", "template_of",
]

TEMPLATE_SET: Final = 2
OPTIONS_TEMPLATE_SET: Final = 3
FIRST_TEMPLATE_ID: Final = 256
VARIABLE: Final = 65_535
"""Field length that says: each value carries its own (RFC 7011, 7)."""

_PAIR: Final = struct.Struct("!HH")
_PEN: Final = struct.Struct("!I")
_ENTERPRISE_BIT: Final = 0x8000


@dataclass(frozen=True, slots=True)
class Field:
    """A Field Specifier. `enterprise` is None for the IANA registry, else the PEN."""

    number: int
    length: int
    enterprise: int | None = None


@dataclass(frozen=True)
class Template:
    """A Template, or with `scope` above 0 an Options Template whose first fields are scope."""

    id: int
    fields: tuple[Field, ...]
    scope: int = 0

    @cached_property
    def variable(self) -> bool:
        return any(field.length == VARIABLE for field in self.fields)

    @cached_property
    def minimum_octets(self) -> int:
        """Octets of the shortest record: a variable field takes at least its length octet."""
        return sum(1 if field.length == VARIABLE else field.length for field in self.fields)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A Template id that is no longer in use; None withdraws all of that kind."""

    id: int | None
    options: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record of a Template Set that cannot be used, and why; `id` is what it would define."""

    id: int
    reason: str


def template_of(
    template_id: int, elements: Iterable[Element], pen: int, scope: int = 0,
) -> Template:
    """The Template of elements in their full length. An element of 0 octets goes out variable."""
    return Template(template_id, tuple(
        Field(element.number, element.octets or VARIABLE, pen if element.enterprise else None)
        for element in elements), scope)


def encode_template(template: Template) -> bytes:
    """The Template Record, without its Set."""
    parts = [_PAIR.pack(template.id, len(template.fields))]
    if template.scope:
        parts.append(template.scope.to_bytes(2, "big"))
    for field in template.fields:
        if field.enterprise is None:
            parts.append(_PAIR.pack(field.number, field.length))
        else:
            parts.append(_PAIR.pack(field.number | _ENTERPRISE_BIT, field.length))
            parts.append(_PEN.pack(field.enterprise))
    return b"".join(parts)


class _Reader:
    def __init__(self, body: memoryview) -> None:
        self.body, self.position = body, 0

    @property
    def left(self) -> int:
        return len(self.body) - self.position

    def pair(self) -> tuple[int, int]:
        self._need(_PAIR.size)
        first, second = _PAIR.unpack_from(self.body, self.position)
        self.position += _PAIR.size
        return first, second

    def number(self, octets: int) -> int:
        self._need(octets)
        self.position += octets
        return int.from_bytes(self.body[self.position - octets:self.position], "big")

    def _need(self, octets: int) -> None:
        if self.left < octets:
            raise MalformedMessageError(
                "truncated_template", "a Template Record runs past the end of its Set")


def parse_template_set(
    body: memoryview, options: bool, max_fields: int,
) -> list[Template | Withdrawal | Refusal]:
    """The records of a Template Set's body, in order; padding is passed over.

    Raises MalformedMessageError where a record runs past the Set's end.
    """
    reader = _Reader(body)
    records: list[Template | Withdrawal | Refusal] = []
    while reader.left >= _PAIR.size:
        if not any(body[reader.position:]):
            break
        records.append(_parse_record(reader, options, max_fields))
    return records


def _parse_record(
    reader: _Reader, options: bool, max_fields: int,
) -> Template | Withdrawal | Refusal:
    template_id, count = reader.pair()
    if count == 0:
        if template_id == (OPTIONS_TEMPLATE_SET if options else TEMPLATE_SET):
            return Withdrawal(None, options)
        if template_id < FIRST_TEMPLATE_ID:
            return Refusal(template_id, "template_id_reserved")
        return Withdrawal(template_id, options)
    scope = reader.number(2) if options else 0
    # Each specifier takes four octets at least: a count beyond the Set cannot make work.
    if count * _PAIR.size > reader.left:
        raise MalformedMessageError(
            "truncated_template", "a Template Record runs past the end of its Set")
    fields = []
    for _ in range(count):
        number, length = reader.pair()
        enterprise = reader.number(4) if number & _ENTERPRISE_BIT else None
        fields.append(Field(number & ~_ENTERPRISE_BIT, length, enterprise))
    if template_id < FIRST_TEMPLATE_ID:
        return Refusal(template_id, "template_id_reserved")
    if options and not 1 <= scope <= count:
        return Refusal(template_id, "scope_count")
    if count > max_fields:
        return Refusal(template_id, "template_fields_limit")
    template = Template(template_id, tuple(fields), scope)
    if template.minimum_octets == 0:
        return Refusal(template_id, "template_without_octets")
    if template.minimum_octets > 65_515:
        return Refusal(template_id, "template_too_long")
    return template
