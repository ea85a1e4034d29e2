"""What all assets of a night have in common: their partitions, and how a phase is kept."""

from collections.abc import Iterable
from datetime import date
from functools import partial

import dagster as dg

from nous_pipelines.nights import FIRST_NIGHT, parse_night
from nous_pipelines.orchestration.resources import as_metadata
from nous_pipelines.phases.phase import Phase, united
from nous_pipelines.plan.night_files import NightFiles

NIGHTS = dg.DailyPartitionsDefinition(start_date=FIRST_NIGHT.isoformat(), timezone="UTC", end_offset=1)
"""One partition is one night for all agents; tonight is among them, so that it can be run before it is over."""

night_asset = partial(dg.asset, partitions_def=NIGHTS, group_name="night")


def night_of(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> date:
    """Return the night a step works on."""
    return parse_night(context.partition_key)


def kept(files: NightFiles, name: str, parts: Iterable[Phase]) -> dg.MaterializeResult:
    """Write what a phase found among all agents, and return its account as metadata."""
    phase = united(name, parts)
    files.write_phase(phase)
    return dg.MaterializeResult(metadata=as_metadata(phase.metadata()))
