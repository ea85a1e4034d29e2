"""Memories that proved unreliable: censors that were mostly wrong or have expired, procedures that fail too often.

Censors are archived, except absolute and trusted ones. Procedures are flagged for review, and active again once they
work: only those that this phase flagged; all others under review wait for a person, or until they are learned again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl

from nous_online.core.policy import CensorPolicy
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.phase import KEY, PINNED, REWOUND, Phase, Tables, first_reason
from nous_pipelines.phases.proposals import Change, Proposal, Read
from nous_pipelines.phases.rulings import taken_back

# --- censors ---

CENSOR_COLUMNS = (
    *KEY, "state", "severity", "trust", "is_pinned", "is_rewound", "row_version", "expires_at", "activation_count",
    "false_positive_count",
)  # fmt: skip


def censor_phase(tables: Tables, *, policy: NightPolicy, night: date) -> Phase:
    """Return a proposal to retire each censor that was mostly wrong or has expired, and why the others stay.

    `tables`: censors, undone. Eligible is every active censor with a false positive or past its expiry.
    """
    limit = policy.false_positive_majority * pl.col("activation_count")
    stays = first_reason(
        PINNED,
        REWOUND,
        (pl.col("severity") == "absolute", "absolute: only a person retires it"),
        ("is_taken_back", "a person brought it back"),
        ("is_over", None),  # expired ones are retired, whatever the cases below say
        (
            # False positives are reported by the agent itself: it must not be able to remove a rule it is held to.
            pl.col("trust") > CensorPolicy.agent_trust,
            "trusted more than the agent that reports: only a person retires it",
        ),
        (pl.col("activation_count") < policy.censor_activations, f"fired fewer than {policy.censor_activations} times"),
        (pl.col("false_positive_count") <= limit, "right often enough"),
    )
    due = (
        tables["censors"]
        .filter(pl.col("state") == "active")
        .with_columns(is_over=(pl.col("expires_at") <= end_of(night)).fill_null(value=False))
        .filter(pl.col("is_over") | (pl.col("false_positive_count") > 0))
        .join(taken_back(tables["undone"], "censor"), on=KEY, how="left")
        .with_columns(stays=stays)
        .sort(KEY)
    )
    phase = Phase("censor_proposals")
    phase.decide(due, lambda row: retirement(row, night=night))
    return phase


def has_expiring_censors(tables: Tables, *, policy: NightPolicy, night: date) -> bool:
    """Return whether a censor runs out after the night."""
    censors = tables["censors"].filter(pl.col("state") == "active")
    return bool((censors["expires_at"] > end_of(night)).any())


def retirement(row: Mapping[str, Any], *, night: date) -> Proposal:
    """Return the proposal to retire one censor; it is archived and can be restored."""
    values = {"state": "archived", "archived_at": end_of(night).isoformat()}
    if row["is_over"]:
        reason = f"ran out on {row['expires_at']:%d %b %Y}"
    else:
        reason = f"{row['false_positive_count']} of {row['activation_count']} activations were reported as false"
    return Proposal(
        night=night,
        agent_id=row["agent_id"],
        kind="censor",
        targets=(row["id"],),
        read_set=(Read("censor", row["id"], row["row_version"]),),
        changes=(Change("censor", row["id"], set=values, action="retired"),),
        reason=reason,
        evidence={name: row[name] for name in ("activation_count", "false_positive_count", "severity")},
    )


# --- procedures ---

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
    is_active = pl.col("state") == "active"
    is_flagged = (pl.col("state") == "review") & pl.col("review_reason").fill_null("").str.starts_with(FLAGGED)
    stays = first_reason(
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
    due = (
        tables["procedures"]
        .filter(is_flagged | (is_active & (pl.col("failure_count") > 0)))
        .with_columns(judged=pl.col("success_count") + pl.col("failure_count"))
        .join(taken_back(tables["undone"], "procedure"), on=KEY, how="left")
        .with_columns(stays=stays)
        .sort(KEY)
    )
    phase = Phase("procedure_proposals")
    phase.decide(due, lambda row: review(row, policy=policy, night=night))
    return phase


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
