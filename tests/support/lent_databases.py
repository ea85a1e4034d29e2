"""Databases that tests use one after the other: making one, connecting to it and warming it up costs 130 ms a test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Identifier, Literal

from nous_online.database.connection import Database
from nous_online.database.postgres import Server

Table = tuple[str, str]
Contents = tuple[int, int]
MOST_USES, MOST_ROWS = 400, 4_000
VACUUM_AFTER = 500
"""Deleted rows: until then they stay in tables and indexes, to be passed over by each search."""

CATALOG = """
    select '', '', count(*), count(*) filter (where age(xmin) < age({}::xid)) from (
        select xmin from pg_class union all select xmin from pg_proc
        union all select xmin from pg_trigger union all select xmin from pg_policy
        union all select xmin from pg_constraint union all select xmin from pg_namespace
        union all select xmin from pg_extension union all select xmin from pg_authid
        union all select xmin from pg_auth_members union all select xmin from pg_index
        union all select xmin from pg_attribute where attrelid >= 16384
        union all select xmin from pg_db_role_setting
        union all select xmin from pg_database where datname = current_database()
    ) as every
"""
"""Differs as soon as anything in the schema, its rights, its settings or the server's users was changed: how many rows
there are, and how many were written after a transaction, the one that made all of it."""
TABLES = "select schemaname, tablename from pg_tables where schemaname not in ('pg_catalog', 'information_schema')"
CONTENTS = "select {}, {}, count(*), coalesce(sum(xmin::text::bigint), 0)::bigint from {}"
"""How many rows a table has, and a number that differs when one of them was changed."""
ACTIVITY = """
    select 'pg_catalog', 'pg_stat_activity', count(*), 0 from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and not pid = any(%s)
"""
"""Sessions that a test left behind."""
CATALOGUE, ACTIVE, SPACES = ("", ""), ("pg_catalog", "pg_stat_activity"), ("heart", "embedding_spaces")
FORGOTTEN = "delete from heart.embedding_spaces where id <> %s"
NEW_INDEXES = """
    select format('drop index %%s', c.oid::regclass) from pg_class c join pg_am m on m.oid = c.relam
    where m.amname = 'hnsw' and c.relname <> all(%s)
"""
"""Of embedding spaces that a test made known: to copy the template again takes longer."""
FIRST = """
    select pg_current_xact_id()::xid::text, (select id from heart.embedding_spaces),
           (select array_agg(indexname) from pg_indexes where indexdef like '% USING hnsw %')
"""
RESTARTED = "select setval(format('%I.%I', schemaname, sequencename), 1, false) from pg_sequences"
FRESH = """
    reset session authorization; reset role; reset all; close all; unlisten *; discard temp;
    select pg_advisory_unlock_all()
"""
"""What `discard all` does, but for prepared statements, of which psycopg keeps a list."""
OTHERS = """
    select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and not pid = any(%s)
