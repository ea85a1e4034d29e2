"""The recipes of CONTRIBUTING.md, followed to the letter."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import psycopg
import pytest

ROOT = Path(__file__).parents[2]
NIGHT = """
import json, sys
from datetime import UTC, datetime
from pathlib import Path
from conftest import ScriptedJudge, WordEmbedder
from night_runs import NIGHT, options, remember, snapshot_of
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_online.database.connection import Database, prepare
from nous_online.heart import Heart
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.orchestration.code_location import defs
from nous_pipelines.orchestration.running import run_night
from nous_pipelines.phases.phase_table import PHASES
from nous_pipelines.plan.undo import Selection, undo

url, home = sys.argv[1], Path(sys.argv[2])
prepare(url)
database, by_night = Database(url), Database(url, role="nous_night")
heart = Heart.open("aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), works_in_background=False)
remember(heart, "Cats like fish.")
remember(heart, "The office opens at nine.", tags=["office"])
def tags():
    with database.transaction("aria") as connection:
        return sorted(tag for tag, in connection.execute("select unnest(tags) from heart.facts"))

with unrecorded() as instance:
    outcome = run_night(NIGHT, options(url, home), instance=instance)
tagged = tags()
undo(by_night, Selection(kind="tag"), reason="not wanted")
later = datetime.now(UTC).date()
taken = snapshot_of(by_night, home / "later", night=later)
(phase,) = [each for each in PHASES if each.name == "tag_proposals"]
again = phase.find({name: taken.table(name) for name in phase.reads}, policy=NightPolicy(), night=later)
graph = defs.resolve_asset_graph()
(key,) = [key for key in graph.materializable_asset_keys if key.to_user_string() == "tag_proposals"]
print(json.dumps({
    "failures": outcome.failures, "summary": outcome.report.summary, "tagged": tagged,
    "undone": tags(), "above": sorted(parent.to_user_string() for parent in graph.get(key).parent_keys),
    "again": len(again.proposals), "left": again.left,
}))
"""


def blocks_of(recipe: str) -> list[str]:
    """Return the code of one recipe, block by block."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (section,) = re.findall(rf"^\*\*{recipe}\.\*\*(.*?)(?=^\*\*[a-z])", text, re.DOTALL | re.MULTILINE)
    return re.findall(r"^```\w+\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert text.count(old) == 1, f"{path.name} has {text.count(old)} times {old!r}"
    path.write_text(text.replace(old, new), "utf-8")


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of what a recipe for nights may add to."""
    for name, folder in (("nous_pipelines", "nous_pipelines"), ("nous_sql", "sql")):
        shutil.copytree(ROOT / folder, tmp_path / name)
    return tmp_path


@pytest.fixture
def empty_database(server, admin) -> str:
    name = f"empty_{uuid.uuid4().hex[:12]}"
    admin.execute(f"create database {name}")
    yield server.dsn(name)
    admin.execute(f"drop database {name} with (force)")


def add_phase(house: Path) -> None:
    """Do what the recipe says, in its order."""
    module, row, migration = blocks_of("a phase")
    (house / "nous_pipelines" / "phases" / "tags.py").write_text(module, "utf-8")
    table = house / "nous_pipelines" / "phases" / "phase_table.py"
    place = "from nous_pipelines.phases.tiers import COLUMNS"
    replaced(table, place, f"from nous_pipelines.phases.tags import TAGGED_COLUMNS, tag_phase\n{place}")
    replaced(table, '\n)\n"""In the order', f'\n{row})\n"""In the order')
    replaced(house / "nous_sql" / "schema.sql", "'censor', 'procedure')),", "'censor', 'procedure', 'tag')),")
    last = max(path.name for path in (house / "nous_sql" / "migrations").glob("*.sql"))
    (house / "nous_sql" / "migrations" / f"{int(last[:4]) + 1:04}_propose_tags.sql").write_text(migration, "utf-8")


def test_a_phase_is_a_module_and_a_row(house, empty_database):
    add_phase(house)
    path = os.pathsep.join(map(str, [house, ROOT, ROOT / "tests", ROOT / "tests" / "support"]))
    environment = {**os.environ, "PYTHONPATH": path, "NOUS_HOME": str(house / "home")}

    done = subprocess.run(
        [sys.executable, "-c", NIGHT, empty_database, str(house / "home")],
        cwd=house, env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["failures"] == []
    assert "1 fact tagged" in said["summary"]
    assert (said["tagged"], said["undone"]) == (["office", "untagged"], ["office"])
    assert (said["again"], said["left"]) == (0, {"aria": {"a person took its tag back": 1}})
    assert said["above"] == ["snapshot"]
    with psycopg.connect(empty_database) as connection:
        row = connection.execute("select count(*) from lifecycle.proposals where kind = 'tag' and state = 'undone'")
        assert row.fetchone() == (1,)
