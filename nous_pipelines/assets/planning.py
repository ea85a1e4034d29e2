"""What all phases proposed becomes one plan, carried out once its checks passed: plan → applied → report."""

from collections.abc import Callable
from dataclasses import asdict

import dagster as dg

from nous_online.recall import refresh_statistics
from nous_pipelines.apply import apply_plan, proposals_of
from nous_pipelines.assets.nights import night_asset, night_of
from nous_pipelines.phases import PHASES
from nous_pipelines.proposals import planned
from nous_pipelines.report import night_report
from nous_pipelines.resources import NightRun, as_metadata


@night_asset(
    deps=[dg.AssetKey(name) for name in PHASES],
    kinds={"json"},
    description="Everything the night would change, free of conflicts, known by its hash. Nothing has changed yet.",
)
def plan(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    files = night_run.files(night)
    made = planned(
        night,
        [proposal for name in PHASES for proposal in files.read_phase(name).proposals],
        agent_ids=night_run.agent_ids,
        policy=night_run.policies(night).as_dict(),
    )
    files.write_json("plan", made.as_dict())
    return dg.MaterializeResult(
        metadata=as_metadata(
            {
                "hash": made.hash,
                "proposals": len(made.proposals),
                "waiting": len(made.waiting),
                "policy": dict(made.policy),
            }
        )
    )


@night_asset(
    deps=[plan],
    kinds={"postgres"},
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
    return dg.MaterializeResult(metadata=as_metadata(metadata))


@night_asset(
    deps=[applied],
    kinds={"postgres"},
    description="How often each word occurs in an agent's memories: what makes a rare word count in recall.",
)
def word_statistics(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    agents = night_run.agents()
    for agent_id in agents:
        with night_run.database.transaction(agent_id) as connection:
            refresh_statistics(connection, agent_id)
    return dg.MaterializeResult(metadata={"agents": len(agents)})


@night_asset(
    deps=[applied],
    kinds={"markdown"},
    description="What the night changed and why, what it kept apart and why, and how to take it back.",
)
def report(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    decided = proposals_of(night_run.database, night)
    made = night_report(night_run.snapshot(night), night_run.files(night), decided)
    return dg.MaterializeResult(metadata={**made.counts, "report": dg.MetadataValue.md(made.markdown)})


def progress(context: dg.AssetExecutionContext, every: int = 500) -> Callable[[int, int], None]:
    """Return a callback that writes a line to the run log now and then."""

    def tell(done: int, total: int) -> None:
        if done % every == 0 or done == total:
            context.log.info("applied %d of %d proposals", done, total)

    return tell
