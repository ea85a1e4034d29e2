"""Duplicate facts: clusters from verdicts, the merges proposed for them, and those that several users share.

Clusters are by complete linkage: every two members were accepted as the same, so there is no chaining.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_online.core.errors import InvalidInput
from nous_online.language.pairs.guards import added
from nous_online.language.pairs.judging import SURE_FROM, Verdict
from nous_online.language.pairs.reading import read
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.neighbours import INTERVAL, PAIR
from nous_pipelines.phases.phase import Phase, Tables, first_reason
from nous_pipelines.phases.proposals import Change, Proposal, Read
from nous_pipelines.snapshots.table_schemas import OWNER, TableSchema

CLUSTERS = TableSchema("duplicate_clusters", "Facts that say the same, every two of them judged so.", {
    **OWNER,
    "cluster_id": (pl.String, "the smallest id among them"),
    "member_id": (pl.String, "the fact"),
})  # fmt: skip
JUDGED = TableSchema("judgements", "Pairs of facts, each with its verdict.", {
    **PAIR,
    "verdict": (pl.String, "same, updates, contradicts, compatible or unsure"),
    "confidence": (pl.Float32, "0 to 1, as the judge gave it"),
    "slot": (pl.String, "the property both give a value for"),
    "reason": (pl.String, "why, in a sentence"),
    "change": (pl.Float32, "chance that one changed the other, as the built-in judge read them alone; 0 by any other"),
    "model": (pl.String, "who judged: a model, `operator` for a person, `none` for nobody yet"),
    "pair_hash": (pl.String, "SHA-256 of what was judged: a verdict is kept by it"),
})  # fmt: skip
MERGE_COLUMNS = [
    *("id", "agent_id", "content", "trust", "is_pinned", "learned_at", "last_confirmed_at", "confirmation_count"),
    *("tags", "source", "sources", "confidence", "retrieved_count", "cited_count", "ignored_count", "row_version"),
    *("contradiction_status", "key"),
]
"""The columns of a fact that a merge reads."""
MEMBER = ["agent_id", "member_id"]
SIDES = ("left", "right")
IS_COPY = pl.col("member_id") != pl.col("representative_id")
"""Of the table of copies: whether another fact stands for this one."""
OWN_TIME = "each holds in its own time"
OFFLINE = "offline:"
DOUBTED = "the judge is not sure that they say the same"
KEYED = "it has a key, and gives way to a later value of it alone"
TOLD_TOGETHER = "one source told both at the same moment, in other words"
OPEN = "one of the two is in an open contradiction, which waits for a person"


def same_pairs(judged: pl.DataFrame, copies: pl.DataFrame, policy: NightPolicy) -> pl.DataFrame:
    """Return the pairs judged the same and near enough to be merged, including those across users.

    Adds `is_of_one_time` (false: the facts hold for different intervals, so they are different statements) and
    `is_doubted` (a language model was not sure; the built-in judge says `unsure` instead).
    """
    is_near = pl.col("similarity").cast(pl.Float64) >= policy.candidate_similarity
    is_read = pl.col("similarity").cast(pl.Float64) >= policy.same_similarity
    pairs = judged.filter(
        pl.col("verdict") == Verdict.SAME.value, is_near | (is_read & (pl.col("confidence") >= SURE_FROM))
    )
    times = copies.select(*MEMBER, time=pl.struct(INTERVAL))
    for side in SIDES:
        own = times.rename({"time": f"{side}_time"})
        pairs = pairs.join(own, left_on=["agent_id", f"{side}_id"], right_on=MEMBER, how="left", maintain_order="left")
    is_of_one_time = pl.col("left_time").eq_missing(pl.col("right_time"))
    is_doubted = ~pl.col("model").str.starts_with(OFFLINE) & (pl.col("confidence") < SURE_FROM)
    return pairs.with_columns(is_of_one_time=is_of_one_time, is_doubted=is_doubted).drop("left_time", "right_time")


def told_together(pairs: pl.DataFrame, facts: pl.DataFrame, policy: NightPolicy) -> pl.DataFrame:
    """Add `is_told_together`: whether one source told both facts at the same moment, in words that differ.

    Two rows of a table or two items of a list look alike, and hardly ever say the same: nobody writes a thing down
    twice in one go. `facts`: agent_id, id, source, learned_at.
    """
    told = pairs.select("agent_id", *(f"{side}_id" for side in SIDES), "similarity")
    for side in SIDES:
        own = facts.select("agent_id", pl.col("id").alias(f"{side}_id"), pl.struct("source", "learned_at").alias(side))
        told = told.join(own, on=["agent_id", f"{side}_id"], how="left", maintain_order="left")
    left, right = (pl.col(side).struct for side in SIDES)
    is_far = pl.col("similarity").cast(pl.Float64) < policy.candidate_similarity
    is_one = (left.field("source") == right.field("source")) & (left.field("learned_at") == right.field("learned_at"))
    return pairs.with_columns(told.select(is_told_together=(is_far & is_one).fill_null(value=False)))


def duplicate_clusters(tables: Tables, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return the clusters of duplicates, copies included, without chaining (`CLUSTERS`).

    `tables`: facts, judgements, copies.
    """
    judged, copies = tables["judgements"], tables["copies"]
    pairs = told_together(same_pairs(judged, copies, policy), tables["facts"], policy).filter(
        "is_of_one_time", ~pl.any_horizontal("is_across_users", "is_doubted", "is_told_together")
    )
    # Most facts say what no other says: those are no cluster, and need not be looked at.
    said = pl.concat([pairs["left_id"], pairs["right_id"], copies.filter(IS_COPY)["representative_id"]]).unique()
    # Row numbers instead of ids: they are compared faster, and those of different agents never meet.
    is_said = pl.any_horizontal(pl.col(name).is_in(said.implode()) for name in ("member_id", "representative_id"))
    rows = copies.filter(is_said).sort(MEMBER).with_row_index("row")
    of = rows.select("agent_id", "member_id", "row")
    accepted = with_row(pairs, of, "left_id", "left").pipe(with_row, of, "right_id", "right")
    equals = with_row(rows, of, "representative_id", "representative")
    found = clusters(
        accepted.select("similarity", left_id="left", right_id="right"),
        equals=equals.select(member_id="row", representative_id="representative"),
    )
    names = rows["member_id"]
    return pl.DataFrame(
        {
            "agent_id": rows["agent_id"].gather(found["member_id"]),
            "cluster_id": names.gather(found["cluster_id"]),
            "member_id": names.gather(found["member_id"]),
        },
        schema=CLUSTERS,
    )


