"""Webhooks: an agent's events, signed and posted to an address, at least once and in order."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import json
import secrets
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, cast
from uuid import UUID

from nous_online.core.deadline import Deadline
from nous_online.core.errors import InvalidInput, NotFound, QuotaExceeded, Unavailable
from nous_online.core.validation import checked_flag, checked_id
from nous_online.database.statements import fetch, statements
from nous_online.memories.agent import Agent, Event, Subscription, Verbs
from nous_online.queue import outbox

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 10.0
"""For connecting, and for each read of the answer; its body is not read."""
MOST_OF_A_URL = 2000
PORTS = {"https": 443, "http": 80}
LARGEST_PORT = 65_535
TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""The NAT64 prefix (RFC 6052): IPv6 addresses that stand for IPv4 ones, which may be private."""


def checked_url(url: object, *, allows_private: bool) -> httpx.URL:
    """Return a URL; raise `InvalidInput` for one that webhooks may not use."""
    import httpx  # takes as long to load as the rest of the heart

    if not isinstance(url, str) or not 0 < len(url) <= MOST_OF_A_URL:
        raise InvalidInput(f"the address of a webhook must be text of up to {MOST_OF_A_URL:,} characters, got {url!r}")
    if any(character.isspace() or not character.isprintable() for character in url):
        raise InvalidInput("the address of a webhook holds no blanks; write them as %20")
    if not url.isascii():
        raise InvalidInput("the address of a webhook must be ASCII; write other letters as %XX")
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InvalidInput(f"{url!r} is not an address ({error}); write it as https://example.org/path") from error
    wanted = ("https", "http") if allows_private else ("https",)
    if address.scheme not in wanted or not address.host or not 0 < (address.port or 1) <= LARGEST_PORT:
        raise InvalidInput(f"{url!r} is not an address of {' or '.join(wanted)}; write it as https://example.org/path")
    if address.userinfo or address.fragment:
        raise InvalidInput("the address of a webhook names no account and no fragment: what is sent is signed instead")
    host = address.host.rstrip(".")
    if not allows_private and (host == "localhost" or host.endswith(".localhost") or is_private_number(host)):
        raise InvalidInput(f"{host} is of this machine or network; webhooks go to public addresses")
    return address


def resolve_address(address: httpx.URL, *, allows_private: bool) -> str:
    """Return the IP address to send to; raise `InvalidInput` where the host is on this machine or network."""
    try:
        found = socket.getaddrinfo(address.host, address.port or PORTS[address.scheme], type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"the name {address.host!r} can't be looked up ({error})") from error
    numbers = [str(entry[4][0]) for entry in found]
    # All addresses of the name must be public: another look-up could return any of them first.
    private = next((number for number in numbers if not is_public(number)), None)
    if private is not None and not allows_private:
        raise InvalidInput(
            f"{address.host} leads to {private}, of this machine or network; webhooks go to public addresses"
        )
    return numbers[0]


def is_private_number(host: str) -> bool:
    """Tell whether a host is an IP address that is not public; names are resolved only when something is sent."""
    try:
        return not is_public(host)
    except ValueError:
        return False


