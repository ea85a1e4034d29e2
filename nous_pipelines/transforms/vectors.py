"""Vectors between columns and matrices."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_online.errors import InvalidInput


def vector_matrix(vectors: pl.Series) -> NDArray[np.float32]:
    """Return a list column of equally wide vectors as an (n, width) matrix; raise `InvalidInput` if they are not."""
    widths = vectors.list.len().unique()
    if vectors.null_count() or len(widths) > 1:
        message = f"expected vectors of one width, got widths {widths.to_list()} and {vectors.null_count()} missing"
        raise InvalidInput(message)
    flat = vectors.list.explode(empty_as_null=False).to_numpy()
    return flat.reshape(len(vectors), widths[0] if len(widths) else 0).astype(np.float32, copy=False)
