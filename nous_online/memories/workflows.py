"""Workflows mined from recorded steps: runs of steps that several sessions have in the same order.

Steps that few sessions have are dropped, and repeated ones counted once; then runs of steps are counted. A run is kept
when enough sessions have it, and not only as a part of a longer run that is kept. Every workflow names its sessions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Literal
from uuid import UUID

from psycopg import Connection

from nous_online.core.deadline import Deadline, within
from nous_online.core.details import ProcedureDetails, ProjectId, UserId
from nous_online.core.domain import PROCEDURE, Episode, Procedure
from nous_online.core.errors import InvalidInput, NotFound, Refused
from nous_online.core.fields import checked_as
from nous_online.core.policy import WorkflowPolicy
from nous_online.core.validation import checked_optional, checked_text
from nous_online.database.changes import Cause, change_memory, lock_memory, version_of
from nous_online.database.statements import statements
from nous_online.language.writing.credentials import holds_credential
from nous_online.language.writing.lexrank import content_words
from nous_online.memories import episodes, procedures, store
from nous_online.memories.agent import Agent, Verbs
from nous_online.memories.levels import step_name
from nous_online.memories.store import KeyedRequest

BLOCKS = statements("nous_online.memories", "workflows.sql")
POLICY = WorkflowPolicy()
MOST_NAMESAKES = 50
STEP_CHARACTERS = 80
DETAIL_CHARACTERS = 400
STEP = "Step: "
"""The beginning of a line of an episode's detail with a step, such as "Step: build | docker build -t app ."."""
PARTED = " | "
_STEP_LINE = re.compile(r"^Step: (?P<name>[^|\n]{1,80}?)(?: \| (?P<detail>[^\n]{1,400}+))?[ \t]*+$", re.MULTILINE)
Action = Literal["stored", "known", "found"]
Reach = Mapping[str, str | None]
"""The `user_id` and `project_id` whose sessions are searched: steps of one user never make a workflow of another."""


@dataclass(frozen=True)
class Step:
    """One thing done in a session."""

    name: str
    detail: str | None = None


@dataclass(frozen=True)
class StepSequence:
    """The steps of one session, in order, and its outcome."""

    session: str
    steps: tuple[Step, ...]
    title: str | None = None
    outcome: str | None = None


@dataclass(frozen=True)
class FoundWorkflow:
    """A run of steps with its sessions, and those of them that succeeded and failed."""

    name: str
    steps: tuple[Step, ...]
    sessions: tuple[str, ...]
    successes: tuple[str, ...]
    failures: tuple[str, ...]

    @property
    def support(self) -> int:
        """The number of its sessions."""
        return len(self.sessions)

    @property
    def success_share(self) -> float | None:
        """The share of its sessions with an outcome that succeeded; None where none has one."""
        judged = len(self.successes) + len(self.failures)
        return len(self.successes) / judged if judged else None


@dataclass(frozen=True)
class LearnedWorkflow:
    """A workflow that was found, what was done with it, and its procedure (None where nothing is recorded)."""

    action: Action
    found: FoundWorkflow
    procedure: Procedure | None


