"""Brings a database to the schema this code was written for: numbered files, checksums, one advisory lock."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import LiteralString, cast

import psycopg

from nous_online.core.errors import Unsupported
from nous_online.database.statements import statements

logger = logging.getLogger(__name__)
SQL = statements("nous_online.database", "migrations.sql")
LOCK_KEY = 0x6E6F7573  # "nous": any constant would do, as long as every runner takes the same
ROLES = 0  # the number under which roles.sql is recorded: it is run again whenever its checksum changes


@dataclass(frozen=True)
class Migration:
    """One step: its number, its name and the SQL that takes it."""

    number: int
    name: str
    text: LiteralString

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def known_migrations() -> tuple[Migration, ...]:
    """Return the migrations shipped with this code, in order."""
    folder = files("nous_sql").joinpath("migrations")
    paths = sorted((p for p in folder.iterdir() if p.name.endswith(".sql")), key=lambda p: p.name)
    return tuple(Migration(int(p.name[:4]), p.name[5:-4], read_sql_file(f"migrations/{p.name}")) for p in paths)


def migrate(connection: psycopg.Connection, *, known: Sequence[Migration] | None = None) -> list[Migration]:
    """Apply the pending migrations of `known` (default: all shipped ones) in one transaction, and return them.

    Two processes that start together wait for each other. Raises `Unsupported` when the database was made by a
    newer version, or when a migration that ran there has since been edited.
    """
    with connection.transaction():
        lock_schema(connection)  # before the look at what ran: the other process may just have applied it
        connection.execute(read_sql_file("bootstrap.sql"))
        pending = pending_migrations(applied_checksums(connection), known or known_migrations())
        if pending:
            names = ", ".join(f"{migration.number:04} {migration.name}" for migration in pending)
            logger.info("bringing the schema up to date (%s); a large store may take minutes", names)
        # The grants name tables of the newest schema, so they can't follow a part of the migrations.
        for migration in pending if known else (*pending, grants()):
            connection.execute(migration.text)
            row = {"number": migration.number, "name": migration.name, "sha256": migration.sha256}
            connection.execute(SQL["store_applied"], row)
    return pending


@cache
def grants() -> Migration:
    """Return the shipped roles.sql, which holds all grants, as a migration."""
    return Migration(ROLES, "roles", read_sql_file("roles.sql"))


def lock_schema(connection: psycopg.Connection) -> None:
    """Take the lock of schema changes, waiting for it; released when the transaction ends."""
    connection.execute(SQL["take_lock"], [LOCK_KEY])


def is_current(connection: psycopg.Connection) -> bool:
    """Tell, in two short queries, whether the database already has this code's schema and grants."""
    if not all(connection.execute(SQL["has_schema_and_roles"]).fetchone() or [False]):
        return False
    seen = applied_checksums(connection)
    return not pending_migrations(seen, known_migrations()) and seen.get(ROLES) == grants().sha256


def applied_checksums(connection: psycopg.Connection) -> dict[int, str]:
    """Return the checksums of the migrations that ran in the database, by number."""
    return dict(connection.execute(SQL["find_applied"]).fetchall())


def pending_migrations(seen: dict[int, str], known: Sequence[Migration]) -> list[Migration]:
    """Return the migrations of `known` that have not run; raise `Unsupported` for a newer schema or an edited file."""
    newest = known[-1].number
    if any(number > newest for number in seen):
        message = f"the database has schema {max(seen)}, this version knows {newest}; upgrade nous-pipelines"
        raise Unsupported(message)
    for migration in known:
        if seen.get(migration.number, migration.sha256) != migration.sha256:
            message = (
                f"migration {migration.number:04d}_{migration.name} was edited after it ran here; "
                "restore the original file and add a new migration instead"
            )
            raise Unsupported(message)
    return [migration for migration in known if migration.number not in seen]


@cache
def read_sql_file(name: str) -> LiteralString:
    """Return the text of a shipped SQL file; it is as trusted as code, so it may become a `LiteralString`."""
    return cast(LiteralString, files("nous_sql").joinpath(name).read_text("utf-8"))
