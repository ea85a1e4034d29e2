"""The cache of verdicts, shared by nights and `learn`: stored verdicts are looked up, and only new pairs are judged.

Where the offline judge may be wrong, Claude's verdict replaces its own; until there is one, the pair waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import polars as pl

from nous_online.core.domain import Addable
from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.language.claude.judge import second_opinion_wanted
from nous_online.language.claude.pair_prompt import LONGEST_PAIR, PROMPT_VERSION
from nous_online.language.pairs.judging import Judge, Judgement, Verdict
from nous_online.memories.store import store_verdicts
from nous_pipelines.batches.batch_requests import Models, PairQuestion, questions_of
from nous_pipelines.phases.asking import (
    KEY,
    NOBODY,
    SIDES,
    VERDICTS,
    ask,
    pairs_to_judge,
    unsure_verdicts,
    verdicts_of,
    with_hashes,
)

BLOCKS = statements("nous_pipelines.batches", "verdict_cache.sql")
ASKED_AT_ONCE = 8192  # pairs judged and stored together: at most so many are judged again after a crash
READ_TOGETHER = 256  # of them: a second of work, so that two parts are seldom at the same stage
LOOKED_UP_AT_ONCE = 20_000
TIMEOUT_S = 600.0
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class JudgementCounts(Addable):
    """The number of distinct pairs whose verdicts were known, judged now, and left open, and the cost in US dollars."""

    known: int = 0
    judged: int = 0
    left_open: int = 0
    cost_usd: float = 0.0


def verdicts_for(
    database: Database,
    judge: Judge,
    pairs: pl.DataFrame,
    facts: pl.DataFrame,
    *,
    earlier: pl.DataFrame | None,
    on_progress: Progress | None = None,
) -> tuple[pl.DataFrame, JudgementCounts]:
    """Return a verdict with its `model` for each pair of `pairs_to_judge`, and the counts by origin.

    Verdicts come from `earlier` (`VERDICTS` of this judge, such as the night before's), then from the database, then
    from the judge, whose verdicts are stored. If `earlier` is None all pairs are judged again. If the judge is
    unavailable the remaining pairs stay open and nothing is stored of them. Raises what the database raises.
    """
    before = stored = pl.DataFrame(schema=VERDICTS)
    unknown = pairs
    if earlier is not None:
        before = earlier.join(pairs, on=KEY, how="semi")
        unknown = pairs.join(before, on=KEY, how="anti", maintain_order="left")
        stored = known_verdicts(database, judge, unknown)
        unknown = unknown.join(stored, on=KEY, how="anti", maintain_order="left")
    parts = [before.select(list(VERDICTS)), stored]
    done, cost_usd, why = 0, 0.0, ""
    while done < len(unknown) and not why:
        batch = unknown.slice(done, ASKED_AT_ONCE)
        try:
            judgements = ask_in_parts(judge, batch, facts)
        except Unavailable as error:
            why = str(error)
            continue
        store_judgements(database, judge, batch, judgements)
        parts.append(verdicts_of(batch, judgements))
        cost_usd += sum(judgement.cost_usd for judgement in judgements)
        done += len(batch)
        if on_progress:
            on_progress(done, len(unknown))
    left = unknown.slice(done)
    verdicts = pl.concat([part.with_columns(model=pl.lit(judge.name)) for part in parts])
    open_still = unsure_verdicts(left, why).with_columns(model=pl.lit(NOBODY))
    account = JudgementCounts(len(before) + len(stored), done, len(left), cost_usd)
    return pl.concat([verdicts, open_still]), account


def ask_in_parts(judge: Judge, pairs: pl.DataFrame, facts: pl.DataFrame) -> list[Judgement]:
    """Return a judgement for each pair, as `ask` does, two parts at a time.

    The built-in judge spends a fifth of its time on rules in Python, which run on one core: meanwhile it reads the
    pairs of the other part, outside of Python.
    """
    parts = list(pairs.iter_slices(READ_TOGETHER))
    if len(parts) <= 1:
        return ask(judge, pairs, facts)
    with ThreadPoolExecutor(2) as two:
        return [judgement for own in two.map(lambda part: ask(judge, part, facts), parts) for judgement in own]


def known_verdicts(database: Database, judge: Judge, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the stored verdicts of the judge about these pairs (`VERDICTS`)."""
    return verdicts_by(database, pairs, model=judge.name, prompt_version=judge.prompt_version)


def verdicts_by(database: Database, pairs: pl.DataFrame, *, model: str, prompt_version: str) -> pl.DataFrame:
    """Return the stored verdicts of a model and prompt version about these pairs (`VERDICTS`)."""
    parts = [pl.DataFrame(schema=VERDICTS)]
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        for (agent_id,), own in pairs.group_by(["agent_id"], maintain_order=True):
            for part in own.iter_slices(LOOKED_UP_AT_ONCE):
                key = {"agent_id": agent_id, "model": model, "prompt_version": prompt_version}
                hashes = {"pair_hashes": part["pair_hash"].to_list()}
                rows = connection.execute(BLOCKS["known_verdicts"], {**key, **hashes}).fetchall()
                parts.append(pl.DataFrame([(agent_id, *row) for row in rows], schema=VERDICTS, orient="row"))
    return pl.concat(parts)


def store_judgements(database: Database, judge: Judge, pairs: pl.DataFrame, judgements: Sequence[Judgement]) -> None:
    """Store the judgements about pairs; a verdict that another run stored meanwhile stays."""
    keys = pairs.select(KEY).rows()
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        store_verdicts(connection, keys, judgements, model=judge.name, prompt_version=judge.prompt_version)


# --- second opinions ---

COLUMNS = [*VERDICTS, "model"]
NO_RULES = pl.DataFrame(schema=dict.fromkeys(SIDES, pl.String))


@dataclass(frozen=True)
class SecondOpinionCounts(Addable):
    """The number of verdicts of the offline judge that stand, are replaced by Claude's, or wait for one."""

    standing: int = 0
    claudes: int = 0
    waiting: int = 0


def second_opinions(
    database: Database, verdicts: pl.DataFrame, models: Models, *, too_long: pl.DataFrame
) -> tuple[pl.DataFrame, SecondOpinionCounts]:
    """Return verdicts (`VERDICTS` and `model`) with Claude's where it gives a second opinion, and the counts.

    A pair without Claude's verdict yet becomes `unsure` with model `NOBODY`; `too_long` has the pairs (`KEY`) that it
    is not asked about.
    """
    wanted = verdicts.filter(needs_second_opinion(verdicts))
    by_judge, by_fallback = (
        verdicts_by(database, wanted, model=model, prompt_version=PROMPT_VERSION).with_columns(model=pl.lit(model))
        for model in (models.judge, models.fallback)
    )
    found = judge_or_fallback(by_judge, by_fallback)
    left = wanted.join(found, on=KEY, how="anti", maintain_order="left")
    standing = verdicts.join(wanted, on=KEY, how="anti", maintain_order="left")
    parts = [standing, found, waiting_verdicts(left, models.judge, too_long=too_long)]
    return pl.concat([part.select(COLUMNS) for part in parts]), SecondOpinionCounts(
        len(standing), len(found), len(left)
    )


def needs_second_opinion(verdicts: pl.DataFrame) -> pl.Series:
    """Return a mask of the verdicts that need a second opinion."""
    rows = verdicts.select("verdict", "confidence", "reason", "slot", "model").iter_rows()
    wants = [
        second_opinion_wanted(Judgement(Verdict(verdict), confidence, reason, slot, None, model, ""))
        for verdict, confidence, reason, slot, model in rows
    ]
    return pl.Series(wants, dtype=pl.Boolean)


def judge_or_fallback(by_judge: pl.DataFrame, by_fallback: pl.DataFrame) -> pl.DataFrame:
    """Return the judge's verdicts, or the fallback's where the judge is unsure and the fallback has one.

    The fallback is asked only about pairs that the judge refused, which count as unsure.
    """
    is_unsure = pl.col("verdict") == Verdict.UNSURE.value
    second = by_fallback.join(by_judge.filter(is_unsure), on=KEY, how="semi")
    return pl.concat([by_judge.join(second, on=KEY, how="anti"), second])


def waiting_verdicts(left: pl.DataFrame, model: str, *, too_long: pl.DataFrame) -> pl.DataFrame:
    """Return `unsure` with model `NOBODY` for pairs without a verdict, with the reason."""
    marked = too_long.select(*KEY, long=pl.lit(value=True))
    reason = f"too long to ask {model} about: more than {LONGEST_PAIR:,} bytes"
    return left.join(marked, on=KEY, how="left", maintain_order="left").select(
        *KEY,
        verdict=pl.lit(Verdict.UNSURE.value),
        confidence=pl.lit(0.0, pl.Float32),
        slot=pl.lit(None, pl.String),
        reason=pl.when("long").then(pl.lit(reason)).otherwise(pl.lit(f"waits for {model}")),
        change=pl.lit(0.0, pl.Float32),
        model=pl.lit(NOBODY),
    )


def too_long_among(pairs: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs (`KEY`) whose two statements together are too long to ask about."""
    lengths = facts["content"].str.len_bytes()
    both = lengths.gather(pairs["left"]) + lengths.gather(pairs["right"])
    return pairs.filter(both > LONGEST_PAIR).select(KEY)


def open_questions(
    pairs: pl.DataFrame, judgements: pl.DataFrame, facts: pl.DataFrame, models: Models
) -> dict[str, list[PairQuestion]]:
    """Return by agent the questions for Claude, nearest pair first: undecided pairs, and those it was unsure about.

    `pairs` are the night's neighbours, `judgements` their verdicts, `facts` those of the agents to ask for.
    """
    is_open = (pl.col("model") == NOBODY) | (
        (pl.col("model") == models.judge) & (pl.col("verdict") == Verdict.UNSURE.value)
    )
    left_open = pairs.join(judgements.filter(is_open), on=SIDES, how="semi", maintain_order="left")
    asked = pairs_to_judge(with_hashes(left_open, facts), NO_RULES)
    return {
        str(agent_id): questions_of(own, facts)
        for (agent_id,), own in asked.group_by(["agent_id"], maintain_order=True)
    }
