"""An asset for each row of the table of phases: the tables made on the way, and the proposals."""

from datetime import date

import dagster as dg
import polars as pl

from nous_pipelines.orchestration.assets.night_assets import Inputs, join_parts, night_asset, night_of, row_count
from nous_pipelines.orchestration.chunk_work import ChunkOutput, find_proposals, make_table
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.orchestration.summaries import EPISODE_SUMMARIES
from nous_pipelines.phases.phase import united
from nous_pipelines.phases.phase_table import NIGHT_TABLES, PHASES, NightPhase, NightTable


def table_asset(table: NightTable) -> dg.AssetsDefinition:
    """Return the asset that makes a table, for all agents."""

    @night_asset(
        name=table.name,
        reads=table.reads,
        makes=table.schema,
        kinds={"polars", "parquet"},
        description=table.description,
    )
    def made(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
        night = night_of(context)
        inputs = Inputs.of(night_run, night, table.reads)
        parts = inputs.each(table.name, make_table, name=table.name, make=table.make, night=night)
        whole = join_parts(parts, table.name, table.schema)
        night_run.files(night).write_table(table.name, whole)
        return dg.MaterializeResult(metadata={**row_count(whole), **whole.select(**table.figures).row(0, named=True)})

    return made


def phase_asset(phase: NightPhase) -> dg.AssetsDefinition:
    """Return the asset that keeps what a phase proposes for all agents, with its account as metadata."""

    @night_asset(name=phase.name, reads=phase.reads, kinds={"polars", "json"}, description=phase.description)
    def proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
        night = night_of(context)
        inputs = Inputs.of(night_run, night, phase.reads)
        parts = phase_parts(phase, inputs, night)
        whole = united(phase.name, [part.value for part in parts])
        night_run.files(night).write_phase(whole)
        return dg.MaterializeResult(metadata={**row_count(whole.proposals), **as_metadata(whole.metadata())})

    return proposals


def phase_parts(phase: NightPhase, inputs: Inputs, night: date) -> list[ChunkOutput]:
    """Return what a phase finds in each chunk, told what it has to know of all of them."""
    gather = phase.gather
    if gather is None:
        return inputs.each(phase.name, find_proposals, find=phase.find, night=night)
    if len(inputs.chunks) == 1:
        parts = inputs.each(phase.name, find_proposals, find=phase.find, night=night)
        if len(parts) == 1:
            return parts  # otherwise it failed for an agent, and each half took itself for all of them
    gathered = inputs.each(phase.name, make_table, name="gathered", make=gather, night=night)
    whole = pl.concat([part.table("gathered") for part in gathered])
    return inputs.beside("gathered", whole).each(phase.name, find_proposals, find=phase.find, night=night)


TABLE_ASSETS = [table_asset(table) for table in (*NIGHT_TABLES, EPISODE_SUMMARIES)]
PHASE_ASSETS = [phase_asset(phase) for phase in PHASES]
