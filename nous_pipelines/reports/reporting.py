"""Draws up the report of a night: what the database says was decided, what the plan holds besides, and the files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

import polars as pl
from psycopg.types.json import Jsonb

from nous_online.core.domain import KINDS
from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.language.pairs.judging import Verdict
from nous_pipelines.nights import end_of
from nous_pipelines.phases.proposals import Proposal
from nous_pipelines.plan.left_out import CHECK
from nous_pipelines.plan.night_files import NightFiles
from nous_pipelines.reports.costs import Dimension, costs_of
from nous_pipelines.reports.report import (
    LEFT_OUT,
    SHOWN,
    AgentLeftOut,
    Changed,
    KeptApart,
    NightAccount,
    NightFigures,
    NightReport,
    Offender,
    Outline,
    Quoted,
    ReportEntry,
    Stopped,
    WaitingProposal,
    about,
    chosen,
    figures_of,
    policy_used,
)
from nous_pipelines.snapshots.snapshot import Snapshot

SQL = statements("nous_pipelines.reports", "report.sql")

NIGHTS = 90
"""How far back the history goes that a report plots."""
SIMILARITIES = {"092": 0.92, "097": 0.97}
"""Cosines from which duplicates left are counted (the nightly candidates, and what is nearly word for word)."""
ALIKE = (Verdict.SAME.value, Verdict.UNSURE.value)
"""What may still be said twice; a pair of another verdict differs in something and only looks alike."""
TIMEOUT_S = 120.0


def measure_health(
    database: Database, files: NightFiles, night: date, *, seen_at: datetime, agent_ids: Sequence[str] = ()
) -> None:
    """Write the figures of some agents, or all, after a night; again only while no later night has been measured.

    `seen_at` is a moment from which on the night may have missed what came.
    Raises `Unavailable` when the night's judgements can't be read.
    """
    pairs = pair_figures(candidates_left(database, files))
    values = {
        "night": night,
        "seen_at": seen_at,
        "ends_at": end_of(night),
        "agent_ids": list(agent_ids),
        "pairs": Jsonb(pairs),
        "no_pairs": Jsonb({f"{what}_{name}": 0 for name in SIMILARITIES for what in ("duplicates", "look_alikes")}),
    }
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        connection.execute(SQL["measure_health"], values)


def candidates_left(database: Database, files: NightFiles) -> pl.DataFrame:
    """Return the similar pairs of one place whose two facts are both active still: agent_id, similarity, verdict."""
    path = files.folder / "judgements.parquet"
    wanted = pl.col("similarity") >= min(SIMILARITIES.values()), ~pl.col("is_across_users")
    try:
        pairs = pl.scan_parquet(path).filter(wanted).select("agent_id", "left_id", "right_id", "similarity", "verdict")
        found = pairs.collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"judgements.parquet in {files.folder} can't be read ({error}); run the night again"
        raise Unavailable(message) from error
    agents = found["agent_id"].unique().to_list()
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        gone = [row[0] for row in connection.execute(SQL["inactive_facts"], {"agent_ids": agents})]
    return found.filter(~pl.col("left_id").is_in(gone), ~pl.col("right_id").is_in(gone))


def pair_figures(left: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Return for each agent how many similar pairs are left: those that may be duplicates, and apart from them those
    that only look alike, from each cosine on.
    """
    is_alike = pl.col("verdict").is_in(list(ALIKE))
    counts = left.group_by("agent_id").agg(
        ((pl.col("similarity") >= similarity) & which).sum().alias(f"{what}_{name}")
        for name, similarity in SIMILARITIES.items()
        for what, which in {"duplicates": is_alike, "look_alikes": ~is_alike}.items()
    )
    return {row.pop("agent_id"): row for row in counts.to_dicts()}


def health_history(database: Database, night: date, *, agent_ids: Sequence[str] = ()) -> tuple[NightFigures, ...]:
    """Return the figures of the last nights up to one, oldest first, summed over some agents or all."""
    values = {"night": night, "nights": NIGHTS, "agent_ids": list(agent_ids)}
    return tuple(database.rows(NightFigures, SQL["health_history"], values, timeout_s=TIMEOUT_S))


