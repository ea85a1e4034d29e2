"""`nous dev` as an operator lives with it: started anywhere, shown to nobody else, a range of nights launched in a real
browser, all of it green although the first night is killed, and nothing left when it ends.

Pictures go to the folder named in NOUS_ARTEFACTS, if there is one. Needs Playwright for Python and
a Chromium or Chrome on PATH, or one that Playwright can fetch; what is clicked is skipped, with the reason, where they
can't be had.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from dagster_pages import (
    END_S,
    LOCATION,
    RANGE,
    Dev,
    dev,
    fetch_browser,
    learn_history,
    started_browser,
    wait_until,
    window_of,
)
from postgres_homes import lives, scratch

from nous_online.database import postgres
from nous_pipelines.nights import last_night

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.integration
NIGHT_COUNT = 2
MOST = None if "NOUS_ARTEFACTS" in os.environ else 12
"""How many memories there are: for pictures to keep the whole history, whose vectors take half a minute."""
NIGHT_S = 150
"""A night takes seconds, and the daemon up to 30 to begin; the rest is for machines that do something else as well."""


@pytest.fixture(scope="module")
def pictures() -> Path | None:
    """The folder the pictures go to, where somebody asked for them."""
    chosen = os.environ.get("NOUS_ARTEFACTS")
    if chosen is None:
        return None
    folder = Path(chosen)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def nights() -> list[date]:
    """The last nights that are over, in order."""
    last = last_night(datetime.now(UTC))
    return [last - timedelta(days=back) for back in reversed(range(NIGHT_COUNT))]


@pytest.fixture(scope="module")
def running(nights: list[date], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    """`nous dev` over a store that ends with the nights, started in a cloned repository full of hostile files."""
    folder = tmp_path_factory.mktemp("dev")
    cloned = folder / "cloned"
    cloned.mkdir()
    (cloned / ".env").write_text("NOUS_DATABASE_URL=postgresql://thief\nTHEIRS=1\n")
    for name in ("dagster", "dagster_webserver", "uvicorn", "nous_pipelines"):
        (cloned / f"{name}.py").write_text(f"open({str(folder / 'was-run')!r}, 'a').write({name!r})")
    with scratch() as home:
        learn_history(home, until=nights[-1], most=MOST)
        with dev(folder, "--port", "3456", cwd=cloned, home=home) as one, one.interface.client:
            yield one


def was_run(running: Dev) -> bool:
    """Tell whether anything of the cloned repository ran."""
    return (running.log.parent / "was-run").exists()


@pytest.fixture(scope="module")
def page(running: Dev) -> Iterator[Page]:
    """A browser on the interface."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed")
    interface = running.interface
    with ExitStack() as stack:
        try:
            try:
                browser = stack.enter_context(started_browser())
            except playwright.Error:
                if not fetch_browser():
                    raise
                browser = stack.enter_context(started_browser())
        except playwright.Error as error:
            pytest.skip(f"no browser can be started: {str(error).splitlines()[0]}")
        yield stack.enter_context(window_of(browser, interface.address, entrance=f"/?token={interface.token}"))


def test_in_a_cloned_repository_it_runs_none_of_its_code_and_sets_none_of_its_variables(running: Dev) -> None:
    addresses, family = running.addresses, running.family()
    environments = [each.environ() for each in family]
    folders = {each.cwd() for each in family if "dagster" in " ".join(each.cmdline())}

    assert set(addresses) == {"postgresql", "api", "console", "dagster", "token"}
    assert len(family) > 3
    assert not [each for each in environments if "THEIRS" in each]
    assert folders == {str(running.home)}
    assert not was_run(running)
    assert ".env" not in running.log.read_text()


def test_who_has_no_token_sees_nothing_and_no_list_of_processes_shows_one(running: Dev) -> None:
    addresses = running.addresses
    told = {"Authorization": f"Bearer {addresses['token']}"}
    shown, asked = addresses["dagster"].partition("?")[0], f"{addresses['api']}/contradictions"
    page, _, own = addresses["console"].partition("?token=")

    health = httpx.get(f"{addresses['api']}/health").status_code
    strangers = [httpx.get(each).status_code for each in (shown, asked, page)]
    known = [httpx.get(each, headers=told).status_code for each in (shown, asked, page)]
    with httpx.Client() as browser:
        console = [browser.get(each, timeout=30).status_code for each in (addresses["console"], page)]
    command_lines = " ".join(word for each in running.family() for word in each.cmdline())

    assert (health, strangers, known, console) == (200, [401, 401, 401], [200, 200, 401], [200, 200])
    assert addresses["token"] in addresses["dagster"]
    assert own not in command_lines + running.log.read_text()
    assert addresses["token"] not in command_lines


def test_a_range_of_nights_is_launched_in_a_browser(
    page: Page, running: Dev, nights: list[date], pictures: Path | None
) -> None:
    assert running.interface.schedule("every_night") == "RUNNING"
    turn_schedule_off(page, "every_night")
    show_launchpad(page, pictures)
    launch_range(page, [night.isoformat() for night in nights])
    page.goto("about:blank")  # drawing the page, which moves as long as runs do, takes more than the runs

    assert running.interface.schedule("every_night") == "STOPPED"


