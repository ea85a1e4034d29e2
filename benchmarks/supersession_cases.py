"""Public cases of facts that change: what is learned in order, which pairs are old and new, and what is asked then."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import cases
from benchmarks.recall_cases import by

FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Said:
    """One statement as it is learned."""

    key: str
    text: str
    at: datetime
    speaker: str | None = None


@dataclass(frozen=True)
class Asked:
    """A question, the statements that answer it, those that answered it before, and the moment asked about."""

    text: str
    right: frozenset[str]
    stale: frozenset[str] = frozenset()
    as_of: datetime | None = None


@dataclass(frozen=True)
class Story:
    """What one agent learns in order, which statement replaces which, and what it is asked afterwards."""

    name: str
    said: Sequence[Said]
    replaced: frozenset[tuple[str, str]] = frozenset()
    asked: Sequence[Asked] = field(default_factory=tuple[Asked, ...])


def fact_consolidation(data: Path, *, quick: bool) -> list[Story]:
    """Return the stores of FactConsolidation, facts in serial order; quick: the small one alone.

    Asked are its single-hop questions. The set doesn't say which fact answers one: it is the latest fact that ends in
    the answer and shares most of the question's words, rare words counting more.
    """
    conflicts, questions = cases(data, "fc_conflicts"), cases(data, "fc_qa")
    stores = by(cases(data, "fc_facts"), "store")
    stories = [consolidation_story(name, rows, conflicts, questions) for name, rows in stores]
    return [min(stories, key=lambda story: len(story.said))] if quick else stories


def consolidation_story(
    name: str, rows: list[dict[str, Any]], conflicts: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> Story:
    """Return one store; a fact is said one minute after the one before."""
    said = [
        Said(str(row["serial"]), row["fact"], FIRST_DAY + place * timedelta(minutes=1))
        for place, row in enumerate(sorted(rows, key=lambda row: row["serial"]))
    ]
    replaced = {(str(row["old_serial"]), str(row["new_serial"])) for row in conflicts if str(row["store"]) == name}
    earlier = {new: old for old, new in replaced}
    weights = rarity([fact.text for fact in said])
    asked: list[Asked] = []
    for row in questions:
        if str(row["store"]) == name and row["hop"] == "single":
            key = answering(row["question"], row["answers"], said, weights)
            if key is not None:
                asked.append(Asked(row["question"], frozenset([key]), frozenset(filter(None, [earlier.get(key)]))))
    return Story(f"fc-{name}", said, frozenset(replaced), asked)


def tokens(text: str) -> list[str]:
    """Return the words of a text, lower-case."""
    return re.findall(r"\w+", text.casefold())


def rarity(texts: Sequence[str]) -> dict[str, float]:
    """Return how much each word tells: the logarithm of the share of texts without it."""
    counts = Counter(word for text in texts for word in set(tokens(text)))
    return {word: math.log(1 + len(texts) / count) for word, count in counts.items()}


def answering(question: str, answers: Sequence[str], said: Sequence[Said], weights: Mapping[str, float]) -> str | None:
    """Return the fact that ends in the answer and is otherwise most like the question; None when none ends so."""
    wanted = set(tokens(question))
    found: list[tuple[float, datetime, str]] = []
    for fact in said:
        words = tokens(fact.text)
        for end in map(tokens, answers):
            if words[-len(end) :] == end and len(words) > len(end):
                slot = set(words[: -len(end)])
                shared = sum(weights[word] for word in slot & wanted) / sum(weights[word] for word in slot)
                found.append((shared, fact.at, fact.key))
    return max(found)[2] if found else None


def knowledge_updates(data: Path, *, quick: bool) -> list[Story]:
    """Return the chains of LongMemEval, all learned by one agent in the order of their dates; quick: every third."""
    said: list[Said] = []
    replaced: set[tuple[str, str]] = set()
    for row in cases(data, "lme_knowledge_updates")[:: 3 if quick else 1]:
        keys = [f"{row['id']}-{place}" for place in range(len(row["chain"]))]
        said += [
            Said(key, told["text"], datetime.strptime(told["date"], "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC))
            for key, told in zip(keys, row["chain"], strict=True)
        ]
        replaced |= set(pairwise(keys))
    return [Story("lme", sorted(said, key=lambda told: told.at), frozenset(replaced))]


def project_chats(data: Path) -> list[Story]:
    """Return the user's turns of each BEAM chat with its questions about updated knowledge.

    Right is the turn that holds the new information, stale the one that holds the old; both are the user's.
    """
    questions = [row for row in cases(data, "beam100k_questions") if row["type"] == "knowledge_update"]
    chats = by(cases(data, "beam100k_turns"), "chat")
    return [
        Story(f"beam-{chat}", turns(rows), asked=[updated(row) for row in questions if str(row["chat"]) == chat])
        for chat, rows in chats
    ]


def turns(rows: list[dict[str, Any]]) -> list[Said]:
    """Return what the user said in a chat, in order; turns without a date follow the one before by a minute."""
    said: list[Said] = []
    for row in (row for row in rows if row["role"] == "user"):
        named = moment(row["time"])
        before = said[-1].at + timedelta(minutes=1) if said else FIRST_DAY
        at = named if named and named > before else before
        said.append(Said(str(row["id"]), row["text"], at, speaker=row["role"]))
    return said


def moment(named: str | None) -> datetime | None:
    """Read "March-15-2024"."""
    return datetime.strptime(named, "%B-%d-%Y").replace(tzinfo=UTC) if named else None


def updated(row: dict[str, Any]) -> Asked:
    """Return a question about what was updated."""
    roles = row["evidence_roles"] or {}
    right, stale = (frozenset(map(str, roles.get(name, []))) for name in ("updated_info", "original_info"))
    return Asked(row["question"], right, stale)


def dated_facts(data: Path, *, quick: bool) -> list[Story]:
    """Return the facts of DyKnow in order of their dates; quick: every tenth slot.

    Each is said on the day it became true; nothing else of its interval is told. Asked is the statement without its
    value, as of the middle of the time until it ended or the next one began.
    """
    slots = by(sorted(cases(data, "dyknow_facts"), key=lambda row: (row["slot"], row["valid_from"])), "slot")
    said: list[Said] = []
    asked: list[Asked] = []
    for number, (_, chain) in enumerate(slots[:: 10 if quick else 1]):
        starts = [day(row["valid_from"]) for row in chain]
        said += [Said(f"{number}-{place}", row["fact"], starts[place]) for place, row in enumerate(chain)]
        for row, start, following in zip(chain, starts, [*starts[1:], None], strict=True):
            ends = [end for end in (following, day(row["valid_to"]) if row["valid_to"] else None) if end]
            then = start + (min(ends) - start) / 2 if ends else start + timedelta(days=1)
            same = frozenset(told.key for told in said if told.text == row["fact"])
            question = row["fact"].removesuffix(".").removesuffix(row["value"]).strip()
            if start < then:
                asked.append(Asked(question, same, as_of=then))
    return [Story("dyknow", sorted(said, key=lambda told: told.at), asked=asked)]


def day(named: str) -> datetime:
    """Read "1948-05-12"."""
    return datetime.fromisoformat(named).replace(tzinfo=UTC)
