"""`nous night` and `diff`, and what the commands of nights refuse, as somebody types them."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime, timedelta

import pytest
from forks import started, typed_line
from night_commands import HERE, NINE, as_json, dagster_of_no_events, typed
from night_runs import facts_in, proposals_in, remember

from nous_online.heart import Heart
from nous_pipelines.plan.checks import CHECKS, CheckResult


@pytest.fixture(scope="module")
def dagster_home():
    with dagster_of_no_events() as home:
        yield home


@pytest.fixture
def nous(database_url, dagster_home, tmp_path):
    """Run a command over this test's database, in process."""
    with typed(database_url, tmp_path / "home", dagster_home) as command:
        yield command


def test_nights_are_backfilled_in_order_and_told_to_machines_in_json(heart, nous):
    remember(heart, NINE, NINE)

    told = as_json(nous("night", "--from", "2026-05-01", "--to", "2026-05-02", "--json"))

    nights = told["nights"]
    assert told["not_over"] == []
    assert [(night["night"], night["counts"]["retired"]) for night in nights] == [("2026-05-01", 0), ("2026-05-02", 1)]
    assert [(night["is_success"], night["failures"], len(night["plan_hash"])) for night in nights] == [
        (True, [], 64)
    ] * 2


def test_a_night_of_a_day_that_is_not_over_says_what_it_leaves_out(heart, nous):
    heart.learn("The kettle is descaled")
    today = datetime.now(UTC).date().isoformat()

    told, plain = nous("night", "--date", today), as_json(nous("night", "--date", today, "--json"))
    tried = nous("night", "--date", today, "--dry-run")

    (warned,) = [line for line in told.stderr.splitlines() if "warning" in line]
    assert warned.startswith(f"warning: the day of night {today} ends at midnight UTC")
    assert f"nous night --date {today} again" in warned
    assert f"night {today}: " in told.stdout
    assert plain["not_over"] == [today]
    assert "warning" not in tried.stderr


def test_a_dry_run_is_recorded_nowhere_can_be_looked_at_and_changes_nothing(heart, nous, owner, monkeypatch, tmp_path):
    remember(heart, NINE, NINE)
    before = facts_in(owner, without=())
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "no Dagster here"))

    dry, shown = nous("night", *HERE, "--dry-run"), nous("diff", "--night", "2026-06-01")

    assert "this would be done: 1 memory merged into 1" in dry.stdout
    assert "nous undo" not in dry.output
    assert shown.exit_code == 0
    assert f"{NINE}   active → superseded by “{NINE}”" in shown.stdout
    assert facts_in(owner, without=()) == before


def test_a_night_that_its_checks_stop_says_what_to_do_and_the_nights_after_it_wait(heart, nous, owner, monkeypatch):
    remember(heart, NINE, NINE)
    before = facts_in(owner, without=())
    stopped = CheckResult(passed=False, description="aria: 1 of 2 memories would leave")
    monkeypatch.setitem(CHECKS, "blast_radius", lambda _: stopped)

    result = nous("night", "--from", "2026-06-01", "--to", "2026-06-02")
    spoken = nous("night", "--from", "2026-06-01", "--to", "2026-06-02", "--json")
    report = nous("report", "--night", "2026-06-01")

    assert (result.exit_code, spoken.exit_code) == (1, 1)
    failure, said = "check blast_radius: aria: 1 of 2 memories would leave", " ".join(result.stderr.split())
    assert "check “how much would leave”: aria: 1 of 2 memories would leave" in said
    assert "what to do about “how much would leave”: Look at" in said
    assert "blast_radius" not in said + report.stdout
    assert "max_leaving_share (0.4 now)" in said
    assert "2026-06-02" not in result.output
    (night,) = as_json(spoken)["nights"]
    assert night["failures"] == [failure]
    assert facts_in(owner, without=()) == before
    told = " ".join(report.stdout.split())
    assert "stopped by the check “how much would leave”: nothing was applied" in told
    assert "what to do: Look at what would leave (nous diff)" in told


