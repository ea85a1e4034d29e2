"""`nous query`, and `nous diff` between two nights, as somebody types them, over two nights that have run."""

from __future__ import annotations

import csv
import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from night_commands import BACKUPS, NINE, as_json, dagster_of_no_events, typed
from night_runs import POLICY, part_of, remember
from postgres_homes import wait_for

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines.orchestration.night_erasure import night_folders
from nous_pipelines.orchestration.retention import Retention, old_folders
from nous_pipelines.plan.night_tables import TABLES, WORK, run_interruptible
from nous_pipelines.snapshots.snapshot import open_snapshot
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES

NIGHTS = ("2026-06-01", "2026-06-02")
ARIA = ("--agent", "aria")
LATE = datetime(2026, 6, 2, 10, tzinfo=UTC)
ALL_ROWS = (
    "with t as (from range(100_000_000)) select sum(a.range * b.range) from t a join t b on a.range % 7 = b.range % 5"
)


@dataclass(frozen=True)
class Ran:
    """Two nights that have run: the database and home they left."""

    database: str
    home: Path
    dagster_home: Path


@pytest.fixture(scope="module")
def ran(server, admin, template, tmp_path_factory):
    name, home = f"asked_{uuid.uuid4().hex[:12]}", tmp_path_factory.mktemp("asked")
    admin.execute(f"create database {name} template {template} strategy file_copy")
    database = Database(server.dsn(name))
    for agent, contents in {"aria": (NINE, NINE, *BACKUPS), "ben": ("Ben has a secret.",)}.items():
        heart = Heart.open(agent, database=database, embedder=WordEmbedder(), judge=ScriptedJudge())
        remember(heart, *contents)
        heart.learn_deferred([(f"{agent} came late.", {"learned_at": LATE, "idempotency_key": "late"})])
    database.close()
    policy = [f"{field}={number}" for field, number in POLICY.items()]
    with dagster_of_no_events() as dagster_home:
        with typed(server.dsn(name), home, dagster_home) as nous:
            done = nous("night", "--from", NIGHTS[0], "--to", NIGHTS[1], "--policy", *policy)
            assert done.exit_code == 0, done.output
        yield Ran(name, home, dagster_home)
    admin.execute(f"drop database {name} with (force)")


@pytest.fixture
def home(ran, tmp_path):
    return Path(shutil.copytree(ran.home, tmp_path / "home"))


@pytest.fixture
def database_url(copy_of, ran):
    with copy_of(ran.database) as url:
        yield url


@pytest.fixture
def nous(database_url, ran, home):
    """Run a command over a copy of the nights' database and home, in process."""
    with typed(database_url, home, ran.dagster_home) as command:
        yield command


@pytest.fixture(scope="module")
def asking(copy_of, ran):
    """Run a command that changes nothing, over the nights' own home."""
    with copy_of(ran.database) as url, typed(url, ran.home, ran.dagster_home) as command:
        yield command


def folders(home: Path) -> list[Path]:
    return sorted(home.glob("snapshots/*/night=*"))


def rows_of(folder: Path, name: str) -> pl.DataFrame:
    """Return a table of a night, of its snapshot or made of that."""
    if name in SNAPSHOT_TABLES:
        return open_snapshot(folder).table(name)
    return pl.read_parquet(folder / TABLES[name].file)


def test_the_rows_of_every_table_are_those_of_the_snapshots(asking, ran):
    stored = [name for name, table in TABLES.items() if table.file is not None]
    each = (f"select '{name}' as name, night, count(*) as n from {name} group by all" for name in stored)  # noqa: S608
    counting = " union all ".join(each)
    asked = as_json(asking("query", counting, "--agent", "aria", "--json"))["rows"]

    found = {(row["name"], row["night"]): row["n"] for row in asked}
    for name in stored:
        read = [len(rows_of(folder, name).filter(agent_id="aria")) for folder in folders(ran.home)]
        assert [found.get((name, night), 0) for night in NIGHTS] == read, name
    everything = as_json(asking("query", "select count(*) as n from facts", "--all-agents", "--json"))
    snapshots = [open_snapshot(folder) for folder in folders(ran.home)]
    assert everything["rows"] == [{"n": sum(each.counts["facts"] for each in snapshots)}]


