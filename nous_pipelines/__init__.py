"""The nightly lifecycle of memories as a Dagster project."""

import os

# NumPy's BLAS lets its threads spin for 2^26 cycles after each product: thirty places compared one after the other took
# 1.3 s of the processor so, and 0.8 with 2^18. It reads this once, when NumPy is first imported.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "18")
