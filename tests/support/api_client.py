"""An application over the database of a test, and clients that hold a key to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from postgres_homes import wait_for
from starlette.testclient import TestClient

from nous_online.core.policy import ApiPolicy
from nous_online.database.connection import Database
from nous_online.interfaces.api import keys
from nous_online.interfaces.api.application import Access, application
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.api.server_routes import Consolidator
from nous_online.interfaces.request_checks import server_options
from nous_online.language.embedding import Embedder

PROBLEM = "application/problem+json"


def key_of(database: Database, agent_id: str, **details: Any) -> str:
    """Make a key and return it as it is sent."""
    key = keys.new_key(agent_id)
    with database.transaction(agent_id) as connection:
        keys.store(connection, key, **details)
    return key.text


def app_over(
    url: str,
    embedder: Embedder,
    *,
    access: Access | None = None,
    consolidator: Consolidator | None = None,
    **seams: Any,
) -> FastAPI:
    """Return an application over a database, which opens connections of its own."""
    hearts = Hearts(opened_by=lambda: Database(url), embedder=embedder, works_in_background=False, **seams)
    return application(hearts, access=access, consolidator=consolidator)


@contextmanager
def client_of(app: FastAPI, headers: Mapping[str, str] | None = None) -> Iterator[TestClient]:
    """Yield a client; what the application does not catch is no test's to catch either."""
    with TestClient(app, base_url="http://127.0.0.1:8420", headers=dict(headers or {})) as client:
        yield client


def bearer(key: str, **more: str) -> dict[str, str]:
    """Return the headers of a caller."""
    return {"Authorization": f"Bearer {key}", **more}


@contextmanager
def served(app: FastAPI, *, proxy: str | None = None) -> Iterator[str]:
    """Serve an application as `nous api` does, and yield its address."""
    options = server_options(app, grace_s=ApiPolicy.drain_s, log_level="info", proxy=proxy, ws="none")
    server = uvicorn.Server(uvicorn.Config(**options))
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(server.run)
        wait_for(lambda: server.started)
        try:
            yield "http://{}:{}".format(*server.servers[0].sockets[0].getsockname())
        finally:
            server.should_exit = True
            ended.result(20)
