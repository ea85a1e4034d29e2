"""The schemas of the tables of a snapshot: type and meaning of every column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from polars.datatypes import DataType, DataTypeClass

MOMENT = pl.Datetime("us", "UTC")
TEXTS = pl.List(pl.String)
VECTOR = pl.List(pl.Float32)


class TableSchema(dict[str, DataType | DataTypeClass]):
    """The columns of a table in order, with types and meanings; Polars takes it as a schema."""

    def __init__(self, name: str, meaning: str, columns: Mapping[str, tuple[DataType | DataTypeClass, str]]) -> None:
        super().__init__({column: dtype for column, (dtype, _) in columns.items()})
        self.name = name
        self.meaning = meaning
        self.meanings = {column: meaning for column, (_, meaning) in columns.items()}
        """The meaning of each column."""

    def column(self, name: str) -> tuple[DataType | DataTypeClass, str]:
        """Return type and meaning of a column, for a schema that has it, too."""
        return self[name], self.meanings[name]

    def only(self, *columns: str) -> TableSchema:
        """Return the schema of some columns."""
        return TableSchema(self.name, self.meaning, {name: self.column(name) for name in columns})

    def empty(self) -> pl.DataFrame:
        """Return an empty table."""
        return pl.DataFrame(schema=self)

    def checked(self, table: pl.DataFrame, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Return a table after comparing its columns, all of the schema or those given, with their types.

        Further columns are allowed. Raises `ValueError` with the first column that is missing or of another type; rows
        are not checked.
        """
        found = table.schema
        for column in self if columns is None else columns:
            if column not in found:
                raise ValueError(f"table {self.name} has no column {column}")
            if found[column] != self[column]:
                raise ValueError(f"column {column} of table {self.name} is {found[column]}, not {self[column]}")
        return table


OWNER = {"agent_id": (pl.String, "whose memory it is")}
MEMORY: Mapping[str, tuple[Any, str]] = {**OWNER, "id": (pl.String, "UUID, unique for its agent")}
REACH: Mapping[str, tuple[Any, str]] = {
    "scope": (pl.String, "private, project or system"),
    "user_id": (pl.String, "the user it belongs to, if it is of one"),
    "project_id": (pl.String, "the project it belongs to, if it is of one"),
}
STANDING: Mapping[str, tuple[Any, str]] = {
    "trust": (pl.Int16, "0 to 100, by the channel it came through"),
    "is_pinned": (pl.Boolean, "no night retires it"),
}
VERSION: Mapping[str, tuple[Any, str]] = {
    "row_version": (pl.Int64, "counts its changes"),
    "is_rewound": (pl.Boolean, "it was changed after the end of the night; columns read as they did then"),
}
RANKING: Mapping[str, tuple[Any, str]] = {
    "rank_weight": (pl.Float64, "what its relevance is multiplied by in recall; 1 is usual"),
    "embedding_space_id": (pl.String, "the embedding model its vector is of"),
}
USAGE: Mapping[str, tuple[Any, str]] = {
    "retrieved_count": (pl.Int64, "how often recall showed it"),
    "cited_count": (pl.Int64, "how often an answer used it"),
    "ignored_count": (pl.Int64, "how often an answer that was shown it was reported not to use it"),
    "last_used_at": (MOMENT, "when recall showed it last"),
    "embedding": (VECTOR, "unit vector of what it says; null until it is embedded"),
}
ARCHIVED: Mapping[str, tuple[Any, str]] = {"archived_at": (MOMENT, "when it was archived")}

