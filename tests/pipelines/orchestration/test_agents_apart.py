"""No agent pays for another: one that comes late gets its nights, and one that fails leaves the others theirs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from night_runs import NIGHT, POLICY, SAID, facts_in, options, remember
from psycopg.types.json import Jsonb

from nous_online.core.errors import Refused
from nous_online.heart import Heart
from nous_pipelines import failpoints
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.night_erasure import Redaction
from nous_pipelines.orchestration.running import folder_of, nights_to_run, read_report, run_night
from nous_pipelines.plan.checks import NOBODY_LEFT_OUT
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.reports.html_report import page_of
from nous_pipelines.reports.text_reports import markdown_of

NINE = "The office opens at nine."
RAIN = "Rain falls down."
TEAMS = (
    "Team Blue reports to Team Green every Monday at the office.",
    "Team Green reports to Team Blue every Monday at the office.",
)
OF_NIGHT = ("neighbours", "judgements", "copies", "duplicate_clusters", "usage_ranks")


@pytest.fixture(scope="module")
def instance():
    with unrecorded() as one:
        yield one


@pytest.fixture
def run(database_url, instance, tmp_path):
    """Run a night of this test's database."""
    return lambda night=NIGHT, **changes: run_night(
        night, options(database_url, tmp_path, **changes), instance=instance
    )


@pytest.fixture
def opened(database, embedder, judge):
    """Open the memory of an agent by name."""
    return lambda agent_id: Heart.open(agent_id, database=database, embedder=embedder, judge=judge)


def damage(owner, agent_id):
    """Give the first two facts of an agent vectors that can't be compared."""
    owner.execute("set session_replication_role = replica")
    for place, vector in enumerate(("[1,0]", "[1,0,0]")):
        owner.execute(
            "update heart.facts set embedding = %s, embedding_space_id = 'damaged'"
            " where agent_id = %s and learned_at = %s",
            [vector, agent_id, SAID + timedelta(days=place)],
        )
    owner.execute("set session_replication_role = default")


def fail():
    raise Refused("the power is out")


def states(owner, agent_id):
    return sorted(row["state"] for row in facts_in(owner, agent_id=agent_id).values())


def test_memories_that_come_after_a_night_has_run_are_done_when_it_runs_again_and_the_others_are_not_done_twice(
    opened, run, owner, database_url, tmp_path
):
    aria, now = opened("aria"), datetime(2026, 5, 3, 3, tzinfo=UTC)
    remember(aria, NINE, NINE)
    ran = [NIGHT - timedelta(days=31), NIGHT - timedelta(days=30)]
    for night in ran:
        assert run(night).report.late == {}
    kept = facts_in(owner, agent_id="aria", without=())
    assert nights_to_run(options(database_url, tmp_path), now=now) == []
    remember(opened("ben"), RAIN, RAIN, learned_at=SAID)
    remember(aria, "Cats like fish.", learned_at=SAID + timedelta(days=1))

    due = nights_to_run(options(database_url, tmp_path), now=now)
    due_of_aria = nights_to_run(options(database_url, tmp_path, agent_ids=("aria",)), now=now)
    dry = run(ran[0], is_dry_run=True)
    narrowed = run(ran[0], agent_ids=("aria",))
    again = run(ran[0])

    assert (due, due_of_aria) == (ran, ran[1:])
    assert (dry.report.unseen, narrowed.report.late, again.report.late) == ({"ben": 2}, {}, {"ben": 2})
    assert dry.report.summary.endswith("not seen by a dry run, since they came after the night: ben (2)")
    assert again.is_success, again.failures
    assert "this run took in memories that came after the night had run: ben (2)" in again.report.summary
    assert states(owner, "ben") == ["active", "superseded"]
    now_known = facts_in(owner, agent_id="aria", without=())
    assert {memory: now_known[memory] for memory in kept} == kept
    assert nights_to_run(options(database_url, tmp_path), now=now) == ran[1:]
    assert run(ran[1]).is_success
    assert nights_to_run(options(database_url, tmp_path), now=now) == []


def test_a_run_for_one_agent_keeps_what_the_night_found_of_the_others(opened, run, tmp_path, database_url):
    for name in ("aria", "ben"):
        remember(opened(name), NINE, NINE, *TEAMS)

    def found():
        path = folder_of(NIGHT, options(database_url, tmp_path))
        tables = {name: NightFiles(path).read_table(name) for name in OF_NIGHT}
        return {name: table.group_by("agent_id").len().sort("agent_id").rows() for name, table in tables.items()}

    def told(*agent_ids):
        report = read_report(NIGHT, options(database_url, tmp_path, agent_ids=agent_ids))
        return report.active_by_agent, report.counts, report.accounts, report.kept_apart, report.policy

    assert run().is_success
    tables, of_all, of_aria = found(), told(), told("aria")
    assert [each.agent_id for each in of_all[3]] == ["aria", "ben"]

    assert run(agent_ids=("ben",)).is_success
    assert (found(), told()) == (tables, of_all)

    remember(opened("ben"), RAIN, RAIN)
    assert run(agent_ids=("ben",), policy={"candidate_similarity": 0.99}).report.late == {"ben": 2}
    active, counts, _, apart, policy = told()
    assert active == {"aria": 4, "ben": 6}
    assert (counts["merges"], [each.agent_id for each in apart]) == (3, ["aria", "ben"])
    assert (policy.changed, policy.agents) == (POLICY, {"ben": {"candidate_similarity": 0.99}})
    assert told("aria") == of_aria
    assert {name: [row for row in rows if row[0] == "aria"] for name, rows in found().items()} == {
        name: [row for row in rows if row[0] == "aria"] for name, rows in tables.items()
    }


