"""What leaves an agent's reach: facts superseded for longer than the grace, and memories nobody ever used.

Nothing is deleted: what is archived can be restored. Censors, open episodes and closed ones stay; age condenses those.

"Unused" is weighed, not counted: where nobody asked, it says nothing, and how long to wait is read off the agent's own
last year. Real traces of use differ by a factor of ten in how many things return after 90 idle days.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import polars as pl

from nous_pipelines.nights import end_of
from nous_pipelines.phases import Phase
from nous_pipelines.policy import NightPolicy
from nous_pipelines.proposals import Change, Proposal, Read
from nous_pipelines.transforms.taken_back import taken_back
from nous_pipelines.transforms.usage import KEY, WINDOW_DAYS, heirs

WAITS = tuple(2 ** (power / 2) for power in range(9))
"""The ages tried, in multiples of `unused_after_days`, up to 16 times: 90, 127, 180 … 1,440 days."""
FACT_COLUMNS = (
    *KEY, "state", "is_pinned", "is_rewound", "row_version", "learned_at", "last_confirmed_at", "superseded_by",
    "superseded_at", "archived_at", "contradiction_status", "source_kind", "retrieved_count", "cited_count",
    "last_used_at",
)  # fmt: skip
PROCEDURE_COLUMNS = (
    *KEY, "state", "is_pinned", "is_rewound", "row_version", "learned_at", "archived_at", "related_procedures",
    "retrieved_count", "cited_count", "activation_count", "success_count", "failure_count",
)  # fmt: skip
COLUMNS = {
    "facts": FACT_COLUMNS,
    "procedures": PROCEDURE_COLUMNS,
    "uses": None,
    "contradictions": ("agent_id", "memory_a", "memory_b", "status"),
    "undone": ("agent_id", "kind", "targets"),
}
"""What is read of each table; None: all of it."""
NO = pl.lit(value=False)


def forgetting_phase_of(tables: Mapping[str, pl.DataFrame], *, policy: NightPolicy, night: date) -> Phase:
    """Return an archive proposal for each memory that leaves, and for the others past their age why they stay.

    `tables` are those of the snapshot: facts, procedures, contradictions, undone, and `uses`: what happened per memory
    and day in the last `WINDOW_DAYS`.
    """
    taken = taken_back(tables["undone"], "archive")
    facts = stated(in_contradiction(tables["facts"], tables["contradictions"]))
    due = pl.concat(
        [
            past_grace(facts, taken, policy=policy, night=night),
            unused(facts, tables["procedures"], tables["uses"], taken, policy=policy, night=night),
        ],
        how="diagonal_relaxed",
    ).sort(KEY)
    phase = Phase("forgetting_proposals")
    for agent_id, reason, rows in due.group_by("agent_id", "stays").len().sort("agent_id", "stays").iter_rows():
        phase.look(agent_id, rows)
        if reason is not None:
            phase.leave(agent_id, reason, rows)
    for row in due.filter(pl.col("stays").is_null()).iter_rows(named=True):
        phase.propose(archive_proposal(row, night=night))
    return phase


def in_contradiction(facts: pl.DataFrame, contradictions: pl.DataFrame) -> pl.DataFrame:
    """Add whether a fact `is_open`: it says so, or a contradiction that is open names it, whatever it says."""
    named = contradictions.filter(pl.col("status") == "open")
    sides = pl.concat([named.select("agent_id", id=side) for side in ("memory_a", "memory_b")]).unique()
    is_open = (pl.col("contradiction_status") == "open") | pl.col("is_named").fill_null(NO)
    return facts.join(sides.with_columns(is_named=pl.lit(value=True)), on=KEY, how="left").with_columns(is_open=is_open)


def stated(facts: pl.DataFrame) -> pl.DataFrame:
    """Add whether a fact `is_stated`: a person said it, or said what it took the place of, at any remove."""
    of = heirs(facts.with_columns(is_rewound=NO))
    said = facts.filter(pl.col("source_kind") == "user").select(KEY)
    passed_on = of.join(said, on=KEY, how="semi").select("agent_id", id="heir_id")
    every = pl.concat([said, passed_on]).unique().with_columns(is_stated=pl.lit(value=True))
    return facts.join(every, on=KEY, how="left").with_columns(pl.col("is_stated").fill_null(NO))


def past_grace(facts: pl.DataFrame, taken: pl.DataFrame, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return the facts superseded longer ago than the grace, with why each `stays` (null: it leaves)."""
    grace = pl.lit(end_of(night) - timedelta(days=policy.superseded_grace_days))
    after = facts.select("agent_id", superseded_by="id", heir_version="row_version", heir_state="state")
    stays = (
        pl.when("is_pinned")
        .then(pl.lit("pinned"))
        .when("is_rewound")
        .then(pl.lit("changed after the end of the night"))
        .when("is_taken_back")
        .then(pl.lit("a person brought it back"))
        .when("is_open")
        .then(pl.lit("in an open contradiction"))
        .when((pl.col("heir_state") == "quarantined").fill_null(value=True))
        .then(pl.lit("its successor is not there"))
        .when((pl.col("last_used_at") >= grace).fill_null(NO))
        .then(pl.lit(f"recalled within the {policy.superseded_grace_days} days of grace"))
    )
    return (
        facts.filter(pl.col("state") == "superseded", pl.col("superseded_at") < grace)
        .join(after, on=["agent_id", "superseded_by"], how="left")
        .join(taken, on=KEY, how="left")
        .select(*KEY, "row_version", "superseded_by", "superseded_at", "heir_version", kind=pl.lit("fact"), stays=stays)
    )