def test_without_sql_it_lists_nights_tables_and_what_each_column_means(asking):
    listed, told = as_json(asking("query", "--agent", "aria", "--json")), asking("query", "--agent", "aria")

    assert listed["nights"] == list(NIGHTS)
    assert [table["name"] for table in listed["tables"]] == list(TABLES)
    assert [c["name"] for t in listed["tables"] for c in t["columns"] if not (c["meaning"] and c["type"])] == []
    assert {c["name"]: c["type"] for c in listed["tables"][0]["columns"]}["learned_at"] == "timestamp with time zone"
    for part in ("2 nights", *NIGHTS, "judgements", "same, updates, contradicts", "superseded_by"):
        assert part in told.stdout


def test_the_examples_of_its_help_run(asking):
    facts = asking("query", "select night, state, count(*) from facts group by all order by all", "-a", "aria", "--csv")
    superseded = asking(
        "query", "--from", NIGHTS[0], "--to", NIGHTS[1], "-a", "aria", "--json",
        "select night, content from facts "
        "qualify state = 'superseded' and lag(state) over (partition by id order by night) = 'active'",
    )  # fmt: skip
    kinds = asking(
        "query", "-a", "aria", "--csv", "select kind, state, count(*) from proposals group by all order by all"
    )

    assert facts.stdout.splitlines()[1] == "2026-06-01,active,4"
    assert {(row["night"], row["content"]) for row in as_json(superseded)["rows"]} == {
        ("2026-06-02", NINE),
        ("2026-06-02", BACKUPS[0]),
    }
    assert kinds.stdout.splitlines()[1:] == ["merge,applied,1", "supersede,applied,1"]


def test_an_agent_gets_its_own_proposals_and_what_became_of_them(nous):
    nous("undo", "--night", NIGHTS[0], "--kind", "merge", "--agent", "aria")

    own = as_json(
        nous("query", "select kind, state, len(targets) as n from proposals order by all", "-a", "aria", "--json")
    )
    others = as_json(nous("query", "from proposals", "-a", "ben", "--json"))
    later = as_json(nous("query", "from proposals", "-a", "aria", "--from", NIGHTS[1], "--json"))

    assert [(row["kind"], row["state"]) for row in own["rows"]] == [("merge", "undone"), ("supersede", "applied")]
    assert (others["rows"], later["rows"]) == ([], [])


def test_no_query_of_one_agent_sees_another(asking):
    for sql in ("from facts", "from statements", "from agents", "from proposals"):
        assert "ben" not in asking("query", sql, "--agent", "aria", "--csv").output.lower()
    assert "Ben has a secret." in asking("query", "from facts", "--all-agents", "--csv").stdout


def test_a_table_shows_the_first_rows_and_how_many_more_there_are(asking):
    told = asking("query", "select range as n, repeat('[x]', 2) as text from range(1000)", "-a", "aria", "--limit", "3")

    assert told.exit_code == 0, told.output
    assert told.stdout.count("[x][x]") == 3
    assert "… and 997 more" in told.stderr
    nothing = [asking("query", "from facts where false", *of).stderr for of in (("-a", "aria"), ("--all-agents",))]
    assert "no rows of agent aria; ask about another with --agent NAME" in " ".join(nothing[0].split())
    assert ("no rows" in nothing[1], "of agent" in nothing[1]) == (True, False)


def test_a_row_of_many_columns_is_shown_one_column_a_line(asking):
    told = asking("query", "from facts where content = 'aria came late.'", *ARIA)

    lines = [line.split(maxsplit=1) for line in told.stdout.splitlines()]
    assert ["content", "aria came late."] in [[part.strip() for part in line] for line in lines]


