"""The morning report: what the night changed and why, what it kept apart and why, and how to take it back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl

from nous_online.judging import Verdict
from nous_pipelines.files import NightFiles
from nous_pipelines.proposals import Proposal
from nous_pipelines.snapshot import Snapshot

SHOWN = 20


@dataclass(frozen=True)
class Merged:
    """One merge in words: what stays, what points to it from now on, and why."""

    proposal_id: str
    agent_id: str
    kept: str
    retired: tuple[str, ...]
    reason: str
    state: str


@dataclass(frozen=True)
class KeptApart:
    """Two statements that look alike and are not the same, and in what they differ."""

    agent_id: str
    a: str
    b: str
    similarity: float
    reason: str
    verdict: str


@dataclass(frozen=True)
class NightReport:
    """Everything a person wants to know of one night."""

    night: date
    plan_hash: str
    active_before: int
    active_after: int
    merged: tuple[Merged, ...]
    kept_apart: tuple[KeptApart, ...]
    checks: tuple[dict[str, Any], ...]
    applied: int
    stale: int
    is_applied: bool

    @property
    def counts(self) -> dict[str, int]:
        """The figures of the night."""
        return {
            "active_before": self.active_before,
            "active_after": self.active_after,
            "merges": len(self.merged),
            "retired": sum(len(merge.retired) for merge in self.merged),
            "kept_apart": len(self.kept_apart),
            "stale": self.stale,
        }

    @property
    def markdown(self) -> str:
        """The report as Markdown, at most 20 entries a section."""
        lines = [
            f"# Night {self.night}",
            f"Plan `{self.plan_hash[:12]}` — {self.active_before} active memories before, {self.active_after} after.",
            f"## Merged ({len(self.merged)})",
            *(line for merge in self.merged[:SHOWN] for line in merge_lines(merge)),
            f"## Look alike, kept apart ({len(self.kept_apart)})",
            *(line for pair in self.kept_apart[:SHOWN] for line in apart_lines(pair)),
            "## Checks",
            *(f"- {'✓' if check['passed'] else '✗'} **{check['name']}** {check['description']}" for check in self.checks),
            "## Take it back",
            f"`nous undo --night {self.night}` takes back the whole night, `nous undo --proposal ID` one merge.",
        ]
        return "\n\n".join(lines)


def merge_lines(merge: Merged) -> list[str]:
    """Return one merge as a list entry, what it retired below what it keeps."""
    retired = "".join(f"\n  - ~~{text}~~" for text in merge.retired)
    return [f"- **{merge.kept}** — {merge.reason} (`{merge.proposal_id}`){retired}"]


def apart_lines(pair: KeptApart) -> list[str]:
    """Return one pair that was kept apart as a list entry."""
    return [f"- “{pair.a}” / “{pair.b}” — {pair.similarity:.2f}, {pair.verdict}: {pair.reason}"]


def night_report(snapshot: Snapshot, files: NightFiles) -> NightReport:
    """Draw up the report of a night from its files; raise `Unavailable` when it has not been planned."""
    plan, facts = files.read_plan(), snapshot.table("facts")
    outcome = files.read_json("applied") if files.has("applied") else None
    is_applied = outcome is not None and outcome["hash"] == plan.hash
    stale = set(outcome["stale_reasons"]) if outcome is not None and is_applied else set[str]()
    agents = list(plan.agent_ids) or facts["agent_id"].unique().to_list()
    active = facts.filter(pl.col("agent_id").is_in(agents), pl.col("state") == "active")
    texts = dict(facts.select("id", "content").iter_rows())
    merged = tuple(merge_of(p, texts, state_of(p, is_applied=is_applied, stale=stale)) for p in plan.proposals if p.kind == "merge")
    gone = sum(len(merge.retired) for merge in merged if merge.state != "stale")
    return NightReport(
        night=plan.night,
        plan_hash=plan.hash,
        active_before=len(active),
        active_after=len(active) - gone,
        merged=merged,
        kept_apart=kept_apart(files.read_table("duplicate_candidates"), texts),
        checks=tuple(files.read_json("checks")["results"] if files.has("checks") else ()),
        applied=len(plan.proposals) - len(stale) if is_applied else 0,
        stale=len(stale),
        is_applied=is_applied,
    )


def state_of(proposal: Proposal, *, is_applied: bool, stale: set[str]) -> str:
    """Return what became of a proposal."""
    if not is_applied:
        return "proposed"
    return "stale" if str(proposal.id) in stale else "applied"


def merge_of(proposal: Proposal, texts: dict[str, str], state: str) -> Merged:
    """Put a merge proposal in words."""
    kept, *retired = proposal.targets
    return Merged(str(proposal.id), proposal.agent_id, texts[kept], tuple(texts[memory] for memory in retired), proposal.reason, state)


def kept_apart(candidates: pl.DataFrame, texts: dict[str, str]) -> tuple[KeptApart, ...]:
    """Return the pairs that were similar enough and not merged, the most alike first."""
    rows = candidates.filter(pl.col("verdict") != Verdict.SAME.value).sort("similarity", "left_id", descending=[True, False])
    return tuple(
        KeptApart(row["agent_id"], texts[row["left_id"]], texts[row["right_id"]], row["similarity"], row["reason"], row["verdict"])
        for row in rows.to_dicts()
    )
