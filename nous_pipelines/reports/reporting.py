"""Makes the report of a night from the decided proposals in the database, the plan and the night's files."""

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
from nous_online.memories.contradictions import of_questions
from nous_pipelines.nights import end_of
from nous_pipelines.phases.proposals import Proposal
from nous_pipelines.plan.checks import NOBODY_LEFT_OUT, title_of
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
    NightQuestions,
    NightReport,
    Offender,
    Outline,
    PutOff,
    Quoted,
    ReportEntry,
    Stopped,
    WaitingProposal,
    about,
    figures_of,
    first_of_each,
    policy_used,
)
from nous_pipelines.snapshots.snapshot import Snapshot

SQL = statements("nous_pipelines.reports", "report.sql")

NIGHTS = 90
"""Nights in the history that a report plots."""
SIMILARITIES = {"092": 0.92, "097": 0.97}
"""Cosines from which remaining duplicates are counted: candidates for a merge, and nearly equal texts."""
ALIKE = (Verdict.SAME.value, Verdict.UNSURE.value)
"""Verdicts on pairs that may be duplicates; pairs with other verdicts only look alike."""
TIMEOUT_S = 120.0


def measure_health(
    database: Database, files: NightFiles, night: date, *, seen_at: datetime, agent_ids: Sequence[str] = ()
) -> None:
    """Store the figures of some agents, or all, after a night, unless a later night has been measured.

    `seen_at` is a time from which on the night may not have seen what was stored. Raises `Unavailable` if the night's
    judgements can't be read.
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
    """Return the similar pairs within one place whose facts are both still active: agent_id, similarity, verdict."""
    path = files.folder / "judgements.parquet"
    conditions = pl.col("similarity") >= min(SIMILARITIES.values()), ~pl.col("is_across_users")
    try:
        pairs = (
            pl.scan_parquet(path).filter(conditions).select("agent_id", "left_id", "right_id", "similarity", "verdict")
        )
        found = pairs.collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"judgements.parquet in {files.folder} can't be read ({error}); run the night again"
        raise Unavailable(message) from error
    agents = found["agent_id"].unique().to_list()
    with database.transaction(timeout_s=TIMEOUT_S) as connection:
        rows = connection.execute(SQL["inactive_facts"], {"agent_ids": agents}).fetchall()
    inactive = pl.DataFrame(rows, schema={"agent_id": pl.String, "id": pl.String}, orient="row")
    for side in SIDES:
        found = found.join(inactive, left_on=["agent_id", side], right_on=["agent_id", "id"], how="anti")
    return found


def pair_figures(left: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Return for each agent the numbers of remaining duplicates and look-alikes from each cosine on."""
    is_alike = pl.col("verdict").is_in(list(ALIKE))
    counts = left.group_by("agent_id").agg(
        ((pl.col("similarity") >= similarity) & which).sum().alias(f"{what}_{name}")
        for name, similarity in SIMILARITIES.items()
        for what, which in {"duplicates": is_alike, "look_alikes": ~is_alike}.items()
    )
    return {row.pop("agent_id"): row for row in counts.to_dicts()}


def health_history(database: Database, night: date, *, agent_ids: Sequence[str] = ()) -> tuple[NightFigures, ...]:
    """Return the figures of the last `NIGHTS` nights up to one, oldest first, summed over some agents or all."""
    values = {"night": night, "nights": NIGHTS, "agent_ids": list(agent_ids)}
    return tuple(database.rows(NightFigures, SQL["health_history"], values, timeout_s=TIMEOUT_S))


def questions_now(database: Database, night: date, *, agent_ids: Sequence[str] = ()) -> NightQuestions:
    """Return how many questions are open now, as `nous status` counts them: also those opened since the night."""
    values = {"ends_at": end_of(night), "agent_ids": list(agent_ids)}
    return database.rows(NightQuestions, of_questions(SQL["open_questions"]), values, timeout_s=TIMEOUT_S)[0]


def stale_ratio(figures: Mapping[str, float]) -> float:
    """Return the share of active facts for which a later fact has the same slot."""
    return figures.get("facts_stale", 0) / max(1.0, figures.get("facts_active", 0))


