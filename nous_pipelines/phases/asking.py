"""The pairs a judge is asked about, one for each content, and its verdicts joined back to all pairs of that content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from nous_online.language.pairs.judging import Judge, JudgedStatement, Judgement, Pair, Verdict
from nous_online.memories.learning import pair_hash, statement_digest
from nous_pipelines.phases.merging import JUDGED
from nous_pipelines.phases.rulings import separated_pairs
from nous_pipelines.snapshots.table_schemas import FACTS, TableSchema

STATEMENT_COLUMNS = ["agent_id", "id", "content", "subject", "trust", "embedding_space_id"]
"""The columns of a fact that a judge reads, and the space its vector belongs to, which the pair hash includes."""
STATEMENT_SCHEMA = FACTS.only(*STATEMENT_COLUMNS)
OPERATOR, NOBODY = "operator", "none"
"""Values of `model` for verdicts not given by a judge: those of a person, and pairs without a verdict yet."""
VERDICT = ("agent_id", "pair_hash", "verdict", "confidence", "slot", "reason", "change")
VERDICTS = TableSchema("verdicts", "A verdict for each content of a pair; one is paid for once.", {
    name: JUDGED.column(name) for name in VERDICT
})  # fmt: skip
KEY = ["agent_id", "pair_hash"]
SIDES = ["agent_id", "left_id", "right_id"]


def with_hashes(pairs: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Add to pairs of facts (`FOUND`) their `pair_hash` and both row numbers in `facts` (`STATEMENT_COLUMNS`).

    The hash is the one under which `learn` stores its verdicts, so that a night finds them.
    """
    rows = facts.select("agent_id", "id", row=pl.int_range(pl.len(), dtype=pl.UInt32))
    placed = pairs.join(
        rows.rename({"row": "left"}),
        left_on=["agent_id", "left_id"],
        right_on=["agent_id", "id"],
        maintain_order="left",
    ).join(
        rows.rename({"row": "right"}),
        left_on=["agent_id", "right_id"],
        right_on=["agent_id", "id"],
        maintain_order="left",
    )
    said = {row: statement_digest(*facts.row(row)[2:4]) for row in {*placed["left"], *placed["right"]}}
    spaces = facts["embedding_space_id"].gather(placed["left"]).to_list()
    ends = placed.select("left", "right", "is_ordered").iter_rows()
    hashes = [
        pair_hash(said[left], said[right], space, is_ordered=is_ordered)
        for (left, right, is_ordered), space in zip(ends, spaces, strict=True)
    ]
    return placed.with_columns(pair_hash=pl.Series(hashes, dtype=pl.String))


def person_rulings(pairs: pl.DataFrame, *, undone: pl.DataFrame, contradictions: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs (agent_id, left_id, right_id) whose two facts a person decided to keep, with the `reason`."""
    ends, apart = pairs.select(SIDES), separated_pairs(pairs, undone, sides=("left_id", "right_id"))
    valid = contradictions.filter(pl.col("resolution") == "both_valid")
    ways = (("memory_a", "memory_b"), ("memory_b", "memory_a"))
    both = pl.concat(valid.select("agent_id", left_id=one, right_id=other) for one, other in ways)
    reasons = [
        (apart, "an earlier change that joined the two was undone by a person"),
        (ends.join(both, on=SIDES, how="semi"), "a person ruled that both are valid"),
    ]
    rows = [found.select(*SIDES, reason=pl.lit(reason)) for found, reason in reasons]
    return pl.concat(rows).unique(SIDES, keep="first", maintain_order=True)


def pairs_to_judge(pairs: pl.DataFrame, rules: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs without a ruling (`rules`), one of each content, nearest first within each agent."""
    return (
        pairs.join(rules, on=SIDES, how="anti", maintain_order="left")
        .sort("similarity", descending=True, maintain_order=True)
        .unique(KEY, keep="first", maintain_order=True)
    )


def ask(judge: Judge, pairs: pl.DataFrame, facts: pl.DataFrame) -> list[Judgement]:
    """Return a judgement for each pair of `pairs_to_judge`, in order; raise `Unavailable` when the judge cannot."""
    return judge.judge(judge_pairs(pairs, facts))


def judge_pairs(pairs: pl.DataFrame, facts: pl.DataFrame) -> list[Pair]:
    """Return each pair of `with_hashes` as the value a judge takes; `facts` are those the hashes were made with."""
    known: dict[tuple[int, Any], JudgedStatement] = {}  # a fact is in some twenty pairs, and reading a row is slow

    def statement(row: int, said_at: Any) -> JudgedStatement:
        if (row, said_at) not in known:
            text, subject, trust = facts.row(row)[2:5]
            known[row, said_at] = JudgedStatement(text=text, subject=subject, stated_at=said_at, trust=trust)
        return known[row, said_at]

    columns = ("left", "left_said_at", "right", "right_said_at", "similarity")
    return [
        Pair(a=statement(left, left_at), b=statement(right, right_at), similarity=similarity)
        for left, left_at, right, right_at, similarity in pairs.select(columns).iter_rows()
    ]


def verdicts_of(asked: pl.DataFrame, judgements: Sequence[Judgement]) -> pl.DataFrame:
    """Return the judgements about the pairs `asked` as a table (`VERDICTS`)."""
    columns = {
        "verdict": [judgement.verdict.value for judgement in judgements],
        "confidence": [judgement.confidence for judgement in judgements],
        "slot": [judgement.slot for judgement in judgements],
        "reason": [judgement.reason for judgement in judgements],
        "change": [judgement.change for judgement in judgements],
    }
    return pl.DataFrame({**asked.select(KEY).to_dict(), **columns}, schema=VERDICTS)


def unsure_verdicts(asked: pl.DataFrame, why: str) -> pl.DataFrame:
    """Return `unsure` for pairs without a verdict (`VERDICTS`); it is not stored, so they are asked about again."""
    return asked.select(
        *KEY,
        verdict=pl.lit(Verdict.UNSURE.value),
        confidence=pl.lit(0.0, pl.Float32),
        slot=pl.lit(None, pl.String),
        reason=pl.lit(f"no verdict could be had: {why}"),
        change=pl.lit(0.0, pl.Float32),
    )


def judged(pairs: pl.DataFrame, rules: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Return every pair with its verdict (`JUDGED`): a person's ruling if there is one, or the verdict on its content.

    `verdicts` has the columns `VERDICTS` and `model`, which gave them.
    """
    by_person = rules.with_columns(
        verdict=pl.lit(Verdict.COMPATIBLE.value),
        confidence=pl.lit(1.0, pl.Float32),
        slot=pl.lit(None, pl.String),
        change=pl.lit(0.0, pl.Float32),
        model=pl.lit(OPERATOR),
    )
    decided = pairs.join(by_person, on=SIDES)
    left_open = pairs.join(rules, on=SIDES, how="anti").join(verdicts, on=KEY)
    columns = [pl.col(name).cast(dtype) for name, dtype in JUDGED.items()]
    return pl.concat([decided.select(columns), left_open.select(columns)]).sort(SIDES)
