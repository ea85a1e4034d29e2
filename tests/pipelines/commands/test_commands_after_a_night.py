"""`nous report`, `diff` and `undo` of a night that has run, as somebody types them; each test has a copy of it."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
import typer
from click.testing import Result
from conftest import ScriptedJudge, WordEmbedder
from night_commands import BACKUPS, HERE, NINE, as_json, dagster_of_no_events, typed
from night_runs import facts_in, proposals_in, remember

from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories import facts
from nous_pipelines.plan.checks import CHECKS, NOBODY_LEFT_OUT


@dataclass(frozen=True)
class Ran:
    """A night that has run: its database and home, what it said, and the facts as they were before it."""

    database: str
    home: Path
    dagster_home: Path
    said: Result
    facts: dict[str, Any]


@pytest.fixture(scope="module")
def ran(server, admin, template, tmp_path_factory):
    name, home = f"ran_{uuid.uuid4().hex[:12]}", tmp_path_factory.mktemp("ran")
    admin.execute(f"create database {name} template {template} strategy file_copy")
    database = Database(server.dsn(name))
    remember(
        Heart.open("aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge()), NINE, NINE, *BACKUPS
    )
    database.close()
    with psycopg.connect(server.dsn(name), autocommit=True) as owner:
        before = facts_in(owner)
    with dagster_of_no_events() as dagster_home:
        with typed(server.dsn(name), home, dagster_home) as nous:
            said = nous("night", *HERE)
        yield Ran(name, home, dagster_home, said, before)
    admin.execute(f"drop database {name} with (force)")


@pytest.fixture
def database_url(copy_of, ran):
    with copy_of(ran.database) as url:
        yield url


@pytest.fixture
def nous(database_url, ran, tmp_path):
    """Run a command over a copy of the night's database and home, in process."""
    shutil.copytree(ran.home, tmp_path / "home")
    with typed(database_url, tmp_path / "home", ran.dagster_home) as command:
        yield command


def test_a_night_says_in_a_few_lines_what_it_did_and_how_to_take_it_back(ran, owner):
    assert ran.said.exit_code == 0, ran.said.output
    done = "1 memory merged into 1, 1 fact superseded; 4 → 2 active facts"
    assert f"night 2026-06-01: {done}" in ran.said.stdout
    assert "nous undo --night 2026-06-01" in ran.said.output
    assert sorted(proposals_in(owner).values()) == ["applied"] * 2


def came_when_said(owner):
    """Let the store have had everything when it was said."""
    owner.execute("set session_replication_role = replica")  # else no event can be changed
    owner.execute("update lifecycle.events set recorded_at = effective_at")


def test_status_and_doctor_say_which_night_was_the_last_and_what_was_missed(nous, heart, owner):
    before = as_json(nous("status", "--agent", "aria", "--json"))["nights"]
    heart.learn("The kettle is descaled", learned_at=datetime(2026, 6, 3, 9, tzinfo=UTC))
    came_when_said(owner)

    after = as_json(nous("status", "--agent", "aria", "--json"))["nights"]
    told, checked = nous("status", "--agent", "aria").output, nous("doctor").output

    assert before == {"last": "2026-06-01", "missed_from": None, "missed_changes": 0}
    assert after == {"last": "2026-06-01", "missed_from": "2026-06-03", "missed_changes": 1}
    missed = "nights have been missed since 2026-06-03 (changes that wait: 1): run `nous night --backfill`"
    assert f"the last was 2026-06-01 needs you {missed}" in " ".join(told.split())
    warned = "warning: nights were missed (agents that wait for one: 1): run `nous night --backfill`"
    assert f"the last was 2026-06-01; {warned}" in " ".join(checked.split())


def test_a_night_whose_files_are_elsewhere_is_not_said_to_have_never_run(nous, tmp_path):
    shutil.rmtree(tmp_path / "home" / "snapshots")

    answers = [nous(command, "--night", "2026-06-01") for command in ("report", "diff")]
    undone = nous("undo", "--night", "2026-06-01", "--reason", "a test")

    assert [each.exit_code for each in (*answers, undone)] == [1, 1, 0]
    for each in answers:
        told = " ".join(each.output.split())
        assert "night 2026-06-01 ran before these memories were brought here, or its files are gone" in told
        assert "take it back: nous undo --night 2026-06-01" in told


