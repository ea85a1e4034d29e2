"""What learning and one night make of two statements as people word them, said a month apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks import cases, server
from benchmarks.intervals import of_count, of_share
from benchmarks.lifecycle import lived
from benchmarks.recall import Remembering
from nous_online.core.details import FactDetails
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.store import imported_id
from nous_pipelines.nights import last_night
from nous_pipelines.orchestration.running import NightOptions

AGENT = "wording"
STRANGERS = "strangers"
"""The agent that is told the first statement of every pair, by one person: no two of them speak of one thing."""
CROWD = "crowd"
"""The agent that is told both statements of every pair, by one person: a change must find what it changes."""
IMPORTED = "imported"
"""The agent that imports those statements: nothing is read before the night."""
APART, BETWEEN = timedelta(days=30), timedelta(minutes=1)
QUICK_EVERY = 8
CHATTY_BELOW = 0.4
"""Jaccard of the words under which an update shares no sentence frame with what it updates."""
ONE = frozenset({"same", "vaguer"})
"""Labels of pairs that may become one fact; of all others both statements must stay facts of their own."""
CHANGED = frozenset({"update", "negation"})
DEADLINE_S = 60.0
DEPTH = 10


@dataclass(frozen=True)
class Outcome:
    """What became of the two statements of a pair."""

    case: dict[str, Any]
    joined_by: str | None
    """`learn` or `night`, where both ended in one fact."""
    is_replaced: bool
    """The first was superseded by the second, or their contradiction is open."""
    is_hurt: bool
    """They were joined, or one was superseded, or a contradiction was opened."""
    lost: int
    """Statements whose words no fact of the pair is said in."""
    is_stale_first: bool
    """The question finds the first above the second."""

    @property
    def label(self) -> str:
        return self.case["label"]

    @property
    def is_chatty(self) -> bool:
        """Tell whether the two statements share few words."""
        one, other = (set(re.findall(r"\w+", self.case[name].casefold())) for name in ("first", "second"))
        return len(one & other) / max(1, len(one | other)) < CHATTY_BELOW


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Learn both statements of each pair, run one night over all of them, and ask."""
    rows = cases(data, "wording")[:: QUICK_EVERY if quick else 1]
    night = last_night(datetime.now(UTC))
    with server() as (url, home):
        database = Database(url)
        heart = Heart.open(AGENT, database=database, embedder=embedder_of(rows), deadline_s=DEADLINE_S)
        said_at = datetime.combine(night, time(12), UTC)
        learned = [learn_both(heart, row, said_at) for row in rows]
        strangers = Heart.open(STRANGERS, database=database, embedder=heart.agent.embedder, deadline_s=DEADLINE_S)
        met = [strangers.learn(row["first"], learned_at=said_at - APART).memory.id for row in rows]
        crowd = Heart.open(CROWD, database=database, embedder=heart.agent.embedder, deadline_s=DEADLINE_S)
        told = learn_in_turn(crowd, rows, said_at)
        imported = Heart.open(IMPORTED, database=database, embedder=heart.agent.embedder, deadline_s=DEADLINE_S)
        taken_over = import_all(imported, rows, said_at)
        stopped = [f"THE NIGHT WAS STOPPED: {why}" for why in lived([night], NightOptions(url, home)) if why]
        outcomes = [outcome_of(heart, *pair) for pair in zip(rows, learned, strict=True)]
        among = {
            **among_strangers(strangers, met),
            **in_a_crowd(crowd, rows, told),
            **in_a_crowd(imported, rows, taken_over),
        }
        for each in (heart, strangers, crowd, imported):
            each.close()
        database.close()
    return {
        "metrics": {**all_metrics(outcomes), **among},
        "peers": {},
        "notes": [*stopped, *notes(outcomes, quick=quick)],
    }


def embedder_of(rows: Sequence[dict[str, Any]]) -> Remembering:
    """Return the default embedder, which has seen every text: in batches it costs a fifth."""
    embedder = Remembering()
    embedder.embed_documents([row[name] for row in rows for name in ("first", "second", "query") if row[name]])
    return embedder


