"""Procedures that fail too often: flagged for review, and active again once they work.

Only procedures that this phase flagged become active again by themselves; all others under review wait for a person, or
until they are learned again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.phase import PINNED, REWOUND, Phase, Tables, first_reason
from nous_pipelines.phases.proposals import Change, Proposal, Read
from nous_pipelines.phases.rulings import taken_back

KEY = ["agent_id", "id"]
PROCEDURE_COLUMNS = (
    *KEY, "state", "review_reason", "success_count", "failure_count", "is_pinned", "is_rewound", "row_version",
)  # fmt: skip
FLAGGED = "worked in only"
"""The beginning of every review reason of this phase, by which it recognises the procedures it flagged."""
RATE = pl.col("success_count") / pl.col("judged")


def procedure_phase(tables: Tables, *, policy: NightPolicy, night: date) -> Phase:
    """Return a proposal for each procedure to flag or to trust again, and why the others stay.

    `tables`: procedures, undone. Eligible are the active procedures that ever failed, and those that this phase put
    under review.
    """
    is_flagged = (pl.col("state") == "review") & pl.col("review_reason").fill_null("").str.starts_with(FLAGGED)
    is_failing = (pl.col("state") == "active") & (pl.col("failure_count") > 0)
    due = (
        tables["procedures"]
        .filter(is_flagged | is_failing)
        .with_columns(judged=pl.col("success_count") + pl.col("failure_count"))
        .join(taken_back(tables["undone"], "procedure"), on=KEY, how="left")
        .with_columns(stays=_stays(policy))
        .sort(KEY)
    )
    phase = Phase("procedure_proposals")
    phase.decide(due, lambda row: review(row, policy=policy, night=night))
    return phase


def _stays(policy: NightPolicy) -> pl.Expr:
    """Return the reason why a procedure stays as it is, null where it is flagged or trusted again."""
    is_active = pl.col("state") == "active"
    return first_reason(
        PINNED,
        REWOUND,
        ("is_taken_back", "a person took its review back"),
        (
            is_active & (pl.col("judged") < policy.review_after_uses),
            f"used fewer than {policy.review_after_uses} times",
        ),
        (is_active & (policy.review_below_success <= RATE), "works often enough"),
        (~is_active & (policy.review_below_success > RATE), "under review, and still fails too often"),
    )


def review(row: Mapping[str, Any], *, policy: NightPolicy, night: date) -> Proposal:
    """Return the proposal to flag an active procedure, or to end the review of one that works again."""
    uses = f"{row['success_count']} of {row['judged']} uses"
    if row["state"] == "active":
        reason = f"{FLAGGED} {uses}, less than {policy.review_below_success:.0%}"
        change = Change("procedure", row["id"], set={"state": "review", "review_reason": reason}, action="flagged")
    else:
        reason = f"works again: in {uses}, at least {policy.review_below_success:.0%}"
        change = Change("procedure", row["id"], set={"state": "active", "review_reason": None}, action="trusted")
    return Proposal(
        night=night,
        agent_id=row["agent_id"],
        kind="procedure",
        targets=(row["id"],),
        read_set=(Read("procedure", row["id"], row["row_version"]),),
        changes=(change,),
        reason=reason,
        evidence={name: row[name] for name in ("success_count", "failure_count")},
    )
