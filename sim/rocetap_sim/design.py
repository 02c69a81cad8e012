"""Which component is simulated: named, not imported, so that a cached build imports no Amaranth."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Design", "probe"]


@dataclass(frozen=True)
class Design:
    """A component with the probe's ports: `module`.`component`(**`parameters`).

    `parameters` must have ``bus_bytes`` and ``ports``, which fix the widths of the pins.
    """

    module: str
    component: str
    parameters: tuple[tuple[str, int], ...]

    @property
    def bus_bytes(self) -> int:
        """Octets in one beat of a frame stream."""
        return dict(self.parameters)["bus_bytes"]

    @property
    def ports(self) -> int:
        """Frame streams."""
        return dict(self.parameters)["ports"]

    def sources(self) -> list[Path]:
        """The Python files beside and below the component's own, in a fixed order."""
        spec = importlib.util.find_spec(self.module)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"No module named {self.module!r}", name=self.module)
        return sorted(Path(spec.origin).parent.rglob("*.py"))

    def __str__(self) -> str:
        return f"{self.component}({', '.join(f'{k}={v}' for k, v in self.parameters)})"


def probe(*, bus_bytes: int = 8, ports: int = 1, connections: int = 1024,
          word: int = 256) -> Design:
    """The gateware's top, :class:`rocetap_hdl.probe.Probe`."""
    return Design("rocetap_hdl.probe", "Probe", (
        ("bus_bytes", bus_bytes), ("ports", ports), ("connections", connections), ("word", word)))
