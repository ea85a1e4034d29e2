from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import numpy as np
import polars as pl
import psycopg
import pytest
from night_runs import NIGHT, SAID, part_of, plan_of, remember, snapshot_of

from nous_online.core.domain import FACT
from nous_online.core.errors import InvalidInput, Unavailable
from nous_online.database.changes import Cause, Version, change_memory
from nous_pipelines.nights import end_of, last_night, nights_between, parse_night
from nous_pipelines.plan.apply import apply_plan
from nous_pipelines.snapshots.snapshot import ABANDONED_AFTER_S, night_folder, open_snapshot, take_snapshot
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES

TAKE = """
import sys
from datetime import date
from pathlib import Path
from nous_online.database.connection import Database
from nous_pipelines.snapshots.snapshot import take_snapshot

url, folder = sys.argv[1:]
take_snapshot(Database(url, role="nous_night"), Path(folder), night=date(2026, 6, 1), probe_days=30)
"""
JUNE_1, JUNE_2, JUNE_5 = (datetime(2026, 6, day, 12, tzinfo=UTC) for day in (1, 2, 5))
TRICKY = (
    'she said "hello, world"',
    "two\nlines, and\r\nmore",
    "a lone \r return",
    "\\.",
    "NULL",
    "'; drop table heart.facts; --",
    "tab\tand \u2028 and \u00a0 and \u200b",
    "naïve 東京 🜚 e\u0301",
    ",",
    '"',
    "{}",
    " spaces around ",
)


def taken(database, folder, *, night=NIGHT, now=None):
    return take_snapshot(database, folder / f"night={night}", night=night, probe_days=30, now=now)


def contents(snapshot):
    return set(snapshot.table("facts")["content"])


def by_content(snapshot):
    return {row["content"]: row for row in snapshot.table("facts").to_dicts()}


def test_a_snapshot_holds_every_fact_and_its_vector_to_the_last_bit(heart, night_database, owner, tmp_path):
    remember(heart, *TRICKY, tags=["a, b", 'c"d', "e\nf"], subject='odd, "one"', confidence=0.1, source="x\ny")

    facts = snapshot_of(night_database, tmp_path).table("facts")

    assert facts.sort("learned_at")["content"].to_list() == list(TRICKY)
    assert facts["tags"].to_list() == [["a, b", 'c"d', "e\nf"]] * len(TRICKY)
    assert facts["subject"].unique().to_list() == ['odd, "one"']
    assert facts["source"].unique().to_list() == ["x\ny"]
    stored = dict(owner.execute("select id::text, embedding::text from heart.facts").fetchall())
    for memory, vector in facts.select("id", "embedding").iter_rows():
        assert np.array_equal(np.array(vector, np.float32), np.array(json.loads(stored[memory]), np.float32))
    assert facts["learned_at"].dtype == pl.Datetime("us", "UTC")
    assert facts["learned_at"].min() == SAID


def test_an_empty_store_and_a_full_one_have_the_tables_that_are_declared(night_database, heart, tmp_path):
    empty = snapshot_of(night_database, tmp_path)
    remember(heart, "cats like fish")
    full = snapshot_of(night_database, tmp_path, night=NIGHT + timedelta(days=1))

    assert empty.counts == {name: int(name == "agents") for name in SNAPSHOT_TABLES}
    for name, declared in SNAPSHOT_TABLES.items():
        assert dict(empty.table(name).schema) == dict(full.table(name).schema) == dict(declared)


def test_all_tables_are_of_one_moment(heart, night_database, owner, tmp_path):
    remember(heart, "cats like fish")
    outcome = []
    with psycopg.connect(owner.info.dsn, password=owner.info.password) as writer:
        writer.execute("lock table heart.recalls in access exclusive mode")
        reading = threading.Thread(target=lambda: outcome.append(snapshot_of(night_database, tmp_path)))
        reading.start()
        wait_until_locked_out(owner)
        remember(heart, "rain falls down")
        writer.execute(
            "insert into heart.recalls (agent_id, query, result_limit, recalled_at) values ('aria', 'cats?', 5, %s)",
            [SAID],
        )
    reading.join(timeout=60)

    (snapshot,) = outcome
    assert contents(snapshot) == {"cats like fish"}
    assert snapshot.counts["recalls"] == 0
    assert contents(snapshot_of(night_database, tmp_path, night=NIGHT + timedelta(days=1))) == {
        "cats like fish", "rain falls down"
    }  # fmt: skip


