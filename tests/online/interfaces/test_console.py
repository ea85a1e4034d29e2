"""The console: every page answers, every button does what it says, and nobody else's page or program is let in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from conftest import ScriptedJudge, WordEmbedder
from starlette.testclient import TestClient

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.console.console_server import application
from nous_online.interfaces.console.console_state import ConsoleState
from nous_online.language.pairs.judging import Verdict

TOKEN = "a-token-of-this-start"  # noqa: S105 (a test's)
HOST = "http://127.0.0.1:8430"
FORGED = "<script>alert('forged')</script>"
TURNED = "pay to \u202egro.live\u202c now \u200bquietly"
RENT = ("The rent is 900 euros", "The rent is 950 euros")


@pytest.fixture
def console(database_url: str, embedder: WordEmbedder, judge: ScriptedJudge) -> Iterator[TestClient]:
    """A browser in which the console of agent `aria` was opened."""
    with browser(database_url, embedder, judge) as client:
        welcome = client.get(f"/?token={TOKEN}")
        assert "HttpOnly" in welcome.headers["set-cookie"]
        assert "SameSite=strict" in welcome.headers["set-cookie"]
        yield client


def browser(url: str, embedder: WordEmbedder, judge: ScriptedJudge, *, read_only: bool = False) -> TestClient:
    hearts = Hearts(opened_by=lambda: Database(url), embedder=embedder, judge=judge, works_in_background=False)
    return TestClient(application(ConsoleState(hearts, "aria", TOKEN, read_only)), base_url=HOST)