def is_public(number: str) -> bool:
    """Tell whether an IP address, and the IPv4 address embedded in it if any, is public."""
    ip = ipaddress.ip_address(number.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        inner = inner or (ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in TRANSLATED else None)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def post(event: Event, *, url: str, webhook_id: UUID, secret: str, allows_private: bool) -> None:
    """Post one event and return when the receiver answers 2xx; raise `Unavailable` otherwise, so it is tried again."""
    import httpx

    # Checked again at each delivery: what the name resolves to, or what is allowed, may have changed.
    address = checked_url(url, allows_private=allows_private)
    number = resolve_address(address, allows_private=allows_private)
    body = {
        "type": event.name,
        "timestamp": event.created_at.isoformat(),
        "data": {
            "event_id": event.id,
            "agent_id": event.agent_id,
            "memory_id": None if event.memory_id is None else str(event.memory_id),
            "user_id": event.user_id,
            "project_id": event.project_id,
            "payload": event.payload,
        },
    }
    body = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    name, moment = f"evt_{event.id}_{webhook_id.hex[-12:]}", str(int(time.time()))
    # Names and form of the headers are those of Standard Webhooks (https://www.standardwebhooks.com).
    headers = {
        "Host": address.netloc.decode("ascii"),  # the connection goes to an IP address, which says nothing of the name
        "Content-Type": "application/json",
        "User-Agent": "nous-webhooks",
        "webhook-id": name,
        "webhook-timestamp": moment,
        "webhook-signature": f"v1,{signature(secret, name, moment, body)}",
    }
    # To the IP address that was checked, as the name could lead elsewhere when it is looked up once more; TLS verifies
    # the certificate for the name. No proxy of the environment: it would look the name up too.
    client = httpx.Client(timeout=TIMEOUT_S, trust_env=False, verify=ssl.create_default_context())
    target, server = address.copy_with(host=number), {"sni_hostname": address.host.rstrip(".")}
    try:
        with client, client.stream("POST", target, content=body, headers=headers, extensions=server) as answer:
            status, is_success = answer.status_code, answer.is_success
    except httpx.HTTPError as error:
        raise Unavailable(f"{address.host} can't be reached ({type(error).__name__}: {error})") from error
    if not is_success:
        raise Unavailable(f"{address.host} answered {status}")


def signature(secret: str, name: str, moment: str, body: bytes) -> str:
    """Return the HMAC-SHA-256 over id, time and body, in base64; `secret` is the text with its prefix."""
    key = base64.b64decode(secret.partition("_")[2])
    signed = f"{name}.{moment}.".encode() + body
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode("ascii")


# --- webhooks ---

SQL = statements("nous_online.queue", "webhooks.sql")
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105 (how such secrets begin)
MOST_WEBHOOKS = 20


@dataclass(frozen=True)
class Webhook:
    """A webhook and the state of its delivery, without its secret."""

    id: UUID
    url: str
    names: list[str]
    """Event names; `*` is all."""
    allows_private: bool
    created_at: datetime
    failed_count: int
    """How often the next event has failed so far."""
    last_error: str | None
    retry_at: datetime | None
    """When it is tried again."""


@dataclass(frozen=True)
class NewWebhook:
    """A webhook just added, and the secret its receiver needs, shown this once."""

    webhook: Webhook
    secret: str


def consumer_of(webhook_id: UUID) -> str:
    """Return the name of a webhook's consumer in the outbox."""
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
        order, by the worker or an open heart, with a longer pause each time, until the answer is 2xx.
        `allows_private` lets it go to this machine and network, and over http. Raises `InvalidInput` for an address
        nothing may be sent to, `Forbidden` for a caller that is trusted less than the user, and `QuotaExceeded`.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        agent.rights.check_may_listen()
        allowed = checked_flag("allows_private", allows_private)
        wished = outbox.checked_event_names(names)
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
        return webhooks_of_agent(self.agent, self.agent.deadline(deadline_s))

    def remove_webhook(self, webhook_id: UUID | str, *, deadline_s: float | None = None) -> None:
        """Send nothing more to a webhook; raise `NotFound` where there is none."""
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        agent.rights.check_may_listen()
        known_id = checked_id("webhook_id", webhook_id)
        with agent.transaction(deadline) as connection:
            if connection.execute(SQL["remove_webhook"], {"agent_id": agent.id, "id": known_id}).fetchone() is None:
                raise NotFound(f"agent {agent.id!r} has no webhook {known_id}")


def webhooks_of_agent(agent: Agent, deadline: Deadline) -> list[Webhook]:
    """Return an agent's webhooks, oldest first."""
    with agent.transaction(deadline) as connection:
        return fetch(connection, Webhook, SQL["list_webhooks"], {"agent_id": agent.id})


def subscriptions(agent: Agent, deadline: Deadline) -> list[Subscription]:
    """Return an agent's webhooks as subscribers to the outbox, which keeps their places and tries again."""
    with agent.transaction(deadline) as connection:
        found = dict(connection.execute(SQL["find_secrets"], {"agent_id": agent.id}).fetchall())
    among: list[Subscription] = []
    for webhook in webhooks_of_agent(agent, deadline) if found else ():
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
