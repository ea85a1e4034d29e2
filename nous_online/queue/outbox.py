"""The outbox: events stored in the transaction of their change, delivered at least once and in order per agent.

A built-in reaction to an event happens once: in one transaction with the move of the cursor past it.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Literal, cast, get_args
from uuid import UUID

import numpy as np
import psycopg
from psycopg import Connection
from psycopg.rows import dict_row

from nous_online.core.deadline import Deadline, pause_s
from nous_online.core.errors import Conflict, InvalidInput, NotFound, NousError, Refused, Unavailable, Unsupported
from nous_online.core.policy import OutboxPolicy
from nous_online.core.validation import checked_choice, checked_id, checked_optional, checked_text
from nous_online.database.changes import Cause
from nous_online.database.statements import fetch, statements
from nous_online.language.minilm import Vectors
from nous_online.memories import censors, checking, decisions, episodes, procedures
from nous_online.memories.agent import (
    EVERYTHING,
    Agent,
    Event,
    EventName,
    Handler,
    Subscription,
    Verbs,
    emit,
    write_event,
)
from nous_online.memories.episodes import EpisodeChange

logger = logging.getLogger(__name__)
SQL = statements("nous_online.queue", "outbox.sql")
POLICY = OutboxPolicy()
HEART = "heart"
"""The consumer of the built-in reactions."""
ENROLLING = threading.Lock()  # between the look at other subscriptions and the append

ANNOUNCED: tuple[EventName, ...] = get_args(EventName)
NEAR_NAME = 0.85
"""How like a name of these a name is that was mistyped, as `difflib` measures it."""
OWN_NAMES = frozenset(ANNOUNCED) - {"guardrail_triggered", "calibration_drift"}
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


class EventVerbs(Verbs):
    """What an agent does with events."""

    def publish(
        self,
        name: str,
        payload: Mapping[str, Any] | None = None,
        *,
        memory_id: UUID | str | None = None,
        deadline_s: float | None = None,
    ) -> None:
        """Announce something that happened outside: `guardrail_triggered`, `calibration_drift`, or a name of your own.

        `guardrail_triggered` names `censor_id` or `censor_ids`, or tells the `action` to be checked, with its
        `session_id`, `user_id` and `project_id`; `calibration_drift` names `procedure_ids` or a `domain`, and may tell
        `drift` and a `note`. Raises `InvalidInput` for a name or payload that can't be sent.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        checked = checked_name(name)
        if checked in OWN_NAMES:
            raise InvalidInput(f"{checked!r} is announced by the heart itself; give your event a name of its own")
        known_id = None if memory_id is None else checked_id("memory_id", memory_id)
        given = payload or {}
        if not isinstance(cast("object", given), Mapping):
            raise InvalidInput(f"the payload of an event must be a mapping, got {given!r}")
        try:
            text = json.dumps(given, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"the payload of an event must be JSON: {error}") from error
        checked_text("the payload of an event", text, max_bytes=MAX_PAYLOAD_BYTES)
        with agent.transaction(deadline) as connection:
            write_event(connection, agent.id, checked, memory_id=known_id, payload=json.loads(text))
        react_soon(agent, deadline)

    def subscribe(
        self,
        name: str | Sequence[str],
        handler: Handler,
        *,
        consumer: str,
        since: Literal["now", "beginning"] = "now",
        deadline_s: float | None = None,
    ) -> Subscription:
        """Call `handler` with every event of that name or those names, or with every event for `"*"`.

        Each event comes at least once and in order. `consumer` names a place in the queue that is kept: a consumer that
        was away gets what it missed; `since` says where a new one begins. Subscriptions of one consumer share its
        place and must ask for the same names: raises `InvalidInput` otherwise. Names added later are delivered from
        where the consumer stands. A handler that raises gets the same event again after a pause, and the next one only
        then. Handlers run when events are delivered: by the worker, or by `deliver`.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        is_from_now = checked_choice("since", since, ("now", "beginning")) == "now"
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

    def deliver(self, *, deadline_s: float | None = None) -> int:
        """Deliver the events that are due, and return the number of deliveries; a worker does so by itself."""
        return deliver_due(self.agent, self.agent.deadline(deadline_s))


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
    if EVERYTHING in names:
        return frozenset([EVERYTHING])
    checked = frozenset(map(checked_name, names))
    for unknown in sorted(checked.difference(ANNOUNCED)):
        # Events of your own may have any other name: only what is nearly the name of one of these is a mistake.
        if meant := get_close_matches(unknown, ANNOUNCED, n=1, cutoff=NEAR_NAME):
            known = ", ".join(ANNOUNCED)
            raise InvalidInput(f"no event is named {unknown!r}; {meant[0]!r} is perhaps meant; there are {known}")
    return checked


def add_cursor(connection: Connection, agent_id: str, consumer: str, *, is_from_now: bool) -> None:
    """Insert the cursor of a new consumer, at now or at the first event; one that is known stays where it is."""
    row = {"agent_id": agent_id, "consumer": consumer, "is_from_now": is_from_now}
    connection.execute(SQL["add_cursor"], row)


def get_cursor(
    connection: Connection, agent_id: str, consumer: str, how: Literal["read", "lock", "lock_free"]
) -> Cursor | None:
    """Return the cursor of a consumer; None while it waits after a failure, or, with `lock_free`, is locked."""
    key = {"agent_id": agent_id, "consumer": consumer}
    return next(iter(fetch(connection, Cursor, SQL[f"{how}_cursor"], key)), None)


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
    from nous_online.queue import webhooks

    delivered, failure = 0, None
    try:
        if due_consumers(agent, [HEART], deadline):
            delivered += react(agent, Deadline(deadline.remaining() / 2))
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


# --- the built-in reactions ---

NO_VECTORS = np.empty((0, 0), dtype=np.float32)
Outcome = Literal["passed", "resting", "overtaken", "idle"]
FINAL = (InvalidInput, NotFound, Refused, psycopg.IntegrityError, psycopg.DataError)
"""Errors that another attempt can't fix."""
LOOKS = 5
LOOK_AGAIN_S = 0.02  # a transaction that began before ours and still runs hides our event; most end in this time
MAX_NOTE_CHARACTERS = 500