def wait_until_locked_out(owner):
    """Wait until somebody waits for a lock in this test's database."""
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    ends_at = time.monotonic() + 60
    while not owner.execute(waiting).fetchone()[0]:
        assert time.monotonic() < ends_at, "nobody waits"
        time.sleep(0.02)


def test_the_snapshot_of_a_night_that_is_over_never_changes(heart, night_database, tmp_path):
    remember(heart, "cats like fish")
    first = snapshot_of(night_database, tmp_path)
    before = {path.name: path.read_bytes() for path in first.folder.iterdir()}

    remember(heart, "rain falls down")
    again = snapshot_of(night_database, tmp_path)

    assert again == first
    assert contents(again) == {"cats like fish"}
    assert {path.name: path.read_bytes() for path in again.folder.iterdir()} == before


def test_a_snapshot_taken_before_the_night_was_over_is_moved_aside(heart, night_database, tmp_path):
    remember(heart, "cats like fish")
    early = taken(night_database, tmp_path, now=end_of(NIGHT) - timedelta(seconds=1))
    remember(heart, "rain falls down")

    late = taken(night_database, tmp_path, now=end_of(NIGHT))

    assert (early.is_final, late.is_final) == (False, True)
    assert contents(late) == {"cats like fish", "rain falls down"}
    (aside,) = tmp_path.glob("night=2026-06-01.taken-*")
    assert contents(open_snapshot(aside)) == {"cats like fish"}


def test_only_what_was_said_before_the_end_of_the_night_counts(heart, night_database, tmp_path):
    for text, moment in (
        ("cats like fish", end_of(NIGHT) - timedelta(microseconds=1)),
        ("rain falls down", end_of(NIGHT)),
    ):
        heart.learn_deferred([(text, {"learned_at": moment})])

    assert contents(snapshot_of(night_database, tmp_path)) == {"cats like fish"}


def test_a_fact_superseded_after_the_night_is_as_it_was_and_marked(heart, judge, night_database, owner, tmp_path):
    remember(heart, "cats like fish", "cats like fish", "rain falls down", category="pets")
    kept, gone, other = (row[0] for row in owner.execute("select id from heart.facts order by learned_at").fetchall())
    change(night_database, gone, JUNE_2, category="animals")
    away = {"state": "superseded", "superseded_by": str(kept), "superseded_at": JUNE_5.isoformat()}
    change(night_database, gone, JUNE_5, **away, succession="merged")
    change(night_database, other, JUNE_1, category="weather")

    plan = plan_of(night_database, tmp_path, judge)

    facts = {row["id"]: row for row in open_snapshot(tmp_path / "night=2026-06-01").table("facts").to_dicts()}
    rewound, unchanged, earlier = (facts[str(memory)] for memory in (gone, kept, other))
    assert (rewound["state"], rewound["category"], rewound["superseded_by"]) == ("active", "pets", None)
    assert (rewound["is_rewound"], unchanged["is_rewound"]) == (True, False)
    assert (earlier["category"], earlier["is_rewound"]) == ("weather", False)
    assert plan.proposals == ()


def change(database, memory, effective_at, **values):
    with database.transaction("aria") as connection:
        (version,) = connection.execute("select row_version from heart.facts where id = %s", [memory]).fetchone()
        cause = Cause("agent", "changed", "it was so", effective_at=effective_at)
        change_memory(connection, "aria", Version(FACT, memory, version), values, cause=cause)


def test_usage_is_counted_up_to_the_end_of_the_night(heart, night_database, tmp_path):
    remember(heart, "cats like fish")
    for moment in (JUNE_1, JUNE_5):
        found = heart.recall("what do cats like?", at=moment)
        heart.cite(found.id, [found[0].memory.id], at=moment)

    snapshot = snapshot_of(night_database, tmp_path)

    (row,) = snapshot.table("facts").to_dicts()
    assert (row["retrieved_count"], row["cited_count"], row["ignored_count"]) == (1, 1, 0)
    (probe,) = snapshot.table("recalls").to_dicts()
    assert (probe["query"], probe["cited_ids"]) == ("what do cats like?", [row["id"]])
    assert len(probe["embedding"]) == 64


