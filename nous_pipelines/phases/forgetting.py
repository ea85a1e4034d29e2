"""What a night archives: facts superseded for longer than the grace, and memories that were never used.

Nothing is deleted: what is archived can be restored. Censors and episodes are not archived; episodes are condensed by
age instead.

How long an unused memory waits is estimated, since traces of real use differ by a factor of ten in how many memories
come to use after 90 idle days. The estimate comes from the last year of memories of the same kind, source and form: the
agent's own, then those of the night's other agents, then a usual rate. Days without a recall count as no evidence. A
fact that was imported has been unused since it was stored, not since it was said. See
docs/decisions/0016-unused-is-measured.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import polars as pl

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.phase import KEY, PINNED, REWOUND, Phase, Tables, first_reason
from nous_pipelines.phases.proposals import Change, Proposal, Read
from nous_pipelines.phases.rulings import OPEN_STATUS, taken_back, without_settled
from nous_pipelines.phases.usage import WINDOW_DAYS, heirs

WAITS = tuple(2 ** (power / 2) for power in range(9))
"""The ages tried, in multiples of `unused_after_days`, up to 16 times: 90, 127, 180 … 1,440 days."""
FACT_COLUMNS = (
    *KEY, "state", "is_pinned", "is_rewound", "row_version", "learned_at", "last_confirmed_at", "superseded_by",
    "superseded_at", "archived_at", "contradiction_status", "source_kind", "retrieved_count", "cited_count",
    "last_used_at", "content",
)  # fmt: skip
PROCEDURE_COLUMNS = (
    *KEY, "state", "is_pinned", "is_rewound", "row_version", "learned_at", "archived_at", "related_procedures",
    "retrieved_count", "cited_count", "activation_count", "success_count", "failure_count",
)  # fmt: skip
COLUMNS = {
    "facts": FACT_COLUMNS,
    "statements": ("agent_id", "fact_id", "recorded_at"),
    "procedures": PROCEDURE_COLUMNS,
    "uses": None,
    "contradictions": ("agent_id", "memory_a", "memory_b", "status"),
    "undone": ("agent_id", "kind", "targets"),
}
"""What is read of each table; None: all of it."""
NO = pl.lit(value=False)
AWAITS_EVIDENCE = "such memories still come to use at this age, or are too few to tell; see unused_return_share"
GROUP = ["kind", "source_kind", "form"]
"""Memories equal in these share one estimate of how often they come to use."""
LEAST_SERIES = 5
"""Facts that differ only in their numbers from which they are a series: the output of a job, not statements."""
PASSING = (
    r"(?i)\b(?:right now|at the moment|just now|in progress|exit code|"
    r"\d+ (?:\w+ ){0,2}(?:tests?|checks?) (?:\w+ )?(?:pass|fail|succeed)(?:es|ed|ing)?)\b"
)
"""How agents write what holds for a minute, in English; other wordings and languages count as statements."""
USUAL_IDLE_DAYS = {"statement": 800.0, "passing": 18_000.0, "series": 18_000.0}
"""Prior: idle days per memory that comes to use. Statements: one in nine came back within 90 days on traces of real use
(9 times 90 days). The others: half the rate that `unused_return_share` allows (2 * 90 / 0.01), so that they are
archived unless two of them came back."""

FORMS_IN_WORDS = {
    "statement": "",
    "passing": "; it tells what held at that moment",
    "series": "; it is one of a series that differs in its numbers alone, none of which was cited",
}


def forgetting_phase(tables: Tables, *, policy: NightPolicy, night: date) -> Phase:
    """Return an archive proposal for each memory that is due, and for the others past their age the reason they stay.

    `tables`: facts, procedures, contradictions, undone, `uses` (counts by memory and day of the last `WINDOW_DAYS`) and
    `gathered` (`returns_of` for all agents of the night; without it the rates come from these agents alone).
    """
    taken = taken_back(tables["undone"], "archive")
    facts = with_stated(with_open_contradictions(tables["facts"], tables["contradictions"]))
    lives = lives_of(tables)
    returns = tables["gathered"] if "gathered" in tables else returns_of(lives, policy=policy, night=night)
    waits = waiting_days(lives, returns, policy=policy)
    asked = asked_days(tables["uses"], policy=policy, night=night)
    due = pl.concat(
        [
            past_grace(facts, taken, policy=policy, night=night),
            unused(lives, policy=policy, night=night)
            .join(facts.select(*KEY, "is_open", "is_stated"), on=KEY, how="left")
            .join(asked, on="agent_id", how="left")
            .join(waits, on=["agent_id", *GROUP], how="left")
            .join(needed_memories(facts, tables["procedures"], policy=policy, night=night), on=KEY, how="left")
            .join(taken, on=KEY, how="left")
            .with_columns(pl.col("asked_days").fill_null(0))
            .with_columns(stays=_stays(policy)),
        ],
        how="diagonal_relaxed",
    ).sort(KEY)
    phase = Phase("forgetting_proposals")
    phase.decide(due, lambda row: archive_proposal(row, night=night))
    return phase


def has_ageing_memories(tables: Tables, *, policy: NightPolicy, night: date) -> bool:
    """Return whether a memory may be archived by age alone: one superseded, or any where something was recalled.

    Without a recall no days count as asked, and nothing is archived as unused.
    """
    is_asked = not tables["uses"].is_empty() or policy.unused_asked_days == 0
    return is_asked or bool((tables["facts"]["state"] == "superseded").any())


def with_open_contradictions(facts: pl.DataFrame, contradictions: pl.DataFrame) -> pl.DataFrame:
    """Add `is_open`: whether the fact's status says so, or a contradiction that waits for a person names it."""
    named = without_settled(contradictions, facts).filter(OPEN_STATUS)
    sides = pl.concat([named.select("agent_id", id=side) for side in ("memory_a", "memory_b")]).unique()
    is_open = (pl.col("contradiction_status") == "open") | pl.col("is_named").fill_null(NO)
    return facts.join(sides.with_columns(is_named=pl.lit(value=True)), on=KEY, how="left").with_columns(is_open=is_open)


