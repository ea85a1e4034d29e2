"""A night is logical: an imported history ages as one that was lived, and no night run again changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from lives_of_nights import Life, life
from night_runs import options, store_in_time
from psycopg.types.json import Jsonb

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.episodes import new_episode, store_deferred
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.running import run_night
from nous_pipelines.snapshots.snapshot import open_snapshot

FIRST = date(2026, 3, 1)
COUNT = 6
NIGHTS = [FIRST + timedelta(days=offset) for offset in range(COUNT)]
POLICY = {
    "candidate_similarity": 0.7, "neighbour_similarity": 0.6, "summary_after_days": 1, "compressed_after_days": 2,
    "fossil_after_days": 3, "superseded_grace_days": 2, "unused_after_days": 3, "unused_asked_days": 1,
    "unused_return_share": 1.0,
}  # fmt: skip
"""Ages short enough for every phase to have something to do within the nights."""
FACTS = (
    (0, "a", "The office opens at nine."), (0, "b", "Backups are kept for 30 days."), (1, "d", "Cats like fish."),
    (1, "c", "The office opens at nine."), (2, "e", "Backups are kept for 14 days."), (2, "g", "Cats like fish"),
    (2, "f", "The office opens at nine"), (3, "h", "The release train leaves on Monday."),
    (4, "i", "Backups are kept for 7 days."),
    (4, "j", "The office opens at eight."), (5, "k", "Rain falls in Lima."), (5, "l", "Cats like fish!"),
)  # fmt: skip
EPISODES = ((1, "p", 'We moved to the "new" office.\nEverybody was there.\nIt rained: ü 🚚.'), (2, "q", "A call."))
RECALLS = ((2, ("a", "d"), ("a",), ()), (3, ("a", "h", "p"), ("a", "p"), ("h",)), (5, ("k", "j"), (), ("k",)))
RECALLED = ((2, "when does the office open?"), (3, "what happened at the office?"), (5, "what about rain?"))


def at(day: int, hour: int = 9) -> datetime:
    return datetime.combine(FIRST + timedelta(days=day), time(hour), UTC)


def happens(url: str, days: range) -> None:
    """Tell the agent what these days brought, in time."""
    database = Database(url)
    heart = Heart.open(
        "aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), works_in_background=False
    )
    facts = [(text, {"learned_at": at(day), "idempotency_key": key}) for day, key, text in FACTS if day in days]
    told = [
        new_episode(text, {"title": text[:6], "summary": text[:20], "started_at": at(day), "idempotency_key": key},
                    now=at(day))
        for day, key, text in EPISODES if day in days
    ]  # fmt: skip
    if facts:
        heart.learn_deferred(facts)
    if told:
        store_deferred(heart.agent, told, heart.agent.deadline(None))
    for day, practise in ((2, fails), (4, cries_wolf)):
        if day in days:
            with psycopg.connect(url, autocommit=True) as owner:
                owner.execute("select setval('public.ids', %s)", [day * 1000])
            practise(heart)
    heart.close()
    database.close()
    with psycopg.connect(url, autocommit=True) as owner:
        store_in_time(owner)
        for (day, found, cited, ignored), (_, query) in zip(RECALLS, RECALLED, strict=True):
            if day in days:
                recalled(owner, at(day), query, found, cited, ignored)


def fails(heart: Heart) -> None:
    """Use a procedure, in vain, all of one day."""
    deploy = heart.store_procedure("Deploy", goals=["ship"], learned_at=at(2))
    for hour in range(10, 17):
        heart.record_procedure_failure(deploy.id, at=at(2, hour))


def cries_wolf(heart: Heart) -> None:
    """Set off a censor for nothing, all of one day."""
    censor = heart.add_censor("drop table", "it is gone then", is_literal=True, learned_at=at(4))
    for hour in range(10, 15):
        heart.check_censors(f"drop table users_{hour}", at=at(4, hour))
        heart.report_false_positive(censor.id, at=at(5, hour))


def recalled(owner, moment, query, found, cited, ignored):
    """Store what was recalled and used, and count it."""
    ids = dict(owner.execute("select idempotency_key, memory_id from heart.requests").fetchall())
    owner.execute(
        "insert into heart.recalls (agent_id, recalled_at, query, result_limit, result_ids, cited_ids, ignored_ids)"
        " values ('aria', %s, %s, 5, %s, %s, %s)",
        [moment, query, *([ids[key] for key in keys] for keys in (found, cited, ignored))],
    )
    for key in found:
        owner.execute(
            "insert into heart.usage values ('aria', %s, %s, 1, %s, %s, %s) on conflict (agent_id, memory_id) do update"
            " set retrieved_count = usage.retrieved_count + 1, cited_count = usage.cited_count + excluded.cited_count,"
            " ignored_count = usage.ignored_count + excluded.ignored_count,"
            " last_used_at = greatest(usage.last_used_at, excluded.last_used_at)",
            [ids[key], "episode" if key in "pq" else "fact", int(key in cited), int(key in ignored), moment],
        )


@pytest.fixture(scope="module")
def imported(server, template, tmp_path_factory) -> Iterator[Life]:
    """Everything is told first, then every night is run."""
    with life(server, template, tmp_path_factory.mktemp("imported"), policy=POLICY) as one:
        happens(one.url, range(COUNT))
        for night in NIGHTS:
            one.sleep(night)
        yield one


@pytest.fixture(scope="module")
def lived(server, template, tmp_path_factory) -> Iterator[Life]:
    """Each night is run when its day is over, and nobody knows what comes."""
    with life(server, template, tmp_path_factory.mktemp("lived"), policy=POLICY) as one:
        for day, night in enumerate(NIGHTS):
            happens(one.url, range(day, day + 1))
            one.sleep(night)
        yield one


def test_backfilling_an_imported_history_leaves_what_living_it_would_have_left(imported: Life, lived: Life):
    left = lived.state()

    assert imported.state() == left
    assert not [text for text in left["lifecycle.proposals"] if '"state": "applied"' not in text]


def test_the_history_gives_every_kind_of_work_something_to_do(lived: Life):
    with psycopg.connect(lived.url) as owner:
        kinds = {row[0] for row in owner.execute("select kind from lifecycle.proposals where state = 'applied'")}

    assert kinds >= {"merge", "supersede", "archive", "tier", "censor", "procedure"}


def test_every_night_saw_the_same_whether_lived_or_backfilled(imported: Life, lived: Life):
    once, again = lived.snapshots(), imported.snapshots()

    assert list(once) == list(again)
    for name, snapshot in once.items():
        for table in ("facts", "episodes", "procedures", "censors", "uses", "contradictions", "links"):
            assert again[name].table(table).equals(snapshot.table(table)), (name, table)


def test_running_a_night_again_changes_nothing(imported: Life):
    before = imported.state()

    imported.sleep(NIGHTS[-1])

    assert imported.state() == before


@pytest.mark.parametrize("night", [NIGHTS[2], NIGHTS[-1]])
def test_a_missing_snapshot_is_rebuilt_as_it_was(imported: Life, night: date):
    folder = imported.snapshots()[f"night={night}"].folder
    aside = folder.rename(folder.with_name(f"night={night}.taken-by-a-test"))
    before = imported.state()

    imported.sleep(night)

    original, rebuilt = open_snapshot(aside), open_snapshot(folder)
    assert original
    assert rebuilt
    mark = [] if night == NIGHTS[-1] else ["is_rewound"]
    for table in original.counts:
        found, taken = (each.table(table).drop(mark, strict=False) for each in (rebuilt, original))
        if mark and table == "links":  # later nights have linked more since
            found = found.join(taken, on=found.columns, how="semi", maintain_order="left")
        assert found.equals(taken), table
    assert imported.state() == before


def test_a_past_night_run_again_changes_nothing_and_overwrites_no_snapshot_with_what_is_known_today(imported: Life):
    night = NIGHTS[3]
    folder = imported.snapshots()[f"night={night}"].folder
    before = {
        path: path.read_bytes() for path in (*folder.parent.glob("part=*/*.parquet"), *folder.glob("*.parquet"))
    }  # fmt: skip
    database = Database(imported.url)
    heart = Heart.open(
        "aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), works_in_background=False
    )
    heart.learn_deferred([("Snow falls in Oslo.", {"learned_at": at(COUNT + 3)})])
    heart.close()
    database.close()

    state = imported.state()

    imported.sleep(night)

    assert {path: path.read_bytes() for path in before} == before
    assert imported.state() == state


HASTY = {"unused_after_days": 5, "unused_asked_days": 0, "unused_return_share": 1.0}


def test_two_agents_of_different_policies_are_each_treated_by_their_own(database_url, owner, tmp_path):
    database = Database(database_url)
    for name in ("hasty", "patient"):
        heart = Heart.open(name, database=database, embedder=WordEmbedder(), judge=ScriptedJudge())
        heart.learn_deferred([("Rain falls in Lima.", {"learned_at": at(0)})])
        heart.close()
    database.close()
    store_in_time(owner)
    owner.execute("insert into lifecycle.agent_policies values ('hasty', %s)", [Jsonb(HASTY)])
    with unrecorded() as instance:
        assert run_night(FIRST + timedelta(days=COUNT), options(database_url, tmp_path), instance=instance).is_success

    states = dict(owner.execute("select agent_id, state from heart.facts").fetchall())
    (policy,) = owner.execute("select policy from lifecycle.plans").fetchone()
    assert states == {"hasty": "archived", "patient": "active"}
    assert (policy["unused_after_days"], policy["agents"]) == (90, {"hasty": HASTY})
