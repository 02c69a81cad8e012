"""Which Information Elements we know, by enterprise number and element number."""

from __future__ import annotations

from ..spec.elements import ELEMENTS, Element
from .flowkeys import FLOW_KEYS
from .templates import Field
from .typeinfo import TYPE_INFO

__all__ = ["Registry"]


class Registry:
    """Elements of the profiles under one PEN, and those of the protocol's own options."""

    def __init__(self, pen: int) -> None:
        self.pen = pen
        self._elements: dict[tuple[int | None, int], Element] = {
            (pen if element.enterprise else None, element.number): element
            for element in (*ELEMENTS, *FLOW_KEYS, *TYPE_INFO)}

    def element(self, field: Field) -> Element | None:
        """The element of a Field Specifier; None when it is foreign."""
        return self._elements.get((field.enterprise, field.number))

    def name(self, field: Field) -> str:
        """The element's name, or `ieNUMBER` or `ePEN.NUMBER` for a foreign one."""
        element = self.element(field)
        if element is not None:
            return element.name
        if field.enterprise is None:
            return f"ie{field.number}"
        return f"e{field.enterprise}.{field.number}"