def with_stated(facts: pl.DataFrame) -> pl.DataFrame:
    """Add `is_stated`: whether a person stated the fact, or any fact that it superseded, directly or not."""
    of = heirs(facts.with_columns(is_rewound=NO))
    said = facts.filter(pl.col("source_kind") == "user").select(KEY)
    passed_on = of.join(said, on=KEY, how="semi").select("agent_id", id="heir_id")
    every = pl.concat([said, passed_on]).unique().with_columns(is_stated=pl.lit(value=True))
    return facts.join(every, on=KEY, how="left").with_columns(pl.col("is_stated").fill_null(NO))


def past_grace(facts: pl.DataFrame, taken: pl.DataFrame, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return the facts superseded longer ago than the grace; `stays` is the reason to keep one, null for none."""
    grace = pl.lit(end_of(night) - timedelta(days=policy.superseded_grace_days))
    after = facts.select(
        "agent_id", superseded_by="id", heir_version="row_version", heir_state="state", heir_is_rewound="is_rewound"
    )
    stays = first_reason(
        PINNED,
        REWOUND,
        ("is_taken_back", "a person brought it back"),
        ("is_open", "in an open contradiction"),
        ((pl.col("heir_state") == "quarantined").fill_null(value=True), "its successor is not there"),
        ("heir_is_rewound", "its successor changed after the end of the night"),
        (
            (pl.col("last_used_at") >= grace).fill_null(NO),
            f"recalled within the {policy.superseded_grace_days} days of grace",
        ),
    )
    return (
        facts.filter(pl.col("state") == "superseded", pl.col("superseded_at") < grace)
        .join(after, on=["agent_id", "superseded_by"], how="left")
        .join(taken, on=KEY, how="left")
        .select(*KEY, "row_version", "superseded_by", "superseded_at", "heir_version", kind=pl.lit("fact"), stays=stays)
    )


def unused(lives: pl.DataFrame, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return the active facts and procedures past `unused_after_days` without any use, with their `idle_days`."""
    is_due = (pl.col("state") == "active") & ~pl.col("is_used") & (age_days(night) >= policy.unused_after_days)
    return lives.filter(is_due).with_columns(idle_days=age_days(night))


def lives_of(tables: Tables) -> pl.DataFrame:
    """Return age, use, group and first day of use of each fact and procedure."""
    stored = tables["statements"].group_by("agent_id", id="fact_id").agg(stored_at=pl.col("recorded_at").min())
    facts = tables["facts"].join(stored, on=KEY, how="left", maintain_order="left")
    parts = [lives_of_facts(facts), lives_of_procedures(tables["procedures"])]
    memories = pl.concat(parts, how="diagonal_relaxed")
    return memories.join(first_days(memories, tables["uses"]), on=KEY, how="left")


def with_form(facts: pl.DataFrame) -> pl.DataFrame:
    """Add `form`: `series`, `passing` or `statement`.

    Facts of a series are equal once words with digits are replaced, in any language. Superseded facts do not count:
    successive values of one thing are not a series. If one of a wording was ever cited, all of them are statements.
    """
    has_digit, is_passing = pl.col("content").str.contains(r"\d"), pl.col("content").str.contains(PASSING)
    wording = pl.col("content").str.to_lowercase().str.replace_all(r"[a-z_]*\d[a-z\d_]*", "0").hash()
    # Most facts are plain statements: wordings are compared among the others alone.
    others = (
        facts.select(*KEY, "state", "content", "cited_count", has_digit=has_digit, is_passing=is_passing)
        .filter(pl.col("has_digit") | pl.col("is_passing"))
        .with_columns(wording=wording)
    )
    wordings = others.group_by("agent_id", "wording").agg(
        alike=(pl.col("state") != "superseded").sum(), cited=pl.col("cited_count").sum()
    )
    is_series = pl.col("has_digit") & (pl.col("alike") >= LEAST_SERIES)
    form = pl.when(is_series).then(pl.lit("series")).when(pl.col("is_passing")).then(pl.lit("passing"))
    uncited = others.join(wordings.filter(pl.col("cited") == 0), on=["agent_id", "wording"])
    return facts.join(uncited.select(*KEY, form=form), on=KEY, how="left", maintain_order="left").with_columns(
        pl.col("form").fill_null("statement")
    )


def lives_of_facts(facts: pl.DataFrame) -> pl.DataFrame:
    """Return age and use of each fact; a confirmation counts as a use, and its age starts again from there.

    Before it was stored nobody could have used it.
    """
    return with_form(facts.filter(pl.col("state") != "quarantined")).select(
        *KEY,
        "state",
        "is_pinned",
        "is_rewound",
        "row_version",
        "learned_at",
        "retrieved_count",
        "source_kind",
        "form",
        confirmed_at="last_confirmed_at",
        since=pl.max_horizontal("learned_at", "last_confirmed_at", "stored_at"),
        left_at=pl.min_horizontal("superseded_at", "archived_at"),
        kind=pl.lit("fact"),
        is_used=(pl.col("retrieved_count") + pl.col("cited_count")) > 0,
    )


def lives_of_procedures(procedures: pl.DataFrame) -> pl.DataFrame:
    """Return age and use of each procedure; an activation and a reported outcome count as uses, too."""
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
        source_kind=pl.lit("agent"),
        form=pl.lit("statement"),
        is_used=pl.sum_horizontal(counts) > 0,
    )


