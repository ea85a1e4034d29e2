"""Erasing an agent: every row of it in one transaction, then the copies; what stays is a hash."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from importlib.metadata import entry_points
from uuid import UUID

from psycopg import Connection
from psycopg.errors import LockNotAvailable
from psycopg.rows import class_row
from psycopg.sql import SQL, Composed, Identifier

from nous_online.core.errors import Conflict, NotFound
from nous_online.database.connection import Database, connected
from nous_online.database.driver_errors import translated
from nous_online.database.statements import statements
from nous_online.memories.part_erasure import (
    TEXTS,
    EmbedderOf,
    Part,
    PartContents,
    count_part,
    erase_part,
    find_part,
    quotations_of,
    rewritings,
)

logger = logging.getLogger(__name__)
BLOCKS = statements("nous_online.memories", "agent_erasure.sql")
ERASERS_GROUP = "nous.erasers"
PLANS = "lifecycle.plans"
WAIT_S = 60  # for a night or a call that is at work on the agent
ERASE_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class Erasure:
    """What is to be erased, for those who keep copies outside of the tables."""

    url: str
    agent_id: str
    quotations: frozenset[str]
    """The agent's texts and the ids of its memories and proposals: by them a copy is recognised."""
    is_dry_run: bool
    ids: frozenset[str] | None = None
    """Of the rows to be erased, where that is a part of the agent; None is all of it."""


