"""Links between memories: similar but not the same, cited together, or one extracted from the other."""

from __future__ import annotations

from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_online.language.pairs.judging import Verdict
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.phase import Phase, Tables, first_reason
from nous_pipelines.phases.proposals import Change, Proposal, Read
from nous_pipelines.phases.rulings import row_numbers
from nous_pipelines.snapshots.table_schemas import MEMORY, TableSchema

LIVE = {"fact": "active", "episode": "closed", "procedure": "active"}
"""The kinds that are linked, and the state in which they are."""
TOGETHER_FROM = 2
"""Recalls that must have cited two memories together before they are linked; one may be chance."""
MOST_CITED = 20
"""Recalls that cited more memories are ignored: they say little about any two, and would make 200 pairs and more."""
LEAST_A_NIGHT, SHARE_A_NIGHT = 500, 0.05
"""Most links an agent gets in one night: this share of its memories, but at least 500; the strongest come first."""
MEMORY_COLUMNS = ("agent_id", "id", "state", "user_id", "is_rewound", "row_version")
COLUMNS = {
    "facts": (*MEMORY_COLUMNS, "source_episode_id"),
    "episodes": MEMORY_COLUMNS,
    "procedures": MEMORY_COLUMNS,
    "recalls": ("agent_id", "id", "cited_ids"),
    "links": ("agent_id", "from_id", "to_id", "kind"),
    "undone": ("agent_id", "kind", "targets"),
}
"""The columns read of each table of the snapshot."""
CHANGED = TableSchema("changed", "The memories that other phases want to change tonight.", {**MEMORY})
WORDS = {"related": "related", "together": "cited together", "drawn_from": "drawn from an episode"}


def link_phase(tables: Tables, *, policy: NightPolicy, night: date) -> Phase:
    """Return the new links of a chunk of agents, with the account of the pairs that could be linked.

    `tables`: facts, episodes, procedures, recalls, links, undone, judgements, changed. Memories that other phases
    change tonight (`changed`) are linked in a later night, at their new version.

    The new links from one memory are one proposal: a memory changed before apply makes only the links to it stale, and
    a wrong link can be undone without all others of the night. `targets` lists both ends of each link in turn, from
    which the next nights know the links that were undone.
    """
    phase = Phase("link_proposals")
    memories = pl.concat([tables[f"{kind}s"].select(*MEMORY_COLUMNS, memory_kind=pl.lit(kind)) for kind in LIVE])
    pairs = pl.concat(
        [_related(tables["judgements"], policy), _together(tables["recalls"]), _drawn_from(tables["facts"])]
    )
    phase.add_eligible_rows(pairs)
    found = _considered(pairs, memories, tables)
    bounded = _bounded(found.filter(pl.col("why").is_null()), tables["links"], most=policy.links_per_memory)
    chosen = _of_tonight(bounded.filter(pl.col("why").is_null()), memories)
    for part in (found, bounded, chosen):
        phase.leave_all(part)
    rows = chosen.filter(pl.col("why").is_null()).sort("agent_id", "from_id", "to_id", "kind").to_dicts()
    for _, group in groupby(rows, key=itemgetter("agent_id", "from_id")):
        links = list(group)
        phase.propose(_proposal(links, night=night), rows=len(links))
    return phase


def _related(judged: pl.DataFrame, policy: NightPolicy) -> pl.DataFrame:
    """Return the similar pairs of facts that a judge called `compatible` or `unsure`."""
    alike = judged.filter(
        pl.col("verdict").is_in([Verdict.COMPATIBLE.value, Verdict.UNSURE.value]),
        pl.col("similarity") >= policy.neighbour_similarity,
        ~pl.col("is_across_users"),
    )
    return alike.select(
        "agent_id",
        kind=pl.lit("related"),
        from_id="left_id",
        to_id="right_id",
        weight=pl.col("similarity").cast(pl.Float64).clip(0, 1),
        evidence=pl.struct("verdict", recalls=pl.lit(None, pl.Int64)),
        tie="pair_hash",
    )