@pytest.mark.timeout(900)
def test_a_range_waits_for_a_night_that_is_killed_and_tried_again_and_runs_to_green(
    running: Dev, nights: list[date]
) -> None:
    interface, keys = running.interface, [night.isoformat() for night in nights]
    (backfill_id,) = interface.backfills() or [interface.launch(keys)]  # where there is no browser

    wait_until(interface.runs, seconds=NIGHT_S, what="the first night in the queue")
    wait_until(lambda: interface.process_of(keys[0]), seconds=NIGHT_S, what="the first night", every_s=0.3)
    os.kill(interface.process_of(keys[0]) or 0, signal.SIGKILL)
    wait_until(
        lambda: interface.backfill(backfill_id)["status"] not in ("REQUESTED", "COMPLETING"),
        seconds=NIGHT_S * len(nights),
        what=f"backfill {backfill_id}",
    )

    assert interface.backfill(backfill_id)["status"] == "COMPLETED_SUCCESS"
    assert interface.runs() == [(keys[0], "FAILURE"), (keys[0], "SUCCESS"), (keys[1], "SUCCESS")]
    assert interface.failures() == []
    for asset in ("snapshot", "plan", "applied", "report"):
        assert interface.partitions(asset) == {keys[0], keys[-1]}


def test_the_main_pages_show_a_night_that_ran(page: Page, nights: list[date], pictures: Path | None) -> None:
    show_pages(page, nights[-1].isoformat(), pictures)


def test_ctrl_c_ends_all_of_it(running: Dev) -> None:
    """The last test of this file. No run has come by the code of the repository either."""
    family, was_up = running.family(), postgres.running(running.home) is not None

    running.process.send_signal(signal.SIGINT)
    code = running.process.wait(timeout=END_S)

    assert (was_up, code) == (True, 0)
    assert postgres.running(running.home) is None
    assert not [each for each in family if lives(each.pid)]
    assert not was_run(running)


def turn_schedule_off(window: Page, name: str) -> None:
    """Switch a schedule off, on its page: it runs unless somebody does."""
    go(window, f"/locations/{LOCATION}/schedules/{name}")
    window.locator("input[type=checkbox]").first.locator("..").click()


def go(window: Page, address: str) -> None:
    """Go to another page of the interface as its links do, without loading all of its program again."""
    window.evaluate(
        "address => { history.pushState({}, '', address); dispatchEvent(new PopStateEvent('popstate')) }", address
    )


def launch_range(window: Page, keys: list[str]) -> None:
    """Launch a backfill of a range of nights from the page of the assets."""
    go(window, f"/locations/{LOCATION}/asset-groups/night/lineage")
    window.get_by_role("button", name=re.compile("Materialize all")).click()
    field = window.locator(RANGE).last
    field.fill(f"[{keys[0]}...{keys[-1]}]")
    field.press("Enter")
    with window.expect_response(lambda answer: is_launch(answer.request.post_data)) as launched:
        window.get_by_role("button", name=re.compile("Launch.*backfill", re.IGNORECASE)).click()
    assert launched.value.json()["data"]["launchPartitionBackfill"]["backfillId"]


def is_launch(asked: str | None) -> bool:
    """Tell whether a request is the launch of a backfill."""
    return "LaunchPartitionBackfill" in (asked or "")


def show_launchpad(window: Page, pictures: Path | None) -> None:
    """Open the launchpad of the nightly job with a policy of one's own."""
    override = "resources:\n  night_run:\n    config:\n      policy:\n        candidate_similarity: 0.95\n"
    go(window, f"/locations/{LOCATION}/jobs/nightly/playground")
    editor = window.locator(".CodeMirror").first
    editor.wait_for()
    editor.evaluate("(element, text) => element.CodeMirror.setValue(text)", override)
    assert "candidate_similarity: 0.95" in editor.inner_text()
    take_picture(window, "launchpad", pictures)


def show_pages(window: Page, key: str, pictures: Path | None) -> None:
    """Open each main page, and wait until it shows what it is for."""
    pages = {
        "partitions": (f"/assets/applied?view=partitions&partition={key}", re.compile(r"Materialized \([1-9]")),
        "checks": ("/assets/plan?view=checks&checkDetail=conservation", "Passed"),
        "timeline": ("/overview/activity/timeline", LOCATION),
    }
    window.goto("/asset-groups")
    for name, (address, shown) in pages.items():
        go(window, address)
        window.get_by_text(shown).first.wait_for()
        if name == "timeline":
            window.get_by_text("1hr", exact=True).click()
        take_picture(window, name, pictures)


def take_picture(window: Page, name: str, pictures: Path | None) -> None:
    """Keep a picture of the page, once it has drawn what it has, if somebody asked for pictures."""
    if pictures is not None:
        window.wait_for_timeout(2_000)
        window.screenshot(path=pictures / f"{name}.png")
