"""Dagster's interface over a store of its own, and a person who clicks in it: what the browser test is made of."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil
from postgres_homes import lives, scratch

from nous_online import processes
from nous_online.database import postgres
from nous_pipelines.demo.show import history
from nous_pipelines.orchestration.instance import HOST, free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LOCATION = "nous_pipelines.definitions"
REPOSITORY = "__repository__"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
TOKEN = "a-token-for-this-test"  # noqa: S105 (a test's)
UP_S = 300
END_S = 60
FETCH_S = 240
NOUS = [sys.executable, "-W", "ignore", "-c", "from nous_online.interfaces.cli.command_line import main; main()"]
RANGE = 'input[placeholder^="ex: "], input[placeholder="No matching partitions"]'


@dataclass(frozen=True)
class Interface:
    """A running interface: where it answers."""

    address: str
    token: str

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """Ask Dagster's GraphQL."""
        answer = httpx.post(
            f"{self.address}/graphql", json={"query": query, "variables": variables},
            headers={"Authorization": f"Bearer {self.token}"}, timeout=60,
        )  # fmt: skip
        return answer.raise_for_status().json()["data"]

    def backfill(self, backfill_id: str) -> dict[str, Any]:
        """Return the state of a backfill: its status, and how its partitions ended."""
        query = """query ($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill {
                     status error { message } partitionNames } } }"""
        return self.ask(query, id=backfill_id)["partitionBackfillOrError"]

    def failures(self) -> list[str]:
        """Return what broke in the runs that failed: the step, and what it said."""
        query = """{ runsOrError(filter: {statuses: [FAILURE]}) { ... on Runs { results { eventConnection { events {
                     ... on ExecutionStepFailureEvent { stepKey error { message causes { message } } } } } } } } }"""
        runs = self.ask(query)["runsOrError"]["results"]
        return [str(event) for run in runs for event in run["eventConnection"]["events"] if event]

    def schedule(self, name: str) -> str:
        """Return whether a schedule is RUNNING or STOPPED."""
        query = """query ($of: ScheduleSelector!) { scheduleOrError(scheduleSelector: $of) { ... on Schedule {
                     scheduleState { status } } } }"""
        selector = {"repositoryName": REPOSITORY, "repositoryLocationName": LOCATION, "scheduleName": name}
        return self.ask(query, of=selector)["scheduleOrError"]["scheduleState"]["status"]

    def partitions(self, asset: str) -> set[str]:
        """Return the partitions of an asset that are materialised."""
        query = """query ($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
                     assetPartitionStatuses { ... on TimePartitionStatuses {
                       ranges { startKey endKey status } } } } } }"""
        ranges = self.ask(query, key={"path": [asset]})["assetNodeOrError"]["assetPartitionStatuses"]["ranges"]
        return {each[end] for each in ranges if each["status"] == "MATERIALIZED" for end in ("startKey", "endKey")}


@contextmanager
def interface_over_a_history(nights: list[date], *, most: int | None) -> Iterator[Interface]:
    """Prepare a store that ends with `nights`, and run `nous dev` over it until the block ends.

    It holds the whole sample history, or its latest `most` memories.
    """
    with scratch() as home:
        server = postgres.ensure(home)
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("NOUS_", "DAGSTER_"))},
            "NOUS_HOME": str(home),
            "NOUS_DATABASE_URL": server.dsn(),
            "NOUS_TOKEN": TOKEN,
        }
        learn_history(home, environment, until=nights[-1], most=most)
        port = free_port(0)
        with (home / "interface.log").open("wb") as log:
            process = subprocess.Popen(
                [*NOUS, "dev", "--port", str(port), "--no-api"],
                env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
                preexec_fn=processes.listen_to_signals,  # noqa: PLW1509 (started from one thread)
            )  # fmt: skip
        try:
            interface = Interface(f"http://{HOST}:{port}", TOKEN)
            wait_until(lambda: is_up(interface, process), seconds=UP_S, what=home / "interface.log")
            yield interface
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask `nous dev` to end, and raise where it leaves something running that it started."""
    family = psutil.Process(process.pid).children(recursive=True)
    try:
        process.terminate()
        assert process.wait(timeout=END_S) == 0, "the interface did not end as it should"
        assert not [each for each in family if lives(each.pid)], "the interface left programs behind"
    finally:
        for each in family:
            processes.signalled(each, signal.SIGKILL)


def learn_history(home: Path, environment: dict[str, str], *, until: date, most: int | None) -> None:
    """Import the sample history or its latest memories, as a user would."""
    path = home / "history.jsonl"
    # A recall names memories of any day, and says nothing without them.
    told = (record for record in history(until=until) if most is None or record["kind"] != "recall")
    path.write_text("".join(f"{json.dumps(record)}\n" for record in deque(told, most)), "utf-8")
    subprocess.run([*NOUS, "import", str(path), "--agent", "aria"], env=environment, check=True, capture_output=True)


def is_up(interface: Interface, process: subprocess.Popen[bytes]) -> bool:
    """Tell whether the code location is loaded; raise when the interface ended."""
    assert process.poll() is None, "the interface ended"
    query = "{ workspaceOrError { ... on Workspace { locationEntries { loadStatus } } } }"
    try:
        entries = interface.ask(query)["workspaceOrError"]["locationEntries"]
    except httpx.HTTPError:
        return False
    return [entry["loadStatus"] for entry in entries] == ["LOADED"]


def wait_until(condition: Callable[[], object], *, seconds: float, what: object) -> None:
    """Wait for something, and say what was waited for in vain."""
    ends_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends_at, f"waited {seconds} s in vain: {what}"
        time.sleep(1)


def installed_browser() -> str | None:
    """Return the path of a Chromium or Chrome, if this machine has one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def why_no_browser(refusal: type[Exception]) -> str | None:
    """Return why no browser can be started, None when one can."""
    try:
        with page_of("about:blank"):
            return None
    except refusal as error:
        return str(error).splitlines()[0]


def fetch_browser() -> bool:
    """Have Playwright fetch its own Chromium; return whether it could."""
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    try:
        return subprocess.run(command, capture_output=True, timeout=FETCH_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Start a browser; raise what Playwright does where none starts."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # As root, and in a container, Chromium's own sandbox can't be had; it sees this one address alone.
        browser = playwright.chromium.launch(executable_path=installed_browser(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window_of(browser: Browser, address: str, *, entrance: str = "") -> Iterator[Page]:
    """Open a window that knows no other, through an entrance if there is one."""
    with browser.new_context(
        viewport={"width": 1440, "height": 860}, base_url=address, color_scheme="light"
    ) as context:
        page = context.new_page()
        page.set_default_timeout(60_000)
        if entrance:
            page.goto(entrance)
            page.wait_for_url(lambda url: "token=" not in url)
        yield page


@contextmanager
def page_of(address: str, *, entrance: str = "") -> Iterator[Page]:
    """Open a window of a browser that is started for it; raise what Playwright does where none starts."""
    with started_browser() as browser, window_of(browser, address, entrance=entrance) as page:
        yield page
