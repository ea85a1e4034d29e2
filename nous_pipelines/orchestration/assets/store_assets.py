"""The store as a night sees it."""

from datetime import UTC, datetime

import dagster as dg

from nous_pipelines.orchestration.assets.night_assets import night_asset, night_of
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.snapshots.snapshot import late_rows, take_snapshot


@night_asset(
    kinds={"postgres", "parquet"},
    description="The store at the end of the night, read in one transaction; taken again for memories that come late.",
)
def snapshot(context: dg.AssetExecutionContext, night_run: NightRun) -> dg.MaterializeResult:
    night = night_of(context)
    policy = night_run.night_policy
    take_snapshot(
        night_run.database, night_run.folder(night), night=night, probe_days=policy.probe_days, now=datetime.now(UTC)
    )
    night_run.settle(night)
    taken = night_run.snapshot(night)
    night_run.files(night).leave_out_nobody()
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": sum(taken.counts.values()),
            **taken.counts,
            "folder": str(taken.folder),
            "taken_at": taken.taken_at.isoformat(),
            **as_metadata({"late": late_rows(taken.late)}),
        }
    )