def test_a_run_for_one_agent_finds_nothing_twice_of_another_at_rest(opened, run, tmp_path, database_url):
    remember(opened("aria"), TEAMS[0], TEAMS[1])
    remember(opened("ben"), NINE, NINE, *TEAMS)
    later = NIGHT + timedelta(days=2)
    run_of = options(database_url, tmp_path)
    for night in (NIGHT, NIGHT + timedelta(days=1), later):
        assert run(night).is_success
    with run_of.night_run().opened() as night_run:
        assert night_run.agents_at_rest(later).agent_ids == {"aria", "ben"}
    files = NightFiles(folder_of(later, run_of))
    pairs, accounts = files.read_table("judgements"), read_report(later, run_of).accounts

    assert run(later, agent_ids=("ben",)).is_success

    assert files.read_table("judgements").sort("agent_id").equals(pairs.sort("agent_id"))
    assert read_report(later, run_of).accounts == accounts


def test_a_run_for_one_agent_that_fails_leaves_the_others_what_the_night_found_of_them(
    opened, run, tmp_path, database_url, monkeypatch
):
    for name in ("aria", "ben"):
        remember(opened(name), NINE, NINE, *TEAMS)
    assert run().is_success
    told = options(database_url, tmp_path, agent_ids=("aria",))
    before = read_report(NIGHT, told)
    remember(opened("ben"), RAIN, RAIN)

    for point in ("snapshot in place", "phases read", "plan written"):
        monkeypatch.setattr(failpoints, "on_reach", lambda name, point=point: fail() if name == point else None)
        failed = run(agent_ids=("ben",))
        monkeypatch.undo()
        assert failed.is_stopped
    again = read_report(NIGHT, told)
    assert (again.accounts, again.kept_apart, again.active_by_agent, again.counts) == (
        before.accounts, before.kept_apart, before.active_by_agent, before.counts
    )  # fmt: skip

    assert run(agent_ids=("ben",)).is_success
    assert read_report(NIGHT, told).accounts == before.accounts


def test_agents_that_a_check_a_step_or_their_policy_stops_are_left_out_and_the_others_have_their_night(
    opened, run, owner, instance
):
    remember(opened("aria"), NINE, NINE)
    remember(opened("ben"), *[RAIN] * 25)
    for name in ("cleo", "dan"):
        remember(opened(name), NINE, RAIN, NINE)
    damage(owner, "cleo")
    owner.execute("insert into lifecycle.agent_policies values ('dan', %s)", [Jsonb({"compressed_after_days": 1})])
    before = {name: facts_in(owner, agent_id=name, without=()) for name in ("ben", "cleo", "dan")}

    outcome = run()
    report, (failure,) = outcome.report, outcome.failures

    assert (outcome.is_success, outcome.is_stopped) == (False, False)
    assert [(each.agent_id, each.step) for each in report.left_out] == [
        ("dan", "policy"), ("cleo", "neighbours"), ("ben", "blast_radius")
    ]  # fmt: skip
    assert failure.startswith(
        "check nobody_left_out: left out of the night, 3: dan (policy: the policy of agent 'dan' "
    )
    assert report.summary.endswith("; left out: dan (policy), cleo (neighbours), ben (how much would leave)")
    assert (report.counts["merges"], report.counts["left_out"], report.stopped) == (1, 1, ())
    (held,) = report.not_in_force
    assert (held.agent_id, held.state) == ("ben", "left_out")
    assert held.outcome == "its agent was left out (how much would leave)"
    assert "Left out: ben" in page_of(report)
    assert "- ben: how much would leave: " in markdown_of(report)
    assert "ben" not in Redaction("ben", ()).text(markdown_of(report) + failure)
    assert all(each["passed"] for each in report.checks if each["name"] != NOBODY_LEFT_OUT)
    assert instance.get_run_by_id(outcome.run_id).is_success
    assert states(owner, "aria") == ["active", "superseded"]
    assert {name: facts_in(owner, agent_id=name, without=()) for name in before} == before
    assert owner.execute("select agent_id from lifecycle.health").fetchall() == [("aria",)]

    owner.execute("delete from lifecycle.agent_policies where agent_id = 'dan'")
    later = run(NIGHT + timedelta(days=1), policy={**POLICY, "max_leaving_share": 1})

    assert [each.agent_id for each in later.report.left_out] == ["cleo"]
    assert (states(owner, "ben").count("active"), states(owner, "dan").count("active")) == (1, 2)
