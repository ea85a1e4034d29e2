"""Erasing an agent, some of its memories, or everything of one user: copies, rows, quotations, and the disk.

An agent is deleted with every row in one transaction; a hash of it stays. When a part is erased, facts that others
stated too stay, in the words of their oldest remaining statement.
"""

from __future__ import annotations

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from importlib.metadata import entry_points
from itertools import groupby
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

from psycopg import Connection
from psycopg.errors import InsufficientPrivilege, LockNotAvailable
from psycopg.rows import dict_row
from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from nous_online.core.domain import CENSOR, FACT, EmbeddingSpace, Kind
from nous_online.core.errors import Conflict, InvalidInput, NotFound, Unsupported
from nous_online.database.changes import json_values
from nous_online.database.connection import Database, connect, driver_errors_translated
from nous_online.database.statements import fetch, statements
from nous_online.language.embedding import Embedder, embedder_of, passages
from nous_online.memories.learning import slot_of
from nous_online.memories.levels import stored_levels
from nous_online.memories.status import unknown_agent
from nous_online.memories.store import query_space, read_space, vector_columns

logger = logging.getLogger(__name__)
BLOCKS = statements("nous_online.memories", "erasure.sql")
SCRUB = statements("nous_online.memories", "scrub.sql")
ERASERS_GROUP = "nous.erasers"
PLANS = "lifecycle.plans"
WAIT_S = 60  # for the lock of an agent that a night or a call holds
ERASE_TIMEOUT_S = 3600.0
SCRUB_TIMEOUT_S = 4 * 3600.0  # rewriting a table of a million vectors takes some minutes
NEEDS_SUPERUSER = (
    "the planner's statistics and the write-ahead log are a superuser's to rewrite: as one, VACUUM FULL pg_statistic,"
    " then pg_switch_wal() and CHECKPOINT until pg_wal holds no older segment; archives and standbys keep theirs"
)
ERASED = "[erased]"
LONG, START = 12, 3
"""From `LONG` characters on a quotation is also found inside words; a shorter one must be a whole word, because other
words would contain it by chance, and is looked for by the first `START`."""
MOST_PAIRS = 5_000_000
"""Pairs of facts whose verdicts are deleted one by one, in some seconds; beyond it all verdicts of the agent go."""
ROWS = (
    ("lifecycle.events", "by_memory_id"), ("lifecycle.proposals", "about_nothing_else"),
    ("heart.contradictions", "by_either_side"), ("heart.links", "by_either_end"), ("heart.statements", "by_statement"),
    ("heart.censors", "by_id"), ("heart.facts", "by_id"),
    ("heart.procedures", "by_id"), ("heart.completions", "by_episode"), ("heart.episode_artifacts", "by_episode"),
    ("brain.decisions", "by_decision"), ("heart.episodes", "by_id"), ("heart.postings", "by_memory_id"),
    ("heart.usage", "by_memory_id"), ("heart.requests", "by_memory_id"), ("heart.cold_texts", "by_memory_id"),
    ("heart.next_embeddings", "by_memory_id"), ("heart.outbox", "by_memory_id"), ("heart.recalls", "by_recall"),
    ("heart.sightings", "by_session"), ("heart.working_memory", "by_session"), ("heart.judgements", "by_pair"),
)  # fmt: skip
"""Tables with rows about a memory, and the SQL block with their condition; in an order that no foreign key forbids.
A test lists the agent's other tables, and why nothing is deleted there."""
TEXTS = (
    ("lifecycle.events", "reason", "text"), ("lifecycle.events", "before", "jsonb"),
    ("lifecycle.events", "after", "jsonb"), ("lifecycle.proposals", "reason", "text"),
    ("lifecycle.proposals", "evidence", "jsonb"), ("lifecycle.proposals", "changes", "jsonb"),
    ("lifecycle.proposals", "outcome", "text"), ("lifecycle.plans", "checks", "jsonb"),
    ("lifecycle.plans", "counts", "jsonb"), ("heart.contradictions", "note", "text"),
    ("heart.contradictions", "judgement", "jsonb"), ("heart.contradictions", "proposed", "jsonb"),
    ("heart.working_memory", "task", "text"), ("heart.working_memory", "items", "jsonb"),
    ("heart.working_memory", "open_threads", "jsonb"),
    ("heart.completions", "draft", "jsonb"), ("heart.completions", "last_error", "text"),
    ("heart.llm_requests", "error", "text"), ("heart.outbox_cursors", "last_error", "text"),
    ("heart.outbox", "payload", "jsonb"), ("heart.recalls", "query", "text"), ("heart.links", "evidence", "jsonb"),
)  # fmt: skip
"""Columns of remaining rows that may quote erased texts. Memories change by `rewrite_memory`, with an event."""
BEFORE_REWRITING = ("bury_part", "lower_counts", "point_past")
BEFORE_DELETING = (
    "drop_events_of_statements", "leave_recalls", "leave_working_memory", "leave_decisions", "leave_announcements",
)  # fmt: skip
"""SQL blocks that run, in this order, before remaining facts are reworded and before rows are deleted."""
VECTORS = ("embedding", "context_embedding", "embedding_space_id")
EmbedderOf = Callable[[EmbeddingSpace], Embedder | None]


