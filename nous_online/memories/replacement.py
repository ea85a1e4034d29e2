"""What a new fact takes the place of because the caller says so, by id or by the key both have: pure decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast
from uuid import UUID

from nous_online.core.domain import Fact, Near, Neighbour, NewFact
from nous_online.core.errors import Conflict, NotFound, Refused
from nous_online.core.policy import LearnPolicy
from nous_online.core.validation import checked_id
from nous_online.language.pairs.judging import Judgement, Verdict
from nous_online.memories.learning import LearningDecision, decide, holds_since, is_past, is_repeat, stands_firmer

MOST_NEAR = 5
WORTH_SAYING = 0.4
APART_FROM = 0.7
"""The same of two that were judged to be two statements: a change in other words is at 0.72 in the middle."""
"""Cosine from which a near fact comes with how to replace it: of the changes of `wording` 89 in 100 lie above, of pairs
that have nothing to do with each other one in 900."""
SHOWN = 60
"""Characters of a near fact that a suggestion quotes."""


@dataclass(frozen=True)
class Named:
    """A fact the caller says is replaced, and the version it was read at where the caller has it."""

    id: UUID
    row_version: int | None = None


@dataclass(frozen=True)
class NearFacts:
    """What is near a new fact: what the caller says it replaces, the active value of its key, and the rest."""

    replaced: tuple[Neighbour, ...]
    holder: Neighbour | None
    rest: tuple[Neighbour, ...]


def named_facts(replaces: object) -> tuple[Named, ...]:
    """Check what the caller says is replaced: an id, a fact as it was read, or several; raise `InvalidInput`."""
    one = () if replaces is None else (replaces,)
    given = cast("Sequence[object]", replaces) if isinstance(replaces, (list, tuple)) else one
    found = [
        Named(each.id, each.row_version) if isinstance(each, Fact) else Named(checked_id("replaces", each))
        for each in given
    ]
    return tuple({each.id: each for each in found}.values())


def told(new: NewFact, near: Sequence[Neighbour], named: Sequence[Named], agent_id: str) -> NearFacts:
    """Part what is near by what the caller said.

    Raises `NotFound` for a named fact that is not there for whom the new one is meant, and `Conflict` for one that is
    no longer active or not at the version it was read. Values of other keys are about other things.
    """
    known = {each.fact.id: each for each in near}
    for each in named:
        if each.id not in known:
            raise NotFound(f"agent {agent_id!r} has no fact {each.id} of the same scope, user and project to replace")
        check_active(known[each.id].fact, "replaced")
        if each.row_version not in {None, known[each.id].fact.row_version}:
            raise Conflict(f"fact {each.id} was changed since it was read; read it again before it is replaced")
    replaced = {each.id for each in named}
    others = [each for each in near if each.fact.id not in replaced]
    holder = next((each for each in others if new.key and each.fact.key == new.key), None)
    rest = tuple(each for each in others if each is not holder and not (new.key and each.fact.key))
    return NearFacts(tuple(known[each.id] for each in named), holder, rest)


def check_active(fact: Fact, act: str) -> None:
    """Raise `Conflict` when a fact has left recall."""
    if fact.state != "active":
        successor = f" by {fact.superseded_by}" if fact.superseded_by else ""
        message = f"fact {fact.id} is {fact.state}{successor} and can't be {act}; act on what replaced it, or undo that"
        raise Conflict(message)


def decide_told(
    new: NewFact, said: NearFacts, judgements: Mapping[UUID, Judgement], policy: LearnPolicy
) -> LearningDecision:
    """Return what to do with `new`: first what the caller said, then what is found of the rest.

    Two values of one key of which the earlier stands firmer contradict each other; the new one goes without the key.
    Raises `Refused` where it would replace, by its id, what is pinned or trusted more.
    """
    replaced = said.replaced
    if said.holder is not None and not is_repeat(new, said.holder, policy) and is_held_by_trust(new, said.holder.fact):
        check_replaceable(new, replaced)
        decision = decide(new, said.rest, judgements, policy)
        return replace(
            decision, others=(*decision.others, *replaced), contradicted=(*decision.contradicted, said.holder)
        )
    if said.holder is not None:
        if not is_later(new, said.holder.fact):
            check_replaceable(new, replaced)
            reason = f"an older value of the key {new.key!r} than the one known"
            return LearningDecision("store_superseded", reason, said.holder, replaced)
        replaced = (*replaced, said.holder)
    again = next((each for each in replaced if is_repeat(new, each, policy)), None)
    others = tuple(each for each in replaced if each is not again)
    check_replaceable(new, others)
    if again is not None:
        reason = f"said before (similarity {again.similarity:.2f}, no difference found)"
        return LearningDecision("confirm", reason, again, others)
    decision = decide(new, said.rest, judgements, policy)
    if not replaced:
        return decision
    if decision.action in {"confirm", "store_superseded"}:
        return replace(decision, others=replaced)
    reason = "the agent said that it replaces this" if said.replaced else f"a newer value of the key {new.key!r}"
    return LearningDecision(
        "supersede", reason, replaced[0], (*replaced[1:], *decision.superseded), decision.contradicted
    )


def is_later(new: NewFact, known: Fact) -> bool:
    """Tell whether a value of a key takes the place of the one known: it holds since later, and is not over already."""
    is_over, was_over = (is_past(value, new.learned_at) for value in (new, known))
    return holds_since(new) >= holds_since(known) and (was_over or not is_over)


def is_held_by_trust(new: NewFact, holder: Fact) -> bool:
    """Tell whether, of two values of a key, the earlier is trusted more than the later, or it alone is pinned."""
    return stands_firmer(holder, new) if is_later(new, holder) else stands_firmer(new, holder)


def check_replaceable(new: NewFact, replaced: Sequence[Neighbour]) -> None:
    """Raise `Refused` for the first fact that is pinned, or trusted more than the new one."""
    for fact in (each.fact for each in replaced):
        if fact.is_pinned:
            raise Refused(f"fact {fact.id} is pinned and can't be replaced; unpin it first, or supersede it by its id")
        if fact.trust > new.trust:
            message = f"fact {fact.id} is trusted more ({fact.trust}) than what would replace it ({new.trust})"
            raise Refused(f"{message}; learn it with at least the same trust, or supersede the fact by its id")


def keyed(new: NewFact, decision: LearningDecision) -> NewFact:
    """Return a new fact under the key of what it replaces, unless it has one of its own or they differ in theirs.

    Beside a value of its own key, which it contradicts, it has none.
    """
    if new.key is not None and any(each.fact.key == new.key for each in decision.contradicted):
        return replace(new, key=None)
    keys = {each.fact.key for each in decision.superseded if each.fact.key}
    return replace(new, key=keys.pop()) if new.key is None and len(keys) == 1 else new


def near_facts(
    near: Sequence[Neighbour], memory: Fact, decision: LearningDecision, judgements: Mapping[UUID, Judgement]
) -> tuple[Near, ...]:
    """Return the nearest facts that are still active beside the one learned, with how to say that it replaces them."""
    gone = {memory.id, *(each.fact.id for each in decision.superseded)}
    left = [each for each in near if each.fact.state == "active" and each.fact.id not in gone]
    nearest = sorted(left, key=lambda each: (-each.similarity, each.fact.id))[:MOST_NEAR]
    return tuple(_shown(each, judgements.get(each.fact.id)) for each in nearest)


def _shown(near: Neighbour, judgement: Judgement | None) -> Near:
    words = " ".join(near.fact.content.split())
    quoted = words if len(words) <= SHOWN else f"{words[: SHOWN - 1]}…"
    verdict, reason = (judgement.verdict.value, judgement.reason) if judgement else (None, None)
    least = APART_FROM if verdict == Verdict.COMPATIBLE.value else WORTH_SAYING
    is_worth_saying = near.similarity >= least and verdict != Verdict.SAME.value
    hint = f"perhaps replaces “{quoted}”; if so, learn it again with replaces='{near.fact.id}'"
    return Near(near.fact, near.similarity, verdict, reason, hint if is_worth_saying else None)
