"""Is a statement put before a judge together with the one it repeats, replaces or denies?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks import cases, server
from benchmarks.intervals import of_mean, of_share
from benchmarks.recall import Remembering
from benchmarks.supersession_cases import FIRST_DAY, Said, Story, fact_consolidation, knowledge_updates, project_chats
from nous_online.core.details import FactDetails
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import Judgement, OfflineJudge, Pair, Verdict

TRUE = frozenset({"same", "update", "negation", "contradiction"})
DEADLINE_S = 60.0
QUICK_EVERY = 6


@dataclass
class Listener:
    """A judge that notes what it is asked about, and leaves everything as it is."""

    name: str = "listener"
    prompt_version: str = "1"
    asked: list[list[str]] = field(default_factory=list[list[str]])
    """For each fact learned the texts it was compared with, the likeliest first."""

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Note the pairs and call each of them compatible."""
        self.asked[-1] += [pair.a.text for pair in pairs]
        kept = Judgement(Verdict.COMPATIBLE, 1.0, "noted", None, None, self.name, self.prompt_version)
        return [kept] * len(pairs)


class OfflineListener(Listener, OfflineJudge):
    """One that is asked only about what the built-in judge reads while the caller waits."""


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Learn every story in order, and look which pairs of old and new a judge is shown."""
    sets = {
        "wording": [people(data, quick=quick)],
        "fc": fact_consolidation(data, quick=True),
        "lme": knowledge_updates(data, quick=quick),
        "beam": [] if quick else [with_updates(story) for story in project_chats(data)],
    }
    embedder = Remembering()
    with server() as (url, _):
        database = Database(url)
        found = {
            name: [met(story, database, embedder, Listener()) for story in stories] for name, stories in sets.items()
        }
        read = [
            met(replace(story, name=f"{story.name} again"), database, embedder, OfflineListener())
            for stories in sets.values()
            for story in stories
        ]
        database.close()
    return {"metrics": metrics(found, read), "peers": {}, "notes": notes(sets, quick=quick)}


def people(data: Path, *, quick: bool) -> Story:
    """Return the pairs of `wording` as one store: all first statements, then all second ones."""
    rows = [row for row in cases(data, "wording") if row["label"] in TRUE][:: QUICK_EVERY if quick else 1]
    moments = {"first": FIRST_DAY, "second": FIRST_DAY + timedelta(days=30)}
    said = [Said(f"{row['id']}-{side}", row[side], at) for side, at in moments.items() for row in rows]
    return Story("people", said, frozenset((f"{row['id']}-first", f"{row['id']}-second") for row in rows))


def with_updates(story: Story) -> Story:
    """Return a chat with the pairs its questions name: a turn of old and one of new information."""
    pairs = {(old, new) for asked in story.asked for old in asked.stale for new in asked.right}
    order = {said.key: place for place, said in enumerate(story.said)}
    return Story(story.name, story.said, frozenset(pair for pair in pairs if order[pair[0]] < order[pair[1]]))


@dataclass(frozen=True)
class Met:
    """Of one story: at which place among those it was compared with the old one of each pair stood, -1 for nowhere."""

    places: Sequence[int]
    pairs: Sequence[int]
    """With how many each fact was compared."""


def met(story: Story, database: Database, embedder: Remembering, listener: Listener) -> Met:
    """Learn a story with a judge that listens."""
    embedder.embed_documents([said.text for said in story.said])
    heart = Heart.open(
        story.name, database=database, embedder=embedder, judge=listener, deadline_s=DEADLINE_S,
        works_in_background=False,
    )  # fmt: skip
    compared: dict[str, list[str]] = {}
    for said in story.said:
        listener.asked.append([])
        heart.learn(said.text, **FactDetails(learned_at=said.at))
        compared[said.key] = listener.asked[-1]
    heart.close()
    texts = {said.key: said.text for said in story.said}
    distinct = [(old, new) for old, new in story.replaced if texts[old] != texts[new]]
    places = [compared[new].index(texts[old]) if texts[old] in compared[new] else -1 for old, new in distinct]
    return Met(places, list(map(len, compared.values())))


def metrics(found: dict[str, list[Met]], read: list[Met]) -> dict[str, float]:
    """Return the share of pairs that were put before the judge, of all sets and of each, and that `learn` read."""
    every = [place for stories in found.values() for story in stories for place in story.places]
    own = {
        f"{name}_nominated_ratio": of_share([place >= 0 for story in stories for place in story.places])
        for name, stories in found.items()
        if stories
    }
    counted = [story for stories in found.values() for story in stories]
    return {
        "nominated_ratio": of_share([place >= 0 for place in every]),
        "pairs_per_fact": of_mean([pairs for story in counted for pairs in story.pairs]),
        "read_while_waiting_ratio": of_share([place >= 0 for story in read for place in story.places]),
        "read_per_fact": of_mean([pairs for story in read for pairs in story.pairs]),
        **own,
    }


def notes(sets: dict[str, list[Story]], *, quick: bool) -> list[str]:
    """Return what was learned and how the figures came about."""
    counts = ", ".join(
        f"{name} {sum(len(story.replaced) for story in stories)} pairs among "
        f"{sum(len(story.said) for story in stories)} statements"
        for name, stories in sets.items()
    )
    return [
        counts,
        "wording: one store for all pairs whose second statement repeats, replaces, ends or denies the first; fc: the"
        " small store; no subjects, users or keys are given anywhere",
        "read_while_waiting: the built-in judge reads it before learn returns; the night reads the rest",
        *(["quick: every sixth pair of wording, every third chain, no chats"] if quick else []),
    ]
