"""A pair on its way to Claude and back: what is asked, and what has to be kept meanwhile, which is not a word of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from nous_online.language.pairs.judging import Pair
from nous_pipelines.phases.asking import TOLD_AS, told_pairs, with_hashes
from nous_pipelines.phases.neighbours import FOUND

Home = Sequence[Any]
"""What brings an answer home, as JSON: hash, both ids, when each was stated, similarity, is the order known; in the row
of a batch the number of the question besides."""


@dataclass(frozen=True)
class PairQuestion:
    """A pair that Claude is asked about, known by the hash of its content."""

    pair_hash: str
    left_id: str
    right_id: str
    is_ordered: bool
    pair: Pair

    @property
    def home(self) -> Home:
        """What has to be kept while it is on its way."""
        moments = [said.stated_at and said.stated_at.isoformat() for said in (self.pair.a, self.pair.b)]
        return [self.pair_hash, self.left_id, self.right_id, *moments, self.pair.similarity, self.is_ordered]


def questions_of(pairs: pl.DataFrame, facts: pl.DataFrame) -> list[PairQuestion]:
    """Return pairs (with the columns `with_hashes` leaves) as questions, in order; `facts` are those they rest on."""
    names = ("pair_hash", "left_id", "right_id", "is_ordered")
    rows = pairs.select(names).iter_rows()
    return [
        PairQuestion(pair_hash, left_id, right_id, is_ordered, pair)
        for (pair_hash, left_id, right_id, is_ordered), pair in zip(rows, told_pairs(pairs, facts), strict=True)
    ]


def brought_home(agent_id: str, homes: Sequence[Home], facts: Iterable[Sequence[Any]]) -> dict[str, Pair]:
    """Return the pairs of a batch as their facts read now, by hash.

    `facts` are rows of the columns `TOLD_AS`. A pair of which one is gone or reads otherwise than it was asked about is
    left out: its answer is about something that nobody says any more.
    """
    table = pl.DataFrame(list(facts), schema=TOLD_AS, orient="row")
    rows = [
        (agent_id, left, right, similarity, False, is_ordered, moment(left_at), moment(right_at), asked)
        for asked, left, right, left_at, right_at, similarity, is_ordered, *_ in homes
    ]
    pairs = with_hashes(pl.DataFrame(rows, schema={**FOUND, "asked": pl.String}, orient="row"), table)
    same = pairs.filter(pl.col("pair_hash") == pl.col("asked"))
    return dict(zip(same["pair_hash"], told_pairs(same, table), strict=True))


def moment(text: str | None) -> datetime | None:
    """Read a moment as it was kept."""
    return datetime.fromisoformat(text) if text is not None else None


@dataclass(frozen=True)
class Tried:
    """What earlier batches of an agent left unsettled: for each model and pair how often for which reason."""

    counts: Mapping[tuple[str, str], Counter[str]] = field(default_factory=dict[tuple[str, str], Counter[str]])

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, str]]) -> Tried:
        """Count rows of model, hash of a pair, and reason."""
        counts: dict[tuple[str, str], Counter[str]] = {}
        for model, pair_hash, reason in rows:
            counts.setdefault((model, pair_hash), Counter())[reason] += 1
        return cls(counts)

    def count(self, model: str, pair_hash: str, reason: str) -> int:
        """Return how often a model's answer about a pair came to this."""
        return self.counts.get((model, pair_hash), Counter())[reason]
