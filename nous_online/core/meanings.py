"""What the fields of stored memories mean: what the row says by which they were told, and words for the rest."""

from __future__ import annotations

from collections.abc import Mapping

from nous_online.core.details import CensorDetails, DecisionDetails, FactDetails, ProcedureDetails, RecordDetails
from nous_online.core.field_tables import rows_of
from nous_online.core.fields import Alias

STORED: Mapping[str, type] = {
    "Fact": FactDetails,
    "Episode": RecordDetails,
    "Procedure": ProcedureDetails,
    "Censor": CensorDetails,
    "Decision": DecisionDetails,
}
"""The classes of what is stored, by name, with the table of what was told: a field of one means what its row says."""
KEPT = {
    "id": "Its id.",
    "content": "One statement.",
    "state": "Where it stands in its life.",
    "last_confirmed_at": "When it was last said again.",
    "confirmation_count": "How often it was said again.",
    "superseded_by": "The fact that took its place.",
    "contradiction_status": "Whether it is part of a contradiction, and whether that was decided.",
    "activation_count": "How often it was activated.",
    "last_activated_at": "When it was last activated.",
    "false_positive_count": "How many activations were reported as false.",
    "success_count": "How many uses succeeded.",
    "failure_count": "How many uses failed.",
    "compression_tier": "How far it was condensed: raw, summary, compressed or fossil.",
    "completed_at": "When it got its title, summary and facts.",
    "compressed": "One line that says it.",
    "duration_seconds": "How long it took.",
    "rank_weight": "What nights made of its use: recall multiplies its score by it.",
    "row_version": "Counted up by every change.",
    "slot": "Which thing it gives a value of, as its words have it.",
    "detail": "What was said and done.",
    "completion_note": "What its completion has to say, such as why it was set aside.",
    "name": "What it is called.",
    "review_reason": "Why a night wants it looked at.",
    "trigger": "What sets it off.",
    "reason": "Why not, or what to do instead.",
    "title": "What it is called.",
    "status": "Whether it is pending, succeeded, failed or was abandoned.",
    "outcome": "What came of it.",
    "resolved_at": "When it was said what became of it.",
    "perhaps_replaces": "Earlier facts it may replace, though no judge is sure; recall puts it before them.",
    "is_forgotten": "Somebody asked for it: archived, and out of questions about the past too.",
}
"""What fields mean that nobody tells."""


def meaning(stored: str, name: str) -> str:
    """Return what a field of something stored means; nothing where no row says it."""
    if stored not in STORED:
        return ""
    told = [row.field for row in rows_of(STORED[stored]).values() if name in (row.name, *row.field.aliases)]
    abouts = [field.about for field in told if not isinstance(field, Alias)]
    return abouts[0] if abouts else KEPT.get(name, "")
