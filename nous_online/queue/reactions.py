"""Built-in reactions to events: each in one transaction with the move of the cursor past its event."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, cast
from uuid import UUID

import numpy as np
import psycopg
from psycopg import Connection

from nous_online.core.deadline import Deadline
from nous_online.core.errors import Conflict, InvalidInput, NotFound, NousError, Refused, Unavailable, Unsupported
from nous_online.core.validation import checked_id, checked_optional
from nous_online.database.changes import Cause
from nous_online.language.minilm import Vectors
from nous_online.memories import censors, checking, decisions, episodes, procedures
from nous_online.memories.agent import Agent, Event, emit
from nous_online.memories.episodes import EpisodeChange
from nous_online.queue import outbox
from nous_online.queue.outbox import HEART, POLICY, Cursor, DeliveryProgress

logger = logging.getLogger(__name__)
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
        firings = {censor_id: censors.Firing(each.match, each.part) for censor_id, each in matches.items()}
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
                found = connection.execute(outbox.SQL["what_is_left"], parameters).fetchone()
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
        cursor = outbox.get_cursor(connection, agent.id, HEART, "lock" if is_waiting else "lock_free")
        if cursor is None:
            return "idle"
        found = next_event(connection, agent.id, cursor)
        if isinstance(found, str):
            outbox.move_cursor(connection, agent.id, cursor, DeliveryProgress(found, 0, 0))
            return "idle"
        if ready is None or ready[0] != found[0].id:  # another process reacted since the vectors were made
            return "overtaken"
        progress = react_to(connection, agent, cursor, found, ready[1])
        outbox.move_cursor(connection, agent.id, cursor, progress)
    return "passed" if progress.delivered_count else "resting"


def next_event(connection: Connection, agent_id: str, cursor: Cursor) -> tuple[Event, str] | str:
    """Return the next event that has a reaction; where there is none, the horizon up to which there is none."""
    horizon = outbox.read_horizon(connection, cursor)
    found = outbox.next_events(connection, agent_id, cursor, horizon=horizon, names=list(REACTIONS), limit=1)
    return found[0] if found else horizon


def prepare_next(agent: Agent, deadline: Deadline) -> tuple[int, Vectors | NousError] | None:
    """Return the id of the next event, with the vectors its reaction needs or the error of the embedder.

    None when there is no event, or during the pause after a failure, in which the embedder is not called.
    """
    with agent.transaction(deadline) as connection:
        outbox.add_cursor(connection, agent.id, HEART, is_from_now=False)
        cursor = outbox.get_cursor(connection, agent.id, HEART, "read")
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
