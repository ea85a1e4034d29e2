"""What leaves an agent's reach: judgements → forgetting_proposals."""

import dagster as dg
import polars as pl

from nous_pipelines.orchestration.assets.fact_assets import judgements
from nous_pipelines.orchestration.assets.night_assets import kept, night_asset, night_of
from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.phases.forgetting import COLUMNS, forgetting_phase_of, lives_of, returns_of
from nous_pipelines.snapshots.chunks import Chunk


@night_asset(
    deps=[judgements],
    kinds={"polars", "json"},
    description="Facts superseded for longer than the grace and memories nobody used: archived, and restorable.",
)
def forgetting_proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night, chunks = night_of(context), night_run.chunks(night_of(context))
    others = None  # those of the only chunk, unless there are several
    if len(chunks) > 1:
        others = pl.concat(returns_of(lives_of(tables_of(each)), policy=each.policy, night=night) for each in chunks)
    parts = [forgetting_phase_of(tables_of(chunk), policy=chunk.policy, night=night, others=others) for chunk in chunks]
    return kept(night_run.files(night), "forgetting_proposals", parts)


def tables_of(chunk: Chunk) -> dict[str, pl.DataFrame]:
    """Read what forgetting needs of a chunk."""
    return {name: chunk.table(name, columns=columns) for name, columns in COLUMNS.items()}