def _together(recalls: pl.DataFrame) -> pl.DataFrame:
    """Return the memories cited by the same recalls, weighted by the Jaccard index of the recalls that cite them."""
    cited = (
        recalls.select("agent_id", recall="id", id=pl.col("cited_ids").list.unique())
        .filter(pl.col("id").list.len().is_between(1, MOST_CITED))
        .explode("id")
    )
    counts = cited.group_by("agent_id", "id").len("citing")
    pairs = (
        cited.join(cited, on=["agent_id", "recall"], suffix="_other")
        .filter(pl.col("id") < pl.col("id_other"))
        .group_by("agent_id", "id", "id_other")
        .len("both")
        .filter(pl.col("both") >= TOGETHER_FROM)
        .join(counts, on=["agent_id", "id"])
        .join(counts, left_on=["agent_id", "id_other"], right_on=["agent_id", "id"], suffix="_other")
    )
    both = pl.col("both").cast(pl.Int64)
    return pairs.select(
        "agent_id",
        kind=pl.lit("together"),
        from_id="id",
        to_id="id_other",
        weight=both / (pl.col("citing").cast(pl.Int64) + pl.col("citing_other").cast(pl.Int64) - both),
        evidence=pl.struct(verdict=pl.lit(None, pl.String), recalls=both),
        tie=pl.lit(""),
    )


def _drawn_from(facts: pl.DataFrame) -> pl.DataFrame:
    """Return the active facts with the episodes they were extracted from."""
    drawn = facts.filter(pl.col("source_episode_id").is_not_null(), pl.col("state") == LIVE["fact"])
    return drawn.select(
        "agent_id",
        kind=pl.lit("drawn_from"),
        from_id="id",
        to_id="source_episode_id",
        weight=pl.lit(1.0),
        evidence=pl.struct(verdict=pl.lit(None, pl.String), recalls=pl.lit(None, pl.Int64)),
        tie=pl.lit(""),
    )


