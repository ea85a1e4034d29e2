"""Nobody is kept from being served by another one's slowness: bodies that trickle, and an agent that is busy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest
from api_client import app_over, bearer, key_of
from conftest import WordEmbedder
from fastapi import FastAPI

from nous_online.core.errors import DeadlineExceeded
from nous_online.core.policy import ApiPolicy
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.api.access import CallerSlots
from nous_online.interfaces.api.application import Access
from nous_online.interfaces.api.problems import InterfaceProblem
from nous_online.memories import store

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def app(database_url: str, embedder: WordEmbedder) -> Iterator[FastAPI]:
    app = app_over(database_url, embedder, access=Access(policy=ApiPolicy(most_in_flight=2, longest_body_s=4)))
    yield app
    app.state.authenticator.hearts.close()


def client_of(app: FastAPI) -> httpx.AsyncClient:
    """A client that can make several calls at once."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8420")


async def trickle() -> AsyncIterator[bytes]:
    """A body that never ends."""
    yield b"{"
    await asyncio.Event().wait()


@asynccontextmanager
async def slow_calls(client: httpx.AsyncClient, count: int, headers: dict[str, str]) -> AsyncIterator[list]:
    """Calls under way whose bodies trickle."""
    calls = [
        asyncio.create_task(client.post("/facts", content=trickle(), headers={**JSON, **headers})) for _ in range(count)
    ]
    await asyncio.sleep(0.1)
    try:
        yield calls
    finally:
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


def test_whoever_has_no_key_is_refused_before_the_body_is_read(app: FastAPI) -> None:
    async def answers() -> set[int]:
        async with client_of(app) as client, slow_calls(client, 4, bearer("guess")) as calls, asyncio.timeout(0.4):
            return {(await call).status_code for call in calls}

    assert asyncio.run(answers()) == {401}


def test_bodies_that_trickle_hold_nobody_up_and_are_not_waited_for_long(app: FastAPI, database: Database) -> None:
    aria, boris = key_of(database, "aria"), key_of(database, "boris")

    async def answers() -> tuple[list[int], bool, set[int]]:
        async with client_of(app) as client, asyncio.timeout(20):
            await client.get("/ready")
            return await beside_slow_calls(client)

    async def beside_slow_calls(client: httpx.AsyncClient) -> tuple[list[int], bool, set[int]]:
        async with slow_calls(client, 2, bearer(aria)) as calls:
            others = [
                await client.get(path, headers=bearer(boris)) for path in ("/health", "/ready", "/contradictions")
            ]
            are_under_way = not any(call.done() for call in calls)
            return [each.status_code for each in others], are_under_way, {(await call).status_code for call in calls}

    assert asyncio.run(answers()) == ([200, 200, 200], True, {408})


def test_an_agent_that_is_busy_holds_no_other_up(
    database_url: str, database: Database, embedder: WordEmbedder, heart: Heart
) -> None:
    app = app_over(database_url, embedder, access=Access(requires_keys=False))
    busy, calm = {"X-Nous-Agent": heart.agent.id, "X-Nous-Deadline": "30"}, {"X-Nous-Agent": "boris"}

    async def answers() -> tuple[list[int], bool, set[int]]:
        async with client_of(app) as client, asyncio.timeout(60):
            await client.post("/facts", json={"content": "Boris is calm"}, headers=calm)
            for path in ("/ready", "/contradictions"):
                await client.get(path, headers=calm)
            await asyncio.sleep(ApiPolicy.ready_memory_s)
            with database.transaction(heart.agent.id) as connection:
                store.lock_agent(connection, heart.agent.id)
                learning = [
                    asyncio.create_task(client.post("/facts", json={"content": f"fact {number}"}, headers=busy))
                    for number in range(30)
                ]
                await asyncio.sleep(0.3)
                others = [await client.get(path, headers=calm) for path in ("/contradictions", "/ready", "/health")]
                are_under_way = not any(call.done() for call in learning)
            return [each.status_code for each in others], are_under_way, {(await call).status_code for call in learning}

    found = asyncio.run(answers())
    app.state.authenticator.hearts.close()

    assert found == ([200, 200, 200], True, {200})


def test_a_caller_waits_for_its_own_calls_alone() -> None:
    slots = CallerSlots(1, most=2)

    async def second(caller: str) -> str:
        try:
            async with slots.slot(caller, seconds=0.05):
                return "served"
        except (DeadlineExceeded, InterfaceProblem) as error:
            return type(error).__name__

    async def told() -> list[str]:
        async with slots.slot("aria", seconds=1):
            return list(await asyncio.gather(*(second(caller) for caller in ("aria", "aria", "boris"))))

    assert asyncio.run(told()) == ["DeadlineExceeded", "InterfaceProblem", "served"]
    assert asyncio.run(second("aria")) == "served"
