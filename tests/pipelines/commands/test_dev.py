"""`nous dev` over real programs: what it says when one of them dies. The whole of it is in `test_browser.py`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil
from dagster_pages import END_S, NOUS, dev
from postgres_homes import wait_for
from psycopg.conninfo import conninfo_to_dict


def test_when_one_dies_it_says_which_and_fails_and_a_server_that_ran_before_stays(database_url: str, tmp_path: Path):
    taken = taken_port(database_url)
    with dev(tmp_path, "--no-ui", "--api-port", taken, home=tmp_path, NOUS_DATABASE_URL=database_url) as one:
        (api,) = [each for each in psutil.Process(one.process.pid).children() if "api" in each.cmdline()]
        wait_for(lambda: "Application startup complete." in one.log.read_text())

        api.kill()
        code = one.process.wait(timeout=END_S)

    log = one.log.read_text().splitlines()
    assert code == 1
    assert set(one.addresses) == {"postgresql", "api", "console", "token"}
    assert one.addresses["api"] != f"http://127.0.0.1:{taken}"
    assert "api     | INFO:     Application startup complete." in log
    assert log[-1].startswith("error: API ended by SIGKILL; its last words: ")


def test_it_is_not_ready_where_dagster_could_not_load_the_nights(database_url: str, tmp_path: Path):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NOUS_", "DAGSTER_"))}
    own = {"NOUS_HOME": str(tmp_path), "NOUS_DATABASE_URL": database_url, "NOUS_NIGHT_CRON": "0 3 30 2 *"}

    done = subprocess.run(
        [*NOUS, "dev", "--no-api"], env=inherited | own, capture_output=True, text=True, timeout=END_S, check=False
    )

    assert done.returncode == 1
    assert "ready  Dagster" not in done.stdout
    assert "error: Dagster can't load nous_pipelines.definitions: " in done.stderr
    assert "invalid cron schedule '0 3 30 2 *'" in done.stderr.splitlines()[-1]


def taken_port(database_url: str) -> str:
    """Return a port on which something listens: the server's own."""
    return str(conninfo_to_dict(database_url)["port"])
