"""A night reads the rows of the agents that changed, and its snapshot is what reading all of them would give."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl
import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from examples import examples
from night_runs import NIGHT, SAID, remember
from turns import TURN

from nous_online.core.errors import NousError, Unavailable
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.erasure import Erasure
from nous_pipelines.nights import end_of
from nous_pipelines.orchestration.night_erasure import Redaction, erase_folder
from nous_pipelines.plan.night_tables import QueryScope, parsed_query, run_query, stored_nights
from nous_pipelines.snapshots import known_facts
from nous_pipelines.snapshots import snapshot as module
from nous_pipelines.snapshots.agent_chunks import FactReader
from nous_pipelines.snapshots.snapshot import Snapshot, open_snapshot, take_snapshot
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES

NEXT = NIGHT + timedelta(days=1)
NAMES = ("aria", "ben", "cleo", "dora")
PROBE_DAYS = 30


@pytest.fixture(autouse=True)
def none_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the facts of agents with two of them lie in several parts."""
    monkeypatch.setattr(known_facts, "GAP", 0)


@pytest.fixture
def hearts(database: Database) -> dict[str, Heart]:
    """Four agents who remember two facts each."""
    opened = {name: opened_heart(name, database) for name in NAMES}
    for name, heart in opened.items():
        remember(heart, f"{name} likes fish", f"{name} lives in Rome")
    return opened


def opened_heart(name: str, database: Database) -> Heart:
    return Heart.open(name, database=database, embedder=WordEmbedder(), judge=ScriptedJudge())


def taken(database: Database, folder: Path, night=NIGHT, *, probe_days: int = PROBE_DAYS) -> Snapshot:
    return take_snapshot(database, folder / f"night={night}", night=night, probe_days=probe_days, now=end_of(night))


def read_anew(database: Database, folder: Path, night=NEXT) -> Snapshot:
    """Take the same snapshot where no other lies."""
    return take_snapshot(
        database,
        folder / "anew" / f"night={night}",
        night=night,
        probe_days=PROBE_DAYS,
        now=end_of(night),
        is_whole=True,
    )


def placed(snapshot: Snapshot) -> dict[str, str]:
    return dict(snapshot.placed.select("agent_id", "part").iter_rows())


def changed_since(first: Snapshot, second: Snapshot) -> set[str]:
    """Return the agents whose rows were read again."""
    before = placed(first)
    return {name for name, part in placed(second).items() if before.get(name) != part}


def assert_same(one: Snapshot, other: Snapshot) -> None:
    """Of some agents, tables of each kind: spread over parts, full, mostly empty, and in no part."""
    for name in SNAPSHOT_TABLES:
        assert one.table(name).equals(other.table(name)), name
    for name in ("facts", "statements", "links", "agents"):
        for agents in ([], ["ben", "learned"], ["aria", "dora", "not-pinned", "pinned"]):
            assert one.table(name, agent_ids=agents).equals(other.table(name, agent_ids=agents)), name
    assert dict(one.counts) == dict(other.counts)


def test_a_night_reads_the_agents_that_changed_and_shares_the_rest(hearts, night_database, tmp_path):
    first = taken(night_database, tmp_path)
    remember(hearts["ben"], "ben lives in Paris")

    second = taken(night_database, tmp_path, NEXT)

    assert changed_since(first, second) == {"ben"}
    assert [part.counts["facts"] for part in second.parts.values()] == [8, 1]
    assert second.sizes("facts") == {"aria": 2, "ben": 3, "cleo": 2, "dora": 2}
    assert set(first.table("facts")["content"]) == set(second.table("facts")["content"]) - {"ben lives in Paris"}
    assert_same(second, read_anew(night_database, tmp_path))


def test_nothing_is_written_of_a_night_without_a_change(hearts, night_database, tmp_path):
    first = taken(night_database, tmp_path)

    second = taken(night_database, tmp_path, NEXT)

    assert placed(first) == placed(second)
    assert len(list(tmp_path.glob("part=*"))) == 1
    assert_same(second, read_anew(night_database, tmp_path))


