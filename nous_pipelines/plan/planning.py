"""Makes the plan of a night: the proposals that do not conflict, by precedence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from nous_pipelines.phases.phase_table import PRECEDENCE
from nous_pipelines.phases.proposals import Plan, Proposal


def planned(night: date, proposals: Iterable[Proposal], *, agent_ids: Sequence[str], policy: Mapping[str, Any]) -> Plan:
    """Return the plan of a night, conflicts resolved by precedence.

    A memory is changed by one proposal a night. A later one that reads or changes it was decided on an outdated
    version, so it waits; so does one that would retire a memory that an earlier one read, such as a successor.
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


def combine_plans(wanted: Plan, parts: Sequence[Plan]) -> Plan:
    """Return the parts of one plan, each for some of its agents, as one plan; agents without a part are left out."""
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
    """Return the sort key of the order in which proposals are planned and applied.

    A supersession goes before the merges if it only reads what they change and they retire nothing it reads: then both
    can be applied, in this order. Otherwise the supersession of a value that is repeated, and merged, every day would
    wait for ever.
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
