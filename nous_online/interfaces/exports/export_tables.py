"""What belongs to an agent and goes with it, table by table, in the order it can be stored again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FORMAT = 2
"""Counts how an export is written; one of a later format is refused. Format 1 had no statements."""
DROPPED = ("agent_id", "written_xid", "duration_seconds")
"""Whose a row is says the export; the others the server makes anew."""


@dataclass(frozen=True)
class Table:
    """A table: the columns its rows are ordered by, who may write it, and the statements that are its own."""

    name: str
    key: tuple[str, ...] = ("id",)
    writer: Literal["night", "app"] = "night"
    reading: str = "rows_of"
    storing: str = "store_rows"


TABLES = {
    table.name: table
    for table in (
        Table("lifecycle.plans", reading="plans_of", storing="store_plans"),
        Table("lifecycle.proposals", ("night", "id")),
        Table("lifecycle.agent_policies", ("agent_id",)),
        Table("lifecycle.health", ("night",)),
        Table("heart.episodes"),
        Table("heart.episode_artifacts", ("episode_id", "kind", "reference"), writer="app"),
        Table("brain.decisions", writer="app"),
        Table("heart.facts", reading="facts_of"),
        Table("heart.statements", writer="app"),
        Table("heart.procedures"),
        Table("heart.censors"),
        Table("heart.working_memory", ("session_id",), writer="app"),
        Table("heart.cold_texts", ("memory_id", "tier")),
        Table("heart.usage", ("memory_id",)),
        Table("heart.recalls", writer="app"),
        Table("heart.sightings", ("signal", "session_id"), writer="app"),
        Table("heart.requests", ("idempotency_key",), writer="app"),
        Table("heart.contradictions"),
        Table("heart.links", ("from_id", "to_id", "kind")),
        Table("heart.judgements", ("pair_hash", "model", "prompt_version")),
        Table("heart.completions", ("episode_id",), writer="app"),
        Table("heart.term_stats", ("lexeme",)),
        Table("heart.corpus_stats", ("memory_kind",)),
        Table("lifecycle.events", reading="events_of"),
    )
}
LEFT_BEHIND = {
    "heart.agents": "the header says which",
    "heart.api_keys": "secrets of one installation",
    "heart.llm_requests": "what one installation asked and paid",
    "heart.next_embeddings": "made anew when the agent moves to another embedding space",
    "heart.outbox": "announced where it happened",
    "heart.outbox_cursors": "places in that queue",
    "heart.webhooks": "addresses and secrets of one installation",
    "heart.postings": "made from the texts as they are stored",
    "lifecycle.tombstones": "who was erased stays erased",
}