def test_a_night_that_leaves_somebody_out_goes_on_names_them_and_ends_with_an_exit_code_of_its_own(
    heart, nous, database, embedder, judge
):
    remember(heart, *["Rain falls down."] * 25)
    remember(Heart.open("ben", database=database, embedder=embedder, judge=judge), NINE, NINE)
    spoken = nous("night", "--from", "2026-06-01", "--to", "2026-06-02", "--json")
    told, shown = nous("night", "--date", "2026-06-02"), nous("report", "--night", "2026-06-01")

    first, second = as_json(spoken)["nights"]
    assert (spoken.exit_code, told.exit_code, shown.exit_code) == (3, 3, 0)
    assert [each["is_success"] for each in (first, second)] == [False, False]
    assert [(each["agent_id"], each["step"]) for each in first["left_out"]] == [("aria", "blast_radius")]
    assert first["counts"]["retired"] == 1
    assert "✓" not in told.stdout
    assert "what to do about aria: Look at what would leave" in told.stderr
    assert "✗ left out: aria. The others had their night" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("night", "--date", "soon"), "not a night: 'soon' (want a date"),
        (("night", "--date", "2019-12-31"), "is before the first one, 2020-01-01"),
        (("night", "--date", "2099-01-01"), "night 2099-01-01 can't be run"),
        (("night", "--from", "2026-06-01"), "give either --date, or both --from and --to"),
        (("night", "--from", "2026-06-02", "--to", "2026-06-01"), "swap them"),
        (("night", "--date", "2026-06-01", "--from", "2026-06-01", "--to", "2026-06-01"), "either --date, or both"),
        (("night", "--policy", "candidate_similarity"), "is not of the form FIELD=NUMBER"),
        (("night", "--policy", "candidate_similarity=high"), "is not of the form FIELD=NUMBER"),
        (("night", "--policy", "candidate_similarity=2"), "must be between 0.5 and 1, got 2.0"),
        (("night", "--policy", "boldness=2"), "the policy has no field 'boldness'"),
        *(
            ((*command, "--agent", "nobody"), "agent 'nobody' is not known here; known are: aria")
            for command in (
                ("night",),
                ("report",),
                ("diff",),
                ("cost",),
                ("batches",),
                ("undo", "--night", "2026-06-01"),
                ("undo", "--from", "2026-06-01", "--to", "2026-06-02"),
            )
        ),
        (("report", "--night", "2026-06-01"), "has not run here; run it with: nous night --date 2026-06-01"),
        (("diff", "--night", "2026-06-01"), "has not run here"),
        (("report", "--open"), "names no file: --open opens the page that --html FILE writes"),
        (("undo",), "name what to take back: --night YYYY-MM-DD, --proposal ID, --memory ID or --source NAME"),
        (("undo", "--from", "2026-06-01"), "a range needs both --from and --to"),
        (("undo", "--night", "2026-06-01"), "no applied proposal has night=2026-06-01"),
    ],
)
def test_what_makes_no_sense_ends_in_one_line_that_says_what_to_do(heart, nous, arguments, said):
    result = nous(*arguments)

    assert result.exit_code == 1
    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


def test_what_is_no_id_is_wrong_usage(heart, nous):
    result = nous("undo", "--proposal", "7")

    assert result.exit_code == 2
    assert "not a valid id: '7' (want a UUID, or at least its first 6 digits)" in " ".join(result.stderr.split())


def test_a_home_that_cannot_be_written_to_ends_in_one_line(heart, nous, tmp_path):
    (tmp_path / "home").write_text("a file")

    result = nous("night", *HERE)

    assert result.exit_code == 1
    assert "set NOUS_HOME to another folder" in " ".join(result.stderr.split())


def test_without_a_date_it_is_the_last_night_and_one_of_one_agent_names_the_way_back_for_that_one_alone(heart, nous):
    remember(heart, NINE, NINE)
    last = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()

    ran, told = nous("night", "--agent", "aria"), nous("report", "--night", last, "--agent", "aria")

    assert f"night {last}: 1 memory merged into 1" in ran.stdout
    assert " ".join(ran.stderr.split()).endswith(f"back: nous undo --night {last} --agent aria")
    assert f"take it back: nous undo --night {last} --agent aria," in told.stderr
    assert "--kind merge --agent aria" in told.stdout


@pytest.fixture
def bens(database, embedder, judge):
    """The memory of another agent in the same database."""
    return Heart.open("ben", database=database, embedder=embedder, judge=judge, works_in_background=False)


def test_a_command_killed_in_the_middle_is_run_again_and_ends_where_it_should(
    heart, bens, nous, dagster_home, owner, tmp_path
):
    remember(heart, *["Room 0 has a window."] * 2)
    remember(bens, *[f"Room {number} has a window." for number in (1, 2)] * 2)
    owner.execute("""create function slow() returns trigger language plpgsql as
                     $$ begin if new.actor = 'night' then perform pg_sleep(0.3); end if; return new; end $$""")
    owner.execute("create trigger slow before insert on lifecycle.events for each row execute function slow()")
    environment = {
        "NOUS_DATABASE_URL": heart.agent.database.url, "NOUS_HOME": str(tmp_path / "home"),
        "DAGSTER_HOME": str(dagster_home), "NOUS_DAGSTER_DB_URL": "unused",
    }  # fmt: skip
    command, said = ("night", *HERE, "--json"), tmp_path / "said"
    process = started(typed_line, command, environment, said)
    wait_until(owner, "select count(*) > 0 from lifecycle.proposals where state = 'applied'")
    process.kill()
    process.join(30)
    wait_until(owner, "select count(*) = 0 from pg_locks where locktype = 'advisory' and database = "
                      "(select oid from pg_database where datname = current_database())")  # fmt: skip
    halfway = sorted(proposals_in(owner).values())

    again = nous(*command)

    assert (process.exitcode, halfway) == (-signal.SIGKILL, ["applied"])
    assert again.exit_code == 0, again.output
    assert sorted(proposals_in(owner).values()) == ["applied"] * 3
    assert sorted(columns["state"] for columns in facts_in(owner).values()) == ["active"] * 3 + ["superseded"] * 3


def wait_until(owner, query):
    ends_at = time.monotonic() + 90
    while not owner.execute(query).fetchone()[0]:
        assert time.monotonic() < ends_at, query
        time.sleep(0.02)
