"""Facts that several users of a project hold privately: one of them becomes the project's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any

import polars as pl

from nous_online.language.pairs.reading import read
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.merging import (
    KEYED,
    MEMBER,
    MERGE_COLUMNS,
    OPEN,
    OWN_TIME,
    can_be_merged,
    canonical_of,
    clusters,
    merged_values,
    retire_changes,
    same_pairs,
    summed_usage,
    with_row,
)
from nous_pipelines.phases.neighbours import INTERVAL
from nous_pipelines.phases.phase import Phase, Tables
from nous_pipelines.phases.proposals import Change, Proposal, Read

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
    leaving = [row for row in free if row is not canonical]
    merged, users = [canonical, *leaving], {row["user_id"] for row in free}
    return Proposal(
        night=night,
        agent_id=canonical["agent_id"],
        kind="share",
        targets=tuple(row["member_id"] for row in merged),
        read_set=tuple(Read("fact", row["member_id"], row["row_version"]) for row in merged),
        changes=(
            Change(
                "fact",
                canonical["member_id"],
                set={**merged_values(merged), "scope": "project", "user_id": None},
                action="shared",
            ),
            *summed_usage(merged),
            *retire_changes(leaving, canonical, night=night),
        ),
        reason=f"{len(users)} users of the project hold it, each for themselves; from now on it is the project's",
        evidence={"users": len(users), "wordings": len({row["content"] for row in free})},
    )


def is_personal(text: str, subject: str | None = None) -> bool:
    """Return whether a statement or its subject refers to the speaker, so that each user means somebody else."""
    return not ONESELF.isdisjoint({*read(text).words, *read(subject or "").words})
