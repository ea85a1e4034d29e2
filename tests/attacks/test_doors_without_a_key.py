"""Doors that ask for no key let in whoever has the token of this start, and nobody else of the machine."""

from __future__ import annotations

import anyio
import httpx
import pytest
from api_client import app_over, bearer, client_of
from conftest import WordEmbedder
from mcp import Client
from mcp_visits import mcp_over_http, values

from nous_online.core.errors import InvalidInput
from nous_online.core.settings import Settings, settings
from nous_online.interfaces.api.application import Access, access_at

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
TOKEN = "a-token-of-a-test"  # noqa: S105 (a test's)


def test_mcp_over_http_serves_the_address_that_was_printed_or_told_and_no_other(database_url: str) -> None:
    with mcp_over_http(database_url) as first, mcp_over_http(database_url, NOUS_TOKEN=TOKEN) as second:
        bare, _, query = first.partition("?")
        guesses = [bare, f"{bare}?token=", f"{bare}?{query[:-1]}", f"{bare}?{second.partition('?')[2]}"]
        strangers = [httpx.post(each, json=PING).status_code for each in guesses]
        known = httpx.post(second.partition("?")[0], json=PING, headers={"Authorization": f"Bearer {TOKEN}"})

        async def story() -> dict[str, object]:
            async with Client(first) as client:
                return values(await client.call_tool("recall", {"query": "how do we deploy?"}))

        told = anyio.run(story)

    assert query.startswith("token=")
    assert len(query) > 30
    assert strangers == [401] * 4
    assert told["memories"] == []
    assert second.endswith(f"?token={TOKEN}")
    assert known.status_code != 401


def test_with_keys_no_token_is_printed_or_taken(database_url: str) -> None:
    with mcp_over_http(database_url, "--with-keys", NOUS_TOKEN=TOKEN) as url:
        stranger = httpx.post(f"{url}?token={TOKEN}", json=PING)

    assert url.endswith("/mcp")
    assert stranger.status_code == 401


def test_an_api_without_keys_asks_for_the_token_that_is_told(
    database_url: str, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOUS_TOKEN", TOKEN)
    settings.cache_clear()
    access = access_at("127.0.0.1", requires_keys=False)
    settings.cache_clear()

    with client_of(app_over(database_url, embedder, access=access)) as client:
        asked = [client.get("/contradictions", headers=told) for told in ({}, bearer("guess"), bearer(TOKEN))]
        readiness = [client.get("/ready", headers=told).json()["checks"][0] for told in ({}, bearer(TOKEN))]

    assert [each.status_code for each in asked] == [401, 401, 200]
    assert TOKEN not in repr(access)
    assert [each["is_ok"] for each in readiness] == [True, True]


def test_who_guesses_tokens_is_slowed_down(database_url: str, embedder: WordEmbedder) -> None:
    access = Access(requires_keys=False, token=TOKEN)

    with client_of(app_over(database_url, embedder, access=access)) as client:
        guesses = {client.get("/contradictions", headers=bearer(f"guess-{each}")).status_code for each in range(70)}
        known = client.get("/contradictions", headers=bearer(TOKEN)).status_code

    assert (guesses, known) == ({401, 429}, 200)


def test_a_token_that_can_be_guessed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOUS_TOKEN", "secret")
    settings.cache_clear()

    with pytest.raises(InvalidInput, match=r"NOUS_TOKEN: .*at least 16"):
        settings()

    monkeypatch.undo()
    settings.cache_clear()
    assert Settings().token is None
