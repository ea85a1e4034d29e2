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
ROLES = 0  # the number under which the checksum of roles.sql is kept: run again whenever the file changes


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
    return tuple(Migration(int(p.name[:4]), p.name[5:-4], shipped(f"migrations/{p.name}")) for p in paths)


def migrate(connection: psycopg.Connection, *, known: Sequence[Migration] | None = None) -> list[Migration]:
    """Apply what is missing of `known` (what this code ships with), all or nothing, and return it.

    The grants come with the whole of what is shipped: they name tables that an earlier schema lacks.
    Two processes that start together wait for each other. Raises `Unsupported` when the database was made by a
    newer version, or when a migration that ran there has since been edited.
    """
    with connection.transaction():
        lock(connection)
        connection.execute(shipped("bootstrap.sql"))
        pending = missing(applied(connection), known or known_migrations())
        if pending:
            names = ", ".join(f"{migration.number:04} {migration.name}" for migration in pending)
            logger.info("bringing the schema up to date (%s); a large store may take minutes", names)
        for migration in pending if known else (*pending, roles()):
            connection.execute(migration.text)
            row = {"number": migration.number, "name": migration.name, "sha256": migration.sha256}
            connection.execute(SQL["store_applied"], row)
    return pending


@cache
def roles() -> Migration:
    """Return the grants this code ships with."""
    return Migration(ROLES, "roles", shipped("roles.sql"))


def lock(connection: psycopg.Connection) -> None:
    """Wait for others who change the schema; released when the transaction ends."""
    connection.execute(SQL["take_lock"], [LOCK_KEY])


def is_current(connection: psycopg.Connection) -> bool:
    """Tell, with one cheap look, whether the database already has this code's schema."""
    if not all(connection.execute(SQL["has_schema_and_roles"]).fetchone() or [False]):
        return False
    seen = applied(connection)
    return not missing(seen, known_migrations()) and seen.get(ROLES) == roles().sha256


def applied(connection: psycopg.Connection) -> dict[int, str]:
    """Return the checksums of the migrations the database has seen, by number."""
    return dict(connection.execute(SQL["find_applied"]).fetchall())


def missing(seen: dict[int, str], known: Sequence[Migration]) -> list[Migration]:
    """Return what of `known` the database lacks; raise `Unsupported` when it is newer than, or differs from, us."""
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
def shipped(name: str) -> LiteralString:
    """Return the text of a shipped SQL file, which is as trusted as code, and like code read once."""
    return cast(LiteralString, files("nous_sql").joinpath(name).read_text("utf-8"))
