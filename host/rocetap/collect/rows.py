"""Stored rows as dictionaries by Information Element names: what `jsonl` prints."""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from ..ipfix.wire import PFC_COLUMNS, SEQUENCE_COLUMNS
from ..spec.elements import PFC_RECEIVED, PFC_TRANSMITTED, SEQUENCE_IPV4, SEQUENCE_IPV6
from .outcomes import EndReason, Outcome, Qualification
from .rules import Rule

__all__ = ["ROW_NAMES", "dropped_row", "pfc_row", "raw_row", "sequence_row", "session_row"]

_ORIGIN: Final = ("transportSession", "observationDomainId", "exporter")
ROW_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "sequence": tuple(dict.fromkeys((
        "record", *(element.name for element in (*SEQUENCE_IPV4[:3], *SEQUENCE_IPV6[1:])),
        "dot1qVlanId", "dot1qCustomerVlanId", "outcome", "qualifications", "reportsReceived",
        "reportsMissing", "invalidReason", "endReason", *_ORIGIN))),
    "pfc": tuple(dict.fromkeys((
        "record", *(element.name for element in (*PFC_RECEIVED[:2], *PFC_TRANSMITTED[1:])),
        *_ORIGIN))),
    "raw": ("record", "rule", "rdmaSequenceEpochId", "fields", "octets", *_ORIGIN),
    "dropped": ("record", "reason", "count", "transportSession", "exporter"),
    "sessions": ("record", "transportSession", "exporter", "address", "enterpriseNumber",
                 "startedMilliseconds", "endedMilliseconds", "endReason"),
}
"""Kind -> every name that a row of it may have, in the order of columns."""

_WIDE: Final = (1 << 64) - 1
_KEY_COLUMNS: Final = {"observation_point", "source", "destination", "qp", "pkey", "epoch_id"}
# Columns of a report that are known even when none was accepted.


def sequence_row(stored: dict[str, Any]) -> dict[str, Any]:
    """An epoch: `record`, the profile's fields by name (addresses as text, VLAN keys only when
    the connection has them), then `outcome` and what qualifies it:

    qualifications (names of Qualification), reportsReceived, reportsMissing, invalidReason (name
    of the Rule, only when invalid), endReason (only without a final report), transportSession,
    observationDomainId, exporter. Without any accepted report only the key fields are there.
    """
    ipv6 = bool(stored["ipv6"])
    row: dict[str, Any] = {"record": "sequence"}
    for element in SEQUENCE_IPV6 if ipv6 else SEQUENCE_IPV4:
        column = SEQUENCE_COLUMNS[element.name]
        if stored["reports"] or column in _KEY_COLUMNS:
            value = stored[column]
            row[element.name] = (_address(value, ipv6) if column in ("source", "destination")
                                 else value & _WIDE)
    if stored["vid"] or stored["cvid"]:
        row["dot1qVlanId"], row["dot1qCustomerVlanId"] = stored["vid"], stored["cvid"]
    outcome = Outcome(stored["outcome"])
    row["outcome"] = outcome.name
    row["qualifications"] = [
        flag.name for flag in Qualification if stored["qualifications"] & flag]
    row["reportsReceived"] = stored["reports"] & _WIDE
    row["reportsMissing"] = stored["missing"] & _WIDE
    if outcome is Outcome.invalid:
        row["invalidReason"] = Rule(stored["rule"]).name.lower()
    if stored["ended"]:
        row["endReason"] = EndReason(stored["ended"]).name
    return row | _origin(stored)


def pfc_row(stored: dict[str, Any]) -> dict[str, Any]:
    """A reading: `record` and the PFC Counter Record's fields by name, then transportSession,
    observationDomainId and exporter."""
    row: dict[str, Any] = {"record": "pfc"}
    for element in PFC_TRANSMITTED if stored["transmitted"] else PFC_RECEIVED:
        row[element.name] = stored[PFC_COLUMNS[element.name]] & _WIDE
    return row | _origin(stored)


def raw_row(stored: dict[str, Any]) -> dict[str, Any]:
    """A record kept raw: its octets as hex digits, and name and length of each of its fields."""
    return {"record": "raw", "rule": stored["rule"],
            "rdmaSequenceEpochId": stored["epoch_id"] & _WIDE, "fields": stored["fields"],
            "octets": stored["octets"].hex()} | _origin(stored)


def dropped_row(stored: dict[str, Any]) -> dict[str, Any]:
    """What the collector passed over or dropped in one Transport Session, for one reason."""
    return {"record": "dropped", "reason": stored["reason"], "count": stored["count"],
            "transportSession": stored["session_id"], "exporter": stored["exporter"]}


def session_row(stored: dict[str, Any]) -> dict[str, Any]:
    """A Transport Session; times in ms since 1970-01-01 UTC, None for the end of one that
    lasts."""
    return {"record": "session", "transportSession": stored["id"],
            "exporter": stored["exporter"], "address": stored["address"],
            "enterpriseNumber": stored["pen"], "startedMilliseconds": stored["started_ms"],
            "endedMilliseconds": stored["ended_ms"], "endReason": stored["end_reason"]}


def _origin(stored: dict[str, Any]) -> dict[str, Any]:
    return {"transportSession": stored["session_id"], "observationDomainId": stored["domain"],
            "exporter": stored["exporter"]}


def _address(octets: bytes, ipv6: bool) -> str:
    return str(ipaddress.IPv6Address(octets) if ipv6 else ipaddress.IPv4Address(octets[-4:]))