def _considered(pairs: pl.DataFrame, memories: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Add the rows of both ends of each pair, and as `why` the reason not to link it, null for none."""
    is_live = pl.col("state") == pl.col("memory_kind").replace_strict(LIVE)
    changing = tables["changed"].unique().with_columns(changes=pl.lit("tonight"))
    ends = memories.with_columns(is_live=is_live).drop("state").join(changing, on=["agent_id", "id"], how="left")
    both = pairs
    for side in ("from", "to"):
        own = ends.rename({name: f"{side}_{name}" for name in ends.columns if name != "agent_id"})
        both = both.join(own, on=["agent_id", f"{side}_id"], how="left")
    known = _either_way(tables["links"].select("agent_id", "kind", "from_id", "to_id")).with_columns(
        known=pl.lit("yes")
    )
    taken_back = _either_way(_taken_back(tables["undone"])).with_columns(taken_back=pl.lit("yes"))
    return (
        both.join(known, on=["agent_id", "kind", "from_id", "to_id"], how="left")
        .join(taken_back, on=["agent_id", "from_id", "to_id"], how="left")
        .with_columns(why=_why())
    )


def _either_way(links: pl.DataFrame) -> pl.DataFrame:
    turned = links.rename({"from_id": "to_id", "to_id": "from_id"}).select(links.columns)
    return pl.concat([links, turned]).unique()


def _taken_back(undone: pl.DataFrame) -> pl.DataFrame:
    """Return the two ends of each link that a person undid."""
    links = undone.filter(pl.col("kind") == "link")
    ends = links.select(
        "agent_id",
        from_id=pl.col("targets").list.gather_every(2),
        to_id=pl.col("targets").list.gather_every(2, 1),
    )
    return ends.explode("from_id", "to_id")


def _why() -> pl.Expr:
    """Return the reason why two memories are not linked, null where they may be."""
    is_live = (pl.col("from_is_live") & pl.col("to_is_live")).fill_null(value=False)
    is_of_two = pl.col("from_user_id") != pl.col("to_user_id")
    return first_reason(
        (pl.col("known").is_not_null(), "already linked"),
        (~is_live, "one of the two is no longer in use"),
        (pl.col("from_is_rewound") | pl.col("to_is_rewound"), "one of the two changed after the end of the night"),
        (is_of_two, "the two belong to different users"),
        (pl.col("taken_back").is_not_null(), "a person took the link back"),
        (pl.col("from_changes").is_not_null() | pl.col("to_changes").is_not_null(), "one of the two changes tonight"),
    )


def _bounded(pairs: pl.DataFrame, links: pl.DataFrame, *, most: int) -> pl.DataFrame:
    """Add as `why` that an end has enough links of this kind; the strongest stay, at most `most` for each end.

    Links `drawn_from` have no limit: a fact comes from one episode, but an episode may have any number of facts.
    """
    parts = [pairs.filter(pl.col("kind") == "drawn_from")]
    for kind in ("related", "together"):
        own = pairs.filter(pl.col("kind") == kind).sort(
            "agent_id", "weight", "tie", "from_id", "to_id", descending=[False, True, False, False, False]
        )
        left, right, ends = row_numbers(own, "from_id", "to_id")
        capacity = np.maximum(most - _link_counts(ends, links.filter(pl.col("kind") == kind)), 0)
        has_room = pl.Series("has_room", _strongest(left, right, capacity), dtype=pl.Boolean)
        parts.append(own.with_columns(why=pl.when(~has_room).then(pl.lit("has enough links"))))
    return pl.concat(parts)


def _link_counts(ends: pl.DataFrame, links: pl.DataFrame) -> NDArray[np.int64]:
    """Return how many links each of these memories has, in either direction."""
    every = pl.concat([links.select("agent_id", id=side) for side in ("from_id", "to_id")])
    counts = every.group_by("agent_id", "id").len()
    counted = ends.join(counts, on=["agent_id", "id"], how="left", maintain_order="left")
    return counted["len"].fill_null(0).to_numpy().astype(np.int64)


def _strongest(left: NDArray[np.int64], right: NDArray[np.int64], capacity: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which pairs, given strongest first, are kept when each end keeps at most its capacity.

    The result is that of one greedy pass over the pairs. It is reached in vectorised rounds: a pair within the
    remaining capacity of both ends, counting all stronger open pairs, would be kept whatever happens to those.
    """
    kept = np.zeros(len(left), dtype=np.bool_)
    room = capacity.copy()
    open_pairs = np.arange(len(left))
    while True:
        ends = np.stack([left[open_pairs], right[open_pairs]], axis=1)
        has_room = (room[ends] > 0).all(axis=1)
        open_pairs, ends = open_pairs[has_room], ends[has_room]
        if not len(open_pairs):
            return kept
        is_kept = (_ranks(ends.ravel()).reshape(ends.shape) < room[ends]).all(axis=1)
        kept[open_pairs[is_kept]] = True
        room -= np.bincount(ends[is_kept].ravel(), minlength=len(room))
        open_pairs = open_pairs[~is_kept]


def _ranks(members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each entry how many equal entries precede it."""
    order = np.argsort(members, kind="stable")
    ordered = members[order]
    ranks = np.empty(len(members), dtype=np.int64)
    ranks[order] = np.arange(len(members)) - np.searchsorted(ordered, ordered)
    return ranks


def _of_tonight(pairs: pl.DataFrame, memories: pl.DataFrame) -> pl.DataFrame:
    """Add as `why` that the night's limit is reached; the kinds take turns, the strongest of each first."""
    sizes = memories.group_by("agent_id").agg(
        most=(pl.len() * SHARE_A_NIGHT).floor().cast(pl.Int64).clip(LEAST_A_NIGHT)
    )
    place = pl.int_range(pl.len())
    return (
        pairs.sort("agent_id", "kind", "weight", "tie", "from_id", "to_id",
                   descending=[False, False, True, False, False, False])
        .with_columns(place_in_kind=place.over("agent_id", "kind"))
        .sort("agent_id", "place_in_kind", "kind")
        .join(sizes, on="agent_id", maintain_order="left")
        .with_columns(why=pl.when(place.over("agent_id") >= pl.col("most")).then(pl.lit("stronger links come first")))
    )  # fmt: skip


def _proposal(links: list[dict[str, Any]], *, night: date) -> Proposal:
    read = {
        link[f"{side}_id"]: Read(link[f"{side}_memory_kind"], link[f"{side}_id"], link[f"{side}_row_version"])
        for link in links
        for side in ("from", "to")
    }
    counts = {kind: sum(link["kind"] == kind for link in links) for kind in WORDS}
    kinds = ", ".join(f"{count} {WORDS[kind]}" for kind, count in counts.items() if count)
    return Proposal(
        night=night,
        agent_id=links[0]["agent_id"],
        kind="link",
        targets=tuple(link[f"{side}_id"] for link in links for side in ("from", "to")),
        read_set=tuple(read[memory] for memory in sorted(read)),
        changes=tuple(_change(link, night=night) for link in links),
        reason=f"{len(read)} memories belong together: {kinds}",
        evidence=counts,
    )


def _change(link: dict[str, Any], *, night: date) -> Change:
    return Change(
        "link",
        link["from_id"],
        set={
            "to_id": link["to_id"],
            "kind": link["kind"],
            "weight": round(link["weight"], 4),
            "evidence": {name: value for name, value in link["evidence"].items() if value is not None},
            "created_at": end_of(night).isoformat(),
        },
    )
