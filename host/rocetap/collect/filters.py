"""What of a store is asked for, as SQL conditions."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, Final

from .outcomes import Outcome

__all__ = ["KINDS", "Filters", "Network"]

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

KINDS: Final = ("sequence", "pfc", "raw", "dropped", "sessions")
"""Kinds of rows that can be asked for."""

_APPLIES: Final[dict[str, frozenset[str]]] = {
    "sequence": frozenset({"addresses", "qps", "pkeys", "outcomes", "flags", "since_ms",
                           "until_ms", "domains", "exporters", "sessions"}),
    "pfc": frozenset({"interfaces", "priorities", "since_ms", "until_ms", "domains", "exporters",
                      "sessions"}),
    "raw": frozenset({"domains", "exporters", "sessions", "since_ms", "until_ms"}),
    "dropped": frozenset({"exporters", "sessions", "since_ms", "until_ms"}),
    "sessions": frozenset({"exporters", "sessions", "since_ms", "until_ms"}),
}


@dataclass(frozen=True)
class Filters:
    """All that are given must hold; of several values in one, any.

    `addresses`: source or destination lies in one of these networks. `flags`: all these bits are
    set. `since_ms` and `until_ms`, ms since 1970-01-01 UTC, the second not among them: a flow, a
    session or a reading that touches that time; raw records and drops by their session.
    """

    addresses: tuple[Network, ...] = ()
    qps: tuple[int, ...] = ()
    pkeys: tuple[int, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    flags: int = 0
    since_ms: int | None = None
    until_ms: int | None = None
    exporters: tuple[str, ...] = ()
    sessions: tuple[int, ...] = ()
    domains: tuple[int, ...] = ()
    interfaces: tuple[int, ...] = ()
    priorities: tuple[int, ...] = ()

    def idle(self, kind: str) -> list[str]:
        """The filters that are given but say nothing about rows of `kind`."""
        return [name for name, value in vars(self).items()
                if value not in ((), 0, None) and name not in _APPLIES[kind]]

    def chooses(self, session: dict[str, Any]) -> bool:
        """Whether rows of a Transport Session may be among those asked for, by exporter and
        session id."""
        return ((not self.exporters or session["exporter"] in self.exporters)
                and (not self.sessions or session["id"] in self.sessions))

    def touches(self, session: dict[str, Any]) -> bool:
        """Whether a Transport Session lies in the time asked for."""
        ended = session["ended_ms"]
        return ((self.since_ms is None or ended is None or ended >= self.since_ms)
                and (self.until_ms is None or session["started_ms"] < self.until_ms))

    def conditions(self, kind: str) -> list[tuple[str, list[Any]]]:
        """SQL conditions on the columns of the kind's table, with their values."""
        found: list[tuple[str, list[Any]]] = []
        if kind == "sequence":
            if self.addresses:
                found.append(_networks(self.addresses))
            for column, values in (("qp", self.qps), ("pkey", self.pkeys),
                                   ("outcome", self.outcomes)):
                if values:
                    found.append(_among(column, values))
            if self.flags:
                found.append(("reports > 0 AND flags & ? = ?", [self.flags, self.flags]))
            found += _between(self.since_ms, self.until_ms, "flow_start_ms", "flow_end_ms")
        elif kind == "pfc":
            for column, values in (("interface", self.interfaces), ("priority", self.priorities)):
                if values:
                    found.append(_among(column, values))
            found += _between(self.since_ms, self.until_ms, "time_ms", "time_ms")
        if self.domains:
            found.append(_among("domain", self.domains))
        return found


def _among(column: str, values: tuple[int, ...]) -> tuple[str, list[Any]]:
    return f"{column} IN ({', '.join('?' * len(values))})", list(values)


def _between(
    since: int | None, until: int | None, first: str, last: str,
) -> list[tuple[str, list[Any]]]:
    """Times of 2^63 and above stand there as negative numbers: they are later than all others."""
    found: list[tuple[str, list[Any]]] = []
    if since is not None:
        found.append((f"({last} >= ? OR {last} < 0)", [since]))
    if until is not None:
        found.append((f"{first} BETWEEN 0 AND ?", [until - 1]))
    return found


def _networks(networks: tuple[Network, ...]) -> tuple[str, list[Any]]:
    texts, values = [], []
    for network in networks:
        for column in ("source", "destination"):
            texts.append(f"(ipv6 = ? AND {column} BETWEEN ? AND ?)")
            values += [int(network.version == 6), _octets(network.network_address),
                       _octets(network.broadcast_address)]
    return f"({' OR '.join(texts)})", values


def _octets(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bytes:
    return address.packed.rjust(16, b"\0")
