"""The nightly lifecycle of memories as a Dagster project."""

import os

# Nights compare vectors tile by tile, on all cores (`phases/self_join.py`). The threads of NumPy's BLAS would share a
# tile and spin while they wait for each other: beside other work the join of 30,000 facts took ten seconds of the
# processor so, and 1.2 with one thread a tile. NumPy reads this once, when it is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
