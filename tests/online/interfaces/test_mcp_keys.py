"""`nous mcp --http --with-keys`: each key opens its own agent's memory, and nothing else opens any."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import httpx2
import psycopg
import pytest
from conftest import ScriptedJudge, ScriptedWriter, WordEmbedder
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_visits import values
from typer.testing import CliRunner

from nous_online.core.errors import Unavailable
from nous_online.core.policy import ApiPolicy
from nous_online.core.validation import ADMINISTRATOR
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.api import keys
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.cli.command_line import application
from nous_online.interfaces.mcp.mcp_server import ServedHearts, open_by_key, serve_http
from nous_online.interfaces.mcp.tools import Visit
from nous_online.interfaces.request_checks import listening

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
def hearts(database: Database) -> Iterator[Hearts]:
    opened = Hearts(
        opened_by=lambda: database,
        embedder=WordEmbedder(),
        judge=ScriptedJudge(),
        writer=ScriptedWriter(),
        works_in_background=False,
    )
    yield opened
    opened.close()


def key_of(database: Database, agent_id: str, **details: Any) -> str:
    key = keys.new_key(agent_id)
    with database.transaction(agent_id) as connection:
        keys.store(connection, key, **details)
    return key.text


def id_of(text: str) -> str:
    """Return which key this is; agent and secret may hold the line that divides them."""
    key = keys.parse_key(text)
    assert key is not None
    return key.id


def served(hearts: Hearts, story: Callable[[str], Awaitable[None]]) -> int | None:
    """Serve until a story is told, then ask to stop as a supervisor does; return the signal that was heard."""
    heard: list[int | None] = []

    async def serve() -> None:
        with listening(0) as listener:
            doors = ServedHearts(hearts, Visit("mcp-test"), agent_id="aria")
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            async with anyio.create_task_group() as group:

                async def tell() -> None:
                    await story(url)
                    signal.raise_signal(signal.SIGTERM)

                group.start_soon(tell)
                heard.append(await serve_http(open_by_key(doors), doors, listener))

    anyio.run(serve)
    return heard[0]


async def remembered(url: str, key: str, content: str) -> list[str]:
    """Remember something with a key, and return all that can be recalled with it."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as carrier,
        Client(streamable_http_client(url, http_client=carrier), mode="legacy") as client,
    ):
        values(await client.call_tool("remember", {"content": content}))
        found = values(await client.call_tool("recall", {"query": content}))
    return [each["text"] for each in found["memories"]]


def test_each_key_reaches_its_own_agent_and_an_administrators_the_one_that_is_served(hearts, database):
    for agent in ("aria", "basil"):
        Heart.open(agent, database=database, embedder=WordEmbedder(), works_in_background=False)
    mine, theirs, admin = (key_of(database, holder) for holder in ("aria", "basil", ADMINISTRATOR))
    told: list[list[str]] = []

    async def story(url: str) -> None:
        told.append(await remembered(url, mine, "the kettle is red"))
        told.append(await remembered(url, theirs, "the kettle is blue"))
        told.append(await remembered(url, admin, "the kettle is old"))

    assert served(hearts, story) == signal.SIGTERM
    assert told[0] == ["the kettle is red"]
    assert told[1] == ["the kettle is blue"]
    assert set(told[2]) == {"the kettle is red", "the kettle is old"}


def test_a_session_can_be_used_and_ended_by_the_key_that_opened_it_alone(hearts, database):
    mine, theirs, second = (key_of(database, agent) for agent in ("aria", "basil", "aria"))
    answers: list[int] = []
    accepted = {"Accept": "application/json, text/event-stream"}
    details = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": details}

    async def story(url: str) -> None:
        async with httpx2.AsyncClient(headers=accepted) as client:
            opened = await client.post(url, json=opening, headers={"Authorization": f"Bearer {mine}"})
            session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
            for key in (theirs, second, mine):
                headers = {"Authorization": f"Bearer {key}", **session}
                answers.append((await client.post(url, json=HELLO, headers=headers)).status_code)
                if key != mine:
                    answers.append((await client.delete(url, headers=headers)).status_code)

    served(hearts, story)

    assert answers == [404, 404, 404, 404, 200]


def test_who_has_no_key_learns_nothing_of_a_database_that_is_away():
    def away() -> Database:
        raise Unavailable("db.internal:5432 refused; start it")

    answers: list[tuple[int, str]] = []

    async def story(url: str) -> None:
        async with httpx2.AsyncClient() as client:
            answer = await client.post(url, json=HELLO, headers={"Authorization": "Bearer x"})
            answers.append((answer.status_code, answer.text))

    served(Hearts(opened_by=away, embedder=WordEmbedder()), story)

    assert answers == [(503, "keys can't be looked up now; the log of the server says why")]


def test_without_a_good_key_nothing_is_answered(hearts, database, owner: psycopg.Connection):
    good = key_of(database, "aria")
    revoked = key_of(database, "aria")
    owner.execute("update heart.api_keys set revoked_at = now() where id = %s", [id_of(revoked)])
    wrong = good[:-1] + ("B" if good.endswith("A") else "A")
    sent = [None, "Bearer", "Bearer x", f"Bearer {revoked}", f"Bearer {wrong}", f"Basic {good}"]
    answers: list[tuple[int, str]] = []

    async def story(url: str) -> None:
        async with httpx2.AsyncClient() as client:
            for text in sent:
                headers = {} if text is None else {"Authorization": text}
                answer = await client.post(url, json=HELLO, headers=headers)
                answers.append((answer.status_code, answer.text.partition(" as ")[0]))

    served(hearts, story)

    assert answers == [(401, "send a valid key")] * len(sent)


def test_a_database_that_is_away_lets_nobody_in():
    def away() -> Database:
        raise Unavailable("the server can't be reached; start it")

    doors = ServedHearts(Hearts(opened_by=away, embedder=WordEmbedder()), Visit("mcp-test"), agent_id="aria")

    with pytest.raises(Unavailable, match="can't be reached"):
        doors.keys.find(keys.new_key("aria").text, seconds=30)


def test_a_key_that_is_revoked_opens_nothing_once_it_is_looked_up_again(hearts, database, monkeypatch):
    monkeypatch.setattr(ApiPolicy, "key_memory_s", 0.0)
    text = key_of(database, "aria")
    doors = ServedHearts(hearts, Visit("mcp-test"), agent_id="aria")

    before = doors.keys.find(text, seconds=30)
    with database.transaction("aria") as connection:
        keys.revoke(connection, "aria", id_of(text))

    assert before is not None
    assert [before.agent_id, doors.keys.find(text, seconds=30)] == ["aria", None]


def test_an_agent_whose_heart_made_room_for_others_gets_a_living_one(database):
    hearts = Hearts(
        opened_by=lambda: database,
        embedder=WordEmbedder(),
        judge=ScriptedJudge(),
        writer=ScriptedWriter(),
        most=1,
        works_in_background=False,
    )
    doors = ServedHearts(hearts, Visit("mcp-test"), agent_id="aria")

    with doors.entered("aria") as first:
        pass
    with doors.entered("basil"):
        assert hearts.find_open("aria") is None
    with doors.entered("aria") as again:
        assert again is hearts.find_open("aria")
        assert again is not first
    doors.close()

    with pytest.raises(Unavailable, match="the server is stopping"), doors.entered("aria"):
        pass


def test_keys_are_for_http_alone():
    answer = CliRunner().invoke(application(), ["mcp", "--with-keys"])

    assert answer.exit_code == 1
    assert "--with-keys is for --http" in answer.stderr