def unused(
    facts: pl.DataFrame,
    procedures: pl.DataFrame,
    uses: pl.DataFrame,
    taken: pl.DataFrame,
    *,
    policy: NightPolicy,
    night: date,
) -> pl.DataFrame:
    """Return the active facts and procedures past `unused_after_days` without any use, with why each `stays`."""
    memories = pl.concat([lives_of_facts(facts), lives_of_procedures(procedures)], how="diagonal_relaxed")
    lives = memories.join(first_days(memories, uses), on=KEY, how="left")
    asked = asked_days(uses, policy=policy, night=night)
    waits = waiting_days(lives, policy=policy, night=night)
    is_active = (pl.col("state") == "active") & ~pl.col("is_used")
    return (
        lives.filter(is_active & (age_days(night) >= policy.unused_after_days))
        .with_columns(idle_days=age_days(night))
        .join(asked, on="agent_id", how="left")
        .join(waits, on="agent_id", how="left")
        .join(needed(facts, procedures, policy=policy, night=night), on=KEY, how="left")
        .join(taken, on=KEY, how="left")
        .with_columns(pl.col("asked_days").fill_null(0))
        .with_columns(stays=_stays(policy))
    )


def lives_of_facts(facts: pl.DataFrame) -> pl.DataFrame:
    """Return what of a fact says whether and how long it went unused; a confirmation is a use, and a new beginning."""
    return facts.filter(pl.col("state") != "quarantined").select(
        *KEY,
        "state",
        "is_pinned",
        "is_rewound",
        "row_version",
        "learned_at",
        "retrieved_count",
        "is_open",
        "is_stated",
        confirmed_at="last_confirmed_at",
        since=pl.max_horizontal("learned_at", "last_confirmed_at"),
        left_at=pl.min_horizontal("superseded_at", "archived_at"),
        kind=pl.lit("fact"),
        is_used=(pl.col("retrieved_count") + pl.col("cited_count")) > 0,
    )


def lives_of_procedures(procedures: pl.DataFrame) -> pl.DataFrame:
    """Return the same of a procedure, where being activated, or judged by its outcome, is a use as well."""
    counts = ("retrieved_count", "cited_count", "activation_count", "success_count", "failure_count")
    return procedures.select(
        *KEY,
        "state",
        "is_pinned",
        "is_rewound",
        "row_version",
        "learned_at",
        "retrieved_count",
        since="learned_at",
        left_at="archived_at",
        kind=pl.lit("procedure"),
        is_used=pl.sum_horizontal(counts) > 0,
        is_open=NO,
        is_stated=NO,
    )


def age_days(night: date) -> pl.Expr:
    """How many days ago, at the end of the night, a memory was learned or last confirmed."""
    return (pl.lit(end_of(night)) - pl.col("since")).dt.total_days()


def first_days(memories: pl.DataFrame, uses: pl.DataFrame) -> pl.DataFrame:
    """Return the day a memory first came to use (agent_id, id, first_day), where every use lies in the window."""
    return (
        uses.group_by("agent_id", id="memory_id")
        .agg(first_day=pl.col("day").min(), known=pl.col("retrieved").sum())
        .join(memories, on=KEY)
        .filter(pl.col("known") >= pl.col("retrieved_count"))
        .select(*KEY, "first_day")
    )


