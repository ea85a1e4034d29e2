"""The outbox: events stored in the transaction of their change, delivered at least once and in order per agent."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, cast, get_args

from psycopg import Connection
from psycopg.rows import class_row, dict_row

from nous_online.core.deadline import Deadline, pause_s
from nous_online.core.errors import InvalidInput, Unavailable, Unsupported
from nous_online.core.policy import OutboxPolicy
from nous_online.core.validation import checked_id, checked_optional, checked_text
from nous_online.database.statements import statements
from nous_online.memories.agent import EVERYTHING, Agent, Event, EventName, Subscription, write_event

logger = logging.getLogger(__name__)
SQL = statements("nous_online.queue", "outbox.sql")
POLICY = OutboxPolicy()
HEART = "heart"
"""The consumer of the built-in reactions."""
ENROLLING = threading.Lock()  # between the look at other subscriptions and the append

OWN_NAMES = frozenset(get_args(EventName)) - {"guardrail_triggered", "calibration_drift"}
NAME = re.compile(r"[a-z][a-z0-9_.:-]{0,99}")
MAX_PAYLOAD_BYTES = 64 * 1024


@dataclass(frozen=True)
class Cursor:
    """The position of a consumer: everything up to (transaction, event id) was delivered to it."""

    consumer: str
    last_xid: str
    last_id: int
    failed_count: int
    retry_at: datetime | None
    """When it is due again; while it is leased, the end of that lease."""


@dataclass(frozen=True)
class DeliveryProgress:
    """The result of one batch: the new position, and the error at the next event if there was one."""

    last_xid: str
    last_id: int
    delivered_count: int
    failed_count: int = 0
    error: str | None = None

    @property
    def delay_s(self) -> float | None:
        """Seconds until the consumer is tried again, growing with each failure of the same event; None after none."""
        if not self.failed_count:
            return None
        return pause_s(self.failed_count, first_s=POLICY.first_delay_s, longest_s=POLICY.longest_delay_s)


def publish(agent: Agent, name: object, payload: object, memory_id: object, deadline: Deadline) -> None:
    """Store an event of the agent's own; raise `InvalidInput` for a reserved name, or a payload over 64 KiB of JSON."""
    checked = checked_name(name)
    if checked in OWN_NAMES:
        raise InvalidInput(f"{checked!r} is announced by the heart itself; give your event a name of its own")
    checked_memory_id = None if memory_id is None else checked_id("memory_id", memory_id)
    if not isinstance(payload, Mapping):
        raise InvalidInput(f"the payload of an event must be a mapping, got {payload!r}")
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the payload of an event must be JSON: {error}") from error
    checked_text("the payload of an event", text, max_bytes=MAX_PAYLOAD_BYTES)
    with agent.transaction(deadline) as connection:
        write_event(connection, agent.id, checked, memory_id=checked_memory_id, payload=json.loads(text))