class WorkflowVerbs(Verbs):
    """What an agent does with steps."""

    def record_step(
        self, name: str, *, detail: str | None = None, session_id: str | None = None, deadline_s: float | None = None
    ) -> Episode:
        """Add a step, such as "build", to the open episode of a session, and return the episode.

        It becomes a line of the episode's detail; a `detail` that looks like a credential is left out. Raises
        `NotFound` where no episode is open, and `InvalidInput` for a name that is not a short line or looks like a
        credential.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        line = " ".join(checked_text("name", name, max_bytes=4 * STEP_CHARACTERS).split())
        if not line or len(line) > STEP_CHARACTERS or "|" in line:
            raise InvalidInput(f"the name of a step is 1 to {STEP_CHARACTERS} characters without '|', got {name!r}")
        if holds_credential(line):
            message = "the name of a step looks like a credential; name what is done, and keep the credential out"
            raise InvalidInput(message)
        step = Step(line, checked_optional("detail", detail, max_characters=DETAIL_CHARACTERS))
        session = checked_optional("session_id", session_id, max_characters=100)
        with agent.transaction(deadline) as connection:
            episode = episodes.current_episode(connection, agent.id, session)
        if episode is None:
            of_session = "" if session is None else f" in session {session!r}"
            raise NotFound(f"no episode is open{of_session}; call `start_episode` before its first step")
        change = episodes.checked_change({"append": step_line(step)}, agent.rights)
        return episodes.update(agent, episode.id, change, None, deadline)

    def learn_workflows(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        is_recorded: bool = True,
        deadline_s: float | None = None,
    ) -> list[LearnedWorkflow]:
        """Store the runs of steps that at least three closed episodes share as workflows, and return them.

        Reads the latest 500 closed episodes of that user and project with steps, of each the first 200 steps, 20,000
        in all. A workflow with the same steps is not stored twice, and each episode counts once for it as a success or
        a failure. With `is_recorded=False` nothing is stored. Raises `Refused` where fifty procedures have the name of
        a new one.
        """
        reach: dict[str, str | None] = {
            "user_id": checked_as(UserId, "user_id", user_id),
            "project_id": checked_as(ProjectId, "project_id", project_id),
        }
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        with agent.transaction(deadline) as connection:
            sequences, trust = read_steps(connection, agent.id, reach)
            known = known_workflows(connection, agent.id, reach)
        learned: list[LearnedWorkflow] = []
        for workflow in within(deadline.remaining(), lambda: workflows_in(sequences), name="search for workflows"):
            procedure_id = known.get(keys_of(workflow))
            action: Action = "known" if procedure_id else "found"
            if not is_recorded:
                learned.append(LearnedWorkflow(action, workflow, None))
                continue
            if procedure_id is None:
                trusted = min(trust[each] for each in workflow.sessions)
                action, procedure_id = store_workflow(agent, workflow, reach, trusted, deadline)
            with agent.transaction(deadline) as connection:
                learned.append(
                    LearnedWorkflow(action, workflow, count_sessions(connection, agent.id, procedure_id, workflow))
                )
        return learned


def step_line(step: Step) -> str:
    """Return a step as the line of an episode's detail that `steps_in` reads; credentials are left out."""
    detail = " ".join((without_credential(step).detail or "").split())
    return f"{STEP}{step.name}{PARTED}{detail}" if detail else f"{STEP}{step.name}"


def without_credential(step: Step) -> Step:
    """Return a step without a detail that holds what looks like a credential."""
    return Step(step.name) if step.detail and holds_credential(step.detail) else step


def steps_in(detail: str) -> tuple[Step, ...]:
    """Return the steps that the lines of an episode's detail record, in order."""
    return tuple(Step(found["name"].strip(), found["detail"]) for found in _STEP_LINE.finditer(detail))


def workflows_in(sequences: Sequence[StepSequence]) -> list[FoundWorkflow]:
    """Return the workflows of some sessions, the latest session last; the best supported first, then the longest.

    Time is linear in the steps: at most 200 of each session and 20,000 of the latest sessions are read, and runs have
    at most 12 steps. A run with a step whose name looks like a credential is dropped.
    """
    by_session = {each.session: each for each in sequences}
    read: dict[str, tuple[str, ...]] = {}
    left = POLICY.most_steps_at_once
    for each in reversed(sequences):  # those of the latest sessions first
        steps = each.steps[: min(POLICY.most_steps_read, left)]
        left -= len(steps)
        read[each.session] = tuple(map(key_of_step, steps))
    runs = frequent_runs(dict(reversed(read.items())))
    # The latest session of a run gives its wording; many runs have the same one, so its steps are looked up once.
    latest = {names[-1] for names in runs.values()}
    wordings = {name: {key_of_step(step): step for step in by_session[name].steps} for name in latest}
    workflows = [
        describe(run, [by_session[name] for name in names], wordings[names[-1]]) for run, names in runs.items()
    ]
    return [each for each in workflows if not any(holds_credential(step.name) for step in each.steps)]


