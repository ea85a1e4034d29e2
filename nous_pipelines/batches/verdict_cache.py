"""The verdicts of nights and of learning: what a judge said of a pair is looked up, and only the rest is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from nous_online.core.domain import Addable
from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.language.pairs.judging import Judge, Judgement
from nous_online.memories.verdicts import store_verdicts
from nous_pipelines.phases.asking import KEY, NOBODY, VERDICTS, ask, undecided, verdicts_of

BLOCKS = statements("nous_pipelines.batches", "verdict_cache.sql")
ASKED_AT_ONCE = 8192  # pairs judged and stored together: what a night that is killed has to judge again
LOOKED_UP_AT_ONCE = 20_000
TIMEOUT_S = 600.0
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class JudgementCounts(Addable):
    """Where a night's verdicts came from: how many contents of pairs were known, judged now, and left open."""

    known: int = 0
    judged: int = 0
    left_open: int = 0
    cost_usd: float = 0.0


def verdicts_on(
    database: Database,
    judge: Judge,
    asked: pl.DataFrame,
    facts: pl.DataFrame,
    *,
    earlier: pl.DataFrame | None,
    on_progress: Progress | None = None,
) -> tuple[pl.DataFrame, JudgementCounts]:
    """Return a verdict with its `model` for each pair of `to_ask`, and where they came from.

    `earlier` holds verdicts of this judge (`VERDICTS`), such as those of the night before; the database is asked for
    the rest, then the judge, whose verdicts are stored. None has the judge decide about all of them again. When it
    gives no verdict now, its pairs stay open: nothing is stored of them. Raises what the database raises.
    """
    before = stored = pl.DataFrame(schema=VERDICTS)
    unknown = asked
    if earlier is not None:
        before = earlier.join(asked, on=KEY, how="semi")
        unknown = asked.join(before, on=KEY, how="anti", maintain_order="left")
        stored = known_verdicts(database, judge, unknown)
        unknown = unknown.join(stored, on=KEY, how="anti", maintain_order="left")
    parts = [before.select(list(VERDICTS)), stored]
    done, cost_usd, why = 0, 0.0, ""
    while done < len(unknown) and not why:
        batch = unknown.slice(done, ASKED_AT_ONCE)
        try:
            judgements = ask(judge, batch, facts)
        except Unavailable as error:
            why = str(error)
            continue
        keep_verdicts(database, judge, batch, judgements)
        parts.append(verdicts_of(batch, judgements))
        cost_usd += sum(judgement.cost_usd for judgement in judgements)
        done += len(batch)
        if on_progress:
            on_progress(done, len(unknown))
    left = unknown.slice(done)
    verdicts = pl.concat([part.with_columns(model=pl.lit(judge.name)) for part in parts])
    open_still = undecided(left, why).with_columns(model=pl.lit(NOBODY))
    account = JudgementCounts(len(before) + len(stored), done, len(left), cost_usd)
    return pl.concat([verdicts, open_still]), account


def known_verdicts(database: Database, judge: Judge, asked: pl.DataFrame) -> pl.DataFrame:
    """Return what the judge said before about pairs of these contents (`VERDICTS`)."""
    return verdicts_by(database, asked, model=judge.name, prompt_version=judge.prompt_version)


def verdicts_by(database: Database, asked: pl.DataFrame, *, model: str, prompt_version: str) -> pl.DataFrame:
    """Return what a model said to one version of its prompt about pairs of these contents (`VERDICTS`)."""
    parts = [pl.DataFrame(schema=VERDICTS)]
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        for (agent_id,), own in asked.group_by(["agent_id"], maintain_order=True):
            for part in own.iter_slices(LOOKED_UP_AT_ONCE):
                key = {"agent_id": agent_id, "model": model, "prompt_version": prompt_version}
                hashes = {"pair_hashes": part["pair_hash"].to_list()}
                rows = connection.execute(BLOCKS["known_verdicts"], {**key, **hashes}).fetchall()
                parts.append(pl.DataFrame([(agent_id, *row) for row in rows], schema=VERDICTS, orient="row"))
    return pl.concat(parts)


def keep_verdicts(database: Database, judge: Judge, asked: pl.DataFrame, judgements: Sequence[Judgement]) -> None:
    """Store what a judge said, each content once; what another run stored meanwhile stays."""
    keys = asked.select(KEY).rows()
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        store_verdicts(connection, keys, judgements, model=judge.name, prompt_version=judge.prompt_version)
