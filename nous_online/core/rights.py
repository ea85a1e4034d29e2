"""What a caller may claim and change, and the origin of what it tells. Pure but for the clock of `origin_of`.

It follows the channel a call comes through, not what the call says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from nous_online.core.details import OriginDetails
from nous_online.core.domain import Scope, SourceKind
from nous_online.core.errors import Forbidden, InvalidInput
from nous_online.core.fields import checked_details, rows_of
from nous_online.core.policy import LearnPolicy, OnCredential


class Trusted(Protocol):
    """A memory of any kind, as far as changing it is a question of trust."""

    @property
    def id(self) -> UUID: ...
    @property
    def trust(self) -> int: ...
    @property
    def is_pinned(self) -> bool: ...


@dataclass(frozen=True)
class Standing:
    """Who says something, how far that is trusted, and how firmly it stands."""

    source_kind: SourceKind
    trust: int
    is_pinned: bool
    scope: Scope


@dataclass(frozen=True)
class Rights:
    """How far a caller is believed; unless told, as far as a program that opens the heart itself, which may do all."""

    max_trust: int = 100
    """The highest trust it may give to what it says."""
    may_pin: bool = True
    """Whether it may pin memories and keep them for the whole system (scope `system`)."""
    may_write: bool = True
    is_operator: bool = True
    """Whether it decides contradictions against what is pinned or trusted more; others propose how to decide them."""
    holder: str = "this program"
    """Who it is, as errors and proposals name it."""
    source_trust: tuple[tuple[str, int], ...] = LearnPolicy.source_trust
    """The trust of each kind of source, where nobody says another."""
    on_credential: OnCredential = "keep"
    """What becomes of a credential in what is told, as the policy of the heart says."""

    def trust_of(self, source_kind: str) -> int:
        """Return how far something from a kind of source is trusted unless told, and no further than this caller."""
        return min(dict(self.source_trust)[source_kind], self.max_trust)

    def standing(self, told: Mapping[str, Any]) -> Standing:
        """Return how far a caller is to be believed, from details that are checked (`ClaimDetails`).

        Raises `InvalidInput` for a memory of a project that names none: nobody could ever find it; and `Forbidden` for
        more than the caller may.
        """
        kind, scope, is_pinned = told["source_kind"], told["scope"], told["is_pinned"]
        if scope == "project" and not told["project_id"]:
            raise InvalidInput("scope 'project' needs a project_id: without one nobody could find the memory")
        trust = self.trust_of(kind) if told["trust"] is None else told["trust"]
        if trust > self.max_trust:
            raise self._forbidden(f"trust {trust} is more than {self.max_trust}, the most that", "may claim")
        if kind == "operator" and not self.is_operator:
            raise self._forbidden("source_kind 'operator' is not what", "may claim")
        if is_pinned:
            self.check_may_pin()
        if scope == "system" and not self.may_pin:
            raise self._forbidden("scope 'system' is not for", "to give")
        return Standing(kind, trust, is_pinned, scope)

    def check_may_pin(self) -> None:
        """Raise `Forbidden` for a caller that may not pin."""
        if not self.may_pin:
            raise self._forbidden("a memory can't be pinned by", "")

    def check_may_speak_for_user(self) -> None:
        """Raise `Forbidden` for a caller that is trusted less than the user is."""
        if self.max_trust < dict(self.source_trust)["user"]:
            raise self._forbidden("source_kind 'user' is not what", "may claim")

    def check_may_listen(self) -> None:
        """Raise `Forbidden` for a caller that is trusted less than the user is: events tell what is remembered."""
        if self.max_trust < dict(self.source_trust)["user"]:
            raise self._forbidden("where events are sent is not for", "to say")

    def check_may_change(self, memory: Trusted) -> None:
        """Raise `Forbidden` for a memory trusted more than this caller may claim, or pinned if it may not pin."""
        if memory.trust > self.max_trust:
            limit = f"trusted {memory.trust}, more than {self.max_trust}, the most that"
            raise self._forbidden(f"memory {memory.id} is {limit}", "may claim, so it can't be changed")
        if memory.is_pinned and not self.may_pin:
            raise self._forbidden(f"memory {memory.id} is pinned, so it can't be changed by", "")

    def may_retire(self, old: Trusted, new: Trusted) -> bool:
        """Tell whether this caller may put one memory in the place of another."""
        return self.is_operator or (not old.is_pinned and old.trust <= new.trust)

    def _forbidden(self, what: str, act: str) -> Forbidden:
        return Forbidden(f"{what} {self.holder} {act}".rstrip() + "; use a key that may, or ask an operator")


UNLIMITED = Rights()
USER_TRUST = UNLIMITED.trust_of("user")
WITHOUT_KEY = Rights(USER_TRUST, may_pin=False, is_operator=False, holder="a caller without a key")
"""Who reaches a memory by no more than being on its machine, or in its place of work, speaks for a user at most."""


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
