"""A server that is too old is refused whenever it is opened, and one with known holes is warned of."""

from __future__ import annotations

import psycopg
import pytest

from nous_online.core.errors import Unsupported
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.database.schema import Capability, missing_fixes
from nous_online.interfaces.doctor import checks


def test_a_prepared_database_whose_pgvector_is_too_old_is_not_opened(
    database_url: str, owner: psycopg.Connection
) -> None:
    owner.execute("update pg_extension set extversion = '0.5.1' where extname = 'vector'")

    with pytest.raises(Unsupported, match=r"pgvector 0\.5\.1, and Nous needs 0\.8 or newer"):
        Database(database_url)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Capability(180004, "0.8.5", None), ["PostgreSQL 18.4 lacks the security fixes of 18.6"]),
        (Capability(180006, "0.8.6", "0.8.6"), []),
        (Capability(180007, "0.10.0", None), []),
        (Capability(190000, "1.0", None), []),
        (Capability(150020, "0.8.2", "0.8.1"), ["pgvector 0.8.1 lacks the fix"]),
        (Capability(160002, "0.8.0", None), ["PostgreSQL 16.2", "pgvector 0.8.0"]),
    ],
)
def test_what_is_older_than_the_fixes_this_version_knows_has_holes(found: Capability, words: list[str]) -> None:
    said = missing_fixes(found)

    assert len(said) == len(words)
    assert all(word in each for word, each in zip(words, said, strict=True))


def test_doctor_warns_of_a_server_with_known_holes_and_says_who_has_the_fixes(
    database_url: str, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.execute("update pg_extension set extversion = '0.8.1' where extname = 'vector'")
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    settings.cache_clear()

    said = {check.name: check for check in checks()}["server"]

    settings.cache_clear()
    assert said.is_ok
    assert "pgvector 0.8.1 lacks the fix of CVE-2026-3172 in 0.8.2" in said.message
    assert "warning: upgrade the server" in said.message
