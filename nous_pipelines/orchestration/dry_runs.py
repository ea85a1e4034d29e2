"""A night up to its checks, launched in the interface: what it would do is told, and no partition takes its colour."""

import dagster as dg

from nous_pipelines.nights import parse_night
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.orchestration.running import NightOptions, run_night
from nous_pipelines.reports.markdown_report import markdown_of


@dg.op(description="Makes the assets of a night up to the plan and its checks, apart from those that are recorded.")
def what_a_night_would_do(context: dg.OpExecutionContext, night_run: NightRun) -> None:
    options = NightOptions(
        night_run.address,
        night_run.home_folder,
        agent_ids=night_run.agent_ids,
        policy=night_run.policy,
        is_dry_run=True,
        is_full=night_run.is_full,
    )
    outcome = run_night(parse_night(context.partition_key), options, instance=context.instance, tell=context.log.info)
    if outcome.report is not None:
        told = {"hash": outcome.report.plan_hash, **outcome.report.counts, "checks": list(outcome.report.checks)}
        report = dg.MetadataValue.md(markdown_of(outcome.report))
        context.add_output_metadata({**as_metadata(told), "report": report})
    if outcome.is_stopped:
        raise dg.Failure("; ".join(outcome.failures))


@dg.graph
def dry_run() -> None:
    what_a_night_would_do()


def dry_run_job(nights: dg.PartitionsDefinition) -> dg.JobDefinition:
    """Return the job over some nights."""
    return dry_run.to_job(
        partitions_def=nights,
        executor_def=dg.in_process_executor,
        description="A night up to the checks: says what it would change, changes nothing, colours no partition.",
    )
