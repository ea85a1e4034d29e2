"""Which pages and pictures are generated, and writing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from docs.generate.command_line import command_line_page
from docs.generate.faults import fault_page
from docs.generate.nights import assets, night_page
from docs.generate.python import python_page
from docs.generate.rest import rest_page
from release.licences import licence_page

DOCS = Path(__file__).parent.parent
PAGES: Mapping[str, Callable[[], str]] = {
    "images/assets.svg": assets,
    "reference/cli.md": command_line_page,
    "reference/licences.md": licence_page,
    "reference/faults.md": fault_page,
    "reference/nights.md": night_page,
    "reference/python.md": python_page,
    "reference/rest.md": rest_page,
}
"""Each generated file under docs/, with the function that returns its text."""


def write_pages(docs: Path = DOCS, *, pages: Mapping[str, Callable[[], str]] = PAGES) -> list[Path]:
    """Write every one of them, and return those whose text changed."""
    changed: list[Path] = []
    for name, text_of in pages.items():
        path, text = docs / name, text_of()
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            changed.append(path)
    return changed
