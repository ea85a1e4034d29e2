"""Updates and contradictions: which facts are superseded by a later value, and which contradict each other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import uuid5

import numpy as np
import polars as pl

from nous_online.language.pairs.judging import OTHER_NEARER, SURE_FROM, Verdict
from nous_online.language.pairs.reader import LEAST_CHANCE
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.neighbours import PLACE, statement_time
from nous_pipelines.phases.phase import Phase, Tables, first_reason
from nous_pipelines.phases.proposals import NAMESPACE, Change, Proposal, Read
from nous_pipelines.phases.rulings import (
    chain_ends,
    follow_successors,
    row_numbers,
    separated_pairs,
    without_settled,
)

STATED = ("learned_at", "last_confirmed_at", "valid_from", "valid_to")
STANDING = ("trust", "is_pinned", "key", "state", "is_rewound", "source")
OLD_AND_NEW = ("old_id", "new_id")
NO, YES = pl.lit(False), pl.lit(True)  # noqa: FBT003 (polars)
FACT_COLUMNS = ("id", "agent_id", "row_version", "contradiction_status", "superseded_by", *PLACE, *STATED, *STANDING)
"""The columns of a fact that the phase reads; not its text, which the judge has read."""
NOT_TOLD = [f"{side}_{name}" for side in ("old", "new") for name in (*PLACE, *STATED[1:], *STANDING, "since")]
"""Columns of a pair that no proposal uses."""
CONTRADICTS_FROM, SUPERSEDES_FROM = 0.9, 0.95
"""Chances from which a later fact that was merely read contradicts or supersedes at night. Learning has read the
nearest by then, and what is left is further away: from 0.66 and 0.9 on, a night over the 1,476 statements of the
benchmark `wording`, learned by one agent, noticed four changes more, and was wrong about 17 facts."""
UNREAD_CONTRADICTS_FROM, UNREAD_SUPERSEDES_FROM = 0.5, 0.8
"""The same for a fact that was imported, so that nothing was read when it was stored. Chosen by hands 6, 8 and 21 of
`training/pairs`; of the changes among those 1,476 statements, imported, a night noticed 0.67."""
GIVES_WAY = "one of the two gives way to a later value tonight"


def update_phase(tables: Tables, *, policy: NightPolicy, night: date) -> Phase:
    """Return the supersessions and contradictions of a chunk of agents, with the account of its pairs.

    `tables`: facts, statements, judgements, copies, contradictions, undone. The later fact of a pair is the one stated
    later (`statement_time`). That order is total, so even circular verdicts make no circle of successors. A
    supersession is dated by the statement that came next, as if the facts had been learned one by one. A fact is
    superseded only by a sure verdict on facts of known order, and never if it is pinned or more trusted; all other
    pairs open a contradiction.
    """
    phase, facts, judged = Phase("update_proposals"), tables["facts"], tables["judgements"]
    waiting = without_settled(tables["contradictions"], facts)
    undone, contradictions = follow_successors(tables["undone"], waiting, facts=facts, copies=tables["copies"])
    unread = tables["statements"].filter(pl.col("reason") == "imported").select("agent_id", new_id="fact_id").unique()
    pairs = decide_pairs(judged, facts, unread=unread, contradictions=contradictions, undone=undone, night=night)
    phase.add_eligible_rows(pairs)
    successions = _with_heirs(
        pairs.filter(pl.col("decision") == "supersede"), judged, undone, contradiction_standings(contradictions, judged)
    )
    retired = successions.select("agent_id", id="old_id").unique()
    opposed = _touching(pairs.filter(pl.col("decision") == "contradict"), retired)
    phase.leave_all(pairs.filter(pl.col("decision") == "leave"))
    phase.leave_all(opposed.filter("is_touched").with_columns(why=pl.lit(GIVES_WAY)))
    ends = pl.concat([pairs.select("agent_id", id=side) for side in OLD_AND_NEW])
    named = facts.select("agent_id", "id", "row_version", "contradiction_status").join(
        ends, on=["agent_id", "id"], how="semi"
    )
    versions = {(agent_id, memory): (version, status) for agent_id, memory, version, status in named.iter_rows()}
    for group in _groups(successions, by="root_id"):
        phase.propose(_supersession(group, versions, night=night), rows=len(group))
    for group in _groups(_with_components(opposed.filter(~pl.col("is_touched"))), by="component"):
        phase.propose(_contradiction(group, versions, night=night), rows=len(group))
    return phase


def has_later_values(tables: Tables, *, policy: NightPolicy, night: date) -> bool:
    """Return whether a fact becomes valid after the night, and may replace another then."""
    return bool((tables["facts"]["valid_from"] > end_of(night)).any())


def _with_heirs(
    edges: pl.DataFrame, judged: pl.DataFrame, undone: pl.DataFrame, standing: pl.DataFrame
) -> pl.DataFrame:
    """Add to each update (older → newer) the successor of the older fact (`heir_id`) and the time of supersession.

    The successor is the end of the chain of updates. If it and the older fact were judged compatible, separated by a
    person, or contradict each other (`standing`), it is the latest fact the older one was compared with. The time is
    that of the statement that came next.
    """
    # The newer fact was known before the older one was stated: it was a later confirmation that made it newer.
    is_from_confirming = pl.col("new_since") < pl.col("old_stated_at")
    dated = edges.with_columns(
        moment=pl.when(is_from_confirming).then("new_last_confirmed_at").otherwise("new_learned_at")
    ).sort("agent_id", "old_id", "new_stated_at", "new_learned_at", "new_id")
    heirs = dated.group_by("agent_id", "old_id", maintain_order=True).agg(
        superseded_at=pl.col("moment").first(), latest_id=pl.col("new_id").last()
    )
    heirs = heirs.with_columns(new_id=chain_ends(heirs, "old_id", "latest_id"))
    strangers = pl.concat(
        [_told_apart(heirs, judged), separated_pairs(heirs, undone, sides=OLD_AND_NEW), _opposed(heirs, standing)]
    )
    is_stranger = strangers.unique().with_columns(is_stranger=YES)
    settled = heirs.join(is_stranger, on=["agent_id", "old_id", "new_id"], how="left").select(
        "agent_id", "old_id", "superseded_at", root_id="new_id",
        heir_id=pl.when("is_stranger").then("latest_id").otherwise("new_id"),
    )  # fmt: skip
    return dated.join(settled, on=["agent_id", "old_id"], maintain_order="left")


def _told_apart(heirs: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """Return the successions whose two ends were judged compatible."""
    ends = ["agent_id", "old_id", "new_id"]
    other = judged.filter(pl.col("verdict") == Verdict.COMPATIBLE.value)
    either_way = [
        other.select("agent_id", old_id=one, new_id=another)
        for one, another in (("left_id", "right_id"), ("right_id", "left_id"))
    ]
    return heirs.join(pl.concat(either_way), on=ends, how="semi").select(ends)


def _opposed(heirs: pl.DataFrame, standing: pl.DataFrame) -> pl.DataFrame:
    """Return the successions whose two ends have a contradiction on record, open or resolved."""
    ends = {"first_id": pl.min_horizontal("old_id", "new_id"), "second_id": pl.max_horizontal("old_id", "new_id")}
    found = heirs.with_columns(**ends).join(standing, on=["agent_id", *ends], how="semi")
    return found.select("agent_id", "old_id", "new_id")


def _touching(opposed: pl.DataFrame, retired: pl.DataFrame) -> pl.DataFrame:
    """Add to each contradicting pair `is_touched`: whether one of the two is superseded tonight anyway."""
    leaving = retired.with_columns(leaves=YES)
    return (
        opposed.join(leaving.rename({"id": "old_id", "leaves": "old_leaves"}), on=["agent_id", "old_id"], how="left")
        .join(leaving.rename({"id": "new_id", "leaves": "new_leaves"}), on=["agent_id", "new_id"], how="left")
        .with_columns(is_touched=pl.any_horizontal("old_leaves", "new_leaves").fill_null(NO))
        .sort("agent_id", "first_id", "second_id")
    )


def _with_components(opposed: pl.DataFrame) -> pl.DataFrame:
    """Add the connected component of each pair: pairs that share a fact are one proposal.

    A contradiction marks both of its facts, and a plan lets only one proposal a night change a fact.
    """
    left, right, facts = row_numbers(opposed, "old_id", "new_id")
    # Every row takes the smallest label of its neighbours until no pair disagrees; `label[label]` shortens long chains.
    label = np.arange(len(facts))
    while (label[left] != label[right]).any():
        least = np.minimum(label[left], label[right])
        for ends in (label[left], label[right]):
            np.minimum.at(label, ends, least)
        label = label[label]
    return opposed.with_columns(component=facts["id"].gather(label[left]))


def _groups(pairs: pl.DataFrame, *, by: str) -> list[list[dict[str, Any]]]:
    """Return the pairs of each proposal, in order."""
    rounded = [pl.col(name).cast(pl.Float64).round(4) for name in ("similarity", "confidence")]
    rows = pairs.select(pl.exclude(NOT_TOLD)).with_columns(rounded).sort("agent_id", by, maintain_order=True).to_dicts()
    return [list(group) for _, group in groupby(rows, key=itemgetter("agent_id", by))]


Versions = dict[tuple[str, str], tuple[int, str]]


def _supersession(pairs: list[dict[str, Any]], versions: Versions, *, night: date) -> Proposal:
    agent_id = pairs[0]["agent_id"]
    outdated = {pair["old_id"]: pair for pair in pairs}
    ordered = sorted(
        outdated.values(), key=lambda pair: (pair["old_stated_at"], pair["old_learned_at"], pair["old_id"])
    )
    members = [*(pair["old_id"] for pair in ordered), pairs[0]["root_id"]]
    changes = [
        Change(
            "fact",
            pair["old_id"],
            set={
                "state": "superseded",
                "superseded_by": pair["heir_id"],
                "superseded_at": pair["superseded_at"].isoformat(),
                "succession": "replaced",
            },
            action="superseded",
        )
        for pair in ordered
    ]
    return Proposal(
        night=night,
        agent_id=agent_id,
        kind="supersede",
        targets=tuple(members),
        read_set=tuple(Read("fact", memory, versions[agent_id, memory][0]) for memory in members),
        changes=tuple(changes),
        reason=_supersession_reason(ordered, pairs),
        evidence={"pairs": _evidence(pairs)},
    )


def _supersession_reason(ordered: Sequence[dict[str, Any]], pairs: Sequence[dict[str, Any]]) -> str:
    last = max(pairs, key=lambda pair: pair["new_stated_at"])
    values = "1 earlier value gives" if len(ordered) == 1 else f"{len(ordered)} earlier values give"
    return f"{values} way to the one stated {last['new_stated_at']:%d %b %Y}: {last['reason']}"


def _contradiction(pairs: list[dict[str, Any]], versions: Versions, *, night: date) -> Proposal:
    agent_id = pairs[0]["agent_id"]
    members = sorted({pair[side] for pair in pairs for side in ("old_id", "new_id")})
    opened = [
        Change(
            "contradiction",
            str(uuid5(NAMESPACE, "\n".join(("contradiction", agent_id, pair["first_id"], pair["second_id"])))),
            set={
                "memory_a": pair["first_id"],
                "memory_b": pair["second_id"],
                "detected_at": end_of(night).isoformat(),
                "judgement": {name: pair[name] for name in ("verdict", "confidence", "reason", "model")},
            },
        )
        for pair in pairs
    ]
    marked = [
        Change("fact", memory, set={"contradiction_status": "open"}, action="contradicted")
        for memory in members
        if versions[agent_id, memory][1] != "open"
    ]
    return Proposal(
        night=night,
        agent_id=agent_id,
        kind="contradiction",
        targets=tuple(members),
        read_set=tuple(Read("fact", memory, versions[agent_id, memory][0]) for memory in members),
        changes=(*opened, *marked),
        reason=_contradiction_reason(pairs),
        evidence={"pairs": _evidence(pairs)},
    )


def _contradiction_reason(pairs: Sequence[dict[str, Any]]) -> str:
    first = pairs[0]
    more = f"; and {len(pairs) - 1} more that share a fact with it" if len(pairs) > 1 else ""
    return f"both stay until somebody decides, for {first['why']}: {first['reason']}{more}"


def _evidence(pairs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "a": pair["old_id"],
            "b": pair["new_id"],
            **{name: pair[name] for name in ("similarity", "verdict", "confidence", "slot", "reason", "model")},
        }
        for pair in pairs
    ]


# --- what to do about one pair ---


def decide_pairs(
    judged: pl.DataFrame,
    facts: pl.DataFrame,
    *,
    unread: pl.DataFrame,
    contradictions: pl.DataFrame,
    undone: pl.DataFrame,
    night: date,
) -> pl.DataFrame:
    """Return each pair judged an update or a contradiction, older statement first, with `decision` and reason `why`.

    `unread` (agent_id, new_id): facts that were stored without being compared.
    """
    asked = with_share(judged.filter(~pl.col("is_across_users"))).filter(
        pl.col("verdict").is_in([Verdict.UPDATES.value, Verdict.CONTRADICTS.value])
    )
    pairs = _in_order(asked, facts).with_columns(
        first_id=pl.min_horizontal("old_id", "new_id"), second_id=pl.max_horizontal("old_id", "new_id")
    )
    apart = separated_pairs(pairs, undone, sides=OLD_AND_NEW)
    return (
        pairs.join(
            contradiction_standings(contradictions, judged), on=["agent_id", "first_id", "second_id"], how="left"
        )
        .join(apart.with_columns(is_apart=YES), on=["agent_id", "old_id", "new_id"], how="left")
        .join(unread.with_columns(is_unread=YES), on=["agent_id", "new_id"], how="left")
        .with_columns(stays=_stays(night))
        .with_columns(decision=_decision(), why=pl.coalesce("stays", _doubt()))
        .sort("agent_id", "old_stated_at", "old_id", "new_id")
    )


def with_share(judged: pl.DataFrame) -> pl.DataFrame:
    """Add `share`, the chance that the later fact changed this one and none else near it; null where a rule decided.

    As `weighed_together` does for one new statement. Where nobody knows which was stated later, either may have changed
    the other: the lower of both chances counts.
    """
    change = pl.col("change").cast(pl.Float64)
    weighed = judged.with_columns(odds=change / (1 - pl.min_horizontal(change, 1 - LEAST_CHANCE)))
    sides = [("right_id", weighed), ("left_id", weighed.filter(~pl.col("is_ordered")))]
    changing = pl.concat(pairs.select("agent_id", "odds", id=side) for side, pairs in sides)
    sums = changing.group_by("agent_id", "id").agg(of_all=pl.col("odds").sum())
    for side in ("right", "left"):
        own = sums.rename({"id": f"{side}_id", "of_all": f"of_{side}"})
        weighed = weighed.join(own, on=["agent_id", f"{side}_id"], how="left", maintain_order="left")
    of_all = pl.when("is_ordered").then("of_right").otherwise(pl.max_horizontal("of_right", "of_left"))
    is_read = (pl.col("change") > 0) & pl.col("slot").is_null()
    share = pl.when(is_read).then(pl.col("odds") / (1 + of_all))
    return weighed.with_columns(share=share).drop("odds", "of_right", "of_left")


def contradiction_standings(contradictions: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """Return (agent_id, first_id, second_id, standing): the status of the contradiction between two facts.

    An open contradiction also holds between the duplicates of its two facts.
    """
    known = contradictions.select("agent_id", "memory_a", "memory_b", standing="status")
    same = judged.filter(pl.col("verdict") == Verdict.SAME.value, ~pl.col("is_across_users"))
    either_way = (("left_id", "right_id"), ("right_id", "left_id"))
    kin = pl.concat(same.select("agent_id", id=one, kin_id=other) for one, other in either_way)
    waiting = known.filter(pl.col("standing") == "open")
    for side in ("memory_a", "memory_b"):
        others = waiting.join(kin, left_on=["agent_id", side], right_on=["agent_id", "id"])
        waiting = pl.concat([waiting, others.with_columns(pl.col("kin_id").alias(side)).drop("kin_id")])
    ends = {
        "first_id": pl.min_horizontal("memory_a", "memory_b"),
        "second_id": pl.max_horizontal("memory_a", "memory_b"),
    }
    every = pl.concat([waiting, known]).select("agent_id", **ends, standing="standing")
    return every.unique(["agent_id", "first_id", "second_id"], keep="first", maintain_order=True)


def _in_order(asked: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs with the older statement first; the columns of the two facts are prefixed by old_ and new_."""
    said = facts.select("agent_id", "id", *PLACE, *STATED, *STANDING).with_columns(
        since=pl.coalesce("valid_from", "learned_at"),
        stated_at=statement_time(),
    )
    columns = [name for name in said.columns if name != "agent_id"]
    both = asked
    for side in ("left", "right"):
        own = said.rename({name: f"{side}_{name}" for name in columns})
        both = both.join(own, on=["agent_id", f"{side}_id"], how="left")
    is_same_moment = pl.col("left_stated_at") == pl.col("right_stated_at")
    is_swapped = (pl.col("left_stated_at") > pl.col("right_stated_at")).fill_null(NO) | (
        is_same_moment & (pl.col("left_learned_at") > pl.col("right_learned_at"))
    ).fill_null(NO)
    is_told_apart = ~is_same_moment | (pl.col("left_learned_at") != pl.col("right_learned_at"))
    return both.select(
        "agent_id", "similarity", "verdict", "confidence", "slot", "reason", "model", "share",
        pl.col("is_ordered") & is_told_apart,
        *(pl.when(is_swapped).then(f"right_{name}").otherwise(f"left_{name}").alias(f"old_{name}") for name in columns),
        *(pl.when(is_swapped).then(f"left_{name}").otherwise(f"right_{name}").alias(f"new_{name}") for name in columns),
    )  # fmt: skip


