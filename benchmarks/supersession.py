"""Does learning put the new value in the place of the old one, and only there? Four sets of facts that change."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from benchmarks.recall import Remembering, bm25
from benchmarks.supersession_cases import (
    Asked,
    Story,
    dated_facts,
    fact_consolidation,
    knowledge_updates,
    project_chats,
)
from nous_online import postgres
from nous_online.database import Database
from nous_online.domain import FactDetails
from nous_online.embedding import Vectors
from nous_online.heart import Heart
from nous_online.passages import passages

DEPTH = 10
DEADLINE_S = 60.0
Answers = list[frozenset[str]]


@dataclass(frozen=True)
class Outcome:
    """What became of a story: the pairs of old and new that learning made, and the keys of each answer, best first."""

    story: Story
    made: frozenset[tuple[str, str]]
    answers: Sequence[Answers]
    bm25_answers: Sequence[Answers]


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Learn every story in order, then ask its questions; BM25 over the same statements stands beside it."""
    sets = {
        "fc": fact_consolidation(data, quick=quick),
        "lme": knowledge_updates(data, quick=quick),
        "beam": [] if quick else project_chats(data),
        "dyknow": dated_facts(data, quick=quick),
    }
    embedder = Remembering()
    with tempfile.TemporaryDirectory(prefix="nous-supersession-") as folder:
        home = Path(folder) / "home"
        try:
            database = Database(postgres.ensure(home).dsn())
            outcomes = {name: [lived(story, database, embedder) for story in stories] for name, stories in sets.items()}
            database.close()
        finally:
            postgres.stop(home)
            shutil.rmtree(postgres.data_directory(home), ignore_errors=True)  # root's data lie outside the folder
    found = {name: value for name, value in metrics(outcomes).items() if outcomes[set_of(name)]}
    ours, theirs = ({n: v for n, v in found.items() if n.startswith("bm25_") is is_peer} for is_peer in (False, True))
    return {"metrics": ours, "peers": theirs, "notes": notes(sets, quick=quick)}


def set_of(metric: str) -> str:
    """Return the set a metric is measured on: its first word, or the one after the peer's name."""
    return metric.removeprefix("bm25_").partition("_")[0]


def lived(story: Story, database: Database, embedder: Remembering) -> Outcome:
    """Learn a story and ask its questions."""
    embedder.embed_documents([text for said in story.said for text in passages(said.text, said.speaker, None)])
    heart = Heart.open(story.name, database=database, embedder=embedder, deadline_s=DEADLINE_S)
    keys = learned(heart, story)
    successors = {memory_id: heart.get(memory_id).superseded_by for memory_id in keys}
    made = {(old, new) for told, by in successors.items() if by for old in keys[told] for new in keys[by]}
    answers = [
        [keys[answer.id] for answer in heart.recall(asked.text, types=["fact"], limit=DEPTH, as_of=asked.as_of)]
        for asked in story.asked
    ]
    return Outcome(story, frozenset(made), answers, lexical_answers(story))


def learned(heart: Heart, story: Story) -> dict[UUID, frozenset[str]]:
    """Learn what is said, in order; return which statements each memory stands for."""
    keys: dict[UUID, frozenset[str]] = {}
    for said in story.said:
        memory = heart.learn(said.text, **FactDetails(learned_at=said.at, subject=said.speaker)).memory
        keys[memory.id] = keys.get(memory.id, frozenset()) | {said.key}
    return keys


def lexical_answers(story: Story) -> list[Answers]:
    """Return what BM25 finds among all statements; it knows no time."""
    score = bm25([said.text for said in story.said])
    return [[frozenset([story.said[place].key]) for place in best(score, asked)] for asked in story.asked]


def best(score: Callable[[str], Vectors], asked: Asked) -> list[int]:
    """Return the places of the best statements for a question."""
    return np.argsort(-score(asked.text), kind="stable")[:DEPTH].tolist()


