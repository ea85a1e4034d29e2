"""Taking nights back in Dagster: the same as `nous undo --from … --to …`, launched in the interface."""

import dagster as dg
from pydantic import Field

from nous_online.core.errors import NotFound
from nous_online.database.connection import Database, open_url
from nous_pipelines.nights import nights_between, parse_night
from nous_pipelines.orchestration.resources import as_metadata
from nous_pipelines.plan.undo import Selection, undo_range


class NightRange(dg.Config):
    """Which nights are taken back, of whom, and why."""

    first_night: str = Field(description="The first night to take back, such as 2026-11-01.")
    last_night: str = Field(description="The last one. The newest is taken back first.")
    agent_id: str = Field(default="", description="Of this agent alone; empty means all.")
    kind: str = Field(default="", description="One kind of proposal alone, such as merge; empty means all.")
    reason: str = Field(default="taken back by the operator", description="Why; kept with every event.")


@dg.op(description="Restores what the nights changed, an event for each row; ends at the first that is not whole.")
def take_nights_back(context: dg.OpExecutionContext, config: NightRange) -> None:
    nights = list(nights_between(parse_night(config.first_night), parse_night(config.last_night)))[::-1]
    selection = Selection(agent_id=config.agent_id or None, kind=config.kind or None)
    database = Database(open_url(), role="nous_night", max_connections=2)
    try:
        results = undo_range(database, selection, nights, reason=config.reason)
    except NotFound as missing:
        raise dg.Failure(str(missing)) from missing
    finally:
        database.close()
    undone = {night.isoformat(): len(result.undone) for night, result in results.items()}
    refused = {str(each): why for result in results.values() for each, why in result.refused.items()}
    context.add_output_metadata(as_metadata({"undone": undone, "refused": refused}))
    for night, count in undone.items():
        context.log.info("night %s: %d proposals taken back", night, count)
    if refused:
        why = "; ".join(f"{each}: {reason}" for each, reason in refused.items())
        raise dg.Failure(f"ended at night {list(undone)[-1]}, those before it stand as they were: {why}")


@dg.job(
    executor_def=dg.in_process_executor,
    description="Takes back a range of nights, the newest first: every row as it was. What was taken back stays so.",
)
def undo_nights() -> None:
    take_nights_back()
