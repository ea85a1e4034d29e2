"""What lies in a home is for its owner alone, however it came there; and one that lay open is closed, or told of."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from twins import Say, Twin

from nous_online.core.files import OURS, readable_by_others, tighten
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.interfaces import doctor


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


def test_doctor_does_not_say_of_a_home_that_is_not_there_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOUS_HOME", str(tmp_path / "none"))
    settings.cache_clear()

    said = doctor.look_at_privacy()
    settings.cache_clear()

    assert said.startswith(f"{tmp_path / 'none'} does not exist yet")
    assert not (tmp_path / "none").exists()


def test_starting_the_server_closes_what_an_earlier_version_left_open(ready_home: Path) -> None:
    (ready_home / "snapshots").mkdir()
    (ready_home / "snapshots").chmod(0o755)

    postgres.ensure(ready_home)

    assert stat.S_IMODE((ready_home / "snapshots").stat().st_mode) == 0o700


def test_a_code_location_of_dagster_makes_private_files() -> None:
    def load(say: Say) -> None:
        os.umask(0o022)
        for name in [name for name in sys.modules if name.startswith("nous_pipelines.")]:
            del sys.modules[name]  # as where nothing was loaded yet
        import_module("nous_pipelines.definitions")
        say(os.umask(0))

    assert Twin(load).end() == (0, [0o077])
