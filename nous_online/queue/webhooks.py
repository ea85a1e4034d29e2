"""Webhooks: an agent's events sent to an address, signed, at least once and in order, however often that takes."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import cast
from uuid import UUID

from nous_online.core.deadline import Deadline
from nous_online.core.errors import NotFound, QuotaExceeded
from nous_online.core.validation import checked_flag, checked_id
from nous_online.database.statements import statements
from nous_online.memories.agent import Agent, Verbs
from nous_online.memories.events import Subscription
from nous_online.memories.store import fetch
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


class WebhookVerbs(Verbs):
    """What an agent does with its webhooks."""

    def add_webhook(
        self,
        url: str,
        names: str | Sequence[str] = "*",
        *,
        allows_private: bool = False,
        deadline_s: float | None = None,
    ) -> NewWebhook:
        """Send every event of that name or those names to an address from now on, or all of them.

        What comes back holds the secret that signs them, shown this once. Each event is sent at least once and in
        order, by whoever works (the worker, or an open heart), with longer rests each time, until it is answered 2xx.
        `allows_private` lets it go to this machine and network, and over http. Raises `InvalidInput` for an address
        nothing may be sent to, `Forbidden` for a caller that is trusted less than the user, and `QuotaExceeded`.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        agent.rights.check_may_listen()
        allowed = checked_flag("allows_private", allows_private)
        wished = outbox.checked_wish(names)
        checked_url(url, allows_private=allowed)
        secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")
        row = {"url": url, "names": sorted(wished), "secret": secret, "allows_private": allowed}
        with agent.transaction(deadline) as connection:
            (count,) = cast("tuple[int]", connection.execute(SQL["count_webhooks"], {"agent_id": agent.id}).fetchone())
            if count >= MOST_WEBHOOKS:
                raise QuotaExceeded(f"agent {agent.id!r} has {count} webhooks, the most there may be; remove one first")
            (webhook,) = fetch(connection, Webhook, SQL["add_webhook"], {"agent_id": agent.id, **row})
            outbox.add_cursor(connection, agent.id, consumer_of(webhook.id), is_from_now=True)
        agent.awake.set()
        return NewWebhook(webhook, secret)

    def list_webhooks(self, *, deadline_s: float | None = None) -> list[Webhook]:
        """Return where events are sent and how that goes, oldest first."""
        return of_agent(self.agent, self.agent.deadline(deadline_s))

    def remove_webhook(self, webhook_id: UUID | str, *, deadline_s: float | None = None) -> None:
        """Send nothing more to a webhook; raise `NotFound` where there is none."""
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        agent.rights.check_may_listen()
        known_id = checked_id("webhook_id", webhook_id)
        with agent.transaction(deadline) as connection:
            if connection.execute(SQL["remove_webhook"], {"agent_id": agent.id, "id": known_id}).fetchone() is None:
                raise NotFound(f"agent {agent.id!r} has no webhook {known_id}")


def of_agent(agent: Agent, deadline: Deadline) -> list[Webhook]:
    """Return an agent's webhooks, oldest first."""
    with agent.transaction(deadline) as connection:
        return fetch(connection, Webhook, SQL["list_webhooks"], {"agent_id": agent.id})


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
