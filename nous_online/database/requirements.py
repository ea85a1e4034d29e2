"""What a server must be before it is used: new enough, with pgvector, and keeping agents apart."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import class_row

from nous_online.core.errors import NotIsolated, Unsupported
from nous_online.database.statements import statements

SQL = statements("nous_online.database", "requirements.sql")
OLDEST_POSTGRES = 15  # `security_invoker` views and `nulls not distinct` came with it
OLDEST_VECTOR = (0, 8)  # iterative index scans came with it; without them a filtered search loses rows
NEWEST_MINORS = {15: 20, 16: 16, 17: 12, 18: 6}
"""The newest minor of each major that this version knows, as of `KNOWN_ON`: each fixes holes of those before it."""
KNOWN_ON = "2026-08-13"
SAFE_VECTOR = (0, 8, 2)  # fixes CVE-2026-3172
SHOWN = 3  # of what lets agents see each other's rows, in an error


@dataclass(frozen=True)
class Capability:
    """What a server can do for Nous; no version of pgvector is offered where one is installed, or there is none."""

    server_version_num: int
    vector_offered: str | None
    vector_installed: str | None


def require_capable(connection: Connection) -> None:
    """Raise `Unsupported`, with the fix, unless the server is PostgreSQL >= 15 with pgvector >= 0.8."""
    problem = shortcoming(capability(connection))
    if problem:
        raise Unsupported(f"The server at {connection.info.host}:{connection.info.port} will not do: {problem}")


def known_holes(connection: Connection) -> list[str]:
    """Return what of a server has known holes, with the version that closes them."""
    return holes(capability(connection))


def capability(connection: Connection) -> Capability:
    """Ask a server what it can do."""
    with connection.cursor(row_factory=class_row(Capability)) as cursor:
        (found,) = cursor.execute(SQL["capability"]).fetchall()
    return found


def holes(found: Capability) -> list[str]:
    """Say which parts of a server are older than the fixes this version knows of; pure."""
    major, minor = divmod(found.server_version_num, 10_000)
    told: list[str] = []
    newest = NEWEST_MINORS.get(major, 0)
    if minor < newest:
        told.append(f"PostgreSQL {major}.{minor} lacks the security fixes of {major}.{newest} ({KNOWN_ON})")
    vector = found.vector_installed or found.vector_offered
    if vector and numbers_of(vector, 3) < SAFE_VECTOR:
        told.append(f"pgvector {vector} lacks the fix of CVE-2026-3172 in 0.8.2")
    return told


def shortcoming(found: Capability) -> str | None:
    """Say in one sentence what the server lacks and how to mend it, or None when it lacks nothing."""
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
    if numbers_of(version, 2) >= OLDEST_VECTOR:
        return None
    fix = "Upgrade it on the server's machine"
    if found.vector_installed:
        fix = "Run `alter extension vector update` as its owner"
    return f"it has pgvector {version}, and Nous needs 0.8 or newer. {fix}, after installing pgvector 0.8 or newer."


def numbers_of(version: str, count: int) -> tuple[int, ...]:
    """Return the first numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:count] if part.isdigit())


# --- isolation: asked of the database itself, before the first call of an agent ---


@dataclass(frozen=True)
class Opening:
    """One thing that lets an agent see or change what is another's, and the statement that closes it."""

    opening: str
    fix: str


def find_openings(connection: Connection) -> list[Opening]:
    """Return everything by which the role in force could pass row-level security; none when it holds.

    The connection is in a transaction, whose agent and search path are changed.
    """
    connection.execute(SQL["bind_to_nobody"])
    with connection.cursor(row_factory=class_row(Opening)) as cursor:
        return cursor.execute(SQL["find_openings"]).fetchall()


def require_isolation(connection: Connection) -> None:
    """Raise `NotIsolated` when one agent could see or change what is another's."""
    openings = find_openings(connection)
    if not openings:
        return
    shown = "; ".join(f"{each.opening} (close it: {each.fix})" for each in openings[:SHOWN])
    rest = f"; and {len(openings) - SHOWN} more" if len(openings) > SHOWN else ""
    raise NotIsolated(f"agents are not kept apart here: {shown}{rest}; nothing is served until that is mended")


def powers(connection: Connection) -> str | None:
    """Return what the user who logged in may do beyond being an agent; None when that is nothing."""
    found = connection.execute(SQL["find_powers"]).fetchone()
    return found[0] if found else None
