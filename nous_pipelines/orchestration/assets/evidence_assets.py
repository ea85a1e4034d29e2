"""What is known about a plan when it is made, and again when it is checked."""

from collections.abc import Sequence
from datetime import date

from nous_pipelines.orchestration.resources import NightRun
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.phase_table import PHASES, Reads
from nous_pipelines.phases.proposals import Plan
from nous_pipelines.plan.apply import costs_of, earlier_leaving
from nous_pipelines.plan.evidence import SEARCHABLE, STANDING, Evidence, searchable_of, standing_of, statements_of

WEIGHED: Reads = {
    "facts": (*STANDING, "superseded_by", "succession", *SEARCHABLE),
    "episodes": (*STANDING, *SEARCHABLE),
    "procedures": (*STANDING, *SEARCHABLE),
    "censors": STANDING,
    "statements": ("agent_id", "fact_id"),
    "recalls": None,
}
"""What a plan is weighed against."""


def phases_of(night: date, night_run: NightRun) -> list[Phase]:
    """Read what every phase found, but for agents that the night leaves out."""
    files, left = night_run.files(night), {each.agent_id for each in night_run.left_out(night)}
    phases = [files.read_phase(phase.name) for phase in PHASES]
    return [phase.of(phase.agent_ids - left) for phase in phases] if left else phases


def successions_of(made: Plan) -> set[str]:
    """Return the memories that a plan lets give way, and those that take their place: whosever they are."""
    changes = [change for proposal in made.proposals for change in proposal.changes if change.set.get("superseded_by")]
    return {memory for change in changes for memory in (change.id, change.set["superseded_by"])}


def evidence_about(made: Plan, night: date, night_run: NightRun, phases: Sequence[Phase]) -> Evidence:
    """Read what a plan has to be weighed against, of the agents that have their night, from snapshot and store.

    Rows are those of the agents for which something is planned; of all, if it names a memory that none of them has.
    """
    taken, left = night_run.snapshot(night), {each.agent_id for each in night_run.left_out(night)}
    of_agents: list[str] | None = sorted({proposal.agent_id for proposal in made.proposals})
    memories = standing_of(taken, of_agents)
    if not successions_of(made) <= {*memories["id"]}:
        memories, of_agents = standing_of(taken), None
    every = Evidence(
        plan=made,
        memories=memories,
        statements=statements_of(taken, of_agents),
        searchable=searchable_of(taken),
        probes=taken.table("recalls", agent_ids=of_agents),
        phases=phases,
        earlier_leaving=earlier_leaving(night_run.database, made),
        costs=costs_of(night_run.database, night),
        policies=night_run.policies(night),
        judge=night_run.judge,
        others=frozenset(night_run.agents()) - left,
    )
    return every.of(every.others) if left or night_run.agent_ids else every
