"""What all phases proposed becomes one plan, carried out once its checks passed: plan → applied → report."""

from collections.abc import Callable
from dataclasses import asdict

import dagster as dg

from nous_online.recall.recall import agents_to_count, refresh_statistics
from nous_pipelines.failpoints import reach
from nous_pipelines.orchestration.assets.evidence_assets import WEIGHED, evidence_about, phases_of
from nous_pipelines.orchestration.assets.night_assets import night_asset, night_of, row_count
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.phases.phase_table import PHASES
from nous_pipelines.plan.apply import apply_plan
from nous_pipelines.plan.left_out import each_apart, left_out_by
from nous_pipelines.plan.planning import planned, united
from nous_pipelines.plan.replaying import spared
from nous_pipelines.reports.chart_images import plots_of
from nous_pipelines.reports.costs import cost_metadata
from nous_pipelines.reports.health import measure_health
from nous_pipelines.reports.html_report import write_page
from nous_pipelines.reports.markdown_report import markdown_of
from nous_pipelines.reports.plan_account import NightAccount
from nous_pipelines.reports.reporting import night_report


@night_asset(
    reads=WEIGHED,
    deps=[phase.name for phase in PHASES],
    kinds={"json"},
    description="Everything the night would change, free of conflicts, known by its hash. Nothing has changed yet.",
)
def plan(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    phases = phases_of(night, night_run)
    reach("phases read")
    wanted = planned(
        night,
        [proposal for phase in phases for proposal in phase.proposals],
        agent_ids=night_run.agent_ids,
        policy=night_run.policies(night).as_dict(),
    )
    evidence = evidence_about(wanted, night, night_run, phases)
    parts, faults = each_apart(evidence.agent_ids, lambda own: spared(evidence.of(own)))
    if faults and not parts:
        raise next(iter(faults.values()))
    files.leave_out(left_out_by("plan", faults))
    made = united(wanted, parts)
    reach("plan made")
    files.write_json("account", NightAccount.of(made, phases_of(night, night_run) if faults else phases).values)
    files.write_json("plan", made.as_dict())
    reach("plan written")
    return dg.MaterializeResult(
        metadata=as_metadata(
            {
                "hash": made.hash,
                **row_count(made.proposals),
                "proposals": len(made.proposals),
                "waiting": len(made.waiting),
                "policy": dict(made.policy),
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
        on_progress=progress(context),
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
    changed = night_run.agents()
    if not night_run.is_full:
        with night_run.database.transaction() as connection:
            changed = agents_to_count(connection, changed)
    for agent_id in changed:
        with night_run.database.transaction(agent_id) as connection:
            refresh_statistics(connection, agent_id)
    return dg.MaterializeResult(metadata={"agents": len(changed)})


@night_asset(
    reads={"facts": ("agent_id", "id", "state"), "judgements": None},
    deps=[plan, applied],
    kinds={"markdown"},
    description="What the night changed and left alone and why, how to take it back, and how the store stands.",
)
def report(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night, files = night_of(context), night_run.files(night_of(context))
    seen_at, left = night_run.seen_until(night), {each.agent_id for each in files.read_checked_plan().left_out}
    had_it = [agent_id for agent_id in night_run.agents() if agent_id not in left] if left else night_run.agent_ids
    measure_health(night_run.database, files, night, seen_at=seen_at, agent_ids=had_it)
    made = night_report(night_run.database, night_run.snapshot(night), files, agent_ids=night_run.agent_ids)
    figures = dict(made.health[-1].figures) if made.health else {}
    page = write_page(night_run.folder(night) / "report.html", made)
    return dg.MaterializeResult(
        metadata={
            **made.counts,
            **figures,
            "cost_usd": made.cost_usd,
            **as_metadata(cost_metadata(night_run.database, night, agent_ids=night_run.agent_ids)),
            "report": dg.MetadataValue.md(markdown_of(made)),
            "plots": dg.MetadataValue.md(plots_of(made)),
            "page": dg.MetadataValue.path(page),
        }
    )


def progress(context: dg.AssetExecutionContext, every: int = 500) -> Callable[[int, int], None]:
    """Return a callback that writes a line to the run log now and then."""

    def tell(done: int, total: int) -> None:
        if done % every == 0 or done == total:
            context.log.info("applied %d of %d proposals", done, total)

    return tell
