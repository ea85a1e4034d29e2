"""The plan of a night: the proposals that don't get in each other's way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from nous_pipelines.phases.phase_table import PRECEDENCE
from nous_pipelines.phases.proposals import Plan, Proposal


def planned(night: date, proposals: Iterable[Proposal], *, agent_ids: Sequence[str], policy: Mapping[str, Any]) -> Plan:
    """Resolve conflicts by the written precedence and return the plan.

    A memory is changed by one proposal a night; a later one that reads or changes it would be decided on what is
    no longer true, so it waits. So does one that would take out of use what an earlier one relies on: a successor.
    """
    taken: set[tuple[str, str]] = set()
    relied_on: set[tuple[str, str]] = set()
    kept: list[Proposal] = []
    waiting: list[Proposal] = []
    found = list(proposals)
    for proposal in sorted(found, key=precedence_among(found)):
        if taken & (proposal.changed | proposal.read) or relied_on & proposal.retired:
            waiting.append(proposal)
        else:
            taken |= proposal.changed
            relied_on |= proposal.read
            kept.append(proposal)
    return Plan(night, tuple(sorted(agent_ids)), policy, tuple(kept), tuple(waiting))


def united(wanted: Plan, parts: Sequence[Plan]) -> Plan:
    """Return one plan from those that were made of it for some of its agents each; of the others nothing is left."""
    if len(parts) == 1:
        return parts[0]
    kept = {proposal.id for part in parts for proposal in part.proposals}
    waiting = {proposal.id: proposal for part in parts for proposal in part.waiting}
    return replace(
        wanted,
        proposals=tuple(proposal for proposal in wanted.proposals if proposal.id in kept),
        waiting=tuple(waiting.values()),
    )


def precedence_among(proposals: Iterable[Proposal]) -> Callable[[Proposal], tuple[Any, ...]]:
    """Return the order in which proposals are planned and applied.

    A supersession goes before the merges when it only reads what they change and they retire nothing it reads: both
    can be carried out then, in this order. Otherwise a value that is repeated every day would wait for ever.
    """
    changed: set[tuple[str, str]] = set()
    retired: set[tuple[str, str]] = set()
    for merge in proposals:
        if merge.kind == "merge":
            changed |= merge.changed
            retired |= merge.retired

    def place(proposal: Proposal) -> tuple[Any, ...]:
        is_free = proposal.kind == "supersede" and not (proposal.changed & changed or proposal.read & retired)
        return (not is_free, PRECEDENCE.index(proposal.kind), proposal.agent_id, proposal.id)

    return place
