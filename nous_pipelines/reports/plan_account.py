"""What a report needs to know of a plan without reading it: who waits, what each phase left alone, and the policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.proposals import Plan
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.reports.report import SHOWN, PhaseAccount


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
