"""What a verb may be told is declared in one row: its signature, the interfaces and the reference say the same."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Annotated, Any, TypedDict, Unpack

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from docs.generate.pages import PAGES
from nous_online.core.fields import Alias, Line, describe, rows_of
from nous_online.heart import Heart
from nous_online.interfaces.api.application import application as api
from nous_online.interfaces.api.bodies import HEADERS, Body, carrying
from nous_online.interfaces.cli import application
from nous_online.interfaces.cli.options import with_options
from nous_online.interfaces.mcp.tools import TOOLS, offered

VERBS = {"learn": ("FactBody", "remember", "learn")}
"""Verbs with their body, their tool and their command; None where there is none."""
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
    body, tool, command = VERBS[verb]

    assert name in inspect.signature(called).parameters
    assert f"- `{name}`: {row.field.sentence}" in inspect.getdoc(called).splitlines()
    assert f"- `{name}`: {row.field.sentence}\n" in page("reference/python.md")
    if body and name not in HEADERS and not isinstance(row.field, Alias):
        assert bodies()[body]["properties"][name]["description"].startswith(row.field.about)
        assert f"| `{name}`" in page("reference/rest.md")
    if tool and row.field.brief is not None:
        (published,) = (each for each in TOOLS if each.name == tool)
        assert published.arguments[name].get("description", "") == row.field.brief
    if command and row.field.option:
        taken = get_command(application()).commands[command].params
        assert [each.name for each in taken if row.field.option in each.opts] == [name]
        assert f"`{row.field.option} " in page("reference/cli.md")


class NewDetails(TypedDict, total=False):
    """A table with a field that was just added."""

    mood: Annotated[str | None, Line("How the speaker felt.", most=50, option="--mood", brief="")]


def test_a_new_field_is_one_row() -> None:
    def verb(**details: Unpack[NewDetails]) -> None:
        """Do something."""

    describe(verb)

    @carrying(NewDetails)
    class MoodBody(Body):
        """A mood."""

    heard = []
    app = typer.Typer()
    app.command()(with_options(NewDetails)(lambda **told: heard.append(told)))
    CliRunner().invoke(app, ["--mood", "calm"])

    assert list(inspect.signature(verb).parameters) == ["mood"]
    assert MoodBody.model_json_schema()["properties"]["mood"]["description"] == "How the speaker felt."
    assert offered(verb) == {"mood": {"type": "string"}}
    assert heard == [{"mood": "calm"}]
