"""`nous dev` over real programs: what it says when one of them dies. The whole of it is in `test_browser.py`."""

from __future__ import annotations

from pathlib import Path

import psutil
from dagster_pages import END_S, dev
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


def taken_port(database_url: str) -> str:
    """Return a port on which something listens: the server's own."""
    return str(conninfo_to_dict(database_url)["port"])