def age_days(night: date) -> pl.Expr:
    """Days from when a memory was learned, stored or last confirmed, the latest of these, to the end of the night."""
    return (pl.lit(end_of(night)) - pl.col("since")).dt.total_days()


def first_days(memories: pl.DataFrame, uses: pl.DataFrame) -> pl.DataFrame:
    """Return the day of the first use (agent_id, id, first_day) of each memory whose uses all lie in the window."""
    return (
        uses.group_by("agent_id", id="memory_id")
        .agg(first_day=pl.col("day").min(), known=pl.col("retrieved").sum())
        .join(memories, on=KEY)
        .filter(pl.col("known") >= pl.col("retrieved_count"))
        .select(*KEY, "first_day")
    )


def asked_days(uses: pl.DataFrame, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return the number of the last `unused_after_days` on which each agent recalled anything: agent_id, asked_days."""
    is_late = pl.col("day") > night - timedelta(days=policy.unused_after_days)
    return uses.filter(is_late).group_by("agent_id").agg(asked_days=pl.col("day").n_unique())


def returns_of_agents(tables: Tables, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return `returns_of` for the agents of one chunk; those of all chunks become the table `gathered`."""
    return returns_of(lives_of(tables), policy=policy, night=night)


def returns_of(lives: pl.DataFrame, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return how many memories of each agent and group came to use, over how many idle days, at each age of `WAITS`.

    Columns: agent_id, `GROUP`, wait_days, returns, idle. The idle days are those between half the age and the age that
    lie in the last `WINDOW_DAYS`.
    """
    ages = [round(policy.unused_after_days * factor) for factor in WAITS]
    dates = {
        "learned": pl.col("learned_at").dt.date(),
        "came_back": pl.min_horizontal("first_day", pl.col("confirmed_at").dt.date()),
        "left": pl.min_horizontal(pl.col("left_at").dt.date(), pl.lit(night)),
    }
    # A memory whose first use lies before the window came to use at an unknown age: it is no evidence.
    known = lives.filter(~pl.col("is_used") | pl.col("first_day").is_not_null()).select("agent_id", *GROUP, **dates)
    sums = known.group_by("agent_id", *GROUP).agg(*(sums_at(age, night=night) for age in ages))
    return pl.concat(
        sums.select("agent_id", *GROUP, pl.lit(age, pl.Int64).alias("wait_days"), pl.col(str(age)).struct.unnest())
        for age in ages
    ).filter(pl.col("idle") > 0)


def sums_at(age: int, *, night: date) -> pl.Expr:
    """Return the sums `returns` and `idle` at one age, as a struct of that name."""
    begins = pl.max_horizontal(
        pl.col("learned") + timedelta(days=age // 2), pl.lit(night - timedelta(days=WINDOW_DAYS))
    )
    ends = pl.min_horizontal(pl.col("learned") + timedelta(days=age), "came_back", "left")
    idle = (ends - begins).dt.total_days()
    is_return = (pl.col("came_back") == ends).fill_null(NO)
    return pl.struct(returns=(is_return & (idle > 0)).sum(), idle=idle.clip(lower_bound=0).sum()).alias(str(age))


def waiting_days(lives: pl.DataFrame, returns: pl.DataFrame, *, policy: NightPolicy) -> pl.DataFrame:
    """Return for each agent and group of `lives` the age from which unused memories rarely come to use.

    `returns` has the rates of all agents of the night. Columns: agent_id, `GROUP`, wait_days, return_share. It is the
    smallest age of `WAITS` at which the expected share to come to use within `unused_after_days` is at most
    `unused_return_share`; no row where there is none. The rate is the posterior mean under a Gamma prior of shape 1:
    (returns + 1) / (idle days + 1 / prior rate). The prior rate is the mean of the other agents' rates and the usual
    one, each with weight 1: agents differ by a factor of ten, so many days of one other agent say less than a few days
    of many.
    """
    ages = [round(policy.unused_after_days * factor) for factor in WAITS]
    groups = lives.select("agent_id", *GROUP).unique()
    # 1 switches the estimate off: then the fixed age alone decides.
    if policy.unused_return_share >= 1:
        return groups.with_columns(wait_days=pl.lit(ages[0], pl.Int64), return_share=pl.lit(1.0))
    place = [*GROUP, "wait_days"]
    usual = 1 / pl.col("form").replace_strict(USUAL_IDLE_DAYS, return_dtype=pl.Float64)
    rate = (pl.col("returns") + 1) / (pl.col("idle") + 1 / usual)
    every = returns.with_columns(rate=rate).group_by(place).agg(rates=pl.col("rate").sum(), agents=pl.len())
    # The sums include the agent itself, if it has a rate: take it out, or it would be its own prior.
    elsewhere = (usual + pl.col("rates") - pl.col("own_rate")) / (1 + pl.col("agents") - pl.col("own_rate").sign())
    share = (pl.col("returns") + 1) / (pl.col("idle") + 1 / elsewhere) * policy.unused_after_days
    return (
        groups.join(pl.DataFrame({"wait_days": ages}), how="cross")
        .join(returns.with_columns(own_rate=rate), on=["agent_id", *place], how="left")
        .join(every, on=place, how="left")
        .with_columns(pl.col("returns", "idle", "own_rate", "rates", "agents").fill_null(0))
        .select("agent_id", *place, return_share=share)
        .filter(pl.col("return_share") <= policy.unused_return_share)
        .sort("agent_id", *place)
        .group_by("agent_id", *GROUP, maintain_order=True)
        .first()
    )


def needed_memories(facts: pl.DataFrame, procedures: pl.DataFrame, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return the memories that others depend on, with the reason: agent_id, id, needed."""
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
    """Return the reason why an unused memory stays, null where it is archived."""
    return first_reason(
        PINNED,
        REWOUND,
        ("is_taken_back", "a person brought it back"),
        ("is_open", "in an open contradiction"),
        (pl.col("is_stated") & (pl.col("form") == "statement"), "a person said it"),
        (pl.col("needed").is_not_null(), pl.col("needed")),
        (
            pl.col("asked_days") < policy.unused_asked_days,
            f"hardly anything was recalled in the last {policy.unused_after_days} days",
        ),
        ((pl.col("idle_days") < pl.col("wait_days")).fill_null(value=True), AWAITS_EVIDENCE),
    )


def archive_proposal(row: Mapping[str, Any], *, night: date) -> Proposal:
    """Return the proposal to archive one memory."""
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
    """Return the reason in words: since when the memory has been superseded, or unused."""
    if row["superseded_by"] is not None:
        days = (end_of(night) - row["superseded_at"]).days
        return f"superseded on {row['superseded_at']:%d %b %Y}, {days} days ago; its successor stays"
    verb = "last confirmed" if row["since"] == row["confirmed_at"] else "stored"
    verb = "learned" if row["since"].date() == row["learned_at"].date() else verb
    idle = f"{verb} on {row['since']:%d %b %Y} and not used in the {row['idle_days']} days since"
    asked = {0: "no day", 1: "1 day"}.get(row["asked_days"], f"{row['asked_days']} days")
    return f"{idle}, while something was recalled on {asked}{FORMS_IN_WORDS[row['form']]}"


def evidence_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures behind the archiving of a memory."""
    if row["superseded_by"] is not None:
        return {"superseded_by": row["superseded_by"], "superseded_at": row["superseded_at"].isoformat()}
    figures = {name: row[name] for name in ("idle_days", "asked_days", "wait_days")}
    figures |= {name: row[name] for name in GROUP}
    return {**figures, "return_share": round(row["return_share"], 6)}
