"""Provisioning as data: each value is checked when it is made, the whole by `problems`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address

from rocetap.errors import RocetapError
from rocetap.spec.keys import pack_key
from rocetap.spec.registers import MAX_PORTS
from rocetap.wording import as_toml

__all__ = [
    "LIMITS", "MAX_WINDOW", "Address", "Connection", "Port", "Provisioning", "ProvisioningError",
    "check_number", "twice",
]

Address = IPv4Address | IPv6Address

MAX_WINDOW = 1 << 22
"""Largest history width W (sequence profile, Bounded Sequence Observation Algorithm)."""

LIMITS: dict[str, tuple[int, int]] = {
    "observation_domain": (0, 0xFFFF_FFFF),
    "observation_point": (0, 0xFFFF_FFFF_FFFF_FFFF),
    "interface": (0, 0xFFFF_FFFF),
    "destination_qp": (0, 0xFF_FFFF),
    "partition_key": (0, 0xFFFF),
    "vlan": (0, 4095),
    "inner_vlan": (0, 4095),
    "window": (1, MAX_WINDOW),
    "generation": (0, 0xFFFF_FFFF_FFFF_FFFF),
}
"""Least and greatest value of every number (RFC 7011, 3.1; IBTA Vol 1, 9.2; IEEE 802.1Q)."""


class ProvisioningError(RocetapError):
    """A provisioning that cannot be used. `problems` has one line each; str() is all of them."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def check_number(name: str, value: object) -> str | None:
    """Why `value` cannot be the number `name`, or None."""
    least, most = LIMITS[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        return f"{name} is {as_toml(value)}, must be a whole number from {least} to {most}"
    return None


def _check(owner: object, *names: str) -> None:
    problems = [problem for name in names
                if (problem := check_number(name, getattr(owner, name)))]
    if problems:
        raise ProvisioningError(problems)


@dataclass(frozen=True)
class Port:
    """A port of the probe. `interface` is exported as ingressPhysicalInterface."""

    name: str
    interface: int

    def __post_init__(self) -> None:
        _check(self, "interface")
        if not isinstance(self.name, str) or not self.name:
            raise ProvisioningError(
                [f"name is {as_toml(self.name)}, must be a text that is not empty"])


@dataclass(frozen=True)
class Connection:
    """One unidirectional RC request stream. The UDP source port is no part of it.

    `partition_key` is all 16 bits, the membership bit among them. `vlan` is the VLAN id of the
    only or outer tag, 0 for untagged and priority-tagged; `inner_vlan` that of the inner of two
    tags, else 0. `window` is W in PSN positions. `observation_point` None means the
    provisioning's own. `generation` is any number that a trusted source gives this generation of
    the connection: another number in a provisioning that is read again closes the epoch and begins
    a new one, and enables a connection again that a violation had disabled.
    `generation_verified` says that the source tells of each new generation; without it every report
    carries generationUnverified.
    """

    source: Address
    destination: Address
    destination_qp: int
    partition_key: int = 0xFFFF
    vlan: int = 0
    inner_vlan: int = 0
    window: int = 64
    observation_point: int | None = None
    generation_verified: bool = False
    generation: int = 0

    def __post_init__(self) -> None:
        _check(self, "destination_qp", "partition_key", "vlan", "inner_vlan", "window",
               "generation")
        if self.observation_point is not None:
            _check(self, "observation_point")
        if self.source.version != self.destination.version:
            raise ProvisioningError([
                f"source {self.source} and destination {self.destination} are of different "
                f"families, must both be IPv4 or both IPv6"])

    def key(self) -> int:
        """The key as the gateware compares it: rocetap.spec.keys.pack_key."""
        return pack_key(
            source=int(self.source), destination=int(self.destination), qp=self.destination_qp,
            pkey=self.partition_key, outer_vid=self.vlan, inner_vid=self.inner_vlan,
            ipv6=self.source.version == 6)


@dataclass(frozen=True)
class Provisioning:
    """All that one probe shall watch. A key or a port that comes twice raises."""

    observation_domain: int = 1
    observation_point: int = 1
    ports: list[Port] = field(default_factory=lambda: [Port("port0", 1)])
    connections: list[Connection] = field(default_factory=list)

    def __post_init__(self) -> None:
        _check(self, "observation_domain", "observation_point")
        problems = self._problems()
        if problems:
            raise ProvisioningError(problems)

    def point_of(self, connection: Connection) -> int:
        """The observationPointId of a connection."""
        if connection.observation_point is None:
            return self.observation_point
        return connection.observation_point

    def _problems(self) -> list[str]:
        found = []
        if not 1 <= len(self.ports) <= MAX_PORTS:
            found.append(f"{len(self.ports)} ports, must be 1 to {MAX_PORTS}")
        for index, before in twice([port.name for port in self.ports]):
            found.append(f"port {index + 1} has the name of port {before + 1}, "
                         f"{self.ports[index].name!r}; change one")
        for index, before in twice([port.interface for port in self.ports]):
            found.append(f"port {index + 1} has the interface of port {before + 1}, "
                         f"{self.ports[index].interface}; change one")
        for index, before in twice([connection.key() for connection in self.connections]):
            found.append(f"connection {index + 1} has the source, destination, QP, P_Key and VLANs "
                         f"of connection {before + 1}; remove one of the two")
        return found


def twice(values: Sequence[Hashable]) -> list[tuple[int, int]]:
    """(index, index of its first like) of each value that stood before."""
    first: dict[Hashable, int] = {}
    return [(index, before) for index, value in enumerate(values)
            if (before := first.setdefault(value, index)) != index]
