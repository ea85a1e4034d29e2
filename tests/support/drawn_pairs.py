"""Judged pairs drawn in a test, and what a night makes of them."""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl
from drawn import MOMENT, NIGHT, drawn

from nous_pipelines.phases.merging import JUDGED
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.proposals import Proposal
from nous_pipelines.phases.updates import update_phase_of

FACTS = {
    "id": pl.String,
    "agent_id": pl.String,
    "state": pl.String,
    "trust": pl.Int16,
    "is_pinned": pl.Boolean,
    "learned_at": MOMENT,
    "last_confirmed_at": MOMENT,
    "valid_from": MOMENT,
    "valid_to": MOMENT,
    "key": pl.String,
    "scope": pl.String,
    "user_id": pl.String,
    "project_id": pl.String,
    "embedding_space_id": pl.String,
    "contradiction_status": pl.String,
    "row_version": pl.Int64,
    "is_rewound": pl.Boolean,
}
USUAL_FACT = {
    "agent_id": "aria",
    "state": "active",
    "trust": 50,
    "is_pinned": False,
    "learned_at": datetime(2026, 5, 1, tzinfo=UTC),
    "scope": "private",
    "embedding_space_id": "words-64",
    "contradiction_status": "none",
    "row_version": 1,
    "is_rewound": False,
}
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
CONTRADICTIONS = {"agent_id": pl.String, "memory_a": pl.String, "memory_b": pl.String, "status": pl.String}
UNDONE = {"agent_id": pl.String, "kind": pl.String, "targets": pl.List(pl.String)}
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
    night: date = NIGHT,
) -> Phase:
    return update_phase_of(
        judged(pairs) if isinstance(pairs, str) else pairs,
        facts(drawn_facts) if isinstance(drawn_facts, str) else drawn_facts,
        contradictions=drawn(contradictions, CONTRADICTIONS, usual={"agent_id": "aria", "status": "open"})
        if contradictions
        else pl.DataFrame(schema=CONTRADICTIONS),
        undone=drawn(undone, UNDONE, usual={"agent_id": "aria"}) if undone else pl.DataFrame(schema=UNDONE),
        night=night,
    )


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
