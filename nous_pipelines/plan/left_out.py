"""Whom a night leaves out, so that what is wrong with one agent stops no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import polars as pl

from nous_online.core.errors import NousError
from nous_pipelines.plan.checks import CHECKS, CheckResult
from nous_pipelines.plan.evidence import Evidence

T = TypeVar("T")
FAULTS = (ValueError, TypeError, LookupError, ArithmeticError, pl.exceptions.PolarsError)
"""What an agent's own rows or policy make a step raise. A file, server or judge that fails concerns all agents."""
CHECK = "nobody_left_out"
"""The check that names whom a night leaves out; the others have theirs all the same."""


@dataclass(frozen=True)
class LeftOut:
    """An agent that a night leaves out: the check it breaks, or the step that fails for it, and why."""

    agent_id: str
    step: str
    reason: str

    def __str__(self) -> str:
        return f"{self.agent_id} ({self.step}: {self.reason})"


def each_apart(agent_ids: Sequence[str], work: Callable[[Sequence[str]], T]) -> tuple[list[T], dict[str, Exception]]:
    """Work on agents together, by halves where that fails; return the results, and for whom alone it failed."""
    try:
        return [work(agent_ids)], {}
    except FAULTS as fault:
        if len(agent_ids) == 1:
            return [], {agent_ids[0]: fault}
    half = len(agent_ids) // 2
    (first, faults), (second, others) = (each_apart(part, work) for part in (agent_ids[:half], agent_ids[half:]))
    return first + second, faults | others


def left_out_by(step: str, faults: Mapping[str, Exception]) -> list[LeftOut]:
    """Say of agents for which a step failed why."""
    return [
        LeftOut(agent_id, step, str(fault) if isinstance(fault, NousError) else f"{type(fault).__name__}: {fault}")
        for agent_id, fault in faults.items()
    ]


def checked_apart(evidence: Evidence) -> tuple[dict[str, CheckResult], list[LeftOut]]:
    """Check a plan without the agents that alone break a check; return what the checks say, and these agents.

    Nobody is left out, and a broken check stops the night for all, where it is about all agents, where the others
    together break one still, and where nobody is left over.
    """
    results = {name: check(evidence) for name, check in CHECKS.items()}
    broken = [name for name, result in results.items() if not result.passed]
    if not broken or any(results[name].is_about_all for name in broken):
        return results, []
    left: dict[str, LeftOut] = {}
    for name in broken:
        others = [agent_id for agent_id in evidence.agent_ids if agent_id not in left]
        left |= {each.agent_id: each for each in offenders(name, evidence, others)}
    rest = [agent_id for agent_id in evidence.agent_ids if agent_id not in left]
    again = {name: check(evidence.of(rest)) for name, check in CHECKS.items()} if rest else results
    is_sound = all(result.passed for result in again.values())
    return (again, list(left.values())) if is_sound else (results, [])


def offenders(name: str, evidence: Evidence, agent_ids: Sequence[str]) -> list[LeftOut]:
    """Return the agents that alone break a check, found by halves."""
    if not agent_ids:
        return []
    result = CHECKS[name](evidence.of(agent_ids))
    if result.passed:
        return []
    if len(agent_ids) == 1:
        return [LeftOut(agent_ids[0], name, result.description)]
    half = len(agent_ids) // 2
    return [each for part in (agent_ids[:half], agent_ids[half:]) for each in offenders(name, evidence, part)]


def nobody_left_out(left: Sequence[LeftOut]) -> CheckResult:
    """Nobody is left out: what is wrong with one agent is put right before its next night, the others have theirs."""
    if not left:
        return CheckResult(passed=True, description="every agent has its night")
    named = "; ".join(map(str, left))
    rows = {"left_out": [vars(each) for each in left]}
    return CheckResult(passed=False, description=f"left out of the night, {len(left)}: {named}", metadata=rows)
