"""A provisioning as the text of its TOML file."""

from __future__ import annotations

import re

from .model import Connection, Provisioning

__all__ = ["connection_text", "provisioning_text"]


def provisioning_text(provisioning: Provisioning) -> str:
    """The whole file; `parse_provisioning` of it gives an equal Provisioning."""
    parts = [f"observation_domain = {provisioning.observation_domain}\n"
             f"observation_point = {provisioning.observation_point}\n"]
    parts += [f"[[port]]\nname = {_quoted(port.name)}\ninterface = {port.interface}\n"
              for port in provisioning.ports]
    parts += [connection_text(connection) for connection in provisioning.connections]
    return "\n".join(parts)


def connection_text(connection: Connection) -> str:
    """One [[connection]] table."""
    lines = ["[[connection]]", f'source = "{connection.source}"',
             f'destination = "{connection.destination}"',
             f"destination_qp = 0x{connection.destination_qp:06x}",
             f"partition_key = 0x{connection.partition_key:04x}"]
    if connection.vlan or connection.inner_vlan:
        lines.append(f"vlan = {connection.vlan}")
    if connection.inner_vlan:
        lines.append(f"inner_vlan = {connection.inner_vlan}")
    lines.append(f"window = {connection.window}")
    if connection.observation_point is not None:
        lines.append(f"observation_point = {connection.observation_point}")
    if connection.generation:
        lines.append(f"generation = {connection.generation}")
    if connection.generation_verified:
        lines.append("generation_verified = true")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML basic string."""
    return '"' + re.sub(r'["\\\x00-\x1f\x7f]', lambda found: f"\\u{ord(found[0]):04x}", text) + '"'
