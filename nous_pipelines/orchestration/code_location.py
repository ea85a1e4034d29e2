"""What Dagster loads: every definition, with the nights from the first memory on."""

from datetime import UTC, datetime

from nous_pipelines.orchestration.definitions import definitions_from
from nous_pipelines.orchestration.night_ranges import first_night

defs = definitions_from(first_night(datetime.now(UTC)))

__all__ = ["defs"]
