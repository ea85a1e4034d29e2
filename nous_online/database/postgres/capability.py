"""Which servers Nous can live on: PostgreSQL 15 or newer, with pgvector 0.8 or newer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import class_row

from nous_online.core.errors import Unsupported

OLDEST_POSTGRES = 15  # `security_invoker` views and `nulls not distinct` came with it
OLDEST_VECTOR = (0, 8)  # iterative index scans came with it; without them a filtered search loses rows
NEWEST_MINORS = {15: 20, 16: 16, 17: 12, 18: 6}
"""The newest minor of each major that this version knows, as of `KNOWN_ON`: each fixes holes of those before it."""
KNOWN_ON = "2026-08-13"
SAFE_VECTOR = (0, 8, 2)  # fixes CVE-2026-3172

_CAPABILITY = Path(__file__).with_name("capability.sql").read_bytes()


@dataclass(frozen=True)
class Capability:
    """What a server can do for Nous; versions of pgvector are None where it is absent."""

    server_version_num: int
    vector_offered: str | None
    vector_installed: str | None


def require_capable(connection: psycopg.Connection[Any]) -> None:
    """Raise `Unsupported`, with the fix, unless the server is PostgreSQL >= 15 with pgvector >= 0.8."""
    with connection.cursor(row_factory=class_row(Capability)) as cursor:
        found = cursor.execute(_CAPABILITY).fetchone()
    problem = shortcoming(found) if found else None
    if problem:
        raise Unsupported(f"The server at {connection.info.host}:{connection.info.port} will not do: {problem}")


def known_holes(connection: psycopg.Connection[Any]) -> list[str]:
    """Return what of a server has known holes, with the version that closes them."""
    with connection.cursor(row_factory=class_row(Capability)) as cursor:
        found = cursor.execute(_CAPABILITY).fetchone()
    return holes(found) if found else []


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
    if found.vector_installed:
        return _outdated(found.vector_installed, fix="Run `alter extension vector update` as its owner")
    if found.vector_offered:
        return _outdated(found.vector_offered, fix="Upgrade it on the server's machine")
    return (
        f"pgvector is not installed there. Install it (Debian: postgresql-{major}-pgvector; Docker: the image "
        f"pgvector/pgvector), or unset NOUS_DATABASE_URL to use the embedded server."
    )


def _outdated(version: str, *, fix: str) -> str | None:
    if numbers_of(version, 2) >= OLDEST_VECTOR:
        return None
    return f"it has pgvector {version}, and Nous needs 0.8 or newer. {fix}, after installing pgvector 0.8 or newer."


def numbers_of(version: str, count: int) -> tuple[int, ...]:
    """Return the first numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:count] if part.isdigit())
