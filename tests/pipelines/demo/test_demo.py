"""What the demo shows is what was planted in it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest
from drawn import NIGHT, USUAL_FACT
from judged_pairs import judged_pairs
from postgres_homes import scratch

from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.judging import OfflineJudge
from nous_pipelines.demo.show import history, planted
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.merging import duplicate_clusters
from nous_pipelines.snapshots.table_schemas import FACTS

UNTIL = date(2026, 11, 20)


@pytest.fixture(scope="module")
def merged() -> set[frozenset[str]]:
    """The pairs of demo facts that a night would merge."""
    records = [record for record in history(until=UNTIL) if record["kind"] == "fact"]
    vectors = LocalMiniLM().embed_documents([record["content"] for record in records]).tolist()
    rows = [
        {
            **USUAL_FACT,
            **{name: record[name] for name in ("id", "content", "subject")},
            "learned_at": datetime.fromisoformat(record["learned_at"]),
            "embedding": vector,
        }
        for record, vector in zip(records, vectors, strict=True)
    ]
    facts = pl.DataFrame(rows, schema=FACTS)
    judged, found = judged_pairs(facts, OfflineJudge(), policy=NightPolicy())
    tables = {"judgements": judged, "copies": found.copies}
    members = duplicate_clusters(tables, policy=NightPolicy(), night=NIGHT)
    pairs = members.join(members, on="cluster_id", suffix="_other").filter(
        pl.col("member_id") < pl.col("member_id_other")
    )
    return {frozenset(pair) for pair in pairs.select("member_id", "member_id_other").iter_rows()}


def test_the_night_keeps_every_planted_difference_apart(merged: set[frozenset[str]]):
    known = planted(until=UNTIL)
    different = [(pair.a, pair.b) for pair in known.look_alikes] + [*known.updates, *known.contradictions]

    assert [pair for pair in different if frozenset(pair) in merged] == []


def test_the_night_merges_what_was_said_again(merged: set[frozenset[str]]):
    known = planted(until=UNTIL)
    of: dict[str, set[str]] = {}
    for pair in (*known.repeats, *known.rewordings):
        group = set.union(*(of.get(each, {each}) for each in pair))
        of |= dict.fromkeys(group, group)

    assert len(merged) >= 20  # repeats, and what the built-in reader knows again in words that are far from few
    assert [pair for pair in merged if not pair <= of.get(min(pair), set())] == []


def nous(home: Path, *arguments: str) -> str:
    """Run a command as a user whose files everybody may read."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NOUS_", "DAGSTER_"))}
    ended = subprocess.run(
        [sys.executable, "-m", "nous_online.interfaces.cli", *arguments],
        env={**environment, "NOUS_HOME": str(home)},
        umask=0o022, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The home of a demo over a file of one's own, and what it showed."""
    lines = [
        {"id": "1", "content": "The staging database listens on port 5433.", "learned_at": "2026-05-01T09:00:00Z"},
        {"id": "2", "content": "The staging database listens on port 5433", "learned_at": "2026-05-08T09:00:00Z"},
        {"id": "3", "content": "The staging database listens on port 5434.", "learned_at": "2026-05-09T09:00:00Z"},
    ]
    source = tmp_path_factory.mktemp("mine") / "mine.jsonl"
    source.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with scratch() as place:
        yield place / "home", nous(place / "home", "demo", "--no-ui", "--from", str(source))


def test_shows_a_night_over_a_file_of_ones_own(shown: tuple[Path, str]):
    said = shown[1]

    assert "Merged: 1 memory merged into 1" in said
    assert "5433 ≠ 5434" in " ".join(said.split())
    commands = [line for line in said.splitlines() if "undo --night" in line]
    assert len(commands) == 2  # that of the merge, and that of the night
    assert all("NOUS_HOME=" in line for line in commands)
    assert "report.html" in said


def open_in(home: Path) -> list[str]:
    """Return everything in a home that others may list, read or write; of sockets their folder decides."""
    found = [(path, path.lstat().st_mode) for path in (home, *home.rglob("*"))]
    return [f"{stat.filemode(mode)} {path}" for path, mode in found if mode & 0o066 and not stat.S_ISSOCK(mode)]


def test_nothing_in_a_home_can_be_read_by_others_after_a_demo_an_export_and_an_erasing(shown: tuple[Path, str]):
    home = shown[0]
    demo = home / "demo"
    nous(demo, "export", f"{demo}/pages", "--agent", "aria", "--format", "markdown")
    after_the_night, page = open_in(home), list(demo.rglob("report.html"))
    nous(demo, "erase", "aria", "--yes")

    assert page
    assert (demo / "dagster" / "dagster.yaml").exists()
    assert (after_the_night, open_in(home)) == ([], [])
