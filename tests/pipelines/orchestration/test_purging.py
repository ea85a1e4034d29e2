"""What a purge deletes, and what it never does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from click.testing import Result
from erased_rows import insert
from psycopg.types.json import Jsonb
from typer.testing import CliRunner

from nous_online.core.errors import InvalidInput, Refused
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.cli.command_line import application
from nous_online.memories import facts
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.orchestration.retention import Purged, purge

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NOBODY = UUID(int=1)


@pytest.fixture
def nous(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setenv("NOUS_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    yield partial(CliRunner().invoke, application())
    settings.cache_clear()


@pytest.fixture
def purging(database_url: str) -> Iterator[Database]:
    opened = Database(database_url, role="nous_purge", max_connections=1)
    yield opened
    opened.close()


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def chill(owner: psycopg.Connection, tier: str, *, agent_id: str = "aria", **values: Any) -> None:
    insert(owner, agent_id, {"heart.cold_texts": {"memory_id": NOBODY, "tier": tier, "detail": "long", **values}})


def left(owner: psycopg.Connection, table: str, column: str) -> list[Any]:
    return [row[0] for row in owner.execute(f"select {column} from {table} order by 1").fetchall()]  # noqa: S608


def announced(owner: psycopg.Connection, *, days: float) -> None:
    """Make everything that was announced so many days old."""
    owner.execute("update heart.outbox set created_at = %s", [days_ago(days)])


def own_policy(owner: psycopg.Connection, agent_id: str, **values: Any) -> None:
    owner.execute("insert into lifecycle.agent_policies (agent_id, policy) values (%s, %s)", [agent_id, Jsonb(values)])


def everything_else(owner: psycopg.Connection) -> dict[str, int]:
    """The rows of every table but those that a purge may touch."""
    tables = owner.execute("""
        select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in ('heart', 'brain', 'lifecycle') and c.relkind = 'r'
          and c.relname not in ('cold_texts', 'outbox', 'completions', 'requests')""").fetchall()
    return {name: owner.execute(f"select count(*) from {name}").fetchone()[0] for (name,) in tables}  # noqa: S608


def test_cold_texts_stay_for_ever_unless_something_says_otherwise(
    heart: Heart, owner: psycopg.Connection, purging: Database
) -> None:
    chill(owner, "raw", stored_at=days_ago(5000))
    chill(owner, "summary", stored_at=days_ago(5000), purge_after=days_ago(-1))
    chill(owner, "compressed", purge_after=days_ago(1))

    purged = purge(purging, NightPolicy(), now=NOW)

    assert purged.cold_texts == 1
    assert left(owner, "heart.cold_texts", "tier") == ["raw", "summary"]


def test_a_policy_says_how_long_cold_texts_are_kept(heart: Heart, owner: psycopg.Connection, purging: Database) -> None:
    chill(owner, "raw", stored_at=days_ago(11))
    chill(owner, "summary", stored_at=days_ago(9))

    purge(purging, NightPolicy(cold_texts_kept_days=10), now=NOW)

    assert left(owner, "heart.cold_texts", "tier") == ["summary"]


def test_an_agents_own_policy_comes_first(
    heart: Heart, owner: psycopg.Connection, purging: Database, database: Database
) -> None:
    for agent_id in ("ben", "cleo"):
        Heart.open(agent_id, database=database, embedder=heart.agent.embedder, works_in_background=False)
    own_policy(owner, "ben", cold_texts_kept_days=0)
    own_policy(owner, "cleo", cold_texts_kept_days=3)
    for agent_id in ("aria", "ben", "cleo"):
        chill(owner, "raw", agent_id=agent_id, stored_at=days_ago(5))

    purge(purging, NightPolicy(cold_texts_kept_days=10), now=NOW)
    assert left(owner, "heart.cold_texts", "agent_id") == ["aria", "ben"]

    purge(purging, NightPolicy(cold_texts_kept_days=4), now=NOW)
    assert left(owner, "heart.cold_texts", "agent_id") == ["ben"]


def test_a_policy_that_makes_no_sense_stops_the_purge(
    heart: Heart, owner: psycopg.Connection, purging: Database
) -> None:
    own_policy(owner, "aria", cold_texts_kept_days=-1)
    chill(owner, "raw", purge_after=days_ago(1))

    with pytest.raises(InvalidInput, match="the policy of agent 'aria' makes no sense: cold_texts_kept_days"):
        purge(purging, NightPolicy(), now=NOW)

    assert left(owner, "heart.cold_texts", "tier") == ["raw"]


def test_what_everybody_heard_is_kept_for_a_month(heart: Heart, owner: psycopg.Connection, purging: Database) -> None:
    heart.learn("The tea is in the tin")
    heart.work()

    announced(owner, days=29)
    assert purge(purging, NightPolicy(), now=NOW).outbox == 0
    announced(owner, days=30)
    assert purge(purging, NightPolicy(outbox_kept_days=0), now=NOW).outbox == 0
    assert purge(purging, NightPolicy(), now=NOW).outbox == 1
    assert left(owner, "heart.outbox", "id") == []


def test_what_the_heart_has_still_to_react_to_stays(heart: Heart, owner: psycopg.Connection, purging: Database) -> None:
    heart.learn("The tea is in the tin")
    announced(owner, days=400)

    assert purge(purging, NightPolicy(), now=NOW).outbox == 0


def test_what_one_consumer_has_not_heard_stays_for_it_alone(
    heart: Heart, owner: psycopg.Connection, purging: Database
) -> None:
    heard: list[str] = []
    heart.subscribe("fact_learned", lambda event: heard.append(event.name), consumer="brain")
    heart.learn("The tea is in the tin")
    heart.work()
    owner.execute("update heart.outbox_cursors set retry_at = now() + interval '1 hour' where consumer = 'brain'")
    heart.learn("Ravens nest in the old tower")
    heart.work()
    announced(owner, days=400)

    purged = purge(purging, NightPolicy(), now=NOW)

    assert (heard, purged.outbox) == (["fact_learned"], 1)
    owner.execute("update heart.outbox_cursors set retry_at = null")
    heart.work()
    assert heard == ["fact_learned", "fact_learned"]


def test_nothing_was_heard_by_a_consumer_that_comes_from_a_dump(
    heart: Heart, owner: psycopg.Connection, purging: Database
) -> None:
    heart.learn("The tea is in the tin")
    heart.work()
    announced(owner, days=400)
    owner.execute("update heart.outbox_cursors set last_xid = '9000000000'")

    assert purge(purging, NightPolicy(), now=NOW).outbox == 0


def test_how_an_episode_was_completed_is_known_for_a_month(
    heart: Heart, owner: psycopg.Connection, purging: Database
) -> None:
    for detail in ("Ada: the parcel is late.", "Ben: it came.", "Cleo: not yet."):
        heart.record_episode(detail)
    owner.execute("update heart.completions set finished_at = null, created_at = %s", [days_ago(90)])
    episode_ids = left(owner, "heart.completions", "episode_id")
    for episode_id, days in zip(episode_ids, (31, 29), strict=False):
        owner.execute(
            "update heart.completions set finished_at = %s where episode_id = %s", [days_ago(days), episode_id]
        )

    assert purge(purging, NightPolicy(), now=NOW).completions == 1
    assert left(owner, "heart.completions", "episode_id") == episode_ids[1:]


def test_idempotency_keys_are_known_for_three_months_and_those_of_imports_for_ever(
    heart: Heart, owner: psycopg.Connection, purging: Database
) -> None:
    heart.learn("The tea is in the tin", idempotency_key="learned")
    heart.learn("Ravens nest in the old tower", idempotency_key="lately")
    heart.learn_deferred([("Deploys take an hour", {"idempotency_key": "imported"})])
    named = facts.new_fact("Bats sleep by day", {"idempotency_key": "file"}, now=NOW)
    facts.store_deferred(heart.agent, [named], heart.agent.deadline(None), source="notes")
    owner.execute("update heart.requests set created_at = %s", [days_ago(91)])
    owner.execute("update heart.requests set created_at = %s where idempotency_key = 'lately'", [days_ago(89)])

    assert purge(purging, NightPolicy(), now=NOW).requests == 1
    assert left(owner, "heart.requests", "idempotency_key") == ["file", "imported", "lately"]
    assert heart.learn_deferred([("Deploys take an hour", {"idempotency_key": "imported"})]) == 0


def test_a_dry_run_counts_the_same_and_deletes_nothing(
    heart: Heart, owner: psycopg.Connection, purging: Database
) -> None:
    fill(heart, owner)

    dry = purge(purging, NightPolicy(), now=NOW, is_dry_run=True)
    assert dry == Purged(1, 2, 1, 1, is_dry_run=True)
    assert purge(purging, NightPolicy(), now=NOW) == Purged(1, 2, 1, 1)
    assert purge(purging, NightPolicy(), now=NOW) == Purged(0, 0, 0, 0)


def fill(heart: Heart, owner: psycopg.Connection) -> None:
    """Leave something old in every table a purge looks at."""
    heart.learn("The tea is in the tin", idempotency_key="learned")
    heart.record_episode("Ada: the parcel is late.")
    heart.work()
    heart.work()
    owner.execute("delete from heart.outbox where name = 'episode_completed'")
    chill(owner, "raw", purge_after=days_ago(1))
    for table, column in {"outbox": "created_at", "requests": "created_at", "completions": "finished_at"}.items():
        owner.execute(f"update heart.{table} set {column} = %s", [days_ago(400)])  # noqa: S608


def test_no_memory_event_or_proposal_is_ever_purged(heart: Heart, owner: psycopg.Connection, purging: Database) -> None:
    fill(heart, owner)
    heart.recall("where is the tea?")
    before = everything_else(owner)
    at_once = NightPolicy(cold_texts_kept_days=1, outbox_kept_days=1, completions_kept_days=1, requests_kept_days=1)

    purge(purging, at_once, now=NOW + timedelta(days=10_000))

    assert everything_else(owner) == before
    assert before["heart.facts"] > 0
    assert before["lifecycle.events"] > 0


def test_no_other_role_may_purge(heart: Heart, owner: psycopg.Connection, database_url: str) -> None:
    chill(owner, "raw", purge_after=days_ago(1))
    night = Database(database_url, role="nous_night", max_connections=1)

    with pytest.raises(Refused):
        purge(night, NightPolicy(), now=NOW)

    night.close()
    assert left(owner, "heart.cold_texts", "tier") == ["raw"]


def test_the_command_says_what_it_deleted(heart: Heart, owner: psycopg.Connection, nous: Callable[..., Result]) -> None:
    chill(owner, "raw", stored_at=days_ago(800))

    dry = nous(["purge", "--dry-run", "--json", "--policy", "cold_texts_kept_days=730"])
    assert json.loads(dry.stdout) == {
        "cold_texts": 1, "outbox": 0, "completions": 0, "requests": 0, "is_dry_run": True
    }  # fmt: skip
    assert "0  texts of condensed episodes" in nous(["purge"]).stdout
    assert left(owner, "heart.cold_texts", "tier") == ["raw"]
    assert nous(["purge", "--policy", "cold_texts_kept_days=730"]).exit_code == 0
    assert left(owner, "heart.cold_texts", "tier") == []
