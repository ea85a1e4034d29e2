"""The assets of a night from its plan on: plan, checks, applied, word statistics, report.

When a blocking check fails, `applied` does not run and nothing has changed.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import date
from functools import partial

import dagster as dg
import polars as pl

from nous_online.recall.recall import agents_with_stale_statistics, refresh_statistics
from nous_pipelines.failpoints import reach
from nous_pipelines.orchestration.earlier_nights import write_kept
from nous_pipelines.orchestration.night_assets import ROW_COUNT, night_asset, night_of
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.phases.phase import Phase
from nous_pipelines.phases.phase_table import PHASES, Reads
from nous_pipelines.phases.proposals import Plan
from nous_pipelines.plan.apply import apply_plan, costs_of, earlier_leaving
from nous_pipelines.plan.checks import (
    CHECKS,
    NOBODY_LEFT_OUT,
    check_without_offenders,
    isolate_failures,
    left_out_agents,
    nobody_left_out,
)
from nous_pipelines.plan.evidence import (
    SEARCHABLE,
    STANDING,
    Evidence,
    EvidenceTables,
)
from nous_pipelines.plan.night_files import remember_value
from nous_pipelines.plan.planning import combine_plans, planned, without_harmful_proposals
from nous_pipelines.reports.costs import cost_metadata
from nous_pipelines.reports.html_report import plots_of, write_page
from nous_pipelines.reports.report import NightAccount
from nous_pipelines.reports.reporting import measure_health, night_report
from nous_pipelines.reports.text_reports import markdown_of

EVIDENCE_READS: Reads = {
    "facts": (*STANDING, "superseded_by", "succession", *SEARCHABLE),
    "episodes": (*STANDING, *SEARCHABLE),
    "procedures": (*STANDING, *SEARCHABLE),
    "censors": STANDING,
    "statements": ("agent_id", "fact_id"),
    "recalls": None,
}
"""The columns of the snapshot that the checks of a plan read."""
PAGE = "report.html"
COUNTED_AT_ONCE = 2  # agents whose words are counted: the server works, on a core each


def phases_of(night: date, night_run: NightRun) -> list[Phase]:
    """Return the result of every phase, without the agents left out."""
    files, left = night_run.files(night), {each.agent_id for each in night_run.left_out(night)}
    phases = [files.read_phase(phase.name) for phase in PHASES]
    return [phase.of(phase.agent_ids - left) for phase in phases] if left else phases


def read_evidence(
    night_plan: Plan, night: date, night_run: NightRun, phases: Sequence[Phase], *, is_last: bool = False
) -> Evidence:
    """Return the evidence about a plan, from snapshot and database, without the agents left out.

    `is_last` tells that no other step of the night reads it.
    """
    taken, left = night_run.snapshot(night), {each.agent_id for each in night_run.left_out(night)}
    of_agents = sorted({proposal.agent_id for proposal in night_plan.proposals})
    evidence = Evidence(
        plan=night_plan,
        **vars(night_run.evidence_tables(taken, of_agents, is_last=is_last)),
        searchable=night_run.searchable(taken, is_last=is_last),
        phases=phases,
        earlier_leaving=earlier_leaving(night_run.database, night_plan),
        costs=costs_of(night_run.database, night),
        policies=night_run.policies(night),
        judge=night_run.judge,
        others=frozenset(night_run.agents()) - left,
    )
    succeeded = {*evidence.successors, *evidence.successors.values()}
    if not succeeded <= {*evidence.memories.filter(pl.col("id").is_in(list(succeeded)))["id"]}:
        # The plan names a memory of an agent without proposals: the check `conservation` has to see whose it is.
        evidence = replace(evidence, **vars(EvidenceTables.of(taken)))
    return evidence.of(evidence.others) if left or night_run.agent_ids else evidence


@night_asset(
    reads=EVIDENCE_READS,
    deps=[phase.name for phase in PHASES],
    kinds={"json"},
    description="Everything the night would change, free of conflicts, known by its hash. Nothing has changed yet.",
)
def plan(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    phases = phases_of(night, night_run)
    reach("phases read")
    without_conflicts = planned(
        night,
        [proposal for phase in phases for proposal in phase.proposals],
        agent_ids=night_run.agent_ids,
        policy=night_run.policies(night).as_dict(),
    )
    evidence = read_evidence(without_conflicts, night, night_run, phases)
    parts, faults = isolate_failures(evidence.agent_ids, lambda own: without_harmful_proposals(evidence.of(own)))
    if faults and not parts:
        raise next(iter(faults.values()))
    files.leave_out(left_out_agents("plan", faults))
    whole = combine_plans(without_conflicts, parts)
    reach("plan made")
    NightAccount.of(whole, phases_of(night, night_run) if faults else phases).write(files)
    files.write_plan(whole)
    write_kept(files, night_run.decision_basis, night_run.snapshot(night), evidence.others)
    reach("plan written")
    return dg.MaterializeResult(
        metadata=as_metadata(
            {
                "hash": whole.hash,
                ROW_COUNT: len(whole.proposals),
                "proposals": len(whole.proposals),
                "waiting": len(whole.waiting),
                "policy": dict(whole.policy),
            }
        )
    )


@night_asset(
    deps=[plan],
    kinds={"postgres"},
    changes_memories=True,
    description="The plan that passed its checks, carried out: versions compared, one event a change, undoable.",
)
def applied(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    checked = files.read_checked_plan()
    outcome = apply_plan(
        night_run.database,
        checked.plan,
        run_id=context.run.run_id,
        checks=checked.results,
        on_progress=apply_log(context),
    )
    metadata = {"hash": checked.plan.hash, **asdict(outcome)}
    files.write_json("applied", metadata)
    reach("outcome written")
    return dg.MaterializeResult(metadata=as_metadata(metadata))


@night_asset(
    deps=[applied],
    kinds={"postgres"},
    description="How often each word occurs in an agent's memories: what makes a rare word count in recall.",
)
def word_statistics(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    stale = dict.fromkeys(night_run.agents(), True)
    if not night_run.is_full:
        with night_run.database.transaction() as connection:
            stale = agents_with_stale_statistics(connection, list(stale))

    def refresh(agent_id: str) -> None:
        with night_run.database.transaction(agent_id) as connection:
            refresh_statistics(connection, agent_id, is_full=stale[agent_id])

    with ThreadPoolExecutor(COUNTED_AT_ONCE) as agents_at_once:
        list(agents_at_once.map(refresh, stale))  # raises what one of them raised
    return dg.MaterializeResult(metadata={"agents": len(stale), "counted_anew": sum(stale.values())})


@night_asset(
    reads={"facts": ("agent_id", "id", "state"), "judgements": None},
    deps=[plan, applied, "judge_batches"],
    kinds={"markdown"},
    description="What the night changed and left alone, with reasons; how to take it back; the health of the store.",
)
def report(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night, files = night_of(context), night_run.files(night_of(context))
    left = {each.agent_id for each in files.read_checked_plan().left_out}
    included = [agent_id for agent_id in night_run.agents() if agent_id not in left] if left else night_run.agent_ids
    measure_health(night_run.database, files, night, seen_at=night_run.seen_until(night), agent_ids=included)
    report_of = partial(night_report, night_run.database, night_run.snapshot(night), files)
    whole = report_of()
    values = report_of(agent_ids=night_run.agent_ids) if night_run.agent_ids else whole
    figures = dict(values.health[-1].figures) if values.health else {}
    page = write_page(night_run.folder(night) / PAGE, whole)
    remember_value(page, values)  # for the command that runs this night, and tells of it
    return dg.MaterializeResult(
        metadata={
            **values.counts,
            **figures,
            "cost_usd": values.cost_usd,
            **as_metadata(cost_metadata(night_run.database, night, agent_ids=night_run.agent_ids)),
            "report": dg.MetadataValue.md(markdown_of(values)),
            "plots": dg.MetadataValue.md(plots_of(values)),
            "page": dg.MetadataValue.path(page),
        }
    )


def apply_log(context: dg.AssetExecutionContext, every: int = 500) -> Callable[[int, int], None]:
    """Return a callback that logs every so many applied proposals, and the last."""

    def log(done: int, total: int) -> None:
        if done % every == 0 or done == total:
            context.log.info("applied %d of %d proposals", done, total)

    return log


def check_spec(name: str, docstring: str | None, *, is_blocking: bool) -> dg.AssetCheckSpec:
    """Return the spec of a check of the plan, described by the first line of a docstring."""
    description = (docstring or "").partition("\n")[0]
    return dg.AssetCheckSpec(name, asset=plan, blocking=is_blocking, description=description)


@dg.multi_asset_check(
    specs=[
        *(check_spec(name, check.__doc__, is_blocking=True) for name, check in CHECKS.items()),
        check_spec(NOBODY_LEFT_OUT, nobody_left_out.__doc__, is_blocking=False),
    ],
)
def plan_checks(context: dg.AssetCheckExecutionContext, night_run: NightRun) -> Iterator[dg.AssetCheckResult]:
    night = night_of(context)
    files = night_run.files(night)
    night_plan = files.read_plan()
    evidence = read_evidence(night_plan, night, night_run, phases_of(night, night_run), is_last=True)
    results, breaking = check_without_offenders(evidence)
    left = [*night_run.left_out(night), *breaking]
    results[NOBODY_LEFT_OUT] = nobody_left_out(left)
    rows = [{"name": name, **asdict(result)} for name, result in results.items()]
    left_out = [*files.others("checks", "left_out"), *map(vars, left)]
    files.write_json("checks", {"hash": night_plan.hash, "results": rows, "left_out": left_out})
    reach("checks written")
    for name, result in results.items():
        yield dg.AssetCheckResult(
            check_name=name,
            passed=result.passed,
            description=result.description,
            metadata=as_metadata({**result.metadata, "night": night.isoformat()}),
        )