def learn_both(heart: Heart, row: dict[str, Any], said_at: datetime) -> tuple[UUID, UUID]:
    """Learn the first statement as of a month before the second, for a user of their own; return both facts."""
    ids = [
        heart.learn(row[name], **FactDetails(user_id=user_of(row), learned_at=moment)).memory.id
        for name, moment in (("first", said_at - APART), ("second", said_at))
    ]
    return ids[0], ids[1]


def learn_in_turn(heart: Heart, rows: Sequence[dict[str, Any]], said_at: datetime) -> list[tuple[UUID, UUID]]:
    """Learn all first statements for one person, and all second ones a month later; return the facts of each pair."""
    firsts, seconds = (
        [heart.learn(row[name], learned_at=moment + at * BETWEEN).memory.id for at, row in enumerate(rows)]
        for name, moment in (("first", said_at - APART), ("second", said_at - len(rows) * BETWEEN))
    )
    return list(zip(firsts, seconds, strict=True))


def import_all(heart: Heart, rows: Sequence[dict[str, Any]], said_at: datetime) -> list[tuple[UUID, UUID]]:
    """Import what `learn_in_turn` learns, as of the same moments; return the facts of each pair."""
    entries: list[tuple[str, FactDetails]] = []
    for name, moment in (("first", said_at - APART), ("second", said_at - len(rows) * BETWEEN)):
        for at, row in enumerate(rows):
            key = f"{name}-{at}"
            entries.append((row[name], FactDetails(learned_at=moment + at * BETWEEN, idempotency_key=key)))
    heart.learn_deferred(entries)
    return [(imported_id(IMPORTED, f"first-{at}"), imported_id(IMPORTED, f"second-{at}")) for at in range(len(rows))]


def in_a_crowd(heart: Heart, rows: Sequence[dict[str, Any]], told: Sequence[tuple[UUID, UUID]]) -> dict[str, float]:
    """Return how many statements of one store replace or contradict one of another pair, and how many changes are seen.

    Few pairs speak of one thing, so what is between two pairs is wrong, but for those few.
    """
    facts = [heart.get(fact_id) for fact_id in dict.fromkeys(each for pair in told for each in pair)]
    replaced = {frozenset((fact.id, fact.superseded_by)) for fact in facts if fact.superseded_by}
    opened = {frozenset((each.memory_a, each.memory_b)) for each in heart.contradictions()}
    own = {frozenset(pair) for pair in told}
    changes = [frozenset(pair) for row, pair in zip(rows, told, strict=True) if row["label"] == "update"]
    name = heart.agent.id
    return {
        f"{name}_retired_ratio": of_count(len(replaced - own), 2 * len(rows)),
        f"{name}_contradicted_ratio": of_count(len(opened - own), 2 * len(rows)),
        f"{name}_update_ratio": of_share(pair in replaced | opened for pair in changes),
    }


def user_of(row: dict[str, Any]) -> str:
    """Return the user that is told one pair alone, so that no two pairs meet."""
    return f"pair-{row['id']}"


def among_strangers(heart: Heart, learned: Sequence[UUID]) -> dict[str, float]:
    """Return the share of statements on different things that were joined, and that were retired or contradicted."""
    facts = [heart.get(fact_id) for fact_id in dict.fromkeys(learned)]
    merged = sum(heart.history(fact.id)[0].action == "merged" for fact in facts)
    hurt = sum(fact.state != "active" or fact.contradiction_status == "open" for fact in facts) - merged
    return {
        "strangers_joined_ratio": of_count(len(learned) - len(facts) + merged, len(learned)),
        "strangers_hurt_ratio": of_count(hurt, len(learned)),
    }


def outcome_of(heart: Heart, row: dict[str, Any], learned: tuple[UUID, UUID]) -> Outcome:
    """Read off the store what became of a pair."""
    first, second = (heart.get(fact_id) for fact_id in learned)
    last = {change.action for fact in (first, second) for change in heart.history(fact.id)[:1]}
    joined_by = "learn" if first.id == second.id else "night" if "merged" in last else None
    is_replaced = joined_by is None and (first.superseded_by == second.id or first.contradiction_status == "open")
    is_open = "open" in {first.contradiction_status, second.contradiction_status}
    kept = {statement.content for fact_id in set(learned) for statement in heart.statements(fact_id)}
    return Outcome(
        case=row,
        joined_by=joined_by,
        is_replaced=is_replaced,
        is_hurt=is_open or bool(joined_by) or {first.state, second.state} != {"active"},
        lost=sum(row[name] not in kept for name in ("first", "second")),
        is_stale_first=stands_first(heart, row, learned),
    )


