"""Where a memory comes from and whom it is for: what every kind may be told, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict

from nous_online.core.errors import InvalidInput
from nous_online.core.rights import UNLIMITED, Rights
from nous_online.core.validation import checked_active_censors, checked_frame, checked_optional, checked_said


class OriginDetails(TypedDict, total=False):
    """What may be told about the origin and the reach of any memory."""

    source: str | None
    source_kind: str
    trust: int | None
    """From 0 to 100; unless told, that of its source kind (`LearnPolicy.source_trust`)."""
    is_pinned: bool
    learned_at: datetime | str | None
    """When it was said; now, unless an older history is being learned."""
    frame: str | None
    """The cognitive frame the agent is in; `encoded_frame` is the same."""
    active_censors: list[str] | None
    """The censors that are active; `encoded_censors` is the same."""
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


def origin_of(details: OriginDetails, rights: Rights = UNLIMITED) -> Origin:
    """Check the origin a caller told; raise `InvalidInput` naming what to mend, `Forbidden` for more than it may."""
    standing = rights.standing(details)
    return Origin(
        source=checked_optional("source", details.get("source"), max_characters=500),
        source_kind=standing.source_kind,
        trust=standing.trust,
        is_pinned=standing.is_pinned,
        learned_at=checked_said("learned_at", details.get("learned_at"), now=datetime.now(UTC)),
        encoded_frame=checked_frame(details),
        encoded_censors=checked_active_censors(details),
        scope=standing.scope,
        user_id=checked_optional("user_id", details.get("user_id"), max_characters=100),
        project_id=checked_optional("project_id", details.get("project_id"), max_characters=100),
    )


def check_known(details: Mapping[str, object], known: type) -> None:
    """Raise `InvalidInput` for a detail that the typed dictionary `known` does not name."""
    unknown = sorted(set(details) - set(known.__annotations__))
    if unknown:
        raise InvalidInput(f"unknown detail {unknown[0]!r}; known: {', '.join(known.__annotations__)}")
