"""Which servers Nous agrees to live on, and what it tells those it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from postgres_homes import copy_home, scratch

from nous_online.core.errors import Unsupported
from nous_online.database import postgres
from nous_online.database.schema import Capability, require_capable, unmet_requirement


@pytest.fixture(scope="module")
def server(home_to_copy: Path) -> Iterator[postgres.Server]:
    with scratch() as place:
        yield postgres.ensure(copy_home(home_to_copy, place / "home"))


def test_the_embedded_server_is_capable(server: postgres.Server) -> None:
    with psycopg.connect(server.dsn()) as connection:
        require_capable(connection)


def test_a_database_without_the_extension_is_capable_when_the_server_offers_it(server: postgres.Server) -> None:
    with psycopg.connect(server.dsn("postgres")) as connection:
        require_capable(connection)


def test_an_old_pgvector_is_refused_with_the_fix(server: postgres.Server) -> None:
    with psycopg.connect(server.dsn()) as connection:
        connection.execute("update pg_extension set extversion = '0.7.4' where extname = 'vector'")

        with pytest.raises(Unsupported, match=r"pgdata:\d+ .*pgvector 0\.7\.4.*alter extension vector update"):
            require_capable(connection)

        connection.rollback()


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (Capability(150000, "0.8.0", None), None),
        (Capability(180004, "0.8.5", "0.8.0"), None),
        (Capability(190000, "1.0", "1.0"), None),
        (Capability(160002, "0.10.0", None), None),
        (Capability(140022, "0.8.5", "0.8.5"), "PostgreSQL 14.22"),
        (Capability(160002, None, None), "postgresql-16-pgvector"),
        (Capability(160002, "0.6.2", None), "pgvector 0.6.2"),
        (Capability(160002, "0.8.5", "0.5.1"), "alter extension vector update"),
    ],
)
def test_postgres_15_and_pgvector_0_8_are_the_oldest(found: Capability, problem: str | None) -> None:
    sentence = unmet_requirement(found)

    assert (sentence is None) if problem is None else (problem in (sentence or ""))
