"""Information Elements of the two profiles, and the enterprise numbers they travel under.

The profiles' own elements have no assigned identifiers, so they are enterprise-specific: exporter
and collector share this mapping under a configured Private Enterprise Number. The default, 32473,
is reserved for documentation (RFC 5612); a deployment sets its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

__all__ = [
    "BY_NAME", "DEFAULT_PEN", "DOT1Q_CUSTOMER_VLAN_ID", "DOT1Q_VLAN_ID", "ELEMENTS",
    "ENTERPRISE_ELEMENTS", "PFC_RECEIVED", "PFC_TRANSMITTED", "SEQUENCE_IPV4", "SEQUENCE_IPV6",
    "DataType", "Element", "Semantics", "Units",
]

DEFAULT_PEN: Final = 32473


class DataType(IntEnum):
    """Abstract data types by their IANA number (RFC 5610, 3.1)."""

    octetArray = 0
    unsigned8 = 1
    unsigned16 = 2
    unsigned32 = 3
    unsigned64 = 4
    dateTimeMilliseconds = 15
    string = 13
    ipv4Address = 18
    ipv6Address = 19


class Semantics(IntEnum):
    """Data type semantics by their IANA number (RFC 5610, 3.2)."""

    default = 0
    quantity = 1
    totalCounter = 2
    deltaCounter = 3
    identifier = 4
    flags = 5


class Units(IntEnum):
    """Units by their IANA number (RFC 5610, 3.3)."""

    none = 0
    packets = 3
    milliseconds = 6
    frames = 13


@dataclass(frozen=True)
class Element:
    """One Information Element with the length this project encodes, in octets."""

    name: str
    number: int
    octets: int
    data_type: DataType
    semantics: Semantics = Semantics.default
    units: Units = Units.none
    enterprise: bool = False
    """Whether `number` counts under the configured PEN."""
    description: str = ""


_T, _S, _U = DataType, Semantics, Units

_STANDARD: Final = (
    Element("sourceIPv4Address", 8, 4, _T.ipv4Address),
    Element("destinationIPv4Address", 12, 4, _T.ipv4Address),
    Element("sourceIPv6Address", 27, 16, _T.ipv6Address),
    Element("destinationIPv6Address", 28, 16, _T.ipv6Address),
    Element("observationPointId", 138, 8, _T.unsigned64, _S.identifier),
    Element("flowStartMilliseconds", 152, 8, _T.dateTimeMilliseconds, units=_U.milliseconds),
    Element("flowEndMilliseconds", 153, 8, _T.dateTimeMilliseconds, units=_U.milliseconds),
    Element("dot1qVlanId", 243, 2, _T.unsigned16, _S.identifier),
    Element("dot1qCustomerVlanId", 245, 2, _T.unsigned16, _S.identifier),
    Element("ingressPhysicalInterface", 252, 4, _T.unsigned32, _S.identifier),
    Element("egressPhysicalInterface", 253, 4, _T.unsigned32, _S.identifier),
    Element("observationTimeMilliseconds", 323, 8, _T.dateTimeMilliseconds,
            units=_U.milliseconds),
)

ENTERPRISE_ELEMENTS: Final = (
    Element("rdmaSequenceEpochId", 1, 8, _T.unsigned64, _S.identifier, enterprise=True,
            description="Nonzero epoch identifier, allocated monotonically across contexts in a "
            "Transport Session and Observation Domain."),
    Element("rdmaSequenceReportId", 2, 8, _T.unsigned64, _S.identifier, enterprise=True,
            description="Snapshot identifier, starting at one, one more per serialized report of "
            "an epoch."),
    Element("rdmaSequenceWindow", 3, 4, _T.unsigned32, _S.quantity, enterprise=True,
            description="Configured history width W in PSN positions, 1 through 4194304."),
    Element("rdmaSequenceFlags", 4, 2, _T.unsigned16, _S.flags, enterprise=True,
            description="Qualification masks: 1 finalEpoch, 2 profileViolation, 4 "
            "captureDiscontinuity, 8 stateExhaustion, 16 serialDiscontinuity, 32 "
            "generationUnverified."),
    Element("skippedPsnTotalCount", 5, 8, _T.unsigned64, _S.totalCounter, enterprise=True,
            description="Sequence positions introduced as PENDING by bounded forward advances."),
    Element("filledPsnTotalCount", 6, 8, _T.unsigned64, _S.totalCounter, enterprise=True,
            description="PENDING positions changed to SEEN while retained."),
    Element("expiredPsnTotalCount", 7, 8, _T.unsigned64, _S.totalCounter, enterprise=True,
            description="PENDING positions retired by high-water advance outside the window."),
    Element("abandonedPsnTotalCount", 8, 8, _T.unsigned64, _S.totalCounter, enterprise=True,
            description="PENDING positions retired at epoch closure."),
    Element("pendingPsnCount", 9, 4, _T.unsigned32, _S.quantity, enterprise=True,
            description="PENDING positions now; at most W-1, and zero on closure."),
    Element("repeatedPsnTotalCount", 10, 8, _T.unsigned64, _S.totalCounter, _U.packets,
            enterprise=True,
            description="Packets whose PSN maps to an already SEEN retained position."),
    Element("requestPacketTotalCount", 11, 8, _T.unsigned64, _S.totalCounter, _U.packets,
            enterprise=True,
            description="All eligible requests accounted to the epoch."),
    Element("unclassifiedLatePacketTotalCount", 12, 8, _T.unsigned64, _S.totalCounter, _U.packets,
            enterprise=True,
            description="Requests that map before the retained positions."),
    Element("rdmaDestinationQP", 13, 4, _T.unsigned32, _S.identifier, enterprise=True,
            description="BTH destination queue pair; the upper eight bits are zero."),
    Element("rdmaPartitionKey", 14, 2, _T.unsigned16, _S.identifier, enterprise=True,
            description="BTH partition key."),
    Element("pfcPriority", 15, 1, _T.unsigned8, _S.identifier, enterprise=True,
            description="Index n, 0 through 7, of the class-enable vector's bit and the "
            "pause-time field."),
    Element("pfcControlFrameTotalCount", 16, 8, _T.unsigned64, _S.totalCounter, _U.frames,
            enterprise=True,
            description="Qualifying PFC frames whose class-enable bit of the priority is set."),
)

ELEMENTS: Final = _STANDARD + ENTERPRISE_ELEMENTS
BY_NAME: Final[dict[str, Element]] = {element.name: element for element in ELEMENTS}


def _fields(names: str) -> tuple[Element, ...]:
    return tuple(BY_NAME[name] for name in names.split())


def _sequence(family: str) -> tuple[Element, ...]:
    return _fields(f"""
        observationPointId source{family}Address destination{family}Address
        rdmaDestinationQP rdmaPartitionKey flowStartMilliseconds flowEndMilliseconds
        rdmaSequenceEpochId rdmaSequenceReportId rdmaSequenceWindow rdmaSequenceFlags
        skippedPsnTotalCount filledPsnTotalCount expiredPsnTotalCount abandonedPsnTotalCount
        pendingPsnCount repeatedPsnTotalCount requestPacketTotalCount
        unclassifiedLatePacketTotalCount""")


SEQUENCE_IPV4: Final = _sequence("IPv4")
"""The nineteen fields in the profile's example order: 120 octets."""
SEQUENCE_IPV6: Final = _sequence("IPv6")
"""The same for IPv6: 144 octets."""

DOT1Q_VLAN_ID: Final = BY_NAME["dot1qVlanId"]
DOT1Q_CUSTOMER_VLAN_ID: Final = BY_NAME["dot1qCustomerVlanId"]
"""Namespace keys, appended to the nineteen for connections on a VLAN: the only or outer tag's VLAN
id, and the inner tag's (0 with one tag)."""

PFC_RECEIVED: Final = _fields("observationPointId ingressPhysicalInterface pfcPriority "
                              "observationTimeMilliseconds pfcControlFrameTotalCount")
"""PFC Counter Record of received frames: the first three are Scope Fields."""
PFC_TRANSMITTED: Final = _fields("observationPointId egressPhysicalInterface pfcPriority "
                                 "observationTimeMilliseconds pfcControlFrameTotalCount")
"""PFC Counter Record of transmitted frames: the first three are Scope Fields."""