def test_what_came_today_about_earlier_days_waits_for_a_night_that_was_not_missed(nous, heart):
    heart.learn("The kettle is descaled", learned_at=datetime(2026, 6, 3, 9, tzinfo=UTC))

    nights, told = as_json(nous("status", "--agent", "aria", "--json"))["nights"], nous("status", "--agent", "aria")

    assert nights == {"last": "2026-06-01", "missed_from": None, "missed_changes": 1}
    checked = " ".join(nous("doctor").output.split())
    waits = "what came today about earlier days waits for a night (changes that wait: 1): run `nous night --backfill`"
    assert waits in " ".join(told.output.split())
    assert "what came today about earlier days waits for a night (agents: 1): run `nous night --backfill`" in checked


def test_what_was_said_on_the_day_of_a_night_after_it_ran_waits_for_another(nous, heart, owner):
    heart.learn("The kettle is descaled", learned_at=datetime(2026, 6, 1, 20, tzinfo=UTC))
    owner.execute("update lifecycle.health set measured_at = '2026-06-01T12:00:00Z'")
    came_when_said(owner)

    nights, checked = as_json(nous("status", "--agent", "aria", "--json"))["nights"], nous("doctor").output

    assert nights == {"last": "2026-06-01", "missed_from": "2026-06-01", "missed_changes": 1}
    assert "nights were missed (agents that wait for one: 1)" in " ".join(checked.split())


def test_doctor_counts_an_agent_that_the_last_night_left_out(nous, owner):
    owner.execute("delete from lifecycle.health where agent_id = 'aria'")
    came_when_said(owner)

    checked = nous("doctor").output

    assert "warning: nights were missed (agents that wait for one: 1)" in " ".join(checked.split())


def test_a_report_tells_what_was_merged_what_was_replaced_and_what_was_checked(nous):
    told, plain = nous("report", "--night", "2026-06-01"), as_json(nous("report", "--night", "2026-06-01", "--json"))

    for part in (NINE, *BACKUPS, "30", "nothing is lost: ", "pairs with known answers: "):
        assert part in told.stdout
    assert [(entry["kind"], entry["told"], entry["state"]) for entry in plain["entries"]] == [
        ("merge", [NINE, NINE], "applied"),
        ("supersede", [*BACKUPS], "applied"),
    ]
    assert {check["name"] for check in plain["checks"]} == {*CHECKS, NOBODY_LEFT_OUT}
    assert plain["counts"]["kept_apart"] == 0


def test_a_report_is_written_as_a_page_that_stands_for_itself(nous, tmp_path):
    page = tmp_path / "report.html"

    result = nous("report", "--night", "2026-06-01", "--html", str(page))
    (beside,) = (tmp_path / "home").rglob("report.html")

    assert result.exit_code == 0, result.output
    assert str(page) in " ".join(result.stderr.split())
    assert NINE in page.read_text()
    assert beside.read_text() == page.read_text()


def test_a_page_that_cannot_be_written_ends_in_one_line(nous, tmp_path):
    result = nous("report", "--night", "2026-06-01", "--html", str(tmp_path / "missing" / "report.html"))

    assert result.exit_code == 1
    assert "report.html can't be written" in " ".join(result.stderr.split())


