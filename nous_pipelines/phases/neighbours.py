"""Candidate pairs of facts: near each other by cosine, in one slot, or stated by two users of one project."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_online.core.domain import DOCUMENT
from nous_online.language.pairs.reader import content_of
from nous_online.language.pairs.wordings import is_telling, subject_words
from nous_online.memories.learning import MOST_SHARED, SHARED_WORD_LEAD
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.incremental_join import (
    NOBODY,
    NOTHING,
    SITES,
    Compared,
    Crowd,
    Limits,
    Met,
    compare,
    nearest_pairs,
    ranks_of,
    vector_matrix,
)
from nous_pipelines.phases.rulings import replace_in_undone, successors, undone_groups
from nous_pipelines.snapshots.table_schemas import MOMENT, OWNER, TableSchema

PLACE = ("scope", "user_id", "project_id", "embedding_space_id")
"""Facts that differ in one of these are never compared, except private facts of two users of one project."""
PROJECT = ["agent_id", "project_id", "embedding_space_id"]
INTERVAL = ["valid_from", "valid_to"]
WORDING = ["text", "subject", *INTERVAL]
"""Columns that are equal for two statements of the same text about the same subject and time."""
COPIES = ["agent_id", *WORDING, *PLACE]
"""Facts that agree in all of these are copies of each other."""
READ = (
    *("id", "agent_id", "state", "category", "content", "subject", "slot", "learned_at", "last_confirmed_at"),
    *(*INTERVAL, *PLACE, "superseded_by", "is_rewound", "embedding"),
)
"""The columns of a fact that this module needs."""
# Without a limit a store in which everything is near everything (logs of tools) has quadratically many pairs: those of
# 8,000 such facts took 4 GB.
MOST_CANDIDATES = 60
"""Nearest candidates a fact is compared with at most; the others wait until those are merged."""
ROWS_AT_ONCE = 4096  # rows converted to 64 bits together: a few megabytes
LEAST_COSINE = 1e-6
"""In place of a `ranked_similarity` of 0: the join takes thresholds above it alone."""
PAIR = {
    **OWNER,
    "left_id": (pl.String, "the fact that was stated earlier"),
    "right_id": (pl.String, "the one that was stated later"),
    "similarity": (pl.Float32, "cosine of their vectors"),
    "is_across_users": (pl.Boolean, "they are of two users of one project, and asked about sharing alone"),
    "is_ordered": (pl.Boolean, "the right one was stated later, not at the same moment"),
}
FOUND = TableSchema("neighbours", "Candidate pairs of facts.", {
    **PAIR,
    "left_said_at": (MOMENT, "when the left one was last stated"),
    "right_said_at": (MOMENT, "when the right one was last stated"),
})  # fmt: skip
COPY = TableSchema("copies", "Each fact that may be compared, and the facts that stand for it.", {
    **OWNER,
    "member_id": (pl.String, "the fact"),
    "representative_id": (pl.String, "the one that stands for it and its copies"),
    "is_silent": (pl.Boolean, "a person took it apart from its copies, so it stands for itself"),
    "speaker_id": (pl.String, "the one that stands for all that say the same word for word, the silent included"),
    "valid_from": (MOMENT, "since when it holds, if that was said"),
    "valid_to": (MOMENT, "until when it holds, if that was said"),
})  # fmt: skip

RANKED_PAIR = {"one": pl.UInt32, "other": pl.UInt32, "cosine": pl.Float32}
"""A new fact, one of its nearest, and their cosine."""
ROW_PAIR = {"left": pl.UInt32, "right": pl.UInt32, "similarity": pl.Float32}
"""Two facts by their rows, the smaller left, and their cosine."""


@dataclass(frozen=True)
class Neighbours:
    """The candidate pairs (`FOUND`), the copies of each text (`COPY`), and what a later night can reuse.

    `cut` counts the facts with more candidates than they are compared with.
    """

    pairs: pl.DataFrame
    copies: pl.DataFrame
    compared: Compared
    cut: int


def neighbours_of(
    facts: pl.DataFrame,
    *,
    policy: NightPolicy,
    undone: pl.DataFrame,
    earlier: Compared = NOTHING,
    fresh_from: datetime | None = None,
    stored: pl.DataFrame | None = None,
) -> Neighbours:
    """Return the candidate pairs of `facts` (columns `READ`); `undone` is the snapshot's table of that name.

    Rows that `earlier` compared are not compared again; the result is the same as without it. Exact copies of a text
    are compared once. Facts learned since `fresh_from`, and those named in `stored` (agent_id, id) as stored since,
    are also paired with their nearest below every threshold.
    """
    # An undone merge names facts that may have been superseded since: it keeps their successors apart.
    found = comparable_facts(facts, replace_in_undone(undone, successors(facts)))
    # 5,000 copies of one text would be 12 million pairs: one of them is compared for all.
    distinct = representatives(found)
    vectors = facts["embedding"].gather(distinct["row"])
    distinct = distinct.with_columns(fingerprint=_fingerprints(distinct, vectors))
    private = _private_facts(distinct)
    sites = _sites_by_place(distinct, policy)
    # Most agents have no users, slots or undone merges; leaving out queries over empty tables halved a small night.
    if len(private):
        sites = pl.concat([sites, _sites_across_users(private, policy, first_place=distinct["place"].n_unique())])
    nearest_of_new, met = _nearest_of_new(distinct, vectors, policy, _fresh(found, distinct, fresh_from, stored))
    done = compare(sites, vectors, nearest=pairs_per_fact(policy), earlier=earlier, met=met)
    near, is_cut = nearest(done.pairs, len(sites), policy)
    pairs = pl.concat(
        [
            near.select(sites["at"].gather(near[side]).alias(side) for side in ("left", "right")).with_columns(
                near["similarity"]
            ),
            same_subject_pairs(_slot_pairs(distinct, vectors), distinct),
            same_subject_pairs(_likeliest(nearest_of_new, distinct, policy), distinct),
            _shared_wordings(private),
        ]
    )
    copies = copies_table(found)
    return Neighbours(
        _as_fact_pairs(pairs, distinct),
        copies.sort("agent_id", "member_id"),
        done,
        sites["at"].filter(is_cut).n_unique(),
    )


def copies_table(found: pl.DataFrame) -> pl.DataFrame:
    """Return the table `COPY` of facts that `comparable_facts` returned."""
    # `text` replaces the content of a silent copy by its id; "word for word" must not.
    word_for_word = ["content", *(name for name in COPIES if name != "text")]
    return found.select(
        "agent_id",
        pl.col("id").alias("member_id"),
        pl.col("id").min().over("copy").alias("representative_id"),
        "is_silent",
        pl.col("id").min().over(word_for_word if found["is_silent"].any() else "copy").alias("speaker_id"),
        *(pl.col(name).cast(MOMENT) for name in INTERVAL),
    )


def comparable_facts(facts: pl.DataFrame, undone: pl.DataFrame) -> pl.DataFrame:
    """Return the facts a night may compare: active, no document, with a vector, and not changed after the night's end.

    Adds `row` (index in `facts`), `text` and `copy` (equal for copies), `said_at` (when a copy was last stated) and
    `new_since` (when a copy was last learned as new). Of copies whose merge a person undid (`undone`: agent_id, kind,
    targets) all but the smallest id are `is_silent`: they are left out of the comparison, and their `text` is their id.
    Sorted by place, then id.
    """
    # A document is a file of the agent: a fact about the same thing must not supersede it.
    is_active = (pl.col("state") == "active") & pl.col("category").ne_missing(DOCUMENT)
    is_comparable = facts.select(is_active & pl.col("embedding").is_not_null() & ~pl.col("is_rewound"))
    found = facts.drop("embedding", "category").with_row_index("row").filter(is_comparable.to_series())
    silent = separated_copies(found, undone).with_columns(is_silent=pl.lit(value=True))
    return (
        found.join(silent, on=["agent_id", "id"], how="left")
        .with_columns(pl.col("is_silent").fill_null(value=False))
        .with_columns(text=pl.when("is_silent").then("id").otherwise("content"))
        # One number for each set of copies: grouping by nine columns of text again took half the time of this module.
        .with_columns(copy=pl.col("row").first().over(COPIES))
        .with_columns(said_at=statement_time().max().over("copy"), new_since=pl.col("learned_at").max().over("copy"))
        # The space first: one slice of the vectors then has one width, and a place is a run of rows.
        .sort("embedding_space_id", "agent_id", *PLACE[:-1], "id")
    )


def statement_time() -> pl.Expr:
    """The time statements are ordered by: the start of validity, else when it was last learned or confirmed."""
    return pl.coalesce("valid_from", pl.max_horizontal("learned_at", "last_confirmed_at")).cast(MOMENT)


def separated_copies(facts: pl.DataFrame, undone: pl.DataFrame) -> pl.DataFrame:
    """Return (agent_id, id) of each fact that a person separated from a copy with a smaller id by undoing a merge."""
    alike = ["group", "content", *(name for name in COPIES if name != "text")]
    if undone.is_empty():
        return facts.select("agent_id", "id").clear()
    return (
        undone_groups(undone)
        .join(facts.select("id", *alike[1:]), on=["agent_id", "id"])
        .filter(pl.col("id") > pl.col("id").min().over(alike))
        .select("agent_id", "id")
        .unique()
    )


def representatives(found: pl.DataFrame) -> pl.DataFrame:
    """Return one fact of each set of copies, without silent ones, with its `place` and row number `at`.

    `about` is the normalised subject, null for none.
    """
    distinct = found.filter(~pl.col("is_silent")).filter(pl.col("id") == pl.col("id").min().over("copy"))
    subjects = distinct["subject"].unique()
    spelled = pl.Series([" ".join(subject_words(subject)) or None for subject in subjects], dtype=pl.String)
    about = pl.DataFrame({"subject": subjects, "about": spelled})
    return (
        distinct.join(about, on="subject", how="left", nulls_equal=True, maintain_order="left")
        .with_columns(place=pl.struct("agent_id", *PLACE).rle_id())
        .with_row_index("at")
    )


def _fingerprints(distinct: pl.DataFrame, vectors: pl.Series) -> pl.Series:
    """Return a fingerprint of each vector, space by space: only vectors of one space have the same width."""
    parts = [
        fingerprints(vector_matrix(vectors.slice(start, size))) for start, size in _runs(distinct["embedding_space_id"])
    ]
    return pl.Series(np.concatenate([np.empty(0, np.uint64), *parts]))


def fingerprints(rows: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return 64 bits for each row that change with any number in it: a multilinear hash of its bits.

    Two different rows get the same with a chance of 2^-32 (Lemire and Kaser 2014, "Strongly universal string hashing is
    fast"); the factors are drawn from a fixed seed, so that all nights agree.
    """
    drawn = np.random.default_rng(0).bytes(8 * rows.shape[1])
    factors = np.frombuffer(drawn, dtype=np.uint64) | np.uint64(1)
    words = np.ascontiguousarray(rows).view(np.uint32)
    marks = np.empty(len(words), dtype=np.uint64)
    for start in range(0, len(words), ROWS_AT_ONCE):
        marks[start : start + ROWS_AT_ONCE] = words[start : start + ROWS_AT_ONCE].astype(np.uint64) @ factors
    return marks