def tokens_saved(figures: Mapping[str, float]) -> float:
    """Return the number of tokens that nights have taken out of active memory."""
    return sum(figures.get(f"tokens_saved_by_{way}", 0) for way in ("tiers", "merges", "archiving"))


# --- the report ---

ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
UNKNOWN = "(no longer stored)"
SIDES = ("left_id", "right_id")
COST_BY = (Dimension.PURPOSE, Dimension.MODEL, Dimension.WAY)


@dataclass(frozen=True)
class ReportedMemory:
    """The present text of a memory, and the present values of the columns that a night may change."""

    agent_id: str
    id: str
    kind: str
    text: str
    now: Mapping[str, Any] = field(default_factory=dict[str, Any])


Memories = Mapping[str, Mapping[str, ReportedMemory]]
"""Memories by agent, then by id: an agent that was copied has those ids, too."""
NOT_READ = MappingProxyType[str, ReportedMemory]({})


@dataclass(frozen=True)
class ReportedProposal:
    """A proposal with all columns of a report, and the values of its memories before it was applied."""

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
    def key(self) -> tuple[str, str]:
        """Whose it is, and its id, which the proposal of a copied agent has, too."""
        return self.agent_id, self.id

    @property
    def named(self) -> set[str]:
        """The memories whose texts the report needs."""
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
    """Return the report of a night, for some agents or all: proposals decided in any of its runs, and those planned.

    At most `shown` entries of each kind and state are read, all of them for None; the counts are exact. Raises
    `Unavailable` if the night has not been planned, or its files can't be read.
    """
    account, night, checks = NightAccount.read(files), snapshot.night, checks_of(files)
    active, inactive = facts_before(snapshot, tuple(agent_ids) or account.agent_ids)
    left_out = left_out_of(checks, account, agent_ids)
    every = outlines_of(database, files, account, inactive, night=night, agent_ids=agent_ids)
    outlines, planned = mark_left_out(left_out, *every)
    decided = read_proposals(database, first_of_each(outlines, shown), planned)
    replaced, waiting = replaced_together(database, night, planned.values()), account.first_waiting(agent_ids)[:shown]
    apart_by_verdict, apart = look_alikes(files, account, replaced, agent_ids=agent_ids, shown=shown)
    memories = read_memories(database, named_in(decided, apart, waiting))
    return NightReport(
        night=night,
        plan_hash=account.hash,
        agent_ids=tuple(agent_ids),
        active_by_agent=active,
        figures=figures_of(outlines),
        entries=entries_of(decided, memories, read_statements(database, decided)),
        kept_apart=tuple(kept_apart(pair, memories) for pair in apart),
        apart_by_verdict=apart_by_verdict,
        waiting=tuple(waiting_of(each, memories) for each in waiting),
        waiting_by_kind=account.waiting_by_kind(agent_ids),
        accounts=account.phases(agent_ids),
        checks=tuple(checks["results"]),
        stopped=stopped_by(database, checks["results"], account, outlines, planned),
        left_out=left_out,
        late=of_agents(snapshot.late, agent_ids),
        unseen=of_agents(files.unseen(), agent_ids),
        put_off=put_off_of(files, agent_ids),
        policy=policy_used(account.policy, account.policies(agent_ids)),
        costs=tuple(costs_of(database, COST_BY, first=night, last=night, agent_ids=agent_ids, nights_only=True)),
        health=health_history(database, night, agent_ids=agent_ids),
        asked=questions_now(database, night, agent_ids=agent_ids),
    )


def checks_of(files: NightFiles) -> dict[str, Any]:
    """Return what the checks of a night found; no results before they ran."""
    return files.read_json("checks") if files.has("checks") else {"results": []}


def named_in(
    decided: Iterable[ReportedProposal], apart: Iterable[Mapping[str, Any]], waiting: Iterable[Mapping[str, Any]]
) -> set[tuple[str, str]]:
    """Return the memories whose texts a report needs, by agent and id."""
    wanted = {(each.agent_id, memory) for each in decided for memory in each.named}
    wanted |= {(pair["agent_id"], pair[side]) for pair in apart for side in SIDES}
    return wanted | {(each["agent_id"], memory) for each in waiting for memory in each["targets"]}


