"""Information Element Type records (RFC 5610): they tell a collector our elements' names and types.

The Options Template and its records go out before any other Template, as some collectors learn
names only for Templates that come after.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ..spec.elements import DataType, Element, Semantics
from .templates import Template, template_of

__all__ = ["TYPE_INFO", "type_record", "type_records", "type_template"]

_T: Final = DataType
TYPE_INFO: Final = (
    Element("privateEnterpriseNumber", 346, 4, _T.unsigned32, Semantics.identifier),
    Element("informationElementId", 303, 2, _T.unsigned16, Semantics.identifier),
    Element("informationElementDataType", 339, 1, _T.unsigned8),
    Element("informationElementSemantics", 344, 1, _T.unsigned8),
    Element("informationElementUnits", 345, 2, _T.unsigned16),
    Element("informationElementRangeBegin", 342, 8, _T.unsigned64, Semantics.quantity),
    Element("informationElementRangeEnd", 343, 8, _T.unsigned64, Semantics.quantity),
    Element("informationElementName", 341, 0, _T.string),
    Element("informationElementDescription", 340, 0, _T.string),
)
"""Fields in order, the first two scope (RFC 5610, 3); 0 octets: variable length."""

_FIXED: Final = struct.Struct("!IHBBHQQ")
_RANGES: Final[dict[str, tuple[int, int]]] = {
    "pfcPriority": (0, 7),
    "rdmaSequenceWindow": (1, 1 << 22),
    "rdmaDestinationQP": (0, (1 << 24) - 1),
}
# A range of 0 to 0 says that the whole range of the type is meant (RFC 5610, 3.4 and 3.5).


def type_template(template_id: int) -> Template:
    """The Options Template of the type records."""
    return template_of(template_id, TYPE_INFO, 0, scope=2)


def type_record(element: Element, pen: int) -> bytes:
    """The type record of one enterprise-specific element."""
    begin, end = _RANGES.get(element.name, (0, 0))
    fixed = _FIXED.pack(pen, element.number, element.data_type, element.semantics, element.units,
                        begin, end)
    return fixed + _string(element.name) + _string(element.description)


def _string(text: str) -> bytes:
    """Variable-length encoding (RFC 7011, 7): one length octet, or 255 and two more."""
    octets = text.encode()
    if len(octets) < 255:
        return bytes([len(octets)]) + octets
    return b"\xff" + len(octets).to_bytes(2, "big") + octets


def type_records(elements: Sequence[Element], pen: int) -> list[bytes]:
    """The type records of all enterprise-specific ones among `elements`."""
    return [type_record(element, pen) for element in elements if element.enterprise]
