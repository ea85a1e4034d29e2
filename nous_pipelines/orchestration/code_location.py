"""What Dagster loads: every definition, with the nights from the first memory on."""

from datetime import UTC, datetime

from nous_pipelines.orchestration.backfilling import first_night
from nous_pipelines.orchestration.definitions import definitions_from

defs = definitions_from(first_night(datetime.now(UTC)))

__all__ = ["defs"]