def left_out_of(checks: Mapping[str, Any], account: NightAccount, agent_ids: Sequence[str]) -> tuple[AgentLeftOut, ...]:
    """Return the agents that a night left out, among some or all, with advice."""
    rows = about(checks.get("left_out", ()), agent_ids)
    return tuple(AgentLeftOut(**row, advice=advice_for(row["step"], account.policy)) for row in rows)


def put_off_of(files: NightFiles, agent_ids: Sequence[str]) -> PutOff:
    """Return what a night could not ask the judge, about some agents or all."""
    pairs, obstacles = files.put_off()
    return PutOff(of_agents(pairs, agent_ids), tuple(obstacles))


def of_agents(counts: Mapping[str, int], agent_ids: Sequence[str]) -> dict[str, int]:
    """Return the counts of some agents, of all if none is given."""
    return {agent_id: count for agent_id, count in counts.items() if not agent_ids or agent_id in agent_ids}


def facts_before(snapshot: Snapshot, agent_ids: Sequence[str]) -> tuple[dict[str, int], frozenset[str]]:
    """Return the number of active facts of each agent before the night, and the ids of facts not active then."""
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
) -> tuple[list[Outline], dict[tuple[str, str], ReportedProposal]]:
    """Return the outlines of all proposals of the night, and by key the planned ones that are not decided yet."""
    wanted = {"night": night, "agent_ids": list(agent_ids)}
    outlines = database.rows(Outline, SQL["outlines"], wanted, timeout_s=TIMEOUT_S)
    # Once this plan was applied, every proposal in it is in the database, and its file need not be parsed.
    if files.has("applied") and files.read_json("applied").get("hash") == account.hash:
        return outlines, {}
    known = {each.key for each in outlines}
    planned = {each.key: each for each in planned_proposals(files, night, agent_ids) if each.key not in known}
    open_outlines = [outline_of(each, inactive) for each in planned.values()]
    return outlines + sorted(open_outlines, key=lambda each: (-each.size, each.id)), planned


def mark_left_out(
    left_out: Sequence[AgentLeftOut], outlines: Sequence[Outline], planned: Mapping[tuple[str, str], ReportedProposal]
) -> tuple[list[Outline], dict[tuple[str, str], ReportedProposal]]:
    """Return outlines and planned proposals with those of agents left out marked as such, with the reason."""
    why = {each.agent_id: f"its agent was left out ({title_of(each.step)})" for each in left_out}
    out = {
        each.key: replace(each, state=LEFT_OUT, outcome=why[each.agent_id])
        for each in planned.values()
        if each.agent_id in why
    }
    return [replace(each, state=LEFT_OUT) if each.key in out else each for each in outlines], {**planned, **out}


def planned_proposals(files: NightFiles, night: date, agent_ids: Sequence[str]) -> Iterable[ReportedProposal]:
    """Yield the proposals in the file of the plan; only what a report needs of them is parsed."""
    for each in files.read_json("plan")["proposals"]:
        if not agent_ids or each["agent_id"] in agent_ids:
            named = Proposal(night, each["agent_id"], each["kind"], tuple(each["targets"]), (), (), each["reason"], {})
            yield ReportedProposal(
                str(named.id), named.agent_id, named.kind, named.targets, each["changes"], named.reason, "proposed"
            )


def outline_of(proposal: ReportedProposal, inactive: Collection[str]) -> Outline:
    """Return the outline of a planned proposal; facts that were inactive before are not leaving."""
    leaving = sum(
        change["kind"] == "fact"
        and change.get("set", {}).get("state", "active") != "active"
        and change["id"] not in inactive
        for change in proposal.changes
    )
    return Outline(proposal.id, proposal.agent_id, proposal.kind, proposal.state, len(proposal.targets), leaving)