def test_a_page_is_opened_when_asked(nous, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(typer, "launch", opened.append)

    nous("report", "--night", "2026-06-01", "--html", str(tmp_path / "report.html"), "--open")

    assert opened == [(tmp_path / "report.html").as_uri()]


def test_everything_of_one_kind_is_taken_back(nous, owner):
    others = nous("undo", "--night", "2026-06-01", "--kind", "archive", "--agent", "aria")
    merges = nous("undo", "--night", "2026-06-01", "--kind", "merge", "--agent", "aria")

    assert (others.exit_code, merges.exit_code) == (1, 0)
    assert "no applied proposal has" in " ".join(others.stderr.split())
    assert dict(owner.execute("select kind, state from lifecycle.proposals").fetchall()) == {
        "merge": "undone", "supersede": "applied",
    }  # fmt: skip


def add_agent(owner, name: str) -> None:
    """Add an agent without memories."""
    owner.execute(
        "insert into heart.agents (id, embedding_space_id) select %s, embedding_space_id from heart.agents", [name]
    )


def test_a_report_can_be_narrowed_to_an_agent(nous, owner):
    add_agent(owner, "ben")
    others = as_json(nous("report", "--night", "2026-06-01", "--agent", "ben", "--json"))

    assert (others["entries"], others["counts"]["active_before"]) == ([], 0)


def test_a_night_is_taken_back_and_its_report_says_so(ran, nous, owner):
    result = nous("undo", "--night", "2026-06-01", "--reason", "two offices")

    assert result.exit_code == 0, result.output
    assert "taken back  2 proposals" in result.stdout
    assert facts_in(owner) == ran.facts
    assert as_json(nous("report", "--night", "2026-06-01", "--json"))["entries"][0]["state"] == "undone"
    assert owner.execute("select outcome from lifecycle.proposals").fetchall() == [("two offices",)] * 2
    assert nous("undo", "--night", "2026-06-01").exit_code == 1


def test_a_report_says_that_its_figures_were_measured_before_changes_were_taken_back(nous, tmp_path):
    page = tmp_path / "report.html"
    note = "measured before 2 proposals of the night were taken back"
    assert "measured before" not in nous("report", "--night", "2026-06-01").stdout

    nous("undo", "--night", "2026-06-01")
    nous("night", *HERE)
    told = nous("report", "--night", "2026-06-01")
    nous("report", "--night", "2026-06-01", "--html", str(page))

    assert f"The store as the night left it ({note}): " in " ".join(told.stdout.split())
    assert note in page.read_text("utf-8")
    nous("night", *HERE, "--full")
    assert "measured before" not in nous("report", "--night", "2026-06-01").stdout


def test_a_dry_run_of_a_night_that_was_applied_says_so_and_that_nothing_would_be_done(nous):
    said = nous("night", *HERE, "--dry-run")
    (told,) = as_json(nous("night", *HERE, "--dry-run", "--json"))["nights"]

    assert "night 2026-06-01 was applied already: nothing would be done" in said.stdout
    assert "nous undo" not in said.output
    assert (told["was_applied"], told["counts"]["retired"], told["counts"]["superseded"]) == (True, 0, 0)


def test_one_proposal_is_taken_back_by_the_name_the_report_gives_it(nous, owner):
    merged = as_json(nous("diff", "--night", "2026-06-01", "--json"))["entries"]

    undone = as_json(nous("undo", "--proposal", merged[0]["proposal_id"], "--json"))

    assert undone == {"undone": [merged[0]["proposal_id"]], "refused": {}, "agents": ["aria"]}
    assert proposals_in(owner) == {merged[0]["proposal_id"]: "undone", merged[1]["proposal_id"]: "applied"}


def test_what_is_said_and_undone_of_a_night_is_of_the_agent_in_the_environment(nous, owner, monkeypatch):
    add_agent(owner, "basil")
    monkeypatch.setenv("NOUS_AGENT", "basil")
    settings.cache_clear()

    refused = nous("undo", "--night", "2026-06-01")
    told = [as_json(nous(command, "--night", "2026-06-01", "--json"))["entries"] for command in ("diff", "report")]
    named = as_json(nous("undo", "--night", "2026-06-01", "--kind", "merge", "--agent", "aria", "--json"))
    monkeypatch.setenv("NOUS_AGENT", "aria")
    settings.cache_clear()
    done = nous("undo", "--night", "2026-06-01")

    assert "no applied proposal has agent_id=basil, night=2026-06-01" in " ".join(refused.output.split())
    assert told == [[], []]
    assert named["agents"] == ["aria"]
    assert "1 proposal of aria" in done.stdout
    assert set(proposals_in(owner).values()) == {"undone"}


def test_what_others_built_on_is_refused_with_who_and_the_command_fails(heart, nous, owner):
    update = "The office opens at ten since June."
    kept = next(
        memory
        for memory, columns in facts_in(owner).items()
        if (columns["content"], columns["state"]) == (NINE, "active")
    )
    heart.agent.judge.verdicts = {}
    supersede(heart, kept, update)

    result = nous("undo", "--night", "2026-06-01")
    ranged = nous("undo", "--from", "2026-05-30", "--to", "2026-06-02")

    assert (result.exit_code, ranged.exit_code) == (1, 1)
    assert "ended at night 2026-06-01: those before it stand as they were" in " ".join(ranged.stdout.split())
    assert "refused" in result.stdout
    assert "undo that first" in " ".join(result.stdout.split())


def supersede(heart, memory, content):
    with heart.agent.database.transaction("aria") as connection:
        old = heart.get(UUID(memory))
        new = heart.learn(content).memory
        facts.supersede(connection, heart.agent, old=old, by=new, at=datetime.now(UTC), reason="a newer value")
