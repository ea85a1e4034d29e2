"""Workflows read off what was done: steps that followed one another, in the same order, in several sessions.

A step few sessions have is passed over, a step done again at once counts once. What is left is searched for runs of
steps; a run is worth keeping when enough sessions hold it, and a longer one did not take its place in them. Nothing
else is guessed: every workflow names its sessions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from nous_online.core.policy import WorkflowPolicy
from nous_online.language.writing.credentials import holds_credential
from nous_online.language.writing.lexrank import content_words

POLICY = WorkflowPolicy()
STEP = "Step: "
"""How a line of an episode's detail opens that records a step: "Step: build | docker build -t app ."."""
PARTED = " | "
_STEP_LINE = re.compile(r"^Step: (?P<name>[^|\n]{1,80}?)(?: \| (?P<detail>[^\n]{1,400}+))?[ \t]*+$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """One thing done in a session."""

    name: str
    detail: str | None = None


@dataclass(frozen=True)
class StepSequence:
    """What was done in one session, in order, and what became of it."""

    session: str
    steps: tuple[Step, ...]
    title: str | None = None
    outcome: str | None = None


@dataclass(frozen=True)
class FoundWorkflow:
    """Steps that came in this order in several sessions; counts are of the sessions whose outcome is known."""

    name: str
    steps: tuple[Step, ...]
    sessions: tuple[str, ...]
    successes: tuple[str, ...]
    failures: tuple[str, ...]

    @property
    def support(self) -> int:
        """How many sessions hold it."""
        return len(self.sessions)

    @property
    def success_share(self) -> float | None:
        """The share of its judged sessions that succeeded; None where none was judged."""
        judged = len(self.successes) + len(self.failures)
        return len(self.successes) / judged if judged else None


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


def workflows_in(sequences: Sequence[StepSequence], policy: WorkflowPolicy = POLICY) -> list[FoundWorkflow]:
    """Return the workflows of some sessions, the best supported first, then the longest; the latest session is last.

    Linear in the steps: at most 200 of a session and 20,000 of the latest sessions are read, and runs are at most 12
    long. Steps whose name holds a credential make none.
    """
    told = {each.session: each for each in sequences}
    found = frequent_runs(latest_steps(sequences, policy), policy)
    workflows = [described(run, [told[session] for session in sessions]) for run, sessions in found.items()]
    return [each for each in workflows if not any(holds_credential(step.name) for step in each.steps)]


def latest_steps(sequences: Sequence[StepSequence], policy: WorkflowPolicy) -> dict[str, tuple[str, ...]]:
    """Return the steps of each session that are looked at: as many as are read at once, those of the latest first."""
    runs: dict[str, tuple[str, ...]] = {}
    left = policy.most_steps_at_once
    for each in reversed(sequences):
        steps = each.steps[: min(policy.most_steps_read, left)]
        left -= len(steps)
        runs[each.session] = tuple(map(key_of_step, steps))
    return dict(reversed(runs.items()))


def frequent_runs(
    runs: Mapping[str, Sequence[str]], policy: WorkflowPolicy = POLICY
) -> dict[tuple[str, ...], list[str]]:
    """Return the runs of distinct steps that enough sessions hold, with those sessions, best supported first.

    The longest are chosen first. A run is left out unless twice as many sessions hold it as hold it only where a
    longer one was chosen already.
    """
    spread = Counter(step for steps in runs.values() for step in set(steps))
    common = {step for step, count in spread.items() if count >= policy.least_sessions}
    places: defaultdict[tuple[str, ...], defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for session, steps in runs.items():
        kept = [step for step, _ in groupby(step for step in steps if step in common)]
        for start, run in distinct_runs(kept, policy):
            places[run][session].append(start)
    supported = {run: held for run, held in places.items() if len(held) >= policy.least_sessions}
    chosen = apart(supported, policy)
    return {run: list(supported[run]) for run in sorted(chosen, key=lambda run: (-len(supported[run]), -len(run), run))}


def apart(
    supported: Mapping[tuple[str, ...], Mapping[str, Sequence[int]]], policy: WorkflowPolicy
) -> list[tuple[str, ...]]:
    """Return the runs that stand apart from longer ones, of one length the best supported and the earliest first."""
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


def described(run: Sequence[str], sessions: Sequence[StepSequence]) -> FoundWorkflow:
    """Return a run as a workflow, with the steps as they were told last; credentials are left out of their details."""
    told = {key_of_step(step): step for each in sessions for step in each.steps}
    outcomes = {each.session: each.outcome for each in sessions}
    return FoundWorkflow(
        name=name_of(run, [each.title for each in sessions]),
        steps=tuple(without_credential(told[key]) for key in run),
        sessions=tuple(outcomes),
        successes=tuple(session for session, outcome in outcomes.items() if outcome == "success"),
        failures=tuple(session for session, outcome in outcomes.items() if outcome == "failure"),
    )


def key_of_step(step: Step) -> str:
    """Return what two steps of one name share, whatever their case and spaces."""
    return " ".join(step.name.casefold().split())


def name_of(run: Sequence[str], titles: Sequence[str | None]) -> str:
    """Return the word that most of the sessions' titles share, the one said first among equals.

    Where they share none it is the first and the last step.
    """
    told = [title.casefold() for title in titles if title]
    counts = Counter(word for title in told for word in content_words(title))
    shared = [word for word, count in counts.items() if count >= POLICY.naming_share * len(titles)]
    said_at = {word: sum(title.find(word) for title in told if word in title) / counts[word] for word in shared}
    return min(shared, key=lambda word: (-counts[word], said_at[word], word), default=f"{run[0]} to {run[-1]}")