def read_proposals(
    database: Database, outlines: Sequence[Outline], planned: Mapping[tuple[str, str], ReportedProposal]
) -> list[ReportedProposal]:
    """Return the proposals of these outlines, in their order, from the database or from `planned`."""
    stored = [each for each in outlines if each.key not in planned]
    wanted = {"agent_ids": sorted({each.agent_id for each in stored}), "ids": [UUID(each.id) for each in stored]}
    decided = database.rows(ReportedProposal, SQL["decided"], wanted, timeout_s=TIMEOUT_S)
    known = {**planned, **{each.key: each for each in decided}}
    return [known[each.key] for each in outlines if each.key in known]


def read_memories(database: Database, wanted: Iterable[tuple[str, str]]) -> Memories:
    """Return memories, given by agent and id, with their present texts; deleted ones are left out."""
    pairs = [(agent_id, UUID(memory)) for agent_id, memory in wanted]
    parameters = {"agent_ids": [agent_id for agent_id, _ in pairs], "ids": [memory for _, memory in pairs]}
    found: dict[str, dict[str, ReportedMemory]] = {}
    for each in database.rows(ReportedMemory, SQL["memories"], parameters, timeout_s=TIMEOUT_S):
        found.setdefault(each.agent_id, {})[each.id] = each
    return found


def read_statements(database: Database, decided: Iterable[ReportedProposal]) -> dict[tuple[str, str], list[Quoted]]:
    """Return the wordings of the statements of merged facts, by the key of the proposal."""
    named = [
        (each.agent_id, each.id, UUID(memory))
        for each in decided
        if each.kind in {"merge", "share"}
        for memory in each.targets
    ]
    agents, proposals, memories = zip(*named, strict=True) if named else ((), (), ())
    wanted = {"agent_ids": list(agents), "proposal_ids": list(proposals), "ids": list(memories)}
    found: dict[tuple[str, str], list[Quoted]] = {}
    for each in database.rows(Quoted, SQL["said"], wanted, timeout_s=TIMEOUT_S) if named else ():
        found.setdefault((each.agent_id, each.proposal_id), []).append(each)
    return found


def entries_of(
    decided: Iterable[ReportedProposal],
    memories: Memories,
    said: Mapping[tuple[str, str], Sequence[Quoted]] = MappingProxyType({}),
) -> tuple[ReportEntry, ...]:
    """Return proposals as entries of a report."""
    texts = {agent_id: {memory: known.text for memory, known in own.items()} for agent_id, own in memories.items()}
    return tuple(
        replace(
            entry_of(each, memories.get(each.agent_id, NOT_READ), texts.get(each.agent_id, {})),
            said=tuple(said.get(each.key, ())),
        )
        for each in decided
    )


def entry_of(
    proposal: ReportedProposal, memories: Mapping[str, ReportedMemory], texts: Mapping[str, str]
) -> ReportEntry:
    """Return a proposal as an entry of a report, given the memories of its agent and their texts."""
    is_applied = proposal.state in {"applied", "undone"}
    before = (
        proposal.before if is_applied else {memory: memories[memory].now for memory in proposal.named & memories.keys()}
    )
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


def waiting_of(proposal: Mapping[str, Any], memories: Memories) -> WaitingProposal:
    """Return a waiting proposal with the texts of its memories."""
    own = memories.get(proposal["agent_id"], NOT_READ)
    texts = tuple(own[memory].text if memory in own else UNKNOWN for memory in proposal["targets"])
    return WaitingProposal(proposal["id"], proposal["agent_id"], proposal["kind"], proposal["reason"], texts)


