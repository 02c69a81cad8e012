"""Flow Keys Options Template and its records (RFC 7011, 4.4)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ..spec.elements import DataType, Element, Semantics
from .templates import Template, template_of

__all__ = ["FLOW_KEYS", "KEY_NAMES", "NOT_KEYS", "flow_key_record", "flow_keys_template",
           "key_indicator"]

FLOW_KEYS: Final = (
    Element("templateId", 145, 2, DataType.unsigned16, Semantics.identifier),
    Element("flowKeyIndicator", 173, 8, DataType.unsigned64, Semantics.flags),
)
"""The first is scope."""

KEY_NAMES: Final = frozenset({
    "observationPointId", "sourceIPv4Address", "destinationIPv4Address", "sourceIPv6Address",
    "destinationIPv6Address", "rdmaDestinationQP", "rdmaPartitionKey", "rdmaSequenceEpochId",
    "dot1qVlanId", "dot1qCustomerVlanId",
})
"""Record-level keys of the sequence profile (Identity and Epoch Lifecycle): namespace and epoch
id are among them."""

NOT_KEYS: Final = frozenset({"rdmaSequenceReportId"})
"""What the profile excludes by name."""

_RECORD: Final = struct.Struct("!HQ")


def flow_keys_template(template_id: int) -> Template:
    """The Options Template with templateId as scope and flowKeyIndicator."""
    return template_of(template_id, FLOW_KEYS, 0, scope=1)


def key_indicator(elements: Sequence[Element]) -> int:
    """Bit n is set when the n-th field is a Flow Key, the least significant bit for the first."""
    return sum(1 << index for index, element in enumerate(elements) if element.name in KEY_NAMES)


def flow_key_record(template_id: int, elements: Sequence[Element]) -> bytes:
    """The Data Record that names the Flow Keys of one Template."""
    return _RECORD.pack(template_id, key_indicator(elements))
