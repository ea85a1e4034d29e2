"""Beliefs with the cases that say what must and what may be shown: what an agent learns, and what it is then asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks import cases
from nous_online.context.context_lines import Context
from nous_online.core.details import FactDetails
from nous_online.heart import Heart

ASKER = "test-user"
DOMAIN = "domain:"


@dataclass(frozen=True)
class Belief:
    """A belief as the memory knows it, and whether and where it may still be shown."""

    key: str
    user_id: str
    project_id: str | None
    is_current: bool


@dataclass(frozen=True)
class Shown:
    """What a context showed of the beliefs: anywhere but in the index, and among what was recalled."""

    keys: frozenset[str]
    critical: frozenset[str]
    relevant: frozenset[str]
    text: str


def learn_beliefs(heart: Heart, data: Path) -> dict[UUID, Belief]:
    """Learn every belief of every user, the successors of the superseded ones too; return them by their ids."""
    rows = cases(data, "pmb_beliefs")
    learned = {row["_id"]: heart.learn(row["content"], **details_of(row)).memory.id for row in rows}
    for row in rows:
        if row["superseded_by"]:
            heart.supersede_fact(learned[row["_id"]], learned[row["superseded_by"]], reason="the beliefs say so")
    return {learned[row["_id"]]: belief_of(row) for row in rows}


def details_of(row: Mapping[str, Any]) -> FactDetails:
    """Return what is told of a belief: a resolved one has ended, and why it matters is what was said around it."""
    return FactDetails(
        subject=row["canonical_name"].replace("_", " "),
        category=row["type"],
        tags=row["aliases"],
        context=row["why_it_matters"],
        confidence=row["confidence"],
        is_pinned=row["pinned"],
        learned_at=row["created_at"],
        valid_to=row["resolved_at"],
        user_id=row["user_id"],
        project_id=project_of(row["scope"]),
        idempotency_key=row["_id"],
    )


def belief_of(row: Mapping[str, Any]) -> Belief:
    """Return what decides whether a belief may be shown."""
    is_current = row["superseded_by"] is None and row["resolved_at"] is None
    return Belief(row["_id"], row["user_id"], project_of(row["scope"]), is_current)


def project_of(scope: Sequence[str]) -> str | None:
    """Return the first domain of a scope as a project."""
    return next((each.removeprefix(DOMAIN) for each in scope if each.startswith(DOMAIN)), None)


def shown_of(context: Context, beliefs: Mapping[UUID, Belief]) -> Shown:
    """Return which beliefs a context shows."""
    told = [
        (line.tier, beliefs[each].key) for line in context.lines if line.tier != "index" for each in line.memory_ids
    ]
    critical, relevant = (frozenset(key for at, key in told if at == tier) for tier in ("critical", "relevant"))
    return Shown(frozenset(key for _, key in told), critical, relevant, context.text)


def must(case: Mapping[str, Any], shown: Shown) -> Iterator[bool]:
    """Yield for everything a case wants to see whether it is there."""
    expect: Mapping[str, Mapping[str, Any]] = case["expect"]
    for section in ("pinnedFacts", "openQuestions"):
        yield from (key in shown.keys for key in expect.get(section, {}).get("mustInclude", ()))
    prelude = expect.get("personaPrelude", {})
    yield from (word in shown.text.casefold() for word in prelude.get("contains", ()))
    yield from (word not in shown.text for word in prelude.get("mustNotContain", ()))
    if prelude.get("nonEmpty"):
        yield bool(shown.text)


def allowed(case: Mapping[str, Any]) -> frozenset[str] | None:
    """Return what alone a case wants among the recalled; None where it does not say."""
    relevant = case["expect"].get("relevantBeliefs", {})
    return frozenset(relevant["shouldOnlyInclude"]) if "shouldOnlyInclude" in relevant else None


def excluded(case: Mapping[str, Any], shown: Shown) -> set[str]:
    """Return what is shown where a case says it must not be: among the critical, the recalled, or anywhere."""
    expect: Mapping[str, Mapping[str, Any]] = case["expect"]
    places = {
        "pinnedFacts": shown.critical,
        "openQuestions": shown.keys,
        "relevantBeliefs": shown.relevant,
    }
    return {key for name, keys in places.items() for key in expect.get(name, {}).get("mustExclude", ()) if key in keys}


def out_of_reach(case: Mapping[str, Any], shown: Shown, beliefs: Mapping[UUID, Belief]) -> set[str]:
    """Return what is shown although it is another user's or project's, or holds no longer."""
    mine = {
        each.key
        for each in beliefs.values()
        if each.is_current
        and each.user_id == case.get("userId", ASKER)
        and each.project_id in (None, project_of(case["scope"]))
    }
    return set(shown.keys - mine)
