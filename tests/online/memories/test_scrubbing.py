"""Scrubbing: what was erased is in no file of the server's data directory and of its write-ahead log any more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from click.testing import Result
from typer.testing import CliRunner

from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.heart import Heart
from nous_online.interfaces.cli.command_line import application
from nous_online.language import embedding
from nous_online.memories import erasure
from nous_online.memories.erasure import NEEDS_SUPERUSER, scrub


@pytest.fixture
def word() -> str:
    """A word that no other test has ever told this server."""
    return f"zin{uuid4().hex[:12]}"


@pytest.fixture
def nous(
    database_url: str, heart: Heart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Result]]:
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setenv("NOUS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NOUS_AGENT", "aria")
    monkeypatch.setattr(erasure, "installed_erasers", list)
    monkeypatch.setattr(embedding, "embedder_of", lambda _: heart.agent.embedder)
    settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(application(), arguments)
    settings.cache_clear()


def files_with(word: str, owner: psycopg.Connection) -> set[str]:
    """The files of the data directory, log included, in which a word stands, after everything was written to disk."""
    owner.execute("checkpoint")
    (folder,) = owner.execute("select current_setting('data_directory')").fetchone() or ("",)
    return {
        str(path.relative_to(folder))
        for path in Path(folder).rglob("*")
        if path.is_file() and word.encode() in path.read_bytes()
    }


def lived(heart: Heart, word: str) -> list[str]:
    """Memories of every kind with a word in every field that takes one, used and condensed; returns their ids."""
    fact = heart.learn(f"The {word} is in the cellar", subject=word, tags=[word], source=f"a {word} chat").memory
    heart.learn(f"The {word} is in the cellar", context=f"said over {word}")
    episode = heart.record_episode(f"Ada poured the {word}", title=f"A {word}", lessons_learned=[f"no {word}"])
    procedure = heart.store_procedure(f"Pour {word}", goals=[f"the {word} breathes"], tags=[word])
    censor = heart.add_censor(f"shaking the {word}", f"the {word} clouds")
    heart.work()
    heart.cite(heart.recall(f"where is the {word}?", session_id="s").id, [fact.id])
    heart.load_context(session_id="s", fact_ids=[fact.id], note=f"mind the {word}")
    heart.assemble_context(query=f"the {word}", session_id="s")
    return [str(each.id) for each in (fact, episode, procedure, censor)]


@pytest.mark.parametrize("whole", [True, False], ids=["agent", "memories"])
def test_no_byte_of_what_was_erased_is_left_on_the_disk(
    heart: Heart, owner: psycopg.Connection, nous: Callable[..., Result], word: str, *, whole: bool
) -> None:
    ids = lived(heart, word)
    owner.execute("insert into heart.term_stats (agent_id, lexeme, document_count) values ('aria', %s, 1)", [word])
    owner.execute("analyze")
    before = files_with(word, owner)
    part = ["aria"] if whole else [option for each in ids for option in ("--memory", each)]

    done = nous("erase", *part, "--yes", "--scrub", "--json")

    assert done.exit_code == 0, done.output
    assert any(name.startswith("pg_wal") for name in before)
    assert any(name.startswith("base") for name in before)
    assert json.loads(done.stdout)["is_scrubbed"] is True
    assert files_with(word, owner) == set()
    assert owner.execute("select current_setting('wal_recycle')").fetchone() == ("on",)


def test_without_scrubbing_the_disk_keeps_it_for_a_while_and_the_command_says_so(
    heart: Heart, owner: psycopg.Connection, nous: Callable[..., Result], word: str
) -> None:
    fact = heart.learn(f"The {word} is in the cellar").memory

    done = nous("erase", "--memory", str(fact.id), "--yes")

    assert "the write-ahead log still hold it" in done.output
    assert files_with(word, owner)


def test_an_owner_who_is_no_superuser_is_told_what_is_left_to_do(
    heart: Heart, owner: psycopg.Connection, server: postgres.Server, database_url: str, word: str
) -> None:
    fact = heart.learn(f"The {word} is in the cellar").memory
    owner.execute("create role plain login password 'plain'")
    try:
        for (table,) in owner.execute(
            "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace "
            "where c.relkind = 'r' and n.nspname in ('heart', 'brain', 'lifecycle', 'migration')"
        ).fetchall():
            owner.execute(f"alter table {table} owner to plain")  # type: ignore[arg-type]
        owner.execute("grant usage on schema heart, brain, lifecycle, migration to plain")
        parts = psycopg.conninfo.conninfo_to_dict(database_url)
        left = scrub(psycopg.conninfo.make_conninfo(**{**parts, "user": "plain", "password": "plain", "passfile": ""}))
    finally:
        owner.execute("reassign owned by plain to current_user")
        owner.execute("drop owned by plain")
        owner.execute("drop role plain")

    assert left == (NEEDS_SUPERUSER,)
    assert heart.get(fact.id) == fact
