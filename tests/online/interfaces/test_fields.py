"""What a verb may be told is declared in one row: its signature, the interfaces and the reference say the same."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Annotated, Any, TypedDict, Unpack

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from docs.generate.pages import PAGES
from nous_online.core.details import STORED
from nous_online.core.fields import Alias, Line, describe, rows_of
from nous_online.heart import Heart
from nous_online.interfaces.api.application import application as api
from nous_online.interfaces.api.bodies import HEADERS, body
from nous_online.interfaces.cli.command_line import application
from nous_online.interfaces.cli.output import with_options
from nous_online.interfaces.mcp.tools import TOOLS, arguments_of

VERBS = {
    "learn": ("FactBody", "remember", "learn"),
    "recall": ("RecallBody", "recall", "recall"),
    "assemble_context": ("AssembleBody", "context", "context"),
    "predict": ("PredictBody", None, "predict"),
    "start_episode": ("StartBody", "start_episode", None),
    "update_episode": ("UpdateBody", None, None),
    "close_episode": ("CloseBody", "close_episode", None),
    "record_episode": ("RecordBody", None, None),
    "store_procedure": ("ProcedureBody", None, None),
    "add_censor": ("CensorBody", None, "censor add"),
    "check_censors": ("CheckBody", "check_action", "check"),
    "record_decision": ("DecisionBody", "record_decision", None),
    "decisions": (None, None, None),
    "focus": ("FocusBody", None, None),
    "load_context": ("LoadBody", None, None),
    "end_session": ("EndBody", None, None),
}
"""Verbs with their body, their tool and their command; None where there is none."""
ELSEWHERE = {
    "RecallBody": ("at",),
    "StartBody": ("procedures_activated",),
    "UpdateBody": ("procedures_activated",),
    "CloseBody": ("procedures_activated",),
    "RecordBody": ("procedures_activated",),
    "LoadBody": ("fact_ids", "episode_ids", "censor_ids"),
    "start_episode": ("source",),
    "close_episode": ("title", "frame"),
}
"""What a body or a tool leaves out on purpose."""
ROWS = [(verb, name) for verb in VERBS for name in rows_of(getattr(Heart, verb))]


@cache
def page(name: str) -> str:
    return PAGES[name]()


@cache
def bodies() -> dict[str, Any]:
    return api().openapi()["components"]["schemas"]


@pytest.mark.parametrize(("verb", "name"), ROWS)
def test_a_row_is_in_the_signature_the_help_and_every_interface(verb: str, name: str) -> None:
    called = getattr(Heart, verb)
    row = rows_of(called)[name]
    named, tool, command = VERBS[verb]

    assert name in inspect.signature(called).parameters
    assert f"- `{name}`: {row.field.sentence}" in inspect.getdoc(called).splitlines()
    assert f"- `{name}`: {row.field.sentence}\n" in page("reference/python.md")
    if named and name not in HEADERS and not isinstance(row.field, Alias):
        published = bodies()[named]["properties"]
        assert (name in published) is (name not in ELSEWHERE.get(named, ()))
        assert published.get(name, {}).get("description", row.field.about).startswith(row.field.about)
    if tool and row.field.brief is not None:
        (asked,) = (each.arguments for each in TOOLS if each.name == tool)
        assert (name in asked) is (name not in ELSEWHERE.get(tool, ()))
        assert asked.get(name, {}).get("description", row.field.brief) == row.field.brief
    if command and row.field.option is not None:
        option = (row.field.option or f"--{name.replace('_', '-')}").split()[0]
        taken = command_called(command).params
        assert [each.name for each in taken if option in each.opts] == [name]
        assert re.search(rf"`{option}[ `]", page("reference/cli.md"))


@cache
def command_called(name: str) -> Any:
    found = get_command(application())
    for word in name.split():
        found = found.commands[word]
    return found


class NewDetails(TypedDict, total=False):
    """A table with a field that was just added."""

    mood: Annotated[str | None, Line("How the speaker felt.", most=50, option="--mood", brief="")]


def test_a_new_field_is_one_row() -> None:
    def verb(**details: Unpack[NewDetails]) -> None:
        """Do something."""

    describe(verb)

    mood_body = body("MoodBody", NewDetails)
    heard = []
    app = typer.Typer()
    app.command()(with_options(NewDetails)(lambda **told: heard.append(told)))
    CliRunner().invoke(app, ["--mood", "calm"])

    assert list(inspect.signature(verb).parameters) == ["mood"]
    assert mood_body.model_json_schema()["properties"]["mood"]["description"] == "How the speaker felt."
    assert arguments_of(verb) == {"mood": {"type": "string"}}
    assert heard == [{"mood": "calm"}]


@pytest.mark.parametrize("stored", STORED)
def test_every_field_of_what_is_stored_says_what_it_means(stored: str) -> None:
    (section,) = re.findall(rf"^### {stored}\n(.*?)^### ", page("reference/python.md"), re.MULTILINE | re.DOTALL)

    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", section, re.MULTILINE)
    assert rows
    assert [name for name, told in rows if not told.strip()] == []
