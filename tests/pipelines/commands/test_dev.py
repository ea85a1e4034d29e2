"""`nous dev` over real programs: what it says when all is up, and that nothing is left when it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
from postgres_homes import lives, scratch, wait_for
from psycopg.conninfo import conninfo_to_dict

from nous_online.database import postgres
from nous_online.processes import listen_to_signals

NOUS = [sys.executable, "-P", "-m", "nous_online.interfaces.cli"]
END_S = 60


@contextmanager
def dev(
    folder: Path, *options: str, cwd: Path | None = None, **variables: str
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run `nous dev`, and yield its process and the addresses it gives once all is up."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NOUS_", "DAGSTER_"))}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*NOUS, "dev", "--json", *options],
            cwd=cwd,
            env=inherited | variables,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            preexec_fn=listen_to_signals,  # noqa: PLW1509 (one thread; a shell in the background makes us deaf to Ctrl-C)
        )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (folder / "log").read_text()
            yield process, json.loads(line)
        finally:
            process.terminate()


def test_when_one_dies_it_says_which_and_fails_and_a_server_that_ran_before_stays(database_url: str, tmp_path: Path):
    taken = taken_port(database_url)
    with dev(tmp_path, "--no-ui", "--api-port", taken, NOUS_DATABASE_URL=database_url) as (
        process,
        addresses,
    ):
        (api,) = [each for each in psutil.Process(process.pid).children() if "api" in each.cmdline()]
        wait_for(lambda: "Application startup complete." in (tmp_path / "log").read_text())

        api.kill()
        code = process.wait(timeout=END_S)

    log = (tmp_path / "log").read_text().splitlines()
    assert code == 1
    assert set(addresses) == {"postgresql", "api", "console", "token"}
    assert addresses["api"] != f"http://127.0.0.1:{taken}"
    assert "api     | INFO:     Application startup complete." in log
    assert log[-1].startswith("error: API ended by SIGKILL; its last words: ")


def test_in_a_cloned_repository_it_runs_none_of_its_code_sets_none_of_its_variables_and_ends_whole_with_ctrl_c(
    tmp_path: Path,
):
    cloned = tmp_path / "cloned"
    cloned.mkdir()
    (cloned / ".env").write_text("NOUS_DATABASE_URL=postgresql://thief\nTHEIRS=1\n")
    for name in ("dagster", "dagster_webserver", "uvicorn", "nous_pipelines"):
        (cloned / f"{name}.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'a').write({name!r})")
    with scratch() as home, dev(tmp_path, "--port", "3456", cwd=cloned, NOUS_HOME=str(home)) as (process, addresses):
        family = psutil.Process(process.pid).children(recursive=True)
        environments = [each.environ() for each in family]
        folders = {each.cwd() for each in family if "dagster" in " ".join(each.cmdline())}
        answer = httpx.get(f"{addresses['api']}/health")
        told = {"Authorization": f"Bearer {addresses['token']}"}
        shown, asked = addresses["dagster"].partition("?")[0], f"{addresses['api']}/contradictions"
        page, _, own = addresses["console"].partition("?token=")
        strangers = [httpx.get(each).status_code for each in (shown, asked, page)]
        known = [httpx.get(each, headers=told).status_code for each in (shown, asked, page)]
        with httpx.Client() as browser:
            console = [browser.get(each, timeout=30).status_code for each in (addresses["console"], page)]
        command_lines = " ".join(word for each in family for word in each.cmdline())
        was_up = postgres.running(home) is not None

        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=END_S)

        assert (answer.status_code, was_up, code) == (200, True, 0)
        assert postgres.running(home) is None
        assert not [each for each in family if lives(each.pid)]
    assert set(addresses) == {"postgresql", "api", "console", "dagster", "token"}
    assert (strangers, known, console) == ([401, 401, 401], [200, 200, 401], [200, 200])
    assert addresses["token"] in addresses["dagster"]
    assert own not in command_lines + (tmp_path / "log").read_text()
    assert addresses["token"] not in command_lines
    assert len(family) > 3
    assert not [each for each in environments if "THEIRS" in each]
    assert folders == {str(home)}
    assert not (tmp_path / "was-run").exists()
    assert ".env" not in (tmp_path / "log").read_text()


def taken_port(database_url: str) -> str:
    """Return a port on which something listens: the server's own."""
    return str(conninfo_to_dict(database_url)["port"])
