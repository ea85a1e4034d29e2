"""`nous dev`, and a person who clicks in Dagster's interface: what the browser test is made of."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil
from cli_runs import pointed_at, typed
from postgres_homes import hasten

from nous_online import processes
from nous_online.database import postgres
from nous_pipelines.demo.show import history

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LOCATION = "nous_pipelines.definitions"
REPOSITORY = "__repository__"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PARTITION_TAG = "dagster/partition"
END_S = 60
FETCH_S = 240
FETCHED_FROM = os.environ.get("PLAYWRIGHT_DOWNLOAD_HOST", "https://cdn.playwright.dev")
NOUS = [sys.executable, "-P", "-m", "nous_online.interfaces.cli"]
RANGE = 'input[placeholder^="ex: "], input[placeholder="No matching partitions"]'


@dataclass(frozen=True)
class Interface:
    """A running interface: where it answers."""

    address: str
    token: str

    @cached_property
    def client(self) -> httpx.Client:
        """What asks it: one for all questions, since making one takes longer than the answer."""
        return httpx.Client(base_url=self.address, headers={"Authorization": f"Bearer {self.token}"}, timeout=60)

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """Ask Dagster's GraphQL."""
        answer = self.client.post("/graphql", json={"query": query, "variables": variables})
        return answer.raise_for_status().json()["data"]

    def backfill(self, backfill_id: str) -> dict[str, Any]:
        """Return the state of a backfill: its status, and how its partitions ended."""
        query = """query ($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill {
                     status error { message } partitionNames } } }"""
        return self.ask(query, id=backfill_id)["partitionBackfillOrError"]

    def backfills(self) -> list[str]:
        """Return the ids of all backfills."""
        query = "{ partitionBackfillsOrError { ... on PartitionBackfills { results { id } } } }"
        return [each["id"] for each in self.ask(query)["partitionBackfillsOrError"]["results"]]

    def launch(self, keys: list[str]) -> str:
        """Launch a backfill of the assets of some nights, as their page does, and return its id."""
        assets = """{ assetNodes(group: {groupName: "night", repositoryName: "%s", repositoryLocationName: "%s"}) {
                      assetKey { path } } }"""
        mutation = """mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
                        ... on LaunchBackfillSuccess { backfillId } } }"""
        night = [each["assetKey"] for each in self.ask(assets % (REPOSITORY, LOCATION))["assetNodes"]]
        params = {"partitionNames": keys, "assetSelection": night}
        return self.ask(mutation, params=params)["launchPartitionBackfill"]["backfillId"]

    def runs(self) -> list[tuple[str, str]]:
        """Return the night and the status of every run, in the order in which they began."""
        query = """{ runsOrError { ... on Runs { results { startTime status tags { key value } } } } }"""
        runs = sorted(self.ask(query)["runsOrError"]["results"], key=lambda run: run["startTime"] or 0)
        return [(tag["value"], run["status"]) for run in runs for tag in run["tags"] if tag["key"] == PARTITION_TAG]

    def process_of(self, key: str) -> int | None:
        """Return the process that works on a night; None while there is none."""
        query = """{ runsOrError(filter: {statuses: [STARTED]}) { ... on Runs { results {
                     tags { key value } eventConnection { events { ... on MessageEvent { message } } } } } } }"""
        for run in self.ask(query)["runsOrError"]["results"]:
            said = " ".join(event["message"] for event in run["eventConnection"]["events"] if event)
            found = re.search(r"process for run \(pid: ([0-9]+)\)", said)
            if found and {"key": PARTITION_TAG, "value": key} in run["tags"]:
                return int(found[1])
        return None

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


@dataclass(frozen=True)
class Dev:
    """A running `nous dev`: its process, what it says when all is up, where its files lie and what it logs."""

    process: subprocess.Popen[str]
    addresses: dict[str, str]
    home: Path
    log: Path

    @cached_property
    def interface(self) -> Interface:
        """Dagster's interface."""
        return Interface(self.addresses["dagster"].partition("/?")[0], self.addresses["token"])

    def family(self) -> list[psutil.Process]:
        """Return all that it started and what those started."""
        return psutil.Process(self.process.pid).children(recursive=True)


@contextmanager
def dev(folder: Path, *options: str, home: Path, cwd: Path | None = None, **variables: str) -> Iterator[Dev]:
    """Run `nous dev` until the block ends, and say where all of it answers once it does."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NOUS_", "DAGSTER_"))}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*NOUS, "dev", "--json", *options],
            cwd=cwd,
            env=inherited | {"NOUS_HOME": str(home)} | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            preexec_fn=processes.listen_to_signals,  # noqa: PLW1509 (started from one thread; see there)
        )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (folder / "log").read_text()
            yield Dev(process, json.loads(line), home, folder / "log")
        finally:
            process.terminate()


def learn_history(home: Path, *, until: date, most: int | None) -> None:
    """Import the sample history or its latest memories, as a user would, and leave no server running."""
    server = postgres.ensure(home)
    hasten(server)
    path = home / "history.jsonl"
    # A recall names memories of any day, and says nothing without them.
    told = (record for record in history(until=until) if most is None or record["kind"] != "recall")
    path.write_text("".join(f"{json.dumps(record)}\n" for record in deque(told, most)), "utf-8")
    with pointed_at(server.dsn(), home):
        assert typed("import", path, "--agent", "aria").code == 0
    postgres.stop(home)


def wait_until(condition: Callable[[], object], *, seconds: float, what: object, every_s: float = 2) -> None:
    """Wait for something, and say what was waited for in vain."""
    ends_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends_at, f"waited {seconds} s in vain: {what}"
        time.sleep(every_s)


def installed_browser() -> str | None:
    """Return the path of a Chromium or Chrome, if this machine has one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def fetch_browser() -> bool:
    """Have Playwright fetch its own Chromium; return whether it could.

    Where its server can't be reached it would try so three times, each in a program of its own.
    """
    with suppress(httpx.HTTPError):
        httpx.head(FETCHED_FROM, timeout=10)
        return was_fetched()
    return False


def was_fetched() -> bool:
    """Fetch Chromium, and return whether that could be done."""
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
        viewport={"width": 1440, "height": 860}, base_url=address, color_scheme="light", reduced_motion="reduce"
    ) as context:
        page = context.new_page()
        page.set_default_timeout(60_000)
        if entrance:
            page.goto(entrance)
            page.wait_for_url(lambda url: "token=" not in url)
        yield page
