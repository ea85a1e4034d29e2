"""What an operator launches in Dagster besides nights: a dry run, taking nights back, and another embedding space."""

from dataclasses import asdict

import dagster as dg
from pydantic import Field

from nous_online.core.errors import NotFound, Refused
from nous_online.database.connection import Database, open_url, register_space
from nous_online.language.embedding import Embedder, default_embedder
from nous_pipelines.nights import nights_between, parse_night
from nous_pipelines.orchestration.night_assets import OWNERS
from nous_pipelines.orchestration.reembedding import BUCKETS, embedder_named, fill, settle
from nous_pipelines.orchestration.resources import NightRun, as_metadata
from nous_pipelines.orchestration.running import NightOptions, run_night
from nous_pipelines.plan.undo import Selection, undo_range
from nous_pipelines.reports.text_reports import markdown_of


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


PARTS = dg.StaticPartitionsDefinition(list(BUCKETS))
"""A memory belongs to the partition of the last digit of its id."""


class NextSpace(dg.ConfigurableResource):
    """The embedding space to move to; the fields can be set in the launchpad."""

    model: str = Field(
        default="",
        description="A model of the server in NOUS_EMBEDDING_URL, or minilm-l6-v2-int8; empty: that of new agents.",
    )
    dimensions: int = Field(default=0, description="The model's width; 0 means NOUS_EMBEDDING_DIMENSIONS.")

    def embedder(self) -> Embedder:
        """Return the embedder of the space."""
        return embedder_named(self.model, self.dimensions or None) if self.model else default_embedder()


@dg.asset(
    partitions_def=PARTS,
    group_name="reembedding",
    owners=OWNERS,
    tags={"changes": "vectors"},
    kinds={"postgres"},
    description="Vectors of the embedding space to come, beside those that serve: only what is missing is made.",
)
def next_embeddings(
    context: dg.AssetExecutionContext, night_run: NightRun, next_space: NextSpace
) -> dg.MaterializeResult:
    embedder = next_space.embedder()
    register_space(night_run.database, embedder.space, is_indexed=False)
    made = fill(night_run.database, embedder, night_run.agents(), buckets=[context.partition_key])
    return dg.MaterializeResult(metadata={"made": made, "space": embedder.space.id})


@dg.asset(
    deps=[next_embeddings],
    group_name="reembedding",
    owners=OWNERS,
    tags={"changes": "vectors"},
    kinds={"postgres"},
    description="Agents moved into the new space, each at once; refused while vectors are missing.",
)
def embedding_space_switched(
    context: dg.AssetExecutionContext, night_run: NightRun, next_space: NextSpace
) -> dg.MaterializeResult:
    embedder = next_space.embedder()
    register_space(night_run.database, embedder.space, is_indexed=False)
    try:
        moves = settle(night_run.database, embedder, night_run.agents(), run_id=context.run.run_id)
    except Refused as refusal:
        raise dg.Failure(str(refusal)) from refusal
    return dg.MaterializeResult(
        metadata=as_metadata({"space": embedder.space.id, "moves": [asdict(move) for move in moves]})
    )
