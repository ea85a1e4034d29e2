"""Usage scores relative to the pace of each agent, and the rank weights they lead to.

Citations raise the score, being ignored lowers it, and both decay. Being shown counts for nothing: recall chose it, not
its user. A fact inherits the uses of those it superseded.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from math import log
from typing import Any

import polars as pl

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.phase import KEY, PINNED, REWOUND, Phase, Tables, first_reason
from nous_pipelines.phases.proposals import Change, Proposal, Read
from nous_pipelines.phases.rulings import chain_ends, taken_back
from nous_pipelines.snapshots.table_schemas import FACTS, MEMORY, MOMENT, TableSchema

HALF_LIVES_DAYS = (1, 14, 90)
"""Yesterday, this fortnight, this quarter: use at each of these scales counts equally."""
# Nothing for being shown: recall chose that itself. Of 184 promotions of one night 133 were for memories merely shown.
CITED, IGNORED = 1.0, 0.5
"""Weight of one use: a citation is a clear sign, being ignored may be chance."""
WINDOW_DAYS = 365
"""Days before the night for which the snapshot has uses by day."""
LATELY_DAYS = 30
"""Days that the reason of a proposal speaks of."""
YOUNG_DAYS = 14
"""Least days over which an agent's pace is taken: its first days say little."""
DAY_S = 86_400

COUNTS = ("retrieved", "cited", "ignored")
RANKED_STATES: Mapping[str, str] = {"fact": "active", "episode": "closed", "procedure": "active"}
"""The kinds that use can promote or demote, each with the state in which it is recalled."""
STANDING = ("rank_weight", "is_pinned", "is_rewound", "row_version")
COLUMNS = (*KEY, "state", *STANDING)
FACT_COLUMNS = (*COLUMNS, "superseded_by")
"""What is read of an episode or a procedure, and of a fact."""
RANKS = TableSchema("usage_ranks", "How much each memory is used, what that is worth, and whose uses it inherited.", {
    **MEMORY,
    "kind": (pl.String, "fact, episode or procedure"),
    **{name: FACTS.column(name) for name in STANDING},
    "lift": (pl.Float64, "cited uses per day, recent ones counting more"),
    "drop": (pl.Float64, "ignored uses per day, recent ones counting more"),
    "pace": (pl.Float64, "what a used memory of this agent is worth per day"),
    "relative": (pl.Float64, "(lift - drop) / pace"),
    "weight": (pl.Float64, "the rank weight that asks for"),
    "lately_retrieved": (pl.Int64, "how often it was shown in the last `LATELY_DAYS`"),
    "lately_cited": (pl.Int64, "how often it was used in them"),
    "lately_ignored": (pl.Int64, "how often it was reported as not used in them"),
    "last_used_at": (MOMENT, "noon of the day it was last used"),
    "is_probe": (pl.Boolean, "it was used within `probe_days`, and may not become harder to find"),
    "read": (pl.List(pl.Struct({"id": pl.String, "row_version": pl.Int64})), "the facts whose uses it inherited"),
})  # fmt: skip


def usage_score(uses: pl.DataFrame, *, at: datetime) -> pl.DataFrame:
    """Return `lift` and `drop` of each memory, in uses per day: agent_id, id, lift, drop, last_used_at.

    `uses` has a row for each memory and day: agent_id, id, used_at (moment of the day's last use), retrieved, cited,
    ignored. A count decayed by half in h days estimates uses per day once it is multiplied by ln 2 / h (a steady
    use of r a day makes it r · h / ln 2); the score is the mean of the three estimates. The second use of a day says
    less than the first: n uses count log2(1 + n).
    """
    age = (pl.lit(at) - pl.col("used_at")).dt.total_seconds().clip(0) / DAY_S
    per_day = pl.sum_horizontal((age * (-log(2) / h)).exp() * (log(2) / h) for h in HALF_LIVES_DAYS)
    fading = per_day / len(HALF_LIVES_DAYS)
    return (
        uses.lazy()
        .select(*KEY, "used_at", lift=lift_of_day() * fading, drop=drop_of_day() * fading)
        .group_by(KEY)
        .agg(pl.col("lift", "drop").sum(), last_used_at=pl.col("used_at").max())
        .collect()
    )


def lift_of_day() -> pl.Expr:
    """The score of one day's citations."""
    return CITED * repeated(pl.col("cited"))


def drop_of_day() -> pl.Expr:
    """The score of being ignored on one day."""
    return IGNORED * repeated(pl.col("ignored"))


def repeated(count: pl.Expr) -> pl.Expr:
    """The worth of `count` uses on one day: log2(1 + count), so the first is worth 1 and each further one less."""
    return (1 + count).log(2)


