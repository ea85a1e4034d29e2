"""Where the offline judge may be wrong, Claude's verdict counts; until it is there, the pair waits."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from nous_online.core.domain import Addable
from nous_online.database.connection import Database
from nous_online.language.claude.judge import second_opinion_wanted
from nous_online.language.claude.pair_prompt import LONGEST_PAIR, PROMPT_VERSION
from nous_online.language.pairs.judging import Judgement, Verdict
from nous_pipelines.batches.batch_requests import Models, PairQuestion, questions_of
from nous_pipelines.batches.verdict_cache import verdicts_by
from nous_pipelines.phases.asking import KEY, NOBODY, SIDES, VERDICTS, to_ask, with_hashes

COLUMNS = [*VERDICTS, "model"]
NO_RULES = pl.DataFrame(schema=dict.fromkeys(SIDES, pl.String))


@dataclass(frozen=True)
class Seconded(Addable):
    """How many verdicts of the offline judge stand, are Claude's instead, or wait for it."""

    standing: int = 0
    claudes: int = 0
    waiting: int = 0


def second_opinions(
    database: Database, verdicts: pl.DataFrame, models: Models, *, too_long: pl.DataFrame
) -> tuple[pl.DataFrame, Seconded]:
    """Return verdicts (`VERDICTS` and `model`) with Claude's in place of those it is to look at, and their number.

    A pair Claude has not decided about is `unsure` by nobody; `too_long` holds those (`KEY`) it is not asked about.
    """
    wanted = verdicts.filter(wanting(verdicts))
    by_judge, by_fallback = (
        verdicts_by(database, wanted, model=model, prompt_version=PROMPT_VERSION).with_columns(model=pl.lit(model))
        for model in (models.judge, models.fallback)
    )
    found = united(by_judge, by_fallback)
    left = wanted.join(found, on=KEY, how="anti", maintain_order="left")
    standing = verdicts.join(wanted, on=KEY, how="anti", maintain_order="left")
    parts = [standing, found, waiting_for(left, models.judge, too_long=too_long)]
    return pl.concat([part.select(COLUMNS) for part in parts]), Seconded(len(standing), len(found), len(left))


def wanting(verdicts: pl.DataFrame) -> pl.Series:
    """Return which verdicts Claude is to look at."""
    rows = verdicts.select("verdict", "confidence", "reason", "slot", "model").iter_rows()
    wants = [
        second_opinion_wanted(Judgement(Verdict(verdict), confidence, reason, slot, None, model, ""))
        for verdict, confidence, reason, slot, model in rows
    ]
    return pl.Series(wants, dtype=pl.Boolean)


def united(by_judge: pl.DataFrame, by_fallback: pl.DataFrame) -> pl.DataFrame:
    """Return the judge's verdicts, the fallback's where it is unsure: that is asked only what the judge refused."""
    is_unsure = pl.col("verdict") == Verdict.UNSURE.value
    second = by_fallback.join(by_judge.filter(is_unsure), on=KEY, how="semi")
    return pl.concat([by_judge.join(second, on=KEY, how="anti"), second])


def waiting_for(left: pl.DataFrame, model: str, *, too_long: pl.DataFrame) -> pl.DataFrame:
    """Return `unsure` by nobody for pairs without a verdict, with what they wait for."""
    told = too_long.select(*KEY, long=pl.lit(value=True))
    reason = f"too long to ask {model} about: more than {LONGEST_PAIR:,} bytes"
    return left.join(told, on=KEY, how="left", maintain_order="left").select(
        *KEY,
        verdict=pl.lit(Verdict.UNSURE.value),
        confidence=pl.lit(0.0, pl.Float32),
        slot=pl.lit(None, pl.String),
        reason=pl.when("long").then(pl.lit(reason)).otherwise(pl.lit(f"waits for {model}")),
        model=pl.lit(NOBODY),
    )


def too_long_among(asked: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Return those (`KEY`) of pairs to ask about whose statements together are too long."""
    lengths = facts["content"].str.len_bytes()
    both = lengths.gather(asked["left"]) + lengths.gather(asked["right"])
    return asked.filter(both > LONGEST_PAIR).select(KEY)


def open_questions(
    pairs: pl.DataFrame, judgements: pl.DataFrame, facts: pl.DataFrame, models: Models
) -> dict[str, list[PairQuestion]]:
    """Return what Claude may be asked, nearest first: what nobody decided about, and what it was unsure of; by agent.

    `pairs` are the night's neighbours, `judgements` their verdicts, `facts` those of the agents to ask for.
    """
    is_open = (pl.col("model") == NOBODY) | (
        (pl.col("model") == models.judge) & (pl.col("verdict") == Verdict.UNSURE.value)
    )
    left_open = pairs.join(judgements.filter(is_open), on=SIDES, how="semi", maintain_order="left")
    asked = to_ask(with_hashes(left_open, facts), NO_RULES)
    return {
        str(agent_id): questions_of(own, facts)
        for (agent_id,), own in asked.group_by(["agent_id"], maintain_order=True)
    }
