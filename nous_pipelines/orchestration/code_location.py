"""What Dagster loads: every definition, with the nights from the first memory on."""

import gc
from datetime import UTC, datetime

from nous_pipelines.orchestration.definitions import definitions_from
from nous_pipelines.orchestration.night_ranges import first_night

defs = definitions_from(first_night(datetime.now(UTC)))

gc.freeze()  # what was imported stays: each look for garbage would pass through all of it, in all of Dagster's programs

__all__ = ["defs"]
