"""Erasing some memories of an agent, or everything of one of its users: rows, and what other rows say of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, cast
from uuid import UUID

from pgvector import Vector
from psycopg import Connection
from psycopg.rows import class_row, dict_row
from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import Conflict, InvalidInput, NotFound, Unsupported
from nous_online.database.changes import plain
from nous_online.database.statements import statements
from nous_online.language.embedding import Embedder
from nous_online.language.passages import passages, recall_vector
from nous_online.memories.learning import slot_of
from nous_online.memories.levels import stored_levels

BLOCKS = statements("nous_online.memories", "part_erasure.sql")
ERASED = "[erased]"
LONG = 12
"""From this many characters on a quotation is found within words too; a shorter one must stand between them."""
MOST_PAIRS = 5_000_000
"""Pairs of facts whose verdicts are looked for one by one, some seconds; beyond, all verdicts of the agent go."""
ROWS = (
    ("lifecycle.events", "by_memory_id"), ("heart.contradictions", "by_either_side"), ("heart.links", "by_either_end"),
    ("heart.statements", "by_statement"), ("heart.censors", "by_id"), ("heart.facts", "by_id"),
    ("heart.procedures", "by_id"), ("heart.completions", "by_episode"), ("heart.episode_artifacts", "by_episode"),
    ("brain.decisions", "by_decision"), ("heart.episodes", "by_id"), ("heart.postings", "by_memory_id"),
    ("heart.usage", "by_memory_id"), ("heart.requests", "by_memory_id"), ("heart.cold_texts", "by_memory_id"),
    ("heart.next_embeddings", "by_memory_id"), ("heart.outbox", "by_memory_id"), ("heart.recalls", "by_recall"),
    ("heart.sightings", "by_session"), ("heart.working_memory", "by_session"), ("heart.judgements", "by_pair"),
)  # fmt: skip
"""Tables with rows about a memory and how those are found, each before the tables it points to."""
WITHOUT_ROWS = {
    "heart.agents": "the agent stays",
    "heart.api_keys": "keys are the agent's",
    "heart.corpus_stats": "counts and lengths of all memories together",
    "heart.llm_requests": "what was paid; it names pairs by their hashes",
    "heart.outbox_cursors": "places in a queue",
    "heart.webhooks": "addresses that events are sent to",
    "heart.term_stats": "words that nothing holds any more leave it",
    "lifecycle.agent_policies": "the agent's",
    "lifecycle.health": "counts",
    "lifecycle.plans": "checked for quotations",
    "lifecycle.proposals": "those about nothing else are deleted, of the others what they say of it",
}
"""The other tables of an agent, and why no row of theirs is deleted for a memory."""
TEXTS = (
    ("lifecycle.events", "reason", "text"), ("lifecycle.events", "before", "jsonb"),
    ("lifecycle.events", "after", "jsonb"), ("lifecycle.proposals", "reason", "text"),
    ("lifecycle.proposals", "evidence", "jsonb"), ("lifecycle.proposals", "changes", "jsonb"),
    ("lifecycle.proposals", "outcome", "text"), ("lifecycle.plans", "checks", "jsonb"),
    ("lifecycle.plans", "counts", "jsonb"), ("heart.contradictions", "note", "text"),
    ("heart.contradictions", "judgement", "jsonb"), ("heart.contradictions", "proposed", "jsonb"),
    ("heart.censors", "exceptions", "jsonb"), ("heart.censors", "last_activation", "jsonb"),
    ("heart.working_memory", "task", "text"),
    ("heart.working_memory", "items", "jsonb"), ("heart.working_memory", "open_threads", "jsonb"),
    ("heart.completions", "draft", "jsonb"), ("heart.completions", "last_error", "text"),
    ("heart.llm_requests", "error", "text"), ("heart.outbox_cursors", "last_error", "text"),
    ("heart.outbox", "payload", "jsonb"), ("heart.recalls", "query", "text"), ("heart.links", "evidence", "jsonb"),
)  # fmt: skip
"""Where rows that stay may quote what is erased."""
EmbedderOf = Callable[[EmbeddingSpace], Embedder | None]


@dataclass(frozen=True)
class Part:
    """What of an agent is to be erased: memories by their ids, or everything of one user."""

    memory_ids: tuple[UUID, ...] = ()
    user_id: str | None = None

    def __post_init__(self) -> None:
        if bool(self.memory_ids) == (self.user_id is not None):
            raise InvalidInput("say what to erase of the agent: memories by their ids, or a user; one of the two")


@dataclass(frozen=True)
class PartContents:
    """Everything that goes with a part, by the ids of its rows, and the facts that stay on fewer statements."""

    ids: list[UUID]
    statements: list[UUID]
    sessions: list[str]
    recalls: list[UUID]
    decisions: list[UUID]
    touched: list[UUID]
    """Facts that stay and lose some of their statements, or the episode they came from."""
    drawn: list[UUID]
    """Memories that were not named and go with those that were: merged into them, or drawn from them."""
    episodes: list[UUID]
    """Episodes that stay and tell in their own text what facts drawn from them said."""
    pairs: list[str] = field(default_factory=list[str])

    def __bool__(self) -> bool:
        return bool(self.ids or self.statements or self.sessions or self.recalls or self.decisions)

    @property
    def parameters(self) -> dict[str, Any]:
        """The ids, for the statements."""
        return vars(self)


def find_part(connection: Connection, agent_id: str, part: Part) -> PartContents:
    """Return what goes with a part; raise `NotFound` where the agent has nothing of it."""
    key = {"agent_id": agent_id, "ids": list(part.memory_ids), "user_id": part.user_id}
    (row,) = connection.execute(BLOCKS["lookup_part"], key).fetchall()
    found = PartContents(*row)
    missing = sorted(set(part.memory_ids) - set(found.ids))
    if missing or not found:
        what = f"no memory {missing[0]}" if missing else f"nothing of user {part.user_id!r}"
        raise NotFound(f"agent {agent_id!r} has {what}, so there is nothing to erase")
    key |= found.parameters
    (count,) = connection.execute(BLOCKS["count_pairs"], key).fetchall()
    pairs = connection.execute(BLOCKS["all_pairs" if count[0] > MOST_PAIRS else "pairs_of"], key).fetchall()
    return PartContents(*row, pairs=sorted({pair for (pair,) in pairs}))


def quotations_of(connection: Connection, agent_id: str, found: PartContents) -> frozenset[str]:
    """Return by which words copies of a part are recognised; what something that stays says too is none of them."""
    parameters = {"agent_id": agent_id, **found.parameters}
    return frozenset(text for (text,) in connection.execute(BLOCKS["part_quotations"], parameters))


def count_part(connection: Connection, agent_id: str, found: PartContents) -> dict[str, int]:
    """Return how many rows of each table go with a part."""
    parameters = {"agent_id": agent_id, **found.parameters}
    counts = {
        table: connection.execute(of_part("count_of_part", table, condition), parameters).fetchall()[0][0]
        for table, condition in ROWS
    }
    return {table: count for table, count in sorted(counts.items()) if count}


def of_part(block: str, table: str, condition: str) -> Composed:
    """Fill a table and the condition for its rows into a statement."""
    return SQL(BLOCKS[block]).format(table=Identifier(*table.split(".")), condition=SQL(BLOCKS[condition]))


# --- facts that stay on other words ---


@dataclass(frozen=True)
class Rewriting:
    """What a fact that loses statements becomes: columns as JSON values."""

    fact_id: UUID
    values: Mapping[str, Any]


def rewritings(connection: Connection, agent_id: str, found: PartContents, embedder_of: EmbedderOf) -> list[Rewriting]:
    """Return what becomes of the facts that stay: the words of the oldest statement left to them, embedded again.

    Embedding may take seconds: call it before the transaction that erases. Raises `Unsupported` where nobody can embed
    for the agent's space.
    """
    parameters = {"agent_id": agent_id, **found.parameters}
    with connection.cursor(row_factory=dict_row) as cursor:
        told = {row["id"]: row for row in cursor.execute(BLOCKS["facts_told"], parameters)}
        left = cursor.execute(BLOCKS["remaining_statements"], parameters).fetchall()
    by_fact = {fact_id: list(rows) for fact_id, rows in groupby(left, key=lambda row: row["fact_id"])}
    reworded = [
        fact_id for fact_id, rows in by_fact.items() if told[fact_id]["content"] not in {r["content"] for r in rows}
    ]
    vectors = vectors_of(connection, agent_id, [by_fact[fact_id][0] for fact_id in reworded], embedder_of)
    made: list[Rewriting] = []
    for fact_id, rows in by_fact.items():
        counted = [row for row in rows if row["counts"]]
        values: dict[str, Any] = {
            "confirmation_count": max(0, len(counted) - 1),
            "sources": list(dict.fromkeys(row["source"] for row in rows if row["source"])),
        }
        first = next((row for row in rows if row["content"] == told[fact_id]["content"]), rows[0])
        if fact_id in reworded:
            values |= words_of(rows[0], told[fact_id]) | vectors[rows[0]["content"], rows[0]["subject"]]
        values |= {"source_episode_id": first["episode_id"], "source_decision_id": first["decision_id"]}
        made.append(Rewriting(fact_id, plain(values)))
    return made


def words_of(statement: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a fact that follow from the statement it stands on now."""
    content, subject = statement["content"], statement["subject"]
    said = {"content": content, "context": None, "subject": subject, "slot": slot_of(content, subject)}
    whence = {
        "source": statement["source"],
        "source_kind": statement["source_kind"],
        "encoded_frame": statement["frame"],
    }
    return {**said, **whence, "learned_at": statement["said_at"], **stored_levels({**told, **said})}


