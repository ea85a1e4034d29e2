"""Pairs with their verdicts, without a database: what tests of clusters and merges start from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import polars as pl
from conftest import ScriptedJudge
from drawn import NIGHT, NONE_UNDONE

from nous_online.language.pairs.judging import Judge, Judgement, Pair, Verdict
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.asking import (
    STATEMENT_COLUMNS,
    ask,
    judged,
    pairs_to_judge,
    person_rulings,
    verdicts_of,
    with_hashes,
)
from nous_pipelines.phases.merging import duplicate_clusters, merge_phase
from nous_pipelines.phases.neighbours import READ, Neighbours, neighbours_of
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.proposals import Proposal
from nous_pipelines.phases.rulings import follow_successors
from nous_pipelines.snapshots.table_schemas import CONTRADICTIONS

NO_CONTRADICTIONS = CONTRADICTIONS.empty()


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
    told = facts.select(STATEMENT_COLUMNS)
    pairs = with_hashes(found.pairs, told)
    undone, contradictions = follow_successors(undone, contradictions, facts=facts, copies=found.copies)
    rules = person_rulings(pairs, undone=undone, contradictions=contradictions)
    asked = pairs_to_judge(pairs, rules)
    verdicts = verdicts_of(asked, ask(judge, asked, told)).with_columns(model=pl.lit(judge.name))
    return judged(pairs, rules, verdicts), found


POLICY = NightPolicy(candidate_similarity=0.7, neighbour_similarity=0.7)


class Agreeing(ScriptedJudge):
    """Says `same` of every pair it was not told otherwise of."""

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        self.verdicts = {**{(pair.a.text, pair.b.text): Verdict.SAME for pair in pairs}, **self.verdicts}
        return super().judge(pairs)


def candidates(table: pl.DataFrame, *, judge: Judge | None = None, **options: Any) -> pl.DataFrame:
    """Return the judgements about facts, by a judge that agrees to all if no other is given."""
    return judged_pairs(table, judge or Agreeing(), policy=POLICY, **options)[0]


def phase(
    table: pl.DataFrame,
    *,
    judge: Judge | None = None,
    night: date = NIGHT,
    policy: NightPolicy = POLICY,
    **options: Any,
) -> Phase:
    """Return the merges of a night over these facts, with their account."""
    judged, found = judged_pairs(table, judge or Agreeing(), policy=policy, **options)
    return merges(table, judged, found, policy=policy, night=night)


def merges(facts: pl.DataFrame, judged: pl.DataFrame, found: Neighbours, **options: Any) -> Phase:
    """Return the merges of a night over facts of which the pairs were judged."""
    tables = {"facts": facts, "judgements": judged, "copies": found.copies}
    return merge_phase({**tables, "duplicate_clusters": duplicate_clusters(tables, **options)}, **options)


def proposals(table: pl.DataFrame, **options: Any) -> list[Proposal]:
    """Return the merges alone, after a look at the account."""
    made = phase(table, **options)
    assert made.unexplained() == {}
    return made.proposals
