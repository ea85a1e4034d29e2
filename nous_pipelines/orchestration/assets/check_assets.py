"""The plan's blocking checks: when one fails, `applied` does not run and nothing has changed."""

from collections.abc import Iterator
from dataclasses import asdict

import dagster as dg

from nous_pipelines.failpoints import reach
from nous_pipelines.orchestration.assets.evidence_assets import evidence_about
from nous_pipelines.orchestration.assets.night_assets import night_of
from nous_pipelines.orchestration.assets.planning_assets import plan
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.phases.phase_table import PHASES
from nous_pipelines.plan.checks import CHECKS


@dg.multi_asset_check(
    specs=[
        dg.AssetCheckSpec(name, asset=plan, blocking=True, description=(check.__doc__ or "").partition("\n")[0])
        for name, check in CHECKS.items()
    ],
)
def plan_checks(context: dg.AssetCheckExecutionContext, night_run: NightRun) -> Iterator[dg.AssetCheckResult]:
    night = night_of(context)
    files = night_run.files(night)
    made = files.read_plan()
    evidence = evidence_about(made, night, night_run, [files.read_phase(phase.name) for phase in PHASES])
    results = {name: check(evidence) for name, check in CHECKS.items()}
    files.write_json(
        "checks", {"hash": made.hash, "results": [{"name": name, **asdict(r)} for name, r in results.items()]}
    )
    reach("checks written")
    for name, result in results.items():
        yield dg.AssetCheckResult(
            check_name=name,
            passed=result.passed,
            description=result.description,
            metadata=as_metadata({**result.metadata, "night": night.isoformat()}),
        )
