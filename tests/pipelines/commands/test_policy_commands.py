"""`nous policy`: what an agent's nights do, shown and set."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from nous_online.core.settings import settings
from nous_online.interfaces.cli.command_line import application
from nous_pipelines.night_policy import NightPolicy, meanings


@pytest.fixture
def nous(heart, database_url, tmp_path, monkeypatch):
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setenv("NOUS_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(application(), ["policy", "--agent", "aria", *arguments])
    settings.cache_clear()


def stored(owner):
    return owner.execute("select agent_id, policy from lifecycle.agent_policies").fetchall()


def said(result):
    return json.loads(result.stdout)


def test_every_field_is_shown_with_its_default_and_what_it_means(nous):
    shown = said(nous("--json"))

    assert list(shown["fields"]) == list(NightPolicy().as_dict())
    assert shown["fields"]["unused_after_days"]["value"] == shown["fields"]["unused_after_days"]["default"] == 90
    assert all(field["meaning"].endswith((".", ")")) for field in shown["fields"].values())
    assert "unused_after_days" in nous().stdout


def test_only_what_is_set_is_shown_after_setting_it(nous):
    shown = nous("unused_after_days=180").stdout

    assert "unused_after_days" in shown
    assert "rank_step" not in shown


def test_every_field_has_a_meaning():
    assert set(meanings()) == set(NightPolicy().as_dict())


def test_what_is_set_is_stored_and_added_to_what_was(nous, owner):
    nous("unused_after_days=180")
    shown = said(nous("rank_step=0.1", "--json"))

    assert shown["own"] == {"unused_after_days": 180, "rank_step": 0.1}
    assert stored(owner) == [("aria", {"unused_after_days": 180, "rank_step": 0.1})]


def test_a_reset_goes_back_to_the_default(nous, owner):
    nous("unused_after_days=180", "rank_step=0.1")
    nous("--reset", "unused_after_days=100")

    assert stored(owner) == [("aria", {"unused_after_days": 100})]


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("unused_after_days", "is not of the form FIELD=NUMBER"),
        ("unused=90", "has no field 'unused'"),
        ("unused_after_days=-1", "must be between 0 and"),
        ("unused_after_days=1.5", "must be a whole number"),
        ("fossil_after_days=1", "an episode becomes a summary"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_and_nothing_stored(nous, owner, assignment, words):
    refused = nous(assignment, "--json")

    assert refused.exit_code != 0
    assert words in said(refused)["error"]["message"]
    assert stored(owner) == []


def test_fields_that_only_make_sense_together_are_set_together(nous, owner):
    nous("summary_after_days=40", "compressed_after_days=50")

    assert stored(owner) == [("aria", {"summary_after_days": 40, "compressed_after_days": 50})]


def test_an_agent_nobody_knows_is_named(nous, owner):
    refused = nous("--agent", "nobody", "rank_step=0.1", "--json")

    assert "'nobody' is not known" in said(refused)["error"]["message"]
    assert stored(owner) == []