@dataclass(frozen=True)
class Erasure:
    """A request to erase copies that are kept outside of the tables, such as the files of nights."""

    url: str
    agent_id: str
    quotations: frozenset[str]
    """The texts of the agent and the ids of its memories and proposals, by which copies are recognised."""
    is_dry_run: bool
    ids: frozenset[str] | None = None
    """Ids of the rows of a part; None where the whole agent is erased."""
    user_id: str | None = None
    """Whose part it is, where it is everything of one user."""


@dataclass(frozen=True)
class Erased:
    """The result of an erasure: rows of each table, and copies of each sort."""

    agent_id: str
    rows: Mapping[str, int]
    copies: Mapping[str, int] = field(default_factory=dict[str, int])
    is_dry_run: bool = False
    with_it: tuple[UUID, ...] = ()
    """Memories erased besides those named: merged into them, or drawn from an erased episode."""
    reworded: tuple[UUID, ...] = ()
    """Facts that stay with fewer statements, perhaps in other words."""
    told_in: tuple[UUID, ...] = ()
    """Episodes that stay and may still contain the text: erased facts were drawn from them."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.copies)


Eraser = Callable[[Erasure], Mapping[str, int]]
"""Removes copies kept outside of the tables and returns their number by sort; a second run finds none."""


@dataclass(frozen=True)
class AgentTable:
    """A table with rows of agents, and the column that names the agent."""

    schema: str
    table: str
    column: str

    @property
    def name(self) -> str:
        """The name with its schema."""
        return f"{self.schema}.{self.table}"

    def composed(self, block: str) -> Composed:
        """Fill the table into a statement."""
        return SQL(BLOCKS[block]).format(table=Identifier(self.schema, self.table), column=Identifier(self.column))


@dataclass(frozen=True)
class Part:
    """The part of an agent to erase: memories by their ids, or everything of one user."""

    memory_ids: tuple[UUID, ...] = ()
    user_id: str | None = None

    def __post_init__(self) -> None:
        if bool(self.memory_ids) == (self.user_id is not None):
            raise InvalidInput("say what to erase of the agent: memories by their ids, or a user; one of the two")


@dataclass(frozen=True)
class PartContents:
    """The ids of all rows that belong to a part: the parameters of the SQL blocks about it."""

    agent_id: str
    ids: list[UUID]
    statements: list[UUID]
    sessions: list[str]
    recalls: list[UUID]
    decisions: list[UUID]
    touched: list[UUID]
    """Facts that stay and lose some of their statements, or the episode they came from."""
    drawn: list[UUID]
    """Memories erased besides those named: merged into them, or drawn from them."""
    episodes: list[UUID]
    """Episodes that stay although erased facts were drawn from their text."""
    user_id: str | None = None
    """Whose rows they all are, where everything of one user is erased."""
    pairs: list[str] = field(default_factory=list[str])


def erase_everywhere(
    url: str, agent_id: str, *, reason: str, is_dry_run: bool = False, erasers: Iterable[Eraser] | None = None
) -> Erased:
    """Erase an agent from all copies and tables.

    Raises `NotFound` for an unknown agent, and `Conflict` when a call or a night holds it for longer than a minute. A
    failure half-way is fixed by erasing again.
    """
    erasers = list(installed_erasers() if erasers is None else erasers)
    with nullcontext() if is_dry_run else exclusive_copies_lock(url):
        with purge_transaction(url) as connection:
            erasure = Erasure(url, agent_id, find_quotations(connection, agent_id), is_dry_run)
            rows = count_rows(connection, agent_id) if is_dry_run else {}
        copies = Counter(erase_copies(erasure, erasers))
        if not is_dry_run:
            rows = erase_agent(url, agent_id, reason=reason).rows
            # The copies once more: a call may have made one between the first pass and the deletion.
            copies += Counter(erase_copies(erasure, erasers))
    erased = Erased(agent_id, rows, dict(copies), is_dry_run)
    if not erased:
        raise unknown_agent(url, agent_id)
    return erased


def erase_some(  # noqa: PLR0913 (those of `erase_everywhere`, and what embeds)
    url: str,
    agent_id: str,
    part: Part,
    *,
    reason: str,
    is_dry_run: bool = False,
    erasers: Iterable[Eraser] | None = None,
    embedder_of: EmbedderOf = embedder_of,
) -> Erased:
    """Erase memories of an agent, or everything of one user, from copies and tables, as `erase_everywhere` does.

    Facts merged into an erased fact are erased too, and memories drawn from an erased episode. A fact with statements
    of others takes the words of the oldest of them. Raises `NotFound`, `Conflict`, and `Unsupported` where such a fact
    can't be embedded here.
    """
    erasers = list(installed_erasers() if erasers is None else erasers)
    with purge_transaction(url) as connection:
        contents = find_part(connection, agent_id, part)
        counts = {
            table: connection.execute(part_statement("count_of_part", table, condition), vars(contents)).fetchall()[0][
                0
            ]
            for table, condition in ROWS
        }
        rows = {table: count for table, count in sorted(counts.items()) if count}
        erasure = erasure_of(connection, url, contents, is_dry_run=is_dry_run)
        new_values = {} if is_dry_run else remaining_fact_values(connection, contents, embedder_of)
    if is_dry_run:
        copies = Counter(erase_copies(erasure, erasers))
    else:
        with exclusive_copies_lock(url):
            copies = Counter(erase_copies(erasure, erasers))
            with purge_transaction(url) as connection:
                lock_agent_exclusively(connection, agent_id)
                contents = find_part(connection, agent_id, part)  # again, under the lock: more may belong to it by now
                erasure = erasure_of(connection, url, contents, is_dry_run=False)
                rows = erase_part(connection, contents, new_values, erasure.quotations)
            copies += Counter(erase_copies(erasure, erasers))
        of_words = ("heart.facts", "heart.postings", "heart.term_stats", "heart.word_changes")
        rewritten = (*of_words, *(table for table, _, _ in TEXTS))
        vacuum(url, sorted({*(table for table, _ in ROWS), *rewritten}))  # a copy of an export was in any of them
        logger.warning("a part of an agent was erased, %d rows: %s", sum(rows.values()), reason)
    named = {"with_it": tuple(contents.drawn), "reworded": tuple(contents.touched), "told_in": tuple(contents.episodes)}
    return Erased(agent_id, rows, {**copies}, is_dry_run, **named)


def erasure_of(connection: Connection, url: str, contents: PartContents, *, is_dry_run: bool) -> Erasure:
    """Return the request to erasers for a part."""
    ids = frozenset(map(str, (*contents.ids, *contents.statements, *contents.recalls, *contents.decisions)))
    return Erasure(url, contents.agent_id, quotations_of(connection, contents), is_dry_run, ids, contents.user_id)


def erase_agent(url: str, agent_id: str, *, reason: str) -> Erased:
    """Delete every row of an agent in one transaction, leaving tombstones, and vacuum the tables afterwards.

    Raises `Conflict`, with nothing erased, when a night or a call holds the agent for longer than a minute. The reason
    goes to the log, which does not name the agent.
    """
    with purge_transaction(url) as connection:
        lock_agent_exclusively(connection, agent_id)
        if count_rows(connection, agent_id):
            connection.execute(BLOCKS["bury"], {"agent_id": agent_id})
        key = {"agent_id": agent_id}
        tables = tables_in_order(connection)
        rows = {table.name: connection.execute(table.composed("delete_rows"), key).rowcount for table in tables}
        rows[PLANS] = sum(
            connection.execute(BLOCKS[b], key).rowcount for b in ("delete_own_plans", "leave_shared_plans")
        )
    erased = Erased(agent_id, {name: count for name, count in sorted(rows.items()) if count})
    vacuum(url, erased.rows)  # VACUUM can't run inside a transaction
    if erased:
        logger.warning("an agent was erased, %d rows: %s", sum(erased.rows.values()), reason)
    return erased


@contextmanager
def shared_copies_lock(url: str, *, wait_s: float = ERASE_TIMEOUT_S) -> Generator[None]:
    """Hold the shared lock of copies while memories are read and written to files.

    Erasing takes it exclusively: memories that a process has read but not written yet could not be erased. Raises
    `DeadlineExceeded` when an erasure does not end within `wait_s`, by default an hour.
    """
    with closing(connect(url, role="nous_night")) as connection:
        with driver_errors_translated(wait_s):
            connection.execute(BLOCKS["hold_copies"], {"wait": f"{wait_s:g}s"})
        yield


@contextmanager
def exclusive_copies_lock(url: str) -> Generator[None]:
    """Hold the lock of copies exclusively, waiting for those that share it; raise `Conflict` after a minute."""
    with closing(connect(url, role="nous_purge")) as connection:
        connection.autocommit = False
        try:
            connection.execute(BLOCKS["hold_copies_alone"], {"wait": f"{WAIT_S}s"})
        except LockNotAvailable as error:
            message = f"a night has been at work for {WAIT_S} s, and what it holds would be written to files afterwards"
            raise Conflict(f"{message}; wait for it, then erase again") from error
        yield


@contextmanager
def purge_transaction(url: str) -> Generator[Connection]:
    """Yield a connection in a transaction of `nous_purge`, the one role that may delete memories."""
    with (
        closing(Database(url, role="nous_purge", max_connections=1)) as database,
        database.transaction(timeout_s=ERASE_TIMEOUT_S) as connection,
    ):
        yield connection


def lock_agent_exclusively(connection: Connection, agent_id: str) -> None:
    """Take the exclusive lock of an agent until the transaction ends; raise `Conflict` after a minute."""
    try:
        connection.execute(BLOCKS["hold_agent"], {"agent_id": agent_id, "wait": f"{WAIT_S}s"})
    except LockNotAvailable as error:
        message = (
            f"a night or a call has been at work on agent {agent_id!r} for {WAIT_S} s; wait for it, then erase again"
        )
        raise Conflict(message) from error


def tables_in_order(connection: Connection) -> list[AgentTable]:
    """Return the tables with rows of agents, each before those its foreign keys point to."""
    tables = {table.name: table for table in fetch(connection, AgentTable, BLOCKS["find_tables"], {})}
    order: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(tables, ()))
    for from_schema, from_table, to_schema, to_table in connection.execute(BLOCKS["find_references"]).fetchall():
        order.add(f"{to_schema}.{to_table}", f"{from_schema}.{from_table}")
    return [tables[name] for name in order.static_order() if name in tables]


def count_rows(connection: Connection, agent_id: str) -> dict[str, int]:
    """Return how many rows an agent has in each table that has any."""
    statements_by_name: dict[str, Composed] = {
        **{table.name: table.composed("count_rows") for table in tables_in_order(connection)},
        PLANS: SQL(BLOCKS["count_plans"]).format(),
    }
    counts = {
        name: (connection.execute(statement, {"agent_id": agent_id}).fetchone() or (0,))[0]
        for name, statement in sorted(statements_by_name.items())
    }
    return {name: count for name, count in counts.items() if count}


def find_quotations(connection: Connection, agent_id: str) -> frozenset[str]:
    """Return the texts and ids by which copies of an agent's memories are recognised."""
    return frozenset(text for (text,) in connection.execute(BLOCKS["find_quotations"], {"agent_id": agent_id}))