def test_moments_are_utc_and_structures_are_json(asking):
    sql = (
        "select content, last_confirmed_at, tags, embedding[1:2] as v, {'a': 1.5::decimal(3,1)} as s, "
        "'nan'::float as f, 1 as x, 2 as x from facts where night = '2026-06-02' and content = 'aria came late.'"
    )
    asked = [sql.replace("last_confirmed_at", "learned_at"), "--agent", "aria"]

    (row,) = as_json(asking("query", *asked, "--json"))["rows"]
    header, line = csv.reader(io.StringIO(asking("query", *asked, "--csv").stdout))

    assert (row["learned_at"], row["tags"], row["s"], row["f"]) == ("2026-06-02T10:00:00+00:00", [], {"a": 1.5}, "nan")
    assert (row["x"], row["x_7"], len(row["v"])) == (1, 2, 2)
    assert header == ["content", "learned_at", "tags", "v", "s", "f", "x", "x"]
    assert (line[1], line[2], line[4]) == ("2026-06-02 10:00:00+00:00", "[]", '{"a": 1.5}')


def test_a_damaged_night_is_named_and_the_others_answer(nous, home):
    (folders(home)[0] / "facts.parquet").write_bytes(b"cut off")

    asked = nous("query", "select distinct night from facts", "--agent", "aria", "--json")

    assert as_json(asked)["rows"] == [{"night": NIGHTS[1]}]
    assert list(as_json(asked)["left_out"]) == [NIGHTS[0]]
    assert f"night {NIGHTS[0]} is left out: facts.parquet can't be read" in " ".join(asked.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (["from fact", *ARIA], "InvalidInput", "did you mean 'facts'?"),
        (["select contnt from facts", *ARIA], "InvalidInput", 'Candidate bindings: "content"'),
        (["select content::integer from facts", *ARIA], "InvalidInput", "Could not convert string"),
        (["copy facts to 'x'", *ARIA], "InvalidInput", "got COPY"),
        (["from facts", "--all-agents", "--agent", "aria"], "InvalidInput", "either --agent or --all-agents"),
        (["from facts", "--agent", "nobody"], "NotFound", "'nobody' is not known"),
        (["from facts", "--from", "2026-07-01", *ARIA], "NotFound", "no night of those"),
        (["from facts", "--from", "2026-07-02", "--to", "2026-07-01", *ARIA], "InvalidInput", "swap them"),
        (["from facts", "--memory", "plenty", *ARIA], "InvalidInput", "plenty"),
    ],
)
def test_what_cannot_be_answered_ends_in_one_typed_line(asking, arguments, kind, message):
    ended = asking("query", *arguments, "--json")

    assert ended.exit_code == 1
    assert as_json(ended)["error"]["kind"] == kind
    assert message in as_json(ended)["error"]["message"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_query_that_is_stopped_leaves_nothing(nous, home, number):
    before = signal.getsignal(signal.SIGTERM)

    def stop() -> None:
        wait_for(lambda: [*home.glob(f"snapshots/*/{WORK}*")])
        time.sleep(0.3)
        os.kill(os.getpid(), number)

    person = threading.Thread(target=stop)
    person.start()

    ended = nous("query", ALL_ROWS, "--agent", "aria")
    person.join()

    assert ended.exit_code == 130, ended.output
    assert "interrupted" in ended.stderr
    assert signal.getsignal(signal.SIGTERM) == before
    assert [path for path in home.glob("snapshots/*/.*") if "query" in path.name] == []


def test_what_begins_after_the_interruption_is_ended_too():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    began = time.monotonic()

    with duckdb.connect() as engine:

        def fill() -> None:
            time.sleep(0.6)
            engine.execute("select count(*) from range(100000) a, range(30000) b where a.range * b.range < 0")  # 10 s

        try:
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                run_interruptible(engine, fill)
        finally:
            timer.join()
            signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 5


def test_a_diff_of_two_nights_says_what_was_added_and_what_changed(asking):
    told, plain = (
        asking("diff", "--from", NIGHTS[0], "--to", NIGHTS[1], "--agent", "aria", *more) for more in ((), ("--json",))
    )
    everybody = as_json(asking("diff", "--from", NIGHTS[0], "--to", NIGHTS[1], "--json"))
    found = as_json(plain)

    assert (found["from"], found["to"], found["counts"]) == (*NIGHTS, {"added": 1, "state": 2})
    assert next((e["change"], e["text_after"], e["state_before"], e["state_after"]) for e in found["entries"]) == (
        "added", "aria came late.", None, "active",
    )  # fmt: skip
    assert "+ aria came late." in told.stdout
    assert "active → superseded" in told.stdout
    assert "1 added, 2 with another state" in told.stdout
    assert everybody["counts"] == {"added": 2, "state": 2}


def test_a_quiet_night_is_known_as_one_by_diff_and_query(nous, database_url):
    with psycopg.connect(database_url) as owner:
        owner.execute("""insert into lifecycle.health (agent_id, night, figures) values ('aria', '2026-06-03', '{}')""")

    compared = as_json(nous("diff", "--from", NIGHTS[0], "--to", "2026-06-03", "--json"))
    asked = as_json(nous("query", "from facts", "--from", "2026-06-03", "--to", "2026-06-03", *ARIA, "--json"))
    unknown = as_json(nous("diff", "--from", NIGHTS[0], "--to", "2026-06-04", "--json"))

    for told in (compared, asked):
        assert "night 2026-06-03 was quiet: nothing was new" in told["error"]["message"]
        assert f"see: nous report --night {NIGHTS[1]}" in told["error"]["message"]
    assert "night 2026-06-04 has not run here; run it with: nous night" in unknown["error"]["message"]


def test_a_diff_tells_what_left_and_what_reads_otherwise(nous, home):
    later = part_of(folders(home)[1]) / "facts.parquet"
    facts = pl.read_parquet(later)
    gone = pl.col("content") == NINE
    changed = facts.with_columns(content=pl.when(gone).then(pl.lit("Ten.")).otherwise("content")).filter(
        ~(pl.col("agent_id") == "ben")
    )
    changed.write_parquet(later)
    described = (
        (later.parent / "part.json").read_text().replace(f'"facts": {len(facts)}', f'"facts": {len(changed)}', 1)
    )
    (later.parent / "part.json").write_text(described)

    found = as_json(nous("diff", "--from", NIGHTS[0], "--to", NIGHTS[1], "--json"))

    assert found["counts"] == {"added": 1, "left": 1, "state": 1, "state and text": 1, "text": 1}
    assert [e["text_before"] for e in found["entries"] if e["change"] == "left"] == ["Ben has a secret."]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", NIGHTS[0]], "both --from and --to"),
        (["--from", NIGHTS[0], "--to", NIGHTS[1], "--night", NIGHTS[0]], "either --night"),
        (["--from", NIGHTS[1], "--to", NIGHTS[0]], "swap them"),
        (["--from", NIGHTS[0], "--to", "2026-06-09"], "nous night --date 2026-06-09"),
    ],
)
def test_two_nights_that_cannot_be_compared_are_refused(asking, arguments, message):
    ended = asking("diff", *arguments)

    assert ended.exit_code == 1
    assert message in " ".join(ended.stderr.split())


def test_an_error_leaves_one_line_and_nothing_of_the_engine(database_url, home, ran):
    """Run as its own process: what a library says when it is unloaded is seen there only."""
    ended = subprocess.run(
        [Path(sys.executable).with_name("nous"), "query", "select nothing_such from facts", *ARIA],
        env={**os.environ, "NOUS_DATABASE_URL": database_url, "NOUS_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1), ended.stderr


@pytest.mark.usefixtures("nous")
def test_what_a_killed_query_left_is_found_by_erasing_and_by_retention(database_url, home):
    left = folders(home)[0].with_name(f"{WORK}killed")
    left.mkdir()
    later = datetime.now(UTC) + timedelta(days=30)

    assert left in night_folders(database_url)
    assert left in old_folders(home / "snapshots", Retention(), now=later)[1]