def _runs(values: pl.Series) -> Iterator[tuple[int, int]]:
    """Yield start and length of each run of equal values."""
    starts = np.flatnonzero(np.diff(values.rle_id().to_numpy().astype(np.int64), prepend=-1))
    yield from ((start, stop - start) for start, stop in pairwise([*starts.tolist(), len(values)]))


def _sites_by_place(distinct: pl.DataFrame, policy: NightPolicy) -> pl.DataFrame:
    """Return the sites at which each fact is compared with the others of its place."""
    return _sites(
        distinct,
        ["agent_id", *PLACE],
        policy.neighbour_similarity,
        owner=pl.lit(None, pl.String),
        nearest=pairs_per_fact(policy),
    )


def _sites_across_users(private: pl.DataFrame, policy: NightPolicy, *, first_place: int) -> pl.DataFrame:
    """Return the sites at which private facts of a project are compared across its users, each text once."""
    texts = (
        private.filter(pl.col("id") == pl.col("id").min().over(*PROJECT, *WORDING))
        .sort("embedding_space_id", "agent_id", "project_id", "id")
        .with_columns(place=pl.struct(PROJECT).rle_id() + first_place)
    )
    return _sites(texts, PROJECT, policy.candidate_similarity, owner=pl.col("user_id"), nearest=pairs_per_fact(policy))


