"""The sensor and the command that bring batches home: what they wait for, and what they bring though none is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_answers import answering
from batch_life import AT_NINE, NINE, VERDICTS, send_all, states
from night_runs import remember
from stopwatch import stopwatch
from typer.testing import CliRunner

from benchmarks.anthropic_server import LocalAnthropic, Play, PlayRoute
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.cli.command_line import application
from nous_online.memories.erasure import exclusive_copies_lock
from nous_pipelines.commands import operator_commands
from nous_pipelines.orchestration.code_location import batch_results, close_staff


@pytest.fixture
def api() -> Iterator[LocalAnthropic]:
    with LocalAnthropic(answer=answering(VERDICTS)) as server:
        yield server


@pytest.fixture
def night(
    database_url: str, api: LocalAnthropic, heart: Heart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Database]:
    """A batch on its way, in a home with a key for the local API."""
    known = {"NOUS_DATABASE_URL": database_url, "NOUS_HOME": str(tmp_path)}
    for name, value in {**known, "ANTHROPIC_API_KEY": "a-key", "ANTHROPIC_BASE_URL": api.url}.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    remember(heart, NINE, AT_NINE)
    opened = Database(database_url, role="nous_night")
    send_all(opened, api.url)
    yield opened
    opened.close()
    close_staff()
    settings.cache_clear()


@pytest.mark.usefixtures("night")
def test_while_memories_are_erased_a_tick_is_skipped_and_says_so(database_url, owner):
    took_s = stopwatch()
    with exclusive_copies_lock(database_url):
        said = batch_results().skip_message or ""
    lasted_s = took_s()

    assert "memories are being erased" in said
    assert (lasted_s < 30, states(owner)) == (True, ["submitted"])


@pytest.mark.usefixtures("night")
def test_what_was_paid_for_is_brought_home_though_claude_is_not_asked_any_more(owner, monkeypatch):
    monkeypatch.setenv("NOUS_JUDGE", "offline")
    settings.cache_clear()

    said = batch_results().skip_message

    assert (said, states(owner)) == ("1 batches were imported with 1 verdicts", ["imported"])


# --- the command that waits ---


@pytest.mark.usefixtures("night")
def test_waiting_goes_on_where_a_failure_passes(api, owner, monkeypatch):
    monkeypatch.setattr(operator_commands, "LOOK_EVERY_S", 0.0)
    api.play(*[Play(status=503)] * 3, route=PlayRoute.GET_BATCH)

    done = CliRunner().invoke(application(), ["batches", "--collect", "--wait"])

    assert (done.exit_code, states(owner)) == (0, ["imported"])
    assert "answered 503" in done.stderr


@pytest.mark.usefixtures("night")
def test_waiting_ends_where_a_failure_stays(api, owner, monkeypatch):
    monkeypatch.setattr(operator_commands, "LOOK_EVERY_S", 0.0)
    api.play_always(Play(status=401))

    done = CliRunner().invoke(application(), ["batches", "--collect", "--wait"])

    assert (done.exit_code, states(owner)) == (1, ["submitted"])
    assert "ANTHROPIC_API_KEY" in done.stderr