def installed_erasers() -> list[Eraser]:
    """Return the erasers of the installed extras."""
    return [point.load() for point in entry_points(group=ERASERS_GROUP)]


def erase_copies(erasure: Erasure, erasers: Iterable[Eraser]) -> dict[str, int]:
    """Remove an agent from all copies and return how many of which."""
    removed: Counter[str] = Counter()
    for eraser in erasers:
        removed.update(eraser(erasure))
    return {name: count for name, count in sorted(removed.items()) if count}


def vacuum(url: str, tables: Iterable[str]) -> None:
    """Vacuum tables and clear their statistics: files keep dead rows, and the planner's statistics keep values.

    Before PostgreSQL 18 the statistics of a table that became empty can't be cleared; they go when it is filled again.
    Before 17 only the owner may vacuum.
    """
    with driver_errors_translated(ERASE_TIMEOUT_S), closing(connect(url, role="nous_purge")) as connection:
        connection.execute(BLOCKS["act_as_purge"])
        can_forget = connection.execute(BLOCKS["can_forget_statistics"]).fetchone() == (True,)
        for name in tables:
            schema, _, table = name.partition(".")
            if can_forget:
                connection.execute(BLOCKS["forget_statistics"], {"schema": schema, "table": table})
            connection.execute(SQL(BLOCKS["sweep"]).format(table=Identifier(schema, table)))


