"""What ninety nights make of real histories: what is left twice, what is left stale, and what can still be found."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import server
from benchmarks.intervals import of_mean, of_ratio, of_share
from benchmarks.recall import BATCH, LEARNING_S, Remembering
from benchmarks.recall_cases import Question, Store, beam, longmemeval
from nous_online.core.details import FactDetails
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines.nights import last_night, nights_between
from nous_pipelines.orchestration.running import NightOptions, run_night
from nous_pipelines.phases.incremental_join import vector_matrix
from nous_pipelines.phases.self_join import similar_pairs
from nous_pipelines.plan.evidence import final_successor
from nous_pipelines.snapshots.snapshot import take_snapshot

NIGHTS, QUICK_NIGHTS = 90, 5
DEPTH = 10
DATE_FORMATS = ("%Y/%m/%d (%a) %H:%M", "%B-%d-%Y")
UPDATES = ("knowledge-update", "knowledge_update")
BYTES_PER_TOKEN = 1.3
"""An upper-side estimate that covers every tokenizer tried (DESIGN, section 5)."""


@dataclass(frozen=True)
class State:
    """What the store holds and what can be found in it at one moment."""

    active: int
    tokens: float
    repeats_092: int
    repeats_097: int
    findable: float
    shares: Sequence[float]
    """Of each question, how much of its evidence is found."""
    stale: float


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Import two sets of histories with their dates, run their last ninety nights, and ask before and after."""
    stores = [*longmemeval(data, quick=quick), *beam(data, quick=quick)]
    last = last_night(datetime.now(UTC))
    nights = list(nights_between(last - timedelta(days=(QUICK_NIGHTS if quick else NIGHTS) - 1), last))
    with server() as (url, home):
        database = Database(url)
        hearts = [remembered(store, database, embedder, last) for embedder in [Remembering()] for store in stores]
        before = state(hearts, stores, url, home.parent / "before")
        outcomes = list(lived(nights, NightOptions(url, home)))
        after = state(hearts, stores, url, home.parent / "after")
        database.close()
    return described(before, after, outcomes, stores)


def described(before: State, after: State, outcomes: Sequence[str], stores: Sequence[Store]) -> dict[str, Any]:
    """Put both states together."""
    failed = [outcome for outcome in outcomes if outcome]
    return {
        "metrics": {
            "duplicates_left_092": after.repeats_092,
            "duplicates_left_097": after.repeats_097,
            "stale_left_ratio": after.stale,
            "answers_findable_before_r10": before.findable,
            "answers_findable_after_r10": after.findable,
            "answers_findable_after_over_before_ratio": of_ratio(after.shares, before.shares),
            "active_tokens_after_over_before_ratio": after.tokens / before.tokens,
        },
        "peers": {
            "duplicates_before_092": before.repeats_092,
            "duplicates_before_097": before.repeats_097,
            "stale_before_ratio": before.stale,
            "active_before": before.active,
            "active_after": after.active,
            "nights_stopped_by_a_check": len(failed),
        },
        "notes": [
            f"{sum(len(store.turns) for store in stores):,} turns of {len(stores)} histories, each moved in time as a"
            " whole so that it ends with the last night; learned with their dates, matching left to the nights",
            f"{len(outcomes)} nights, offline judge, default policy; nothing was recalled between them",
            "duplicates: pairs of active facts of one agent at or above that cosine, those that differ included",
            "findable: share of a question's evidence among the first ten answers, itself or the memory it went into",
            "stale: of questions about something that changed, how often the earlier evidence comes first",
            *(f"a night was stopped: {reason}" for reason in failed[:3]),
        ],
    }


def lived(nights: Sequence[date], options: NightOptions) -> Iterator[str]:
    """Run the nights in order and yield what stopped each, or nothing."""
    from dagster import DagsterInstance

    with DagsterInstance.ephemeral() as instance:
        for night in nights:
            outcome = run_night(night, options, instance=instance)
            yield "" if outcome.is_success else f"{night}: {'; '.join(outcome.failures)[:300]}"


