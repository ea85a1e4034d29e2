"""What a night wants to change, as values that can be read, hashed and stored before anything changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cached_property
from typing import Any
from uuid import UUID, uuid5

from pydantic import TypeAdapter

NAMESPACE = UUID("6f1d2f0e-3c7b-5d0a-9a65-6e6f75730002")

RETIRED = ("superseded", "archived", "quarantined")
"""States of memories that are out of use."""


@dataclass(frozen=True)
class Read:
    """A row the proposal was decided on, at the version it had."""

    kind: str
    id: str
    row_version: int


@dataclass(frozen=True)
class Change:
    """One thing to change: columns of a memory, or what is known about it.

    By `kind`: `fact`, `episode`, `procedure`, `censor` set columns of that memory, and `action` says in the event what
    was done to it. `usage` adds to its counters. `contradiction` opens one between two facts, `link` leads from this
    memory to another, `cold_text` moves texts of this episode to cold storage as it reads before the change.
    """

    kind: str
    id: str
    set: Mapping[str, Any] = field(default_factory=dict[str, Any])
    add: Mapping[str, int] = field(default_factory=dict[str, int])
    action: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the change as plain JSON values; what is empty is left out."""
        values = {"kind": self.kind, "id": self.id}
        return values | {name: given for name in ("set", "add", "action") if (given := getattr(self, name))}


@dataclass(frozen=True)
class Proposal:
    """One change a night proposes: on what, having read what, why, and on which evidence."""

    night: date
    agent_id: str
    kind: str
    targets: tuple[str, ...]
    read_set: tuple[Read, ...]
    changes: tuple[Change, ...]
    reason: str
    evidence: Mapping[str, Any]
    cost_usd: float = 0.0

    @cached_property
    def id(self) -> UUID:
        """The same proposal of the same night always has the same id, so that a retry finds itself."""
        return uuid5(NAMESPACE, "\n".join((self.night.isoformat(), self.agent_id, self.kind, *self.targets)))

    @cached_property
    def changed(self) -> frozenset[tuple[str, str]]:
        """What it changes, by agent and id; a memory that a link leads from stays as it is."""
        return frozenset((self.agent_id, change.id) for change in self.changes if change.kind != "link")

    @cached_property
    def read(self) -> frozenset[tuple[str, str]]:
        """What it was decided on, by agent and id."""
        return frozenset((self.agent_id, entry.id) for entry in self.read_set)

    @cached_property
    def retired(self) -> frozenset[tuple[str, str]]:
        """What it takes out of use, by agent and id."""
        return frozenset((self.agent_id, change.id) for change in self.changes if change.set.get("state") in RETIRED)

    def as_dict(self) -> dict[str, Any]:
        """Return the proposal as plain JSON values."""
        return {
            **vars_of(self),
            "night": self.night.isoformat(),
            "read_set": [vars_of(read) for read in self.read_set],
            "changes": [change.as_dict() for change in self.changes],
        }


@dataclass(frozen=True)
class Plan:
    """All proposals of a night that don't get in each other's way, and those that had to wait."""

    night: date
    agent_ids: tuple[str, ...]
    policy: Mapping[str, Any]
    proposals: tuple[Proposal, ...]
    waiting: tuple[Proposal, ...] = ()

    @cached_property
    def hash(self) -> str:
        """SHA-256 of everything that would be done; the checks pass this plan, and apply executes no other."""
        return hashlib.sha256(canonical_json(self.as_dict()).encode()).hexdigest()

    def of(self, agent_ids: Collection[str]) -> Plan:
        """Return what is planned for some agents."""
        kept, waiting = (
            tuple(each for each in some if each.agent_id in agent_ids) for some in (self.proposals, self.waiting)
        )
        return replace(self, proposals=kept, waiting=waiting)

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return {
            "night": self.night.isoformat(),
            "agent_ids": list(self.agent_ids),
            "policy": dict(self.policy),
            "proposals": [proposal.as_dict() for proposal in self.proposals],
            "waiting": [proposal.as_dict() for proposal in self.waiting],
        }


PLAN = TypeAdapter(Plan)
"""Reads back what `as_dict` wrote."""


def vars_of(value: Read | Proposal) -> dict[str, Any]:
    """Return the fields of a value by name, not copied: `asdict` copies every text in it."""
    return {each.name: getattr(value, each.name) for each in fields(value)}


def canonical_json(value: Any) -> str:
    """Write JSON one way only: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