def test_the_usage_a_memory_absorbed_is_still_its_own_in_later_nights(heart, judge, night_database, owner, tmp_path):
    remember(heart, "cats like fish", "cats like fish")
    found = heart.recall("what do cats like?", at=datetime(2026, 5, 20, tzinfo=UTC))
    heart.cite(found.id, [answer.memory.id for answer in found], at=datetime(2026, 5, 20, tzinfo=UTC))
    apply_plan(night_database, plan_of(night_database, tmp_path, judge), run_id="r1")

    later = snapshot_of(night_database, tmp_path, night=NIGHT + timedelta(days=1))

    kept = later.table("facts").filter(state="active").row(0, named=True)
    assert (kept["retrieved_count"], kept["cited_count"]) == (2, 2)


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "garbage"])
def test_a_table_that_is_damaged_is_named_with_the_way_out(heart, night_database, tmp_path, damage):
    remember(heart, *TRICKY)
    snapshot = snapshot_of(night_database, tmp_path)

    for name in ("facts", "recalls", "undone"):
        path = part_of(snapshot.folder) / f"{name}.parquet"
        content = path.read_bytes()
        spoilt = {"empty": b"", "cut": content[: len(content) // 2], "garbage": os.urandom(len(content))}
        path.unlink() if damage == "missing" else path.write_bytes(spoilt[damage])

        with pytest.raises(
            Unavailable, match=f"{name}.parquet of .* can't be read.*move .*night=2026-06-01 aside and run"
        ):
            snapshot.table(name)
        with pytest.raises(Unavailable, match=f"{name}.parquet of .* can't be read"):
            snapshot.sizes(name)


def test_a_table_with_a_single_spoilt_byte_is_refused(heart, night_database, tmp_path):
    remember(heart, *TRICKY)
    folder = snapshot_of(night_database, tmp_path).folder
    path = part_of(folder) / "facts.parquet"
    content = path.read_bytes()
    for place in range(0, len(content), max(len(content) // 60, 1)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])

        with pytest.raises(Unavailable, match=r"facts\.parquet"):
            open_snapshot(folder).table("facts")


def test_a_damaged_description_is_named_with_the_way_out(heart, night_database, tmp_path):
    folder = snapshot_of(night_database, tmp_path).folder

    for text in ("", "{", "[]", '{"night": "2026-06-01"}', '{"night": 5, "taken_at": "x", "counts": {}}'):
        (folder / "snapshot.json").write_text(text)

        with pytest.raises(Unavailable, match=r"snapshot\.json is damaged .*move .* aside and run the night again"):
            snapshot_of(night_database, tmp_path)


def test_a_home_that_is_no_folder_is_named(heart, night_database, tmp_path):
    home = tmp_path / "home"
    home.write_text("a file")

    with pytest.raises(Unavailable, match="home"):
        snapshot_of(night_database, home)


def test_a_full_disk_leaves_no_half_made_folder_and_the_next_run_is_right(heart, night_database, tmp_path):
    remember(heart, *TRICKY)

    with small_files(2_000), pytest.raises(Unavailable, match=r"night=2026-06-01.*(space|large)"):
        snapshot_of(night_database, tmp_path)

    assert list(tmp_path.iterdir()) == []
    assert len(snapshot_of(night_database, tmp_path).table("facts")) == len(TRICKY)


class small_files:  # noqa: N801 (reads as a context)
    """No file of this process may grow beyond some bytes: what a full disk looks like from inside."""

    def __init__(self, size):
        self.size = size

    def __enter__(self):
        self.limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.limits[1]))

    def __exit__(self, *_):
        resource.setrlimit(resource.RLIMIT_FSIZE, self.limits)
        signal.signal(signal.SIGXFSZ, self.handler)


def test_a_process_killed_while_it_reads_leaves_no_snapshot_and_the_next_run_is_right(
    heart, night_database, database_url, owner, tmp_path
):
    remember(heart, "cats like fish")
    folder = tmp_path / "night=2026-06-01"
    with psycopg.connect(owner.info.dsn, password=owner.info.password) as writer:
        writer.execute("lock table lifecycle.proposals in access exclusive mode")
        process = subprocess.Popen([sys.executable, "-c", TAKE, database_url, str(folder)])
        wait_until_locked_out(owner)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(timeout=30) == -signal.SIGKILL

    assert open_snapshot(folder) is None
    assert contents(snapshot_of(night_database, tmp_path)) == {"cats like fish"}
    left = [*tmp_path.glob(".night=*"), *tmp_path.glob(".part=*")]
    assert left

    long_ago = time.time() - ABANDONED_AFTER_S - 60
    for path in (*(file for folder in left for file in folder.iterdir()), *left):
        os.utime(path, (long_ago, long_ago))
    snapshot_of(night_database, tmp_path, night=NIGHT + timedelta(days=1))

    part = part_of(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["night=2026-06-01", "night=2026-06-02", part.name]


def test_an_unfinished_folder_that_is_still_written_to_is_left_alone(heart, night_database, tmp_path):
    remember(heart, "cats like fish")
    folders = [tmp_path / f".night=2026-05-30.{UUID(int=number).hex}" for number in (1, 2)]
    folders.append(tmp_path / ".night=2026-05-30.backup")
    for folder, is_written in zip(folders, (True, False, False), strict=True):
        folder.mkdir()
        (folder / "facts.parquet").write_bytes(b"half")
        os.utime(folder, (0, 0))
        if not is_written:
            os.utime(folder / "facts.parquet", (0, 0))

    snapshot_of(night_database, tmp_path)

    assert [folder.exists() for folder in folders] == [True, False, True]


def test_of_two_that_take_a_snapshot_at_once_both_get_the_same(heart, night_database, tmp_path):
    remember(heart, "cats like fish")
    outcomes = []

    def take():
        try:
            outcomes.append(snapshot_of(night_database, tmp_path).taken_at)
        except Exception as error:
            outcomes.append(error)

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert outcomes == [open_snapshot(tmp_path / "night=2026-06-01").taken_at] * 3
    part = part_of(tmp_path / "night=2026-06-01")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["night=2026-06-01", part.name]


def test_the_files_of_two_databases_lie_apart(night_database, server, template, tmp_path):
    folder = night_folder(tmp_path, night_database, NIGHT)

    assert folder.name == "night=2026-06-01"
    assert folder.parent.parent == tmp_path
    assert folder == night_folder(tmp_path, night_database, NIGHT)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "01.06.2026", "2026-06-31", "2019-12-31", "0001-01-01"]
)
def test_what_is_no_night_is_refused_and_named(text):
    with pytest.raises(InvalidInput, match=text or "''"):
        parse_night(text)


def test_a_night_ends_at_midnight_and_the_last_one_is_yesterdays():
    assert end_of(date(2026, 2, 28)) == datetime(2026, 3, 1, tzinfo=UTC)
    assert last_night(datetime(2026, 6, 2, 0, 0, tzinfo=UTC)) == NIGHT
    assert parse_night("2020-01-01") == date(2020, 1, 1)


def test_nights_are_run_in_order_and_never_backwards():
    assert list(nights_between(date(2026, 5, 31), date(2026, 6, 1))) == [date(2026, 5, 31), date(2026, 6, 1)]
    with pytest.raises(InvalidInput, match="swap them"):
        nights_between(date(2026, 6, 1), date(2026, 5, 31))


def test_the_description_of_a_snapshot_counts_its_rows(heart, night_database, tmp_path):
    remember(heart, "cats like fish", "rain falls down")

    snapshot = snapshot_of(night_database, tmp_path)

    assert json.loads((part_of(snapshot.folder) / "part.json").read_text())["counts"]["facts"] == 2
    assert snapshot.counts == {name: len(snapshot.table(name)) for name in snapshot.counts}


def test_moments_are_read_with_and_without_fractions_of_a_second(heart, night_database, tmp_path):
    moments = [
        datetime(1999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2026, 5, 1, tzinfo=UTC),
        datetime(2026, 5, 1, 9, 30, 0, 120000, tzinfo=UTC),
    ]
    heart.learn_deferred([(f"fact {place}", {"learned_at": moment}) for place, moment in enumerate(moments)])

    facts = snapshot_of(night_database, tmp_path).table("facts")

    assert facts.sort("content")["learned_at"].to_list() == moments