def with_row(pairs: pl.DataFrame, rows: pl.DataFrame, column: str, name: str) -> pl.DataFrame:
    """Add as column `name` the row number of the fact whose id is in `column`."""
    return pairs.join(rows.rename({"row": name}), left_on=["agent_id", column], right_on=MEMBER, maintain_order="left")


def merge_phase(tables: Tables, *, policy: NightPolicy, night: date) -> Phase:
    """Return a merge for each cluster (the canonical memory stays, the others point to it), and the account of pairs.

    `tables`: facts, judgements, copies, duplicate_clusters. Eligible is every pair judged the same, and every copy with
    its representative.
    """
    judged, copies, members = tables["judgements"], tables["copies"], tables["duplicate_clusters"]
    facts = tables["facts"]
    phase, pairs = Phase("merge_proposals"), alike_pairs(judged, copies, facts, policy)
    evidence = _evidence(judged, members)
    rows = members.join(facts.select(MERGE_COLUMNS), left_on=MEMBER, right_on=["agent_id", "id"])
    rows = rows.sort("agent_id", "cluster_id", "member_id").to_dicts()
    proposals = {
        key: proposal
        for key, group in groupby(rows, key=itemgetter("agent_id", "cluster_id"))
        if (proposal := _merge(list(group), evidence.get(key, []), night=night)) is not None
    }
    counted = _count_pairs(pairs, members.join(_hold_reasons(facts), on=MEMBER, how="left"), list(proposals.values()))
    taken = dict.fromkeys(proposals, 0)
    for agent_id, cluster_id, reason, count in counted.iter_rows():
        phase.add_eligible(agent_id, count)
        if reason is None:
            taken[agent_id, cluster_id] = count
        else:
            phase.leave(agent_id, reason, count)
    for key, proposal in proposals.items():
        phase.propose(proposal, rows=taken[key])
    return phase