@dataclass(frozen=True)
class Erased:
    """What was erased: rows of each table, and what others kept copies of."""

    agent_id: str
    rows: Mapping[str, int]
    copies: Mapping[str, int] = field(default_factory=dict[str, int])
    is_dry_run: bool = False
    with_it: tuple[UUID, ...] = ()
    """Memories that were not named and go with those that were: merged into them, or drawn from an episode."""
    reworded: tuple[UUID, ...] = ()
    """Facts that stay on fewer statements, perhaps in other words."""
    told_in: tuple[UUID, ...] = ()
    """Episodes that stay and may still tell it: facts were drawn from them."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.copies)


Eraser = Callable[[Erasure], Mapping[str, int]]
"""Removes an agent from copies kept outside of the tables and returns how many of which; a second run finds none."""


@dataclass(frozen=True)
class AgentTable:
    """A table that says whose its rows are, and by which column."""

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


def erase_everywhere(
    url: str, agent_id: str, *, reason: str, is_dry_run: bool = False, erasers: Iterable[Eraser] | None = None
) -> Erased:
    """Erase an agent from the copies, the tables, and once more from the copies a call may have made meanwhile.

    Raises `NotFound` when nothing is known of the agent, and `Conflict` when it, or a night, is at work for longer than
    a minute. A failure half-way is mended by erasing again.
    """
    erasers = list(installed_erasers() if erasers is None else erasers)
    if is_dry_run:
        erasure = Erasure(url, agent_id, find_quotations(url, agent_id), is_dry_run=True)
        erased = Erased(agent_id, count_rows(url, agent_id), erase_copies(erasure, erasers), is_dry_run=True)
    else:
        with alone_with_copies(url):
            erasure = Erasure(url, agent_id, find_quotations(url, agent_id), is_dry_run=False)
            copies = Counter(erase_copies(erasure, erasers))
            rows = erase_agent(url, agent_id, reason=reason).rows
            erased = Erased(agent_id, rows, {**(copies + Counter(erase_copies(erasure, erasers)))})
    if not erased:
        raise NotFound(f"agent {agent_id!r} is not known here, so there is nothing to erase; see `nous status --agent`")
    return erased


def erase_some(  # noqa: PLR0913 (those of `erase_everywhere`, and what embeds)
    url: str,
    agent_id: str,
    part: Part,
    *,
    reason: str,
    is_dry_run: bool = False,
    erasers: Iterable[Eraser] | None = None,
    embedder_of: EmbedderOf | None = None,
) -> Erased:
    """Erase memories of an agent, or everything of one user, from copies and tables, as `erase_everywhere` does.

    With a fact go those that were merged into it, with an episode what was drawn from it. A fact that keeps statements
    of others takes the words of the oldest of them. Raises `NotFound`, `Conflict`, and `Unsupported` where such a fact
    can't be embedded here.
    """
    erasers = list(installed_erasers() if erasers is None else erasers)
    with purging(url) as connection:
        found = find_part(connection, agent_id, part)
        rows = count_part(connection, agent_id, found)
        erasure = erasure_of(connection, url, agent_id, found, is_dry_run=is_dry_run)
        made = [] if is_dry_run else rewritings(connection, agent_id, found, embedder_of or default_embedder_of())
    if is_dry_run:
        return erased_part(agent_id, found, rows, erase_copies(erasure, erasers), is_dry_run=True)
    with alone_with_copies(url):
        copies = Counter(erase_copies(erasure, erasers))
        with purging(url) as connection:
            hold(connection, agent_id)
            found = find_part(connection, agent_id, part)
            erasure = erasure_of(connection, url, agent_id, found, is_dry_run=False)
            rows = erase_part(connection, agent_id, found, made, erasure.quotations)
        copies += Counter(erase_copies(erasure, erasers))
    sweep(url, sorted({*rows, "heart.term_stats", *(table for table, _, _ in TEXTS)}))
    logger.warning("a part of an agent was erased, %d rows: %s", sum(rows.values()), reason)
    return erased_part(agent_id, found, rows, copies, is_dry_run=False)


def erased_part(
    agent_id: str, found: PartContents, rows: Mapping[str, int], copies: Mapping[str, int], *, is_dry_run: bool
) -> Erased:
    """Return what was erased of a part, and what a person may want to look at."""
    named = {"with_it": tuple(found.drawn), "reworded": tuple(found.touched), "told_in": tuple(found.episodes)}
    return replace(Erased(agent_id, rows, {**copies}, is_dry_run), **named)


def erasure_of(connection: Connection, url: str, agent_id: str, found: PartContents, *, is_dry_run: bool) -> Erasure:
    """Return what erasers of copies need to know of a part."""
    ids = frozenset(map(str, (*found.ids, *found.statements, *found.recalls, *found.decisions)))
    return Erasure(url, agent_id, quotations_of(connection, agent_id, found), is_dry_run, ids)


def default_embedder_of() -> EmbedderOf:
    """Return who finds the embedder of a space in the environment."""
    from nous_online.language.embedding import embedder_of

    return embedder_of


def erase_agent(url: str, agent_id: str, *, reason: str) -> Erased:
    """Delete every row of an agent in one transaction, leaving tombstones, and sweep the tables afterwards.

    Raises `Conflict` when a night or a call is at work on it for longer than a minute; nothing was erased then.
    The reason goes to the log, which does not name the agent.
    """
    with purging(url) as connection:
        hold(connection, agent_id)
        if counted(connection, agent_id):
            connection.execute(BLOCKS["bury"], {"agent_id": agent_id})
        rows = {table.name: deleted(connection, table, agent_id) for table in tables_in_order(connection)}
        rows[PLANS] = leave_plans(connection, agent_id)
    erased = Erased(agent_id, {name: count for name, count in sorted(rows.items()) if count})
    sweep(url, erased.rows)
    if erased:
        logger.warning("an agent was erased, %d rows: %s", sum(erased.rows.values()), reason)
    return erased


@contextmanager
def copying(url: str, *, wait_s: float = ERASE_TIMEOUT_S) -> Generator[None]:
    """Keep erasing away while memories are read and written to files: what is held in memory can't be erased.

    An erasing at work is waited for; raises `DeadlineExceeded` when it does not end within `wait_s`, an hour.
    """
    with closing(connected(url, role="nous_night")) as connection:
        with translated(wait_s):
            connection.execute(BLOCKS["hold_copies"], {"wait": f"{wait_s:g}s"})
        yield


@contextmanager
def alone_with_copies(url: str) -> Generator[None]:
    """Wait for whoever is `copying`, and keep everybody else from it; raise `Conflict` after a minute."""
    with closing(connected(url, role="nous_purge")) as connection:
        connection.autocommit = False
        try:
            connection.execute(BLOCKS["hold_copies_alone"], {"wait": f"{WAIT_S}s"})
        except LockNotAvailable as error:
            message = f"a night has been at work for {WAIT_S} s, and what it holds would be written to files afterwards"
            raise Conflict(f"{message}; wait for it, then erase again") from error
        yield


@contextmanager
def purging(url: str) -> Generator[Connection]:
    """Yield a connection in a transaction of the one role that may delete."""
    with (
        closing(Database(url, role="nous_purge", max_connections=1)) as database,
        database.transaction(timeout_s=ERASE_TIMEOUT_S) as connection,
    ):
        yield connection


def hold(connection: Connection, agent_id: str) -> None:
    """Wait for whoever is at work on the agent, and keep everybody else waiting until the transaction ends."""
    try:
        connection.execute(BLOCKS["hold_agent"], {"agent_id": agent_id, "wait": f"{WAIT_S}s"})
    except LockNotAvailable as error:
        message = (
            f"a night or a call has been at work on agent {agent_id!r} for {WAIT_S} s; wait for it, then erase again"
        )
        raise Conflict(message) from error


def tables_in_order(connection: Connection) -> list[AgentTable]:
    """Return the tables that hold rows of agents, each before those it points to."""
    with connection.cursor(row_factory=class_row(AgentTable)) as cursor:
        tables = {table.name: table for table in cursor.execute(BLOCKS["find_tables"]).fetchall()}
    order: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(tables, ()))
    for from_schema, from_table, to_schema, to_table in connection.execute(BLOCKS["find_references"]).fetchall():
        order.add(f"{to_schema}.{to_table}", f"{from_schema}.{from_table}")
    return [tables[name] for name in order.static_order() if name in tables]


def deleted(connection: Connection, table: AgentTable, agent_id: str) -> int:
    """Delete an agent's rows from one table and return their number."""
    return connection.execute(table.composed("delete_rows"), {"agent_id": agent_id}).rowcount


