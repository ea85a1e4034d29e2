"""The table of phases, from which assets, their lineage, precedence, report words and checks are derived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol, TypeAlias

import polars as pl

from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.phases.forgetting import COLUMNS as FORGETTING_COLUMNS
from nous_pipelines.phases.forgetting import forgetting_phase, has_ageing_memories, returns_of_agents
from nous_pipelines.phases.links import CHANGED, link_phase
from nous_pipelines.phases.links import COLUMNS as LINK_COLUMNS
from nous_pipelines.phases.merging import (
    CLUSTERS,
    JUDGED,
    MERGE_COLUMNS,
    SHARE_COLUMNS,
    duplicate_clusters,
    merge_phase,
    share_phase,
)
from nous_pipelines.phases.neighbours import COPY, FOUND
from nous_pipelines.phases.phase import Phase, Tables
from nous_pipelines.phases.tiers import COLUMNS as TIER_COLUMNS
from nous_pipelines.phases.tiers import SUMMARIES, has_ageing_episodes, tier_phase
from nous_pipelines.phases.unreliable import (
    CENSOR_COLUMNS,
    PROCEDURE_COLUMNS,
    censor_phase,
    has_expiring_censors,
    procedure_phase,
)
from nous_pipelines.phases.updates import FACT_COLUMNS, has_later_values, update_phase
from nous_pipelines.phases.usage import COLUMNS as USAGE_COLUMNS
from nous_pipelines.phases.usage import FACT_COLUMNS as USAGE_FACT_COLUMNS
from nous_pipelines.phases.usage import RANKS, has_fading_weights, rank_phase, usage_ranks
from nous_pipelines.snapshots.table_schemas import SNAPSHOT_TABLES, TableSchema

Reads: TypeAlias = Mapping[str, Sequence[str] | None]
"""Names of tables and the columns read of each; None for all columns."""


class FindsProposals(Protocol):
    """A phase function: returns proposals and account for the tables of some agents."""

    def __call__(self, tables: Tables, /, *, policy: NightPolicy, night: date) -> Phase: ...


class TellsAges(Protocol):
    """A function that tells of the tables of some agents whether time alone may bring something to propose."""

    def __call__(self, tables: Tables, /, *, policy: NightPolicy, night: date) -> bool: ...


class MakesTable(Protocol):
    """A function that derives a table from the tables of some agents."""

    def __call__(self, tables: Tables, /, *, policy: NightPolicy, night: date) -> pl.DataFrame: ...


@dataclass(frozen=True)
class ProposalKind:
    """A kind of proposal: its name in the store, and its words in reports."""

    name: str
    title: str
    figure: str
    """Its name among the counts of a report."""
    one: str
    """What was done, after the number one; empty for merges, which reports count by memories."""
    many: str
    """The same after any other number."""
    sign: str
    """Two columns wide, in front of an entry on a terminal."""
    colour: str


@dataclass(frozen=True)
class NightTable:
    """A table that is made on the way to proposals, an asset of its own."""

    schema: TableSchema
    description: str
    reads: Reads
    make: MakesTable
    figures: Mapping[str, pl.Expr]
    """Metadata of the asset: expressions over the table, by name."""

    @property
    def name(self) -> str:
        """The name of its asset and file."""
        return self.schema.name


@dataclass(frozen=True)
class NightPhase:
    """One phase: an asset that proposes changes of some kinds."""

    name: str
    """The name of its asset and file; Dagster keeps records under it, so it never changes."""
    kinds: tuple[ProposalKind, ...]
    description: str
    reads: Reads
    find: FindsProposals
    limits: tuple[str, ...] = ()
    """The fields of `NightPolicy` that it depends on."""
    gather: MakesTable | None = None
    """Called for every chunk before `find` for any; the results together become the table `gathered`."""
    ages: TellsAges | None = None
    """Returns whether it may propose something on a later night than this one though no row changes; None for never."""


PHASES: tuple[NightPhase, ...] = (
    NightPhase(
        "merge_proposals",
        (ProposalKind("merge", "Merged", "merges", "", "", "= ", "green"),),
        "One merge for each cluster: which memory stays, which point to it, and why.",
        {"facts": MERGE_COLUMNS, "judgements": None, "copies": None, "duplicate_clusters": None},
        merge_phase,
        ("candidate_similarity", "same_similarity"),
    ),
    NightPhase(
        "update_proposals",
        (
            ProposalKind("supersede", "Superseded", "superseded", "fact superseded", "facts superseded", "→ ", "green"),
            ProposalKind(
                "contradiction",
                "Contradictions found",
                "contradictions",
                "contradiction found",
                "contradictions found",
                "⚡ ",
                "yellow",
            ),
        ),
        "Facts that give way to a later value of their slot, and facts that contradict each other; those stay.",
        {
            "facts": FACT_COLUMNS,
            "statements": ("agent_id", "fact_id", "reason"),
            "judgements": None,
            "copies": None,
            "undone": None,
            "contradictions": None,
        },
        update_phase,
        ages=has_later_values,
    ),
    NightPhase(
        "forgetting_proposals",
        (ProposalKind("archive", "Archived", "archived", "memory archived", "memories archived", "▽ ", "blue"),),
        "Facts superseded for longer than the grace and memories nobody used: archived, and restorable.",
        FORGETTING_COLUMNS,
        forgetting_phase,
        ("superseded_grace_days", "unused_after_days", "unused_asked_days", "unused_return_share"),
        gather=returns_of_agents,
        ages=has_ageing_memories,
    ),
    NightPhase(
        "shared_proposals",
        (ProposalKind("share", "Shared with the project", "shared", "fact shared", "facts shared", "⇄ ", "green"),),
        "Facts that several users of a project hold, each for themselves: one of them becomes the project's.",
        {"facts": SHARE_COLUMNS, "judgements": None, "copies": None},
        share_phase,
        ("candidate_similarity", "same_similarity", "share_among_users"),
    ),
    NightPhase(
        "episode_tiers",
        (ProposalKind("tier", "Condensed", "condensed", "episode condensed", "episodes condensed", "≡ ", "blue"),),
        "Which episodes become a summary, a line or a title by their age; what leaves them can be restored.",
        {"episodes": TIER_COLUMNS, "uses": None, "undone": None, "episode_summaries": None},
        tier_phase,
        ("summary_after_days", "compressed_after_days", "fossil_after_days", "probe_days"),
        ages=has_ageing_episodes,
    ),
    NightPhase(
        "rank_proposals",
        (
            ProposalKind("promote", "Promoted", "promoted", "memory promoted", "memories promoted", "↑ ", "green"),
            ProposalKind("demote", "Demoted", "demoted", "memory demoted", "memories demoted", "↓ ", "yellow"),
        ),
        "Memories whose use earns them another weight: cited ones rise, ignored ones sink, all of it fades.",
        {"usage_ranks": None, "undone": None},
        rank_phase,
        ("max_promotion", "min_demotion", "rank_step"),
        ages=has_fading_weights,
    ),
    NightPhase(
        "link_proposals",
        (ProposalKind("link", "Linked", "linked", "link found", "links found", "— ", "blue"),),
        "Memories that are alike, were cited together, or of which one was drawn from the other.",
        {**LINK_COLUMNS, "judgements": None, "changed": None},
        link_phase,
        ("neighbour_similarity", "links_per_memory"),
    ),
    NightPhase(
        "censor_proposals",
        (
            ProposalKind(
                "censor", "Censors retired", "censors_retired", "censor retired", "censors retired", "∅ ", "yellow"
            ),
        ),
        "Censors that were mostly wrong, or have run out: retired, all but the absolute ones.",
        {"censors": CENSOR_COLUMNS, "undone": None},
        censor_phase,
        ("false_positive_majority", "censor_activations"),
        ages=has_expiring_censors,
    ),
    NightPhase(
        "procedure_proposals",
        (
            ProposalKind(
                "procedure",
                "Procedures to review",
                "procedures_flagged",
                "procedure to review",
                "procedures to review",
                "? ",
                "yellow",
            ),
        ),
        "Procedures that fail too often: flagged for review, and trusted again once they work.",
        {"procedures": PROCEDURE_COLUMNS, "undone": None},
        procedure_phase,
        ("review_below_success", "review_after_uses"),
    ),
)
"""In the order of precedence: of two proposals about one memory, the one whose kind comes first here is planned.

