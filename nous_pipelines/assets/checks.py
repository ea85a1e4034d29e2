"""The plan's blocking checks: when one fails, `applied` does not run and nothing has changed."""

from collections.abc import Iterator
from dataclasses import asdict

import dagster as dg

from nous_pipelines.apply import earlier_leaving
from nous_pipelines.assets.nights import night_of
from nous_pipelines.assets.planning import plan
from nous_pipelines.checks import CHECKS
from nous_pipelines.evidence import Evidence, searchable_of, standing_of
from nous_pipelines.failpoints import reach
from nous_pipelines.phases import PHASES
from nous_pipelines.resources import NightRun, as_metadata


@dg.multi_asset_check(
    specs=[
        dg.AssetCheckSpec(name, asset=plan, blocking=True, description=(check.__doc__ or "").partition("\n")[0])
        for name, check in CHECKS.items()
    ],
)
def plan_checks(context: dg.AssetCheckExecutionContext, night_run: NightRun) -> Iterator[dg.AssetCheckResult]:
    night = night_of(context)
    files, taken = night_run.files(night), night_run.snapshot(night)
    made = files.read_plan()
    evidence = Evidence(
        plan=made,
        memories=standing_of(taken),
        searchable=searchable_of(taken),
        probes=taken.table("recalls"),
        phases=[files.read_phase(name) for name in PHASES],
        earlier_leaving=earlier_leaving(night_run.database, made),
        policies=night_run.policies(night),
        judge=night_run.judge,
    )
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