@dataclass(frozen=True)
class Reaction:
    """A reaction: `act` writes inside a transaction, `texts` returns what has to be embedded before it."""

    act: Callable[[Connection, Agent, Event, Vectors], None]
    texts: Callable[[Connection, str, Event], Sequence[str]] = lambda _connection, _agent_id, _event: ()


def link_decision(connection: Connection, agent: Agent, event: Event, _vectors: Vectors) -> None:
    """Link a recorded decision and its episode, in both directions."""
    if event.payload.get("episode_id") is None:
        return
    decision = decisions.get(connection, agent.id, subject_of(event))
    episode_id = checked_id("episode_id", event.payload["episode_id"])
    change = EpisodeChange(decision_ids=(decision.name,))
    episodes.amend(connection, agent, episode_id, change, at=event.created_at)  # locked first, as completions do
    decisions.link(connection, agent.id, decision.id, episode_id)


def failure_censor(decision: decisions.Decision) -> censors.NewCensor:
    """Return the censor that warns of repeating a failed decision, with its outcome as the reason."""
    reason = decision.outcome or decision.rationale or f"{decision.title!r} was decided before, and failed"
    return censors.new_censor(
        shortened(decision.title, censors.POLICY.trigger_bytes),
        shortened(reason, censors.POLICY.reason_bytes),
        {"severity": "warn", "learned_from_decision_id": decision.name, "source": f"decision:{decision.id}"},
    )


def warn_of_failure(connection: Connection, agent: Agent, event: Event, vectors: Vectors) -> None:
    """Store the censor of a failed decision, unless there is one that says the same."""
    decision = decisions.get(connection, agent.id, subject_of(event))
    cause = Cause("agent", "learned", f"decision {decision.id} failed", effective_at=event.created_at)
    censors.store_censor(connection, agent, failure_censor(decision), vectors[0], cause=cause)


def failed_trigger(connection: Connection, agent_id: str, event: Event) -> list[str]:
    """Return the trigger of a failed decision's censor."""
    return [failure_censor(decisions.get(connection, agent_id, subject_of(event))).trigger]


def count_guardrail(connection: Connection, agent: Agent, event: Event, vectors: Vectors) -> None:
    """Count an activation of each active censor that a triggered guardrail names, or that its action sets off.

    Raises `NotFound` when none of those it names is active.
    """
    question = guarded_action(event)
    if question is not None:
        suspects = censors.find_suspects(connection, agent, question, vectors)
        matches = checking.match_suspects(question, suspects, vectors, {})  # nothing is embedded in a transaction
        firings = {
            censor_id: censors.Firing(each.match, each.part, question.user_id) for censor_id, each in matches.items()
        }
        censors.record_firings(connection, agent.id, question, firings)
        return
    censor_ids = named_censor_ids(event)
    cause = Cause("agent", "activated", "a guardrail was triggered", effective_at=event.created_at)
    firings = {censor_id: censors.Firing() for censor_id in censor_ids}
    if not censors.count_activations(connection, agent.id, firings, cause=cause):
        named = ", ".join(map(str, censor_ids))
        raise NotFound(f"event {event.id} (guardrail_triggered) names {named}: no active censor is among them")


