"""What `nous demo` shows and leaves behind, over a file of one's own."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from forks import forked, typed_line
from postgres_homes import scratch

from nous_online.core.files import demo_home


def typed_by_user(home: Path, arguments: tuple[str, ...], output: Path) -> None:
    """Run `nous` as a user whose files everybody may read: for `forked`."""
    os.umask(0o022)
    for name in [name for name in os.environ if name.startswith(("NOUS_", "DAGSTER_"))]:
        del os.environ[name]
    typed_line(arguments, {"NOUS_HOME": str(home)}, output)


def nous(home: Path, *arguments: str) -> str:
    """Run a command in a process of its own, and return what it says."""
    output = home.with_name(f"{home.name}.said")
    code = forked(typed_by_user, home, arguments, output)
    said = output.read_text("utf-8")
    output.unlink()
    assert code == 0, said
    return said


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The home of a demo over a file of one's own, and what it showed."""
    lines = [
        {"id": "1", "content": "The staging database listens on port 5433.", "learned_at": "2026-05-01T09:00:00Z"},
        {"id": "2", "content": "The staging database listens on port 5433", "learned_at": "2026-05-08T09:00:00Z"},
        {"id": "3", "content": "The staging database listens on port 5434.", "learned_at": "2026-05-09T09:00:00Z"},
    ]
    source = tmp_path_factory.mktemp("mine") / "mine.jsonl"
    source.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with scratch() as place:
        yield place / "home", nous(place / "home", "demo", "--no-ui", "--from", str(source))


def test_shows_a_night_over_a_file_of_ones_own(shown: tuple[Path, str]):
    said = shown[1]

    assert "Merged: 1 memory merged into 1" in said
    assert "5433 ≠ 5434" in " ".join(said.split())
    commands = [line for line in said.splitlines() if "undo --night" in line]
    assert len(commands) == 2  # that of the merge, and that of the night
    assert all("NOUS_HOME=" in line for line in commands)
    assert "report.html" in said


def open_in(home: Path) -> list[str]:
    """Return everything in a home that others may list, read or write; of sockets their folder decides."""
    found = [(path, path.lstat().st_mode) for path in (home, *home.rglob("*"))]
    return [f"{stat.filemode(mode)} {path}" for path, mode in found if mode & 0o066 and not stat.S_ISSOCK(mode)]


def test_nothing_in_a_home_can_be_read_by_others_after_a_demo_an_export_and_an_erasing(shown: tuple[Path, str]):
    home = shown[0]
    demo = demo_home(home)
    nous(demo, "export", f"{demo}/pages", "--agent", "aria", "--format", "markdown")
    after_the_night, page = open_in(home), list(demo.rglob("report.html"))
    nous(demo, "erase", "aria", "--yes")

    assert page
    assert (demo / "dagster" / "dagster.yaml").exists()
    assert (after_the_night, open_in(home)) == ([], [])