# --- a part of an agent ---


def find_part(connection: Connection, agent_id: str, part: Part) -> PartContents:
    """Return the ids of all rows that belong to a part; raise `NotFound` where the agent has none of it."""
    key = {"agent_id": agent_id, "ids": list(part.memory_ids), "user_id": part.user_id}
    (row,) = connection.execute(BLOCKS["lookup_part"], key).fetchall()
    contents = PartContents(agent_id, *row, user_id=part.user_id)
    missing = sorted(set(part.memory_ids) - set(contents.ids))
    rows = (contents.ids, contents.statements, contents.sessions, contents.recalls, contents.decisions)
    if missing or not (any(rows) or (part.user_id,) in connection.execute(BLOCKS["acting_users"], key).fetchall()):
        what = f"no memory {missing[0]}" if missing else f"nothing of user {part.user_id!r}"
        raise NotFound(f"agent {agent_id!r} has {what}, so there is nothing to erase")
    key |= vars(contents)
    (count,) = connection.execute(BLOCKS["count_pairs"], key).fetchall()
    pairs = connection.execute(BLOCKS["all_pairs" if count[0] > MOST_PAIRS else "pairs_of"], key).fetchall()
    return replace(contents, pairs=sorted({pair for (pair,) in pairs}))


def quotations_of(connection: Connection, contents: PartContents) -> frozenset[str]:
    """Return the texts by which copies of a part are recognised, without texts that remaining rows have too."""
    return frozenset(text for (text,) in connection.execute(BLOCKS["part_quotations"], vars(contents)))


