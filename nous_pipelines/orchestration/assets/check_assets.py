"""The plan's checks: when a blocking one fails, `applied` does not run and nothing has changed."""

from collections.abc import Iterator
from dataclasses import asdict

import dagster as dg

from nous_pipelines.failpoints import reach
from nous_pipelines.orchestration.assets.evidence_assets import evidence_about, phases_of
from nous_pipelines.orchestration.assets.night_assets import night_of
from nous_pipelines.orchestration.assets.planning_assets import plan
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.plan.checks import CHECKS
from nous_pipelines.plan.left_out import CHECK, checked_apart, nobody_left_out


def spec_of(name: str, docstring: str | None, *, is_blocking: bool) -> dg.AssetCheckSpec:
    """Return a check as the interface knows it."""
    said = (docstring or "").partition("\n")[0]
    return dg.AssetCheckSpec(name, asset=plan, blocking=is_blocking, description=said)


@dg.multi_asset_check(
    specs=[
        *(spec_of(name, check.__doc__, is_blocking=True) for name, check in CHECKS.items()),
        spec_of(CHECK, nobody_left_out.__doc__, is_blocking=False),
    ],
)
def plan_checks(context: dg.AssetCheckExecutionContext, night_run: NightRun) -> Iterator[dg.AssetCheckResult]:
    night = night_of(context)
    files = night_run.files(night)
    made = files.read_plan()
    results, breaking = checked_apart(evidence_about(made, night, night_run, phases_of(night, night_run)))
    left = [*night_run.left_out(night), *breaking]
    results[CHECK] = nobody_left_out(left)
    rows = [{"name": name, **asdict(result)} for name, result in results.items()]
    files.write_json("checks", {"hash": made.hash, "results": rows, "left_out": [vars(each) for each in left]})
    reach("checks written")
    for name, result in results.items():
        yield dg.AssetCheckResult(
            check_name=name,
            passed=result.passed,
            description=result.description,
            metadata=as_metadata({**result.metadata, "night": night.isoformat()}),
        )