def named_censor_ids(event: Event) -> list[UUID]:
    """Return the censors a guardrail event names; where it has an action, `memory_id` is not one of them."""
    has_action = event.payload.get("action") is not None
    return ids_of(replace(event, memory_id=None) if has_action else event, "censor_id", "censor_ids")


def guarded_action(event: Event) -> checking.ActionQuestion | None:
    """Return the action a guardrail was triggered by, None when the event names its censors instead."""
    if named_censor_ids(event):
        return None
    payload = event.payload
    details: checking.CheckDetails = {
        "session_id": payload.get("session_id"),
        "user_id": payload.get("user_id"),
        "project_id": payload.get("project_id"),
        "at": event.created_at,
    }
    return checking.checked_question(payload.get("action"), details, now=event.created_at)


def guarded_parts(_connection: Connection, _agent_id: str, event: Event) -> Sequence[str]:
    """Return the parts of a guarded action that are embedded and compared with censors."""
    question = guarded_action(event)
    return () if question is None else question.parts


def flag_procedures(connection: Connection, agent: Agent, event: Event, _vectors: Vectors) -> None:
    """Flag for review the procedures that a calibration drift names, or those of its domain."""
    domain = checked_optional("domain", event.payload.get("domain"), max_characters=100)
    procedure_ids = ids_of(event, "procedure_id", "procedure_ids")
    if not procedure_ids and domain is None:
        raise InvalidInput(f"event {event.id} (calibration_drift) names neither procedure_ids nor domain")
    drift = event.payload.get("drift")
    if drift is not None and (isinstance(drift, bool) or not isinstance(drift, int | float)):
        raise InvalidInput(f"drift must be a number, got {drift!r}")
    note = checked_optional("note", event.payload.get("note"), max_characters=MAX_NOTE_CHARACTERS)
    by = "" if drift is None else f" by {drift:+.3g}"
    reason = f"calibration drifted{by}" + (f": {note}" if note else "")
    cause = Cause("agent", "flagged", reason, effective_at=event.created_at)
    procedures.flag_for_review(
        connection, agent.id, procedure_ids=procedure_ids, domain=domain, reason=reason, cause=cause
    )


def subject_of(event: Event) -> UUID:
    """Return the `memory_id` of an event about a decision; raise `InvalidInput` without one."""
    if event.memory_id is None:
        raise InvalidInput(f"event {event.id} ({event.name}) names no decision")
    return event.memory_id


def ids_of(event: Event, single: str, several: str) -> list[UUID]:
    """Return the ids in the fields `single` and `several` of an event's payload, and its `memory_id`."""
    listed = event.payload.get(several, [])
    if not isinstance(listed, list):
        raise InvalidInput(f"{several} of event {event.id} must be a list, got {listed!r}")
    named = [event.payload.get(single), event.memory_id, *cast("list[object]", listed)]
    return list(dict.fromkeys(checked_id(single, value) for value in named if value is not None))


def shortened(text: str, max_bytes: int) -> str:
    """Return the beginning of a text that fits into `max_bytes` of UTF-8."""
    return text.encode()[:max_bytes].decode(errors="ignore")


REACTIONS: Mapping[str, Reaction] = {
    "decision_recorded": Reaction(link_decision),
    "decision_failed": Reaction(warn_of_failure, failed_trigger),
    "guardrail_triggered": Reaction(count_guardrail, guarded_parts),
    "calibration_drift": Reaction(flag_procedures),
}


def react_soon(agent: Agent, deadline: Deadline) -> None:
    """React at once to an event just stored, within `immediate_s`; the worker does the rest, and calls subscribers."""
    is_left = True
    parameters = {"agent_id": agent.id, "consumer": HEART, "names": list(REACTIONS)}
    try:
        soon = Deadline(min(deadline.remaining(), POLICY.immediate_s))
        for _ in range(LOOKS):
            react(agent, soon, is_waiting=True)
            with agent.transaction(soon) as connection:
                found = connection.execute(SQL["what_is_left"], parameters).fetchone()
            is_left, is_resting = found or (True, False)
            if is_resting or not is_left:
                break
            time.sleep(LOOK_AGAIN_S)
    except NousError as error:  # the event is stored: an error here would tell the caller that it is not
        logger.warning("reactions are left to the worker: %s", error)
    if is_left or agent.subscriptions:
        agent.awake.set()