def stands_first(heart: Heart, row: dict[str, Any], learned: tuple[UUID, UUID]) -> bool:
    """Tell whether the question of a pair finds its first statement above the second, or the first alone."""
    if row["query"] is None:
        return False
    answers = heart.recall(row["query"], types=["fact"], limit=DEPTH, user_id=user_of(row))
    texts = [answer.text for answer in answers if answer.id in learned]
    return texts[:1] == [row["first"]]


def all_metrics(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the metrics of all pairs, and of those with an odd id, of which none trained the pair reader."""
    odd = metrics([each for each in outcomes if each.case["id"] % 2])
    return {**metrics(outcomes), **{f"odd_{name}": value for name, value in odd.items()}}


def metrics(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the share of pairs each rule was broken or kept for."""
    apart = [each for each in outcomes if each.label not in ONE]
    updates = of_label(outcomes, "update")
    return {
        "lost_ratio": of_count(sum(each.lost for each in outcomes), 2 * len(outcomes)),
        "joined_ratio": of_share(each.joined_by == "learn" for each in apart),
        "night_joined_ratio": of_share(each.joined_by == "night" for each in apart),
        "update_chatty_ratio": of_share(each.is_replaced for each in updates if each.is_chatty),
        "update_same_wording_ratio": of_share(each.is_replaced for each in updates if not each.is_chatty),
        "same_joined_ratio": of_share(each.joined_by is not None for each in of_label(outcomes, "same")),
        "distinct_hurt_ratio": of_share(each.is_hurt for each in of_label(outcomes, "distinct")),
        "stale_first_ratio": of_share(each.is_stale_first for each in asked_about(outcomes)),
    }


def of_label(outcomes: Iterable[Outcome], label: str) -> list[Outcome]:
    """Return the pairs of one label."""
    return [each for each in outcomes if each.label == label]


def asked_about(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the pairs of which the second changes or ends the first, and that come with a question."""
    return [each for each in outcomes if each.label in CHANGED and each.case["query"]]


def notes(outcomes: Sequence[Outcome], *, quick: bool) -> list[str]:
    """Return how each figure came about, and the counts by label, language and family."""
    return [
        f"{len(outcomes)} pairs; each is told to a user of its own of one agent, without a subject, a month apart;"
        " then one night; offline judge, default embedder and policy",
        "lost: of all statements; joined, night_joined: of pairs that are neither the same nor vaguer; stale_first: of"
        " updates and negations with a question; odd: the pairs with an odd id, the others trained the pair reader",
        "strangers: the first statements of all pairs, told to one agent by one person; few of them speak of one thing,"
        " so what was joined, retired or contradicted among them was so wrongly, but for those few",
        "crowd: all first statements and then all second ones, told to one agent by one person; retired, contradicted:"
        " by a statement of another pair, of all statements; update: of the pairs that are one; imported: the same,"
        " imported in one go, so that the night alone compares them",
        f"chatty: the words of both have a Jaccard below {CHATTY_BELOW}; replaced: superseded, or a contradiction open",
        *(["quick: every eighth pair"] if quick else []),
        *counted(outcomes, "label", lambda each: each.label),
        *counted(outcomes, "language", lambda each: each.case["lang"]),
        *counted(outcomes, "family", lambda each: f"{each.label}, {each.case['family']}"),
    ]


def counted(outcomes: Sequence[Outcome], name: str, key: Callable[[Outcome], str]) -> Iterator[str]:
    """Yield a line for each value of `key` in which anything happened to a pair."""
    for value in sorted({key(each) for each in outcomes}):
        own = [each for each in outcomes if key(each) == value]
        counts = {
            "lost": sum(each.lost for each in own),
            "joined by learn": sum(each.joined_by == "learn" for each in own),
            "joined by the night": sum(each.joined_by == "night" for each in own),
            "replaced": sum(each.is_replaced for each in own),
            "hurt": sum(each.is_hurt for each in own if each.label == "distinct"),
            "stale first": sum(each.is_stale_first for each in asked_about(own)),
        }
        told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        if told or name != "family":
            yield f"{name} {value}: of {len(own)} {told or 'nothing'}"
