"""The code location that Dagster loads: all definitions, with partitions for the nights from the first memory on."""

import gc
from datetime import UTC, datetime

from nous_pipelines.orchestration.code_location import definitions_from
from nous_pipelines.orchestration.running import first_night

defs = definitions_from(first_night(datetime.now(UTC)))

gc.freeze()  # excludes what was imported from garbage collection: every full collection would scan it for nothing