"""


@dataclass
class LentDatabase:
    """A copy of the template that a test uses now or used last, and what it held before the first of them."""

    name: str
    url: str
    keeper: psycopg.Connection
    looks: bytes
    """The query for what can differ afterwards; to make it takes longer than to run it."""
    first: dict[Table, Contents]
    """What that query found at first."""
    space: str
    """The one embedding space that is known at first."""
    indexes: list[str]
    """Those of vectors, among them some of a space that is not known yet."""
    uses: int = 0
    stale: set[Table] = field(default_factory=set[Table])
    """The tables with deleted rows that are not cleared away yet."""
    deleted: int = 0
    """How many these are."""
    opened: Database | None = None
    """Its connections, which know the schema already."""
    owner: psycopg.Connection | None = None

    def opened_database(self) -> Database:
        if self.opened is None:
            self.opened = Database(self.url)
        return self.opened

    def owner_connection(self) -> psycopg.Connection:
        if self.owner is None or self.owner.closed:
            self.owner = psycopg.connect(self.url, autocommit=True)
        return self.owner

    def clean(self) -> bool:
        """Leave it as it was at first; tell whether that could be done."""
        idle = self.idle_connections()
        if idle is None:
            return False
        found = self.found(idle)
        if ACTIVE in found or found[SPACES] != self.first[SPACES]:
            self.keeper.execute(OTHERS, [idle])
            self.keeper.execute(FORGOTTEN, [self.space])
            found = self.found(idle)
        if found[CATALOGUE] != self.first[CATALOGUE]:
            for (drop,) in self.keeper.execute(NEW_INDEXES, [self.indexes]).fetchall():
                self.keeper.execute(drop)
            found = self.found(idle)
        if any(found.get(each) != contents for each, contents in self.first.items()):
            return False
        filled = found.keys() - self.first.keys()
        rows = sum(found[each][0] for each in filled)
        if rows > MOST_ROWS:
            return False
        emptied = [SQL("delete from {}").format(Identifier(*each)) for each in filled]
        self.keeper.execute(SQL(";").join([*emptied, SQL(RESTARTED)]))
        self.stale, self.deleted = self.stale | filled, self.deleted + rows
        if self.deleted > VACUUM_AFTER:
            self.keeper.execute(SQL("vacuum {}").format(SQL(", ").join(Identifier(*each) for each in self.stale)))
            self.stale, self.deleted = set(), 0
        return True

    def idle_connections(self) -> list[int] | None:
        """Return the server processes of connections that are kept; None where a test left one at work or closed."""
        kept = [] if self.owner is None else [self.owner]
        if any(each.closed or each.info.transaction_status != TransactionStatus.IDLE for each in kept):
            return None
        for each in kept:
            each.autocommit, each.row_factory = True, tuple_row
            each.execute(FRESH, prepare=False)
        if self.opened is not None:
            pool = self.opened._pool  # pyright: ignore[reportPrivateUsage] (no other way to know them)
            counted = pool.get_stats()
            if pool.closed or counted["pool_size"] != counted["pool_available"]:
                return None
            kept.extend(each for each in pool._pool if not each.closed)  # pyright: ignore[reportPrivateUsage]
        return [each.info.backend_pid for each in kept]

    def found(self, idle: list[int]) -> dict[Table, Contents]:
        """Return the contents of each table that has rows, what the catalogue says, and who else is connected."""
        rows = self.keeper.execute(self.looks, [idle], prepare=True)
        return {(schema, name): (count, number) for schema, name, count, number in rows if count}

    def close(self) -> None:
        self.keeper.close()
        for each in (self.opened, self.owner):
            if each is not None:
                each.close()


@dataclass
class Lender:
    """Lends a database to one test at a time, and makes another where the last one could not be cleaned."""

    server: Server
    admin: psycopg.Connection
    template: str
    in_use: LentDatabase | None = None
    _free: LentDatabase | None = None
    _unused: list[str] = field(default_factory=list[str])

    @contextmanager
    def lent(self) -> Iterator[LentDatabase]:
        lent, self._free = self._free or self._made(), None
        lent.uses += 1
        self.in_use = lent
        yield lent
        self.in_use = None
        try:
            is_clean = lent.uses < MOST_USES and lent.clean()
        except (psycopg.OperationalError, psycopg.ProgrammingError):  # a test that ends all sessions, or drops tables
            is_clean = False
        if is_clean:
            self._free = lent
        else:
            self._discard(lent)

    def _made(self) -> LentDatabase:
        name = f"test_{uuid.uuid4().hex[:12]}"
        copy(self.admin, self.template, name)
        url = self.server.dsn(name)
        keeper = psycopg.connect(url, autocommit=True, application_name="keeper of tests")
        keeper.execute("set session_replication_role = replica")  # no trigger keeps rows from being deleted
        keeper.execute("set plan_cache_mode = force_generic_plan")  # to plan how it looks takes as long as to look
        tables = keeper.execute(TABLES).fetchall()
        ((made_by, space, indexes),) = keeper.execute(FIRST)
        contents = [
            SQL(CONTENTS).format(Literal(schema), Literal(name), Identifier(schema, name)) for schema, name in tables
        ]
        looks = SQL(" union all ").join([SQL(CATALOG).format(Literal(made_by)), *contents, SQL(ACTIVITY)])
        lent = LentDatabase(name, url, keeper, looks.as_bytes(keeper), {}, space, indexes)
        lent.first = lent.found([])
        return lent

    def _discard(self, lent: LentDatabase) -> None:
        """Drop it by the next time: the server sleeps 100 ms where a session has not quite ended."""
        lent.close()
        self._unused.append(lent.name)
        if len(self._unused) > 1:
            self.admin.execute(SQL("drop database {} with (force)").format(Identifier(self._unused.pop(0))))

    def close(self) -> None:
        if self._free is not None:
            self._free.close()


def copy(admin: psycopg.Connection, template: str, name: str) -> None:
    """Copy a database in which no session is open: files, in half the time that logging every page would take."""
    admin.execute(f"create database {name} template {template} strategy file_copy".encode())