def frequent_runs(
    runs: Mapping[str, Sequence[str]], policy: WorkflowPolicy = POLICY
) -> dict[tuple[str, ...], list[str]]:
    """Return the runs of distinct steps that enough sessions have, with those sessions, best supported first.

    The longest are chosen first. A shorter run is kept only if it has twice as many sessions as those in which a chosen
    longer run covers it entirely.
    """
    spread = Counter(step for steps in runs.values() for step in set(steps))
    common = {step for step, count in spread.items() if count >= policy.least_sessions}
    places: defaultdict[tuple[str, ...], defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for session, steps in runs.items():
        kept = [step for step, _ in groupby(step for step in steps if step in common)]
        for start, run in distinct_runs(kept, policy):
            places[run][session].append(start)
    supported = {run: held for run, held in places.items() if len(held) >= policy.least_sessions}
    chosen = select_runs(supported, policy)
    return {run: list(supported[run]) for run in sorted(chosen, key=lambda run: (-len(supported[run]), -len(run), run))}


def select_runs(
    supported: Mapping[tuple[str, ...], Mapping[str, Sequence[int]]], policy: WorkflowPolicy
) -> list[tuple[str, ...]]:
    """Return the runs that longer ones don't cover, of equal length the best supported and the earliest first."""
    earliest = {run: min(map(min, held.values())) for run, held in supported.items()}
    taken: set[tuple[str, int]] = set()
    chosen: list[tuple[str, ...]] = []
    for run in sorted(supported, key=lambda run: (-len(run), -len(supported[run]), earliest[run], run)):
        held = {session: [range(at, at + len(run)) for at in starts] for session, starts in supported[run].items()}
        beside = [
            session
            for session, spans in held.items()
            if all(any((session, place) in taken for place in span) for span in spans)
        ]
        if len(held) >= policy.more_often * len(beside):
            chosen.append(run)
            taken.update((session, place) for session, spans in held.items() for span in spans for place in span)
    return chosen


def distinct_runs(steps: Sequence[str], policy: WorkflowPolicy) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the runs of a sequence in which no step comes twice, each with where it starts."""
    for start in range(len(steps)):
        for end in range(start + 1, min(start + policy.most_steps, len(steps)) + 1):
            if steps[end - 1] in steps[start : end - 1]:
                break
            if end - start >= policy.least_steps:
                yield start, tuple(steps[start:end])


def describe(run: Sequence[str], sessions: Sequence[StepSequence], steps: Mapping[str, Step]) -> FoundWorkflow:
    """Return a run as a workflow, with the steps of its last session, without credentials."""
    outcomes = {each.session: each.outcome for each in sessions}
    return FoundWorkflow(
        name=name_of(run, [each.title for each in sessions]),
        steps=tuple(without_credential(steps[key]) for key in run),
        sessions=tuple(outcomes),
        successes=tuple(session for session, outcome in outcomes.items() if outcome == "success"),
        failures=tuple(session for session, outcome in outcomes.items() if outcome == "failure"),
    )


def key_of_step(step: Step) -> str:
    """Return the name of a step without case and extra spaces, by which steps are compared."""
    return " ".join(step.name.casefold().split())


def keys_of(found: FoundWorkflow) -> tuple[str, ...]:
    """Return the key of a workflow: those of its steps."""
    return tuple(map(key_of_step, found.steps))


def name_of(run: Sequence[str], titles: Sequence[str | None]) -> str:
    """Return the word that most of the sessions' titles share, among equals the one that stands first.

    Where they share none, the name is "FIRST STEP to LAST STEP".
    """
    folded_titles = [title.casefold() for title in titles if title]
    counts = Counter(word for title in folded_titles for word in content_words(title))
    shared = [word for word, count in counts.items() if count >= POLICY.naming_share * len(titles)]
    said_at = {
        word: sum(title.find(word) for title in folded_titles if word in title) / counts[word] for word in shared
    }
    return min(shared, key=lambda word: (-counts[word], said_at[word], word), default=f"{run[0]} to {run[-1]}")


# --- storing workflows ---


def read_steps(connection: Connection, agent_id: str, reach: Reach) -> tuple[list[StepSequence], dict[str, int]]:
    """Return the steps of the latest closed episodes, and the trust each of them is given."""
    parameters = {"agent_id": agent_id, "limit": POLICY.most_episodes, "steps": POLICY.most_steps_read, **reach}
    rows: Sequence[Any] = connection.execute(BLOCKS["recorded_steps"], parameters).fetchall()
    sequences = [
        StepSequence(str(episode_id), steps_in("\n".join(lines)), title, outcome)
        for episode_id, title, outcome, _, lines in reversed(
            rows
        )  # the oldest first, so that the latest wording counts
    ]
    return sequences, {str(row[0]): row[3] for row in rows}


def known_workflows(connection: Connection, agent_id: str, reach: Reach) -> dict[tuple[str, ...], UUID]:
    """Return the ids of stored workflows by their keys; of two with one key, the older."""
    rows: Sequence[Any] = connection.execute(BLOCKS["workflows_of"], {"agent_id": agent_id, **reach}).fetchall()
    return {
        tuple(key_of_step(Step(step_name(step))) for step in steps): procedure_id
        for procedure_id, _, steps in reversed(rows)
    }


def store_workflow(
    agent: Agent, workflow: FoundWorkflow, reach: Reach, trust: int, deadline: Deadline
) -> tuple[Action, UUID]:
    """Store a workflow under the first free name, unless another process just did; return its id."""
    steps = [{"name": each.name, "detail": each.detail} if each.detail else each.name for each in workflow.steps]
    details: ProcedureDetails = {
        "kind": "workflow",
        "steps": steps,
        "source": f"{workflow.support} sessions",
        "source_kind": "episode",
        "trust": trust,
        "user_id": reach["user_id"],
        "project_id": reach["project_id"],
    }
    # The name is part of the embedded text, and embedding comes before the lock: if it is taken by then, try again.
    while True:
        with agent.transaction(deadline) as connection:
            name = free_name(connection, agent.id, workflow.name)
        new = procedures.new_procedure(name, details)
        (vector,) = agent.embed([new.embedded_text], deadline)
        cause = Cause("agent", "learned", f"{workflow.support} sessions took its steps", effective_at=datetime.now(UTC))
        with agent.space_transaction(deadline) as connection:
            store.lock_agent(connection, agent.id)
            known = known_workflows(connection, agent.id, reach).get(keys_of(workflow))
            if known is not None:
                return "known", known
            if free_name(connection, agent.id, workflow.name) == name:
                return "stored", procedures.store_or_revise(connection, agent, new, vector, cause=cause).id


def free_name(connection: Connection, agent_id: str, name: str) -> str:
    """Return `name`, or `name` with the lowest number that makes it unique; raise `Refused` where fifty are taken."""
    names = [name, *(f"{name} {number}" for number in range(2, MOST_NAMESAKES + 1))]
    taken = {row[0] for row in connection.execute(BLOCKS["taken_names"], {"agent_id": agent_id, "names": names})}
    free = next((each for each in names if each not in taken), None)
    if free is None:
        message = (
            f"{MOST_NAMESAKES} procedures are called {name!r} to {names[-1]!r}; rename or forget some of them first"
        )
        raise Refused(message)
    return free


def count_sessions(connection: Connection, agent_id: str, procedure_id: UUID, found: FoundWorkflow) -> Procedure:
    """Add the outcomes of a workflow's sessions that were not counted yet, and return the procedure."""
    # An idempotency key for each session, stored like those of calls, keeps it from being counted twice.
    known = lock_memory(connection, agent_id, PROCEDURE, procedure_id)
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
    return change_memory(connection, agent_id, version_of(PROCEDURE, known), values, cause=cause)