def stale_ratio(figures: Mapping[str, float]) -> float:
    """Return which share of the active facts a later fact of the same slot has overtaken."""
    return figures.get("facts_stale", 0) / max(1.0, figures.get("facts_active", 0))


def tokens_saved(figures: Mapping[str, float]) -> float:
    """Return how many tokens the nights took out of active memory."""
    return sum(figures.get(f"tokens_saved_by_{way}", 0) for way in ("tiers", "merges", "archiving"))


# --- the report ---

ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
UNKNOWN = "(no longer stored)"
SIDES = ("left_id", "right_id")
COST_BY = (Dimension.PURPOSE, Dimension.MODEL, Dimension.WAY)


@dataclass(frozen=True)
class ReportedMemory:
    """How a memory reads, and what of it a night may change, as it is now."""

    id: str
    kind: str
    text: str
    now: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class ReportedProposal:
    """A proposal with all a report says of it, and what its memories were before it was applied."""

    id: str
    agent_id: str
    kind: str
    targets: Sequence[str]
    changes: Sequence[Mapping[str, Any]]
    reason: str
    state: str
    outcome: str | None = None
    before: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    @property
    def named(self) -> set[str]:
        """The memories whose words the report needs."""
        others = {
            value
            for change in self.changes
            for name, value in change.get("set", {}).items()
            if name in {"superseded_by", "to_id", "memory_a", "memory_b"} and value
        }
        return {*self.targets, *others, *(change["id"] for change in self.changes if change["kind"] != "contradiction")}


def night_report(
    database: Database,
    snapshot: Snapshot,
    files: NightFiles,
    *,
    agent_ids: Sequence[str] = (),
    shown: int | None = SHOWN,
) -> NightReport:
    """Draw up the report of a night, for some agents or all: what any of its runs decided, and what is planned besides.

    At most `shown` entries of each kind and state are read, all of them for None; the counts are exact.
    Raises `Unavailable` when the night has not been planned, or its files can't be read.
    """
    account, night = NightAccount.read(files), snapshot.night
    active, inactive = facts_before(snapshot, tuple(agent_ids) or account.agent_ids)
    checks = files.read_json("checks") if files.has("checks") else {"results": []}
    left_out = left_out_of(checks, account, agent_ids)
    every = outlines_of(database, files, account, inactive, night=night, agent_ids=agent_ids)
    outlines, planned = without(left_out, *every)
    decided = decided_of(database, chosen(outlines, shown), planned)
    replaced = replaced_together(database, night, planned.values())
    apart_by_verdict, apart = look_alikes(files, account, replaced, agent_ids=agent_ids, shown=shown)
    waiting = account.first_waiting(agent_ids)[:shown]
    told = told_of(database, named_in(decided, apart, waiting))
    return NightReport(
        night=night,
        plan_hash=account.hash,
        agent_ids=tuple(agent_ids),
        active_by_agent=active,
        figures=figures_of(outlines),
        entries=entries_of(decided, told, said_of(database, decided)),
        kept_apart=tuple(kept_apart(pair, told) for pair in apart),
        apart_by_verdict=apart_by_verdict,
        waiting=tuple(waiting_of(each, told) for each in waiting),
        waiting_by_kind=account.waiting_by_kind(agent_ids),
        accounts=account.phases(agent_ids),
        checks=tuple(checks["results"]),
        stopped=stopped_by(database, checks["results"], account, outlines, planned),
        left_out=left_out,
        late=of_agents(snapshot.late, agent_ids),
        unseen=of_agents(files.unseen(), agent_ids),
        policy=policy_used(account.policy, account.policies(agent_ids)),
        costs=tuple(costs_of(database, COST_BY, first=night, last=night, agent_ids=agent_ids, nights_only=True)),
        health=health_history(database, night, agent_ids=agent_ids),
    )


