"""Judged pairs drawn in a test, and what a night makes of them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

import polars as pl
from drawn import NIGHT, USUAL_FACT, drawn

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.merging import JUDGED
from nous_pipelines.phases.neighbours import COPY
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.proposals import Proposal
from nous_pipelines.phases.updates import update_phase
from nous_pipelines.snapshots.table_schemas import CONTRADICTIONS, FACTS, STATEMENTS, UNDONE

USUAL_PAIR = {
    "agent_id": "aria",
    "similarity": 0.9,
    "is_across_users": False,
    "is_ordered": True,
    "verdict": "updates",
    "confidence": 0.9,
    "slot": "deploy day",
    "reason": "another value, stated later",
    "model": "offline:1",
    "pair_hash": "",
}
THREE_DAYS = """
    id | learned_at
    ---|-----------
    a  | 2026-05-01
    b  | 2026-05-02
    c  | 2026-05-03
"""


def facts(text: str) -> pl.DataFrame:
    return drawn(text, FACTS, usual=USUAL_FACT)


def judged(text: str) -> pl.DataFrame:
    return drawn(text, JUDGED, usual=USUAL_PAIR)


def phase_of(
    drawn_facts: str | pl.DataFrame,
    pairs: str | pl.DataFrame,
    *,
    contradictions: str = "",
    undone: str = "",
    imported: Collection[str] = (),
    night: date = NIGHT,
) -> Phase:
    tables = {
        "facts": facts(drawn_facts) if isinstance(drawn_facts, str) else drawn_facts,
        "statements": pl.DataFrame(
            [("aria", fact_id, "imported") for fact_id in imported],
            schema=STATEMENTS.only("agent_id", "fact_id", "reason"),
            orient="row",
        ),
        "judgements": judged(pairs) if isinstance(pairs, str) else pairs,
        "copies": COPY.empty(),
        "contradictions": drawn(contradictions, CONTRADICTIONS, usual={"agent_id": "aria", "status": "open"})
        if contradictions
        else CONTRADICTIONS.empty(),
        "undone": drawn(undone, UNDONE, usual={"agent_id": "aria"}) if undone else UNDONE.empty(),
    }
    return update_phase(tables, policy=NightPolicy(), night=night)


def superseded(proposal: Proposal) -> dict[str, tuple[str, str]]:
    """Return by what each fact is superseded, and on which day."""
    return {c.id: (c.set["superseded_by"], c.set["superseded_at"][:10]) for c in proposal.changes}


def opened(phase: Phase) -> list[tuple[str, str]]:
    return [
        (change.set["memory_a"], change.set["memory_b"])
        for proposal in phase.proposals
        for change in proposal.changes
        if change.kind == "contradiction"
    ]


def only_reason(phase: Phase) -> str:
    ((reason, count),) = phase.reasons().items()
    assert (phase.proposals, count) == ([], 1)
    return reason
