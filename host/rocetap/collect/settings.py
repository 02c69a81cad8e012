"""Limits of the collector. All are finite; what they drop is counted under `resource.` reasons."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from ..ipfix.collecting import CollectingLimits
from ..spec.elements import DEFAULT_PEN

__all__ = ["CollectorSettings", "EpochLimits"]


@dataclass(frozen=True)
class EpochLimits:
    """Bounds of the epochs of one Transport Session."""

    contexts: int = 100_000
    """Retained epochs of all Observation Domains, open and closed together."""
    inactivity_ms: int = 3_600_000
    """An epoch without a report for longer is retired as incomplete."""
    closed_retention_ms: int = 60_000
    """How long a closed epoch is kept to find conflicting reports."""

    def __post_init__(self) -> None:
        for name in ("contexts", "inactivity_ms", "closed_retention_ms"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, must be 1 or more")


@dataclass(frozen=True)
class CollectorSettings:
    """What both sides have agreed on, and the bounds of one Transport Session."""

    pen: int = DEFAULT_PEN
    """Private Enterprise Number of the profiles' elements."""
    reduced_lengths: bool = False
    """Whether shorter integers of the sequence profile were agreed on (Export Profile and
    Template: other lengths require explicit agreement)."""
    require_flow_keys: bool = False
    """Whether sequence records are refused until Flow Keys of their Template were advertised."""
    raw_records: int = 100_000
    """Records kept raw in one Transport Session; more are counted as `resource.raw_records`."""
    raw_octets: int = 64 << 20
    """Octets of them, with what tells how to read each; beyond, `resource.raw_octets` counts."""
    epochs: EpochLimits = field(default_factory=EpochLimits)
    ipfix: CollectingLimits = field(default_factory=CollectingLimits)

    def limits(self) -> dict[str, int]:
        """All bounds by name, for operators to see (Collector Processing asks for it)."""
        return {"raw_records": self.raw_records, "raw_octets": self.raw_octets,
                **{f"epochs.{name}": value for name, value in asdict(self.epochs).items()},
                **{f"ipfix.{name}": value for name, value in asdict(self.ipfix).items()}}
