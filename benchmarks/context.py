"""Does a context of 8,000 tokens hold what the answer needs? Against as many tokens of other choices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import UUID

import numpy as np

from benchmarks import cases, server
from benchmarks.drawn_memories import DrawnEmbedder, World, load
from benchmarks.intervals import of_count, of_mean, of_ratio, of_share
from benchmarks.recall import Remembering, bm25, bm25_with_context, learn
from benchmarks.recall_cases import Question, Store, beam, locomo
from nous_online.context.context_lines import Context, cost_of, one_line
from nous_online.context.packing import heading_tokens
from nous_online.core.details import FactDetails
from nous_online.core.policy import MAX_RECALL_LIMIT
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.heart import Heart
from nous_online.language.embedding import Embedder
from nous_online.language.tokens import counting, tokens_of

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


# --- the measurement ---


SQL = statements("benchmarks", "context.sql")
BUDGETS = {"8k": 8_000, "4k": 4_000, "2k": 2_000}
SIZE, QUICK_SIZE = 100_000, 5_000
WARM_UP, CALLS = 20, 100
QUICK_QUESTIONS = 40
SET_NAMES = {"locomo": "LoCoMo", "beam": "BEAM"}


@dataclass(frozen=True)
class Asked:
    """What each way of filling a budget shows of one question's evidence, and what a context used and overran."""

    set_name: str
    budget: str
    shares: Mapping[str, float]
    """Of the evidence shown: by contexts (""), by those in full alone ("full_"), and by each peer."""
    tokens: int
    is_over: bool


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Ask every question at every budget, then the cases of the beliefs, then measure the time among 100,000 facts."""
    stores = [store for read in (locomo, beam) for store in read(data, quick=quick)]
    embedder = Remembering()
    with server() as (url, _):
        database = Database(url)
        asked = [each for store in stores for each in all_budgets(store, database, embedder, quick=quick)]
        of_beliefs = beliefs(data, Heart.open("beliefs", database=database, embedder=embedder))
        database.close()
        size = QUICK_SIZE if quick else SIZE
        times = milliseconds(url, size)
    named = dict(evidence_metrics(asked))
    own = {name: value for name, value in named.items() if not name.startswith(PEERS)}
    return {
        "metrics": {
            **of_beliefs,
            **own,
            "over_budget": sum(each.is_over for each in asked),
            f"p50_ms_{size // 1000}k": float(np.percentile(times, 50)),
            f"p95_ms_{size // 1000}k": float(np.percentile(times, 95)),
        },
        "peers": {name: value for name, value in named.items() if name not in own},
        "notes": notes(asked, quick=quick),
    }


# --- evidence ---

Ranking = Callable[[Question], Sequence[int]]
PEERS = ("topk_", "bm25_")


def all_budgets(store: Store, database: Database, embedder: Embedder, *, quick: bool) -> Iterator[Asked]:
    """Learn the turns of a store, and yield what is shown for each question at each budget."""
    texts = [f"{turn.speaker}: {turn.text}" for turn in store.turns]
    name = f"{store.set_name}-{store.name}"
    heart = Heart.open(name, database=database, embedder=embedder, works_in_background=False)
    learn(heart, store, texts)
    keys = keys_of(heart)
    peers = rankings(heart, store, texts)
    questions = store.questions[: QUICK_QUESTIONS if quick else None]
    for question in questions:
        orders = {peer: rank(question) for peer, rank in peers.items()}
        for budget_name, budget in BUDGETS.items():
            context = heart.assemble_context(query=question.text, budget=budget)
            shares = {
                "": share(question, shown_keys(context, keys, is_full=False)),
                "full_": share(question, shown_keys(context, keys, is_full=True)),
                **{peer: share(question, filled(store, texts, order, budget)) for peer, order in orders.items()},
            }
            tokens = tokens_of(context.text)
            yield Asked(store.set_name, budget_name, shares, tokens, tokens > budget)


def keys_of(heart: Heart) -> dict[UUID, str]:
    """Return which turn each memory of an agent is."""
    with heart.agent.database.transaction(heart.agent.id) as connection:
        return dict(connection.execute(SQL["sources"], {"agent_id": heart.agent.id}).fetchall())


def share(question: Question, shown: Collection[str]) -> float:
    """Return which share of a question's evidence is shown."""
    return len(question.evidence.intersection(shown)) / len(question.evidence)


def shown_keys(context: Context, keys: Mapping[UUID, str], *, is_full: bool) -> set[str]:
    """Return the turns a context shows, in full or at any level but the index."""
    lines = [line for line in context.lines if (line.level == "full" if is_full else line.tier != "index")]
    return {keys[each] for line in lines for each in line.memory_ids}


