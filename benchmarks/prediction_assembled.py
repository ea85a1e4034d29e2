"""What the relevant tier of a context shows when a session begins, by the product's own rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid5

from nous_online.context.context_lines import Linked, Predicted
from nous_online.context.packing import FILE, Answered, Known, pack, relevant
from nous_online.context.scorer import Nearness, Past, Ranking, file_words
from nous_online.core.policy import ContextPolicy
from nous_online.recall.ranking import RecallPolicy, Situation, rank
from nous_online.recall.recall import FoundMemory, Recalled

POLICY = ContextPolicy()
NAMESPACE = UUID(int=0)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def assembled(
    past: Past[str], atoms: Sequence[str], near: Mapping[str, Nearness], opened: str, *, room: int
) -> frozenset[str]:
    """Return the items told in full in so many tokens, where the file that is open is all that was told."""
    answers = recalled(near, opened)
    used = {item: near[item] for item in past.memories if item in near}
    ranking = Ranking(past, atoms, used)
    best = [ranking.at(place) for place in ranking.places()[: POLICY.predicted]]
    facts = {each.memory: fact(each.memory) for each in best}
    known = Known(
        answered=[Answered(FILE, opened, answers)],
        predicted=[
            Predicted(facts[each.memory].id, "fact", each.confidence, each.reasons, each.is_bearing) for each in best
        ],
        named=[Linked(memory, None) for memory in facts.values()],
    )
    return frozenset(each.entry.first[1] for each in pack(relevant(known), room) if not each.level)


def recalled(near: Mapping[str, Nearness], opened: str) -> list[Recalled]:
    """Return what a context recalls for a file, of memories as near as these."""
    found = [fact(item, lexical=nearness.words) for item, nearness in near.items()]
    best = rank(found, Situation(file_words(opened)), RecallPolicy(), limit=POLICY.budget // POLICY.tokens_an_answer)
    return [Recalled(memory, parts, "index") for memory, parts in best]


def fact(item: str, *, lexical: float = 0.0) -> FoundMemory:
    """Return an item as the fact that a heart keeps of it."""
    return FoundMemory(
        id=uuid5(NAMESPACE, item),
        kind="fact",
        content=item,
        subject=None,
        category=None,
        tags=[],
        confidence=None,
        learned_at=NOON,
        said_at=NOON,
        valid_from=None,
        valid_to=None,
        superseded_by=None,
        contradiction_status="none",
        encoded_frame=None,
        summary=None,
        compressed=None,
        index_word=None,
        state="active",
        source=None,
        source_kind="agent",
        trust=50,
        is_pinned=False,
        encoded_censors=None,
        rank_weight=1.0,
        dense=0.0,
        lexical=lexical,
    )
