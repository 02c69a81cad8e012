"""Data Sets as structured arrays: one NumPy view for fixed lengths, a walk for variable ones."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .errors import MalformedMessageError
from .records import Records
from .registry import Registry
from .templates import VARIABLE, Field, Template
from .wire import INTEGERS

__all__ = ["SetDecoder", "record_bounds", "unsigned"]


class SetDecoder:
    """Decodes Data Sets of one Template.

    `dtype` has one column a field, in the Template's order, named after the element; the second
    field of a name gets `#2` and so on. Integers are big-endian in the length the exporter chose;
    3, 5, 6 or 7 octets and everything else are raw octets; variable-length fields are bytes
    objects.
    """

    def __init__(self, template: Template, registry: Registry) -> None:
        self.template = template
        self.minimum = template.minimum_octets
        self.names: Final = _unique([registry.name(field) for field in template.fields])
        formats = [_format(field, registry) for field in template.fields]
        self.dtype: np.dtype[np.void] = np.dtype(list(zip(self.names, formats, strict=True)))

    def decode(self, body: memoryview) -> Records:
        """The records of a Set's body; what is left and shorter than a record is padding.

        Raises MalformedMessageError where a variable length runs past the Set.
        """
        if not self.template.variable:
            count = len(body) // self.minimum
            records: Records = np.frombuffer(body[:count * self.minimum], self.dtype)
            return records
        rows = []
        position = 0
        while len(body) - position >= self.minimum:
            row, position = self._row(body, position)
            rows.append(row)
        return np.array(rows, self.dtype)

    def _row(self, body: memoryview, position: int) -> tuple[tuple[Any, ...], int]:
        row: list[Any] = []
        for index, field in enumerate(self.template.fields):
            length = field.length
            if length == VARIABLE:
                length, position = _length(body, position)
            end = position + length
            if end > len(body):
                raise MalformedMessageError(
                    "value_past_set", f"a value of {length} octets runs past the end of its Set")
            octets = bytes(body[position:end])
            integer = self.dtype[index].kind == "u"
            row.append(int.from_bytes(octets, "big") if integer else octets)
            position = end
        return tuple(row), position


def unsigned(records: Records, name: str) -> npt.NDArray[np.uint64]:
    """An integer column in host order, whatever length it was sent in (RFC 7011, 6.2)."""
    column = records[name]
    if column.dtype.kind == "u":
        return column.astype(np.uint64)
    octets = column.dtype.itemsize
    padded = np.zeros((len(records), 8), np.uint8)
    padded[:, 8 - octets:] = np.ascontiguousarray(column).view(np.uint8).reshape(-1, octets)
    return padded.view(">u8").reshape(-1).astype(np.uint64)


def record_bounds(template: Template, body: memoryview) -> list[int]:
    """Where each record of a Set's body begins, and where the last one ends. The body is one that
    was decoded before."""
    if not template.variable:
        octets = template.minimum_octets
        return list(range(0, len(body) // octets * octets + 1, octets))
    bounds = [0]
    while len(body) - bounds[-1] >= template.minimum_octets:
        position = bounds[-1]
        for field in template.fields:
            length = field.length
            if length == VARIABLE:
                length, position = _length(body, position)
            position += length
        bounds.append(position)
    return bounds


def _length(body: memoryview, position: int) -> tuple[int, int]:
    """A variable length (RFC 7011, 7), and where the value begins."""
    head = bytes(body[position:position + 3])
    if head and head[0] < 255:
        return head[0], position + 1
    if len(head) == 3:
        return int.from_bytes(head[1:], "big"), position + 3
    raise MalformedMessageError("value_past_set", "a variable length runs past the end of its Set")


def _format(field: Field, registry: Registry) -> str:
    if field.length == VARIABLE:
        return "O"
    element = registry.element(field)
    if element is not None and element.data_type in INTEGERS and field.length in (1, 2, 4, 8):
        return f">u{field.length}"
    return f"V{field.length}"


def _unique(names: list[str]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return tuple(result)