def rankings(heart: Heart, store: Store, texts: Sequence[str]) -> dict[str, Ranking]:
    """Return how each peer orders the turns for a question: as recalled, by words alone, by words and context."""
    places = {turn.key: place for place, turn in enumerate(store.turns)}
    by_words, surrounded = bm25(texts), bm25_with_context(texts, store.contexts())

    def recalled(question: Question) -> Sequence[int]:
        answers = heart.recall(question.text, types=["fact"], limit=MAX_RECALL_LIMIT)
        return [places[str(answer.memory.source)] for answer in answers]

    return {
        "topk_": recalled,
        "bm25_": lambda question: np.argsort(-by_words(question.text), kind="stable").tolist(),
        "bm25_context_": lambda question: np.argsort(-surrounded(question.text), kind="stable").tolist(),
    }


def filled(store: Store, texts: Sequence[str], order: Sequence[int], budget: int) -> set[str]:
    """Return the turns that fit into a budget under a heading, in an order, each as it is; the first misfit ends it."""
    left = budget - heading_tokens()
    shown: set[str] = set()
    for place in order:
        left -= cost_of(one_line(texts[place]))
        if left < 0:
            break
        shown.add(store.turns[place].key)
    return shown


def evidence_metrics(asked: Sequence[Asked]) -> Iterator[tuple[str, float]]:
    """Yield the mean share of evidence shown, for each set, budget and way; and what a thousand tokens show of it."""
    for set_name in SET_NAMES:
        for budget in BUDGETS:
            own = [each for each in asked if (each.set_name, each.budget) == (set_name, budget)]
            for way in own[0].shares:
                yield f"{way}{set_name}_evidence_at_{budget}", of_mean([each.shares[way] for each in own])
            used = [each.tokens / 1_000 for each in own]
            yield f"{set_name}_evidence_per_1k_tokens_at_{budget}", of_ratio([each.shares[""] for each in own], used)


# --- beliefs ---


def beliefs(data: Path, heart: Heart) -> dict[str, float]:
    """Learn the beliefs, assemble a context for each case, and count what was shown of what is expected."""
    known = learn_beliefs(heart, data)
    wanted: list[bool] = []
    superseded = unreachable = unwanted = shown_count = fitting = expected = found = 0
    for case in cases(data, "pmb_cases"):
        user_id, project_id = case.get("userId", ASKER), project_of(case["scope"])
        context = heart.assemble_context(query=case["query"], user_id=user_id, project_id=project_id)
        shown = shown_of(context, known)
        wanted += must(case, shown)
        gone = {each.key for each in known.values() if not each.is_current}
        superseded += len(shown.keys & gone)
        unwanted += len(excluded(case, shown))
        unreachable += len(out_of_reach(case, shown, known))
        only = allowed(case)
        if only is not None:
            shown_count += len(shown.relevant)
            fitting += len(shown.relevant & only)
            expected += len(only)
            found += len(shown.keys & only)
    return {
        "pmb_must_include_ratio": of_share(wanted),
        "pmb_superseded_shown": superseded,
        "pmb_out_of_reach_shown": unreachable,
        "pmb_excluded_shown": unwanted,
        "pmb_only_precision": of_count(fitting, shown_count),
        "pmb_only_recall": of_count(found, expected),
    }


# --- time ---


def milliseconds(url: str, size: int) -> list[float]:
    """Return how long assembling takes among so many facts, in order, the embedding known beforehand."""
    world = World(1)
    questions = world.questions(WARM_UP + CALLS)
    load(url, {"aria": world.memories(size)})
    database = Database(url)
    heart = Heart.open("aria", database=database, embedder=DrawnEmbedder(questions), works_in_background=False)
    times: list[float] = []
    for text in questions.texts:
        began = perf_counter()
        heart.assemble_context(query=text)
        times.append((perf_counter() - began) * 1_000)
    database.close()
    return times[WARM_UP:]


def notes(asked: Sequence[Asked], *, quick: bool) -> list[str]:
    """Return what a reader must know to compare the figures."""
    counts = {name: sum(each.set_name == key for each in asked) // len(BUDGETS) for key, name in SET_NAMES.items()}
    return [
        f"questions with evidence: {', '.join(f'{name} {count}' for name, count in counts.items())}; each turn is one"
        " memory as in the benchmark `recall`; a context is made for the question alone, without signals",
        f"tokens are those of {counting()}; peers fill the same budget with turns in"
        " full under one heading: as recalled (topk), by BM25, or by BM25 of the text and of"
        " the text with the lines around it, added (bm25_context)",
        "evidence counts as shown at any level but the index; full_: in full",
        "pmb: beliefs of a domain are private to their user and project, aliases are tags, resolved questions have"
        " ended; pmb_only counts what stands under # Relevant against what a case alone allows there",
        "time: one question among drawn facts, stored with their levels as learned ones are, embedding not counted",
        *(["quick: the shortest LoCoMo conversation, one BEAM chat, 40 questions each, 5,000 facts"] if quick else []),
    ]
