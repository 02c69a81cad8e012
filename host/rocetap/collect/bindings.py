"""Template bindings: which Template carries which profile's records, checked before any record is.

A Template with none of the profiles' own elements is foreign: accepted, its records passed over.
One that has some, but not as its profile asks, is refused with the reason.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..ipfix.decoding import unsigned
from ..ipfix.flowkeys import KEY_NAMES
from ..ipfix.records import PFC_READING, SEQUENCE_REPORT, Records
from ..ipfix.registry import Registry
from ..ipfix.templates import VARIABLE, Template
from ..ipfix.wire import INTEGERS, PFC_COLUMNS, SEQUENCE_COLUMNS, Decoder
from ..spec.elements import BY_NAME, SEQUENCE_IPV4, SEQUENCE_IPV6, DataType, Element

__all__ = ["Foreign", "PfcBinding", "Refused", "SequenceBinding", "bind"]

_VLAN: Final = ("dot1qVlanId", "dot1qCustomerVlanId")
_OWN_SEQUENCE: Final = frozenset(e.name for e in SEQUENCE_IPV4 if e.enterprise)
_OWN_PFC: Final = frozenset({"pfcPriority", "pfcControlFrameTotalCount"})
_INTERFACES: Final = ("ingressPhysicalInterface", "egressPhysicalInterface")
_PFC_SCOPE: Final = ("observationPointId", "pfcPriority")
_PFC_DATA: Final = ("observationTimeMilliseconds", "pfcControlFrameTotalCount")


@dataclass(frozen=True)
class Foreign:
    """Not ours: passed over."""


@dataclass(frozen=True)
class Refused:
    """Ours, but not as the profile asks."""

    reason: str


class _Columns:
    """Reads records of a Template into columns, the fast way when every field has full length."""

    def __init__(
        self, template: Template, names: tuple[str, ...], columns: dict[str, str],
        dtype: np.dtype[np.void],
    ) -> None:
        self._columns, self._dtype = columns, dtype
        offsets = np.cumsum([0, *(f.length for f in template.fields)]).tolist()
        self._fields = [(BY_NAME[name], offsets[index], template.fields[index].length)
                        for index, name in enumerate(names) if name in columns]
        full = all(element.octets == length for element, _, length in self._fields)
        self._decoder = None if template.variable or not full else Decoder(
            [(element, offset) for element, offset, _ in self._fields],
            template.minimum_octets, columns, dtype)

    def read(self, records: Records) -> Records:
        if self._decoder is not None:
            return self._decoder(records)
        out = np.zeros(len(records), self._dtype)
        for element, _, _ in self._fields:
            column = self._columns[element.name]
            if element.data_type in INTEGERS:
                out[column] = unsigned(records, element.name)
            else:
                size = self._dtype[column].itemsize
                padded = np.zeros((len(records), size), np.uint8)
                octets = np.ascontiguousarray(records[element.name]).view(np.uint8)
                padded[:, size - element.octets:] = octets.reshape(len(records), element.octets)
                out[column] = padded.view(f"V{size}").reshape(-1)
        return out


class SequenceBinding:
    """A Template of the sequence profile."""

    def __init__(self, template: Template, names: tuple[str, ...]) -> None:
        self.ipv6: Final = "sourceIPv6Address" in names
        self.keys: Final = sum(1 << index for index, name in enumerate(names)
                               if name in KEY_NAMES)
        """The Flow Keys that the profile asks for, as flowKeyIndicator."""
        self._columns = _Columns(template, names, SEQUENCE_COLUMNS, SEQUENCE_REPORT)

    def read(self, records: Records) -> Records:
        """Decoded records as SEQUENCE_REPORT."""
        reports = self._columns.read(records)
        reports["ipv6"] = self.ipv6
        return reports


class PfcBinding:
    """An Options Template of the PFC Counter Record."""

    def __init__(self, template: Template, names: tuple[str, ...]) -> None:
        self.transmitted: Final = "egressPhysicalInterface" in names
        self._columns = _Columns(template, names, PFC_COLUMNS, PFC_READING)

    def read(self, records: Records) -> Records:
        """Decoded records as PFC_READING."""
        readings = self._columns.read(records)
        readings["transmitted"] = self.transmitted
        return readings


def bind(
    template: Template, registry: Registry, reduced_lengths: bool,
) -> SequenceBinding | PfcBinding | Foreign | Refused:
    """The binding of one Template. `reduced_lengths`: whether the sequence profile's integers may
    be shorter than their types (always so for PFC, RFC 7011, 6.2)."""
    names = tuple(registry.name(field) for field in template.fields)
    own = set(names)
    if own & _OWN_SEQUENCE and own & _OWN_PFC:
        return Refused("two_profiles")
    if own & _OWN_SEQUENCE:
        reason = _sequence_reason(template, names, reduced_lengths)
        return Refused(reason) if reason else SequenceBinding(template, names)
    if own & _OWN_PFC:
        reason = _pfc_reason(template, names)
        return Refused(reason) if reason else PfcBinding(template, names)
    return Foreign()


def _sequence_reason(template: Template, names: tuple[str, ...], reduced: bool) -> str | None:
    if template.scope:
        return "sequence_in_options_template"
    counts = Counter(names)
    families = [any(name.endswith(f"{family}Address") for name in names if name in BY_NAME)
                for family in ("IPv4", "IPv6")]
    if all(families):
        return "two_address_families"
    fields = [e.name for e in (SEQUENCE_IPV6 if families[1] else SEQUENCE_IPV4)]
    if any(counts[name] == 0 for name in fields):
        return "field_missing"
    if any(counts[name] > 1 for name in (*fields, *_VLAN)):
        return "field_repeated"
    return _length_reason(template, names, {*fields, *_VLAN}, reduced)


def _pfc_reason(template: Template, names: tuple[str, ...]) -> str | None:
    scope, data = Counter(names[:template.scope]), Counter(names[template.scope:])
    both = scope + data
    interfaces = [name for name in _INTERFACES if both[name]]
    if len(interfaces) != 1:
        return "physical_interface"
    wanted = (*_PFC_SCOPE, interfaces[0])
    if any(both[name] == 0 for name in (*wanted, *_PFC_DATA)):
        return "field_missing"
    if any(both[name] > 1 for name in (*wanted, *_PFC_DATA)):
        return "field_repeated"
    if any(scope[name] != 1 for name in wanted) or any(data[name] != 1 for name in _PFC_DATA):
        return "field_role"
    return _length_reason(template, names, {*wanted, *_PFC_DATA}, True)


def _length_reason(
    template: Template, names: tuple[str, ...], used: set[str], reduced: bool,
) -> str | None:
    for field, name in zip(template.fields, names, strict=True):
        if name in used and not _length_fits(BY_NAME[name], field.length, reduced):
            return "field_length"
    return None


def _length_fits(element: Element, length: int, reduced: bool) -> bool:
    """Reduced-size encoding is for integers, not for times and addresses (RFC 7011, 6.2)."""
    if length == element.octets:
        return True
    may = element.data_type in INTEGERS and element.data_type != DataType.dateTimeMilliseconds
    return reduced and may and length != VARIABLE and 1 <= length < element.octets