def inherited_uses(uses: pl.DataFrame, facts: pl.DataFrame, *, night: date) -> pl.DataFrame:
    """Return the uses up to the night, those of a superseded fact credited to its active successor.

    One row for each memory and day, with `used_at` its noon: the snapshot knows no closer.
    """
    known = uses.lazy().filter(pl.col("day") <= night).rename({"memory_id": "id"}).select(*KEY, "day", *COUNTS)
    of = heirs(facts).lazy()
    passed_on = known.join(of, on=KEY).with_columns(id="heir_id").select(*KEY, "day", *COUNTS)
    # Only an heir can have two rows for one day, its own and an inherited one: all other uses need no grouping.
    is_heir = passed_on.select(KEY).unique()
    own = known.join(of, on=KEY, how="anti")
    united = (
        pl.concat([own.join(is_heir, on=KEY, how="semi"), passed_on]).group_by(*KEY, "day").agg(pl.col(COUNTS).sum())
    )
    noon = pl.col("day").dt.combine(time(12)).dt.replace_time_zone("UTC")
    return pl.concat([own.join(is_heir, on=KEY, how="anti"), united]).with_columns(used_at=noon).collect()


def heirs(facts: pl.DataFrame) -> pl.DataFrame:
    """Return the active fact at the end of each superseded fact's successors: agent_id, id, heir_id.

    Facts in a circle of successors have no heir, nor have facts that were changed after the end of the night.
    """
    superseded = facts.filter(pl.col("superseded_by").is_not_null(), ~pl.col("is_rewound"))
    last = superseded.select(*KEY, heir_id=chain_ends(superseded, "id", "superseded_by"))
    active = facts.filter(pl.col("state") == "active").select("agent_id", heir_id="id")
    return last.join(active, on=["agent_id", "heir_id"], how="semi")


def predecessors(facts: pl.DataFrame, uses: pl.DataFrame) -> pl.DataFrame:
    """Return for each fact that inherits uses the facts on the chain to it, with versions: agent_id, id, read.

    They go into the read set of its proposal, which is stale if one of them changes before it is applied.
    """
    superseded = heirs(facts).join(facts.select(*KEY, "row_version", "superseded_by"), on=KEY)
    is_used = superseded.join(uses, left_on=KEY, right_on=["agent_id", "memory_id"], how="semi")
    between = superseded.join(superseded, left_on=KEY, right_on=["agent_id", "superseded_by"], how="semi")
    return (
        pl.concat([is_used, between.join(is_used, on=["agent_id", "heir_id"], how="semi")])
        .unique(KEY)
        .sort(KEY)
        .group_by("agent_id", id="heir_id", maintain_order=True)
        .agg(read=pl.struct("id", "row_version"))
    )