def _stays(night: date) -> pl.Expr:
    """Return the reason why a pair is left as it is, null where it has to be decided."""
    is_active = (pl.col("old_state") == "active") & (pl.col("new_state") == "active")
    in_one_place = pl.all_horizontal(pl.col(f"old_{name}").eq_missing(pl.col(f"new_{name}")) for name in PLACE)
    never_together = (pl.col("old_valid_to") <= pl.col("new_valid_from")) | (
        pl.col("new_valid_to") <= pl.col("old_valid_from")
    )
    moment = pl.max_horizontal("old_learned_at", "new_learned_at")  # when both were known
    is_told_together = (pl.col("old_source") == pl.col("new_source")) & (
        pl.col("old_learned_at") == pl.col("new_learned_at")
    )
    is_update = (pl.col("verdict") == Verdict.UPDATES.value) & pl.col("is_ordered")
    contradicts_from = pl.when("is_unread").then(UNREAD_CONTRADICTS_FROM).otherwise(CONTRADICTS_FROM)
    is_over = (pl.col("new_valid_to") <= moment) & ~(pl.col("old_valid_to") <= moment).fill_null(NO)
    return first_reason(
        (~is_active.fill_null(NO), "one of the two is no longer active"),
        (pl.col("old_is_rewound") | pl.col("new_is_rewound"), "one of the two changed after the end of the night"),
        (~in_one_place, "the two live in different places"),
        ("is_apart", "a person took the two apart"),
        (pl.col("standing") == "open", "their contradiction is open and waits for a person"),
        (pl.col("standing").is_not_null(), "a person resolved their contradiction"),
        (never_together, "each holds in its own time"),
        # The rows of a table and the items of a list look alike and differ in a name or a date: of one file of memories
        # 22 pairs were taken for contradictions, none of which was one.
        (is_told_together.fill_null(NO), "one source told both at the same moment"),
        (pl.col("new_valid_from") > end_of(night), "the later value has not begun"),
        (is_update & is_over, "the later value is over already, so each holds in its own time"),
        (pl.col("share") < contradicts_from, OTHER_NEARER),
    )


def _doubt() -> pl.Expr:
    """Return the reason why the later fact of a pair may not supersede the earlier, null where it may."""
    is_update = pl.col("verdict") == Verdict.UPDATES.value
    supersedes_from = pl.when("is_unread").then(UNREAD_SUPERSEDES_FROM).otherwise(SUPERSEDES_FROM)
    return first_reason(
        (~is_update, "they can't both be so"),
        (~pl.col("is_ordered"), "nobody knows which was stated later"),
        (
            (pl.col("confidence") < SURE_FROM) | (pl.col("share") < supersedes_from),
            "the judge is not sure that the later one takes its place",
        ),
        ("old_is_pinned", "the earlier one is pinned"),
        (pl.col("old_key").is_not_null(), "the earlier one has a key, and gives way to a later value of it alone"),
        (pl.col("new_trust") < pl.col("old_trust"), "the later one comes from a source that is trusted less"),
    )


def _decision() -> pl.Expr:
    return (
        pl.when(pl.col("stays").is_not_null())
        .then(pl.lit("leave"))
        .when(_doubt().is_not_null())
        .then(pl.lit("contradict"))
        .otherwise(pl.lit("supersede"))
    )
