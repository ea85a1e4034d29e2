"""The report of a night as values: what it changed and why, what it left alone, and how to undo it."""

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
from nous_pipelines.plan.checks import title_of
from nous_pipelines.plan.night_files import ACCOUNT, NightFiles
from nous_pipelines.reports.costs import Cost

SHOWN = 20
"""Entries of one kind and state that a report shows; the counts include all, and `nous diff` shows all."""
NAMED_AGENTS = 5
"""Agents up to which a report has a command for each; with more it has only those of single proposals."""
FORGETTING = "forgetting_proposals"
SHOWN_REASONS = 3
"""Reasons that the summary gives for memories past their age that stay."""
IN_FORCE = ("proposed", "applied")
LEFT_OUT = "left_out"
"""The state that a report gives to planned proposals of an agent left out; the database does not have it."""
NOT_IN_FORCE = ("stale", "refused", "undone", LEFT_OUT)


@dataclass(frozen=True)
class Outline:
    """The columns of a proposal needed to count and select entries; a night may have tens of thousands."""

    id: str
    agent_id: str
    kind: str
    state: str
    size: int
    """The number of its targets."""
    leaving: int
    """The number of facts it moves out of the state `active`."""

    @property
    def key(self) -> tuple[str, str]:
        """Whose it is, and its id, which the proposal of a copied agent has, too."""
        return self.agent_id, self.id


@dataclass(frozen=True)
class Changed:
    """One memory that a proposal changes: its text, and its state before and after."""

    kind: str
    id: str
    text: str
    before: str
    after: str

    @property
    def move(self) -> str:
        """The change in a few words."""
        return f"{self.before} → {self.after}" if self.before else self.after


@dataclass(frozen=True)
class Quoted:
    """A wording among the statements that a merge joins, and how many times it was stated."""

    agent_id: str
    proposal_id: str
    text: str
    times: int


@dataclass(frozen=True)
class ReportEntry:
    """One proposal for people: the texts of its memories, its reason, state, outcome and changes."""

    proposal_id: str
    agent_id: str
    kind: str
    state: str
    reason: str
    outcome: str | None
    """Why it went stale, was refused or undone."""
    told: tuple[str, ...]
    """The texts of its targets; for a merge the canonical memory comes first."""
    changed: tuple[Changed, ...]
    said: tuple[Quoted, ...] = ()
    """For a merge, every wording of its statements, oldest first."""

    @property
    def said_count(self) -> int:
        """The number of statements in all wordings."""
        return sum(each.times for each in self.said)

    @property
    def undo(self) -> str:
        """The command that undoes this proposal."""
        return f"nous undo --proposal {self.proposal_id}"

    @property
    def is_in_force(self) -> bool:
        """Whether it is applied, or will be with the plan."""
        return self.state in IN_FORCE


@dataclass(frozen=True)
class KeptApart:
    """Two similar statements that are not the same, and the reason."""

    agent_id: str
    a: str
    b: str
    similarity: float
    reason: str
    verdict: str


@dataclass(frozen=True)
class WaitingProposal:
    """A proposal that waits for the next night, since another one changes a memory of it tonight."""

    proposal_id: str
    agent_id: str
    kind: str
    reason: str
    told: tuple[str, ...]

    @property
    def title(self) -> str:
        """The title of its kind."""
        return PROPOSAL_KINDS[self.kind].title


@dataclass(frozen=True)
class PhaseAccount:
    """The account of one phase: rows eligible, proposed, and left by reason."""

    phase: str
    eligible: int
    proposed: int
    left: Mapping[str, int]


@dataclass(frozen=True)
class Offender:
    """A memory or proposal that a failed check names, with its text."""

    id: str
    text: str


@dataclass(frozen=True)
class Stopped:
    """A failed check that stopped the night, the memories or proposals it names, and advice."""

    check: str
    description: str
    offenders: tuple[Offender, ...]
    advice: str


@dataclass(frozen=True)
class AgentLeftOut:
    """An agent that the night left out: the step or check, the reason, and advice."""

    agent_id: str
    step: str
    reason: str
    advice: str


