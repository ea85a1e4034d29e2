"""Storing the workflows that the steps of closed episodes show, once each, with how their sessions went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from psycopg import Connection

from nous_online.core.deadline import Deadline, within
from nous_online.core.domain import Procedure
from nous_online.core.errors import Refused
from nous_online.core.kinds import PROCEDURE
from nous_online.core.policy import WorkflowPolicy
from nous_online.database.changes import Cause, change_memory, get_memory, locked_memory, version_of
from nous_online.database.statements import statements
from nous_online.memories import procedures, store
from nous_online.memories.agent import Agent
from nous_online.memories.procedure_details import ProcedureDetails, new_procedure, step_name
from nous_online.memories.store import KeyedRequest
from nous_online.memories.workflows import FoundWorkflow, Step, StepSequence, key_of_step, steps_in, workflows_in

BLOCKS = statements("nous_online.memories", "workflows.sql")
POLICY = WorkflowPolicy()
MOST_NAMESAKES = 50
Action = Literal["stored", "known", "found"]


@dataclass(frozen=True)
class Whose:
    """Whose sessions are looked at: steps of one user never make a workflow of another."""

    user_id: str | None = None
    project_id: str | None = None


@dataclass(frozen=True)
class LearnedWorkflow:
    """A workflow that was found, what was done about it, and the procedure it is kept as (None where only shown)."""

    action: Action
    found: FoundWorkflow
    procedure: Procedure | None


def learn_workflows(agent: Agent, whose: Whose, deadline: Deadline, *, is_recorded: bool) -> list[LearnedWorkflow]:
    """Return the workflows of the latest closed episodes; where `is_recorded`, each is stored or its counts brought up.

    A workflow whose steps are known is that one. Each session counts once for it, however often it is looked at.
    """
    with agent.transaction(deadline) as connection:
        sequences, trust = recorded(connection, agent.id, whose)
        known = known_workflows(connection, agent.id, whose)
    learned: list[LearnedWorkflow] = []
    for found in within(deadline.remaining(), lambda: workflows_in(sequences, POLICY), name="search for workflows"):
        procedure_id = known.get(keys_of(found))
        action: Action = "known" if procedure_id else "found"
        if not is_recorded:
            learned.append(LearnedWorkflow(action, found, None))
            continue
        if procedure_id is None:
            trusted = min(trust[each] for each in found.sessions)
            action, procedure_id = stored(agent, found, whose, trusted, deadline)
        with agent.transaction(deadline) as connection:
            learned.append(LearnedWorkflow(action, found, counted(connection, agent.id, procedure_id, found)))
    return learned


def keys_of(found: FoundWorkflow) -> tuple[str, ...]:
    """Return what a workflow is known by: its steps."""
    return tuple(map(key_of_step, found.steps))


def recorded(connection: Connection, agent_id: str, whose: Whose) -> tuple[list[StepSequence], dict[str, int]]:
    """Return the steps of the latest closed episodes, and the trust each of them is given."""
    asked = {"agent_id": agent_id, "limit": POLICY.most_episodes, "steps": POLICY.most_steps_read, **vars(whose)}
    rows: Sequence[Any] = connection.execute(BLOCKS["recorded_steps"], asked).fetchall()
    told = [
        StepSequence(str(episode_id), steps_in("\n".join(lines)), title, outcome)
        for episode_id, title, outcome, _, lines in reversed(rows)  # the oldest first: what was said last stands
    ]
    return told, {str(row[0]): row[3] for row in rows}


def known_workflows(connection: Connection, agent_id: str, whose: Whose) -> dict[tuple[str, ...], UUID]:
    """Return the workflows there are by the names of their steps, the oldest of each."""
    rows: Sequence[Any] = connection.execute(BLOCKS["workflows_of"], {"agent_id": agent_id, **vars(whose)}).fetchall()
    return {
        tuple(key_of_step(Step(step_name(step))) for step in steps): procedure_id
        for procedure_id, _, steps in reversed(rows)
    }


def stored(agent: Agent, found: FoundWorkflow, whose: Whose, trust: int, deadline: Deadline) -> tuple[Action, UUID]:
    """Store a workflow under the first free of its names, unless somebody else just did; return its id."""
    while True:
        with agent.transaction(deadline) as connection:
            name = free_name(connection, agent.id, found.name)
        new = new_procedure(name, details_of(found, whose, trust))
        (vector,) = agent.embed([new.embedded_text], deadline)
        cause = Cause("agent", "learned", f"{found.support} sessions took its steps", effective_at=datetime.now(UTC))
        with agent.space_transaction(deadline) as connection:
            store.lock_agent(connection, agent.id)
            known = known_workflows(connection, agent.id, whose).get(keys_of(found))
            if known is not None:
                return "known", known
            if free_name(connection, agent.id, found.name) == name:
                return "stored", procedures.store_or_revise(connection, agent, new, vector, cause=cause).id


def details_of(found: FoundWorkflow, whose: Whose, trust: int) -> ProcedureDetails:
    """Return what is stored of a workflow besides its name."""
    steps = [{"name": each.name, "detail": each.detail} if each.detail else each.name for each in found.steps]
    return {
        "kind": "workflow",
        "steps": steps,
        "source": f"{found.support} sessions",
        "source_kind": "episode",
        "trust": trust,
        "user_id": whose.user_id,
        "project_id": whose.project_id,
    }


def free_name(connection: Connection, agent_id: str, name: str) -> str:
    """Return a name no procedure has: the name, or the name with the first free number after it.

    Raises `Refused` where fifty are taken.
    """
    names = [name, *(f"{name} {number}" for number in range(2, MOST_NAMESAKES + 1))]
    taken = {row[0] for row in connection.execute(BLOCKS["taken_names"], {"agent_id": agent_id, "names": names})}
    free = next((each for each in names if each not in taken), None)
    if free is None:
        message = (
            f"{MOST_NAMESAKES} procedures are called {name!r} to {names[-1]!r}; rename or forget some of them first"
        )
        raise Refused(message)
    return free


def counted(connection: Connection, agent_id: str, procedure_id: UUID, found: FoundWorkflow) -> Procedure:
    """Count the sessions of a workflow that were not counted for it yet, by their outcomes."""
    known = locked_memory(connection, agent_id, PROCEDURE, procedure_id)
    judged = dict.fromkeys(found.successes, "success") | dict.fromkeys(found.failures, "failure")
    keys = {f"workflow {procedure_id} {session}": outcome for session, outcome in judged.items()}
    before = store.find_requests(connection, agent_id, list(keys))
    fresh = {key: outcome for key, outcome in keys.items() if key not in before}
    if not fresh:
        return known
    requests = [KeyedRequest(key, outcome, procedure_id, outcome) for key, outcome in fresh.items()]
    store.store_requests(connection, agent_id, "learn_workflows", requests)
    outcomes = list(fresh.values())
    values = {
        "success_count": known.success_count + outcomes.count("success"),
        "failure_count": known.failure_count + outcomes.count("failure"),
    }
    cause = Cause("agent", "counted", f"{len(fresh)} sessions followed its steps", effective_at=datetime.now(UTC))
    change_memory(connection, agent_id, version_of(PROCEDURE, known), values, cause=cause)
    return get_memory(connection, agent_id, PROCEDURE, procedure_id)
