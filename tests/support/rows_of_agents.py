"""A row of any agent for every table, made from the catalogue, and what may be tried on one as `nous_app`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import LiteralString
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import class_row
from psycopg.sql import SQL, Composed, Identifier

from nous_online.database import postgres

RLS_REFUSAL = "row-level security policy"
SHARED = {"heart.embedding_spaces", "lifecycle.plans", "lifecycle.snapshots", "lifecycle.transitions"}
"""Tables that belong to no agent; what `nous_app` may do with them is said in `docs/roles.md` and held by its test."""
HASHED = {"lifecycle.tombstones"}
"""Tables that name an agent by a hash."""

NUMBERS = itertools.count(1)
OF_TYPE: Mapping[str, Callable[[], str]] = {
    "uuid": lambda: str(UUID(int=next(NUMBERS))),  # rising, for a pair of memories stands in their order
    "text": lambda: uuid4().hex,
    "jsonb": lambda: "{}",
    "date": lambda: "2026-06-01",
    "timestamp with time zone": lambda: "2026-06-01",
    "vector": lambda: "[1,0]",
    "uuid[]": lambda: f"{{{uuid4()}}}",
    "text[]": lambda: f"{{{uuid4().hex}}}",
}
FITTING = {"secret_sha256": "0" * 64}
"""A value for a column whose check constraint no value of its type satisfies by itself."""

TABLES = """
    select n.nspname as schema, c.relname as name, a.attname as agent, c.relkind = 'v' as is_view,
           array(select row(b.attname, format_type(b.atttypid, null))::text from pg_attribute b
                 left join pg_attrdef d on d.adrelid = b.attrelid and d.adnum = b.attnum
                 where b.attrelid = c.oid and b.attnum > 0 and not b.attisdropped and b.attnotnull
                   and d.oid is null and b.attidentity = '' and b.attname <> a.attname order by b.attnum) as needed,
           array(select pg_get_constraintdef(k.oid) from pg_constraint k
                 where k.conrelid = c.oid and k.contype = 'c') as checks
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and not a.attisdropped
         and a.attname = case when c.relname = 'agents' then 'id' else 'agent_id' end
    where n.nspname in ('heart', 'brain', 'lifecycle') and c.relkind in ('r', 'p', 'v')
    order by 1, 2"""


@dataclass(frozen=True)
class AgentTable:
    """A table or view of the real database whose rows belong to agents."""

    schema: str
    name: str
    agent: str
    is_view: bool
    needed: list[str]
    checks: list[str]

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    def sql(self, statement: LiteralString) -> Composed:
        """Return a statement with this table and the column of its agent put in."""
        return SQL(statement).format(table=Identifier(self.schema, self.name), agent=Identifier(self.agent))

    def insert(self, agent_id: str) -> tuple[Composed, list[str]]:
        """Return what inserts a new row of an agent that satisfies every constraint of this table alone."""
        columns = [re.fullmatch(r'\((\w+),"?([^"]+)"?\)', each) for each in self.needed]
        values = {found[1]: self._value(found[1], found[2]) for found in columns if found}
        names = SQL(", ").join(map(Identifier, values))
        places = SQL(", ").join(SQL("%s") for _ in values)
        comma = SQL(", " if values else "")
        return (
            self.sql("insert into {table} ({agent}") + comma + names + SQL(") values (%s") + comma + places + SQL(")"),
            [agent_id, *values.values()],
        )

    def _value(self, column: str, type_name: str) -> str:
        """Return a value for a column: the first one its check constraint lists, or one of its type."""
        if column in FITTING:
            return FITTING[column]
        about = [check for check in self.checks if f"({column} = ANY" in check or f"jsonb_typeof({column})" in check]
        listed = re.findall(r"'(\w+)'::text", " ".join(about))
        if type_name == "jsonb":
            return "[]" if "array" in listed else "{}"
        return listed[0] if listed else OF_TYPE.get(type_name, lambda: "1")()


def agent_tables(owner: psycopg.Connection) -> list[AgentTable]:
    """Return every table and view with rows of agents, as the catalogue has them now."""
    with owner.cursor(row_factory=class_row(AgentTable)) as cursor:
        found = cursor.execute(TABLES).fetchall()
    assert len(found) > 25
    return found


def bare_policies(owner: psycopg.Connection, tables: Sequence[AgentTable]) -> None:
    """Leave the policies alone between agents: no trigger or foreign key refuses first, and no right is missing."""
    with owner.transaction():
        for table in tables:
            owner.execute(table.sql("grant select, insert, update, delete on {table} to nous_app"))
            if not table.is_view:
                owner.execute(table.sql("alter table {table} disable trigger all"))


def seed(owner: psycopg.Connection, tables: Sequence[AgentTable], agents: Sequence[str]) -> None:
    """Leave one row of each agent in every table, and nothing else; triggers and foreign keys have to be off."""
    with owner.transaction():
        for table in tables:
            if not table.is_view:
                owner.execute(table.sql("delete from {table}"))
                for agent_id in agents:
                    owner.execute(*table.insert(agent_id))


def as_calls_log_in(url: str) -> psycopg.Connection:
    """Open a connection as calls do: logged in as `nous_login`, acting as `nous_app`."""
    connection = psycopg.connect(postgres.login_url(url, postgres.LOGIN), options="-c role=nous_app", autocommit=True)
    assert connection.execute("select session_user, current_user").fetchone() == ("nous_login", "nous_app")
    return connection


@dataclass(frozen=True)
class Attempt:
    """One statement that an agent tries on one table, aimed at the rows of an agent."""

    actor: str
    table: AgentTable
    way: str
    aim: str


WAYS: dict[str, LiteralString] = {
    "insert": "",
    "read all": "select {agent} from {table}",
    "read": "select {agent} from {table} where {agent} = %(aim)s",
    "lock": "select {agent} from {table} where {agent} = %(aim)s for update",
    "touch": "update {table} set {agent} = {agent} where {agent} = %(aim)s returning {agent}",
    "touch all": "update {table} set {agent} = {agent} returning {agent}",
    "hand over": "update {table} set {agent} = %(aim)s returning {agent}",
    "delete": "delete from {table} where {agent} = %(aim)s returning {agent}",
    "delete all": "delete from {table} returning {agent}",
    "merge": "merge into {table} t using (select 1) s on t.{agent} = %(aim)s when matched then delete",
    "truncate": "truncate {table}",
}
"""What is tried, by name; the insert is made for its table."""
ON_VIEWS = ("read all", "read")
OUTWARD = ("insert", "hand over")
"""Ways that would leave a row with the agent aimed at, so that a policy has to refuse them."""


def tried(connection: psycopg.Connection, attempt: Attempt) -> list[str] | str:
    """Try it; return the agents of the rows that it reached, or why it was refused."""
    connection.execute("select set_config('nous.agent_id', %s, false)", [attempt.actor])
    try:
        if attempt.way == "insert":
            connection.execute(*attempt.table.insert(attempt.aim))
            return [attempt.aim]
        cursor = connection.execute(attempt.table.sql(WAYS[attempt.way]), {"aim": attempt.aim})
        if attempt.way == "merge":
            return [attempt.actor] * cursor.rowcount
        return [agent for (agent,) in cursor.fetchall()]
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UniqueViolation) as error:
        return str(error)


def rows_of(owner: psycopg.Connection, table: AgentTable) -> dict[str | None, list[str]]:
    """Return every row of a table by its agent, whole, with its place on the disk and whoever locked it."""
    place = SQL("''" if table.is_view else "ctid || ' ' || xmax")
    found: dict[str | None, list[str]] = {}
    rows = owner.execute(SQL("select ") + place + table.sql(" || t::text, {agent} from {table} t order by 1"))
    for row, agent_id in rows.fetchall():
        found.setdefault(agent_id, []).append(row)
    return found