def remembered(store: Store, database: Database, embedder: Remembering, last: date) -> Heart:
    """Learn every turn of a history at the moment it was said, moved so that the history ends on the last night."""
    moments = said_at(store)
    moved = datetime.combine(last, time(12), UTC) - max(moments)
    heart = Heart.open(f"{store.set_name}-{store.name}", database=database, embedder=embedder)
    entries: list[tuple[str, FactDetails]] = [
        (
            f"{turn.speaker}: {turn.text}",
            FactDetails(
                subject=turn.speaker,
                context=context,
                source=turn.key,
                source_kind="agent" if turn.speaker == "assistant" else "user",
                learned_at=moment + moved,
            ),
        )
        for turn, context, moment in zip(store.turns, store.contexts(), moments, strict=True)
    ]
    for start in range(0, len(entries), BATCH):
        heart.learn_deferred(entries[start : start + BATCH], deadline_s=LEARNING_S)
    return heart


def said_at(store: Store) -> list[datetime]:
    """Return when each turn was said, those of one session a second apart."""
    found: list[datetime] = []
    for turn in store.turns:
        moment = read_moment(turn.time)
        found.append(
            max(moment, found[-1] + timedelta(seconds=1)) if found and moment.date() == found[-1].date() else moment
        )
    return found


def read_moment(text: str) -> datetime:
    """Read a date as the public sets write it."""
    for form in DATE_FORMATS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(f"{text!r} is no date of a form that is known here: {DATE_FORMATS}")


def state(hearts: Sequence[Heart], stores: Sequence[Store], url: str, folder: Path) -> State:
    """Measure the store as it is now, and ask every question of it."""
    night = Database(url, role="nous_night")
    taken = take_snapshot(night, folder, night=datetime.now(UTC).date(), probe_days=0)
    night.close()
    facts = taken.table("facts")
    heirs, active = heirs_of(facts), facts.filter(pl.col("state") == "active")
    asked = [
        (question, found(heart, question, heirs))
        for heart, store in zip(hearts, stores, strict=True)
        for question in store.questions
    ]
    shares = [len(question.evidence & set().union(*answers)) / len(question.evidence) for question, answers in asked]
    changed = [is_stale(question, answers) for question, answers in asked if question.category in UPDATES]
    return State(
        active=len(active),
        tokens=sum(len(content.encode()) for content in active["content"]) / BYTES_PER_TOKEN,
        repeats_092=repeats(active, 0.92),
        repeats_097=repeats(active, 0.97),
        findable=of_mean(shares),
        shares=shares,
        stale=of_share(changed),
    )


def heirs_of(facts: pl.DataFrame) -> dict[str, set[str]]:
    """Return for each fact the turns it stands for: its own, and those of all that were superseded by it."""
    rows = facts.select("id", "source", "superseded_by").to_dicts()
    successor = {row["id"]: row["superseded_by"] for row in rows if row["superseded_by"]}
    heirs: dict[str, set[str]] = {}
    for row in rows:
        heir = final_successor(row["id"], successor)
        if heir is not None and row["source"]:
            heirs.setdefault(heir, set()).add(row["source"])
    return heirs


def found(heart: Heart, question: Question, heirs: dict[str, set[str]]) -> list[set[str]]:
    """Return for each of the first ten answers the turns it stands for."""
    answers = heart.recall(question.text, types=["fact"], limit=DEPTH)
    return [heirs.get(str(answer.id), set()) for answer in answers]


def is_stale(question: Question, answers: Sequence[set[str]]) -> bool:
    """Tell whether earlier evidence stands before the latest; turns are numbered as they were said."""
    latest = max(question.evidence, key=place_of)
    for keys in answers:
        if latest in keys:
            return False
        if question.evidence & keys:
            return True
    return False


def place_of(key: str) -> int:
    """Return where in its history a turn stands."""
    return int(re.sub(r"\D", "", key) or 0)


def repeats(active: pl.DataFrame, threshold: float) -> int:
    """Count the pairs of one agent's active facts at or above a cosine."""
    return sum(
        len(similar_pairs(vector_matrix(own["embedding"]), threshold=threshold))
        for _, own in active.group_by("agent_id")
    )
