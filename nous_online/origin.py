"""Where a memory comes from and whom it is for: what every kind may be told, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict

from nous_online.domain import SOURCE_KINDS
from nous_online.errors import InvalidInput
from nous_online.validation import (
    checked_choice,
    checked_flag,
    checked_names,
    checked_optional,
    checked_said,
    checked_scope,
    checked_trust,
)


class OriginDetails(TypedDict, total=False):
    """What may be told about the origin and the reach of any memory."""

    source: str | None
    source_kind: str
    trust: int
    is_pinned: bool
    learned_at: datetime | str | None
    """When it was said; now, unless an older history is being learned."""
    encoded_frame: str | None
    encoded_censors: list[str] | None
    scope: str
    user_id: str | None
    project_id: str | None


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


def origin_of(details: OriginDetails) -> Origin:
    """Check the origin a caller told; raise `InvalidInput` naming what to mend."""
    return Origin(
        source=checked_optional("source", details.get("source"), max_characters=500),
        source_kind=checked_choice("source_kind", details.get("source_kind", "agent"), SOURCE_KINDS),
        trust=checked_trust(details.get("trust", 50)),
        is_pinned=checked_flag("is_pinned", details.get("is_pinned", False)),
        learned_at=checked_said("learned_at", details.get("learned_at"), now=datetime.now(UTC)),
        encoded_frame=checked_optional("encoded_frame", details.get("encoded_frame"), max_characters=100),
        encoded_censors=checked_names("encoded_censors", details.get("encoded_censors")),
        scope=checked_scope(details.get("scope", "private"), project_id=details.get("project_id")),
        user_id=checked_optional("user_id", details.get("user_id"), max_characters=100),
        project_id=checked_optional("project_id", details.get("project_id"), max_characters=100),
    )


def check_known(details: Mapping[str, object], known: type) -> None:
    """Raise `InvalidInput` for a detail that the typed dictionary `known` does not name."""
    unknown = sorted(set(details) - set(known.__annotations__))
    if unknown:
        raise InvalidInput(f"unknown detail {unknown[0]!r}; known: {', '.join(known.__annotations__)}")
