"""Which pages are generated, whether they are current, and writing them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.generate.python import python_page

FOLDER = Path(__file__).parent.parent / "reference"
PAGES: dict[str, Callable[[], str]] = {"python.md": python_page}
"""Each page of the reference, with the function that returns its text."""


def write_pages(folder: Path = FOLDER) -> list[Path]:
    """Write every page, and return those whose text changed."""
    folder.mkdir(exist_ok=True)
    changed: list[Path] = []
    for name, text_of in PAGES.items():
        path, text = folder / name, text_of()
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            changed.append(path)
    return changed