def checked_name(name: object) -> str:
    """Return the name of an event: small letters, digits and `_.:-`, beginning with a letter."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidInput(f"an event is named in up to 100 of a-z, 0-9 and '_.:-', as in 'build_failed'; got {name!r}")
    return name


def checked_event_names(name: object) -> frozenset[str]:
    """Return the checked event names of a subscription: one, several, or `"*"`, which includes all others."""
    is_one = isinstance(name, str) or not isinstance(name, Sequence)
    names = cast("Sequence[object]", (name,) if is_one else name)
    if not names:
        raise InvalidInput(f"name at least one event to subscribe to, or '*' for all; got {name!r}")
    return frozenset([EVERYTHING] if EVERYTHING in names else map(checked_name, names))


def subscribe(
    agent: Agent, name: object, handler: object, *, consumer: object, is_from_now: bool, deadline: Deadline
) -> Subscription:
    """Subscribe to one event name, several, or `"*"`.

    Raises `InvalidInput`, also when the consumer is subscribed to other names already.
    """
    checked_consumer = checked_optional("consumer", consumer, max_characters=100)
    if checked_consumer is None or checked_consumer == HEART:
        raise InvalidInput(f"consumer must be a name of its own, such as 'brain'; got {consumer!r}")
    names = checked_event_names(name)
    if not callable(handler):
        raise InvalidInput(f"handler must be something to call with an event, got {handler!r}")
    subscription = Subscription(checked_consumer, names, handler, agent.subscriptions)
    with agent.transaction(deadline) as connection:
        add_cursor(connection, agent.id, checked_consumer, is_from_now=is_from_now)
    # A consumer has one position in the queue: an event that one subscription skips would be lost to the others.
    with ENROLLING:
        for other in subscription.among:
            if other.consumer == subscription.consumer and other.names != subscription.names:
                raise InvalidInput(
                    f"consumer {other.consumer!r} is subscribed to {sorted(other.names)} already, now to "
                    f"{sorted(subscription.names)}: name all in one call, or choose another consumer name"
                )
        subscription.among.append(subscription)
    agent.awake.set()
    return subscription


def add_cursor(connection: Connection, agent_id: str, consumer: str, *, is_from_now: bool) -> None:
    """Insert the cursor of a new consumer, at now or at the first event; one that is known stays where it is."""
    row = {"agent_id": agent_id, "consumer": consumer, "is_from_now": is_from_now}
    connection.execute(SQL["add_cursor"], row)


def get_cursor(
    connection: Connection, agent_id: str, consumer: str, how: Literal["read", "lock", "lock_free"]
) -> Cursor | None:
    """Return the cursor of a consumer; None while it waits after a failure, or, with `lock_free`, is locked."""
    with connection.cursor(row_factory=class_row(Cursor)) as cursor:
        return cursor.execute(SQL[f"{how}_cursor"], {"agent_id": agent_id, "consumer": consumer}).fetchone()


def read_horizon(connection: Connection, cursor: Cursor) -> str:
    """Return the id of the oldest transaction that is still running: all before it have ended, and hide no event.

    Raises `Unsupported` when the cursor is beyond it, which happens only in a database restored from a dump.
    """
    # Reading no further is what keeps a late commit from being overtaken and lost: docs/decisions/0010.
    row = connection.execute(SQL["read_horizon"]).fetchone()
    if row is None:
        raise Unavailable("the database did not say which transactions are running; try again")
    if int(cursor.last_xid) > int(row[0]):
        raise Unsupported(
            f"consumer {cursor.consumer!r} stands at transaction {cursor.last_xid}, this server has come to {row[0]} "
            "only: the database was restored from a dump; renumber its outbox as docs/decisions/0010 says"
        )
    return row[0]


def next_events(
    connection: Connection,
    agent_id: str,
    cursor: Cursor,
    *,
    horizon: str,
    names: Sequence[str] | None,
    limit: int = POLICY.batch_size,
) -> list[tuple[Event, str]]:
    """Return the events after a cursor and before the horizon, oldest first, each with its transaction id."""
    parameters = {
        "agent_id": agent_id,
        "last_xid": cursor.last_xid,
        "last_id": cursor.last_id,
        "horizon": horizon,
        "names": None if names is None else list(names),
        "limit": limit,
    }
    with connection.cursor(row_factory=dict_row) as rows:
        found = rows.execute(SQL["next_events"], parameters).fetchall()
    return [(Event(**row), written_xid) for row in found for written_xid in [row.pop("written_xid")]]


def move_cursor(connection: Connection, agent_id: str, cursor: Cursor, progress: DeliveryProgress) -> None:
    """Store a consumer's new position; it is due again at once, or after its delay.

    Where another process leased it meanwhile, because our lease ran out, its due time is left to that one.
    """
    row = {
        "agent_id": agent_id,
        "consumer": cursor.consumer,
        "held_until": cursor.retry_at,
        **vars(progress),
        "delay_s": progress.delay_s,
    }
    connection.execute(SQL["move_cursor"], row)


def deliver_due(agent: Agent, deadline: Deadline) -> int:
    """Deliver due events to the built-in reactions, then to each subscriber and webhook; return how many deliveries.

    A consumer that fails is paused and delays no other. Raises `Unavailable` when the database fails.
    """
    from nous_online.queue import reactions, webhooks

    delivered, failure = 0, None
    try:
        if due_consumers(agent, [HEART], deadline):
            delivered += reactions.react(agent, Deadline(deadline.remaining() / 2))
    except Unavailable as error:  # such as a row locked for long by another process: subscribers need not wait for it
        failure = error
    # Webhooks go into a copy: a subscriber added or cancelled during the round changes the agent's own list.
    hooked = replace(agent, subscriptions=[] if failure else webhooks.subscriptions(agent, deadline))
    for listening in (agent, hooked):
        for consumer in due_consumers(agent, sorted({each.consumer for each in listening.subscriptions}), deadline):
            delivered += (count := deliver_batch(listening, consumer, deadline))
            while count == POLICY.batch_size and deadline.left_s > 0:
                delivered += (count := deliver_batch(listening, consumer, deadline))
    if failure is not None:
        raise failure
    return delivered


def due_consumers(agent: Agent, consumers: Sequence[str], deadline: Deadline) -> list[str]:
    """Return the consumers with an event to deliver now."""
    if not consumers:
        return []
    with agent.transaction(deadline) as connection:
        parameters = {"agent_id": agent.id, "consumers": list(consumers)}
        return [row[0] for row in connection.execute(SQL["due_consumers"], parameters).fetchall()]


def deliver_batch(agent: Agent, consumer: str, deadline: Deadline) -> int:
    """Call the handlers of one consumer with its next events, outside any transaction; return how many were delivered.

    The consumer is leased meanwhile; if this process dies, another continues from the old position when that ends.
    """
    names = next((each.names for each in agent.subscriptions if each.consumer == consumer), None)
    if names is None:
        return 0
    ends_at = time.monotonic() + min(
        deadline.left_s, POLICY.lease_s / 2
    )  # a handler begun last still ends within the lease
    with agent.transaction(deadline) as connection:
        cursor = get_cursor(connection, agent.id, consumer, "lock_free")
        if cursor is None:
            return 0
        lease = {"agent_id": agent.id, "consumer": consumer, "lease_s": POLICY.lease_s}
        leased = connection.execute(SQL["lease_cursor"], lease).fetchone()
        cursor = replace(cursor, retry_at=leased[0] if leased else None)
        horizon = read_horizon(connection, cursor)
        wanted = None if EVERYTHING in names else sorted(names)
        events = next_events(connection, agent.id, cursor, horizon=horizon, names=wanted)
    progress = call_handlers(agent, cursor, events, names=names, horizon=horizon, ends_at=ends_at)
    # Delivered events would come again if their position were not stored, so there is always some time for that.
    with agent.transaction(Deadline(max(deadline.left_s, POLICY.settle_s))) as connection:
        move_cursor(connection, agent.id, cursor, progress)
    return progress.delivered_count


def subscriptions_of(agent: Agent, consumer: str, names: frozenset[str]) -> list[Subscription]:
    """Return the current subscriptions of a consumer to exactly these names: they may change during a batch."""
    return [each for each in agent.subscriptions if each.consumer == consumer and each.names == names]


def call_handlers(
    agent: Agent,
    cursor: Cursor,
    events: Sequence[tuple[Event, str]],
    *,
    names: frozenset[str],
    horizon: str,
    ends_at: float,
) -> DeliveryProgress:
    """Call the handlers event by event, until one raises, none is left, or the monotonic clock reaches `ends_at`."""
    here = DeliveryProgress(cursor.last_xid, cursor.last_id, 0, cursor.failed_count)
    for event, written_xid in events:
        handlers = subscriptions_of(agent, cursor.consumer, names)
        if not handlers or time.monotonic() >= ends_at:
            return here
        try:
            for subscription in handlers:
                if subscription.wants(event):
                    subscription.handler(event)
        except Exception as error:  # a handler is the caller's code, which raises anything
            logger.warning(
                "%s failed at event %d (%s) and tries again: %r", cursor.consumer, event.id, event.name, error
            )
            return replace(
                here, failed_count=here.failed_count + 1, error=f"event {event.id} ({event.name}): {error!r}"
            )
        here = DeliveryProgress(written_xid, event.id, here.delivered_count + 1)
    # After the last event the position moves up to the horizon: what lies between is of other names.
    is_complete = len(events) < POLICY.batch_size and subscriptions_of(agent, cursor.consumer, names)
    return DeliveryProgress(horizon, 0, len(events)) if is_complete else here
