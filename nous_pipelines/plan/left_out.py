"""Leaves out agents for which a step or check fails, so that one agent does not stop the night of the others."""

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
"""Errors that an agent's own rows or policy cause. Those of files, servers and judges concern all agents."""
CHECK = "nobody_left_out"
"""The check that names the agents left out; it fails without stopping the night of the others."""


@dataclass(frozen=True)
class LeftOut:
    """An agent that a night leaves out, the check or step that fails for it, and the reason."""

    agent_id: str
    step: str
    reason: str

    def __str__(self) -> str:
        return f"{self.agent_id} ({self.step}: {self.reason})"


def isolate_failures(
    agent_ids: Sequence[str], work: Callable[[Sequence[str]], T]
) -> tuple[list[T], dict[str, Exception]]:
    """Run `work` for all agents at once, by bisection where it fails; return results, and errors by failing agent."""
    try:
        return [work(agent_ids)], {}
    except FAULTS as fault:
        if len(agent_ids) == 1:
            return [], {agent_ids[0]: fault}
    half = len(agent_ids) // 2
    (first, faults), (second, others) = (isolate_failures(part, work) for part in (agent_ids[:half], agent_ids[half:]))
    return first + second, faults | others


def left_out_agents(step: str, faults: Mapping[str, Exception]) -> list[LeftOut]:
    """Return the agents for which a step failed, with the reason."""
    return [
        LeftOut(agent_id, step, str(fault) if isinstance(fault, NousError) else f"{type(fault).__name__}: {fault}")
        for agent_id, fault in faults.items()
    ]


def check_without_offenders(evidence: Evidence) -> tuple[dict[str, CheckResult], list[LeftOut]]:
    """Return the results of all checks without the agents that break one on their own, and these agents.

    No agent is left out, and the night stops, if a broken check concerns all agents, if the remaining agents still
    break one together, or if no agent remains.
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
    """Return the agents that break a check on their own, by bisection."""
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