def alike_pairs(judged: pl.DataFrame, copies: pl.DataFrame, facts: pl.DataFrame, policy: NightPolicy) -> pl.DataFrame:
    """Return the pairs to decide about: those judged the same, and each copy with its representative.

    `stays` is the reason why a pair is not merged, null where it may be.
    """
    equal = copies.filter(IS_COPY | pl.col("is_silent")).select(
        "agent_id",
        left_id="representative_id",
        right_id="member_id",
        stays=pl.when("is_silent").then(pl.lit("copies that a person took apart")),
    )
    pairs = told_together(same_pairs(judged, copies, policy).filter(~pl.col("is_across_users")), facts, policy)
    stays = first_reason(
        (~pl.col("is_of_one_time"), OWN_TIME), ("is_doubted", DOUBTED), ("is_told_together", TOLD_TOGETHER)
    )
    return pl.concat([pairs.select("agent_id", "left_id", "right_id", stays=stays), equal])


def _count_pairs(pairs: pl.DataFrame, members: pl.DataFrame, proposals: Sequence[Proposal]) -> pl.DataFrame:
    """Return the number of pairs by agent, cluster and the reason they were left, null where a proposal merges them.

    `members` has in `holding` the reason why a fact cannot be merged, null for none.
    """
    merged = pl.DataFrame(
        [(proposal.agent_id, target, row) for row, proposal in enumerate(proposals) for target in proposal.targets],
        schema={"agent_id": pl.String, "member_id": pl.String, "merge": pl.UInt32},
        orient="row",
    )
    known = members.join(merged, on=MEMBER, how="left")
    sides = pairs
    for side in SIDES:
        columns = {name: f"{side}_{name}" for name in ("cluster_id", "merge", "holding")}
        sides = sides.join(known.rename(columns), left_on=["agent_id", f"{side}_id"], right_on=MEMBER, how="left")
    reason = (
        pl.when(pl.col("stays").is_not_null())
        .then("stays")
        .when(pl.col("left_cluster_id").ne_missing(pl.col("right_cluster_id")) | pl.col("left_cluster_id").is_null())
        .then(pl.lit("another fact that says the same as one of the two was not judged the same as the other"))
        .when(pl.col("left_merge").is_null() | pl.col("right_merge").is_null())
        .then(pl.coalesce(pl.when(pl.col(f"{side}_merge").is_null()).then(f"{side}_holding") for side in SIDES))
    )
    counted = sides.select("agent_id", "left_cluster_id", reason=reason)
    cluster = pl.when(pl.col("reason").is_null()).then("left_cluster_id")
    return counted.group_by("agent_id", cluster.alias("cluster_id"), "reason").len().sort(pl.all())


def _hold_reasons(facts: pl.DataFrame) -> pl.DataFrame:
    """Return for each fact (`MEMBER`) the reason why it cannot be merged into another, null for none."""
    is_open = pl.col("contradiction_status") == "open"
    reason = pl.when(is_open).then(pl.lit(OPEN)).when("is_pinned").then(pl.lit("pinned"))
    reason = reason.when(pl.col("key").is_not_null()).then(pl.lit(KEYED))
    return facts.select("agent_id", member_id="id", holding=reason)


def can_be_merged(row: dict[str, Any]) -> bool:
    """Return whether a fact may be superseded by a duplicate: not while pinned or contradicted, nor if it has a key.

    A fact with a key is replaced only by a later value of that key.
    """
    return not row["is_pinned"] and row["key"] is None and row["contradiction_status"] != "open"


def _evidence(judged: pl.DataFrame, members: pl.DataFrame) -> Mapping[tuple[str, str], list[dict[str, Any]]]:
    """Return the judged pairs inside each cluster, by agent and cluster, as the evidence of its merge."""
    of = members.select("agent_id", "member_id", "cluster_id")
    inside = (
        judged.join(of, left_on=["agent_id", "left_id"], right_on=MEMBER)
        .join(of, left_on=["agent_id", "right_id", "cluster_id"], right_on=[*MEMBER, "cluster_id"])
        .sort("agent_id", "cluster_id", "left_id", "right_id")
        .select(
            "agent_id",
            "cluster_id",
            a="left_id",
            b="right_id",
            similarity=pl.col("similarity").cast(pl.Float64).round(4),
            confidence=pl.col("confidence").cast(pl.Float64).round(4),
            reason="reason",
            model="model",
        )
    )
    groups = groupby(inside.to_dicts(), key=lambda row: (row.pop("agent_id"), row.pop("cluster_id")))
    return {key: list(group) for key, group in groups}