@dataclass(frozen=True)
class PutOff:
    """What the judge could not be asked: how many pairs of each agent wait, and what stood in the way."""

    pairs: Mapping[str, int]
    obstacles: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """How many pairs wait and why, in a line; empty where nothing stood in the way."""
        if not self.obstacles:
            return ""
        pairs, why = sum(self.pairs.values()), "; ".join(self.obstacles)
        if not pairs:
            return f"the judge could not be asked: {why}"
        return f"{'1 pair waits' if pairs == 1 else f'{pairs:,} pairs wait'} for the judge: {why}"


@dataclass(frozen=True)
class PolicyUsed:
    """The policy fields that differ from the default, for all and for single agents."""

    changed: Mapping[str, Any]
    agents: Mapping[str, Mapping[str, Any]]

    @property
    def lines(self) -> list[str]:
        """The differences as text, one line for each field."""
        default = NightPolicy().as_dict()
        lines = [f"{name} = {value} (default {default.get(name)})" for name, value in self.changed.items()]
        return lines + [
            f"{agent_id}: {name} = {value} (default {default.get(name)})"
            for agent_id, own in self.agents.items()
            for name, value in own.items()
        ]


@dataclass(frozen=True)
class NightFigures:
    """The figures of the store after one night, summed over the agents of the report."""

    night: date
    figures: Mapping[str, float]


@dataclass(frozen=True)
class NightQuestions:
    """How many questions only a person can decide are open as the report is made, by sort."""

    contradictions: int = 0
    found: int = 0
    """Contradictions among them that the night found."""
    doubts: int = 0
    procedures: int = 0


