"""What lies in a home is for its owner alone, however it came there; and one that lay open is closed, or told of."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_homes import scratch

from nous_online.core.home import OURS, readable_by_others, tighten
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.interfaces import doctor

NOUS = [sys.executable, "-m", "nous_online.interfaces.cli"]
HISTORY = [
    {"id": "1", "content": "The staging database listens on port 5433.", "learned_at": "2026-05-01T09:00:00Z"},
    {"id": "2", "content": "The staging database listens on port 5434.", "learned_at": "2026-05-08T09:00:00Z"},
]


def nous(home: Path, *arguments: str) -> str:
    """Run a command as a user whose files everybody may read."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NOUS_", "DAGSTER_"))}
    ended = subprocess.run(
        [*NOUS, *arguments],
        env={**environment, "NOUS_HOME": str(home)},
        umask=0o022, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def open_in(home: Path) -> list[str]:
    """Return everything in a home that others may list, read or write; of sockets their folder decides."""
    found = [(path, path.lstat().st_mode) for path in (home, *home.rglob("*"))]
    return [f"{stat.filemode(mode)} {path}" for path, mode in found if mode & 0o066 and not stat.S_ISSOCK(mode)]


def test_nothing_in_a_home_can_be_read_by_others_after_a_demo_an_export_and_an_erasing(tmp_path: Path) -> None:
    source = tmp_path / "mine.jsonl"
    source.write_text("".join(f"{json.dumps(line)}\n" for line in HISTORY))
    with scratch() as place:
        home = place / "home"
        nous(home, "demo", "--no-ui", "--from", str(source))
        demo = home / "demo"
        nous(demo, "export", f"{demo}/pages", "--agent", "aria", "--format", "markdown")
        after_the_night, page = open_in(home), list(demo.rglob("report.html"))
        nous(demo, "erase", "aria", "--yes")

        assert page
        assert (demo / "dagster" / "dagster.yaml").exists()
        assert (after_the_night, open_in(home)) == ([], [])


@pytest.fixture
def open_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home as an earlier version left it, with nothing running in it."""
    home = tmp_path / "home"
    home.mkdir()
    for name in OURS:
        if "." in name:
            (home / name).write_text("a memory")
            (home / name).chmod(0o644)
        else:
            (home / name).mkdir()
            (home / name).chmod(0o755)
    (home / "theirs").mkdir(mode=0o755)
    (home / "theirs").chmod(0o755)
    home.chmod(0o755)
    monkeypatch.setenv("NOUS_HOME", str(home))
    settings.cache_clear()
    yield home
    settings.cache_clear()


def test_what_is_ours_is_closed_and_what_is_not_stays_as_it_is(open_home: Path) -> None:
    tighten(open_home)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (open_home, *open_home.iterdir())}
    assert modes == {name: 0o600 if "." in name else 0o700 for name in OURS} | {"home": 0o755, "theirs": 0o755}
    assert list(readable_by_others(open_home)) == [open_home]


def test_doctor_says_what_others_can_read_and_how_to_close_it(open_home: Path) -> None:
    said = next(check for check in doctor.checks() if check.name == "home")

    subprocess.run(said.message.partition("close it: ")[2], shell=True, check=True)  # noqa: S602 (as a user would)
    then = next(check for check in doctor.checks() if check.name == "home")

    assert (said.is_ok, then.is_ok) == (False, True)
    assert str(open_home / "snapshots") in said.message


def test_starting_the_server_closes_what_an_earlier_version_left_open() -> None:
    with scratch() as place:
        home = place / "home"
        (home / "snapshots").mkdir(parents=True)
        (home / "snapshots").chmod(0o755)

        postgres.ensure(home)

        assert stat.S_IMODE((home / "snapshots").stat().st_mode) == 0o700


def test_a_code_location_of_dagster_makes_private_files() -> None:
    asked = "import os; os.umask(0o022); import nous_pipelines.definitions; print(oct(os.umask(0)))"

    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", asked], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == "0o77"
