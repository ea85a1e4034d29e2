"""Facts that several users of a project hold, each for themselves: one of them becomes the project's."""

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
from nous_pipelines.phases.duplicates import clusters
from nous_pipelines.phases.merging import (
    KEYED,
    MEMBER,
    OPEN,
    OWN_TIME,
    USED,
    canonical_of,
    gives_way,
    placed,
    retired,
    same,
    summed_usage,
    united,
)
from nous_pipelines.phases.neighbours import INTERVAL
from nous_pipelines.phases.phase import Phase, Tables
from nous_pipelines.phases.proposals import Change, Proposal, Read

HELD = [*USED, *INTERVAL, "subject", "scope", "user_id", "project_id"]
"""The columns of a fact that sharing reads."""
ONESELF = frozenset({
    "i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves", "user", "users",
})  # fmt: skip
"""Who says so speaks of one person or circle; two of them saying it alike do not speak of the same."""
APART = "not judged the same as all others that say so"
PERSONAL = "it speaks of the user who told it"
PINNED = "pinned by a user"
UNEQUAL = "more or less trusted than what others hold"


def share_phase(tables: Tables, *, policy: NightPolicy, night: date) -> Phase:
    """Return what becomes the project's, for all agents: the canonical fact is shared, the others point to it.

    `tables`: facts, judgements, copies. Every fact judged the same as another user's is taken up or left for a reason.
    """
    phase, facts, copies = Phase("shared_proposals"), tables["facts"], tables["copies"]
    alike = same(tables["judgements"], copies, policy).filter(~pl.col("is_doubted"))
    phase.look_at(stated_across(alike))
    found = shared_clusters(facts, alike)
    held = copies.join(found, left_on=["agent_id", "representative_id"], right_on=["agent_id", "stated_id"])
    rows = held.join(facts.select(HELD), left_on=MEMBER, right_on=["agent_id", "id"])
    rows = rows.sort("agent_id", "cluster_id", "member_id").to_dicts()
    for (agent_id, _), group in groupby(rows, key=itemgetter("agent_id", "cluster_id")):
        for made, count in _decided(list(group), policy, night=night):
            if isinstance(made, Proposal):
                phase.propose(made, rows=count)
            else:
                phase.leave(agent_id, made, count)
    return phase


def stated_across(alike: pl.DataFrame) -> pl.DataFrame:
    """Return (agent_id, member_id): each fact that was judged the same as another user's; that is to be decided on."""
    across = alike.filter("is_across_users")
    ends = pl.concat(across.select("agent_id", member_id=side) for side in ("left_id", "right_id"))
    return ends.unique().sort(MEMBER)


def shared_clusters(facts: pl.DataFrame, alike: pl.DataFrame) -> pl.DataFrame:
    """Return (agent_id, cluster_id, stated_id, has_other_time): every fact said by another user too, by what they say.

    Every two wordings of a cluster were judged the same. What users say word for word alike is one wording if it was
    judged so with the first of them: n users make n - 1 pairs. What fits into no cluster is one of its own; whether
    another user says it of another time is told of each.
    """
    rows = stated_across(alike).with_row_index("row")
    both = alike.pipe(placed, rows, "left_id", "left").pipe(placed, rows, "right_id", "right")
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


def _decided(
    rows: Sequence[dict[str, Any]], policy: NightPolicy, *, night: date
) -> Iterator[tuple[Proposal | str, int]]:
    """Yield what is shared of what these facts say, and why the others stay as they are, with how many were stated."""
    stated = {row["representative_id"] for row in rows}
    free = [row for row in rows if gives_way(row)]
    reason = _personal_to_each(rows, free, policy)
    if reason is not None:
        yield reason, len(stated)
        return
    equals = _of_one_trust(free, policy)
    taken = {row["representative_id"] for row in equals}
    if equals:
        yield _shared(equals, night=night), len(taken)
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
    """Return why what these facts say stays with each of its users, if it does; `free` are those nobody holds."""
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


def _of_one_trust(rows: Sequence[dict[str, Any]], policy: NightPolicy) -> list[dict[str, Any]]:
    """Return the most trusted facts that enough users hold with equal trust; none if no trust has so many holders.

    What becomes the project's is trusted as each of its sources is: a copy nobody trusts takes no trust from another.
    """
    holders = Counter(trust for trust, _ in {(row["trust"], row["user_id"]) for row in rows})
    shared = max((trust for trust, users in holders.items() if users >= policy.share_among_users), default=None)
    return [row for row in rows if row["trust"] == shared]


def _shared(free: Sequence[dict[str, Any]], *, night: date) -> Proposal:
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
            Change("fact", canonical["member_id"], set=_of_project(merged), action="shared"),
            *summed_usage(merged),
            *retired(leaving, canonical, night=night),
        ),
        reason=f"{len(users)} users of the project hold it, each for themselves; from now on it is the project's",
        evidence={"users": len(users), "wordings": len({row["content"] for row in free})},
    )


def _of_project(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what the canonical fact becomes: the project's, as trusted as each of its sources is."""
    return {**united(rows), "scope": "project", "user_id": None}


def is_personal(text: str, subject: str | None = None) -> bool:
    """Tell whether a statement on a subject speaks of the one who made it: another user's speaks of somebody else."""
    return not ONESELF.isdisjoint({*read(text).words, *read(subject or "").words})