def metrics(outcomes: dict[str, list[Outcome]]) -> dict[str, float]:
    """Return the metrics of every set, and what BM25 reaches over the same statements."""
    precision, recall = pair_rates(outcomes["fc"])
    return {
        "fc_pair_recall": recall,
        "fc_pair_precision": precision,
        "fc_stale_at10": stale_share(outcomes["fc"], lambda outcome: outcome.answers),
        "fc_right_at10": right_share(outcomes["fc"], lambda outcome: outcome.answers),
        "lme_update_recall": pair_rates(outcomes["lme"])[1],
        "lme_false_pairs": float(sum(len(outcome.made - outcome.story.replaced) for outcome in outcomes["lme"])),
        "beam_update_right_at10": right_share(outcomes["beam"], lambda outcome: outcome.answers),
        "beam_pairs_made": float(sum(len(outcome.made) for outcome in outcomes["beam"])),
        "dyknow_asof_accuracy": right_share(outcomes["dyknow"], lambda outcome: [a[:1] for a in outcome.answers]),
        "bm25_fc_stale_at10": stale_share(outcomes["fc"], lambda outcome: outcome.bm25_answers),
        "bm25_fc_right_at10": right_share(outcomes["fc"], lambda outcome: outcome.bm25_answers),
        "bm25_beam_update_right_at10": right_share(outcomes["beam"], lambda outcome: outcome.bm25_answers),
        "bm25_dyknow_right_at1": right_share(outcomes["dyknow"], lambda outcome: [a[:1] for a in outcome.bm25_answers]),
    }


def pair_rates(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Return precision and recall of the pairs of old and new that learning made."""
    right = sum(len(outcome.made & outcome.story.replaced) for outcome in outcomes)
    made = sum(len(outcome.made) for outcome in outcomes)
    return right / max(made, 1), right / max(sum(len(outcome.story.replaced) for outcome in outcomes), 1)


def stale_share(outcomes: Sequence[Outcome], answers: Callable[[Outcome], Sequence[Answers]]) -> float:
    """Return the share of questions with a stale twin whose answers still hold it."""
    return share(
        any(asked.stale & keys for keys in found)
        for outcome in outcomes
        for asked, found in zip(outcome.story.asked, answers(outcome), strict=True)
        if asked.stale
    )


def right_share(outcomes: Sequence[Outcome], answers: Callable[[Outcome], Sequence[Answers]]) -> float:
    """Return the share of questions whose answers hold every right statement."""
    return share(
        asked.right <= frozenset[str]().union(*found) if asked.as_of is None else any(asked.right & k for k in found)
        for outcome in outcomes
        for asked, found in zip(outcome.story.asked, answers(outcome), strict=True)
    )


def share(flags: Iterable[bool]) -> float:
    """Return the share of true flags, 0 of none."""
    kept = list(flags)
    return sum(kept) / max(len(kept), 1)


def notes(sets: dict[str, list[Story]], *, quick: bool) -> list[str]:
    """Return how each figure came about."""
    sizes = [
        f"{name}: {sum(len(story.said) for story in stories):,} statements,"
        f" {sum(len(story.replaced) for story in stories):,} pairs,"
        f" {sum(len(story.asked) for story in stories):,} questions"
        for name, stories in sets.items()
    ]
    return [
        *sizes,
        "learned one by one with Heart.learn and the offline judge; a pair is a statement and the one superseding it",
        "fc: facts in serial order; asked are the single-hop questions, each tied to the latest fact that ends in its"
        " answer and shares its rare words; stale_at10 counts the questions whose fact replaced another",
        "lme: whole turns of a chat, which say more than the update, so that none may hide another;"
        " lme_false_pairs counts what was superseded all the same",
        "beam: the user's turns are learned; right is the one with the new information",
        "dyknow: each value is learned on the day it became true; asked is the statement without its value, as of the"
        " middle of its time; right is the first answer",
        "bm25: bm25s with stop words and Snowball stems over all the statements",
        *(
            ["quick: the small FactConsolidation store, a third of LongMemEval, a tenth of DyKnow, no BEAM"]
            if quick
            else []
        ),
    ]
