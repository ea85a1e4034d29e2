"""One thread for numbers and tables in each worker and program: as many wait for each other as there are cores.

To be imported before numpy and polars, which read this once.
"""

from __future__ import annotations

import os

for library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(library, "1")