def named_in(
    decided: Iterable[ReportedProposal], apart: Iterable[Mapping[str, Any]], waiting: Iterable[Mapping[str, Any]]
) -> set[tuple[str, str]]:
    """Return every memory that a report names, by agent and id."""
    wanted = {(each.agent_id, memory) for each in decided for memory in each.named}
    wanted |= {(pair["agent_id"], pair[side]) for pair in apart for side in SIDES}
    return wanted | {(each["agent_id"], memory) for each in waiting for memory in each["targets"]}


def left_out_of(checks: Mapping[str, Any], account: NightAccount, agent_ids: Sequence[str]) -> tuple[AgentLeftOut, ...]:
    """Return whom a night left out, of some agents or all, and what to do about it."""
    rows = about(checks.get("left_out", ()), agent_ids)
    return tuple(AgentLeftOut(**row, advice=advice_for(row["step"], account.policy)) for row in rows)


def of_agents(counts: Mapping[str, int], agent_ids: Sequence[str]) -> dict[str, int]:
    """Return the counts of some agents; of all when none is named."""
    return {agent_id: count for agent_id, count in counts.items() if not agent_ids or agent_id in agent_ids}


def facts_before(snapshot: Snapshot, agent_ids: Sequence[str]) -> tuple[dict[str, int], frozenset[str]]:
    """Return how many active facts each agent had when the night began, and which facts were not active then."""
    facts = snapshot.table("facts", columns=["agent_id", "id", "state"], agent_ids=agent_ids or None)
    is_active = pl.col("state") == "active"
    active = facts.filter(is_active).group_by("agent_id").len().sort("agent_id")
    return dict(active.iter_rows()), frozenset(facts.filter(~is_active)["id"])


def outlines_of(
    database: Database,
    files: NightFiles,
    account: NightAccount,
    inactive: Collection[str],
    *,
    night: date,
    agent_ids: Sequence[str],
) -> tuple[list[Outline], dict[str, ReportedProposal]]:
    """Return all proposals of the night in outline, and those of its plan that were not decided, by id."""
    wanted = {"night": night, "agent_ids": list(agent_ids)}
    outlines = database.rows(Outline, SQL["outlines"], wanted, timeout_s=TIMEOUT_S)
    if files.has("applied") and files.read_json("applied").get("hash") == account.hash:
        return outlines, {}
    known = {each.id for each in outlines}
    planned = {each.id: each for each in undecided(files, night, agent_ids) if each.id not in known}
    open_outlines = [outline_of(each, inactive) for each in planned.values()]
    return outlines + sorted(open_outlines, key=lambda each: (-each.size, each.id)), planned


def without(
    left_out: Sequence[AgentLeftOut], outlines: Sequence[Outline], planned: Mapping[str, ReportedProposal]
) -> tuple[list[Outline], dict[str, ReportedProposal]]:
    """Say of what is planned for agents that are left out that it is, and why."""
    why = {each.agent_id: f"its agent was left out ({each.step})" for each in left_out}
    out = {
        each.id: replace(each, state=LEFT_OUT, outcome=why[each.agent_id])
        for each in planned.values()
        if each.agent_id in why
    }
    return [replace(each, state=LEFT_OUT) if each.id in out else each for each in outlines], {**planned, **out}


def undecided(files: NightFiles, night: date, agent_ids: Sequence[str]) -> Iterable[ReportedProposal]:
    """Yield the proposals of the plan as if they were stored, without making more of them than a report needs."""
    for each in files.read_json("plan")["proposals"]:
        if not agent_ids or each["agent_id"] in agent_ids:
            named = Proposal(night, each["agent_id"], each["kind"], tuple(each["targets"]), (), (), each["reason"], {})
            yield ReportedProposal(
                str(named.id), named.agent_id, named.kind, named.targets, each["changes"], named.reason, "proposed"
            )