@dataclass(frozen=True)
class NightReport:
    """The report of one night; entries are limited for each kind and state, figures are not."""

    night: date
    plan_hash: str
    agent_ids: tuple[str, ...]
    """The agents of the report; empty for all."""
    active_by_agent: Mapping[str, int]
    """Number of active facts of each agent before the night."""
    figures: Mapping[str, Mapping[str, Mapping[str, int]]]
    """By kind and state the numbers of proposals, of their memories, and of facts leaving `active`."""
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
    """By agent the memories that arrived after the night had run and were included by running it again."""
    unseen: Mapping[str, int] = field(default_factory=dict[str, int])
    """By agent the memories that arrived after the night had run and that this dry run does not see."""
    put_off: PutOff = field(default_factory=lambda: PutOff({}))
    policy: PolicyUsed = field(default_factory=lambda: PolicyUsed({}, {}))
    costs: tuple[Cost, ...] = ()
    """Costs of language models in the night, by purpose, model and way."""
    health: tuple[NightFigures, ...] = ()
    asked: NightQuestions = NightQuestions()

    @property
    def counts(self) -> dict[str, int]:
        """The counts of the night; stale, refused and undone proposals count only as such."""
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
    def measured_note(self) -> str:
        """That changes were taken back since the figures of the night were measured; empty if none were."""
        own = self.health[-1].figures if self.health and self.health[-1].night == self.night else {}
        count = int(own.get("taken_back_since", 0))
        were = "1 proposal of the night was" if count == 1 else f"{count:,} proposals of the night were"
        return f"measured before {were} taken back" if count else ""

    @property
    def left_alone(self) -> tuple[int, int]:
        """How many rows the phases left alone, and of how many they had to decide about."""
        return sum(sum(each.left.values()) for each in self.accounts), sum(each.eligible for each in self.accounts)

    @property
    def apart_note(self) -> str:
        """Why pairs that look alike were kept apart, in numbers; empty if none were."""
        apart, unsure = (self.counts[name] for name in ("kept_apart", "unsure"))
        if not apart:
            return ""
        whole = "its likeness alone this pair" if apart == 1 else "their likeness alone all of these pairs"
        differ = "differs" if apart - unsure == 1 else "differ"
        are = "is" if unsure == 1 else "are"
        said = {f"{differ} in something that matters": apart - unsure, f"{are} close but not certain": unsure}
        parts = [f"{count} {what}" for what, count in said.items() if count]
        return f"By {whole} would have been merged. {', '.join(parts)}: a wrong merge costs more than a second copy."

    @property
    def needs(self) -> list[str]:
        """What a person has to act on: stopped nights, agents left out, and questions only a person can decide."""
        needs = [f"the check “{title_of(each.check)}” stopped the night: nothing was applied" for each in self.stopped]
        needs += [f"{each.agent_id} was left out: {title_of(each.step)}" for each in self.left_out]
        needs += [self.put_off.note] if self.put_off.note else []
        asked = self.asked
        if asked.contradictions:
            said, _, how = question("contradictions", asked.contradictions).partition(": ")
            found = f", {asked.found:,} of them found tonight" if 0 < asked.found < asked.contradictions else ""
            needs.append(f"{said}{found}: {how}")
        return needs + [question(sort, count) for sort in ("doubts", "procedures") if (count := getattr(asked, sort))]

    @property
    def checks_title(self) -> str:
        """The title of the checks, which are of the whole night also in a report of some agents."""
        return f"Checked before anything changed{', of all agents of this night' if self.agent_ids else ''}"

    @property
    def cost_usd(self) -> float:
        """The cost of the night in US dollars."""
        return sum(cost.usd for cost in self.costs)

    @property
    def is_merely_planned(self) -> bool:
        """Whether nothing has been applied yet: a dry run, or a night stopped by its checks."""
        return any(self.number(kind, "proposed") for kind in PRECEDENCE) and not self.has_run

    @property
    def has_run(self) -> bool:
        """Whether any proposal of the night was decided: applied, perhaps undone since, stale or refused."""
        return any(
            self.number(kind, state) for kind in PRECEDENCE for state in ("applied", "stale", "refused", "undone")
        )

    @property
    def to_do(self) -> dict[str, int]:
        """How many of each kind are planned and were not decided yet, by the names of `counts`."""
        merges = self.number("merge", "proposed")
        return {
            **{kind.figure: self.number(kind.name, "proposed") for kind in PROPOSAL_KINDS.values()},
            "retired": self.number("merge", "proposed", "memories") - merges,
        }

    @property
    def undo(self) -> tuple[str, ...]:
        """The commands that undo the night for the agents of the report; none if nothing is applied."""
        return self.commands("undo") if self.is_applied else ()

    def undo_kind(self, kind: str) -> tuple[str, ...]:
        """Return the commands that undo all proposals of one kind; none if none is applied."""
        return self.commands("undo", f" --kind {kind}") if self.number(kind, "applied") else ()

    @property
    def is_applied(self) -> bool:
        """Whether any proposal of the night is applied."""
        return any(self.number(kind, "applied") for kind in PRECEDENCE)

    @property
    def undo_hint(self) -> str:
        """How to undo the night where there is no short list of commands for it."""
        if not self.is_applied:
            return "Nothing that this night did stands, so there is nothing to take back."
        return (
            f"No command takes back {len(self.agent_ids)} agents and nobody else: take back one at a time with "
            f"nous undo --night {self.night} --agent NAME, or one entry with nous undo --proposal ID."
        )

    def commands(self, verb: str, options: str = "") -> tuple[str, ...]:
        """Return a command about this night for each agent of the report, so that it affects no others.

        Empty for more than `NAMED_AGENTS` agents.
        """
        command = f"nous {verb} --night {self.night}{options}"
        if not self.agent_ids:
            return (command,)
        is_few = len(self.agent_ids) <= NAMED_AGENTS
        return tuple(f"{command} --agent {shlex.quote(each)}" for each in self.agent_ids) if is_few else ()

    def number(self, kind: str, state: str, what: str = "proposals") -> int:
        """Return the number of proposals, memories or leaving facts of one kind and state."""
        return self.figures.get(kind, {}).get(state, {}).get(what, 0)

    def in_force(self, kind: str, what: str = "proposals") -> int:
        """Return the number of one kind that are applied, or will be with the plan."""
        return sum(self.number(kind, state, what) for state in IN_FORCE)

    @property
    def kinds(self) -> list[str]:
        """The kinds with proposals in force, in order of precedence."""
        return [kind for kind in PRECEDENCE if self.in_force(kind)]

    def of_kind(self, kind: str) -> list[ReportEntry]:
        """Return the entries of one kind that are in force."""
        return [entry for entry in self.entries if entry.kind == kind and entry.is_in_force]

    @property
    def not_in_force_count(self) -> int:
        """The number of proposals that are stale, refused, undone or left out."""
        return sum(self.counts[state] for state in NOT_IN_FORCE)

    @property
    def not_in_force(self) -> list[ReportEntry]:
        """The entries that are stale, refused, undone or left out."""
        return [entry for entry in self.entries if not entry.is_in_force]

    def headline(self, kind: str) -> str:
        """Return in a few words how many proposals of one kind are in force."""
        number, memories = self.in_force(kind), self.in_force(kind, "memories")
        if kind == "merge":
            retired = memories - number
            return f"{retired} {'memory' if retired == 1 else 'memories'} merged into {number}"
        words = PROPOSAL_KINDS[kind]
        return f"{number} {words.one if number == 1 else words.many}"

    @property
    def summary(self) -> str:
        """The whole night in one line."""
        done = [self.headline(kind) for kind in self.kinds] or ["nothing to change"]
        counts = self.counts
        pairs = "pair of look-alikes" if counts["kept_apart"] == 1 else "pairs of look-alikes"
        apart = f"; {counts['kept_apart']} {pairs} kept apart" if counts["kept_apart"] else ""
        would = "this would be done: " if self.is_merely_planned else ""
        active = f"{counts['active_before']} → {counts['active_after']} active facts"
        return f"{would}{', '.join(done)}{apart}{self.kept_note}; {active}{self.late_note}{self.left_out_note}"

    @property
    def left_out_note(self) -> str:
        """The agents left out, as the end of the summary."""
        names = [f"{each.agent_id} ({title_of(each.step)})" for each in self.left_out]
        more = [f"{len(names) - NAMED_AGENTS} more"] if len(names) > NAMED_AGENTS else []
        return f"; left out: {', '.join([*names[:NAMED_AGENTS], *more])}" if names else ""

    @property
    def late_note(self) -> str:
        """The memories that arrived after the night had run, as the end of the summary."""
        return (
            late_in_words("this run took in memories that came after the night had run", self.late) + self.unseen_note
        )

    @property
    def unseen_note(self) -> str:
        """The memories that a dry run leaves out, as the end of the summary."""
        return late_in_words("not seen by a dry run, since they came after the night", self.unseen)

    @property
    def kept_note(self) -> str:
        """The memories past their age that stay, with the most frequent reasons, as a part of the summary."""
        left = Counter[str]()
        for each in self.accounts:
            left.update(each.left if each.phase == FORGETTING else {})
        if not left:
            return ""
        reasons = ", ".join(f"{count} ({reason})" for reason, count in left.most_common(SHOWN_REASONS))
        stays = "memory past its age stays" if left.total() == 1 else "memories past their age stay"
        return f"; {left.total()} {stays}: {reasons}"


