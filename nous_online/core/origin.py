"""Where a memory comes from and whom it is for: what every kind may be told, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nous_online.core.details import OriginDetails
from nous_online.core.field_tables import checked_details, rows_of
from nous_online.core.rights import UNLIMITED, Rights


@dataclass(frozen=True)
class Origin:
    """Where a memory comes from, in which frame it was encoded, and who may see it."""

    source: str | None
    source_kind: str
    trust: int
    is_pinned: bool
    learned_at: datetime | None
    encoded_frame: str | None
    encoded_censors: list[str] | None
    scope: str
    user_id: str | None
    project_id: str | None

    def row(self, *, now: datetime) -> dict[str, Any]:
        """Return the columns as JSON values; a memory not said to be older was learned `now`."""
        return {**vars(self), "learned_at": (self.learned_at or now).isoformat()}


def origin_of(details: Mapping[str, Any], rights: Rights = UNLIMITED) -> Origin:
    """Check the origin a caller told; raise `InvalidInput` naming what to mend, `Forbidden` for more than it may."""
    known = {name: value for name, value in details.items() if name in rows_of(OriginDetails)}
    told = checked_details(OriginDetails, known, now=datetime.now(UTC))
    standing = rights.standing(told)
    return Origin(
        **vars(standing),
        encoded_frame=told["frame"],
        encoded_censors=told["active_censors"],
        **{name: told[name] for name in ("source", "learned_at", "user_id", "project_id")},
    )
