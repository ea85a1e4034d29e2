"""What must hold of a plan before anything changes: pure functions of plan, snapshot tables and policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nous_online.pairs.judging import Judge, Pair, Statement, Verdict
from nous_pipelines.canaries import CANARIES
from nous_pipelines.phases import Phase
from nous_pipelines.policy import Policies
from nous_pipelines.proposals import Plan, Proposal
from nous_pipelines.transforms.vectors import vector_matrix

SHOWN = 5  # offenders named in a description; all of them are counted


@dataclass(frozen=True)
class Evidence:
    """Everything the checks look at: the plan and the tables it was decided on."""

    plan: Plan
    facts: pl.DataFrame
    phases: Sequence[Phase]
    recalls: pl.DataFrame
    earlier_leaving: Mapping[str, Sequence[int]]
    """For each agent, how many memories each of its last 14 nights retired."""
    policies: Policies
    judge: Judge


@dataclass(frozen=True)
class CheckResult:
    """Whether a rule holds, in a sentence a person can act on, with the figures behind it."""

    passed: bool
    description: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


Check = Callable[[Evidence], CheckResult]


def conservation(evidence: Evidence) -> CheckResult:
    """Whatever leaves `active` is archived or has a living successor of the same agent."""
    successor, leave = successors(evidence.plan), leaving(evidence.plan)
    owner = dict(evidence.facts.select("id", "agent_id").iter_rows())
    alive = set(evidence.facts.filter(pl.col("state") == "active")["id"]) - leave
    heirs = {
        memory: final_successor(memory, successor) for memory in (leave | set(successor)) - archived(evidence.plan)
    }
    lost = sorted(memory for memory, heir in heirs.items() if heir not in alive or owner[heir] != owner.get(memory))
    if lost:
        return failed(f"{len(lost)} memories would leave without a living successor", lost)
    return held(f"all {len(leave)} memories that leave have a living successor or are archived")


def no_cycles(evidence: Evidence) -> CheckResult:
    """No memory ends up, by whatever detour, as its own successor."""
    successor = successors(evidence.plan)
    circular = sorted(memory for memory in successor if final_successor(memory, successor) is None)
    if circular:
        return failed(f"{len(circular)} memories would supersede each other in a circle", circular)
    return held("no memory succeeds itself")


def reads_what_it_changes(evidence: Evidence) -> CheckResult:
    """Every memory a proposal changes is in its read set, so that apply can see whether it changed since."""
    blind = [str(p.id) for p in evidence.plan.proposals if {c.id for c in p.changes} - {r.id for r in p.read_set}]
    if blind:
        return failed(f"{len(blind)} proposals would change what they did not read", blind)
    return held("every proposal read all it changes")


def blast_radius(evidence: Evidence) -> CheckResult:
    """No agent loses more of its active memories in one night than the policy allows."""
    active = dict(evidence.facts.filter(pl.col("state") == "active").group_by("agent_id").len().iter_rows())
    counts: dict[str, int] = {}
    for proposal in evidence.plan.proposals:
        counts[proposal.agent_id] = counts.get(proposal.agent_id, 0) + len(leaving_of(proposal))
    complaints = [
        complaint
        for agent_id, count in sorted(counts.items())
        if (complaint := excess(agent_id, count, active.get(agent_id, 0), evidence)) is not None
    ]
    metadata = {"leaving": sum(counts.values()), "active": sum(active.values())}
    if complaints:
        hint = "look at the proposals; if they are right, raise the limit for this run in the policy"
        return broken(f"{'; '.join(complaints[:SHOWN])} — {hint}", metadata)
    return held(f"{metadata['leaving']} of {metadata['active']} active memories would leave", metadata)


def excess(agent_id: str, count: int, active: int, evidence: Evidence) -> str | None:
    """Say in which way an agent would lose too much, if it would."""
    policy = evidence.policies.of(agent_id)
    if count <= policy.free_leaving_count:
        return None
    if count > policy.max_leaving_count:
        return f"{agent_id}: {count} memories would leave, the limit is {policy.max_leaving_count}"
    if count > policy.max_leaving_share * active:
        return f"{agent_id}: {count} of {active} memories would leave, the limit is {policy.max_leaving_share:.0%}"
    earlier = evidence.earlier_leaving.get(agent_id, ())
    usual = median(earlier) if earlier else None
    if usual and count > policy.max_leaving_jump * usual:
        return f"{agent_id}: {count} memories would leave, {count / usual:.0f} times the usual {usual:g}"
    return None


def canaries(evidence: Evidence) -> CheckResult:
    """Pairs with known answers still come out right, so that tonight's verdicts can be believed."""
    pairs = [Pair(a=Statement(text=c.a), b=Statement(text=c.b), similarity=c.similarity) for c in CANARIES]
    verdicts = evidence.judge.judge(pairs)
    wrong = [
        f"“{c.a}” / “{c.b}” came out as {v.verdict}"
        for c, v in zip(CANARIES, verdicts, strict=True)
        if (v.verdict is Verdict.SAME) != c.is_same
    ]
    if wrong:
        return failed(f"{len(wrong)} of {len(CANARIES)} canary pairs were judged wrongly", wrong)
    return held(f"all {len(CANARIES)} canary pairs were judged rightly")


def protected(evidence: Evidence) -> CheckResult:
    """No pinned memory leaves, and none gives way to a less trusted one."""
    known = {row["id"]: row for row in evidence.facts.select("id", "is_pinned", "trust").to_dicts()}
    successor = successors(evidence.plan)
    pinned = sorted(memory for memory in leaving(evidence.plan) & known.keys() if known[memory]["is_pinned"])
    if pinned:
        return failed(f"{len(pinned)} pinned memories would leave", pinned)
    weaker = sorted(
        memory
        for memory, after in successor.items()
        if {memory, after} <= known.keys() and known[after]["trust"] < known[memory]["trust"]
    )
    if weaker:
        return failed(f"{len(weaker)} memories would give way to a less trusted one", weaker)
    return held("pinned and trusted memories stay")


