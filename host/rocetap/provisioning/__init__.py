"""What the probe shall watch: ports, connections, windows; and its TOML file."""

from .model import (
    MAX_WINDOW,
    Connection,
    Port,
    Provisioning,
    ProvisioningError,
)
from .reading import parse_provisioning, read_provisioning
from .writing import connection_text, provisioning_text

__all__ = [
    "MAX_WINDOW", "Connection", "Port", "Provisioning", "ProvisioningError", "connection_text",
    "parse_provisioning", "provisioning_text", "read_provisioning",
]
