"""Condensed episodes in the database: what their rows keep, where the rest lies, and taking it all back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from night_runs import VERSIONING, options, snapshot_of
from psycopg.types.json import Jsonb

from nous_online.core.deadline import Deadline
from nous_online.core.domain import EPISODE
from nous_online.database.changes import Cause, change_memory, lock_memory, version_of
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.episodes import new_episode, store_deferred
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.orchestration.chunk_work import episode_summaries
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.retention import purge
from nous_pipelines.orchestration.running import folder_of, run_night
from nous_pipelines.phases.proposals import Plan
from nous_pipelines.phases.tiers import tier_phase
from nous_pipelines.plan.apply import apply_plan
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.plan.planning import planned
from nous_pipelines.plan.undo import Selection, undo

STORY = (
    "Ada: The billing database moved from MySQL to Postgres 18 on 12 May. Ben: I checked 4,200 invoices by hand. "
    "Ada: Two of them had lost their currency. Ben: Cleo mended both the same evening. Ada: The old cluster is "
    "switched off in June. Ben: Backups of it are kept until the end of the year. Ada: Nobody noticed the move."
)
ENDED = datetime(2026, 1, 1, 12, tzinfo=UTC)
LAST = date(2026, 4, 1)
AGES = ("summary_after_days", "compressed_after_days", "fossil_after_days")


def imported(heart: Heart, name: str, **details: Any) -> None:
    """Store an episode that a writer has completed."""
    told = {"ended_at": ENDED, "idempotency_key": name, **details}
    store_deferred(heart.agent, [new_episode(STORY, told, now=ENDED)], Deadline(10))
    cause = Cause("agent", "completed", "drawn by a writer", effective_at=ENDED)
    with heart.agent.database.transaction(heart.agent.id) as connection:
        (episode_id,) = connection.execute("select id from heart.episodes where completed_at is null").fetchone() or ()
        episode = version_of(EPISODE, lock_memory(connection, heart.agent.id, EPISODE, episode_id))
        change_memory(connection, heart.agent.id, episode, {"completed_at": ENDED.isoformat()}, cause=cause)


def plan_of(database: Database, folder: Path, night: date) -> Plan:
    taken = snapshot_of(database, folder, night=night)
    policy = NightPolicy()
    tables = {name: taken.table(name) for name in ("episodes", "uses", "undone")}
    tables["episode_summaries"] = episode_summaries(tables, policy=policy, night=night)
    phase = tier_phase(tables, policy=policy, night=night)
    return planned(night, phase.proposals, agent_ids=[], policy=policy.as_dict())


def run(database: Database, folder: Path, *nights: date) -> int:
    applied = 0
    for night in nights:
        outcome = apply_plan(database, plan_of(database, folder, night), run_id="a run")
        assert (outcome.stale, outcome.refused) == (0, 0), outcome.reasons
        applied += outcome.applied
    return applied


def rows(owner: psycopg.Connection, table: str, *without: str) -> list[dict[str, Any]]:
    found = owner.execute(f"select to_jsonb(t) from heart.{table} t order by 1").fetchall()  # noqa: S608
    return [{name: value for name, value in row.items() if name not in without} for (row,) in found]


def words_of(owner: psycopg.Connection) -> set[str]:
    return {row[0] for row in owner.execute("select lexeme from heart.postings where memory_kind = 'episode'")}


def test_nights_one_by_one_condense_an_episode_and_lose_no_text(
    heart: Heart, owner: psycopg.Connection, night_database: Database, tmp_path: Path
) -> None:
    imported(heart, "the move")
    (before,) = rows(owner, "episodes")

    shown = []
    for days in (7, 30, 90):
        night = (ENDED + timedelta(days=days)).date()
        assert run(night_database, tmp_path, night - timedelta(days=1)) == 0
        assert run(night_database, tmp_path, night) == 1
        (row,) = rows(owner, "episodes")
        shown.append((row["compression_tier"], [c for c in ("detail", "summary", "compressed", "title") if row[c]]))

    assert shown == [
        ("summary", ["summary", "compressed", "title"]),
        ("compressed", ["compressed", "title"]),
        ("fossil", ["title"]),
    ]
    cold = {
        row["tier"]: [c for c in ("detail", "summary", "compressed") if row[c]] for row in rows(owner, "cold_texts")
    }
    assert cold == {"raw": ["detail"], "summary": ["summary"], "compressed": ["compressed"]}
    assert heart.full_text(UUID(before["id"])).text == STORY
    assert rows(owner, "episodes")[0]["embedding"] == before["embedding"]


def test_an_episode_imported_today_keeps_its_summary_through_a_backfill_until_it_has_been_here_as_long(
    heart: Heart, owner: psycopg.Connection, night_database: Database, tmp_path: Path
) -> None:
    store_deferred(heart.agent, [new_episode(STORY, {"ended_at": ENDED}, now=ENDED)], Deadline(10))
    assert heart.work()
    today = datetime.now(UTC).date()

    run(night_database, tmp_path, *(ENDED.date() + timedelta(days=days) for days in (7, 30, 90)), today)

    (row,) = rows(owner, "episodes")
    assert (row["compression_tier"], row["detail"]) == ("summary", None)
    assert row["summary"]
    later = {}
    for days in (29, 30, 89, 90):
        run(night_database, tmp_path, today + timedelta(days=days))
        later[days] = rows(owner, "episodes")[0]["compression_tier"]
    assert later == {29: "summary", 30: "compressed", 89: "compressed", 90: "fossil"}


def test_an_episode_condensed_to_one_line_is_found_by_the_words_of_the_line_and_its_lessons(
    heart: Heart, owner: psycopg.Connection, night_database: Database, tmp_path: Path
) -> None:
    imported(heart, "the move", lessons_learned=["Rehearse every switchover"])
    nights = [(ENDED + timedelta(days=days)).date() for days in (7, 30)]

    run(night_database, tmp_path, *nights)

    (row,) = rows(owner, "episodes")
    line = owner.execute("select tsvector_to_array(heart.lexemes(%s))", [row["compressed"]]).fetchone()
    assert row["summary"] is None
    assert line is not None
    assert {*line[0], "rehears", "switchov"} <= words_of(owner)


def test_every_tier_is_taken_back_row_by_row(
    heart: Heart, owner: psycopg.Connection, night_database: Database, tmp_path: Path
) -> None:
    imported(heart, "the move", summary="Billing moved to Postgres in May")
    imported(heart, "a late one", ended_at=ENDED - timedelta(days=200))
    before, words = rows(owner, "episodes", *VERSIONING), words_of(owner)

    nights = [(ENDED + timedelta(days=days)).date() for days in (7, 30, 90)]
    run(night_database, tmp_path, *nights)
    assert "backup" in words - words_of(owner)
    for night in reversed(nights):
        assert undo(night_database, Selection(night=night), reason="too early").refused == {}

    assert rows(owner, "episodes", *VERSIONING) == before
    assert words_of(owner) == words
    assert run(night_database, tmp_path / "again", LAST) == 0


def test_a_text_that_left_is_in_no_event_any_more(
    heart: Heart, owner: psycopg.Connection, night_database: Database, tmp_path: Path
) -> None:
    imported(heart, "the move", summary="Billing moved to Postgres in May")

    run(night_database, tmp_path, LAST)

    told = owner.execute("select before::text from lifecycle.events where action = 'condensed'").fetchone()
    assert told is not None
    assert "4,200 invoices" not in told[0]
    assert "Billing moved to Postgres" not in told[0]


def test_three_late_nights_leave_the_same_rows_as_nights_in_time(
    heart: Heart, owner: psycopg.Connection, night_database: Database, tmp_path: Path
) -> None:
    texts = {"title": "The move", "summary": "Billing moved to Postgres in May"}
    imported(heart, "late", **texts)
    run(night_database, tmp_path, *(LAST + timedelta(days=days) for days in range(3)))
    late = rows(owner, "episodes", "id", *VERSIONING)

    imported(heart, "in time", **texts)
    around_each_age = (6, 7, 8, 29, 30, 89, 90)
    run(night_database, tmp_path / "again", *((ENDED + timedelta(days=days)).date() for days in around_each_age))

    assert rows(owner, "episodes", "id", "created_at", *VERSIONING) == [
        {name: value for name, value in row.items() if name != "created_at"} for row in late * 2
    ]


def test_what_was_purged_is_not_taken_back(
    heart: Heart, owner: psycopg.Connection, night_database: Database, database_url: str, tmp_path: Path
) -> None:
    imported(heart, "the move", summary="Billing moved to Postgres in May")
    run(night_database, tmp_path, LAST)
    purging = Database(database_url, role="nous_purge", max_connections=1)
    purged = purge(purging, NightPolicy(cold_texts_kept_days=1), now=datetime.now(UTC) + timedelta(days=2))
    purging.close()
    condensed = rows(owner, "episodes")

    taken_back = undo(night_database, Selection(night=LAST), reason="too early")

    assert purged.cold_texts > 0
    assert (taken_back.undone, len(taken_back.refused)) == ((), 1)
    assert rows(owner, "episodes") == condensed


def test_a_night_run_again_moves_nothing(
    heart: Heart, owner: psycopg.Connection, night_database: Database, tmp_path: Path
) -> None:
    imported(heart, "the move")
    run(night_database, tmp_path, LAST)
    after = (rows(owner, "episodes"), rows(owner, "cold_texts"))

    assert run(night_database, tmp_path, LAST) == 0
    assert run(night_database, tmp_path / "again", LAST) == 0
    assert (rows(owner, "episodes"), rows(owner, "cold_texts")) == after
    assert end_of(LAST) - ENDED > timedelta(days=90)


def test_a_whole_night_condenses_the_episodes_of_each_agent_by_its_own_policy(
    heart: Heart, database: Database, owner: psycopg.Connection, database_url: str, tmp_path: Path
) -> None:
    other = Heart.open("ben", database=database, embedder=heart.agent.embedder, works_in_background=False)
    for each in (heart, other):
        imported(each, "the move")
    owner.execute(
        "insert into lifecycle.agent_policies (agent_id, policy) values ('ben', %s)",
        [Jsonb({name: 99 + place for place, name in enumerate(AGES)})],
    )

    with unrecorded() as instance:
        outcome = run_night(LAST, options(database_url, tmp_path), instance=instance)

    assert outcome.is_success, outcome.failures
    tiers = dict(owner.execute("select agent_id, compression_tier from heart.episodes").fetchall())
    assert tiers == {"aria": "summary", "ben": "raw"}
    files = NightFiles(folder_of(LAST, options(database_url, tmp_path)))
    assert set(files.read_table("episode_summaries")["agent_id"]) == {"aria"}
    assert files.read_phase("episode_tiers").unexplained() == {}