def _private_facts(distinct: pl.DataFrame) -> pl.DataFrame:
    """Return the private facts of projects in which more than one user has any."""
    return distinct.filter(
        pl.col("scope") == "private", pl.col("project_id").is_not_null(), pl.col("user_id").is_not_null()
    ).filter(pl.col("user_id").n_unique().over(PROJECT) > 1)


def _sites(facts: pl.DataFrame, key: list[str], threshold: float, *, owner: pl.Expr, nearest: int) -> pl.DataFrame:
    """Return facts as `SITES`; `mark` changes with everything that decides which pairs are found."""
    # A later night reuses pairs by this mark, so the vector, place, subject, owner, threshold and limit all go into it.
    how = pl.lit(f"{len(key)} {threshold!r} {nearest}")
    where = pl.struct(*key, "about", owner=owner, how=how).hash(seed=0)
    return facts.select(
        "agent_id",
        "id",
        "place",
        "at",
        mark=pl.col("fingerprint") ^ where,
        threshold=pl.lit(threshold, pl.Float64),
        about=pl.col("about").rank("dense").fill_null(0),
        owner=owner.rank("dense").fill_null(0),
    ).select(pl.col(name).cast(dtype) for name, dtype in SITES.items())


def same_subject_pairs(pairs: pl.DataFrame, distinct: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs whose subjects are equal, or of which one has none."""
    about = distinct["about"]
    return pairs.filter((about.gather(pairs["left"]) == about.gather(pairs["right"])).fill_null(value=True))


def pairs_per_fact(policy: NightPolicy) -> int:
    """Return how many nearest facts are kept for each fact; a pair kept for its other end comes on top."""
    return MOST_CANDIDATES + policy.neighbour_count


def nearest(pairs: pl.DataFrame, count: int, policy: NightPolicy) -> tuple[pl.DataFrame, pl.Series]:
    """Return the pairs among the nearest of either end, and for each of the `count` rows whether candidates were cut.

    The nearest of a row are at most `MOST_CANDIDATES` at or above `candidate_similarity`, then `neighbour_count` below
    it; ties go to the smaller row.
    """
    left, right, similarity = (pairs[name].to_numpy() for name in ("left", "right", "similarity"))
    is_candidate = similarity.astype(np.float64) >= policy.candidate_similarity
    candidates = _ends(left[is_candidate], right[is_candidate], count)
    room = np.minimum(candidates, MOST_CANDIDATES) + policy.neighbour_count
    is_full = _ends(left, right, count) > room
    is_crowded = is_full[left] & is_full[right]
    stays = ~is_crowded
    # Ranking sorts all pairs, so it is left out where no pair is crowded at both ends.
    if is_crowded.any():
        at_left, at_right = ranks_of(left, right, similarity)
        stays |= (at_left < room[left]) | (at_right < room[right])
    return pairs.filter(pl.Series(stays)), pl.Series(candidates > pairs_per_fact(policy))


def _ends(left: NDArray[np.uint32], right: NDArray[np.uint32], count: int) -> NDArray[np.int64]:
    return np.bincount(left, minlength=count) + np.bincount(right, minlength=count)


def _slot_pairs(distinct: pl.DataFrame, vectors: pl.Series) -> pl.DataFrame:
    """Return each fact of a slot paired with the one before it and with the latest: at most 2n pairs for n facts."""
    if not distinct["slot"].count():
        return pl.DataFrame(schema=ROW_PAIR)
    alike = ["place", "slot"]
    chain = (
        distinct.filter(pl.col("slot").is_not_null())
        .sort("said_at", "id")
        .select("at", before=pl.col("at").shift(1).over(alike), last=pl.col("at").last().over(alike))
    )
    ends = pl.concat([chain.select("at", other="before"), chain.select("at", other="last")])
    pairs = (
        ends.filter(pl.col("at") != pl.col("other"))
        .select(left=pl.min_horizontal("at", "other"), right=pl.max_horizontal("at", "other"))
        .unique()
        .sort("left", "right")
    )
    return pairs.with_columns(similarity=_cosines(pairs, vectors))


def _fresh(
    found: pl.DataFrame, distinct: pl.DataFrame, fresh_from: datetime | None, stored: pl.DataFrame | None
) -> pl.DataFrame:
    """Return the rows of `distinct` of which a copy was learned since `fresh_from` or is named in `stored`."""
    if fresh_from is None:
        return distinct.clear()
    # `new_since`, not the last confirmation: the confirming statement met its neighbours when it was learned.
    is_fresh = pl.col("new_since") >= fresh_from
    if stored is not None and len(stored):
        came = found.join(stored, on=["agent_id", "id"], how="semi")["copy"].unique()
        is_fresh |= pl.col("copy").is_in(came.implode())
    return distinct.filter(is_fresh)


def _nearest_of_new(
    distinct: pl.DataFrame, vectors: pl.Series, policy: NightPolicy, fresh: pl.DataFrame
) -> tuple[pl.DataFrame, Met]:
    """Return the nearest of each of an agent's newest facts in its place, down to `ranked_similarity` (`RANKED_PAIR`).

    And those of them that need not be compared: all of their place that are near enough are among these nearest.
    """
    if fresh.is_empty() or not policy.ranked_count:
        return pl.DataFrame(schema=RANKED_PAIR), NOBODY
    fresh = (
        fresh.sort("new_since", "id", descending=True)
        # For each agent: a limit for the whole chunk left none to quiet agents.
        .filter(pl.int_range(pl.len()).over("agent_id") < policy.ranked_facts)
    )
    runs, parts = dict(enumerate(_runs(distinct["place"]))), [pl.DataFrame(schema=RANKED_PAIR)]
    all_met = [np.empty(0, np.int64)]
    for (place,), own in fresh.group_by("place", maintain_order=True):
        start, size = runs[place]
        asked = own["at"].to_numpy().astype(np.int64)
        met, is_complete = _nearest_rows(asked - start, vector_matrix(vectors.slice(start, size)), policy)
        parts.append(met.with_columns(pl.col("one", "other") + start))
        all_met.append(asked[is_complete])
    found, complete = pl.concat(parts), np.concatenate(all_met)
    is_near = pl.col("cosine") >= pl.lit(policy.neighbour_similarity, pl.Float32)
    near = found.filter(is_near, pl.col("one").is_in(complete.tolist()))
    return found, Met(complete, same_subject_pairs(_as_row_pairs(near), distinct))


def _as_row_pairs(met: pl.DataFrame) -> pl.DataFrame:
    """Return pairs of `RANKED_PAIR`, each once, as `ROW_PAIR`."""
    left, right = (side("one", "other") for side in (pl.min_horizontal, pl.max_horizontal))
    return met.select(left=left, right=right, similarity="cosine").unique(["left", "right"], maintain_order=True)


def _likeliest(met: pl.DataFrame, distinct: pl.DataFrame, policy: NightPolicy) -> pl.DataFrame:
    """Return the likeliest of the nearest that each new fact has met.

    Likeliest means highest in cosine plus a bonus for shared words, within `ranked_within` of the nearest: the rule of
    `worth_reading` in `learn`. People word a new value so freely that its cosine to the old one alone is too low.
    """
    least = pl.col("cosine").max().over("one") - policy.ranked_within
    # Words are counted where they can still bring one so near: to read them takes longer than to find the nearest.
    best = pl.col("cosine").cast(pl.Float64) + SHARED_WORD_LEAD * MOST_SHARED
    worth = met.with_columns(least=least).filter(best >= pl.col("least"))
    if worth.is_empty():
        return pl.DataFrame(schema=ROW_PAIR)
    lead = SHARED_WORD_LEAD * _shared_words(worth, distinct).clip(upper_bound=MOST_SHARED)
    likeliest = (
        worth.with_columns(likely=pl.col("cosine") + lead)
        .filter(pl.col("likely") >= pl.col("least"))
        .sort("one", -pl.col("likely"), "other")
        .filter(pl.int_range(pl.len()).over("one") < policy.ranked_count)
    )
    return _as_row_pairs(likeliest)


def _shared_words(met: pl.DataFrame, distinct: pl.DataFrame) -> pl.Series:
    """Return how many content words the two facts of each pair share; an equal subject counts as one word."""
    rows = pl.concat([met["one"], met["other"]]).unique()
    said = zip(rows, distinct["content"].gather(rows), distinct["subject"].gather(rows), strict=True)
    words: dict[int, set[object]] = {
        row: {*content_of(text), *([("subject", about)] if is_telling(about) else [])} for row, text, about in said
    }
    shared = [len(words[one] & words[other]) for one, other in met.select("one", "other").iter_rows()]
    return pl.Series(shared, dtype=pl.Int64)


def _nearest_rows(
    asked: NDArray[np.int64], rows: NDArray[np.float32], policy: NightPolicy
) -> tuple[pl.DataFrame, NDArray[np.bool_]]:
    """Return the nearest other rows of each row in `asked`, at or above `ranked_similarity` (`RANKED_PAIR`).

    And for each whether all at or above `neighbour_similarity` are among them.
    """
    anything, nowhere = np.zeros(len(rows), dtype=np.uint32), np.full(len(rows), np.inf, dtype=np.float32)
    most = max(policy.neighbour_count, policy.ranked_count)
    limits = Limits(max(policy.ranked_similarity, LEAST_COSINE), most, floors=nowhere)
    found, reach = nearest_pairs(Crowd(rows, anything, anything), asked.astype(np.int32), limits)
    near = np.float32(policy.neighbour_similarity)
    # At the threshold itself the cosine decides before it is rounded, which only the join sees.
    is_complete = (reach < near) & ~np.isin(asked, found.left[found.similarity == near])
    if limits.threshold > policy.neighbour_similarity:
        is_complete[:] = False
    pairs = pl.DataFrame({"one": found.left, "other": found.right, "cosine": found.similarity}, schema=RANKED_PAIR)
    return pairs, is_complete


def _cosines(pairs: pl.DataFrame, vectors: pl.Series) -> pl.Series:
    """Return the cosine of each pair, computed in double precision as the joins do, so that thresholds agree."""
    width = vectors.list.len().gather(pairs["left"])
    parts = [np.empty(0)]
    for start, size in _runs(width):
        for first in range(start, start + size, ROWS_AT_ONCE):
            ends = pairs.slice(first, min(ROWS_AT_ONCE, start + size - first))
            left, right = (vector_matrix(vectors.gather(ends[side])).astype(np.float64) for side in ("left", "right"))
            parts.append(np.vecdot(left, right))
    return pl.Series(np.concatenate(parts).astype(np.float32))


def _shared_wordings(private: pl.DataFrame) -> pl.DataFrame:
    """Return the first fact of each text that several users of a project stated, paired with each of the others."""
    alike = [*PROJECT, *WORDING]
    return (
        private.with_columns(first=pl.col("at").sort_by("id").first().over(alike))
        .filter(pl.col("at") != pl.col("first"))
        .select(left="first", right="at", similarity=pl.lit(1.0, pl.Float32))
    )


def _as_fact_pairs(pairs: pl.DataFrame, distinct: pl.DataFrame) -> pl.DataFrame:
    """Return pairs of rows as pairs of facts (`FOUND`), the earlier statement left, on a tie the smaller id."""
    pairs = pairs.unique(["left", "right"], keep="first", maintain_order=True)
    ids, said, users = (distinct[name] for name in ("id", "said_at", "user_id"))
    one, other = pairs["left"], pairs["right"]
    is_swapped = pl.DataFrame({"one": said.gather(one), "id": ids.gather(one)}).select(
        (pl.col("one") > said.gather(other))
        | ((pl.col("one") == said.gather(other)) & (pl.col("id") > ids.gather(other)))
    )
    sides = pl.DataFrame([is_swapped.to_series().alias("swap"), one, other]).select(
        left=pl.when("swap").then("right").otherwise("left"), right=pl.when("swap").then("left").otherwise("right")
    )
    left, right = sides["left"], sides["right"]
    columns = {
        "agent_id": distinct["agent_id"].gather(left),
        "left_id": ids.gather(left),
        "right_id": ids.gather(right),
        "similarity": pairs["similarity"],
        "is_across_users": users.gather(left).ne_missing(users.gather(right)),
        "is_ordered": said.gather(left) != said.gather(right),
        "left_said_at": said.gather(left),
        "right_said_at": said.gather(right),
    }
    return pl.DataFrame(columns, schema=FOUND).sort("agent_id", "left_id", "right_id")
