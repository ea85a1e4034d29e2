"""What a database must have before it is used: a server new enough, this code's schema, and agents kept apart."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import LiteralString, cast

from psycopg import Connection
from psycopg.rows import class_row

from nous_online.core.errors import NotIsolated, Unsupported
from nous_online.database.statements import statements

logger = logging.getLogger(__name__)
SQL = statements("nous_online.database", "migrations.sql")
CHECKS = statements("nous_online.database", "connection.sql")
LOCK_KEY = 0x6E6F7573  # "nous": any constant would do, as long as every runner takes the same
ROLES = 0  # the number under which roles.sql is recorded: it is run again whenever its checksum changes
OLDEST_POSTGRES = 15  # `security_invoker` views and `nulls not distinct` came with it
OLDEST_VECTOR = (0, 8)  # iterative index scans came with it; without them a filtered search loses rows
NEWEST_MINORS = {15: 20, 16: 16, 17: 12, 18: 6}
"""The newest minor of each major that this version knows, as of `KNOWN_ON`: each fixes holes of those before it."""
KNOWN_ON = "2026-08-13"
SAFE_VECTOR = (0, 8, 2)  # fixes CVE-2026-3172
SHOWN = 3  # isolation gaps quoted in an error

# --- migrations: numbered files, checksums, one advisory lock ---


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


def migrate(connection: Connection, *, known: Sequence[Migration] | None = None) -> list[Migration]:
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


def lock_schema(connection: Connection) -> None:
    """Take the lock of schema changes, waiting for it; released when the transaction ends."""
    connection.execute(SQL["take_lock"], [LOCK_KEY])


def is_current(connection: Connection) -> bool:
    """Tell, in two short queries, whether the database already has this code's schema and grants."""
    if not all(connection.execute(SQL["has_schema_and_roles"]).fetchone() or [False]):
        return False
    seen = applied_checksums(connection)
    return not pending_migrations(seen, known_migrations()) and seen.get(ROLES) == grants().sha256


def applied_checksums(connection: Connection) -> dict[int, str]:
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


# --- the server and its pgvector ---


@dataclass(frozen=True)
class Capability:
    """The version of a server and of its pgvector."""

    server_version_num: int
    vector_offered: str | None
    """The version that could be installed; None where one is installed, or where the server has none to offer."""
    vector_installed: str | None


def require_capable(connection: Connection) -> None:
    """Raise `Unsupported`, with the fix, unless the server is PostgreSQL >= 15 with pgvector >= 0.8."""
    problem = unmet_requirement(capability(connection))
    if problem:
        raise Unsupported(f"The server at {connection.info.host}:{connection.info.port} will not do: {problem}")


def capability(connection: Connection) -> Capability:
    """Read the versions of a server and of its pgvector."""
    with connection.cursor(row_factory=class_row(Capability)) as cursor:
        (found,) = cursor.execute(CHECKS["capability"]).fetchall()
    if found.vector_installed is None:  # asked only here: to answer, the server reads the files of every extension
        offered = connection.execute(CHECKS["vector_offered"]).fetchone()
        found = replace(found, vector_offered=offered[0] if offered else None)
    return found


def missing_fixes(found: Capability) -> list[str]:
    """Return a sentence for each part of a server that is older than a security fix this version knows of; pure."""
    major, minor = divmod(found.server_version_num, 10_000)
    sentences: list[str] = []
    newest = NEWEST_MINORS.get(major, 0)
    if minor < newest:
        sentences.append(f"PostgreSQL {major}.{minor} lacks the security fixes of {major}.{newest} ({KNOWN_ON})")
    vector = found.vector_installed or found.vector_offered
    if vector and version_numbers(vector, 3) < SAFE_VECTOR:
        sentences.append(f"pgvector {vector} lacks the fix of CVE-2026-3172 in 0.8.2")
    return sentences


def unmet_requirement(found: Capability) -> str | None:
    """Return in one sentence what the server lacks and how to fix it; None when it meets every requirement."""
    major, minor = divmod(found.server_version_num, 10_000)
    if major < OLDEST_POSTGRES:
        return (
            f"it runs PostgreSQL {major}.{minor}, and Nous needs {OLDEST_POSTGRES} or newer. Upgrade it, or unset "
            "NOUS_DATABASE_URL to use the embedded server."
        )
    version = found.vector_installed or found.vector_offered
    if version is None:
        return (
            f"pgvector is not installed there. Install it (Debian: postgresql-{major}-pgvector; Docker: the image "
            f"pgvector/pgvector), or unset NOUS_DATABASE_URL to use the embedded server."
        )
    if version_numbers(version, 2) >= OLDEST_VECTOR:
        return None
    fix = "Upgrade it on the server's machine"
    if found.vector_installed:
        fix = "Run `alter extension vector update` as its owner"
    return f"it has pgvector {version}, and Nous needs 0.8 or newer. {fix}, after installing pgvector 0.8 or newer."


def version_numbers(version: str, count: int) -> tuple[int, ...]:
    """Return the first `count` numbers of a version; parts such as `0rc1`, which are no number, are left out."""
    return tuple(int(part) for part in version.split(".")[:count] if part.isdigit())


# --- isolation: checked in the database itself, before an agent's first call ---


@dataclass(frozen=True)
class IsolationGap:
    """One way in which an agent could see or change rows of another, and the statement that closes it."""

    opening: str
    fix: str


def find_isolation_gaps(connection: Connection) -> list[IsolationGap]:
    """Return every way in which the current role could bypass row-level security; none when it holds.

    The connection must be in a transaction; its agent and search path are changed until that ends.
    """
    connection.execute(CHECKS["bind_to_nobody"])  # an agent that can't exist: any row that is visible now is a gap
    with connection.cursor(row_factory=class_row(IsolationGap)) as cursor:
        return cursor.execute(CHECKS["find_openings"]).fetchall()


def require_isolation(connection: Connection) -> None:
    """Raise `NotIsolated` when one agent could see or change rows of another."""
    gaps = find_isolation_gaps(connection)
    if not gaps:
        return
    shown = "; ".join(f"{gap.opening} (close it: {gap.fix})" for gap in gaps[:SHOWN])
    rest = f"; and {len(gaps) - SHOWN} more" if len(gaps) > SHOWN else ""
    raise NotIsolated(f"agents are not kept apart here: {shown}{rest}; nothing is served until that is mended")


def excess_rights(connection: Connection) -> str | None:
    """Return the most that the login user may do beyond acting as an agent; None when there is nothing."""
    found = connection.execute(CHECKS["find_powers"]).fetchone()
    return found[0] if found else None
