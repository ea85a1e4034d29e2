"""The documentation as a site, without network: `python -m docs.site OUT`; needs the extra `docs`.

Pages link to files all over the repository, as they do where it is browsed; what they link to is gathered beside them.
"""

from __future__ import annotations

import logging
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "mkdocs.yml"
ENTRANCES = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"\]\(([^)#\s]+)|(?:src|srcset|href)=\"([^\"#]+)")
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
OWN_PAGE, FOLDER_PAGE = "README.md", "index.md"


def gather(folder: Path) -> list[str]:
    """Copy every page and what it links to into a folder, where it lies in the repository; return their names."""
    waiting = [ROOT / name for name in ENTRANCES] + sorted((ROOT / "docs").rglob("*.md"))
    known: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in known:
            continue
        known.add(path)
        place = folder / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = path.read_text("utf-8")
            waiting += list(targets_in(text, path))
            place.write_text(with_folder_pages(text, path), "utf-8")
        elif path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
            if not (path / OWN_PAGE).exists():
                (place / FOLDER_PAGE).write_text(listing(path), "utf-8")
            waiting += [each for each in path.iterdir() if each.suffix == ".md"]
        else:
            shutil.copy(path, place)
    return sorted(str(path.relative_to(ROOT)) for path in known)


def targets_in(text: str, page: Path) -> Iterator[Path]:
    """Yield the files and folders of the repository that a page links to."""
    for found in LINK.finditer(FENCE.sub("", text)):
        target = unquote(found[1] or found[2]).split(" ")[0]
        path = (page.parent / target).resolve()
        if ":" not in target and path.is_relative_to(ROOT) and path.exists():
            yield path


def with_folder_pages(text: str, page: Path) -> str:
    """Return a page whose links to folders lead to the page that lists each."""

    def led(found: re.Match[str]) -> str:
        path = (page.parent / found[1]).resolve() if found[1] else page
        name = OWN_PAGE if (path / OWN_PAGE).exists() else FOLDER_PAGE
        return f"{found[0].rstrip('/')}/{name}" if path.is_dir() else found[0]

    return LINK.sub(led, text)


def listing(folder: Path) -> str:
    """Return a page that lists the pages of a folder."""
    names = sorted(path.name for path in folder.iterdir() if path.suffix == ".md")
    lines = [f"- [{name.removesuffix('.md').replace('-', ' ')}]({name})" for name in names]
    return (
        "\n".join([f"# {folder.name.capitalize()}\n", *(lines or [f"The folder `{folder.relative_to(ROOT)}`."])]) + "\n"
    )


def build(out: Path) -> None:
    """Build the site into a folder; raises what MkDocs does where a link leads nowhere."""
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    with tempfile.TemporaryDirectory() as gathered:
        gather(Path(gathered))
        build_site(load_config(config_file_path=str(CONFIG), docs_dir=gathered, site_dir=str(out)))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "build/site").resolve())
