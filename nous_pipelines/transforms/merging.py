"""Duplicates of one agent: candidates, verdicts, clusters, and the merges they lead to. Tables in, tables out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import polars as pl

from nous_online.pairs.judging import Judge, Pair, Statement, Verdict
from nous_online.pairs.subjects import subject_words
from nous_pipelines.nights import end_of
from nous_pipelines.phases import Phase
from nous_pipelines.policy import NightPolicy
from nous_pipelines.proposals import Change, Proposal, Read
from nous_pipelines.transforms.duplicates import clusters, representatives
from nous_pipelines.transforms.self_join import similar_pairs
from nous_pipelines.transforms.vectors import vector_matrix

PLACE = ["scope", "user_id", "project_id", "embedding_space_id"]
"""Facts that differ in one of these are never compared."""

CLUSTERS = {"agent_id": pl.String, "cluster_id": pl.String, "member_id": pl.String}
NEIGHBOURS = {
    "agent_id": pl.String,
    "left_id": pl.String,
    "right_id": pl.String,
    "similarity": pl.Float32,
    "is_across_users": pl.Boolean,
}
"""Pairs worth a look, the earlier statement left; those of two users of one project are asked about sharing alone."""
JUDGED = {
    **NEIGHBOURS,
    "is_ordered": pl.Boolean,  # the right one was stated later, not at the same moment
    "verdict": pl.String,
    "confidence": pl.Float32,
    "slot": pl.String,
    "reason": pl.String,
    "model": pl.String,
    "pair_hash": pl.String,
}


def mergeable(facts: pl.DataFrame, apart: pl.DataFrame) -> pl.DataFrame:
    """Return the facts a merge may touch: active, with a vector, and with no history after the night.

    Facts with one `text` in one place are copies of each other; those a person took apart again are nobody's copies.
    """
    return (
        facts.filter(pl.col("state") == "active", pl.col("embedding").is_not_null(), ~pl.col("is_rewound"))
        .with_columns(text=pl.when(pl.col("id").is_in(apart["left_id"].implode())).then("id").otherwise("content"))
        .sort("id")
    )


def judged_candidates(facts: pl.DataFrame, *, policy: NightPolicy, judge: Judge, undone: pl.DataFrame) -> pl.DataFrame:
    """Return each candidate pair of one agent's facts with its verdict: shape `JUDGED`, earlier statement left.

    Copies of a text are represented once. Memories whose merge a person undid (`undone`: agent_id, kind, targets)
    stay apart and are not asked about again.
    """
    apart = separated_pairs(undone)
    found = mergeable(facts, apart)
    copies = representatives(found, alike=["text", "subject", *PLACE])
    distinct = found.join(copies, left_on="id", right_on="representative_id", how="semi").sort("id")
    places = [group for _, group in distinct.group_by(PLACE, maintain_order=True)]
    pairs = pl.concat([_no_pairs(), *(_similar(group, policy.candidate_similarity) for group in places)])
    judged = _judged(pairs, distinct, judge, apart)
    agent_id = pl.lit(facts["agent_id"][0] if len(facts) else "", pl.String)
    return judged.select(agent_id.alias("agent_id"), *list(JUDGED)[1:]).sort("left_id", "right_id")


def separated_pairs(undone: pl.DataFrame) -> pl.DataFrame:
    """Return (left_id, right_id), both ways round, for every two memories whose merge was undone."""
    ends = (
        undone.filter(pl.col("kind") == "merge").with_row_index("merge").explode("targets").select("merge", "targets")
    )
    return (
        ends.join(ends, on="merge", suffix="_right")
        .filter(pl.col("targets") != pl.col("targets_right"))
        .select(left_id="targets", right_id="targets_right")
        .unique()
    )


def _no_pairs() -> pl.DataFrame:
    return pl.DataFrame(schema={"left_id": pl.String, "right_id": pl.String, "similarity": pl.Float32})


def _similar(facts: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """Return the similar pairs of facts that live in one place and may be about one subject, earlier learned first."""
    about = pl.Series([" ".join(subject_words(subject)) or None for subject in facts["subject"]], dtype=pl.String)
    pairs = similar_pairs(vector_matrix(facts["embedding"]), threshold=threshold)
    ids, said = facts["id"], facts["learned_at"]
    swap = said.gather(pairs.left) > said.gather(pairs.right)
    is_on_one = (about.gather(pairs.left) == about.gather(pairs.right)).fill_null(True)  # noqa: FBT003 (polars)
    return (
        pl.DataFrame(
            {"a": ids.gather(pairs.left), "b": ids.gather(pairs.right), "similarity": pairs.similarity, "swap": swap}
        )
        .filter(is_on_one)
        .select(
            left_id=pl.when("swap").then("b").otherwise("a"),
            right_id=pl.when("swap").then("a").otherwise("b"),
            similarity="similarity",
        )
    )


def _judged(pairs: pl.DataFrame, facts: pl.DataFrame, judge: Judge, apart: pl.DataFrame) -> pl.DataFrame:
    said = dict(facts.select("id", "learned_at").iter_rows())
    is_ordered = [said[left] != said[right] for left, right in pairs.select("left_id", "right_id").iter_rows()]
    pairs = pairs.with_columns(
        is_ordered=pl.Series(is_ordered, dtype=pl.Boolean),
        is_across_users=pl.lit(False),  # noqa: FBT003 (polars)
        slot=pl.lit(None, pl.String),
        pair_hash=pl.lit("", pl.String),
    )
    separated = pairs.join(apart, on=["left_id", "right_id"], how="semi").with_columns(
        verdict=pl.lit(Verdict.COMPATIBLE.value),
        confidence=pl.lit(1.0, pl.Float32),
        reason=pl.lit("an earlier merge of the two was undone by a person"),
        model=pl.lit("operator"),
    )
    open_pairs = pairs.join(apart, on=["left_id", "right_id"], how="anti")
    verdicts = judge.judge(_statement_pairs(open_pairs, facts))
    judged = open_pairs.with_columns(
        slot=pl.Series([v.slot for v in verdicts], dtype=pl.String),
        verdict=pl.Series([v.verdict.value for v in verdicts], dtype=pl.String),
        confidence=pl.Series([v.confidence for v in verdicts], dtype=pl.Float32),
        reason=pl.Series([v.reason for v in verdicts], dtype=pl.String),
        model=pl.Series([v.model for v in verdicts], dtype=pl.String),
    )
    return pl.concat([judged, separated])


def _statement_pairs(pairs: pl.DataFrame, facts: pl.DataFrame) -> list[Pair]:
    said = {row["id"]: row for row in facts.select("id", "content", "subject", "learned_at", "trust").to_dicts()}
    return [
        Pair(a=_statement(said[left]), b=_statement(said[right]), similarity=similarity)
        for left, right, similarity in pairs.select("left_id", "right_id", "similarity").iter_rows()
    ]


def _statement(row: dict[str, Any]) -> Statement:
    return Statement(text=row["content"], subject=row["subject"], stated_at=row["learned_at"], trust=row["trust"])


def duplicate_clusters_of(facts: pl.DataFrame, candidates: pl.DataFrame, *, undone: pl.DataFrame) -> pl.DataFrame:
    """Return the facts of one agent that say the same, copies included, without chaining: shape `CLUSTERS`."""
    found = mergeable(facts, separated_pairs(undone))
    is_own = pl.col("left_id").is_in(found["id"].implode())
    accepted = candidates.filter(is_own, pl.col("verdict") == Verdict.SAME.value)
    copies = representatives(found, alike=["text", "subject", *PLACE])
    members = clusters(accepted.select("left_id", "right_id", "similarity"), equals=copies)
    agent_id = pl.lit(facts["agent_id"][0] if len(facts) else "", pl.String)
    return members.select(agent_id.alias("agent_id"), "cluster_id", "member_id")


def merge_proposals_of(
    facts: pl.DataFrame, candidates: pl.DataFrame, cluster_members: pl.DataFrame, *, night: date
) -> list[Proposal]:
    """Return one merge for each cluster of one agent: the canonical memory stays, the others point to it."""
    members = (
        cluster_members.drop("agent_id")
        .join(facts.drop("embedding"), left_on="member_id", right_on="id")
        .sort("cluster_id", "member_id")
    )
    evidence = _evidence_by_cluster(candidates, cluster_members)
    proposals = [
        _merge(group.to_dicts(), evidence.get(str(cluster_id), []), night=night)
        for (cluster_id,), group in members.group_by(["cluster_id"], maintain_order=True)
    ]
    return [proposal for proposal in proposals if proposal is not None]


def merge_phase_of(
    facts: pl.DataFrame, candidates: pl.DataFrame, cluster_members: pl.DataFrame, *, night: date
) -> Phase:
    """Return the merges of one agent with the account of its clusters; one whose members are all pinned stays."""
    phase = Phase("merge_proposals")
    for proposal in merge_proposals_of(facts, candidates, cluster_members, night=night):
        phase.propose(proposal)
    found = cluster_members.group_by("agent_id").agg(pl.col("cluster_id").n_unique())
    for agent_id, clusters_found in found.iter_rows():
        phase.look(agent_id, clusters_found)
        phase.leave(agent_id, "pinned", clusters_found - phase.proposed.get(agent_id, 0))
    return phase


def _evidence_by_cluster(candidates: pl.DataFrame, members: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    of = members.select("member_id", "cluster_id")
    inside = (
        candidates.join(of, left_on="left_id", right_on="member_id")
        .join(of, left_on="right_id", right_on="member_id", suffix="_right")
        .filter(pl.col("cluster_id") == pl.col("cluster_id_right"))
        .select(
            "cluster_id",
            a="left_id",
            b="right_id",
            similarity=pl.col("similarity").cast(pl.Float64).round(4),
            confidence=pl.col("confidence").cast(pl.Float64).round(4),
            reason="reason",
            model="model",
        )
        .sort("cluster_id", "a", "b")
    )
    return {str(key[0]): group.drop("cluster_id").to_dicts() for key, group in inside.group_by(["cluster_id"])}


def _merge(rows: list[dict[str, Any]], evidence: list[dict[str, Any]], *, night: date) -> Proposal | None:
    canonical = min(rows, key=canonical_order)
    leaving = [row for row in rows if row is not canonical and not row["is_pinned"]]
    if not leaving:
        return None
    merged = [canonical, *leaving]
    at = end_of(night).isoformat()
    retired = [
        Change(
            "fact",
            row["member_id"],
            set={"state": "superseded", "superseded_by": canonical["member_id"], "superseded_at": at},
            action="merged",
        )
        for row in leaving
    ]
    return Proposal(
        night=night,
        agent_id=canonical["agent_id"],
        kind="merge",
        targets=tuple(row["member_id"] for row in merged),
        read_set=tuple(Read("fact", row["member_id"], row["row_version"]) for row in merged),
        changes=(
            Change("fact", canonical["member_id"], set=_united(merged), action="absorbed"),
            *_summed_usage(merged),
            *retired,
        ),
        reason=_reason(merged, evidence),
        evidence={"pairs": evidence, "copies": len(merged) - len({row["content"] for row in merged})},
    )


def canonical_order(row: dict[str, Any]) -> tuple[Any, ...]:
    """Rank the members of a cluster: most trusted, pinned, most used and confirmed, first said, smallest id."""
    use = row["cited_count"] * 2 + row["confirmation_count"] + row["retrieved_count"]
    return (-row["trust"], not row["is_pinned"], -use, row["learned_at"], row["member_id"])


def _united(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what the canonical memory takes over: each statement counts as a confirmation, tags and sources unite."""
    sources = {source for row in rows for source in [*row["sources"], *([row["source"]] if row["source"] else [])]}
    said_last = max(moment for row in rows for moment in (row["learned_at"], row["last_confirmed_at"]) if moment)
    return {
        "confirmation_count": sum(row["confirmation_count"] for row in rows) + len(rows) - 1,
        "last_confirmed_at": said_last.isoformat(),
        "tags": sorted({tag for row in rows for tag in row["tags"]}),
        "sources": sorted(sources),
        "confidence": max(row["confidence"] for row in rows),
    }


def _summed_usage(rows: Sequence[dict[str, Any]]) -> tuple[Change, ...]:
    canonical, *leaving = rows
    add = {name: sum(row[name] for row in leaving) for name in ("retrieved_count", "cited_count", "ignored_count")}
    return (Change("usage", canonical["member_id"], add=add),) if any(add.values()) else ()


def _reason(rows: Sequence[dict[str, Any]], evidence: Sequence[dict[str, Any]]) -> str:
    canonical = rows[0]
    said = [f"{row['learned_at']:%d %b %Y}" for row in sorted(rows, key=lambda row: row["learned_at"])]
    times = f"said {len(rows)} times, first {said[0]}, last {said[-1]}"
    least = min((pair["similarity"] for pair in evidence), default=None)
    alike = ", word for word" if least is None else f", at least {min(least, 0.999):.3f} similar"
    return f"{times}{alike}; keeps the one of {canonical['learned_at']:%d %b %Y}"
