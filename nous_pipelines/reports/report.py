"""The morning report as values: what the night changed and why, what it left alone, and how to take it back."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

from nous_online.language.pairs.judging import Verdict
from nous_online.memories.status import question
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.phase_table import PRECEDENCE, PROPOSAL_KINDS
from nous_pipelines.phases.proposals import Plan
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.reports.costs import Cost

SHOWN = 20
"""Entries of one kind and state that a report shows; all of them are counted, and `nous diff` has them all."""
NAMED_AGENTS = 5
"""For how many agents a report names the commands, one for each; for more it names those of single proposals alone."""
FORGETTING = "forgetting_proposals"
SHOWN_REASONS = 3
"""Reasons why memories past their age stay that the first line of a report names."""
IN_FORCE = ("proposed", "applied")
LEFT_OUT = "left_out"
"""The state a report gives the proposals of an agent that the night left out; they are decided about in none."""
NOT_IN_FORCE = ("stale", "refused", "undone", LEFT_OUT)


@dataclass(frozen=True)
class Outline:
    """As much of a proposal as counting and choosing need: there may be tens of thousands."""

    id: str
    agent_id: str
    kind: str
    state: str
    size: int
    """How many memories it is about."""
    leaving: int
    """How many facts it takes out of `active`; what had left before is not among them."""


@dataclass(frozen=True)
class Changed:
    """One memory a proposal changes: how it reads, and what becomes of it."""

    kind: str
    id: str
    text: str
    before: str
    after: str

    @property
    def move(self) -> str:
        """What becomes of it, in a few words."""
        return f"{self.before} → {self.after}" if self.before else self.after


@dataclass(frozen=True)
class Quoted:
    """Words that were said for what a merge joins, and how many times."""

    proposal_id: str
    text: str
    times: int


@dataclass(frozen=True)
class ReportEntry:
    """One proposal in words: what it is about, why, what became of it, and how to take it back."""

    proposal_id: str
    agent_id: str
    kind: str
    state: str
    reason: str
    outcome: str | None
    """Why it went stale, was refused or taken back."""
    told: tuple[str, ...]
    """The texts of its targets; of a merge the canonical memory comes first."""
    changed: tuple[Changed, ...]
    said: tuple[Quoted, ...] = ()
    """Of a merge: every wording that was said for it, the oldest first."""

    @property
    def said_count(self) -> int:
        """How many times it was said, in whatever words."""
        return sum(each.times for each in self.said)

    @property
    def undo(self) -> str:
        """The command that takes this one back."""
        return f"nous undo --proposal {self.proposal_id}"

    @property
    def is_in_force(self) -> bool:
        """Whether it holds, or will once the plan is applied."""
        return self.state in IN_FORCE


@dataclass(frozen=True)
class KeptApart:
    """Two statements that look alike and are not the same, and in what they differ."""

    agent_id: str
    a: str
    b: str
    similarity: float
    reason: str
    verdict: str


@dataclass(frozen=True)
class WaitingProposal:
    """A proposal that waits for the next night, since a memory of it is changed by another one tonight."""

    proposal_id: str
    agent_id: str
    kind: str
    reason: str
    told: tuple[str, ...]

    @property
    def title(self) -> str:
        """What its kind is called."""
        return PROPOSAL_KINDS[self.kind].title


@dataclass(frozen=True)
class PhaseAccount:
    """What one phase looked at, took up, and left alone for which reason."""

    phase: str
    eligible: int
    proposed: int
    left: Mapping[str, int]


@dataclass(frozen=True)
class Offender:
    """A memory or proposal that a failed check names, as people know it."""

    id: str
    text: str


@dataclass(frozen=True)
class Stopped:
    """A check that kept the plan from being applied, whom it accuses, and what to do about it."""

    check: str
    description: str
    offenders: tuple[Offender, ...]
    advice: str


@dataclass(frozen=True)
class AgentLeftOut:
    """An agent that the night left out while the others had theirs: where, why, and what to do about it."""

    agent_id: str
    step: str
    reason: str
    advice: str


@dataclass(frozen=True)
class PolicyUsed:
    """In which fields the policy of the night was another than the default, for all and for single agents."""

    changed: Mapping[str, Any]
    agents: Mapping[str, Mapping[str, Any]]

    @property
    def lines(self) -> list[str]:
        """The differences in words, one a field."""
        default = NightPolicy().as_dict()
        told = [f"{name} = {value} (default {default.get(name)})" for name, value in self.changed.items()]
        return told + [
            f"{agent_id}: {name} = {value} (default {default.get(name)})"
            for agent_id, own in self.agents.items()
            for name, value in own.items()
        ]


@dataclass(frozen=True)
class NightFigures:
    """How the store stood after one night, summed over the agents of the report."""

    night: date
    figures: Mapping[str, float]


MEASURED = {"contradictions": "contradictions_open", "procedures": "procedures_review"}
"""Which figures of the store count questions that only a person can decide."""


@dataclass(frozen=True)
class NightReport:
    """Everything a person wants to know of one night; entries are cut to some of each kind, figures are whole."""

    night: date
    plan_hash: str
    agent_ids: tuple[str, ...]
    """Whom the report is about; empty for all."""
    active_by_agent: Mapping[str, int]
    """How many active facts each agent had before the night."""
    figures: Mapping[str, Mapping[str, Mapping[str, int]]]
    """For each kind and state: proposals, memories they are about, facts leaving `active`."""
    entries: tuple[ReportEntry, ...] = ()
    kept_apart: tuple[KeptApart, ...] = ()
    apart_by_verdict: Mapping[str, int] = field(default_factory=dict[str, int])
    waiting: tuple[WaitingProposal, ...] = ()
    waiting_by_kind: Mapping[str, int] = field(default_factory=dict[str, int])
    accounts: tuple[PhaseAccount, ...] = ()
    checks: tuple[dict[str, Any], ...] = ()
    stopped: tuple[Stopped, ...] = ()
    left_out: tuple[AgentLeftOut, ...] = ()
    late: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many memories of each agent came after the night had run, and were taken in by running it again."""
    unseen: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many memories of each agent came after the night had run, and are not seen by this dry run of it."""
    policy: PolicyUsed = field(default_factory=lambda: PolicyUsed({}, {}))
    costs: tuple[Cost, ...] = ()
    """What the night asked of language models, by purpose, model and way."""
    health: tuple[NightFigures, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """The figures of the night; what went stale, was refused or taken back counts as such alone."""
        before = sum(self.active_by_agent.values())
        return {
            "active_before": before,
            "active_after": before - sum(self.in_force(kind, "leaving") for kind in PRECEDENCE),
            **{kind.figure: self.in_force(kind.name) for kind in PROPOSAL_KINDS.values()},
            "retired": self.in_force("merge", "memories") - self.in_force("merge"),
            "kept_apart": sum(self.apart_by_verdict.values()),
            "unsure": self.apart_by_verdict.get(Verdict.UNSURE.value, 0),
            **{state: sum(self.number(kind, state) for kind in PRECEDENCE) for state in NOT_IN_FORCE},
            "planned": sum(self.number(kind, "proposed") for kind in PRECEDENCE),
            "waiting": sum(self.waiting_by_kind.values()),
        }

    @property
    def needs(self) -> list[str]:
        """What waits for a person: what stopped the night or left somebody out, and what nobody else can decide."""
        told = [f"the check {each.check} stopped the night: nothing was applied" for each in self.stopped]
        told += [f"{each.agent_id} was left out: {each.step}" for each in self.left_out]
        if self.health and self.health[-1].night == self.night:
            figures = self.health[-1].figures
            told += [
                question(name, int(figures[figure])) for name, figure in MEASURED.items() if figures.get(figure, 0) > 0
            ]
        return told

    @property
    def cost_usd(self) -> float:
        """What the night cost."""
        return sum(cost.usd for cost in self.costs)

    @property
    def is_merely_planned(self) -> bool:
        """Whether what is told of would be done, and nothing of it is: a dry run, or a night its checks stopped."""
        return any(self.number(kind, "proposed") for kind in PRECEDENCE) and not any(
            self.number(kind, state) for kind in PRECEDENCE for state in ("applied", "stale", "refused", "undone")
        )

    @property
    def undo(self) -> tuple[str, ...]:
        """The commands that take the whole night back, as far as this report goes; none where nothing was done."""
        return self.commands("undo") if self.is_applied else ()

    def undo_kind(self, kind: str) -> tuple[str, ...]:
        """Return the commands that take back everything of one kind; none where nothing of it was done."""
        return self.commands("undo", f" --kind {kind}") if self.number(kind, "applied") else ()

    @property
    def is_applied(self) -> bool:
        """Whether anything the night did still stands."""
        return any(self.number(kind, "applied") for kind in PRECEDENCE)

    @property
    def undo_told(self) -> str:
        """How to take back what this report tells of, where no short command would stay within it."""
        if not self.is_applied:
            return "Nothing that this night did stands, so there is nothing to take back."
        return (
            f"No command takes back {len(self.agent_ids)} agents and nobody else: take back one at a time with "
            f"nous undo --night {self.night} --agent NAME, or one entry with nous undo --proposal ID."
        )

    def commands(self, verb: str, options: str = "") -> tuple[str, ...]:
        """Return a command about this night, one for each agent of the report, so that it reaches nobody else.

        None for more than `NAMED_AGENTS`.
        """
        told = f"nous {verb} --night {self.night}{options}"
        if not self.agent_ids:
            return (told,)
        is_few = len(self.agent_ids) <= NAMED_AGENTS
        return tuple(f"{told} --agent {shlex.quote(each)}" for each in self.agent_ids) if is_few else ()

    def number(self, kind: str, state: str, what: str = "proposals") -> int:
        """Return how many proposals, memories or leaving facts there are of one kind and state."""
        return self.figures.get(kind, {}).get(state, {}).get(what, 0)

    def in_force(self, kind: str, what: str = "proposals") -> int:
        """Return how many there are of one kind that hold, or would if the plan were applied."""
        return sum(self.number(kind, state, what) for state in IN_FORCE)

    @property
    def kinds(self) -> list[str]:
        """The kinds of which something holds, in the order of precedence."""
        return [kind for kind in PRECEDENCE if self.in_force(kind)]

    def of_kind(self, kind: str) -> list[ReportEntry]:
        """Return the entries shown of one kind that hold."""
        return [entry for entry in self.entries if entry.kind == kind and entry.is_in_force]

    @property
    def not_in_force_count(self) -> int:
        """How many proposals went stale, were refused, taken back or left out."""
        return sum(self.counts[state] for state in NOT_IN_FORCE)

    @property
    def not_in_force(self) -> list[ReportEntry]:
        """The entries shown that went stale, were refused, taken back or left out."""
        return [entry for entry in self.entries if not entry.is_in_force]

    def headline(self, kind: str) -> str:
        """Return in a few words how much of one kind was done."""
        number, memories = self.in_force(kind), self.in_force(kind, "memories")
        if kind == "merge":
            retired = memories - number
            return f"{retired} {'memory' if retired == 1 else 'memories'} merged into {number}"
        words = PROPOSAL_KINDS[kind]
        return f"{number} {words.one if number == 1 else words.many}"

    @property
    def summary(self) -> str:
        """What the night did, all kinds, in one line."""
        done = [self.headline(kind) for kind in self.kinds] or ["nothing to change"]
        counts = self.counts
        pairs = "pair of look-alikes" if counts["kept_apart"] == 1 else "pairs of look-alikes"
        apart = f"; {counts['kept_apart']} {pairs} kept apart" if counts["kept_apart"] else ""
        would = "this would be done: " if self.is_merely_planned else ""
        active = f"{counts['active_before']} → {counts['active_after']} active facts"
        return f"{would}{', '.join(done)}{apart}{self.past_their_age}; {active}{self.came_late}{self.without}"

    @property
    def without(self) -> str:
        """Whom the night left out."""
        names = [f"{each.agent_id} ({each.step})" for each in self.left_out]
        more = [f"{len(names) - NAMED_AGENTS} more"] if len(names) > NAMED_AGENTS else []
        return f"; left out: {', '.join([*names[:NAMED_AGENTS], *more])}" if names else ""

    @property
    def came_late(self) -> str:
        """Whose memories came after the night had run, how many, and whether they are seen now."""
        again = told_late("run again for memories that came after it", self.late)
        return again + told_late("not seen by a dry run, since they came after the night", self.unseen)

    @property
    def past_their_age(self) -> str:
        """How many memories could be forgotten by their age and stay, and what most of them wait for."""
        left = Counter[str]()
        for each in self.accounts:
            left.update(each.left if each.phase == FORGETTING else {})
        if not left:
            return ""
        reasons = ", ".join(f"{count} ({reason})" for reason, count in left.most_common(SHOWN_REASONS))
        stays = "memory past its age stays" if left.total() == 1 else "memories past their age stay"
        return f"; {left.total()} {stays}: {reasons}"


def told_late(what: str, late: Mapping[str, int]) -> str:
    """Say of how many memories of which agents something is true; nothing of none."""
    told = [f"{agent_id} ({count})" for agent_id, count in list(late.items())[:NAMED_AGENTS]]
    if len(late) > NAMED_AGENTS:
        told.append(f"{len(late) - NAMED_AGENTS} more agents")
    return f"; {what}: {', '.join(told)}" if told else ""


def figures_of(outlines: Sequence[Outline]) -> dict[str, dict[str, dict[str, int]]]:
    """Count proposals, their memories and the facts that leave, by kind and state."""
    counted: dict[str, dict[str, dict[str, int]]] = {}
    for kind, state in {(each.kind, each.state) for each in outlines}:
        counted.setdefault(kind, {})[state] = {"proposals": 0, "memories": 0, "leaving": 0}
    for each in outlines:
        tally = counted[each.kind][each.state]
        tally["proposals"] += 1
        tally["memories"] += each.size
        tally["leaving"] += each.leaving
    return counted


def chosen(outlines: Sequence[Outline], shown: int | None) -> list[Outline]:
    """Return the first `shown` proposals of each kind and state, in their order by kind; all of them for None."""
    taken: Counter[tuple[str, str]] = Counter()
    kept: list[Outline] = []
    for each in outlines:
        taken[each.kind, each.state] += 1
        if shown is None or taken[each.kind, each.state] <= shown:
            kept.append(each)
    return sorted(kept, key=lambda each: PRECEDENCE.index(each.kind))


def policy_used(used: Mapping[str, Any], agents: Mapping[str, Mapping[str, Any]]) -> PolicyUsed:
    """Return the differences of a night's policy from the default."""
    default = NightPolicy().as_dict()
    return PolicyUsed({name: value for name, value in used.items() if default.get(name) != value}, agents)


