"""The opinions of the night: one frozen value, with unit and provenance, written into each night's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import inf
from typing import Any

from nous_online.errors import InvalidInput

MAX_PROBE_DAYS = 3650


@dataclass(frozen=True)
class NightPolicy:
    """How far a night may go; every field can be overridden per run."""

    candidate_similarity: float = 0.92
    """Cosine from which two facts are looked at as duplicates (living memory, consolidation engine)."""
    max_leaving_share: float = 0.40
    """Largest share of an agent's active memories one night may retire; a first night over an import needs most."""
    max_leaving_count: int = 20_000
    """Largest number of memories one night may retire for one agent."""
    max_leaving_jump: float = 10.0
    """Retired tonight over the median of the last 14 nights; above it something changed that a person should see."""
    free_leaving_count: int = 20
    """Up to here the share and the jump say nothing: a young agent has few memories."""
    probe_days: int = 30
    """For how many days what was recalled and used stays a probe that must not get worse."""

    def __post_init__(self) -> None:
        if not 0.5 <= self.candidate_similarity <= 1:  # noqa: PLR2004 (a cosine below 0.5 relates everything to everything)
            raise InvalidInput(f"candidate_similarity must be between 0.5 and 1, got {self.candidate_similarity!r}")
        if not 0 < self.max_leaving_share <= 1:
            raise InvalidInput(f"max_leaving_share must be above 0 and at most 1, got {self.max_leaving_share!r}")
        for name in ("max_leaving_count", "max_leaving_jump", "free_leaving_count"):
            if not 0 <= getattr(self, name) < inf:
                raise InvalidInput(f"{name} must be a number from 0 on, got {getattr(self, name)!r}")
        if not 0 <= self.probe_days <= MAX_PROBE_DAYS:
            raise InvalidInput(f"probe_days must be between 0 and {MAX_PROBE_DAYS}, got {self.probe_days!r}")

    def overridden(self, values: Mapping[str, Any]) -> NightPolicy:
        """Return this policy with fields replaced; raise `InvalidInput` for a name or value that makes no sense."""
        known = {field.name: field.type for field in fields(self)}
        for name, value in values.items():
            if name not in known:
                raise InvalidInput(f"the policy has no field {name!r}; it has: {', '.join(known)}")
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InvalidInput(f"policy field {name} must be a number, got {value!r}")
        return replace(self, **values)

    def as_dict(self) -> dict[str, Any]:
        """Return the policy as it goes into metadata and into the plan's hash."""
        return asdict(self)