def leave_plans(connection: Connection, agent_id: str) -> int:
    """Take an agent out of the plans of past nights and return of how many."""
    own = connection.execute(BLOCKS["delete_own_plans"], {"agent_id": agent_id}).rowcount
    return own + connection.execute(BLOCKS["leave_shared_plans"], {"agent_id": agent_id}).rowcount


def count_rows(url: str, agent_id: str) -> dict[str, int]:
    """Return how many rows an agent has in each table that has any."""
    with purging(url) as connection:
        return counted(connection, agent_id)


def counted(connection: Connection, agent_id: str) -> dict[str, int]:
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


def find_quotations(url: str, agent_id: str) -> frozenset[str]:
    """Return everything by which a copy of an agent's memories can be recognised."""
    with purging(url) as connection:
        found = connection.execute(BLOCKS["find_quotations"], {"agent_id": agent_id}).fetchall()
    return frozenset(row[0] for row in found)


def installed_erasers() -> list[Eraser]:
    """Return what the installed extras add."""
    return [point.load() for point in entry_points(group=ERASERS_GROUP)]


def erase_copies(erasure: Erasure, erasers: Iterable[Eraser]) -> dict[str, int]:
    """Remove an agent from all copies and return how many of which."""
    found: Counter[str] = Counter()
    for eraser in erasers:
        found.update(eraser(erasure))
    return {name: count for name, count in sorted(found.items()) if count}


def sweep(url: str, tables: Iterable[str]) -> None:
    """Vacuum the tables rows were deleted from: their files hold the dead rows, the planner's statistics their values.

    Before PostgreSQL 18 the statistics of a table that became empty can't be cleared; they go when it is filled again.
    Before 17 the owner alone may vacuum.
    """
    with translated(ERASE_TIMEOUT_S), closing(connected(url, role="nous_purge")) as connection:
        connection.execute(BLOCKS["act_as_purge"])
        can_forget = connection.execute(BLOCKS["can_forget_statistics"]).fetchone() == (True,)
        for name in tables:
            schema, _, table = name.partition(".")
            if can_forget:
                connection.execute(BLOCKS["forget_statistics"], {"schema": schema, "table": table})
            connection.execute(SQL(BLOCKS["sweep"]).format(table=Identifier(schema, table)))
