"""The service that runs the worker and the nights: what is written for each manager, and what is said where none is."""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nous_online.core.errors import InvalidInput, Unavailable
from nous_online.core.settings import settings
from nous_online.interfaces.cli.command_line import application
from nous_pipelines.commands import autostart
from nous_pipelines.commands.autostart import CRON_BEGINS, MANAGERS, Autostart, SystemCommand, autostart_here

ODD = r"""a "b" $c `d` \e #f; %g"""


CRONTAB = """#!/bin/sh
case $1 in -l) cat "$HOME/crontab" ;; -) cat > "$HOME/crontab" ;; esac
"""
"""A crontab in a file, for a machine that has none: the lines of others are nobody's to try things on."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user who is not root, with a home and settings full of what has to be quoted, and a crontab."""
    place = tmp_path / "a home%s $x"
    for name, value in {
        "NOUS_HOME": str(place), "NOUS_LLM_KEY": ODD, "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "HOME": str(tmp_path), "UNRELATED": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "crontab").write_text(CRONTAB, "utf-8")
    (programs / "crontab").chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    settings.cache_clear()
    yield place
    settings.cache_clear()


def failing(service: Autostart) -> Autostart:
    """Return a service whose start the system refuses; an earlier one that is brought back leaves a file."""
    back = SystemCommand(["touch", str(autostart.settings_file().parent / "back")])
    return replace(service, starts=[SystemCommand(["false"])], ends=[SystemCommand(["true"])], restarts=[back])


def starting(service: Autostart) -> Autostart:
    """Return a service that starts and ends without asking the system."""
    return replace(service, starts=[SystemCommand(["true"])], ends=[SystemCommand(["true"])])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_understands_the_units(home: Path, tmp_path: Path) -> None:
    planned = autostart_here("systemd", (4, 30))
    for path, text in planned.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    units = [str(path) for path in planned.files if path.suffix in {".service", ".timer"}]
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )

    assert [line for line in verified.stderr.splitlines() if "nous" in line] == []
    assert (tmp_path / "config/systemd/user/nous-night.timer").read_text("utf-8").count("04:30:00") == 1


def test_launchd_can_read_its_files(home: Path) -> None:
    planned = autostart_here("launchd", (4, 30))
    agents = [plistlib.loads(text.encode()) for path, text in planned.files.items() if path.suffix == ".plist"]

    assert [agent["Label"] for agent in agents] == ["nous-worker", "nous-night"]
    assert agents[1]["StartCalendarInterval"] == {"Hour": 4, "Minute": 30}
    assert str(home) in agents[0]["StandardErrorPath"]


def test_cron_keeps_the_lines_of_others(home: Path, tmp_path: Path) -> None:
    kept, table = "MAILTO=ana\n0 1 * * * backup", tmp_path / "crontab"
    table.write_text(kept, "utf-8")

    autostart.install(autostart_here("cron", (4, 30)))
    once = table.read_text("utf-8")
    autostart.install(autostart_here("cron", (5, 0)))
    again = table.read_text("utf-8")
    autostart.uninstall(autostart_here("cron", (0, 0)))

    assert once.startswith(f"{kept}\n{CRON_BEGINS}\n*/5 * * * * ")
    assert r"a home\%s" in once
    assert "\n30 4 * * * " in once
    assert again == once.replace("30 4 * * *", "0 5 * * *")
    assert table.read_text("utf-8") == f"{kept}\n"
    assert not (home / "service.env").exists()


def test_a_shell_reads_the_settings_as_they_were_and_nobody_else_may(home: Path) -> None:
    planned = autostart_here("cron", (3, 0))
    autostart.install(starting(planned))
    (path,) = planned.files

    said = subprocess.run(
        ["sh", "-c", f"set -a; . '{path}'; env"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    ).stdout.splitlines()

    assert {f"NOUS_LLM_KEY={ODD}", f"NOUS_HOME={home}"} <= set(said)
    assert not any(line.startswith("UNRELATED") for line in said)
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("manager", MANAGERS)
def test_what_the_system_refuses_leaves_nothing_or_the_service_that_ran_before(
    home: Path, manager: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = MANAGERS[manager]((3, 0))

    with pytest.raises(Unavailable, match="`false` failed: exit code 1; nothing was changed"):
        autostart.install(failing(planned))
    assert not any(path.exists() for path in [*planned.files, home / "back"])

    autostart.install(starting(planned))
    monkeypatch.setenv("NOUS_LLM_KEY", "another")
    with pytest.raises(Unavailable):
        autostart.install(replace(failing(MANAGERS[manager]((5, 0))), is_installed=True))
    assert {path: path.read_text("utf-8") for path in planned.files} == dict(planned.files)
    assert (home / "back").exists()

    autostart.uninstall(starting(planned))
    assert not any(path.exists() for path in planned.files)


def test_a_service_of_cron_is_none_of_systemd_and_comes_back_where_a_new_one_is_refused(
    home: Path, tmp_path: Path
) -> None:
    autostart.install(autostart_here("cron", (4, 30)))
    ran = (tmp_path / "crontab").read_text("utf-8")
    refused = replace(autostart_here("cron", (5, 0)), starts=[SystemCommand(["false"])])

    assert [autostart_here(manager, (4, 30)).is_installed for manager in ("cron", "systemd", "launchd")] == [
        True,
        False,
        False,
    ]
    with pytest.raises(Unavailable):
        autostart.install(refused)
    assert (tmp_path / "crontab").read_text("utf-8") == ran


def test_a_setting_that_no_file_can_hold_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOUS_LLM_KEY", "it's")

    with pytest.raises(InvalidInput, match="NOUS_LLM_KEY has a quotation mark"):
        autostart_here("systemd", (3, 0))


def test_where_nobody_runs_services_it_says_what_to_run(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")

    with pytest.raises(Unavailable, match="nous night --backfill` once a day"):
        autostart_here(None, (3, 0))


def test_the_commands_show_no_key_and_refuse_what_is_no_time(home: Path) -> None:
    def nous(*words: str) -> str:
        return CliRunner().invoke(application(), ["service", *words, "--manager", "cron"]).output

    assert ODD not in nous("install", "--dry-run")
    assert "NOUS_LLM_KEY=…" in json.loads(nous("install", "--dry-run", "--json"))["files"][str(home / "service.env")]
    assert nous("install", "--at", "25:00") == "error: not a time of day: --at '25:00' (want HH:MM, such as 03:00)\n"
    assert json.loads(nous("status", "--json"))["is_installed"] is False
    assert nous("install").startswith("installed  with cron; the nights run at 03:00")
    assert set(json.loads(nous("status", "--json"))["programs"].values()) == {"runs or waits"}
    assert json.loads(nous("uninstall", "--json")) == {"is_dry_run": False, "was_installed": True}
    assert nous("uninstall") == "no service of Nous is installed with cron\n"