def recall_does_not_regress(evidence: Evidence) -> CheckResult:
    """What was recalled and used in the last nights stays findable: itself, or the memory that takes its place.

    Each probe's question is asked again, by cosine over all active memories, before the plan and after it. A used
    memory may not fall out of the probe's result length, nor further down when it was outside already.
    """
    worse: list[str] = []
    checked = 0
    probes = evidence.recalls.filter(pl.col("cited_ids").list.len() > 0, pl.col("embedding").is_not_null())
    for (agent_id,), group in probes.group_by(["agent_id"], maintain_order=True):
        active = evidence.facts.filter(
            pl.col("agent_id") == agent_id, pl.col("state") == "active", pl.col("embedding").is_not_null()
        )
        ranks = ProbeRanks(active, evidence.plan)
        for probe in group.select("query", "embedding", "result_limit", "cited_ids").to_dicts():
            checked += 1
            worse += ranks.worse(probe)
    if worse:
        return failed(f"{len(worse)} used memories would be harder to find", worse, checked=checked)
    return held(f"{checked} probes find what they found before", {"probes": checked})


class ProbeRanks:
    """Ranks of one agent's active memories for a question, before the plan and after it."""

    def __init__(self, active: pl.DataFrame, plan: Plan) -> None:
        self._place = {memory: row for row, memory in enumerate(active["id"])}
        self._vectors = vector_matrix(active["embedding"])
        self._successor = successors(plan)
        self._stays = ~active["id"].is_in(list(leaving(plan))).to_numpy()

    def worse(self, probe: Mapping[str, Any]) -> list[str]:
        """Return a sentence for each memory this probe's user cited and would no longer find."""
        cited = [memory for memory in probe["cited_ids"] if memory in self._place]
        if not cited:
            return []  # they left in an earlier night, whose own checks looked after them
        scores = self._vectors @ np.asarray(probe["embedding"], dtype=np.float32)
        found: list[str] = []
        for memory in cited:
            before = 1 + int((scores > scores[self._place[memory]]).sum())
            after = self._rank_after(memory, scores)
            if after is None or after > max(before, probe["result_limit"]):
                found.append(f"“{probe['query']}”: {memory} at rank {before} before, {after or 'nowhere'} after")
        return found

    def _rank_after(self, memory: str, scores: NDArray[np.float32]) -> int | None:
        heir = self._place.get(final_successor(memory, self._successor) or "")
        if heir is None or not self._stays[heir]:
            return None
        return 1 + int((scores[self._stays] > scores[heir]).sum())


def effect(evidence: Evidence) -> CheckResult:
    """Every row a phase had to decide about, of every agent, is in a proposal or was left for a reason it gives."""
    missing = [
        f"{phase.name} of {agent_id} ({rows} of {phase.eligible[agent_id]} rows)"
        for phase in evidence.phases
        for agent_id, rows in phase.unexplained().items()
    ]
    metadata = {phase.name: phase.metadata() for phase in evidence.phases}
    if missing:
        return failed("rows were neither changed nor left for a reason, in", missing, **metadata)
    eligible = sum(sum(phase.eligible.values()) for phase in evidence.phases)
    return held(f"all {eligible} rows that had to be decided about are in a proposal or left for a reason", metadata)


CHECKS: Mapping[str, Check] = {
    "conservation": conservation,
    "no_cycles": no_cycles,
    "reads_what_it_changes": reads_what_it_changes,
    "blast_radius": blast_radius,
    "canaries": canaries,
    "protected": protected,
    "recall_does_not_regress": recall_does_not_regress,
    "effect": effect,
}


def successors(plan: Plan) -> dict[str, str]:
    """Return, for each memory the plan supersedes, the memory that takes its place."""
    return {
        change.id: change.set["superseded_by"]
        for proposal in plan.proposals
        for change in proposal.changes
        if change.set.get("superseded_by")
    }


def leaving(plan: Plan) -> set[str]:
    """Return the memories the plan takes out of `active`."""
    return {memory for proposal in plan.proposals for memory in leaving_of(proposal)}


def archived(plan: Plan) -> set[str]:
    """Return the memories the plan archives, from where they can be restored."""
    return {c.id for proposal in plan.proposals for c in proposal.changes if c.set.get("state") == "archived"}


def leaving_of(proposal: Proposal) -> set[str]:
    """Return the memories one proposal takes out of `active`."""
    return {change.id for change in proposal.changes if change.set.get("state", "active") != "active"}


def final_successor(memory: str, successor: Mapping[str, str]) -> str | None:
    """Follow the successors of a memory to the end; None when they run in a circle."""
    seen = {memory}
    while memory in successor:
        memory = successor[memory]
        if memory in seen:
            return None
        seen.add(memory)
    return memory


def held(sentence: str, metadata: Mapping[str, Any] | None = None) -> CheckResult:
    """Return that a rule holds."""
    return CheckResult(passed=True, description=sentence, metadata=metadata or {})


def broken(sentence: str, metadata: Mapping[str, Any]) -> CheckResult:
    """Return that a rule is broken."""
    return CheckResult(passed=False, description=sentence, metadata=metadata)


def failed(sentence: str, offenders: Sequence[str], **metadata: Any) -> CheckResult:
    """Return a failure that names the first offenders and counts them all."""
    shown = ", ".join(offenders[:SHOWN]) + (" …" if len(offenders) > SHOWN else "")
    return broken(f"{sentence}: {shown}", {"offenders": len(offenders), **metadata})