def usage_ranks(tables: Tables, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return score and weight of each memory that is used or has a weight other than 1 (`RANKS`), by agent and id.

    `tables`: facts, episodes, procedures, uses. `pace` is the mean score per day of the agent's memories that were
    cited or ignored, over the days since the first use (`YOUNG_DAYS` to `WINDOW_DAYS`). `relative` is (lift - drop) /
    pace, so that agents with five and with 10,000 recalls a day are measured alike.
    """
    facts, uses = tables["facts"], tables["uses"]
    known = inherited_uses(uses, facts, night=night)
    at = end_of(night)
    memories = pl.concat(
        tables[f"{kind}s"].filter(pl.col("state") == state).select(*KEY, *STANDING, kind=pl.lit(kind))
        for kind, state in RANKED_STATES.items()
    )
    scored = usage_score(known, at=at)
    return (
        memories.join(scored, on=KEY, how="left")
        .filter(pl.col("lift").is_not_null() | (pl.col("rank_weight") != 1))
        .join(counted_lately(known, night=night), on=KEY, how="left")
        .join(probes(known, policy=policy, night=night), on=KEY, how="left")
        .join(paces(known, scored, night=night), on="agent_id", how="left")
        .join(predecessors(facts, uses), on=KEY, how="left")
        .with_columns(pl.col("lift", "drop", "lately_retrieved", "lately_cited", "lately_ignored").fill_null(0))
        # Rounded: the order of a sum of floats must not decide whether a weight moves.
        .with_columns(relative=((pl.col("lift") - pl.col("drop")) / pl.col("pace")).fill_null(0.0).round(9))
        .with_columns(weight=weight_of(pl.col("relative"), policy))
        .select(pl.col(name).cast(dtype) for name, dtype in RANKS.items())
        .sort(KEY)
    )


def counted_lately(uses: pl.DataFrame, *, night: date) -> pl.DataFrame:
    """Return how often each memory was retrieved, cited and ignored in the last `LATELY_DAYS`."""
    is_late = pl.col("day") > night - timedelta(days=LATELY_DAYS)
    return uses.filter(is_late).group_by(KEY).agg(pl.col(name).sum().alias(f"lately_{name}") for name in COUNTS)


def probes(uses: pl.DataFrame, *, policy: NightPolicy, night: date) -> pl.DataFrame:
    """Return the memories cited within `probe_days`, marked `is_probe`: no night may make them harder to find."""
    is_late = pl.col("day") >= night - timedelta(days=policy.probe_days)
    return uses.filter(is_late, pl.col("cited") > 0).select(*KEY, is_probe=pl.lit(value=True)).unique(KEY)


def paces(uses: pl.DataFrame, scored: pl.DataFrame, *, night: date) -> pl.DataFrame:
    """Return the mean score per day of each agent's memories that were cited or ignored: agent_id, pace."""
    days = ((pl.lit(night) - pl.col("day").min()).dt.total_days() + 1).clip(YOUNG_DAYS)
    worth = uses.group_by("agent_id").agg(worth=(lift_of_day() + drop_of_day()).sum() / days)
    used = scored.filter(pl.col("lift") + pl.col("drop") > 0).group_by("agent_id").agg(used=pl.len())
    return worth.join(used, on="agent_id").select("agent_id", pace=pl.col("worth") / pl.col("used"))


def weight_of(relative: pl.Expr, policy: NightPolicy) -> pl.Expr:
    """Return the weight for a relative score: halfway to the bound at the agent's own pace (1), never past it."""
    span = pl.when(relative > 0).then(policy.max_promotion - 1).otherwise(1 - policy.min_demotion)
    return 1 + span * relative / (1 + relative.abs())


def moved_weight(policy: NightPolicy) -> pl.Expr:
    """Return the weight a memory moves to, on a grid of `rank_step`, null where it stays.

    It moves away from 1 by single steps, and back by two or more steps or once its score asks for 1. Otherwise a score
    that decays a little every night would write a new version of the memory again and again.
    """
    step, now = policy.rank_step, pl.col("rank_weight")
    asked = (1 + ((pl.col("weight") - 1) / step).round() * step).clip(policy.min_demotion, policy.max_promotion)
    distance = ((pl.col("weight") - now).abs() / step + 1e-6).floor()  # (1.15 - 1.10) / 0.05 is just below 1
    is_lifted = (asked - 1).abs() > (now - 1).abs()
    is_due = (is_lifted & (distance >= 1)) | (distance >= 2) | ((asked == 1) & (now != 1))  # noqa: PLR2004 (see above)
    return pl.when(is_due & (asked.round(4) != now.round(4))).then(asked.round(4))


def rank_phase(tables: Tables, *, policy: NightPolicy, night: date) -> Phase:
    """Return a promotion or demotion for each memory whose weight moves, and for the others why they stay.

    `tables`: usage_ranks, undone.
    """
    phase = Phase("rank_proposals")
    decided = (
        tables["usage_ranks"]
        .join(taken_back(tables["undone"], "promote", "demote"), on=KEY, how="left")
        .with_columns(new_weight=moved_weight(policy))
        .with_columns(stays=_stays())
    )
    phase.decide(decided, lambda row: rank_proposal(row, night=night))
    return phase


def has_fading_weights(tables: Tables, *, policy: NightPolicy, night: date) -> bool:
    """Return whether a memory has a use that fades, or a weight to fade."""
    return not tables["usage_ranks"].is_empty()


def _stays() -> pl.Expr:
    return first_reason(
        PINNED,
        REWOUND,
        ("is_taken_back", "a person took back what its use had made of its weight"),
        (pl.col("new_weight").is_null(), "its weight is what its use asks for"),
        (pl.col("is_probe") & (pl.col("new_weight") < pl.col("rank_weight")), "cited too lately to be lowered"),
    )


def rank_proposal(row: Mapping[str, Any], *, night: date) -> Proposal:
    """Return the promotion or demotion of one memory."""
    is_up = row["new_weight"] > row["rank_weight"]
    change = Change(
        row["kind"],
        row["id"],
        set={"rank_weight": row["new_weight"]},
        action="promoted" if is_up else "demoted",
    )
    return Proposal(
        night=night,
        agent_id=row["agent_id"],
        kind="promote" if is_up else "demote",
        targets=(row["id"],),
        read_set=(
            Read(row["kind"], row["id"], row["row_version"]),
            *(Read("fact", read["id"], read["row_version"]) for read in row["read"] or ()),
        ),
        changes=(change,),
        reason=f"{usage_in_words(row)}: weight {row['rank_weight']:.2f} → {row['new_weight']:.2f}",
        evidence={name: round(row[name] or 0.0, 6) for name in ("lift", "drop", "pace", "relative", "weight")},
    )


def usage_in_words(row: Mapping[str, Any]) -> str:
    """Return in words how a memory was used lately, and whether that counts uses of what it replaced."""
    counts = {"shown": row["lately_retrieved"], "cited": row["lately_cited"], "ignored": row["lately_ignored"]}
    uses = [f"{what} {times_in_words(count)}" for what, count in counts.items() if count]
    if uses:
        words = f"{', '.join(uses)} in the last {LATELY_DAYS} days"
    elif row["last_used_at"] is None:
        words = f"not used in the last {WINDOW_DAYS} days"
    else:
        words = f"last used on {row['last_used_at']:%d %b %Y}"
    if not row["read"]:
        return words
    replaced = "a fact" if len(row["read"]) == 1 else f"{len(row['read']):,} facts"
    return f"{words}, counting the uses of {replaced} it replaced"


def times_in_words(count: int) -> str:
    """Return a count as `once`, `twice` or `n times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")
