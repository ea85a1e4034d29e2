"""Webhooks: an agent's events sent to an address, signed, at least once and in order, however often that takes."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import cast
from uuid import UUID

from psycopg.rows import class_row

from nous_online.core.deadline import Deadline
from nous_online.core.errors import NotFound, QuotaExceeded
from nous_online.database.statements import statements
from nous_online.memories.agent import Agent
from nous_online.memories.events import Subscription
from nous_online.queue import outbox
from nous_online.queue.webhook_post import checked_url, post

SQL = statements("nous_online.queue", "webhooks.sql")
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105 (how such secrets begin)
MOST_WEBHOOKS = 20


@dataclass(frozen=True)
class Webhook:
    """Where events of these names are sent, and how that goes; the secret that signs them is not told again."""

    id: UUID
    url: str
    names: list[str]
    """Of events; `*` is all."""
    allows_private: bool
    created_at: datetime
    failed_count: int
    """How often the next event failed so far; 0 where all is well."""
    last_error: str | None
    retry_at: datetime | None
    """When it is tried again."""


@dataclass(frozen=True)
class NewWebhook:
    """A webhook that was just made, and the secret its receiver needs, shown this once."""

    webhook: Webhook
    secret: str


def consumer_of(webhook_id: UUID) -> str:
    """Return under which name a webhook has its place in the outbox."""
    return f"webhook:{webhook_id}"


def add(agent: Agent, url: str, names: frozenset[str], *, allows_private: bool, deadline: Deadline) -> NewWebhook:
    """Send events of these names to an address from now on.

    Raises `InvalidInput` for an address nothing may be sent to, and `QuotaExceeded` beyond 20 of an agent.
    """
    checked_url(url, allows_private=allows_private)
    secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")
    row = {
        "agent_id": agent.id,
        "url": url,
        "names": sorted(names),
        "secret": secret,
        "allows_private": allows_private,
    }
    with agent.transaction(deadline) as connection:
        (count,) = cast("tuple[int]", connection.execute(SQL["count_webhooks"], {"agent_id": agent.id}).fetchone())
        if count >= MOST_WEBHOOKS:
            raise QuotaExceeded(f"agent {agent.id!r} has {count} webhooks, the most there may be; remove one first")
        with connection.cursor(row_factory=class_row(Webhook)) as cursor:
            webhook = cast("Webhook", cursor.execute(SQL["add_webhook"], row).fetchone())
        outbox.add_cursor(connection, agent.id, consumer_of(webhook.id), is_from_now=True)
    agent.awake.set()
    return NewWebhook(webhook, secret)


def of_agent(agent: Agent, deadline: Deadline) -> list[Webhook]:
    """Return an agent's webhooks, oldest first."""
    with agent.transaction(deadline) as connection, connection.cursor(row_factory=class_row(Webhook)) as cursor:
        return cursor.execute(SQL["list_webhooks"], {"agent_id": agent.id}).fetchall()


def remove(agent: Agent, webhook_id: UUID, deadline: Deadline) -> None:
    """Send nothing more to a webhook, and forget its secret; raise `NotFound` where there is none."""
    with agent.transaction(deadline) as connection:
        row = {"agent_id": agent.id, "id": webhook_id}
        if connection.execute(SQL["remove_webhook"], row).fetchone() is None:
            raise NotFound(f"agent {agent.id!r} has no webhook {webhook_id}")


def subscriptions(agent: Agent, deadline: Deadline) -> list[Subscription]:
    """Return an agent's webhooks as subscribers to the outbox, which keeps their places and tries again."""
    with agent.transaction(deadline) as connection:
        found = dict(connection.execute(SQL["find_secrets"], {"agent_id": agent.id}).fetchall())
    among: list[Subscription] = []
    for webhook in of_agent(agent, deadline) if found else ():
        if webhook.id in found:
            send = partial(
                post,
                url=webhook.url,
                webhook_id=webhook.id,
                secret=found[webhook.id],
                allows_private=webhook.allows_private,
            )
            among.append(Subscription(consumer_of(webhook.id), frozenset(webhook.names), send, among))
    return among