def shown_similarity(similarity: float) -> str:
    """Return a cosine for people; what is not the same never reads as 1."""
    return f"{min(similarity, 0.999):.3f}"


# --- the account of a plan ---


@dataclass(frozen=True)
class NightAccount:
    """The account of a night, as it lies beside its plan; what is about one agent stands in a row of its own."""

    values: Mapping[str, Any]

    @classmethod
    def of(cls, plan: Plan, phases: Sequence[Phase]) -> NightAccount:
        """Draw up the account of a plan."""
        policy = dict(plan.policy)
        agents = policy.pop("agents", {})
        waits = Counter((proposal.agent_id, proposal.kind) for proposal in plan.waiting)
        return cls(
            {
                "hash": plan.hash,
                "agent_ids": list(plan.agent_ids),
                "policy": policy,
                "policies": [{"agent_id": agent_id, "policy": own} for agent_id, own in agents.items()],
                "phases": [row for phase in phases for row in rows_of(phase)],
                "waiting": [{"agent_id": each, "kind": kind, "count": n} for (each, kind), n in sorted(waits.items())],
                "first_waiting": first_waiting(plan),
            }
        )

    @classmethod
    def read(cls, files: NightFiles) -> NightAccount:
        """Read the account of a night; raise `Unavailable` when it is missing or damaged."""
        return cls(files.read_json("account"))

    @property
    def hash(self) -> str:
        """The hash of the plan."""
        return self.values["hash"]

    @property
    def agent_ids(self) -> tuple[str, ...]:
        """Whom the run was for; empty for all."""
        return tuple(self.values["agent_ids"])

    @property
    def policy(self) -> Mapping[str, Any]:
        """The policy of agents that have none of their own."""
        return self.values["policy"]

    def policies(self, agent_ids: Sequence[str] = ()) -> dict[str, Mapping[str, Any]]:
        """Return what agents have decided otherwise."""
        return {row["agent_id"]: row["policy"] for row in about(self.values["policies"], agent_ids)}

    @property
    def threshold(self) -> float:
        """From which cosine on two facts were candidates."""
        return self.policy.get("candidate_similarity", NightPolicy().candidate_similarity)

    @cached_property
    def thresholds(self) -> dict[str, float]:
        """The same, for agents that have decided otherwise."""
        own = {agent_id: policy.get("candidate_similarity") for agent_id, policy in self.policies().items()}
        return {agent_id: threshold for agent_id, threshold in own.items() if threshold is not None}

    def phases(self, agent_ids: Sequence[str] = ()) -> tuple[PhaseAccount, ...]:
        """Return what each phase looked at, summed over some agents or all, in the order of the phases."""
        rows = list(about(self.values["phases"], agent_ids))
        return tuple(
            summed(name, [row for row in rows if row["phase"] == name])
            for name in dict.fromkeys(row["phase"] for row in rows)
        )

    def waiting_by_kind(self, agent_ids: Sequence[str] = ()) -> dict[str, int]:
        """Return how many proposals of each kind wait."""
        found = Counter[str]()
        for row in about(self.values["waiting"], agent_ids):
            found[row["kind"]] += row["count"]
        return dict(found)

    def first_waiting(self, agent_ids: Sequence[str] = ()) -> list[Mapping[str, Any]]:
        """Return the first proposals that wait."""
        return list(about(self.values["first_waiting"], agent_ids))