def replaced_together(database: Database, night: date, planned: Iterable[ReportedProposal]) -> dict[str, str]:
    """Return for each fact in an applied or planned supersession the id of its proposal."""
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
    """Return the number by verdict of pairs that a threshold alone would have merged, and the first of them.

    Without pairs of which the night lets one supersede the other. Unsure ones come last, the most similar first.
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
    # Ids and reasons are read, and joined by row, only where any pair is left.
    rest = files.read_table("judgements", columns=("left_id", "right_id", "reason"))
    left, right = (pl.col(side).replace_strict(replaced, default=None, return_dtype=pl.String) for side in SIDES)
    apart = pairs.hstack(rest[pairs["place"]]).filter((left != right).fill_null(True))  # noqa: FBT003
    counted = dict(apart.group_by("verdict").len().sort("verdict").iter_rows())
    first = apart.sort(is_unsure, "similarity", "place", descending=[False, True, False])
    return counted, first.head(len(first) if shown is None else shown).to_dicts()


def kept_apart(pair: Mapping[str, Any], memories: Memories) -> KeptApart:
    """Return a pair that was kept apart with the texts of both facts."""
    own = memories.get(pair["agent_id"], NOT_READ)
    a, b = (own[pair[side]].text if pair[side] in own else UNKNOWN for side in SIDES)
    return KeptApart(pair["agent_id"], a, b, pair["similarity"], pair["reason"], pair["verdict"])


def stopped_by(
    database: Database,
    checks: Sequence[Mapping[str, Any]],
    account: NightAccount,
    outlines: Sequence[Outline],
    planned: Mapping[tuple[str, str], ReportedProposal],
) -> tuple[Stopped, ...]:
    """Return each failed check with the texts of the memories and proposals it names, and advice."""
    broken = [check for check in checks if not check["passed"] and check["name"] != NOBODY_LEFT_OUT]
    named = {memory for check in broken for memory in ID.findall(check["description"])}
    if not broken:
        return ()
    agents = {each.agent_id for each in outlines}
    known = read_memories(database, ((agent_id, memory) for agent_id in agents for memory in named))
    texts = {memory: each.text for own in known.values() for memory, each in own.items()}
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


# --- changes in words ---

SHOWN_COLUMNS = ("state", "compression_tier", "scope", "severity", "rank_weight", "confirmation_count")
"""The first of these columns that a proposal changes is shown for it."""
UNSAID = "…"


def changed_of(
    changes: Sequence[Mapping[str, Any]], before: Mapping[str, Mapping[str, Any]], texts: Mapping[str, str]
) -> Iterator[Changed]:
    """Yield the changes of a proposal in words, without usage counts, cold texts and contradiction marks."""
    for change in changes:
        given = change.get("set", {})
        if change["kind"] in KINDS and set(given) != {"contradiction_status"}:
            was, becomes = move(before.get(change["id"], {}), given, texts)
            yield Changed(change["kind"], change["id"], texts.get(change["id"], UNSAID), was, becomes)
        elif change["kind"] == "link":
            other = texts.get(given["to_id"], UNSAID)
            linked = f"linked to “{other}” ({given['kind']}, {given['weight']:.2f})"
            yield Changed("link", change["id"], texts.get(change["id"], UNSAID), "", linked)
        elif change["kind"] == "contradiction":
            a, b = (texts.get(given[side], UNSAID) for side in ("memory_a", "memory_b"))
            yield Changed("contradiction", change["id"], a, "", f"contradicts “{b}”; both kept, open")


def move(before: Mapping[str, Any], after: Mapping[str, Any], texts: Mapping[str, str]) -> tuple[str, str]:
    """Return the state of a memory before and after in words, by the first of `SHOWN_COLUMNS` that changes."""
    for column in SHOWN_COLUMNS:
        if column in after and after[column] != before.get(column):
            return value_in_words(column, before.get(column)), successor(after, texts) or value_in_words(
                column, after[column]
            )
    if after.get("superseded_by"):
        return "", successor(after, texts)
    return "", f"{', '.join(sorted(after))} brought up to date"


def successor(after: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Return by what a memory is superseded, empty if it is not."""
    heir = after.get("superseded_by")
    return f"superseded by “{texts.get(heir, UNSAID)}”" if heir else ""


def value_in_words(column: str, value: Any) -> str:
    """Return the value of a column in words."""
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
    """Return the advice for a failed check, with the present values of the policy fields it depends on."""
    sentence, names = ADVICE.get(check, OTHERWISE)
    fields = ", ".join(f"{name} ({policy[name]} now)" for name in names if name in policy)
    return f"{sentence} Policy fields: {fields}." if fields else sentence
