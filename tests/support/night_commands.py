"""`nous` as somebody types it, over a database of a test; Dagster keeps what runs there were, and no events."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from memory_disk import memory_disk
from night_runs import NIGHT
from typer.testing import CliRunner

from nous_online.core.settings import settings
from nous_online.interfaces.cli.command_line import application

NINE = "The office opens at nine."
BACKUPS = ("Backups are kept for 30 days.", "Backups are kept for 14 days.")
HERE = ("--date", NIGHT.isoformat(), "--policy", "candidate_similarity=0.7")
NO_EVENTS = """
telemetry: {enabled: false}
event_log_storage:
    module: nous_pipelines.orchestration.dagster_classes
    class: NoEvents
"""


@contextmanager
def dagster_of_no_events() -> Iterator[Path]:
    """A Dagster home that keeps its runs, in memory where that is possible, and nothing of what happened in them."""
    with tempfile.TemporaryDirectory(prefix="nous-dagster-", dir=memory_disk()) as folder:
        home = Path(folder)
        (home / "dagster.yaml").write_text(NO_EVENTS)
        yield home


@contextmanager
def typed(url: str, home: Path, dagster_home: Path) -> Iterator[Callable[..., Result]]:
    """Run a command over this database, in process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOUS_DATABASE_URL", url)
        patch.setenv("NOUS_HOME", str(home))
        patch.setenv("DAGSTER_HOME", str(dagster_home))
        patch.setenv("NOUS_DAGSTER_DB_URL", "unused")
        patch.delenv("NOUS_AGENT", raising=False)
        settings.cache_clear()
        yield lambda *arguments: CliRunner().invoke(application(), arguments)
    settings.cache_clear()


def as_json(result: Result) -> Any:
    assert result.stdout.count("\n") == 1, result.output
    return json.loads(result.stdout)