def about(rows: Sequence[Mapping[str, Any]], agent_ids: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the rows about some agents; all of them when none is named."""
    return [row for row in rows if not agent_ids or row["agent_id"] in agent_ids]


def rows_of(phase: Phase) -> list[dict[str, Any]]:
    """Return the account of one phase, an agent a row."""
    return [
        {
            "agent_id": agent_id,
            "phase": phase.name,
            "eligible": eligible,
            "proposed": phase.proposed.get(agent_id, 0),
            "left": phase.left.get(agent_id, {}),
        }
        for agent_id, eligible in sorted(phase.eligible.items())
    ]


def first_waiting(plan: Plan) -> list[dict[str, Any]]:
    """Return some of the waiting proposals of each agent."""
    taken = Counter[str]()
    rows: list[dict[str, Any]] = []
    for each in plan.waiting:
        taken[each.agent_id] += 1
        if taken[each.agent_id] <= SHOWN:
            rows.append({name: getattr(each, name) for name in ("agent_id", "kind", "targets", "reason")})
            rows[-1]["id"] = str(each.id)
    return rows


def summed(phase: str, rows: Sequence[Mapping[str, Any]]) -> PhaseAccount:
    """Return the account of a phase over several agents."""
    left = Counter[str]()
    for row in rows:
        left.update(row["left"])
    return PhaseAccount(
        phase, sum(row["eligible"] for row in rows), sum(row["proposed"] for row in rows), dict(left.most_common())
    )