def react(agent: Agent, deadline: Deadline, *, is_waiting: bool = False) -> int:
    """React to all events that are due, and return how many there were.

    An event whose reaction fails for good, or too often, is skipped: that is logged, stored as the cursor's last error,
    and emitted as `event_skipped`. While a model or the database is unavailable, none is skipped. With `is_waiting` it
    waits for a process that reacts already, else it leaves the events to that one.
    """
    passed_count = 0
    while deadline.left_s > 0:
        outcome = react_to_next(agent, deadline, is_waiting=is_waiting)
        if outcome in ("idle", "resting"):
            break
        passed_count += outcome == "passed"
    return passed_count


def react_to_next(agent: Agent, deadline: Deadline, *, is_waiting: bool) -> Outcome:
    """React to the next event, in one transaction with the move of the cursor."""
    # One event for each transaction: several would lock memories in the order of events, and deadlock with writers
    # that lock them in id order.
    ready = prepare_next(agent, deadline)
    if ready is None and is_waiting:
        return "idle"
    with agent.space_transaction(deadline) as connection:
        cursor = get_cursor(connection, agent.id, HEART, "lock" if is_waiting else "lock_free")
        if cursor is None:
            return "idle"
        found = next_event(connection, agent.id, cursor)
        if isinstance(found, str):
            move_cursor(connection, agent.id, cursor, DeliveryProgress(found, 0, 0))
            return "idle"
        if ready is None or ready[0] != found[0].id:  # another process reacted since the vectors were made
            return "overtaken"
        progress = react_to(connection, agent, cursor, found, ready[1])
        move_cursor(connection, agent.id, cursor, progress)
    return "passed" if progress.delivered_count else "resting"


def next_event(connection: Connection, agent_id: str, cursor: Cursor) -> tuple[Event, str] | str:
    """Return the next event that has a reaction; where there is none, the horizon up to which there is none."""
    horizon = read_horizon(connection, cursor)
    found = next_events(connection, agent_id, cursor, horizon=horizon, names=list(REACTIONS), limit=1)
    return found[0] if found else horizon


def prepare_next(agent: Agent, deadline: Deadline) -> tuple[int, Vectors | NousError] | None:
    """Return the id of the next event, with the vectors its reaction needs or the error of the embedder.

    None when there is no event, or during the pause after a failure, in which the embedder is not called.
    """
    with agent.transaction(deadline) as connection:
        add_cursor(connection, agent.id, HEART, is_from_now=False)
        cursor = get_cursor(connection, agent.id, HEART, "read")
        found = None if cursor is None else next_event(connection, agent.id, cursor)
        if found is None or isinstance(found, str):
            return None
        event, _ = found
        texts: Sequence[str] = ()
        with suppress(Exception):  # the reaction itself meets the same error, and is where it is handled
            texts = REACTIONS[event.name].texts(connection, agent.id, event)
    try:
        return event.id, agent.embed(texts, deadline) if texts else NO_VECTORS
    except Unavailable as error:
        return event.id, error
    except InvalidInput as error:  # a fault of the embedder, not of the event: `InvalidInput` would skip it at once
        return event.id, Unsupported(str(error))


def react_to(
    connection: Connection, agent: Agent, cursor: Cursor, found: tuple[Event, str], vectors: Vectors | NousError
) -> DeliveryProgress:
    """React to one event and return the new position of the cursor: past the event, unless it is to be tried again.

    A skipped event is emitted as `event_skipped`, where operators and other consumers see it.
    """
    event, written_xid = found
    error = try_to_react(connection, agent, event, vectors)
    if error is None:
        return DeliveryProgress(written_xid, event.id, 1)
    message, failed_count = f"event {event.id} ({event.name}): {error!r}", cursor.failed_count + 1
    is_outage = isinstance(error, Unavailable | Conflict)
    if is_outage or (not isinstance(error, FINAL) and failed_count < POLICY.attempt_count):
        return DeliveryProgress(cursor.last_xid, cursor.last_id, 0, failed_count, message)
    logger.warning("event %d (%s) of agent %s is passed over: %r", event.id, event.name, agent.id, error)
    payload = {"event_id": event.id, "name": event.name, "consumer": HEART, "error": repr(error)}
    emit(connection, agent.id, "event_skipped", memory_id=event.memory_id, payload=payload)
    return DeliveryProgress(written_xid, event.id, 1, error=message)


def try_to_react(connection: Connection, agent: Agent, event: Event, vectors: Vectors | NousError) -> Exception | None:
    """React to one event; return the error if it failed, with nothing written."""
    try:
        with connection.transaction():  # a savepoint: the cursor moves in the outer one whatever happens here
            if isinstance(vectors, NousError):
                raise vectors
            REACTIONS[event.name].act(connection, agent, event, vectors)
    except psycopg.OperationalError:  # the connection, a lock or the deadline: the event is tried again next time
        raise
    except Exception as error:  # an event that always fails must not block the queue
        return error
    return None
