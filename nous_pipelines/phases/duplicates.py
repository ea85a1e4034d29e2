"""Complete-linkage clusters: every two members of a cluster were accepted as the same, so there is no chaining."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_online.core.errors import InvalidInput

Members: TypeAlias = NDArray[np.int64]

PAIRS_AT_ONCE = 65_536  # after so many, NumPy drops the pairs already settled: that bounds the loop in Python


def clusters(accepted: pl.DataFrame, *, equals: pl.DataFrame | None = None) -> pl.DataFrame:
    """Partition memories so that every two members of a cluster are an accepted pair (complete linkage).

    `accepted` holds (left_id, right_id, similarity) in any order and direction. Clusters grow from the most similar
    pair down, ties in order of id, and two clusters merge only when every pair across them was accepted: a pair that a
    guard or judge did not accept can never end up together. `equals` (member_id, representative_id) says which memory
    stands for each one and its exact copies: only those are joined and judged, and 5,000 copies of one text are not 12
    million pairs. Returns (cluster_id, member_id) for clusters of two or more, cluster_id being the smallest member_id,
    sorted by both. Raises `InvalidInput` for a similarity that is null or NaN, and for an accepted id that is no
    representative in `equals`.
    """
    linked = _linked(accepted)
    if equals is not None:
        linked = _with_equals(linked, equals)
    return (
        linked.with_columns(cluster_id=pl.col("member_id").min().over("cluster_id"))
        .filter(pl.len().over("cluster_id") > 1)
        .select("cluster_id", "member_id")
        .sort("cluster_id", "member_id")
    )


def _linked(accepted: pl.DataFrame) -> pl.DataFrame:
    similarity = accepted["similarity"]
    if similarity.null_count() or similarity.is_nan().any():
        message = (
            "an accepted pair has no similarity (null or NaN); every accepted pair carries the one it was judged by"
        )
        raise InvalidInput(message)
    ids = pl.concat([accepted["left_id"], accepted["right_id"]]).unique().sort().alias("member_id")
    labels = _complete_linkage(*_strongest_first(accepted, ids), members=len(ids))
    return pl.DataFrame([ids, ids.gather(labels).alias("cluster_id")])


def _strongest_first(accepted: pl.DataFrame, ids: pl.Series) -> tuple[Members, Members]:
    """Return the distinct pairs as positions in `ids` (left < right), most similar first, ties in order of id."""
    places = pl.DataFrame({"id": ids, "place": np.arange(len(ids))})
    ordered = (
        accepted.join(places.rename({"place": "a"}), left_on="left_id", right_on="id")
        .join(places.rename({"place": "b"}), left_on="right_id", right_on="id")
        .filter(pl.col("a") != pl.col("b"))
        .select("similarity", left=pl.min_horizontal("a", "b"), right=pl.max_horizontal("a", "b"))
        .group_by("left", "right")
        .agg(pl.col("similarity").max())
        .sort("similarity", "left", "right", descending=[True, False, False])
    )
    return ordered["left"].to_numpy(), ordered["right"].to_numpy()


def _with_equals(linked: pl.DataFrame, equals: pl.DataFrame) -> pl.DataFrame:
    strangers = linked.join(equals, left_on="member_id", right_on="representative_id", how="anti")
    if len(strangers):
        message = (
            f"{strangers['member_id'][0]} was accepted as a duplicate but represents no memory; judge representatives"
        )
        raise InvalidInput(message)
    return equals.join(linked, left_on="representative_id", right_on="member_id", how="left").select(
        "member_id", cluster_id=pl.coalesce("cluster_id", "representative_id")
    )


def _complete_linkage(left: Members, right: Members, *, members: int) -> Members:
    """Return for each member the smallest member of its cluster."""
    linkage = _Linkage(labels=np.arange(members), neighbours=_neighbours(left, right, members=members))
    for start in range(0, len(left), PAIRS_AT_ONCE):
        stop = start + PAIRS_AT_ONCE
        for a, b in _unsettled(linkage.labels[left[start:stop]], linkage.labels[right[start:stop]]):
            linkage.merge_if_complete(linkage.labels[a], linkage.labels[b])
    return linkage.labels


def _neighbours(left: Members, right: Members, *, members: int) -> list[Members]:
    """Return for each member the sorted members it was accepted with."""
    ends, others = np.concatenate([left, right]), np.concatenate([right, left])
    order = np.lexsort((others, ends))
    starts = np.searchsorted(ends[order], np.arange(1, members))
    return np.split(others[order], starts)


def _unsettled(left: Members, right: Members) -> Iterator[tuple[int, int]]:
    """Yield the distinct pairs of clusters in order of first appearance.

    A pair inside one cluster is settled, and two clusters that could not merge once never can: both only grow.
    """
    apart = left != right
    lower, upper = np.minimum(left, right)[apart], np.maximum(left, right)[apart]
    first = np.unique(lower * (upper.max(initial=0) + 1) + upper, return_index=True)[1]
    first.sort()
    return zip(lower[first].tolist(), upper[first].tolist(), strict=True)


@dataclass
class _Linkage:
    """Clusters while they grow, each known by its smallest member."""

    labels: Members
    neighbours: list[Members]  # of a cluster, at its label: the members accepted with every one of its own
    members: dict[int, Members] = field(default_factory=dict[int, Members])

    def merge_if_complete(self, a: int, b: int) -> None:
        if a == b:
            return
        ours, theirs = self._members(a), self._members(b)
        if not _contains_all(self.neighbours[a], theirs):
            return
        kept, gone = min(a, b), max(a, b)
        self.neighbours[kept] = np.intersect1d(self.neighbours[a], self.neighbours[b], assume_unique=True)
        self.members[kept] = np.concatenate([ours, theirs])
        self.members.pop(gone, None)
        self.labels[self.members[kept]] = kept

    def _members(self, label: int) -> Members:
        return self.members.get(label, np.array([label]))


def _contains_all(ordered: Members, wanted: Members) -> bool:
    """Tell whether the sorted `ordered` holds every one of `wanted`."""
    places = np.searchsorted(ordered, wanted)
    return bool((places < len(ordered)).all() and (ordered[places] == wanted).all())
