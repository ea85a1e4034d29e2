"""The morning report: what the night changed and why, what it kept apart and why, and how to take it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import polars as pl

from nous_online.pairs.judging import Verdict
from nous_pipelines.apply import StoredProposal
from nous_pipelines.files import NightFiles
from nous_pipelines.proposals import Proposal
from nous_pipelines.snapshot import Snapshot

SHOWN = 20
NOT_IN_FORCE = ("stale", "refused", "undone")


@dataclass(frozen=True)
class Merged:
    """One merge in words: what stays, what points to it from now on, and why."""

    proposal_id: str
    agent_id: str
    kept: str
    retired: tuple[str, ...]
    reason: str
    similarity: float
    """Of the two members least alike; 1 for copies."""
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
    active_by_agent: Mapping[str, int]
    """How many memories each agent had before the night."""
    merged: tuple[Merged, ...]
    kept_apart: tuple[KeptApart, ...]
    checks: tuple[dict[str, Any], ...]

    @property
    def counts(self) -> dict[str, int]:
        """The figures of the night; what went stale or was taken back does not count as retired."""
        before = sum(self.active_by_agent.values())
        in_force = [merge for merge in self.merged if merge.state in {"proposed", "applied"}]
        retired = sum(len(merge.retired) for merge in in_force)
        return {
            "active_before": before,
            "active_after": before - retired,
            "merges": len(in_force),
            "retired": retired,
            "kept_apart": len(self.kept_apart),
            "unsure": sum(pair.verdict == Verdict.UNSURE.value for pair in self.kept_apart),
            **{state: sum(merge.state == state for merge in self.merged) for state in NOT_IN_FORCE},
        }

    def of_agent(self, agent_id: str | None) -> NightReport:
        """Return the part of the report that is about one agent; all of it for None."""
        if agent_id is None:
            return self
        return replace(
            self,
            active_by_agent={agent: count for agent, count in self.active_by_agent.items() if agent == agent_id},
            merged=tuple(merge for merge in self.merged if merge.agent_id == agent_id),
            kept_apart=tuple(pair for pair in self.kept_apart if pair.agent_id == agent_id),
        )

    @property
    def markdown(self) -> str:
        """The report as Markdown, at most 20 entries a section."""
        before, after = self.counts["active_before"], self.counts["active_after"]
        lines = [
            f"# Night {self.night}",
            f"Plan `{self.plan_hash[:12]}` — {before} active memories before, {after} after.",
            f"## Merged ({len(self.merged)})",
            *(line for merge in self.merged[:SHOWN] for line in merge_lines(merge)),
            f"## Look alike, kept apart ({len(self.kept_apart)})",
            *(line for pair in self.kept_apart[:SHOWN] for line in apart_lines(pair)),
            "## Checks",
            *(
                f"- {'✓' if check['passed'] else '✗'} **{check['name']}** {check['description']}"
                for check in self.checks
            ),
            "## Take it back",
            f"`nous undo --night {self.night}` takes back the whole night, `nous undo --proposal ID` one merge.",
        ]
        return "\n\n".join(lines)


def merge_lines(merge: Merged) -> list[str]:
    """Return one merge as a list entry, what it retired below what it keeps."""
    retired = "".join(f"\n  - ~~{text}~~" for text in merge.retired)
    mark = f" **{merge.state}**" if merge.state in NOT_IN_FORCE else ""
    return [f"- **{merge.kept}** — {merge.reason} (`{merge.proposal_id}`){mark}{retired}"]


def apart_lines(pair: KeptApart) -> list[str]:
    """Return one pair that was kept apart as a list entry."""
    return [f"- “{pair.a}” / “{pair.b}” — {shown_similarity(pair.similarity)}, {pair.verdict}: {pair.reason}"]


def shown_similarity(similarity: float) -> str:
    """Return a cosine for people; what is not the same never reads as 1."""
    return f"{min(similarity, 0.999):.3f}"


def night_report(snapshot: Snapshot, files: NightFiles, decided: Sequence[StoredProposal]) -> NightReport:
    """Draw up the report of a night: what any of its runs decided, and what the plan in `files` proposes besides.

    Raises `Unavailable` when the night has not been planned.
    """
    plan, facts = files.read_plan(), snapshot.table("facts")
    agents = list(plan.agent_ids) or facts["agent_id"].unique().to_list()
    active = facts.filter(pl.col("agent_id").is_in(agents), pl.col("state") == "active")
    texts = dict(facts.select("id", "content").iter_rows())
    known = {proposal.id for proposal in decided}
    open_proposals = [stored(p, texts) for p in plan.proposals if str(p.id) not in known]
    merged = [merge_of(proposal) for proposal in (*decided, *open_proposals) if proposal.kind == "merge"]
    return NightReport(
        night=plan.night,
        plan_hash=plan.hash,
        active_by_agent=dict(active.group_by("agent_id").len().sort("agent_id").iter_rows()),
        merged=tuple(sorted(merged, key=lambda merge: (-len(merge.retired), merge.similarity, merge.proposal_id))),
        kept_apart=kept_apart(files.read_table("judgements"), texts),
        checks=tuple(files.read_json("checks")["results"] if files.has("checks") else ()),
    )


def stored(proposal: Proposal, texts: Mapping[str, str]) -> StoredProposal:
    """Return a proposal of a plan as if it were stored, not decided yet."""
    return StoredProposal(
        id=str(proposal.id),
        agent_id=proposal.agent_id,
        kind=proposal.kind,
        targets=list(proposal.targets),
        reason=proposal.reason,
        evidence=proposal.evidence,
        state="proposed",
        texts={target: texts[target] for target in proposal.targets},
    )


def merge_of(proposal: StoredProposal) -> Merged:
    """Put a merge in words."""
    kept, *retired = proposal.targets
    similarity = min((pair["similarity"] for pair in proposal.evidence["pairs"]), default=1.0)
    return Merged(
        proposal_id=proposal.id,
        agent_id=proposal.agent_id,
        kept=proposal.texts[kept],
        retired=tuple(proposal.texts[memory] for memory in retired),
        reason=proposal.reason,
        similarity=similarity,
        state=proposal.state,
    )


def kept_apart(candidates: pl.DataFrame, texts: dict[str, str]) -> tuple[KeptApart, ...]:
    """Return the pairs that were similar enough and not merged: known differences first, then the most alike."""
    is_unsure = pl.col("verdict") == Verdict.UNSURE.value
    rows = candidates.filter(pl.col("verdict") != Verdict.SAME.value).sort(
        is_unsure, "similarity", "left_id", descending=[False, True, False]
    )
    return tuple(
        KeptApart(
            row["agent_id"],
            texts[row["left_id"]],
            texts[row["right_id"]],
            row["similarity"],
            row["reason"],
            row["verdict"],
        )
        for row in rows.to_dicts()
    )
