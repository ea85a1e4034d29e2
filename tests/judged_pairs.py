"""Pairs with their verdicts, without a database: what tests of clusters and merges start from."""

from __future__ import annotations

import polars as pl

from nous_online.pairs.judging import Judge
from nous_pipelines.policy import NightPolicy
from nous_pipelines.transforms.asking import TOLD, ask, judged, ruled, to_ask, verdicts_of, with_hashes
from nous_pipelines.transforms.neighbours import READ, Neighbours, neighbours_of

UNDONE = {"agent_id": pl.String, "kind": pl.String, "targets": pl.List(pl.String)}
NONE_UNDONE = pl.DataFrame(schema=UNDONE)
CONTRADICTIONS = {
    **dict.fromkeys(("id", "agent_id", "memory_a", "memory_b", "status", "resolution"), pl.String),
    "detected_at": pl.Datetime("us", "UTC"),
}
NO_CONTRADICTIONS = pl.DataFrame(schema=CONTRADICTIONS)


def judged_pairs(
    facts: pl.DataFrame,
    judge: Judge,
    *,
    policy: NightPolicy,
    undone: pl.DataFrame = NONE_UNDONE,
    contradictions: pl.DataFrame = NO_CONTRADICTIONS,
) -> tuple[pl.DataFrame, Neighbours]:
    """Return the judgements of a night over these facts, and the neighbours they are about."""
    found = neighbours_of(facts.select(READ), policy=policy, undone=undone)
    told = facts.select(TOLD)
    pairs = with_hashes(found.pairs, told)
    rules = ruled(pairs, undone=undone, contradictions=contradictions)
    asked = to_ask(pairs, rules)
    verdicts = verdicts_of(asked, ask(judge, asked, told)).with_columns(model=pl.lit(judge.name))
    return judged(pairs, rules, verdicts), found
