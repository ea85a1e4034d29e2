"""Where events are sent: adding, listing and removing webhooks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from nous_online.interfaces.api.access import HeartCall
from nous_online.interfaces.api.bodies import Body
from nous_online.queue.webhooks import Webhook

router = APIRouter(prefix="/webhooks", tags=["webhooks"])
EventName = Annotated[str, Field(pattern=r"^(\*|[a-z][a-z0-9_.:-]{0,99})$")]


class WebhookBody(Body):
    """Where events are to be sent, and which."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"url": "https://hooks.example.org/nous", "names": ["fact_learned"]}}
    )

    url: str = Field(
        min_length=9,
        max_length=2000,
        pattern=r"^https://[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:[1-9][0-9]{0,3})?(/[!-~]*)?$",
        description="A public address of https; `nous webhook add --allow-private` allows others.",
    )
    names: list[EventName] = Field(default=["*"], min_length=1, max_length=50, description="Of events; `*` is all.")


@dataclass(frozen=True)
class WebhookAnswer:
    """A webhook, and how its delivery stands."""

    id: UUID
    url: str
    names: list[str]
    allows_private: bool
    """Whether it may go to the server's own machine and network."""
    created_at: datetime
    failed_count: int
    """How often the next event failed so far."""
    last_error: str | None
    retry_at: datetime | None
    """When it is tried again."""


@dataclass(frozen=True)
class AddedWebhook:
    """A webhook that was just made."""

    webhook: WebhookAnswer
    secret: str
    """What signs each event, in the form of Standard Webhooks: shown this once."""


@dataclass(frozen=True)
class WebhookList:
    """The webhooks of an agent, oldest first."""

    webhooks: list[WebhookAnswer]


@dataclass(frozen=True)
class RemovedWebhook:
    """Which webhook is gone."""

    id: UUID


def answer_of(webhook: Webhook) -> WebhookAnswer:
    """Return a webhook as an answer tells it."""
    return WebhookAnswer(**vars(webhook))


@router.post("", operation_id="add_webhook", summary="Send events to an address")
def add(body: WebhookBody, call: HeartCall) -> AddedWebhook:
    """Send events of these names to an address from now on, signed, at least once and in order; docs/webhooks.md."""
    added = call.heart.add_webhook(deadline_s=call.left(), **body.told())
    return AddedWebhook(answer_of(added.webhook), added.secret)


@router.get("", operation_id="list_webhooks", summary="List the webhooks")
def list_all(call: HeartCall) -> WebhookList:
    """Return where events are sent and how that goes; secrets are not told again."""
    return WebhookList([answer_of(each) for each in call.heart.list_webhooks(deadline_s=call.left())])


@router.delete("/{webhook_id:uuid}", operation_id="remove_webhook", summary="Remove a webhook")
def remove(webhook_id: UUID, call: HeartCall) -> RemovedWebhook:
    """Send nothing more to it, and forget its secret."""
    call.heart.remove_webhook(webhook_id, deadline_s=call.left())
    return RemovedWebhook(webhook_id)