The other waits a night. Merges come first, since they decide which memory the others would be about. Condensing comes
before weights: it happens three times in the life of an episode, while weights may move any night.
"""
NIGHT_TABLES: tuple[NightTable, ...] = (
    NightTable(
        CLUSTERS,
        "Facts that say the same, in clusters where every two were judged the same: no chaining.",
        {"facts": ("agent_id", "id", "source", "learned_at"), "judgements": None, "copies": None},
        duplicate_clusters,
        {"clusters": pl.struct("agent_id", "cluster_id").n_unique(), "members": pl.len()},
    ),
    NightTable(
        RANKS,
        "How much each memory is used, against how much its agent uses any, and the weight that asks for.",
        {"facts": USAGE_FACT_COLUMNS, "episodes": USAGE_COLUMNS, "procedures": USAGE_COLUMNS, "uses": None},
        usage_ranks,
        {"ranked": pl.len(), "used": pl.col("last_used_at").count()},
    ),
)

PROPOSAL_KINDS: Mapping[str, ProposalKind] = {kind.name: kind for phase in PHASES for kind in phase.kinds}
PRECEDENCE = tuple(PROPOSAL_KINDS)
SCHEMAS: Mapping[str, TableSchema] = {
    **SNAPSHOT_TABLES,
    **{each.name: each for each in (FOUND, COPY, JUDGED, CHANGED, SUMMARIES)},
    **{each.name: each.schema for each in NIGHT_TABLES},
}
"""Every table that a phase may read, by name."""