def _merge(rows: list[dict[str, Any]], evidence: list[dict[str, Any]], *, night: date) -> Proposal | None:
    canonical = canonical_of(rows)
    leaving = [row for row in rows if row is not canonical and can_be_merged(row)]
    if not leaving:
        return None
    merged = [canonical, *leaving]
    copies = len(merged) - len({row["content"] for row in merged})
    return _joined(
        "merge",
        merged,
        {},
        reason=_reason(merged, evidence),
        evidence={"pairs": evidence, "copies": copies},
        night=night,
    )


def _joined(
    kind: str,
    rows: Sequence[dict[str, Any]],
    values: Mapping[str, Any],
    *,
    reason: str,
    evidence: Mapping[str, Any],
    night: date,
) -> Proposal:
    """Return the proposal that joins facts into the first one, which gets `values` besides: the others point to it."""
    canonical, *leaving = rows
    gone = {
        "state": "superseded",
        "superseded_by": canonical["member_id"],
        "superseded_at": end_of(night).isoformat(),
        "succession": "merged",
    }
    kept, action = {**merged_values(rows), **values}, "absorbed" if kind == "merge" else "shared"
    return Proposal(
        night=night,
        agent_id=canonical["agent_id"],
        kind=kind,
        targets=tuple(row["member_id"] for row in rows),
        read_set=tuple(Read("fact", row["member_id"], row["row_version"]) for row in rows),
        changes=(
            Change("fact", canonical["member_id"], set=kept, action=action),
            *summed_usage(rows),
            *(Change("fact", row["member_id"], set=gone, action="merged") for row in leaving),
        ),
        reason=reason,
        evidence=evidence,
    )