FACTS = TableSchema("facts", "Every fact, as it was when the night ended.", {
    **MEMORY,
    "state": (pl.String, "active, superseded, archived or quarantined"),
    "content": (pl.String, "what it says"),
    "subject": (pl.String, "what it is about"),
    "slot": (pl.String, "the property of the subject that it gives a value for"),
    "key": (pl.String, "the caller's name for the value it holds"),
    "category": (pl.String, "the caller's category; documents have one of their own"),
    "tags": (TEXTS, "the caller's tags"),
    "confidence": (pl.Float64, "0 to 1, as the caller gave it"),
    "source": (pl.String, "where it comes from, in the caller's words"),
    "source_kind": (pl.String, "user, agent, tool, web, episode, import or operator"),
    "source_episode_id": (pl.String, "the episode it was drawn from"),
    "sources": (TEXTS, "where statements merged into it come from"),
    **STANDING,
    "learned_at": (MOMENT, "when it was learned"),
    "last_confirmed_at": (MOMENT, "when it was last said again"),
    "confirmation_count": (pl.Int32, "how often it was said again"),
    "superseded_by": (pl.String, "the fact that took its place"),
    "superseded_at": (MOMENT, "when that took its place"),
    "succession": (pl.String, "how it gave way: merged or replaced"),
    "valid_from": (MOMENT, "since when it holds, if that was said"),
    "valid_to": (MOMENT, "until when it holds, if that was said"),
    **ARCHIVED,
    "contradiction_status": (pl.String, "none, open or resolved"),
    "encoded_frame": (pl.String, "the cognitive frame it was learned in"),
    "encoded_censors": (TEXTS, "the censors that were active then"),
    **REACH,
    **RANKING,
    **VERSION,
    **USAGE,
})  # fmt: skip
STATEMENTS = TableSchema("statements", "Every statement, and the fact it speaks for.", {
    **MEMORY,
    "fact_id": (pl.String, "the fact it speaks for"),
    "content": (pl.String, "the words that were said"),
    "subject": (pl.String, "what it is about"),
    "said_at": (MOMENT, "when it was said"),
    "recorded_at": (MOMENT, "when it was stored"),
    "source": (pl.String, "where it comes from, in the caller's words"),
    "source_kind": (pl.String, "as of a fact"),
    "trust": STANDING["trust"],
    "user_id": REACH["user_id"],
    "project_id": REACH["project_id"],
    "scope": REACH["scope"],
    "session_id": (pl.String, "the session it was said in"),
    "episode_id": (pl.String, "the episode it was drawn from"),
    "decision_id": (pl.String, "the decision it was said with"),
    "frame": (pl.String, "the cognitive frame it was said in"),
    "reason": (pl.String, "why it was joined to its fact"),
    "taken_back_at": (MOMENT, "when it was taken back"),
})  # fmt: skip
EPISODES = TableSchema("episodes", "Every episode, as it was when the night ended.", {
    **MEMORY,
    "state": (pl.String, "open, closed or archived"),
    "title": (pl.String, "a few words"),
    "summary": (pl.String, "a paragraph"),
    "compressed": (pl.String, "one line"),
    "index_word": (pl.String, "one word to find it by"),
    "detail": (pl.String, "the full text; null once it lies in cold storage"),
    "compression_tier": (pl.String, "raw, summary, compressed or fossil"),
    "started_at": (MOMENT, "when it began"),
    "ended_at": (MOMENT, "when it was closed"),
    "completed_at": (MOMENT, "when a writer had completed it"),
    "completion_note": (pl.String, "why a writer could not complete it"),
    "tags": (TEXTS, "the caller's tags"),
    "participants": (TEXTS, "who took part"),
    "outcome": (pl.String, "how it ended"),
    "surprise_level": (pl.Float64, "0 to 1, as the caller gave it"),
    "lessons_learned": (TEXTS, "lessons, a sentence each"),
    "procedures_activated": (TEXTS, "ids of the procedures that were used"),
    "decision_ids": (TEXTS, "ids of the decisions taken in it"),
    "source_kind": (pl.String, "as of a fact"),
    **STANDING,
    **REACH,
    "rank_weight": RANKING["rank_weight"],
    **ARCHIVED,
    "embedding_space_id": RANKING["embedding_space_id"],
    **VERSION,
    **USAGE,
})  # fmt: skip
PROCEDURES = TableSchema("procedures", "Every procedure, as it was when the night ended.", {
    **MEMORY,
    "state": (pl.String, "active, review or archived"),
    "name": (pl.String, "its name"),
    "domain": (pl.String, "the field of work it is for"),
    "kind": (pl.String, "k_line, workflow or pattern"),
    "activation_count": (pl.Int32, "how often it was activated"),
    "success_count": (pl.Int32, "how often it was reported to have worked"),
    "failure_count": (pl.Int32, "how often it was reported to have failed"),
    "last_activated_at": (MOMENT, "when it was last activated"),
    "review_reason": (pl.String, "why it is under review"),
    "related_procedures": (TEXTS, "ids of the procedures it names"),
    **STANDING,
    "learned_at": (MOMENT, "when it was learned"),
    **REACH,
    "rank_weight": RANKING["rank_weight"],
    **ARCHIVED,
    "embedding_space_id": RANKING["embedding_space_id"],
    **VERSION,
    **USAGE,
})  # fmt: skip
CENSORS = TableSchema("censors", "Every censor, as it was when the night ended.", {
    **MEMORY,
    "state": (pl.String, "active or archived"),
    "trigger": (pl.String, "the action it warns of"),
    "reason": (pl.String, "why it warns"),
    "severity": (pl.String, "warn, block or absolute"),
    "activation_count": (pl.Int32, "how often it fired"),
    "false_positive_count": (pl.Int32, "how often that was reported as false"),
    "escalation_threshold": (pl.Int32, "activations after which it grows more severe"),
    "last_activated_at": (MOMENT, "when it last fired"),
    "is_pinned": STANDING["is_pinned"],
    "trust": STANDING["trust"],
    "learned_at": (MOMENT, "when it was learned"),
    "expires_at": (MOMENT, "when it runs out"),
    "rank_weight": RANKING["rank_weight"],
    **ARCHIVED,
    **VERSION,
})  # fmt: skip
USES = TableSchema("uses", "How often each memory was used on each day of the year before the end of the night.", {
    **OWNER,
    "memory_id": (pl.String, "the memory"),
    "memory_kind": (pl.String, "fact, episode, procedure or censor"),
    "day": (pl.Date, "the day, UTC"),
    "retrieved": (pl.Int64, "how often recall showed it"),
    "cited": (pl.Int64, "how often an answer used it"),
    "ignored": (pl.Int64, "how often it was reported as not used"),
})  # fmt: skip
RECALLS = TableSchema("recalls", "The questions of the last `probe_days`, and what was used of the answers.", {
    **MEMORY,
    "recalled_at": (MOMENT, "when it was asked"),
    "query": (pl.String, "the question"),
    "types": (TEXTS, "the kinds of memory it was about; null for all"),
    "result_limit": (pl.Int32, "how many answers were asked for"),
    "frame": (pl.String, "the cognitive frame it was asked in"),
    "result_ids": (TEXTS, "the answers, best first"),
    "cited_ids": (TEXTS, "those that were used"),
    "ignored_ids": (TEXTS, "those that were reported as not used"),
    "embedding": (VECTOR, "unit vector of the question; null in another space than its agent lives in now"),
})  # fmt: skip
CONTRADICTIONS = TableSchema("contradictions", "Two facts that contradict each other, and what was decided.", {
    **MEMORY,
    "memory_a": (pl.String, "one fact"),
    "memory_b": (pl.String, "the other"),
    "status": (pl.String, "open or resolved"),
    "resolution": (pl.String, "what was decided; null while it is open"),
    "detected_at": (MOMENT, "when it was found"),
})  # fmt: skip
LINKS = TableSchema("links", "Which memories are linked, also by later nights where these ran before.", {
    **OWNER,
    "from_id": (pl.String, "the memory the link leads from"),
    "to_id": (pl.String, "the memory it leads to"),
    "kind": (pl.String, "related, together or drawn_from"),
    "weight": (pl.Float64, "0 to 1"),
})  # fmt: skip
COLD_TEXTS = TableSchema("cold_texts", "Which texts of episodes lie in cold storage.", {
    **OWNER,
    "memory_id": (pl.String, "the episode"),
    "tier": (pl.String, "the tier it had when they left"),
    "stored_at": (MOMENT, "when they left"),
    "purge_after": (MOMENT, "when a purge may delete them"),
})  # fmt: skip
UNDONE = TableSchema("undone", "What a person took back: it is not proposed again.", {
    **OWNER,
    "kind": (pl.String, "the kind of proposal"),
    "targets": (TEXTS, "the memories it was about"),
})  # fmt: skip
AGENTS = TableSchema("agents", "Whom the night is for.", {
    **OWNER,
    "policy": (pl.String, "JSON: the policy fields the agent has decided otherwise"),
})  # fmt: skip
PLACED = TableSchema("placed", "In which part of a snapshot the rows of each agent lie.", {
    **OWNER,
    "part": (pl.String, "the part"),
    "row_count": (pl.Int64, "how many rows the store had of it, whatever their night"),
})  # fmt: skip

SNAPSHOT_TABLES: Mapping[str, TableSchema] = {
    each.name: each
    for each in (
        FACTS, STATEMENTS, EPISODES, PROCEDURES, CENSORS, USES, RECALLS, CONTRADICTIONS, LINKS, COLD_TEXTS, UNDONE,
        AGENTS,
    )
}  # fmt: skip
