"""The page about the system: what needs a person, health, cost, keys, webhooks, agents; and the stream of changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse
from psycopg import Connection
from psycopg.rows import class_row
from starlette.concurrency import run_in_threadpool

from nous_online.core.errors import NousError
from nous_online.database.connection import as_night
from nous_online.database.statements import statements
from nous_online.heart import Heart
from nous_online.interfaces import doctor
from nous_online.interfaces.api import keys
from nous_online.interfaces.console.console_changes import back_to
from nous_online.interfaces.console.console_state import Filled, OpenHeart
from nous_online.interfaces.console.rendering import page
from nous_online.memories.status import status_of

router = APIRouter()
SQL = statements("nous_online.interfaces.console", "console_system.sql")
MOST_AGENTS = 50
PLACE = "/system"
SLOW_LOOKS = frozenset({"embedder"})
"""What `nous doctor` looks at and a page does not wait for: it loads a model."""
LOOK_S = 3.0
LOOK_EVERY_S, STREAM_S = 2.0, 60.0
"""A page's stream ends after a minute, and the browser opens the next: none outlives its page by more."""


@dataclass(frozen=True)
class MonthlyCost:
    """What one model cost in a month, for one purpose."""

    month: str
    purpose: str
    model: str
    requests: int
    failed: int
    input_tokens: int
    output_tokens: int
    usd: float


@dataclass(frozen=True)
class AgentLine:
    """An agent, roughly how much it remembers, and the last night it was in."""

    id: str
    memories: int
    night: date | None


@router.get(PLACE)
def system(request: Request, heart: OpenHeart) -> HTMLResponse:
    """Show how things stand, and what needs a person."""
    own = {"agent_id": heart.agent.id}
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        status = status_of(connection, heart.agent.id)
        with connection.cursor(row_factory=class_row(MonthlyCost)) as cursor:
            costs = cursor.execute(SQL["costs_of_agent"], own).fetchall()
        found_keys = keys.listed(connection, heart.agent.id)
    hooks = heart.list_webhooks()
    checks = looked_at()
    failed = [f"{each.name}: {each.message}" for each in checks if not each.is_ok]
    agents, why_none = all_agents(heart.agent.database.url)
    return page(
        request,
        "system.html",
        is_live=True,
        needs=[*status.needs, *failed],
        stands=status,
        states=sorted({state for counts in status.memories.values() for state in counts}),
        costs=costs,
        keys=found_keys,
        hooks=hooks,
        checks=checks,
        agents=agents,
        why_none=why_none,
    )


def looked_at() -> list[doctor.Check]:
    """Return what `nous doctor` finds, as far as it is quick."""
    looks = {**doctor.LOOKS, **doctor.SERVER_LOOKS}
    return [doctor.checked(name, look) for name, look in looks.items() if name not in SLOW_LOOKS]


def all_agents(url: str) -> tuple[list[AgentLine], str | None]:
    """Return the agents of this store, or why they can't be listed: that takes the login of nights."""
    try:
        with as_night(url, seconds=LOOK_S) as connection:
            return agents_in(connection), None
    except NousError as error:
        return [], str(error)


def agents_in(connection: Connection[Any]) -> list[AgentLine]:
    """Return the agents of a store."""
    with connection.cursor(row_factory=class_row(AgentLine)) as cursor:
        return cursor.execute(SQL["agents"], {"limit": MOST_AGENTS}).fetchall()


@router.post("/keys/{key_id}/revoke")
def revoke(key_id: str, form: Filled, heart: OpenHeart) -> RedirectResponse:
    """Revoke a key of the REST interface for good."""
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        keys.revoke(connection, heart.agent.id, key_id)
    return back_to(PLACE, "revoke")


@router.post("/webhooks/{webhook_id:uuid}/remove")
def remove_webhook(webhook_id: UUID, form: Filled, heart: OpenHeart) -> RedirectResponse:
    """Send nothing more to a webhook."""
    heart.remove_webhook(webhook_id)
    return back_to(PLACE, "unhook")


@router.get("/events")
async def events(heart: OpenHeart) -> StreamingResponse:
    """Tell a page, for a minute, that something changed; it then shows itself anew."""
    return StreamingResponse(changes(heart), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def changes(heart: Heart) -> AsyncIterator[str]:
    """Yield an event whenever the agent's memory changed, until the stream has lived long enough."""
    yield "retry: 1000\n\n"
    before = await run_in_threadpool(latest_change, heart)
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + STREAM_S
    while loop.time() < ends_at:
        await asyncio.sleep(LOOK_EVERY_S)
        now = await run_in_threadpool(latest_change, heart)
        yield ": nothing\n\n" if now == before else "data: changed\n\n"
        before = now


def latest_change(heart: Heart) -> tuple[Any, ...] | None:
    """Return by what two looks differ where something changed between them; nothing while the store can't be asked."""
    try:
        with heart.agent.transaction(heart.agent.deadline(LOOK_EVERY_S)) as connection:
            return connection.execute(SQL["latest_change"], {"agent_id": heart.agent.id}).fetchone()
    except NousError:
        return None