def asked_days(uses: pl.DataFrame, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return on how many of the last `unused_after_days` each agent recalled anything: agent_id, asked_days."""
    is_late = pl.col("day") > night - timedelta(days=policy.unused_after_days)
    return uses.filter(is_late).group_by("agent_id").agg(asked_days=pl.col("day").n_unique())


def waiting_days(lives: pl.DataFrame, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return for each agent the age at which its unused memories rarely come back: agent_id, wait_days, return_share.

    Of the memories that went unused through the second half of an age, during the last `WINDOW_DAYS`, so many came to
    use per day; over `unused_after_days` that is the share to expect, with one return more than were seen (rule of
    succession). The smallest age of `WAITS` at which it is at most `unused_return_share`; no row where there is none.
    """
    ages = [round(policy.unused_after_days * factor) for factor in WAITS]
    if policy.unused_return_share >= 1:
        return lives.select("agent_id", wait_days=pl.lit(ages[0]), return_share=pl.lit(1.0)).unique()
    measured = pl.concat([returns_at(lives, age, policy=policy, night=night) for age in ages])
    return (
        measured.filter(pl.col("return_share") <= policy.unused_return_share)
        .sort("agent_id", "wait_days")
        .group_by("agent_id", maintain_order=True)
        .first()
    )


def returns_at(lives: pl.DataFrame, age: int, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return the share of an agent's memories unused at `age` that should come to use within `unused_after_days`."""
    learned = pl.col("learned_at").dt.date()
    came_back = pl.min_horizontal("first_day", pl.col("confirmed_at").dt.date())
    begins = pl.max_horizontal(learned + timedelta(days=age // 2), pl.lit(night - timedelta(days=WINDOW_DAYS)))
    ends = pl.min_horizontal(learned + timedelta(days=age), came_back, pl.col("left_at").dt.date(), pl.lit(night))
    is_return = (came_back == ends).fill_null(NO)
    return (
        lives.filter(~pl.col("is_used") | pl.col("first_day").is_not_null())
        .with_columns(idle=(ends - begins).dt.total_days(), is_return=is_return)
        .filter(pl.col("idle") > 0)
        .group_by("agent_id")
        .agg(
            wait_days=pl.lit(age),
            return_share=(pl.col("is_return").sum() + 1) * policy.unused_after_days / pl.col("idle").sum(),
        )
    )


def needed(facts: pl.DataFrame, procedures: pl.DataFrame, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return the memories that others lean on, and how: agent_id, id, needed."""
    grace = end_of(night) - timedelta(days=policy.superseded_grace_days)
    recent = facts.filter(pl.col("state") == "superseded", pl.col("superseded_at") >= grace).select(
        "agent_id", id="superseded_by", needed=pl.lit("it took the place of a fact that is still in its grace")
    )
    used = facts.filter(pl.col("retrieved_count") + pl.col("cited_count") > 0)
    inheriting = (
        heirs(facts)
        .join(used, on=KEY, how="semi")
        .select("agent_id", id="heir_id", needed=pl.lit("it took the place of a fact that was used"))
    )
    related = (
        procedures.filter(pl.col("state") != "archived")
        .explode("related_procedures")
        .filter(pl.col("related_procedures").is_not_null())
        .select("agent_id", id="related_procedures", needed=pl.lit("another procedure names it"))
    )
    return pl.concat([recent, inheriting, related]).unique(KEY, keep="first", maintain_order=True)


def _stays(policy: NightPolicy) -> pl.Expr:
    """Say why a memory that was never used stays; null where it leaves."""
    return (
        pl.when("is_pinned")
        .then(pl.lit("pinned"))
        .when("is_rewound")
        .then(pl.lit("changed after the end of the night"))
        .when("is_taken_back")
        .then(pl.lit("a person brought it back"))
        .when("is_open")
        .then(pl.lit("in an open contradiction"))
        .when("is_stated")
        .then(pl.lit("a person said it"))
        .when(pl.col("needed").is_not_null())
        .then("needed")
        .when(pl.col("asked_days") < policy.unused_asked_days)
        .then(pl.lit(f"hardly anything was recalled in the last {policy.unused_after_days} days"))
        .when((pl.col("idle_days") < pl.col("wait_days")).fill_null(value=True))
        .then(pl.lit("memories of this agent still come to use at this age, or are too few to tell"))
    )


def archive_proposal(row: Mapping[str, Any], *, night: date) -> Proposal:
    """Return the archiving of one memory."""
    is_superseded = row["superseded_by"] is not None
    heir = (Read("fact", row["superseded_by"], row["heir_version"]),) if is_superseded else ()
    values = {"state": "archived", "archived_at": end_of(night).isoformat()}
    return Proposal(
        night=night,
        agent_id=row["agent_id"],
        kind="archive",
        targets=(row["id"],),
        read_set=(Read(row["kind"], row["id"], row["row_version"]), *heir),
        changes=(Change(row["kind"], row["id"], set=values, action="archived"),),
        reason=reason_of(row, night=night),
        evidence=evidence_of(row),
    )


def reason_of(row: Mapping[str, Any], *, night: date) -> str:
    """Say since when a memory has been superseded, or unused."""
    if row["superseded_by"] is not None:
        days = (end_of(night) - row["superseded_at"]).days
        return f"superseded on {row['superseded_at']:%d %b %Y}, {days} days ago; its successor stays"
    verb = "learned" if row["since"] == row["learned_at"] else "last confirmed"
    idle = f"{verb} on {row['since']:%d %b %Y} and not used in the {row['idle_days']} days since"
    asked = {0: "no day", 1: "1 day"}.get(row["asked_days"], f"{row['asked_days']} days")
    return f"{idle}, while something was recalled on {asked}"


def evidence_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures behind the archiving of a memory."""
    if row["superseded_by"] is not None:
        return {"superseded_by": row["superseded_by"], "superseded_at": row["superseded_at"].isoformat()}
    figures = {name: row[name] for name in ("idle_days", "asked_days", "wait_days")}
    return {**figures, "return_share": round(row["return_share"], 6)}