def vectors_of(
    connection: Connection, agent_id: str, rows: Sequence[Mapping[str, Any]], embedder_of: EmbedderOf
) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Return the vector columns for statements, by text and subject."""
    if not rows:
        return {}
    with connection.cursor(row_factory=class_row(EmbeddingSpace)) as cursor:
        (space,) = cursor.execute(BLOCKS["agent_space"], {"agent_id": agent_id}).fetchall()
    embedder = embedder_of(space)
    if embedder is None:
        message = f"{len(rows)} facts take other words and nobody here embeds for {space.id!r}: set NOUS_EMBEDDING_URL"
        raise Unsupported(message)
    texts = list(dict.fromkeys(text for row in rows for text in passages(row["content"], row["subject"], None)))
    vectors = dict(zip(texts, embedder.embed_documents(texts), strict=True))
    columns: dict[tuple[str, str | None], dict[str, Any]] = {}
    for row in rows:
        around = recall_vector(row["content"], row["subject"], None, vectors)
        columns[row["content"], row["subject"]] = {
            "embedding": Vector(vectors[row["content"]]).to_text(),
            "context_embedding": None if around is None else Vector(around).to_text(),
            "embedding_space_id": space.id,
        }
    return columns


# --- in one transaction ---


def erase_part(
    connection: Connection, agent_id: str, found: PartContents, made: Sequence[Rewriting], quotations: Collection[str]
) -> dict[str, int]:
    """Delete the rows of a part and whatever other rows say of it, and return how many rows of each table went.

    To be called in a transaction of `nous_purge` that holds the agent, with what was found in it. Raises `Conflict`
    when `made` was made for other facts than those that lose statements now.
    """
    if {each.fact_id for each in made} != set(found.touched):
        raise Conflict(f"agent {agent_id!r} learned meanwhile what bears on it; erase again")
    parameters: dict[str, Any] = {"agent_id": agent_id, **found.parameters}
    parameters["proposals"] = [row[0] for row in connection.execute(BLOCKS["proposals_about"], parameters)]
    connection.execute(BLOCKS["bury_part"], parameters)
    for block in ("lower_counts", "point_past"):
        connection.execute(BLOCKS[block], parameters)
    for each in made:
        given = {
            "given": SQL(", ").join(map(Identifier, each.values)),
            "given_of_r": SQL(", ").join(Identifier("r", name) for name in each.values),
        }
        key = {"agent_id": agent_id, "id": each.fact_id, "values": Jsonb(dict(each.values))}
        connection.execute(SQL(BLOCKS["rewrite_fact"]).format(**given), key)
    for block in (
        "drop_events_of_statements",
        "leave_recalls",
        "leave_working_memory",
        "leave_decisions",
        "leave_announcements",
    ):
        connection.execute(BLOCKS[block], parameters)
    rows = {
        table: connection.execute(of_part("delete_of_part", table, condition), parameters).rowcount
        for table, condition in ROWS
    }
    connection.execute(BLOCKS["blank_events"], parameters)
    rows["lifecycle.proposals"] = connection.execute(BLOCKS["drop_proposals"], parameters).rowcount
    connection.execute(BLOCKS["blank_proposals"], parameters)
    connection.execute(BLOCKS["forget_words"], parameters)
    unquote_rows(connection, agent_id, quotations)
    return {table: count for table, count in sorted(rows.items()) if count}


def unquote_rows(connection: Connection, agent_id: str, quotations: Collection[str]) -> None:
    """Take quotations out of the rows that stay: their words in prose, never a term of ours."""
    quoted = sorted({form for text in quotations for form in (text, json.dumps(text, ensure_ascii=False)[1:-1])})
    if not quoted:
        return
    parameters: dict[str, Any] = {"agent_id": agent_id, "quoted": quoted}
    connection.execute(BLOCKS["drop_quoting_verdicts"], parameters)
    replace = unquoting(quotations)
    for table, column, kind in TEXTS:
        names = {"table": Identifier(*table.split(".")), "column": Identifier(column), "type": Identifier(kind)}
        whose = SQL(BLOCKS["of_agents" if table == "lifecycle.plans" else "of_agent"]).format()
        find, write = (SQL(BLOCKS[b]).format(**names, agent=whose) for b in ("find_quoting", "write_unquoted"))
        for ctid, text in connection.execute(find, parameters).fetchall():
            new = unquoted(json.loads(text), replace) if kind == "jsonb" else replace(text)
            erased = json.dumps(new, ensure_ascii=False) if kind == "jsonb" else new
            connection.execute(write, {"text": erased, "ctid": ctid})


def unquoting(quotations: Iterable[str]) -> Callable[[str], str]:
    """Return a function that takes quotations out of a text, the longest first."""
    ordered = sorted(quotations, key=len, reverse=True)
    either = "|".join(re.escape(text) if len(text) >= LONG else rf"(?<!\w){re.escape(text)}(?!\w)" for text in ordered)
    pattern = re.compile(either)
    return lambda text: pattern.sub(ERASED, text)


def unquoted(value: Any, replace: Callable[[str], str]) -> Any:
    """Return a JSON value with quotations taken out of its texts; one without a space is a term, unless long."""
    if isinstance(value, str):
        return replace(value) if len(value) >= LONG or any(map(str.isspace, value)) else value
    if isinstance(value, Mapping):
        inner = cast("Mapping[str, Any]", value)
        return {name: unquoted(each, replace) for name, each in inner.items()}
    if isinstance(value, list):
        return [unquoted(each, replace) for each in cast("list[Any]", value)]
    return value


def erase_buried(connection: Connection, agent_id: str, embedder_of: EmbedderOf) -> int:
    """Erase again, in a transaction of `nous_purge`, what came back after it was erased here; return how many."""
    ids = tuple(row[0] for row in connection.execute(BLOCKS["buried"], {"agent_id": agent_id}))
    if not ids:
        return 0
    found = find_part(connection, agent_id, Part(ids))
    made = rewritings(connection, agent_id, found, embedder_of)
    erase_part(connection, agent_id, found, made, quotations_of(connection, agent_id, found))
    return len(found.ids)