def outline_of(proposal: ReportedProposal, inactive: Collection[str]) -> Outline:
    """Return a proposal in outline, as the database would; facts that were inactive before can't leave."""
    leaving = sum(
        change["kind"] == "fact"
        and change.get("set", {}).get("state", "active") != "active"
        and change["id"] not in inactive
        for change in proposal.changes
    )
    return Outline(proposal.id, proposal.agent_id, proposal.kind, proposal.state, len(proposal.targets), leaving)


def decided_of(
    database: Database, outlines: Sequence[Outline], planned: Mapping[str, ReportedProposal]
) -> list[ReportedProposal]:
    """Return the proposals outlined, in their order, with everything a report says of them."""
    stored = [each for each in outlines if each.id not in planned]
    wanted = {"agent_ids": sorted({each.agent_id for each in stored}), "ids": [UUID(each.id) for each in stored]}
    decided = database.rows(ReportedProposal, SQL["decided"], wanted, timeout_s=TIMEOUT_S)
    known = {**planned, **{each.id: each for each in decided}}
    return [known[each.id] for each in outlines if each.id in known]


def told_of(database: Database, wanted: Iterable[tuple[str, str]]) -> dict[str, ReportedMemory]:
    """Return how memories, given by agent and id, read; those that are gone are left out."""
    pairs = [(agent_id, UUID(memory)) for agent_id, memory in wanted]
    parameters = {"agent_ids": [agent_id for agent_id, _ in pairs], "ids": [memory for _, memory in pairs]}
    return {each.id: each for each in database.rows(ReportedMemory, SQL["told"], parameters, timeout_s=TIMEOUT_S)}


def said_of(database: Database, decided: Iterable[ReportedProposal]) -> dict[str, list[Quoted]]:
    """Return what was said for the facts that are merged, by proposal."""
    named = [
        (each.agent_id, each.id, UUID(memory))
        for each in decided
        if each.kind in {"merge", "share"}
        for memory in each.targets
    ]
    agents, proposals, memories = zip(*named, strict=True) if named else ((), (), ())
    wanted = {"agent_ids": list(agents), "proposal_ids": list(proposals), "ids": list(memories)}
    found: dict[str, list[Quoted]] = {}
    for each in database.rows(Quoted, SQL["said"], wanted, timeout_s=TIMEOUT_S) if named else ():
        found.setdefault(each.proposal_id, []).append(each)
    return found


def entries_of(
    decided: Iterable[ReportedProposal],
    told: Mapping[str, ReportedMemory],
    said: Mapping[str, Sequence[Quoted]] = MappingProxyType({}),
) -> tuple[ReportEntry, ...]:
    """Put proposals in words."""
    texts = {memory: known.text for memory, known in told.items()}
    return tuple(replace(entry_of(each, told, texts), said=tuple(said.get(each.id, ()))) for each in decided)


def entry_of(proposal: ReportedProposal, told: Mapping[str, ReportedMemory], texts: Mapping[str, str]) -> ReportEntry:
    """Put a proposal in words, given how all memories read."""
    is_applied = proposal.state in {"applied", "undone"}
    before = proposal.before if is_applied else {memory: told[memory].now for memory in proposal.named & told.keys()}
    return ReportEntry(
        proposal_id=proposal.id,
        agent_id=proposal.agent_id,
        kind=proposal.kind,
        state=proposal.state,
        reason=proposal.reason,
        outcome=proposal.outcome,
        told=tuple(texts.get(memory, UNKNOWN) for memory in proposal.targets),
        changed=tuple(changed_of(proposal.changes, before, texts)),
    )


def waiting_of(proposal: Mapping[str, Any], told: Mapping[str, ReportedMemory]) -> WaitingProposal:
    """Put a proposal that waits in words."""
    texts = tuple(told[memory].text if memory in told else UNKNOWN for memory in proposal["targets"])
    return WaitingProposal(proposal["id"], proposal["agent_id"], proposal["kind"], proposal["reason"], texts)


