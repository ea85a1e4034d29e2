"""The generated reference is what the code says now, and leaves nothing public out."""

from __future__ import annotations

import re
from functools import cache

import pytest

import nous_online
from docs.generate.pages import DOCS, PAGES, write_pages
from nous_online.heart import Heart


@cache
def text_of(name: str) -> str:
    return PAGES[name]()


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_or_picture_is_current(name: str) -> None:
    assert text_of(name) == (DOCS / name).read_text("utf-8"), "run `make docs`"


def test_nothing_else_lies_among_the_generated_pages() -> None:
    assert {f"reference/{path.name}" for path in (DOCS / "reference").iterdir()} <= set(PAGES)


def test_every_verb_and_every_public_name_has_a_section() -> None:
    headings = set(re.findall(r"^### (\w+)$", text_of("reference/python.md"), re.MULTILINE))
    verbs = {name for name in dir(Heart) if not name.startswith("_") and callable(getattr(Heart, name))}

    missing = (verbs | set(nous_online.__all__)) - headings - {"Heart", "NousError"}

    assert missing == set()


def test_pages_that_are_current_are_not_written_again(tmp_path) -> None:
    pages = {"one.md": lambda: "one", "below/two.md": lambda: "two"}

    first, second = write_pages(tmp_path, pages=pages), write_pages(tmp_path, pages=pages)

    assert ([path.read_text("utf-8") for path in first], second) == (["one", "two"], [])
