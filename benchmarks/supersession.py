"""Does learning put the new value in the place of the old one, and only there? Four sets of facts that change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from benchmarks import server
from benchmarks.intervals import of_count, of_share
from benchmarks.recall import Remembering, bm25
from benchmarks.supersession_cases import (
    Said,
    Story,
    dated_facts,
    fact_consolidation,
    knowledge_updates,
    project_chats,
)
from nous_online.core.details import FactDetails
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.embedding import passages

DEPTH = 10
DEADLINE_S = 60.0
Answers = list[frozenset[str]]


@dataclass(frozen=True)
class Outcome:
    """What became of a story: the pairs of old and new that learning made, and the keys of each answer, best first."""

    story: Story
    made: frozenset[tuple[str, str]]
    answers: Sequence[Answers]


Lived = Sequence[Outcome]


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Learn every story in order, then ask its questions; BM25 over the same statements stands beside it."""
    sets = {
        "fc": fact_consolidation(data, quick=quick),
        "lme": knowledge_updates(data, quick=quick),
        "beam": [] if quick else project_chats(data),
        "dyknow": dated_facts(data, quick=quick),
    }
    embedder = Remembering()
    with server() as (url, _):
        database = Database(url)
        ours = {name: [lived(story, database, embedder) for story in stories] for name, stories in sets.items()}
        database.close()
    peers = {
        f"{peer}{metric}": value
        for peer, (answer, told) in PEERS.items()
        for metric, value in metrics({name: list(map(answer, stories)) for name, stories in sets.items()}).items()
        if metric.startswith(told)
    }
    return {"metrics": metrics(ours), "peers": peers, "notes": notes(sets, quick=quick)}


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
    return Outcome(story, frozenset(made), answers)


def learned(heart: Heart, story: Story) -> dict[UUID, frozenset[str]]:
    """Learn what is said, in order; return which statements each memory stands for."""
    keys: dict[UUID, frozenset[str]] = {}
    for said in story.said:
        memory = heart.learn(said.text, **FactDetails(learned_at=said.at, subject=said.speaker)).memory
        keys[memory.id] = keys.get(memory.id, frozenset()) | {said.key}
    return keys


def lexical(story: Story) -> Outcome:
    """Return what BM25 finds among the statements known at the moment asked about; of equals the latest comes first."""
    return Outcome(story, frozenset(), ranked(story, frozenset()))


def of_slots(story: Story) -> Outcome:
    """Return what one rule makes of a story: up to its last function word a text is a slot, the latest value holds."""
    made: set[tuple[str, str]] = set()
    latest: dict[str, Said] = {}
    for said in sorted(story.said, key=lambda said: said.at):
        before = latest.get(slot_of(said.text))
        if before is not None and before.text != said.text:
            made.add((before.key, said.key))
        latest[slot_of(said.text)] = said
    return Outcome(story, frozenset(made), ranked(story, frozenset(old for old, _ in made)))


def slot_of(text: str) -> str:
    """Return the text up to its last function word, or all of it."""
    words = text.split()
    ends = [place for place, word in enumerate(words) if word.casefold() in LINKS]
    return " ".join(words[: ends[-1] + 1] if ends else words)


def beginning(story: Story) -> Outcome:
    """Return for each question the latest statement by then that begins with it."""
    by_time = sorted(story.said, key=lambda said: said.at, reverse=True)
    found = [
        [said.key for said in by_time if said.at <= (asked.as_of or said.at) and said.text.startswith(asked.text)][:1]
        for asked in story.asked
    ]
    return Outcome(story, frozenset(), [[frozenset(keys)] for keys in found])


def ranked(story: Story, gone: frozenset[str]) -> list[Answers]:
    """Return the best statements for each question by BM25, of those known by then and not gone."""
    score = bm25([said.text for said in story.said])
    lateness = np.argsort(np.argsort([said.at.timestamp() for said in story.said], kind="stable"))
    found: list[Answers] = []
    for asked in story.asked:
        order = np.lexsort((-lateness, -score(asked.text)))
        known = (story.said[place] for place in order)
        kept = (said.key for said in known if said.key not in gone and (not asked.as_of or said.at <= asked.as_of))
        found.append([frozenset([key]) for key in islice(kept, DEPTH)])
    return found


PEERS: Mapping[str, tuple[Callable[[Story], Outcome], tuple[str, ...]]] = {
    "bm25_": (lexical, ("fc_stale", "fc_right", "beam_update", "dyknow")),
    "slot_": (of_slots, ("fc_",)),
    "begins_": (beginning, ("dyknow",)),
}
"""How each peer answers, and the figures it has a say in."""
LINKS = frozenset("is of by in to as with at for".split())  # noqa: SIM905
"""The function words a value follows."""


def metrics(outcomes: Mapping[str, Lived]) -> dict[str, float]:
    """Return the metrics of every set that was read."""
    precision, recall = pair_rates(outcomes["fc"])
    found = {
        "fc_pair_recall": recall,
        "fc_pair_precision": precision,
        "fc_stale_at10": stale_share(outcomes["fc"]),
        "fc_right_at10": right_share(outcomes["fc"], depth=DEPTH),
        "lme_update_recall": pair_rates(outcomes["lme"])[1],
        "lme_false_pairs": float(sum(len(outcome.made - outcome.story.replaced) for outcome in outcomes["lme"])),
        "beam_update_right_at10": right_share(outcomes["beam"], depth=DEPTH),
        "beam_pairs_made": float(sum(len(outcome.made) for outcome in outcomes["beam"])),
        "dyknow_asof_accuracy": right_share(outcomes["dyknow"], depth=1),
    }
    return {name: value for name, value in found.items() if outcomes[name.partition("_")[0]]}


def pair_rates(outcomes: Lived) -> tuple[float, float]:
    """Return precision and recall of the pairs of old and new that learning made."""
    right = sum(len(outcome.made & outcome.story.replaced) for outcome in outcomes)
    made = sum(len(outcome.made) for outcome in outcomes)
    return of_count(right, made), of_count(right, sum(len(outcome.story.replaced) for outcome in outcomes))


def stale_share(outcomes: Lived) -> float:
    """Return the share of questions with a stale twin whose answers still hold it."""
    return of_share(
        any(asked.stale & keys for keys in found)
        for outcome in outcomes
        for asked, found in zip(outcome.story.asked, outcome.answers, strict=True)
        if asked.stale
    )


def right_share(outcomes: Lived, *, depth: int) -> float:
    """Return the share of questions whose first answers hold every right statement, or one of those right by then."""
    return of_share(
        asked.right <= shown if asked.as_of is None else bool(asked.right & shown)
        for outcome in outcomes
        for asked, found in zip(outcome.story.asked, outcome.answers, strict=True)
        for shown in [frozenset[str]().union(*found[:depth])]
    )


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
        "bm25: bm25s with Snowball stems over the statements known at the moment asked about, of equals the latest",
        "slot: a statement up to its last function word is a slot, and what was said latest in it holds; BM25 of that",
        "begins: the latest statement by then that begins with the question",
        "FactConsolidation is some 45 sentence templates, 245 of its pairs and 1,127 of its facts trained the"
        " classifier, as did 275 facts of DyKnow; slots are read off the words by rules first",
        *(
            ["quick: the small FactConsolidation store, a third of LongMemEval, a tenth of DyKnow, no BEAM"]
            if quick
            else []
        ),
    ]
