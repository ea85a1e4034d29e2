"""What the pages name exists: commands with their options, make targets, and whatever they link to."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from nous_online.interfaces.cli.command_line import application

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
    if path.parent.name != "decisions"
)
FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*nous (.+)$")


def commands_in(page: str) -> Iterator[list[str]]:
    """Yield every command of ours a page shows in a block or names in a code span, as words, comments left out."""
    text = (ROOT / page).read_text("utf-8")
    blocks = [body for language, body in FENCED.findall(text) if language in ("", "sh", "text", "console")]
    spans = re.findall(r"`([^`\n]+)`", FENCED.sub("", text))
    for line in (*spans, *(line for block in blocks for line in block.splitlines())):
        if found := COMMAND.match(line.strip()):
            yield shlex.split(re.split(r" +#| [|>] | && ", found[1])[0].replace("…", "").replace("'", ""))


@cache
def root_command() -> Any:
    return get_command(application())


def fault(words: list[str]) -> str | None:
    """Return what a command line names that the application does not have."""
    command = root_command()
    while words and (below := getattr(command, "commands", None)) is not None and not words[0].startswith("-"):
        if words[0] not in below:
            return f"nous has no command {words[0]!r}"
        command, *words = below[words[0]], *words[1:]
    known = {option for parameter in (*root_command().params, *command.params) for option in parameter.opts} | {
        "--help"
    }
    unknown = [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word) and word.split("=")[0] not in known]
    return f"nous {command.name} has no option {unknown[0]}" if unknown else None


@pytest.mark.parametrize("page", PAGES)
def test_commands_on_a_page_exist_with_their_options(page: str) -> None:
    faults = {(" ".join(words), fault(words)) for words in commands_in(page)}

    assert {each for each in faults if each[1] is not None} == set()


@pytest.mark.parametrize("page", PAGES)
def test_links_on_a_page_lead_somewhere(page: str) -> None:
    text = FENCED.sub("", (ROOT / page).read_text("utf-8"))
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text) + re.findall(r'(?:src|srcset)="([^":]+)"', text)

    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_on_a_page_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = (ROOT / page).read_text("utf-8")

    named = set(re.findall(r"(?:`|^|\$ )make ([a-z]+)", text, re.MULTILINE))

    assert named - targets == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_row_of_a_table_on_a_page_stands_under_its_head(page: str) -> None:
    blocks = FENCED.sub("", (ROOT / page).read_text("utf-8")).split("\n\n")
    tables = [block.strip().splitlines() for block in blocks if block.strip().startswith("|")]

    assert [lines[0] for lines in tables if not re.match(r"\|[ :|-]+$", lines[1] if len(lines) > 1 else "")] == []


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs/README.md").read_text("utf-8")
    pages = {page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")} - {"README.md"}

    assert {page for page in pages if f"]({page})" not in index} == set(), "add them to docs/README.md"


def test_a_command_that_does_not_exist_is_noticed() -> None:
    assert fault(["undo", "--night", "2026-06-01"]) is None
    assert fault(["dream"]) == "nous has no command 'dream'"
    assert fault(["undo", "--nigth=2026-06-01"]) == "nous undo has no option --nigth"


def test_the_pictures_of_states_show_every_transition() -> None:
    page, schema = ((ROOT / name).read_text("utf-8") for name in ("docs/states.md", "sql/schema.sql"))
    rows = re.search(r"insert into lifecycle\.transitions [^;]+", schema)
    assert rows is not None
    allowed = {row for row in re.findall(r"\('(\w+)', '(\w+)', '(\w+)'\)", rows[0]) if row[1] != row[2]}

    pictures = re.findall(r"^## (\w+)s\n\n```mermaid\n(.+?)^```", page, re.DOTALL | re.MULTILINE)
    drawn = {
        (kind.lower(), start.replace("[*]", "new"), end)
        for kind, picture in pictures
        for start, end in re.findall(r"^ +(\S+) --> (\w+): \S", picture, re.MULTILINE)
    }

    assert drawn == allowed


def test_the_glossary_explains_each_word_once() -> None:
    rows = re.findall(r"^\| (\*\*.+?) \|", (ROOT / "docs/glossary.md").read_text("utf-8"), re.MULTILINE)
    words = [word for row in rows for word in re.findall(r"\*\*(.+?)\*\*", row)]

    assert {word for word in words if words.count(word) > 1} == set()
