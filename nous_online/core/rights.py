"""What a caller may claim and change, and the origin of a memory. Pure but for the clock of `origin_of`.

Rights follow from the channel a call comes through, never from what the call says of itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nous_online.core.details import OriginDetails
from nous_online.core.domain import Memory
from nous_online.core.errors import Forbidden, InvalidInput
from nous_online.core.fields import checked_details, rows_of
from nous_online.core.policy import LearnPolicy, OnCredential


@dataclass(frozen=True)
class Rights:
    """What a caller may claim and change; by default everything, as for a program that opens the heart itself."""

    max_trust: int = 100
    """The highest trust it may give to a memory, 0 to 100."""
    may_pin: bool = True
    """Whether it may pin memories and keep them for the whole system (scope `system`)."""
    may_write: bool = True
    is_operator: bool = True
    """Whether it may rule for facts that are trusted less than those they replace, or not pinned as these are."""
    holder: str = "this program"
    """The name of the caller in errors and proposals."""
    source_trust: tuple[tuple[str, int], ...] = LearnPolicy.source_trust
    """The default trust of each kind of source."""
    on_credential: OnCredential = "keep"
    """What is done with a credential in a text, from the policy of the heart."""

    def trust_of(self, source_kind: str) -> int:
        """Return the default trust of a kind of source, at most that of this caller."""
        return min(dict(self.source_trust)[source_kind], self.max_trust)

    def checked_claims(self, details: Mapping[str, Any]) -> dict[str, Any]:
        """Return `source_kind`, `trust`, `is_pinned` and `scope` of a new memory, from checked `ClaimDetails`.

        Raises `InvalidInput` for the scope `project` without a project, and `Forbidden` beyond the caller's rights.
        """
        kind, scope, is_pinned = details["source_kind"], details["scope"], details["is_pinned"]
        if scope == "project" and not details["project_id"]:
            raise InvalidInput("scope 'project' needs a project_id: without one nobody could find the memory")
        trust = self.trust_of(kind) if details["trust"] is None else details["trust"]
        if trust > self.max_trust:
            raise self._forbidden(
                f"trust {trust} is more than {self.max_trust}, the most that", "may claim", f"--max-trust {trust}"
            )
        if kind == "operator" and not self.is_operator:
            raise self._forbidden("source_kind 'operator' is not what", "may claim", "--admin")
        if is_pinned:
            self.check_may_pin()
        if scope == "system" and not self.may_pin:
            raise self._forbidden("scope 'system' is not for", "to give", "--may-pin")
        return {"source_kind": kind, "trust": trust, "is_pinned": is_pinned, "scope": scope}

    def check_may_pin(self) -> None:
        if not self.may_pin:
            raise self._forbidden("a memory can't be pinned by", "", "--may-pin")

    def check_may_speak_for_user(self) -> None:
        if self.max_trust < (least := dict(self.source_trust)["user"]):
            raise self._forbidden("source_kind 'user' is not what", "may claim", f"--max-trust {least}")

    def check_may_listen(self) -> None:
        """Raise `Forbidden` for a caller that is trusted less than the user is: events contain what is remembered."""
        if self.max_trust < (least := dict(self.source_trust)["user"]):
            raise self._forbidden("where events are sent is not for", "to say", f"--max-trust {least}")

    def check_may_set(self, severity: str) -> None:
        """Raise `Forbidden` for the severity `absolute` from a caller that is trusted less than the user is."""
        least = dict(self.source_trust)["user"]
        if severity == "absolute" and self.max_trust < least:
            raise self._forbidden("severity 'absolute' is not for", "to set", f"--max-trust {least}")

    def may_change(self, memory: Memory) -> bool:
        """Tell whether a memory is trusted no more than this caller may claim, and pinned only if it may pin.

        Whatever changes what is remembered, or retires it, asks this of each memory; to confirm, count and recall
        changes nothing in this sense.
        """
        return memory.trust <= self.max_trust and (self.may_pin or not memory.is_pinned)

    def check_may_change(self, memory: Memory) -> None:
        """Raise `Forbidden` for a memory that this caller may not change."""
        if self.may_change(memory):
            return
        if memory.trust > self.max_trust:
            limit = f"trusted {memory.trust}, more than {self.max_trust}, the most that"
            raise self._forbidden(
                f"memory {memory.id} is {limit}", "may claim, so it can't be changed", f"--max-trust {memory.trust}"
            )
        raise self._forbidden(f"memory {memory.id} is pinned, so it can't be changed by", "", "--may-pin")

    def may_retire(self, old: Memory, new: Memory) -> bool:
        """Tell whether this caller may supersede one memory by another."""
        is_outranked = old.is_pinned or old.trust > new.trust
        return self.may_change(old) and (self.is_operator or not is_outranked)

    def _forbidden(self, what: str, act: str, option: str) -> Forbidden:
        way = f"use a key that may (`nous key create {option}`), or ask an operator"
        return Forbidden(f"{what} {self.holder} {act}".rstrip() + f"; {way}")


ACTS_AS: ContextVar[str] = ContextVar("ACTS_AS", default="agent")
"""Whom the history names for what a verb changes: `operator` for what a person decides in the console or a shell."""
UNLIMITED = Rights()
USER_TRUST = UNLIMITED.trust_of("user")
WITHOUT_KEY = Rights(USER_TRUST, may_pin=False, is_operator=False, holder="a caller without a key")
"""Rights of a caller that only has access to the machine or the working directory: at most those of a user."""


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
    """Return the checked origin of a memory; raise `InvalidInput`, and `Forbidden` beyond the caller's rights."""
    given = {name: value for name, value in details.items() if name in rows_of(OriginDetails)}
    values = checked_details(OriginDetails, given, now=datetime.now(UTC))
    return Origin(
        **rights.checked_claims(values),
        encoded_frame=values["frame"],
        encoded_censors=values["active_censors"],
        **{name: values[name] for name in ("source", "learned_at", "user_id", "project_id")},
    )