def late_in_words(what: str, late: Mapping[str, int]) -> str:
    """Return `what` followed by the agents and their counts, empty for none."""
    agents = [f"{agent_id} ({count})" for agent_id, count in list(late.items())[:NAMED_AGENTS]]
    if len(late) > NAMED_AGENTS:
        agents.append(f"{len(late) - NAMED_AGENTS} more agents")
    return f"; {what}: {', '.join(agents)}" if agents else ""


def figures_of(outlines: Sequence[Outline]) -> dict[str, dict[str, dict[str, int]]]:
    """Return the numbers of proposals, of their memories and of facts that leave, by kind and state."""
    counted: dict[str, dict[str, dict[str, int]]] = {}
    for kind, state in {(each.kind, each.state) for each in outlines}:
        counted.setdefault(kind, {})[state] = {"proposals": 0, "memories": 0, "leaving": 0}
    for each in outlines:
        tally = counted[each.kind][each.state]
        tally["proposals"] += 1
        tally["memories"] += each.size
        tally["leaving"] += each.leaving
    return counted


def first_of_each(outlines: Sequence[Outline], shown: int | None) -> list[Outline]:
    """Return the first `shown` proposals of each kind and state, sorted by kind; all of them for None."""
    taken: Counter[tuple[str, str]] = Counter()
    kept: list[Outline] = []
    for each in outlines:
        taken[each.kind, each.state] += 1
        if shown is None or taken[each.kind, each.state] <= shown:
            kept.append(each)
    return sorted(kept, key=lambda each: PRECEDENCE.index(each.kind))


def policy_used(used: Mapping[str, Any], agents: Mapping[str, Mapping[str, Any]]) -> PolicyUsed:
    """Return the differences between a night's policy and the default."""
    default = NightPolicy().as_dict()
    return PolicyUsed({name: value for name, value in used.items() if default.get(name) != value}, agents)