CHANGES: dict[str, Callable[[Heart, psycopg.Connection, object], object]] = {
    "learned": lambda heart, owner, fact: remember(heart, "rain falls down"),
    "confirmed": lambda heart, owner, fact: heart.confirm_fact(fact),
    "pinned": lambda heart, owner, fact: heart.pin(fact),
    "forgotten": lambda heart, owner, fact: heart.forget(fact, reason="a change"),
    "recalled": lambda heart, owner, fact: heart.recall("who likes fish?", at=SAID + timedelta(days=25)),
    "an episode": lambda heart, owner, fact: heart.start_episode("a talk", started_at=SAID + timedelta(days=25)),
    "a censor": lambda heart, owner, fact: heart.add_censor("push to main", reason="it broke", learned_at=SAID),
    "a procedure": lambda heart, owner, fact: heart.store_procedure("Deploy", goals=["ship"]),
    "a policy": lambda heart, owner, fact: owner.execute(
        "insert into lifecycle.agent_policies values (%s, '{\"unused_after_days\": 30}')", [heart.agent.id]
    ),
    "a link": lambda heart, owner, fact: owner.execute(
        """insert into heart.links (agent_id, from_id, to_id, kind, weight, created_at)
           select agent_id, min(id::text)::uuid, max(id::text)::uuid, 'related', 0.5, %s
           from heart.facts where agent_id = %s group by agent_id""",
        [SAID, heart.agent.id],
    ),
    "removed without a trace": lambda heart, owner, fact: removed(owner, heart.agent.id, fact),
}


@pytest.mark.parametrize("seed", range(TURN, TURN + examples(1)))
def test_every_night_of_a_drawn_week_reads_as_one_that_reads_all(
    hearts, night_database, owner, tmp_path, monkeypatch, seed
):
    """By us and by queries, the nights before it, too: what changes lies apart from what stays, night after night."""
    monkeypatch.setattr(module, "MOST_PARTS", 4)
    draw = random.Random(seed)  # noqa: S311 - which changes to try
    nights = [NIGHT + timedelta(days=place) for place in range(7)]
    for night in nights:
        hearts["ben"].learn_deferred([(f"ben went to bed on {night}", {"learned_at": SAID})])
        for _ in range(draw.randrange(4)):
            name, change = draw.choice(NAMES), draw.choice(sorted({*CHANGES} - {"a procedure", "a censor", "a policy"}))
            facts = owner.execute("select id from heart.facts where agent_id = %s order by id", [name]).fetchall()
            with suppress(NousError, psycopg.IntegrityError, IndexError):  # not every change can be made twice
                CHANGES[change](hearts[name], owner, draw.choice(facts)[0])
        snapshot = taken(night_database, tmp_path, night)

        assert_same(snapshot, read_anew(night_database, tmp_path, night))

    asked = parsed_query("select night, agent_id, id, content, state, retrieved_count from facts order by all")
    for agent in (None, "ben"):
        whole, built = (stored_nights(root, asked.tables) for root in (tmp_path / "anew", tmp_path))
        with (
            run_query(asked, whole, night_database, QueryScope(agent)) as wanted,
            run_query(asked, built, night_database, QueryScope(agent)) as found,
        ):
            assert [*found.rows] == [*wanted.rows]
    assert any(part.others for night in nights for part in taken(night_database, tmp_path, night).parts.values())


def removed(owner: psycopg.Connection, agent_id: str, fact: object) -> None:
    with owner.transaction():
        owner.execute("set local session_replication_role = replica")
        owner.execute("delete from heart.statements where agent_id = %s and fact_id = %s", [agent_id, fact])
        owner.execute("delete from lifecycle.events where agent_id = %s and memory_id = %s", [agent_id, fact])
        owner.execute("delete from heart.facts where agent_id = %s and id = %s", [agent_id, fact])


def test_whatever_changes_is_read_again(database, night_database, owner, tmp_path, monkeypatch):
    """One agent for each change, and as many to whom nothing happens."""
    monkeypatch.setattr(module, "MOST_CHANGED", 1.0)
    names = [change.replace(" ", "-") for change in CHANGES]
    hearts = {name: opened_heart(name, database) for each in names for name in (each, f"not-{each}")}
    for heart in hearts.values():
        remember(heart, "Ana likes fish", "Ana lives in Rome")
    first = taken(night_database, tmp_path)
    for name, change in zip(names, CHANGES.values(), strict=True):
        (fact,) = owner.execute("select id from heart.facts where agent_id = %s order by id limit 1", [name]).fetchone()
        change(hearts[name], owner, fact)

    second = taken(night_database, tmp_path, NEXT)

    assert changed_since(first, second) == set(names)
    assert_same(second, read_anew(night_database, tmp_path))


