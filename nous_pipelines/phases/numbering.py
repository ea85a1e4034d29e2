"""Ids as small numbers, for what is done with arrays."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray


def numbered(pairs: pl.DataFrame, left: str, right: str) -> tuple[NDArray[np.int64], NDArray[np.int64], pl.DataFrame]:
    """Return two columns of ids as places in the sorted table (agent_id, id) of all of them.

    The same id of two agents is two memories.
    """
    sides = [pairs.select("agent_id", id=side) for side in (left, right)]
    every = pl.concat(sides).unique().sort("agent_id", "id")
    places = every.with_row_index("place")
    first, second = (
        side.join(places, on=["agent_id", "id"], maintain_order="left")["place"].to_numpy().astype(np.int64)
        for side in sides
    )
    return first, second, every
