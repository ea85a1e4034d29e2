"""`nous check` and `nous censor`: what they print, and the code they end with."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from nous_online.core.settings import settings
from nous_online.interfaces.cli.command_line import application


@pytest.fixture
def nous(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setenv("NOUS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NOUS_AGENT", raising=False)
    settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(application(), arguments)
    settings.cache_clear()


def test_what_blocks_ends_in_exit_code_one_and_what_warns_in_zero(nous: Callable[..., Any]) -> None:
    nous("censor", "add", "pushing directly to main branch", "use a [feature] branch", "--severity", "block")
    nous("censor", "add", "--literal", "git * origin", "look twice")

    pushed, pulled, other = (nous("check", f"git {words}") for words in ("push origin main", "pull origin", "status"))

    assert (pushed.exit_code, pulled.exit_code, other.exit_code) == (1, 0, 0)
    assert "use a [feature] branch" in pushed.stdout
    assert pushed.stdout.index("block") < pushed.stdout.index("warn")
    assert "block" not in pulled.stdout
    assert other.stdout == ""
    assert "nothing speaks against it" in other.stderr


def test_the_reason_of_a_censor_may_be_an_option_as_elsewhere(nous: Callable[..., Any]) -> None:
    added = nous("censor", "add", "rm -rf", "--reason", "ask first")
    neither, both = nous("censor", "add", "rm"), nous("censor", "add", "rm", "no", "--reason", "ask first")

    assert added.stdout.startswith("warn  rm -rf: ask first")
    assert (neither.exit_code, both.exit_code) == (1, 1)
    assert "as REASON or with --reason" in neither.stderr


def test_a_trigger_that_is_its_reason_too_is_shown_once(nous: Callable[..., Any]) -> None:
    rule = "never move the safe"
    shown = [
        nous("censor", "add", rule, rule, "--severity", "block"), nous("censor", "list"),
        nous("check", "move the safe"),
        nous("list"), nous("recall", "who may move the safe", "--full"), nous("context", "move the safe"),
    ]  # fmt: skip

    perhaps = nous("check", "shift the safe a bit", "--look-only").stdout

    assert [each.stdout.count(rule) for each in shown] == [1] * len(shown), [each.stdout for each in shown]
    assert perhaps.splitlines()[0] == f"warn  {rule}: did you mean '{rule}'?"


def test_adding_a_rule_that_could_not_be_read_says_so(nous: Callable[..., Any]) -> None:
    rules = ("If a caller is upset, never cut them off", "Never cut a caller off", "cutting a caller off")

    notes = [nous("censor", "add", rule, "be kind").stderr for rule in rules]
    literal = nous("censor", "add", "if upset, never *", "be kind", "--literal").stderr

    assert ["could not be read" in note for note in (*notes, literal)] == [True, False, False, False]


def test_machines_get_one_json_object(nous: Callable[..., Any]) -> None:
    added = json.loads(nous("censor", "add", "rm -rf /*", "no", "--literal", "--threshold", "2", "--json").stdout)
    checks = [json.loads(nous("check", "sudo rm -rf /usr", "--json").stdout) for _ in range(2)]
    listed = json.loads(nous("censor", "list", "--json").stdout)

    assert (added["severity"], added["escalation_threshold"]) == ("warn", 2)
    assert [check["is_blocked"] for check in checks] == [False, True]
    (activation,) = checks[1]["activations"]
    assert (activation["match"], activation["censor"]["id"]) == ("literal", added["id"])
    assert [(each["severity"], each["activation_count"]) for each in listed["censors"]] == [("block", 2)]


def test_what_a_check_and_the_list_print_can_be_pasted_into_a_report(nous: Callable[..., Any]) -> None:
    nous("censor", "add", "rm -rf", "no " * 60, "--literal")
    printed = nous("check", f"rm -rf {'build ' * 60}").stdout
    (activation,) = re.findall(r"nous censor report (\S+) --activation (\S+)\n", printed)

    reported = nous("censor", "report", activation[0], "--activation", activation[1])

    assert reported.exit_code == 0
    assert f"\n{activation[0]}  fired 1, 1 wrongly\n" in nous("censor", "list").stdout


def test_looking_only_counts_nothing(nous: Callable[..., Any]) -> None:
    nous("censor", "add", "rm -rf", "no", "--literal", "--threshold", "1")

    looked = nous("check", "rm -rf build", "--look-only")

    assert (looked.exit_code, "warn" in looked.stdout) == (0, True)
    assert nous("censor", "list").stdout.split()[-1] == "0"


def test_a_check_that_fails_is_no_permission(nous: Callable[..., Any]) -> None:
    failed = nous("check", " ", "--json")

    assert failed.exit_code == 2, "1 says that something blocks"
    assert json.loads(failed.stdout)["error"]["kind"] == "InvalidInput"


def test_a_check_for_an_unknown_agent_fails_with_the_code_of_a_failure(nous: Callable[..., Any]) -> None:
    nous("censor", "add", "rm -rf", "no", "--literal", "--severity", "block")

    blocked, failed = nous("check", "rm -rf build"), nous("check", "rm -rf build", "--agent", "nobody")

    assert (blocked.exit_code, failed.exit_code) == (1, 2)


def test_the_help_of_censors_says_how_an_action_is_checked(nous: Callable[..., Any]) -> None:
    assert "nous check" in nous("censor", "--help").stdout


def test_a_censor_of_a_project_is_heard_in_it(nous: Callable[..., Any]) -> None:
    nous("censor", "add", "deploy", "frozen", "--literal", "--severity", "block", "--project", "shop")

    assert nous("check", "deploy now", "--project", "shop").exit_code == 1
    assert nous("check", "deploy now").exit_code == 0


def test_without_censors_the_list_says_how_to_add_one(nous: Callable[..., Any]) -> None:
    assert "nous censor add" in nous("censor", "list").stderr