def replaced_together(database: Database, night: date, planned: Iterable[ReportedProposal]) -> dict[str, str]:
    """Return for each fact of a replacement that holds, or is planned, by which proposal."""
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        found = connection.execute(SQL["replaced_together"], {"night": night}).fetchall()
    found += [
        (memory, each.id)
        for each in planned
        if each.kind == "supersede" and each.state != LEFT_OUT
        for memory in each.targets
    ]
    return dict(found)


def look_alikes(
    files: NightFiles,
    account: NightAccount,
    replaced: Mapping[str, str],
    *,
    agent_ids: Sequence[str],
    shown: int | None,
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Count the pairs that a threshold alone would have merged, by verdict, and return the first of them.

    A pair of which the night lets one replace the other is not among them. Known differences come first, then the most
    alike.
    """
    threshold = pl.col("agent_id").replace_strict(
        account.thresholds, default=account.threshold, return_dtype=pl.Float64
    )
    is_unsure = pl.col("verdict") == Verdict.UNSURE.value
    pairs = (
        files.read_table("judgements", columns=("agent_id", "similarity", "verdict", "is_across_users"))
        .with_row_index("place")
        .filter(pl.lit(not agent_ids) | pl.col("agent_id").is_in(list(agent_ids)), ~pl.col("is_across_users"))
        .filter(pl.col("verdict") != Verdict.SAME.value, pl.col("similarity") >= threshold)
    )
    if pairs.is_empty():
        return {}, []
    told = files.read_table("judgements", columns=("left_id", "right_id", "reason"))
    left, right = (pl.col(side).replace_strict(replaced, default=None, return_dtype=pl.String) for side in SIDES)
    apart = pairs.hstack(told[pairs["place"]]).filter((left != right).fill_null(True))  # noqa: FBT003
    counted = dict(apart.group_by("verdict").len().sort("verdict").iter_rows())
    first = apart.sort(is_unsure, "similarity", "place", descending=[False, True, False])
    return counted, first.head(len(first) if shown is None else shown).to_dicts()


def kept_apart(pair: Mapping[str, Any], told: Mapping[str, ReportedMemory]) -> KeptApart:
    """Put a pair that was kept apart in words."""
    a, b = (told[pair[side]].text if pair[side] in told else UNKNOWN for side in SIDES)
    return KeptApart(pair["agent_id"], a, b, pair["similarity"], pair["reason"], pair["verdict"])


def stopped_by(
    database: Database,
    checks: Sequence[Mapping[str, Any]],
    account: NightAccount,
    outlines: Sequence[Outline],
    planned: Mapping[str, ReportedProposal],
) -> tuple[Stopped, ...]:
    """Say for each failed check whom it accuses, in words, and what the operator can do."""
    broken = [check for check in checks if not check["passed"] and check["name"] != CHECK]
    named = {memory for check in broken for memory in ID.findall(check["description"])}
    if not broken:
        return ()
    agents = {each.agent_id for each in outlines}
    known = told_of(database, ((agent_id, memory) for agent_id in agents for memory in named))
    texts = {memory: each.text for memory, each in known.items()}
    texts |= {each.id: f"{each.kind} proposal: {each.reason}" for each in planned.values() if each.id in named}
    return tuple(
        Stopped(
            check["name"],
            check["description"],
            tuple(Offender(each, texts.get(each, UNKNOWN)) for each in dict.fromkeys(ID.findall(check["description"]))),
            advice_for(check["name"], account.policy),
        )
        for check in broken
    )


# --- what a proposal does to each memory, in a few words: from what to what ---

TOLD_COLUMNS = ("state", "compression_tier", "scope", "severity", "rank_weight", "confirmation_count")
"""Of the columns a proposal sets, the first of these that changes says it all."""
UNSAID = "…"


def changed_of(
    changes: Sequence[Mapping[str, Any]], before: Mapping[str, Mapping[str, Any]], texts: Mapping[str, str]
) -> Iterator[Changed]:
    """Yield what becomes of each memory; what only accompanies that is left out."""
    for change in changes:
        given = change.get("set", {})
        if change["kind"] in KINDS and set(given) != {"contradiction_status"}:
            was, becomes = move(before.get(change["id"], {}), given, texts)
            yield Changed(change["kind"], change["id"], texts.get(change["id"], UNSAID), was, becomes)
        elif change["kind"] == "link":
            other = texts.get(given["to_id"], UNSAID)
            told = f"linked to “{other}” ({given['kind']}, {given['weight']:.2f})"
            yield Changed("link", change["id"], texts.get(change["id"], UNSAID), "", told)
        elif change["kind"] == "contradiction":
            a, b = (texts.get(given[side], UNSAID) for side in ("memory_a", "memory_b"))
            yield Changed("contradiction", change["id"], a, "", f"contradicts “{b}”; both kept, open")


def move(before: Mapping[str, Any], after: Mapping[str, Any], texts: Mapping[str, str]) -> tuple[str, str]:
    """Return from what to what a memory moves, by the most telling of its columns."""
    for column in TOLD_COLUMNS:
        if column in after and after[column] != before.get(column):
            return said(column, before.get(column)), successor(after, texts) or said(column, after[column])
    if after.get("superseded_by"):
        return "", successor(after, texts)
    return "", f"{', '.join(sorted(after))} brought up to date"


def successor(after: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Say by what a memory is superseded, if it is."""
    heir = after.get("superseded_by")
    return f"superseded by “{texts.get(heir, UNSAID)}”" if heir else ""


def said(column: str, value: Any) -> str:
    """Return a value of a column in words."""
    if value is None:
        return ""
    if column == "rank_weight":
        return f"weight {float(value):.2f}"
    if column == "confirmation_count":
        return {0: "never confirmed", 1: "confirmed once"}.get(value, f"confirmed {value} times")
    return f"scope {value}" if column == "scope" else str(value)


# --- what an operator can do when a check stops a night ---

ADVICE: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "conservation": (
        "A phase would lose memories, which no setting makes right: look at the memories named, and report it.",
        (),
    ),
    "no_cycles": ("A phase would supersede memories in a circle: look at the memories named, and report it.", ()),
    "reads_what_it_changes": ("A phase proposed what apply could not check: report it with the proposals named.", ()),
    "blast_radius": (
        "Look at what would leave (nous diff). If it is right, as after a large import, raise the limit that is named "
        "for this run; if not, look for what was learned since the last good night.",
        ("max_leaving_share", "max_leaving_count", "max_leaving_jump", "free_leaving_count"),
    ),
    "canaries": (
        "The judge gets pairs with known answers wrong, so none of tonight's verdicts counts: look at the judge's "
        "settings and model, then run the night again.",
        (),
    ),
    "protected": (
        "Unpin the memories named if they may go, or raise the trust of those that would take their place.",
        (),
    ),
    "budget": (
        "Raise the limit for this run, or let the offline judge decide: pairs without a verdict wait a night.",
        ("max_cost_usd",),
    ),
    "recall_does_not_regress": (
        "What was used lately would be harder to find: look at the proposals about the memories named. Merges that go "
        "too far are held back by a higher similarity, demotions by a higher least weight, forgetting by a longer age.",
        ("candidate_similarity", "min_demotion", "unused_after_days", "superseded_grace_days"),
    ),
    "policy": ("Put it right with `nous policy --agent NAME FIELD=NUMBER`, and run the night again.", ()),
    "effect": ("A phase neither changed nor explained what it looked at, which is its own fault: report it.", ()),
}
OTHERWISE = ("Look at what the check names (nous diff), and run the night again when it is put right.", ())


def advice_for(check: str, policy: Mapping[str, Any]) -> str:
    """Return what to do about a failed check, with the policy fields it depends on as they were."""
    sentence, names = ADVICE.get(check, OTHERWISE)
    fields = ", ".join(f"{name} ({policy[name]} now)" for name in names if name in policy)
    return f"{sentence} Policy fields: {fields}." if fields else sentence
