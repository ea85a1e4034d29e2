"""Whatever is wrong with a night's files, disk, policy, agents, clock or schema: it says so and applies nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from night_crashes import contents, ended_at, night_outcome
from night_runs import NIGHT, facts_in, options, part_of, proposals_in, remember
from turns import TURN, in_turn

from nous_online.core.errors import InvalidInput, NotFound, Unsupported
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.erasure import erase_agent
from nous_pipelines.failpoints import go_on
from nous_pipelines.orchestration.running import folder_of
from nous_pipelines.snapshots.snapshot import TABLES, take_snapshot

READ = [name for name in TABLES if name != "cold_texts"]
"""The tables of a snapshot that a night reads; cold texts are kept in it for whoever looks back."""
COPIES = ("The office opens at nine.", "Cats like fish.") * 2


@pytest.fixture
def store(heart, owner):
    """Some facts said twice, and every table as it is before the night."""
    remember(heart, *COPIES)
    return contents(owner, without=())


@pytest.fixture
def folder(store, database_url, tmp_path):
    """Where the snapshot of the night lies, which has been taken."""
    path = folder_of(NIGHT, options(database_url, tmp_path))
    database = Database(database_url, role="nous_night")
    take_snapshot(database, path, night=NIGHT, probe_days=30)
    database.close()
    return path


@pytest.fixture
def run(database_url, tmp_path):
    """Run the night in this process, with something to do at its steps."""
    return lambda on_reach=go_on, night=NIGHT, **changes: night_outcome(
        database_url, tmp_path, night, on_reach, **changes
    )


def corrupt(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-20])


def remove(path):
    path.unlink()


@pytest.mark.parametrize(
    ("name", "spoil"),
    in_turn([(name, (corrupt, truncate, remove)[(place + TURN) % 3]) for place, name in enumerate(READ)], of=3),
)
def test_a_table_of_the_snapshot_that_can_not_be_read_stops_the_night(store, folder, run, owner, name, spoil):
    spoil(part_of(folder) / f"{name}.parquet")

    outcome = run()

    assert not outcome.is_success
    assert any(f"{name}.parquet" in failure and "can't be read" in failure for failure in outcome.failures)
    assert contents(owner, without=()) == store


@pytest.mark.parametrize("spoil", in_turn([corrupt, truncate, remove], of=3))
def test_the_most_read_table_stops_the_night_however_it_is_spoilt(store, folder, run, owner, spoil):
    spoil(part_of(folder) / "facts.parquet")

    outcome = run()

    assert any("facts.parquet" in failure for failure in outcome.failures)
    assert contents(owner, without=()) == store


@pytest.mark.parametrize(
    ("policy", "said"),
    [({"candidate_similarity": 2.0}, "between 0.5 and 1"), ({"no_such_field": 1.0}, "no field 'no_such_field'")],
)
def test_a_run_whose_policy_makes_no_sense_does_not_begin(store, run, owner, policy, said):
    with pytest.raises(InvalidInput, match=said):
        run(policy=policy)

    assert contents(owner, without=()) == store


def test_an_agent_whose_policy_makes_no_sense_stops_the_night_and_is_named(store, run, owner):
    owner.execute(
        "insert into lifecycle.agent_policies (agent_id, policy) values ('aria', %s)",
        [json.dumps({"summary_after_days": 40, "compressed_after_days": 30})],
    )
    before = contents(owner, without=())

    outcome = run()

    assert any("the policy of agent 'aria' makes no sense" in failure for failure in outcome.failures)
    assert contents(owner, without=()) == before


@pytest.fixture
def ben(store, database, embedder, judge):
    """Another agent that said the same things twice."""
    heart = Heart.open("ben", database=database, embedder=embedder, judge=judge)
    remember(heart, *COPIES)
    return heart


def erasing_at(point, heart):
    return ended_at(point, lambda _name: erase_agent(heart.agent.database.url, "ben", reason="asked to"))


def test_an_agent_erased_between_checks_and_apply_stops_the_night_for_all(ben, run, owner):
    aria = facts_in(owner, agent_id="aria", without=())

    outcome = run(erasing_at("checks written", ben))

    assert any("agent 'ben' is not known here" in failure for failure in outcome.failures)
    assert facts_in(owner, without=()) == aria
    assert proposals_in(owner) == {}


def test_an_agent_erased_right_after_the_snapshot_takes_no_part_in_the_night(ben, run, owner):
    outcome = run(erasing_at("snapshot in place", ben))

    assert outcome.is_success, outcome.failures
    assert owner.execute("select agent_id, count(*) from lifecycle.proposals group by agent_id").fetchall() == [
        ("aria", 2)
    ]


def test_a_night_that_has_not_begun_is_refused(store, run, owner):
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)

    with pytest.raises(InvalidInput, match="can't be run"):
        run(night=tomorrow)

    assert contents(owner, without=()) == store


def test_a_night_run_before_it_is_over_is_run_again_for_what_came_since_without_doing_anything_twice(
    heart, store, run, owner
):
    today = datetime.now(UTC).date()
    assert run(night=today).is_success
    done = contents(owner)

    assert run(night=today).is_success
    again = contents(owner)
    heart.learn_deferred([("Rain falls down.", {})] * 2)
    assert run(night=today).is_success

    kept = [table for table in done if table not in {"lifecycle.plans", "lifecycle.health"}]
    assert {table: again[table] for table in kept} == {table: done[table] for table in kept}
    active = [row["content"] for row in facts_in(owner).values() if row["state"] == "active"]
    assert sorted(active) == sorted([*{*COPIES}, "Rain falls down."])


def test_a_snapshot_from_a_clock_that_ran_ahead_still_tells_what_changed_since(heart, folder, run, owner):
    description = folder / "snapshot.json"
    values = json.loads(description.read_text("utf-8"))
    values["taken_at"] = (datetime.now(UTC) + timedelta(days=400)).isoformat()
    description.write_text(json.dumps(values), "utf-8")
    heart.learn(COPIES[0])

    outcome = run()

    assert outcome.is_success, outcome.failures
    states = dict(owner.execute("select state, count(*) from lifecycle.proposals group by state").fetchall())
    assert states == {"applied": 1, "stale": 1}


def test_a_schema_newer_than_the_code_stops_the_night_with_what_to_do(store, run, owner):
    owner.execute("insert into migration.applied (number, name, sha256) values (9999, 'from_the_future', 'x')")

    with pytest.raises(Unsupported, match=r"this version knows .* upgrade nous-pipelines"):
        run()

    assert contents(owner, without=()) == store


def test_a_night_for_an_agent_nobody_knows_does_not_begin(store, run, owner):
    with pytest.raises(NotFound, match="agent 'nobody' is not known here"):
        run(agent_ids=["nobody"])

    assert contents(owner, without=()) == store
