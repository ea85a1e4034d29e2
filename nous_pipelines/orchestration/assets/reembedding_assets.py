"""Moving into another embedding space: next_embeddings, a partition for each part of the memories, then the switch."""

from dataclasses import asdict

import dagster as dg
from pydantic import Field

from nous_online.core.errors import Refused
from nous_online.database.connection import register_space
from nous_online.language.embedding import Embedder, default_embedder
from nous_pipelines.orchestration.assets.night_assets import OWNERS
from nous_pipelines.orchestration.reembedding import BUCKETS, embedder_named, fill, settle
from nous_pipelines.orchestration.resources import NightRun, as_metadata

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