def part_statement(block: str, table: str, condition: str) -> Composed:
    """Fill a table and the condition for its rows into a statement."""
    return SQL(BLOCKS[block]).format(table=Identifier(*table.split(".")), condition=SQL(BLOCKS[condition]))


def remaining_fact_values(
    connection: Connection, contents: PartContents, find_embedder: EmbedderOf | None
) -> dict[UUID, dict[str, Any]]:
    """Return the new columns of facts that stay, by id: where needed the words of the oldest statement left, embedded.

    Embedding may take seconds: call it before the transaction that erases. Raises `Unsupported` where this process has
    no embedder for the agent's space; with None they get no vectors, and are found by their words.
    """
    with connection.cursor(row_factory=dict_row) as cursor:
        facts = {row["id"]: row for row in cursor.execute(BLOCKS["facts_told"], vars(contents))}
        remaining = cursor.execute(BLOCKS["remaining_statements"], vars(contents)).fetchall()
    by_fact = {fact_id: list(rows) for fact_id, rows in groupby(remaining, key=lambda row: row["fact_id"])}
    reworded = [
        fact_id for fact_id, rows in by_fact.items() if facts[fact_id]["content"] not in {r["content"] for r in rows}
    ]
    vectors = vectors_of(connection, contents.agent_id, [by_fact[fact_id][0] for fact_id in reworded], find_embedder)
    new_values: dict[UUID, dict[str, Any]] = {}
    for fact_id, rows in by_fact.items():
        values: dict[str, Any] = {
            "confirmation_count": max(0, sum(row["counts"] for row in rows) - 1),
            "sources": list(dict.fromkeys(row["source"] for row in rows if row["source"])),
        }
        first = next((row for row in rows if row["content"] == facts[fact_id]["content"]), rows[0])
        if fact_id in reworded:
            values |= rewritten_columns(rows[0], facts[fact_id]) | vectors[rows[0]["content"], rows[0]["subject"]]
        values |= {"source_episode_id": first["episode_id"], "source_decision_id": first["decision_id"]}
        new_values[fact_id] = json_values(values)
    return new_values