def shown_similarity(similarity: float) -> str:
    """Return a cosine for people, at most 0.999: a pair that is not the same must not read as 1."""
    return f"{min(similarity, 0.999):.3f}"


# --- the account of a plan ---

ROWS_OF_ACCOUNT = ("phases", "waiting", "first_waiting")


@dataclass(frozen=True)
class NightAccount:
    """The account of a night in the file beside its plan.

    Everything about an agent is in rows of its own, from which erasing removes it.
    """

    values: Mapping[str, Any]

    @classmethod
    def of(cls, plan: Plan, phases: Sequence[Phase]) -> NightAccount:
        """Return the account of a plan."""
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
        return cls(files.read_json(ACCOUNT))

    def write(self, files: NightFiles) -> None:
        """Write it, beside the rows that an earlier run left of agents that this one is not for."""
        has_others = files.agent_ids and files.has(ACCOUNT)
        files.write_json(ACCOUNT, self._with_others(files) if has_others else self.values)

    def _with_others(self, files: NightFiles) -> dict[str, Any]:
        rows = {name: [*files.others(ACCOUNT, name), *self.values[name]] for name in ROWS_OF_ACCOUNT}
        kept = NightAccount.read(files)
        # The policy is that of the others: they are many. Where this run had another, its agents are named with it.
        changed = {name: value for name, value in self.policy.items() if kept.policy.get(name) != value}
        own = {agent_id: {**changed, **self.policies().get(agent_id, {})} for agent_id in files.agent_ids}
        policies = [{"agent_id": agent_id, "policy": policy} for agent_id, policy in own.items() if policy]
        return {
            **self.values,
            **rows,
            "agent_ids": sorted({*kept.agent_ids, *files.agent_ids}) if kept.agent_ids else [],
            "policy": kept.policy,
            "policies": [*files.others(ACCOUNT, "policies"), *policies],
        }

    @property
    def hash(self) -> str:
        """The hash of the plan."""
        return self.values["hash"]

    @property
    def agent_ids(self) -> tuple[str, ...]:
        """The agents of the runs it is of; empty for all."""
        return tuple(self.values["agent_ids"])

    @property
    def policy(self) -> Mapping[str, Any]:
        """The policy of agents without fields of their own."""
        return self.values["policy"]

    def policies(self, agent_ids: Sequence[str] = ()) -> dict[str, Mapping[str, Any]]:
        """Return the policy fields set for agents."""
        return {row["agent_id"]: row["policy"] for row in about(self.values["policies"], agent_ids)}

    @property
    def threshold(self) -> float:
        """The cosine from which two facts were candidates for a merge."""
        return self.policy.get("candidate_similarity", NightPolicy().candidate_similarity)

    @cached_property
    def thresholds(self) -> dict[str, float]:
        """The same, for agents with a value of their own."""
        own = {agent_id: policy.get("candidate_similarity") for agent_id, policy in self.policies().items()}
        return {agent_id: threshold for agent_id, threshold in own.items() if threshold is not None}

    def phases(self, agent_ids: Sequence[str] = ()) -> tuple[PhaseAccount, ...]:
        """Return the accounts of the phases in order, summed over some agents or all."""
        rows = list(about(self.values["phases"], agent_ids))
        return tuple(
            summed(name, [row for row in rows if row["phase"] == name])
            for name in dict.fromkeys(row["phase"] for row in rows)
        )

    def waiting_by_kind(self, agent_ids: Sequence[str] = ()) -> dict[str, int]:
        """Return the number of waiting proposals by kind."""
        found = Counter[str]()
        for row in about(self.values["waiting"], agent_ids):
            found[row["kind"]] += row["count"]
        return dict(found)

    def first_waiting(self, agent_ids: Sequence[str] = ()) -> list[Mapping[str, Any]]:
        """Return the first waiting proposals."""
        return list(about(self.values["first_waiting"], agent_ids))


def about(rows: Sequence[Mapping[str, Any]], agent_ids: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the rows of some agents, of all if none is given."""
    return [row for row in rows if not agent_ids or row["agent_id"] in agent_ids]


def rows_of(phase: Phase) -> list[dict[str, Any]]:
    """Return the account of one phase, a row for each agent."""
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
    """Return the first `SHOWN` waiting proposals of each agent."""
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