def canonical_of(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the member that stays: the first by `canonical_order`, or one as trusted and pinned that says more.

    More means that it adds dates, numbers, times, identifiers or names, as the guards read them, and that no other
    member adds any to it.
    """
    first = min(rows, key=canonical_order)
    texts = {row["content"] for row in rows}
    if len(texts) == 1:
        return first
    equals = [row for row in rows if (row["trust"], row["is_pinned"]) == (first["trust"], first["is_pinned"])]
    richer = {row["content"] for row in equals if added(first["content"], row["content"])}
    fullest = {text for text in richer if not any(added(text, other) for other in texts)}
    return min((row for row in equals if row["content"] in fullest), key=canonical_order, default=first)


def canonical_order(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of members: most trusted, pinned, most used and confirmed, first learned, smallest id."""
    use = row["cited_count"] * 2 + row["confirmation_count"] + row["retrieved_count"]
    return (-row["trust"], not row["is_pinned"], -use, row["learned_at"], row["member_id"])


def merged_values(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the new values of the canonical memory: each statement is a confirmation, tags and sources are united.

    A less trusted duplicate changes neither time nor confidence; otherwise an old value, repeated by an untrusted
    source, would become newer than the value that replaced it.
    """
    weighty = [row for row in rows if row["trust"] >= rows[0]["trust"]]  # the canonical one comes first
    sources = {source for row in rows for source in [*row["sources"], *([row["source"]] if row["source"] else [])]}
    said_last = max(moment for row in weighty for moment in (row["learned_at"], row["last_confirmed_at"]) if moment)
    return {
        "confirmation_count": sum(row["confirmation_count"] for row in rows) + len(rows) - 1,
        "last_confirmed_at": said_last.isoformat(),
        "tags": sorted({tag for row in rows for tag in row["tags"]}),
        "sources": sorted(sources),
        "confidence": max(row["confidence"] for row in weighty),
    }


def summed_usage(rows: Sequence[dict[str, Any]]) -> tuple[Change, ...]:
    """Return the change that adds the usage of the other facts to the first; none where they were never used."""
    canonical, *leaving = rows
    add = {name: sum(row[name] for row in leaving) for name in ("retrieved_count", "cited_count", "ignored_count")}
    return (Change("usage", canonical["member_id"], add=add),) if any(add.values()) else ()


def _reason(rows: Sequence[dict[str, Any]], evidence: Sequence[dict[str, Any]]) -> str:
    canonical = rows[0]
    days = [f"{row['learned_at']:%d %b %Y}" for row in sorted(rows, key=lambda row: row["learned_at"])]
    times = f"said {len(rows)} times, first {days[0]}, last {days[-1]}"
    least = min((pair["similarity"] for pair in evidence), default=None)
    # Only copies count as 1: a rounded cosine of different words must not read as identity.
    alike = ", word for word" if least is None else f", at least {min(least, 0.999):.3f} similar"
    return f"{times}{alike}; keeps the one of {canonical['learned_at']:%d %b %Y}"


# --- clusters by complete linkage ---

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


# --- facts that several users of a project hold privately: one of them becomes the project's ---


SHARE_COLUMNS = [*MERGE_COLUMNS, *INTERVAL, "subject", "scope", "user_id", "project_id"]
"""The columns of a fact that sharing reads."""
ONESELF = frozenset({
    "i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves", "user", "users",
})  # fmt: skip
"""Words that make a statement personal: two users saying it in the same words speak of different people."""
APART = "not judged the same as all others that say so"
PERSONAL = "it speaks of the user who told it"
PINNED = "pinned by a user"
UNEQUAL = "more or less trusted than what others hold"


def share_phase(tables: Tables, *, policy: NightPolicy, night: date) -> Phase:
    """Return a proposal for each cluster that enough users hold: the canonical fact is shared, the others point to it.

    `tables`: facts, judgements, copies. Eligible is every fact judged the same as another user's.
    """
    phase, facts, copies = Phase("shared_proposals"), tables["facts"], tables["copies"]
    alike = same_pairs(tables["judgements"], copies, policy).filter(~pl.col("is_doubted"))
    phase.add_eligible_rows(stated_across(alike))
    found = shared_clusters(facts, alike)
    held = copies.join(found, left_on=["agent_id", "representative_id"], right_on=["agent_id", "stated_id"])
    rows = held.join(facts.select(SHARE_COLUMNS), left_on=MEMBER, right_on=["agent_id", "id"])
    rows = rows.sort("agent_id", "cluster_id", "member_id").to_dicts()
    for (agent_id, _), group in groupby(rows, key=itemgetter("agent_id", "cluster_id")):
        for made, count in _decide_cluster(list(group), policy, night=night):
            if isinstance(made, Proposal):
                phase.propose(made, rows=count)
            else:
                phase.leave(agent_id, made, count)
    return phase


def stated_across(alike: pl.DataFrame) -> pl.DataFrame:
    """Return (agent_id, member_id) of each fact that was judged the same as another user's."""
    across = alike.filter("is_across_users")
    ends = pl.concat(across.select("agent_id", member_id=side) for side in ("left_id", "right_id"))
    return ends.unique().sort(MEMBER)


def shared_clusters(facts: pl.DataFrame, alike: pl.DataFrame) -> pl.DataFrame:
    """Return the cluster of every fact that another user states too: agent_id, cluster_id, stated_id, has_other_time.

    Every two wordings in a cluster were judged the same. Facts with equal text count as one wording, judged once with
    the first user's: n users make n - 1 pairs. A fact that fits into no cluster has its own. `has_other_time`: another
    user states it for another interval.
    """
    rows = stated_across(alike).with_row_index("row")
    both = alike.pipe(with_row, rows, "left_id", "left").pipe(with_row, rows, "right_id", "right")
    sides, apart = both.filter("is_of_one_time"), both.filter("is_across_users", ~pl.col("is_of_one_time"))
    said = rows.join(facts, left_on=MEMBER, right_on=["agent_id", "id"], how="left", maintain_order="left")
    wordings = _wordings(sides, said)
    of = wordings["representative_id"]
    pairs = sides.select("similarity", left_id=of.gather(sides["left"]), right_id=of.gather(sides["right"]))
    found = clusters(pairs.filter(pl.col("left_id") != pl.col("right_id")), equals=wordings)
    placing = rows.join(found, left_on="row", right_on="member_id", how="left").sort("row")
    names = rows["member_id"].gather(placing["cluster_id"].fill_null(placing["row"]))
    other_time = pl.col("row").is_in(pl.concat([apart["left"], apart["right"]]).implode())
    return placing.select("agent_id", names.alias("cluster_id"), stated_id="member_id", has_other_time=other_time)


def _wordings(sides: pl.DataFrame, said: pl.DataFrame) -> pl.DataFrame:
    """Return for each row (member_id) the row of the first user with the same text and subject (representative_id)."""
    alike = [
        said[name].gather(sides["left"]).eq_missing(said[name].gather(sides["right"]))
        for name in ("content", "subject")
    ]
    copies = sides.filter("is_across_users", alike[0] & alike[1])
    first = copies.select(member_id=pl.max_horizontal("left", "right"), first=pl.min_horizontal("left", "right"))
    return (
        said.select(member_id="row")
        .join(first.group_by("member_id").agg(pl.col("first").min()), on="member_id", how="left", maintain_order="left")
        .select("member_id", representative_id=pl.coalesce("first", "member_id"))
    )


def _decide_cluster(
    rows: Sequence[dict[str, Any]], policy: NightPolicy, *, night: date
) -> Iterator[tuple[Proposal | str, int]]:
    """Yield the proposal for one cluster and the reasons why facts stay, each with the number of facts it settles."""
    stated = {row["representative_id"] for row in rows}
    free = [row for row in rows if can_be_merged(row)]
    reason = _personal_to_each(rows, free, policy)
    if reason is not None:
        yield reason, len(stated)
        return
    equals = _equally_trusted(free, policy)
    taken = {row["representative_id"] for row in equals}
    if equals:
        yield _share_proposal(equals, night=night), len(taken)
    held = stated - taken - {row["representative_id"] for row in free}
    pinned = {row["representative_id"] for row in rows if row["is_pinned"]} & held
    with_key = {row["representative_id"] for row in rows if row["key"]} & held - pinned
    yield PINNED, len(pinned)
    yield KEYED, len(with_key)
    yield OPEN, len(held - pinned - with_key)
    yield UNEQUAL, len(stated - taken - held)


def _personal_to_each(
    rows: Sequence[dict[str, Any]], free: Sequence[dict[str, Any]], policy: NightPolicy
) -> str | None:
    """Return why a cluster as a whole is not shared, None where it may be; `free` are the rows that can be merged."""
    if len({row["representative_id"] for row in rows}) == 1:
        return OWN_TIME if rows[0]["has_other_time"] else APART
    if len({row["user_id"] for row in rows}) < policy.share_among_users:
        return f"held by fewer than {policy.share_among_users} users"
    if any(is_personal(row["content"], row["subject"]) for row in rows):
        return PERSONAL
    if len({row["user_id"] for row in free}) < policy.share_among_users:
        if any(row["is_pinned"] for row in rows):
            return PINNED
        return KEYED if any(row["key"] for row in rows) else OPEN
    return None


def _equally_trusted(rows: Sequence[dict[str, Any]], policy: NightPolicy) -> list[dict[str, Any]]:
    """Return the most trusted facts that enough users hold with equal trust; none if no level of trust has so many.

    The shared fact keeps the trust of its sources, so an untrusted copy can neither lower nor borrow it.
    """
    holders = Counter(trust for trust, _ in {(row["trust"], row["user_id"]) for row in rows})
    shared = max((trust for trust, users in holders.items() if users >= policy.share_among_users), default=None)
    return [row for row in rows if row["trust"] == shared]


def _share_proposal(free: Sequence[dict[str, Any]], *, night: date) -> Proposal:
    canonical = canonical_of(free)
    merged, users = [canonical, *(row for row in free if row is not canonical)], len({row["user_id"] for row in free})
    return _joined(
        "share",
        merged,
        {"scope": "project", "user_id": None},
        reason=f"{users} users of the project hold it, each for themselves; from now on it is the project's",
        evidence={"users": users, "wordings": len({row["content"] for row in free})},
        night=night,
    )


def is_personal(text: str, subject: str | None = None) -> bool:
    """Return whether a statement or its subject refers to the speaker, so that each user means somebody else."""
    return not ONESELF.isdisjoint({*read(text).words, *read(subject or "").words})