def test_what_was_dated_after_the_earlier_night_is_read_although_nothing_was_written_since(
    hearts, night_database, owner, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "MOST_CHANGED", 1.0)
    hearts["aria"].learn_deferred([("aria moves to Oslo", {"learned_at": end_of(NIGHT) + timedelta(hours=1)})])
    hearts["ben"].recall("who likes fish?", at=end_of(NIGHT) + timedelta(hours=1))
    first = taken(night_database, tmp_path)

    second = taken(night_database, tmp_path, NEXT)

    assert first.counts["facts"] == 8
    assert changed_since(first, second) == {"aria", "ben"}
    assert_same(second, read_anew(night_database, tmp_path))


def test_a_recall_that_passes_out_of_reach_is_gone_from_the_next_night(hearts, night_database, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_CHANGED", 1.0)
    for name, days in (("dora", PROBE_DAYS), ("cleo", 365)):
        hearts[name].recall("who likes fish?", at=end_of(NEXT) - timedelta(days=days, minutes=5))
    first = taken(night_database, tmp_path)

    second = taken(night_database, tmp_path, NEXT)

    assert changed_since(first, second) == {"cleo", "dora"}
    assert_same(second, read_anew(night_database, tmp_path))


def test_a_late_commit_is_read_although_its_row_was_written_before(hearts, database_url, night_database, tmp_path):
    with psycopg.connect(database_url) as slow:
        slow.execute("insert into heart.links (agent_id, from_id, to_id, kind, weight, created_at) "
                     "values ('ben', gen_random_uuid(), gen_random_uuid(), 'related', 0.5, %s)", [SAID])  # fmt: skip
        remember(hearts["aria"], "a transaction that began later")
        first = taken(night_database, tmp_path)
        slow.commit()

    second = taken(night_database, tmp_path, NEXT)

    assert "ben" in changed_since(first, second)
    assert (first.counts["links"], second.counts["links"]) == (0, 1)
    assert_same(second, read_anew(night_database, tmp_path))


# --- another history ---


@pytest.fixture
def live(copy_of: Callable[[str], AbstractContextManager[str]], template: str) -> Iterator[str]:
    """A database that nobody keeps connections to, so that it can be copied."""
    with copy_of(template) as url:
        yield url


def test_a_backup_from_before_a_snapshot_is_read_as_a_whole(live, copy_of, tmp_path):
    """What it has since may bear the transaction ids and versions that other rows had."""
    name = urlsplit(live).path[1:]
    with closing(Database(live)) as database:
        for each in NAMES:
            remember(opened_heart(each, database), f"{each} likes fish")
    with copy_of(name) as restored:
        with closing(Database(live, role="nous_night")) as lost:
            with closing(Database(live)) as database:
                remember(opened_heart("ben", database), "ben lives in Rome")
            first = taken(lost, tmp_path)
        with closing(Database(restored, role="nous_night")) as night_database:
            second = taken(night_database, tmp_path, NEXT)

            assert changed_since(first, second) == set(NAMES)
            assert "ben lives in Rome" not in set(second.table("facts")["content"])
            assert_same(second, read_anew(night_database, tmp_path))


def test_a_backup_from_after_a_snapshot_builds_on_that_one_not_on_the_later(live, copy_of, tmp_path):
    name = urlsplit(live).path[1:]
    with closing(Database(live)) as database:
        for each in NAMES:
            remember(opened_heart(each, database), f"{each} likes fish")
    with closing(Database(live, role="nous_night")) as night_database:
        first = taken(night_database, tmp_path)
    with copy_of(name) as restored:
        with closing(Database(live)) as database, closing(Database(live, role="nous_night")) as lost:
            remember(opened_heart("ben", database), "ben lives in Rome")
            taken(lost, tmp_path, NEXT)
        with closing(Database(restored)) as database, closing(Database(restored, role="nous_night")) as night_database:
            remember(opened_heart("cleo", database), "cleo lives in Rome")

            third = taken(night_database, tmp_path, NEXT + timedelta(days=1))

            assert changed_since(first, third) == {"cleo"}
            assert_same(third, read_anew(night_database, tmp_path, NEXT + timedelta(days=1)))


def test_a_store_that_was_dumped_and_restored_is_read_as_a_whole(hearts, night_database, owner, tmp_path):
    """The mark is there again, but written by another transaction, as is every row."""
    first = taken(night_database, tmp_path)
    owner.execute("create table dumped as select * from lifecycle.snapshots")
    owner.execute("delete from lifecycle.snapshots")
    owner.execute("insert into lifecycle.snapshots select * from dumped")

    second = taken(night_database, tmp_path, NEXT)

    assert changed_since(first, second) == set(NAMES)


# --- when all is read again ---


def test_a_damaged_part_is_not_built_on(hearts, night_database, tmp_path):
    first, second = taken(night_database, tmp_path), taken(night_database, tmp_path, NEXT)
    assert placed(second) == placed(first)  # it was whole then
    (part,) = tmp_path.glob("part=*")
    (part / "facts.parquet").write_bytes(b"spoilt")
    later = NEXT + timedelta(days=1)

    third = taken(night_database, tmp_path, later)

    assert changed_since(second, third) == set(NAMES)
    assert_same(third, read_anew(night_database, tmp_path, later))


def test_after_some_parts_all_lies_in_one_again(hearts, night_database, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_PARTS", 3)
    counts = []
    for place in range(5):
        night = NIGHT + timedelta(days=place)
        counts.append(len(taken(night_database, tmp_path, night).parts))
        remember(hearts[NAMES[place % 4]], f"number {place}")

    assert counts == [1, 2, 3, 1, 2]
    assert_same(taken(night_database, tmp_path, NIGHT + timedelta(days=5)), read_anew(
        night_database, tmp_path, NIGHT + timedelta(days=5)))  # fmt: skip


def test_where_most_changed_all_is_read(hearts, night_database, tmp_path):
    first = taken(night_database, tmp_path)
    for name in NAMES[:3]:
        remember(hearts[name], "rain falls down", "snow falls down", "hail falls down", "sleet falls down")

    second = taken(night_database, tmp_path, NEXT)

    assert changed_since(first, second) == set(NAMES)
    assert len(second.parts) == 1


def test_where_most_agents_changed_but_few_of_their_facts_the_others_stay_where_they_lie(
    hearts, night_database, tmp_path
):
    first = taken(night_database, tmp_path)
    for name in NAMES[:3]:
        remember(hearts[name], "rain falls down")

    second = taken(night_database, tmp_path, NEXT)

    assert changed_since(first, second) == set(NAMES)
    assert sorted(part.counts["facts"] for part in second.parts.values()) == [3, 8]
    assert_same(second, read_anew(night_database, tmp_path))


def test_the_facts_of_a_small_agent_lie_in_one_part(hearts, night_database, tmp_path, monkeypatch):
    monkeypatch.setattr(known_facts, "GAP", 3)
    taken(night_database, tmp_path)
    remember(hearts["ben"], "ben lives in Paris")

    second = taken(night_database, tmp_path, NEXT)

    assert [part.others for part in second.parts.values()] == [(), ()]
    assert_same(second, read_anew(night_database, tmp_path))


def test_other_days_of_recalls_are_read_as_a_whole(hearts, night_database, tmp_path):
    first = taken(night_database, tmp_path)

    second = taken(night_database, tmp_path, NEXT, probe_days=7)

    assert changed_since(first, second) == set(NAMES)


def test_a_snapshot_that_was_written_into_one_folder_is_read_and_not_built_on(hearts, night_database, tmp_path):
    first = taken(night_database, tmp_path)
    (part,) = first.parts.values()
    for path in part.folder.glob("*.parquet"):
        path.rename(first.folder / path.name)
    values = json.loads((first.folder / "snapshot.json").read_text("utf-8"))
    checksums = {**part.checksums, "agents": values["checksums"]["agents"]}
    counts = {**part.counts, "agents": len(NAMES)}
    old = {"format": 4, "night": values["night"], "taken_at": values["taken_at"], "counts": counts, "late": []}
    (first.folder / "snapshot.json").write_text(json.dumps({**old, "checksums": checksums}), "utf-8")

    again, second = taken(night_database, tmp_path), taken(night_database, tmp_path, NEXT)

    assert again.is_final
    assert_same(again, read_anew(night_database, tmp_path, NIGHT))
    assert len(second.parts) == 1
    assert "" not in second.parts
    assert datetime.now(UTC) > again.taken_at


def test_what_is_dated_after_both_nights_is_read_again_in_neither(hearts, night_database, tmp_path):
    long_after = SAID + timedelta(days=60)
    hearts["ben"].learn_deferred([("ben lives in Paris", {"learned_at": long_after})])
    hearts["cleo"].recall("who likes fish?", at=long_after)
    hearts["dora"].start_episode("a talk", started_at=long_after)
    first = taken(night_database, tmp_path)

    second = taken(night_database, tmp_path, NEXT)

    assert changed_since(first, second) == set()
    assert_same(second, read_anew(night_database, tmp_path))


def test_what_is_dated_between_the_nights_is_read_again(hearts, night_database, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_CHANGED", 1.0)
    between = end_of(NIGHT) + timedelta(hours=9)
    hearts["ben"].learn_deferred([("ben lives in Paris", {"learned_at": between})])
    hearts["cleo"].recall("who likes fish?", at=between)
    hearts["dora"].start_episode("a talk", started_at=between)
    first = taken(night_database, tmp_path)

    second = taken(night_database, tmp_path, NEXT)

    assert changed_since(first, second) == {"ben", "cleo", "dora"}
    assert_same(second, read_anew(night_database, tmp_path))


def test_what_is_erased_is_gone_from_a_night_whose_facts_lie_in_several_parts(hearts, night_database, owner, tmp_path):
    taken(night_database, tmp_path)
    remember(hearts["ben"], "ben lives in Paris")
    second = taken(night_database, tmp_path, NEXT)
    before = second.table("facts")
    (gone,) = owner.execute("select id::text from heart.facts where content = 'ben likes fish'").fetchone()
    erasure = Erasure("", "ben", frozenset({"ben likes fish", gone}), is_dry_run=False, ids=frozenset({gone}))

    for folder in (*tmp_path.glob("part=*"), *tmp_path.glob("night=*")):
        erase_folder(folder, Redaction("ben", erasure.quotations, ids=erasure.ids), erasure)

    built = open_snapshot(second.folder)
    assert built is not None
    assert built.table("facts").equals(before.filter(pl.col("id") != gone))
    assert built.sizes("facts")["ben"] == 2
    assert not any(gone.encode() in path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file())


def test_a_night_of_which_an_erasure_left_half_is_refused_not_read_with_rows_of_others(
    hearts, night_database, owner, tmp_path
):
    taken(night_database, tmp_path)
    remember(hearts["ben"], "ben lives in Paris")
    second = taken(night_database, tmp_path, NEXT)
    (gone,) = owner.execute("select id::text from heart.facts where content = 'ben likes fish'").fetchone()
    erasure = Erasure("", "ben", frozenset({"ben likes fish", gone}), is_dry_run=False, ids=frozenset({gone}))
    (base,) = second.parts[dict(second.placed.select("agent_id", "part").iter_rows())["ben"]].others

    erase_folder(tmp_path / f"part={base}", Redaction("ben", erasure.quotations, ids=erasure.ids), erasure)

    built = open_snapshot(second.folder)
    assert built is not None
    with pytest.raises(Unavailable, match="names 1 facts that the parts lack"):
        built.table("facts")


def test_facts_that_were_held_are_those_of_the_snapshot(hearts, night_database, tmp_path):
    taken(night_database, tmp_path)
    remember(hearts["ben"], "ben learned to sail")
    second, reader = taken(night_database, tmp_path, NEXT), FactReader()

    for agents in (["ben"], ["ben"], ["ben"], ["aria"], ["aria", "ben"], ["aria", "ben"]):
        for columns in (["id", "embedding", "agent_id"], ["agent_id", "state"], ["agent_id", "embedding"]):
            found = reader.read(second, columns, agents)

            assert found.equals(second.table("facts", columns=columns, agent_ids=agents))
            assert sum(column.null_count() for column in found) == 0
