"""The night's snapshot of 100,000 facts, to Parquet, against a raw binary COPY of the same rows to a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import psycopg
from pgvector import Vector
from pgvector.psycopg import register_vector

from benchmarks import peak_mb, server
from benchmarks.intervals import of_medians
from nous_online.database.connection import Database, prepare
from nous_online.language.minilm import unit_rows
from nous_online.processes import child_environment, python_module
from nous_pipelines.snapshots.snapshot import take_snapshot

ROOT = Path(__file__).resolve().parents[1]
FACTS, QUICK_FACTS = 100_000, 20_000
WIDTH = 384
ROUNDS = 5
NIGHT = datetime(2026, 3, 1, tzinfo=UTC)
COLUMNS = "agent_id, content, subject, tags, source, learned_at, embedding, embedding_space_id"
COLUMN_TYPES = ("text", "text", "text", "text[]", "text", "timestamptz", "vector", "text")


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Take the snapshot of a night and copy the same rows, in turns, each in a process of its own."""
    rows = QUICK_FACTS if quick else FACTS
    with server() as (url, home):
        fill(url, rows)
        rounds = [tuple(one(method, url, str(home.parent)) for method in ("raw", "ours")) for _ in range(ROUNDS)]
    raw_s = median(raw["seconds"] for raw, _ in rounds)
    ours_s = median(ours["seconds"] for _, ours in rounds)
    return {
        "metrics": {
            "over_raw_copy_ratio": of_medians(
                [ours["seconds"] for _, ours in rounds], [raw["seconds"] for raw, _ in rounds]
            ),
            "rows_per_s": rows / ours_s,
            "peak_mb": max(ours["peak_mb"] for _, ours in rounds),
        },
        "peers": {"raw_copy_s": raw_s, "ours_s": ours_s, "raw_copy_mb": rounds[0][0]["written_mb"]},
        "notes": [
            f"{rows:,} facts with vectors of width {WIDTH}; median of {ROUNDS} rounds, in turns",
            "ours: take_snapshot, as the night calls it: all tables, one REPEATABLE READ transaction, flushed to disk",
            "raw: COPY heart.facts TO STDOUT (FORMAT BINARY), written to a file and flushed to disk",
            "peak_mb includes the interpreter and its libraries",
        ],
    }


def fill(url: str, rows: int) -> None:
    """Store `rows` facts of one agent, without the index over vectors that a snapshot does not use."""
    prepare(url)
    with psycopg.connect(url) as connection:
        register_vector(connection)
        connection.execute(
            "insert into heart.embedding_spaces (id, model, weights_sha256, dimensions) values ('drawn', '', '', %s)",
            [WIDTH],
        )
        connection.execute("set local session_replication_role = replica")  # no event for rows that nobody learned
        connection.execute("insert into heart.agents (id, embedding_space_id) values ('aria', 'drawn')")
        with connection.cursor().copy(f"copy heart.facts ({COLUMNS}) from stdin (format binary)") as copy:
            copy.set_types(COLUMN_TYPES)
            for fact in drawn_facts(rows):
                copy.write_row(fact)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze heart.facts")


def drawn_facts(rows: int) -> Iterator[tuple[Any, ...]]:
    """Draw facts of about a hundred characters, learned over the last hundred days."""
    rng = np.random.default_rng(1)
    vectors = unit_rows(rng.standard_normal((rows, WIDTH), dtype=np.float32))
    for number, vector in enumerate(vectors):
        content = f"Service {number} is deployed from branch release-{number % 97} every {number % 13 + 2} days at noon"
        learned_at = NIGHT - timedelta(minutes=number % 144_000 + 1)
        subject = f"service {number % 1000}"
        yield "aria", content, subject, ["deploys", "services"], "import", learned_at, Vector(vector), "drawn"


def one(method: str, url: str, folder: str) -> dict[str, float]:
    """Run one method in a fresh process and return its seconds and peak memory."""
    command = python_module("benchmarks.snapshot", method, url, folder)
    finished = subprocess.run(  # noqa: S603 - our own module
        command, cwd=ROOT, env=child_environment(PYTHONPATH=str(ROOT)), stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(finished.stdout.splitlines()[-1])


def ours(url: str, folder: Path) -> float:
    """Take the night's snapshot; return its seconds."""
    database = Database(url, role="nous_night")
    start = perf_counter()
    take_snapshot(database, folder / f"ours-{os.getpid()}", night=NIGHT.date(), probe_days=14)
    seconds = perf_counter() - start
    database.close()
    return seconds


def raw(url: str, folder: Path) -> float:
    """Copy the table to a file as the server sends it; return its seconds."""
    with psycopg.connect(url) as connection, (folder / f"raw-{os.getpid()}").open("wb") as file:
        start = perf_counter()
        with connection.cursor().copy("copy heart.facts to stdout (format binary)") as copy:
            for chunk in copy:
                file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
        return perf_counter() - start


def main(method: str, url: str, folder: str) -> None:
    """Measure one method once and print seconds, peak memory and what it wrote."""
    seconds = {"ours": ours, "raw": raw}[method](url, Path(folder))
    written = sum(file.stat().st_size for file in Path(folder).rglob(f"{method}-{os.getpid()}*") if file.is_file())
    print(json.dumps({"seconds": seconds, "peak_mb": peak_mb(), "written_mb": written / 2**20}))


if __name__ == "__main__":
    main(*sys.argv[1:])