def rewritten_columns(statement: Mapping[str, Any], fact: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a fact that are copied or derived from the statement that is its text now."""
    content, subject = statement["content"], statement["subject"]
    texts = {"content": content, "context": None, "subject": subject, "slot": slot_of(content, subject)}
    origin = {
        "source": statement["source"],
        "source_kind": statement["source_kind"],
        "encoded_frame": statement["frame"],
    }
    return {**texts, **origin, "learned_at": statement["said_at"], **stored_levels({**fact, **texts})}


def vectors_of(
    connection: Connection, agent_id: str, rows: Sequence[Mapping[str, Any]], find_embedder: EmbedderOf | None
) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Return the vector columns for statements, by text and subject."""
    if not rows:
        return {}
    if find_embedder is None:
        return {(row["content"], row["subject"]): dict.fromkeys(VECTORS) for row in rows}
    space = read_space(query_space(connection, agent_id), agent_id)
    embedder = find_embedder(space)
    if embedder is None:
        message = (
            f"{len(rows)} facts get other words, and there is no embedder for {space.id!r} here: set NOUS_EMBEDDING_URL"
        )
        raise Unsupported(message)
    stated = [(row["content"], row["subject"]) for row in rows]
    texts = list(dict.fromkeys(text for each in stated for text in passages(*each, None)))
    vectors = dict(zip(texts, embedder.embed_documents(texts), strict=True))
    return {each: vector_columns(*each, None, vectors, space.id) for each in stated}


def erase_part(
    connection: Connection,
    contents: PartContents,
    new_values: Mapping[UUID, Mapping[str, Any]],
    quotations: Collection[str],
) -> dict[str, int]:
    """Delete the rows of a part and its quotations in other rows, and return how many rows of each table went.

    Call it in a transaction of `nous_purge` that has locked the agent and found the part. Raises `Conflict` when
    `new_values`, the columns of facts that stay, are of other facts than those found.
    """
    if set(new_values) != set(contents.touched):
        raise Conflict(f"agent {contents.agent_id!r} learned something about it meanwhile; erase again")
    proposals = [row[0] for row in connection.execute(BLOCKS["proposals_about"], vars(contents))]
    parameters = {**vars(contents), "proposals": proposals}
    for block in BEFORE_REWRITING:
        connection.execute(BLOCKS[block], parameters)
    for fact_id, values in new_values.items():
        rewrite_memory(
            connection, contents.agent_id, FACT, fact_id, values, reason="a statement it stood on was erased"
        )
    for block in BEFORE_DELETING:
        connection.execute(BLOCKS[block], parameters)
    rows = {
        table: connection.execute(part_statement("delete_of_part", table, condition), parameters).rowcount
        for table, condition in ROWS
    }
    connection.execute(BLOCKS["blank_events"], parameters)
    connection.execute(BLOCKS["blank_proposals"], parameters)
    redact_rows(connection, contents.agent_id, quotations, contents.user_id)
    redact_facts(connection, contents.agent_id, contents.ids, quotations)
    connection.execute(BLOCKS["forget_words"], parameters)
    return {table: count for table, count in sorted(rows.items()) if count}


def rewrite_memory(
    connection: Connection, agent_id: str, kind: Kind[Any], memory_id: UUID, values: Mapping[str, Any], *, reason: str
) -> None:
    """Set columns of a memory that stays, with an event."""
    given = {
        "table": Identifier("heart", kind.table),
        "given": SQL(", ").join(map(Identifier, values)),
        "given_of_r": SQL(", ").join(Identifier("r", name) for name in values),
    }
    key = {"agent_id": agent_id, "kind": kind.name, "id": memory_id, "values": Jsonb(dict(values)), "reason": reason}
    connection.execute(SQL(BLOCKS["rewrite_memory"]).format(**given), key)


def redact_rows(connection: Connection, agent_id: str, quotations: Collection[str], user_id: str | None = None) -> None:
    """Replace quotations in the remaining rows by a mark, and what a user did in the censors of all."""
    # Texts are looked for as they are and as JSON escapes them.
    quoted = sorted({form for text in quotations for form in (text, json.dumps(text, ensure_ascii=False)[1:-1])})
    if user_id is not None:
        quoted.append(f'"user_id": {json.dumps(user_id, ensure_ascii=False)}')
    if not quoted:
        return
    parameters: dict[str, Any] = {"agent_id": agent_id, "quoted": quoted}
    connection.execute(BLOCKS["drop_quoting_verdicts"], parameters)
    replace = redactor(quotations)
    for table, column, kind in TEXTS:
        names = {"table": Identifier(*table.split(".")), "column": Identifier(column), "type": Identifier(kind)}
        condition = SQL(BLOCKS["of_agents" if table == "lifecycle.plans" else "of_agent"]).format()
        find, write = (SQL(BLOCKS[b]).format(**names, agent=condition) for b in ("find_quoting", "write_unquoted"))
        for ctid, text in connection.execute(find, parameters).fetchall():
            new = redact_json(json.loads(text), replace, user_id) if kind == "jsonb" else replace(text)
            erased = json.dumps(new, ensure_ascii=False) if kind == "jsonb" else new
            connection.execute(write, {"text": erased, "ctid": ctid})
    for censor_id, *texts in connection.execute(BLOCKS["find_quoting_censors"], parameters).fetchall():
        told = zip(("exceptions", "last_activation"), texts, strict=True)
        values = {name: new for name, old in told if (new := redact_json(old, replace, user_id)) != old}
        if values:
            reason = "what set it off quoted something erased"
            rewrite_memory(connection, agent_id, CENSOR, censor_id, values, reason=reason)


def redact_facts(connection: Connection, agent_id: str, ids: Collection[UUID], quotations: Collection[str]) -> None:
    """Take quotations out of the contexts of remaining facts, and erased facts out of those they perhaps replace."""
    parameters = {"agent_id": agent_id, "ids": list(ids), "quoted": list(quotations)}
    replace, erased = redactor(quotations), set(ids)
    found = connection.execute(BLOCKS["find_mentioning_facts"], parameters).fetchall()
    for fact_id, context, doubted in found:
        values, reason = redacted_context(context, replace), "what was told beside it was erased"
        if not erased.isdisjoint(doubted):
            values |= {"perhaps_replaces": [str(each) for each in doubted if each not in erased]}
            reason = "what it perhaps replaces was erased"
        if values:
            rewrite_memory(connection, agent_id, FACT, fact_id, values, reason=reason)


def redacted_context(context: str | None, replace: Callable[[str], str]) -> dict[str, Any]:
    """Return the columns of a fact that change where its context quotes erased texts; none where it does not."""
    redacted = context and replace(context)
    if redacted == context:
        return {}
    # The vector that blends both is not made anew, since that takes an embedder: the fact is recalled by the vector of
    # its own words until it is re-embedded.
    lines = [line for line in str(redacted).splitlines() if line.strip() != ERASED]
    return {"context": "\n".join(lines) or None, "context_embedding": None}


def redactor(quotations: Iterable[str]) -> Callable[[str], str]:
    """Return a function that replaces all quotations in a text by a mark, the longest one at each place."""
    # By their first characters: a text is searched for thousands of quotations in one pass.
    by_start: defaultdict[str, list[str]] = defaultdict(list)
    for quotation in sorted(filter(None, quotations), key=len, reverse=True):
        by_start[quotation[: LONG if len(quotation) >= LONG else START]].append(quotation)
    sizes = sorted({len(start) for start in by_start}, reverse=True)
    # Hardly any place of a text begins a quotation, which the first characters that all of them have tell at once.
    width = sizes[-1] if sizes else 0
    heads = {start[:width] for start in by_start}

    def redacted(text: str) -> str:
        kept, done = list[str](), 0
        for place in [at for at in range(len(text)) if text[at : at + width] in heads]:
            near = (each for size in sizes for each in by_start.get(text[place : place + size], ()))
            quotation = next((each for each in near if is_quoted(each, text, place)), "") if place >= done else ""
            if quotation:
                kept += [text[done:place], ERASED]
                done = place + len(quotation)
        return "".join([*kept, text[done:]])

    return redacted if by_start else lambda text: text


def is_quoted(quotation: str, text: str, place: int) -> bool:
    """Tell whether a text has a quotation at a place; a short one only between the boundaries of a word."""
    end = place + len(quotation)
    around = text[max(place - 1, 0) : place], text[end : end + 1]
    return text.startswith(quotation, place) and (len(quotation) >= LONG or not any(map(str.isalnum, around)))


def redact_json(value: Any, replace: Callable[[str], str], user_id: str | None = None) -> Any:
    """Return a JSON value with the quotations in its texts replaced, and without the acts of a user."""
    if isinstance(value, str):  # a short text without a space is a term of ours, such as a status, and stays
        return replace(value) if len(value) >= LONG or any(map(str.isspace, value)) else value
    if isinstance(value, Mapping):
        inner = dict(cast("Mapping[str, Any]", value))
        if user_id is not None and "action" in inner and inner.get("user_id") == user_id:
            inner |= {"action": ERASED, "user_id": None}
        return {name: redact_json(each, replace, user_id) for name, each in inner.items()}
    if isinstance(value, list):
        return [redact_json(each, replace, user_id) for each in cast("list[Any]", value)]
    return value


def erase_again(
    connection: Connection, agent_id: str, exported_from: str, exported_at: str, find_embedder: EmbedderOf
) -> int:
    """Erase what came back with an export although it was erased here before; return how many memories.

    What was erased of the agent that was exported counts too, whatever name it got here.
    """
    key = {"agent_id": agent_id, "names": [agent_id, exported_from], "exported_at": exported_at}
    acting = [row[0] for row in connection.execute(BLOCKS["acting_users"], key)]
    users = [row[0] for row in connection.execute(BLOCKS["buried_users"], {**key, "acting": acting})]
    parts = [Part(user_id=user) for user in users]
    count = sum(erase_found(connection, agent_id, part, (), find_embedder) for part in parts)
    ids = tuple(row[0] for row in connection.execute(BLOCKS["buried"], key))
    return count + (erase_found(connection, agent_id, Part(ids), (), find_embedder) if ids else 0)


def erase_copy(connection: Connection, agent_id: str, erasure: Erasure, find_embedder: EmbedderOf | None) -> None:
    """Erase from a copy of an agent, which may be older, what an erasure is about, and what quotes it."""
    if erasure.user_id is not None:
        with suppress(NotFound):
            erase_found(connection, agent_id, Part(user_id=erasure.user_id), erasure.quotations, find_embedder)
    key = {"agent_id": agent_id, "ids": list(erasure.ids or ())}
    if ids := tuple(row[0] for row in connection.execute(BLOCKS["known_of"], key)):
        erase_found(connection, agent_id, Part(ids), erasure.quotations, find_embedder)
    redact_rows(connection, agent_id, erasure.quotations, erasure.user_id)
    redact_facts(connection, agent_id, (), erasure.quotations)


def erase_found(
    connection: Connection, agent_id: str, part: Part, quotations: Collection[str], find_embedder: EmbedderOf | None
) -> int:
    """Erase a part, and quotations besides its own, where nobody else works; return how many memories."""
    contents = find_part(connection, agent_id, part)
    new_values = remaining_fact_values(connection, contents, find_embedder)
    erase_part(connection, contents, new_values, quotations_of(connection, contents) | {*quotations})
    return len(contents.ids)


# --- the disk: deleted rows stay in the files of tables and of the write-ahead log until these are rewritten ---


def scrub(url: str) -> tuple[str, ...]:
    """Rewrite all tables, Dagster's too, empty the write-ahead log, and return what is left for a superuser to do.

    Then no deleted row is left in the files of the server. Each table is locked while it is rewritten, and needs its
    size on the disk once more. The log is the whole server's; where the owner of the database is not a superuser it is
    left as it is, and the answer says so.
    """
    with driver_errors_translated(SCRUB_TIMEOUT_S), closing(connect(url)) as connection:
        for (name,) in connection.execute(SCRUB["find_dagster"]).fetchall():
            with closing(connect(urlunsplit(urlsplit(url)._replace(path=f"/{name}")))) as records:
                rewrite_tables(records)
        rewrite_tables(connection)
        if connection.execute(SCRUB["is_superuser"]).fetchone() != (True,):
            return (NEEDS_SUPERUSER,)
        try:
            # Every segment is filled, and the server removes them instead of recycling them.
            connection.execute(SCRUB["set_recycling"])
            try:
                connection.execute(SCRUB["reload"])
                connection.execute(SCRUB["checkpoint"])
                (count,) = connection.execute(SCRUB["count_segments"]).fetchone() or (0,)
                for _ in range(count + 1):
                    connection.execute(SCRUB["leave_segment"])
                for _ in range(2):  # the first leaves the segment that holds its own beginning
                    connection.execute(SCRUB["checkpoint"])
            finally:
                connection.execute(SCRUB["reset_recycling"])
                connection.execute(SCRUB["reload"])
        except InsufficientPrivilege:  # hosted servers forbid their superusers some of it
            return (NEEDS_SUPERUSER,)
    return ()


def rewrite_tables(connection: Connection) -> None:
    """Rewrite every table of a database with its indexes, and collect its statistics again."""
    for schema, table in connection.execute(SCRUB["find_tables"]).fetchall():
        connection.execute(SQL(SCRUB["rewrite_table"]).format(table=Identifier(schema, table)))
    with suppress(InsufficientPrivilege):
        connection.execute(SCRUB["rewrite_statistics"])
