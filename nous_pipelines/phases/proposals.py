"""What a night wants to change, as values that can be read, hashed and stored before anything changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any
from uuid import UUID, uuid5

from pydantic import TypeAdapter

NAMESPACE = UUID("6f1d2f0e-3c7b-5d0a-9a65-6e6f75730002")  # never changes: ids made with it are stored

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
    """One change to a memory, or to a row about it.

    By `kind`: `fact`, `episode`, `procedure`, `censor` set columns of that memory, and `action` names the change in its
    event. `usage` adds to its counters. `contradiction` opens one between two facts, `link` adds one from this memory
    to another, `cold_text` copies texts of this episode to cold storage before the change clears them.
    """

    kind: str
    id: str
    set: Mapping[str, Any] = field(default_factory=dict[str, Any])
    add: Mapping[str, int] = field(default_factory=dict[str, int])
    action: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the change as plain JSON values; what is empty is left out."""
        values: dict[str, Any] = {"kind": self.kind, "id": self.id}
        if self.set:
            values["set"] = self.set
        if self.add:
            values["add"] = self.add
        if self.action:
            values["action"] = self.action
        return values


@dataclass(frozen=True)
class Proposal:
    """Changes that a night proposes together, with the memories concerned, the versions read, reason and evidence."""

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
        """An id made of night, agent, kind and targets: a rerun of the night finds the proposals it already applied."""
        return uuid5(NAMESPACE, "\n".join((self.night.isoformat(), self.agent_id, self.kind, *self.targets)))

    @cached_property
    def changed(self) -> frozenset[tuple[str, str]]:
        """The memories it changes, by agent and id; adding a link does not change the memory it starts at."""
        return frozenset((self.agent_id, change.id) for change in self.changes if change.kind != "link")

    @cached_property
    def read(self) -> frozenset[tuple[str, str]]:
        """The memories it read, by agent and id."""
        return frozenset((self.agent_id, entry.id) for entry in self.read_set)

    @cached_property
    def retired(self) -> frozenset[tuple[str, str]]:
        """The memories it takes out of use, by agent and id."""
        return frozenset((self.agent_id, change.id) for change in self.changes if change.set.get("state") in RETIRED)

    def as_dict(self) -> dict[str, Any]:
        """Return the proposal as plain JSON values."""
        # By name: `dataclasses.fields` took half of the time of writing a plan.
        return {
            "night": self.night.isoformat(),
            "agent_id": self.agent_id,
            "kind": self.kind,
            "targets": self.targets,
            "read_set": [{"kind": read.kind, "id": read.id, "row_version": read.row_version} for read in self.read_set],
            "changes": [change.as_dict() for change in self.changes],
            "reason": self.reason,
            "evidence": self.evidence,
            "cost_usd": self.cost_usd,
        }


@dataclass(frozen=True)
class Plan:
    """The proposals of a night that do not conflict, and those that wait for the next night."""

    night: date
    agent_ids: tuple[str, ...]
    policy: Mapping[str, Any]
    proposals: tuple[Proposal, ...]
    waiting: tuple[Proposal, ...] = ()

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the whole plan: apply refuses a plan with another hash than the one that passed the checks."""
        return hashlib.sha256(canonical_json(self.as_dict()).encode()).hexdigest()

    def of(self, agent_ids: Collection[str]) -> Plan:
        """Return the plan for some agents."""
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


def canonical_json(value: Any) -> str:
    """Return a value as canonical JSON (sorted keys, no spaces), so that equal plans have equal hashes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
