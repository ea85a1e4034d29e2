"""Censors that were mostly wrong or have expired: the night archives them, except absolute and trusted ones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl

from nous_online.core.policy import CensorPolicy
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.phase import PINNED, REWOUND, Phase, Tables, first_reason
from nous_pipelines.phases.proposals import Change, Proposal, Read
from nous_pipelines.phases.rulings import taken_back

KEY = ["agent_id", "id"]
CENSOR_COLUMNS = (
    *KEY, "state", "severity", "trust", "is_pinned", "is_rewound", "row_version", "expires_at", "activation_count",
    "false_positive_count",
)  # fmt: skip


def censor_phase(tables: Tables, *, policy: NightPolicy, night: date) -> Phase:
    """Return a proposal to retire each censor that was mostly wrong or has expired, and why the others stay.

    `tables`: censors, undone. Eligible is every active censor with a false positive or past its expiry.
    """
    due = (
        tables["censors"]
        .filter(pl.col("state") == "active")
        .with_columns(is_over=(pl.col("expires_at") <= end_of(night)).fill_null(value=False))
        .filter(pl.col("is_over") | (pl.col("false_positive_count") > 0))
        .join(taken_back(tables["undone"], "censor"), on=KEY, how="left")
        .with_columns(stays=_stays(policy))
        .sort(KEY)
    )
    phase = Phase("censor_proposals")
    phase.decide(due, lambda row: retirement(row, night=night))
    return phase


def _stays(policy: NightPolicy) -> pl.Expr:
    """Return the reason why a censor stays, null where it is retired."""
    limit = policy.false_positive_majority * pl.col("activation_count")
    return first_reason(
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


def retirement(row: Mapping[str, Any], *, night: date) -> Proposal:
    """Return the proposal to retire one censor; it is archived and can be restored."""
    values = {"state": "archived", "archived_at": end_of(night).isoformat()}
    return Proposal(
        night=night,
        agent_id=row["agent_id"],
        kind="censor",
        targets=(row["id"],),
        read_set=(Read("censor", row["id"], row["row_version"]),),
        changes=(Change("censor", row["id"], set=values, action="retired"),),
        reason=reason_of(row),
        evidence={name: row[name] for name in ("activation_count", "false_positive_count", "severity")},
    )


def reason_of(row: Mapping[str, Any]) -> str:
    """Return the reason in words: when the censor expired, or how often it was wrong."""
    if row["is_over"]:
        return f"ran out on {row['expires_at']:%d %b %Y}"
    return f"{row['false_positive_count']} of {row['activation_count']} activations were reported as false"
