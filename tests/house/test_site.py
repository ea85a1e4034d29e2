"""The documentation as a site: built without network, strictly; no link leads nowhere, nothing loads from elsewhere."""

from __future__ import annotations

import socket
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from docs.site import ENTRANCES, ROOT, build, gather

search = pytest.importorskip(
    "material.plugins.search.plugin", reason="the site is built where the extra `docs` is installed"
)
LOADING = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "srcset"), ("link", "href")}


class Links(HTMLParser):
    """What a page links to, what it loads, and where in it one can be led."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            if value and (tag, name) in LOADING:
                self.loaded.append(value)
            if value and (tag, name) in {*LOADING, ("a", "href")}:
                self.targets.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built on a machine that reaches nobody."""

    def refused(*_: object, **__: object) -> None:
        raise OSError("the site is built without network")

    out = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        # Indexing for the search box takes a third of the time, and changes no page.
        patch.setattr(search.SearchIndex, "add_entry_from_context", lambda *_: None)
        patch.setattr(socket, "create_connection", refused)
        patch.setattr(socket, "getaddrinfo", refused)
        build(out)
    return out


def test_every_page_of_the_docs_is_in_the_site(site: Path):
    pages = [*ENTRANCES, *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]

    built = {str(path.relative_to(site).with_suffix(".md")) for path in site.rglob("*.html")}

    assert [page for page in pages if page not in built and not page.endswith("README.md")] == []
    assert {"index.md", "docs/index.md"} <= built


def test_no_link_leads_nowhere_and_nothing_is_loaded_from_another_host(site: Path):
    pages = {path: Links(path.read_text("utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    lost: list[str] = []
    for path, links in pages.items():
        lost += [f"{path.name} loads {each}" for each in links.loaded if urlsplit(each).netloc]
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            led = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            led = led / "index.html" if led.is_dir() else led
            if not led.exists():
                lost.append(f"{path.relative_to(site)} links to {target}")
            elif led in pages and parts.fragment and unquote(parts.fragment) not in pages[led].places:
                lost.append(f"{path.relative_to(site)} links to {target}, a place that is not there")

    assert len(pages) > 50
    assert lost == []


def test_what_is_gathered_lies_where_it_lies_in_the_repository(tmp_path: Path):
    names = gather(tmp_path)

    assert {"README.md", "docs/heart.md", "benchmarks/results/recall.json", "docs/images/console.png"} <= set(names)
    assert (tmp_path / "docs" / "decisions" / "index.md").read_text("utf-8").startswith("# Decisions")
