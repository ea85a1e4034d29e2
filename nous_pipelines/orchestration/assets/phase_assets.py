"""An asset for each row of the table of phases: the tables made on the way, and the proposals."""

from functools import cache

import dagster as dg
import polars as pl

from nous_pipelines.orchestration.assets.night_assets import Inputs, night_asset, night_of, row_count
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.orchestration.summaries import EPISODE_SUMMARIES
from nous_pipelines.phases.phase import Phase, Tables, united
from nous_pipelines.phases.phase_table import NIGHT_TABLES, PHASES, NightPhase, NightTable
from nous_pipelines.snapshots.chunks import Chunk


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
        parts = inputs.each(table.name, lambda chunk, tables: table.make(tables, policy=chunk.policy, night=night))
        whole = inputs.united(table.schema, parts)
        night_run.files(night).write_table(table.name, whole)
        return dg.MaterializeResult(metadata={**row_count(whole), **whole.select(**table.figures).row(0, named=True)})

    return made


def phase_asset(phase: NightPhase) -> dg.AssetsDefinition:
    """Return the asset that keeps what a phase proposes for all agents, with its account as metadata."""

    @night_asset(name=phase.name, reads=phase.reads, kinds={"polars", "json"}, description=phase.description)
    def proposals(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
        night = night_of(context)
        inputs = Inputs.of(night_run, night, phase.reads)

        @cache
        def gathered() -> Tables:
            if phase.gather is None:
                return {}
            gather = phase.gather
            found = inputs.each(phase.name, lambda chunk, tables: gather(tables, policy=chunk.policy, night=night))
            return {"gathered": pl.concat(found)}

        def found_in(chunk: Chunk, tables: Tables) -> Phase:
            others = {} if inputs.chunks == [chunk] else gathered()
            return phase.find({**tables, **others}, policy=chunk.policy, night=night)

        whole = united(phase.name, [inputs.rested.phase(phase.name), *inputs.each(phase.name, found_in)])
        night_run.files(night).write_phase(whole)
        return dg.MaterializeResult(metadata=as_metadata(whole.metadata()))

    return proposals


TABLE_ASSETS = [table_asset(table) for table in (*NIGHT_TABLES, EPISODE_SUMMARIES)]
PHASE_ASSETS = [phase_asset(phase) for phase in PHASES]
