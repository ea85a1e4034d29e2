"""What docs/operating.md promises: backups are restored as it says, and every check that stops a night has advice."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from nous_online.database import postgres
from nous_online.database.connection import Database, prepare
from nous_online.database.postgres_home import program
from nous_online.database.schema import require_isolation
from nous_online.heart import Heart
from nous_pipelines.plan.checks import CHECKS, title_of
from nous_pipelines.reports.reporting import ADVICE

PAGE = (Path(__file__).parents[3] / "docs/operating.md").read_text("utf-8")


def options_of(program: str) -> list[str]:
    """Return the options the page gives a program, without the addresses."""
    (line,) = re.findall(rf"^{program} (.+)$", PAGE, re.MULTILINE)
    return [word for word in line.split() if word.startswith("--") and not word.startswith(("--file", "--dbname"))]


@pytest.fixture
def fresh_url(server: postgres.Server) -> Iterator[str]:
    """A database with nothing in it."""
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute("create database restored")
        yield server.dsn("restored")
        connection.execute("drop database restored with (force)")


def test_a_backup_is_restored_as_the_page_says(heart, embedder, database_url, fresh_url, tmp_path) -> None:
    heart.learn("Backups are kept for 30 days")
    dump = tmp_path / "nous.dump"

    dumps, restores = (program(name, account=None) for name in ("pg_dump", "pg_restore"))
    subprocess.run([dumps, *options_of("pg_dump"), f"--file={dump}", database_url], check=True)
    prepare(fresh_url)
    subprocess.run([restores, *options_of("pg_restore"), f"--dbname={fresh_url}", dump], check=True)

    restored = Database(fresh_url)
    with Heart.open("aria", database=restored, embedder=embedder, works_in_background=False) as again:
        assert [each.content for each in again.recall("backups")] == ["Backups are kept for 30 days"]
        assert again.learn("The office opens at nine").action == "stored"
    with restored.transaction("aria") as connection:
        require_isolation(connection)
    restored.close()


def test_every_check_that_stops_a_night_has_its_advice_on_the_page() -> None:
    rows = {f"| `{check}` | {title_of(check)} | {sentence} |" for check, (sentence, _) in ADVICE.items()}

    assert {row for row in rows if row not in PAGE} == set()
    assert set(CHECKS) <= set(ADVICE)
