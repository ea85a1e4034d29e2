"""The night as an operator lives with it: schedule on, a range of nights launched in a real browser, all of it green.

The pictures go to the folder named in NOUS_ARTEFACTS, or to one of the test's own. Needs Playwright for Python and
a Chromium or Chrome on PATH, or one that Playwright can fetch; it is skipped, with the reason, where they can't be had.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dagster_pages import (
    LOCATION,
    RANGE,
    Interface,
    fetch_browser,
    interface_over_a_history,
    page_of,
    wait_until,
    why_no_browser,
)

from nous_pipelines.nights import last_night

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.integration
NIGHT_COUNT = 2
MOST = None if "NOUS_ARTEFACTS" in os.environ else 40
"""How many memories there are: for pictures to keep the whole history, whose vectors take half a minute."""
NIGHT_S = 150
"""A night takes seconds, and the daemon up to 30 to begin; the rest is for machines that do something else as well."""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder the pictures go to."""
    chosen = os.environ.get("NOUS_ARTEFACTS")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def nights() -> list[date]:
    """The last nights that are over, in order."""
    last = last_night(datetime.now(UTC))
    return [last - timedelta(days=back) for back in reversed(range(NIGHT_COUNT))]


@pytest.fixture(scope="module")
def page(nights: list[date]) -> Iterator[tuple[Page, Interface]]:
    """A browser on the interface over a store of its own."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed")
    reason = why_no_browser(playwright.Error)
    if reason is not None and fetch_browser():
        reason = why_no_browser(playwright.Error)
    if reason is not None:
        pytest.skip(f"no browser can be started: {reason}")
    with (
        interface_over_a_history(nights, most=MOST) as interface,
        page_of(interface.address, entrance=f"/?token={interface.token}") as opened,
    ):
        yield opened, interface


@pytest.mark.timeout(900)
def test_a_range_of_nights_launched_in_a_browser_runs_to_green(
    page: tuple[Page, Interface], nights: list[date], pictures: Path
) -> None:
    window, interface = page
    keys = [night.isoformat() for night in nights]

    assert interface.schedule("every_night") == "RUNNING"
    turn_schedule_off(window, "every_night")
    show_launchpad(window, pictures)
    backfill_id = launch_range(window, keys)
    window.goto("about:blank")  # drawing the page, which moves as long as runs do, takes more than the runs
    wait_until(
        lambda: interface.backfill(backfill_id)["status"] not in ("REQUESTED", "COMPLETING"),
        seconds=NIGHT_S * len(nights),
        what=f"backfill {backfill_id}",
    )
    assert (interface.backfill(backfill_id)["status"], interface.failures()) == ("COMPLETED_SUCCESS", [])
    take_pictures(window, keys[-1], pictures)

    assert interface.schedule("every_night") == "STOPPED"
    for asset in ("snapshot", "plan", "applied", "report"):
        assert interface.partitions(asset) == {keys[0], keys[-1]}
    print(f"pictures: {pictures}")  # noqa: T201 (where to look at them)


def turn_schedule_off(window: Page, name: str) -> None:
    """Switch a schedule off, on its page: it runs unless somebody does."""
    window.goto(f"/locations/{LOCATION}/schedules/{name}")
    window.locator("input[type=checkbox]").first.locator("..").click()


def launch_range(window: Page, keys: list[str]) -> str:
    """Launch a backfill of a range of nights from the page of the assets, and return its id."""
    window.goto(f"/locations/{LOCATION}/asset-groups/night/lineage")
    window.get_by_role("button", name=re.compile("Materialize all")).click()
    field = window.locator(RANGE).last
    field.fill(f"[{keys[0]}...{keys[-1]}]")
    field.press("Enter")
    with window.expect_response(lambda answer: is_launch(answer.request.post_data)) as launched:
        window.get_by_role("button", name=re.compile("Launch.*backfill", re.IGNORECASE)).click()
    return launched.value.json()["data"]["launchPartitionBackfill"]["backfillId"]


def is_launch(asked: str | None) -> bool:
    """Tell whether a request is the launch of a backfill."""
    return "LaunchPartitionBackfill" in (asked or "")


def show_launchpad(window: Page, pictures: Path) -> None:
    """Open the launchpad of the nightly job with a policy of one's own."""
    override = "resources:\n  night_run:\n    config:\n      policy:\n        candidate_similarity: 0.95\n"
    window.goto(f"/locations/{LOCATION}/jobs/nightly/playground")
    editor = window.locator(".CodeMirror").first
    editor.wait_for()
    editor.evaluate("(element, text) => element.CodeMirror.setValue(text)", override)
    settled(window)
    window.screenshot(path=pictures / "launchpad.png")


def take_pictures(window: Page, key: str, pictures: Path) -> None:
    """Keep a picture of each main page, once it shows what it is for."""
    pages = {
        "partitions": (f"/assets/applied?view=partitions&partition={key}", re.compile(r"Materialized \([1-9]")),
        "checks": ("/assets/plan?view=checks&checkDetail=conservation", "Passed"),
        "timeline": ("/overview/activity/timeline", LOCATION),
    }
    for name, (address, shown) in pages.items():
        window.goto(address)
        window.get_by_text(shown).first.wait_for()
        if name == "timeline":
            window.get_by_text("1hr", exact=True).click()
        settled(window)
        window.screenshot(path=pictures / f"{name}.png")


def settled(window: Page) -> None:
    """Let the page draw what it has."""
    window.wait_for_timeout(2_000)
