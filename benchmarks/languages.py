"""Does a question find its answer in other languages than English? Both embedders that run in process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import cases, server
from benchmarks.intervals import Estimate, of_share
from nous_online.core.domain import FACT
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.embedding import Embedder
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.multilingual import MultilingualE5

BATCH = 256
LEARNING_S = 120.0
QUICK_EVERY = 5
Row = Mapping[str, Any]


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Store the statements of `wording` in thirteen languages for one agent, and ask its questions in their own."""
    rows = cases(data, "wording")[:: QUICK_EVERY if quick else 1]
    with server() as (url, _):
        database = Database(url)
        ours, minilm = (
            metrics(rows, ranks_of(rows, database, name, embedder))
            for name, embedder in (("multilingual", MultilingualE5()), ("minilm", LocalMiniLM()))
        )
        database.close()
    languages = {row["lang"] for row in rows}
    return {
        "metrics": ours,
        "peers": {f"minilm_{name}": value for name, value in minilm.items()},
        "notes": [
            f"{2 * len(rows)} statements in {len(languages)} languages, imported for one agent; a question of a pair is"
            " answered by either of its statements",
            "other: every language but English; the default policy; the embedder of the extra `multilingual`",
        ],
    }


def ranks_of(rows: Sequence[Row], database: Database, name: str, embedder: Embedder) -> list[int]:
    """Return at which place among ten the answer of each row with a question stands, 10 where it is missing."""
    heart = Heart.open(name, database=database, embedder=embedder, works_in_background=False)
    texts = list(dict.fromkeys(row[side] for row in rows for side in ("first", "second")))
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        heart.learn_deferred([(text, {}) for text in batch], deadline_s=LEARNING_S)
    return [rank_of(heart, row) for row in rows if row["query"]]


def rank_of(heart: Heart, row: Row) -> int:
    """Return at which place the first of a row's statements answers its question."""
    found = [each.content for each in heart.recall(row["query"], kinds=[FACT.name])]
    return next((place for place, text in enumerate(found) if text in (row["first"], row["second"])), 10)


def metrics(rows: Sequence[Row], ranks: Sequence[int]) -> dict[str, Estimate]:
    """Return how many answers stand first and among the first three, in English and elsewhere."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for row, rank in zip((row for row in rows if row["query"]), ranks, strict=True):
        places["english" if row["lang"] == "en" else "other"].append(rank)
    return {
        f"{language}_r{most}": of_share(rank < most for rank in found)
        for language, found in sorted(places.items(), reverse=True)
        for most in (1, 3)
    }
