"""The console in a real Chromium: read, decided with the keyboard, brought up to date by itself, and accessible.

Pictures go to the folder named in NOUS_ARTEFACTS, or to one of the test's own. Needs Playwright for Python and a
Chromium or Chrome on the PATH; accessibility needs axe-core too, as NOUS_AXE names its axe.min.js, or as
`npm install -g axe-core` puts it. What is missing is said.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from api_client import key_of, served
from conftest import ScriptedJudge, WordEmbedder
from dagster_pages import started_browser, window_of
from test_console import TOKEN, disputed

from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.console.console_server import application
from nous_online.interfaces.console.rendering import ConsoleState

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.integration
PAGES = ("/", "/?q=how+many+replicas", "/inbox", "/nights", "/ask?q=how+many+replicas", "/system")
SAID = ("The checkout service runs three replicas", "Five replicas of the checkout service are up")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder the pictures go to."""
    chosen = os.environ.get("NOUS_ARTEFACTS")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for all windows; skip, with the reason, where none can be started."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed")
    with ExitStack() as stack:
        try:
            started = stack.enter_context(started_browser())
        except playwright.Error as error:
            pytest.skip(f"no browser can be started: {str(error).splitlines()[0]}")
        yield started


@pytest.fixture
def lived(heart: Heart, database: Database) -> Heart:
    """An agent with two contradictions, a key and a webhook."""
    for subject in ("checkout", "search"):
        disputed(heart, *(text.replace("checkout", subject) for text in SAID))
    heart.learn("Ada prefers short answers", subject="Ada", category="preference")
    key_of(database, "aria", name="laptop")
    heart.add_webhook("https://hooks.example.org/nous", "fact_learned")
    return heart


@pytest.fixture
def window(
    browser: Browser,
    lived: Heart,
    database_url: str,
    embedder: WordEmbedder,
    judge: ScriptedJudge,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Page]:
    """A window on the console of an agent that has lived."""
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    settings.cache_clear()
    hearts = Hearts(opened_by=lambda: Database(database_url), embedder=embedder, judge=judge, works_in_background=False)
    app = application(ConsoleState(hearts, "aria", TOKEN))
    with served(app) as address, window_of(browser, address, entrance=f"/?token={TOKEN}") as page:
        yield page
    hearts.close()
    settings.cache_clear()


@pytest.fixture(scope="module")
def axe() -> str:
    """axe-core's code; skip, before any page is opened, where it is not installed."""
    named = os.environ.get("NOUS_AXE")
    npm = shutil.which("npm")
    if named is None and npm is not None:
        root = subprocess.run([npm, "root", "-g"], capture_output=True, text=True, check=False).stdout.strip()
        named = str(Path(root) / "axe-core" / "axe.min.js")
    if named is None or not Path(named).is_file():
        pytest.skip("axe-core is not installed: npm install -g axe-core, or name its axe.min.js in NOUS_AXE")
    return Path(named).read_text("utf-8")


def grave(page: Page) -> list[str]:
    """Return what axe finds that keeps somebody out."""
    found: list[dict[str, Any]] = page.evaluate("axe.run().then(result => result.violations)")
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def test_every_page_can_be_used_by_everybody_light_and_dark_and_on_a_phone(
    axe: str, window: Page, lived: Heart
) -> None:
    memory = lived.recall("how many replicas")[0].id
    problems: dict[str, list[str]] = {}
    for path in (*PAGES, f"/memories/{memory}"):
        for scheme in ("light", "dark"):
            window.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            window.goto(path)
            window.evaluate(axe)
            problems[f"{path} {scheme}"] = grave(window)
        window.set_viewport_size({"width": 390, "height": 844})
        wide = window.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        problems[f"{path} phone"] = [f"{wide} pixels too wide"] if wide > 0 else []
        window.set_viewport_size({"width": 1440, "height": 860})

    assert {where: what for where, what in problems.items() if what} == {}


def take_picture(window: Page, pictures: Path, name: str, *, height: int) -> None:
    """Take a picture for the docs of the page that is open."""
    window.set_viewport_size({"width": 1100, "height": height})
    window.screenshot(path=pictures / name)
    assert (pictures / name).stat().st_size > 10_000, "an empty page"


def test_the_inbox_is_emptied_with_the_keyboard(window: Page, lived: Heart, pictures: Path) -> None:
    window.goto("/inbox")
    assert window.locator("article").count() == 2
    take_picture(window, pictures, "console.png", height=760)

    window.keyboard.press("j")
    window.keyboard.press("2")
    window.wait_for_url("**/inbox?done=decide")
    window.keyboard.press("j")
    window.keyboard.press("1")
    window.get_by_text("Nothing contradicts itself.").wait_for()

    assert lived.contradictions(status="open") == []
    ruled = {each.resolution for each in lived.contradictions(status="resolved")}
    assert ruled == {"a_wins", "b_wins"}


def test_enter_behind_a_sentence_of_ones_own_puts_it_in_place_of_both(window: Page, lived: Heart) -> None:
    window.goto("/inbox")

    window.get_by_label("Neither, but").first.fill("Three replicas by day, five by night")
    window.keyboard.press("Enter")
    window.wait_for_url("**/inbox?done=merge")

    assert [each.resolution for each in lived.contradictions(status="resolved")] == ["merged"]


def test_many_questions_are_answered_with_the_keyboard_once_the_page_has_asked(
    window: Page, lived: Heart, pictures: Path
) -> None:
    for n in range(2):
        disputed(lived, f"Desk {n} is in Lima", f"The place of desk {n} is Oslo", subject="Desks")
    window.goto("/inbox")

    window.locator("article", has_text="desk 1").focus()
    window.keyboard.press("6")
    window.get_by_role("heading", name="Do both hold, in all 2 about this subject?").wait_for()
    window.screenshot(path=pictures / "asked-first.png")
    assert len(lived.contradictions()) == 4
    window.keyboard.press("Enter")
    window.wait_for_url("**/inbox?done=hold")

    assert len(lived.contradictions()) == 2


def test_a_page_shows_what_changed_by_itself_but_not_under_the_hands_of_somebody_who_types(
    window: Page, lived: Heart
) -> None:
    window.goto("/")
    assert window.get_by_text("Backups run at two").count() == 0
    field = window.locator("main input").first
    field.fill("rep")

    lived.learn("Backups run at two", subject="backups")
    window.wait_for_timeout(5_000)
    assert window.get_by_text("Backups run at two").count() == 0
    assert field.input_value() == "rep"
    field.fill("")
    field.blur()

    window.get_by_text("Backups run at two").first.wait_for(timeout=15_000)


def test_a_key_is_revoked_and_a_webhook_removed_on_the_page_about_the_system(
    window: Page, lived: Heart, pictures: Path
) -> None:
    window.goto("/system")
    take_picture(window, pictures, "console-system.png", height=450)
    assert window.get_by_text("2 contradictions are open").count() == 1
    assert window.get_by_role("row", name="aria this one").count() == 1

    window.get_by_role("button", name="Remove the webhook to https://hooks.example.org/nous").click()
    window.get_by_text("Removed: nothing more is sent there").wait_for()
    window.locator("text=Revoke").last.click()
    window.get_by_text("Revoked: the key opens nothing any more.").wait_for()

    assert lived.list_webhooks() == []
    assert window.locator("text=revoked 20").count() == 1
