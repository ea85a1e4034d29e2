"""Facts that several users of a project hold, each for themselves: one of them becomes the project's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any

import polars as pl

from nous_online.pairs.judging import Verdict
from nous_online.pairs.reading import read
from nous_pipelines.phases import Phase
from nous_pipelines.policy import NightPolicy
from nous_pipelines.proposals import Change, Proposal, Read
from nous_pipelines.transforms.duplicates import clusters
from nous_pipelines.transforms.merging import MEMBER, USED, canonical_of, placed, retired, summed_usage, united

HELD = [*USED, "subject", "scope", "user_id", "project_id"]
"""The columns of a fact that sharing reads."""
ONESELF = frozenset({"i", "me", "my", "mine", "myself", "user"})
"""Who says so speaks of one person; two of them saying it alike do not speak of the same."""
APART = "not judged the same as all others that say so"
PERSONAL = "it speaks of the user who told it"
PINNED = "pinned by a user"


def share_phase(
    facts: pl.DataFrame, judged: pl.DataFrame, copies: pl.DataFrame, *, policy: NightPolicy, night: date
) -> Phase:
    """Return what becomes the project's, for all agents: the canonical fact is shared, the others point to it.

    `facts` need the columns `HELD`. Every fact judged the same as another user's is taken up or left for a reason.
    """
    phase = Phase("shared_proposals")
    found = shared_clusters(facts, judged, policy=policy)
    held = copies.join(found, left_on=["agent_id", "representative_id"], right_on=["agent_id", "stated_id"])
    rows = held.join(facts.select(HELD), left_on=MEMBER, right_on=["agent_id", "id"])
    rows = rows.sort("agent_id", "cluster_id", "member_id").to_dicts()
    for _, group in groupby(rows, key=itemgetter("agent_id", "cluster_id")):
        members = list(group)
        agent_id, count = members[0]["agent_id"], len({row["representative_id"] for row in members})
        phase.look(agent_id, count)
        made = _shared(members, policy, night=night)
        if isinstance(made, str):
            phase.leave(agent_id, made, count)
        else:
            phase.propose(made, rows=count)
    return phase


def shared_clusters(facts: pl.DataFrame, judged: pl.DataFrame, *, policy: NightPolicy) -> pl.DataFrame:
    """Return (agent_id, cluster_id, stated_id): every fact judged the same as another user's, by what they all say.

    Every two wordings of a cluster were judged the same. What users say word for word alike is one wording if it was
    judged so with the first of them: n users make n - 1 pairs. What fits into no cluster is one of its own.
    """
    same = judged.filter(
        pl.col("verdict") == Verdict.SAME.value, pl.col("similarity").cast(pl.Float64) >= policy.candidate_similarity
    )
    across = same.filter("is_across_users")
    ends = pl.concat(across.select("agent_id", member_id=side) for side in ("left_id", "right_id"))
    rows = ends.unique().sort(MEMBER).with_row_index("row")
    sides = same.pipe(placed, rows, "left_id", "left").pipe(placed, rows, "right_id", "right")
    wordings = _wordings(sides, rows.join(facts, left_on=MEMBER, right_on=["agent_id", "id"], maintain_order="left"))
    of = wordings["representative_id"]
    pairs = sides.select("similarity", left_id=of.gather(sides["left"]), right_id=of.gather(sides["right"]))
    found = clusters(pairs.filter(pl.col("left_id") != pl.col("right_id")), equals=wordings)
    placing = rows.join(found, left_on="row", right_on="member_id", how="left").sort("row")
    names = rows["member_id"].gather(placing["cluster_id"].fill_null(placing["row"]))
    return placing.select("agent_id", names.alias("cluster_id"), stated_id="member_id")


def _wordings(sides: pl.DataFrame, said: pl.DataFrame) -> pl.DataFrame:
    """Return, for each row (member_id), that of the first user who said it word for word alike (representative_id)."""
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


def _shared(rows: Sequence[dict[str, Any]], policy: NightPolicy, *, night: date) -> Proposal | str:
    """Return the proposal that shares what these facts say, or the reason why they stay as they are."""
    users = {row["user_id"] for row in rows}
    if len({row["representative_id"] for row in rows}) == 1:
        return APART
    if len(users) < policy.share_among_users:
        return f"held by fewer than {policy.share_among_users} users"
    if any(is_personal(row["content"]) for row in rows):
        return PERSONAL
    free = [row for row in rows if not row["is_pinned"]]
    if len({row["user_id"] for row in free}) < policy.share_among_users:
        return PINNED
    canonical = canonical_of(free)
    leaving = [row for row in free if row is not canonical]
    merged = [canonical, *leaving]
    return Proposal(
        night=night,
        agent_id=canonical["agent_id"],
        kind="share",
        targets=tuple(row["member_id"] for row in merged),
        read_set=tuple(Read("fact", row["member_id"], row["row_version"]) for row in merged),
        changes=(
            Change("fact", canonical["member_id"], set=_of_project(merged), action="shared"),
            *summed_usage(merged),
            *retired(leaving, canonical, night=night),
        ),
        reason=f"{len(users)} users of the project hold it, each for themselves; from now on it is the project's",
        evidence={"users": len(users), "wordings": len({row["content"] for row in rows})},
    )


def _of_project(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what the canonical fact becomes: the project's, no more trusted than the least trusted of its sources."""
    return {**united(rows), "scope": "project", "user_id": None, "trust": min(row["trust"] for row in rows)}


def is_personal(text: str) -> bool:
    """Tell whether a statement speaks of the one who made it, so that another user's speaks of somebody else."""
    return not ONESELF.isdisjoint(read(text).words)
