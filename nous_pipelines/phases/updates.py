"""Later values and contradictions: which facts give way to which, and which stand against each other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import uuid5

import numpy as np
import polars as pl

from nous_online.language.pairs.judging import Verdict
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.nights import end_of
from nous_pipelines.phases.arrays import ends_of, numbered
from nous_pipelines.phases.deciding import NO, OLD_AND_NEW, STANDING, STATED, YES, decided, standings
from nous_pipelines.phases.neighbours import PLACE
from nous_pipelines.phases.phase import Phase, Tables
from nous_pipelines.phases.proposals import NAMESPACE, Change, Proposal, Read
from nous_pipelines.phases.rulings import carried, parted

FACT_COLUMNS = ("id", "agent_id", "row_version", "contradiction_status", "superseded_by", *PLACE, *STATED, *STANDING)
"""What of the facts the phase looks at: nothing they say, only how they stand."""
NOT_TOLD = [f"{side}_{name}" for side in ("old", "new") for name in (*PLACE, *STATED[1:], *STANDING, "since")]
"""What a proposal does not speak of."""
GIVES_WAY = "one of the two gives way to a later value tonight"


def update_phase(tables: Tables, *, policy: NightPolicy, night: date) -> Phase:
    """Return the supersessions and contradictions of a chunk of agents, with the account of its pairs.

    `tables`: facts, judgements, copies, contradictions, undone. Later counts what was stated later: a fact holds from
    `valid_from`, else from when it was last said. The order is total, so no verdicts, however circular, make a circle.
    A supersession is dated as learning the facts one by one would have dated it: by the statement that came next. Only
    a sure verdict on facts of known order retires, and never a pinned fact, nor one that is trusted more; all other
    pairs stay, with an open contradiction.
    """
    phase, facts, judged = Phase("update_proposals"), tables["facts"], tables["judgements"]
    undone, contradictions = carried(tables["undone"], tables["contradictions"], facts=facts, copies=tables["copies"])
    pairs = decided(judged, facts, contradictions=contradictions, undone=undone, night=night)
    phase.look_at(pairs)
    successions = _with_heirs(
        pairs.filter(pl.col("decision") == "supersede"), judged, undone, standings(contradictions, judged)
    )
    retired = successions.select("agent_id", id="old_id").unique()
    opposed = _touching(pairs.filter(pl.col("decision") == "contradict"), retired)
    phase.leave_all(pairs.filter(pl.col("decision") == "leave"))
    phase.leave_all(opposed.filter("is_touched").with_columns(why=pl.lit(GIVES_WAY)))
    marks = facts.select("agent_id", "id", "row_version", "contradiction_status")
    versions = {(agent_id, memory): (version, status) for agent_id, memory, version, status in _of(pairs, marks)}
    for group in _groups(successions, by="root_id"):
        phase.propose(_supersession(group, versions, night=night), rows=len(group))
    for group in _groups(_with_components(opposed.filter(~pl.col("is_touched"))), by="component"):
        phase.propose(_contradiction(group, versions, night=night), rows=len(group))
    return phase


def _with_heirs(
    edges: pl.DataFrame, judged: pl.DataFrame, undone: pl.DataFrame, standing: pl.DataFrame
) -> pl.DataFrame:
    """Add to each update (older → newer) what its older fact is superseded by, and when.

    That is the last value one comes to from it, unless the two were judged to be about different things, or taken
    apart by a person, or contradict each other (`standing`): then the latest it was compared with. The moment is that
    of the statement that came next.
    """
    is_from_confirming = pl.col("new_since") < pl.col("old_stated_at")
    dated = edges.with_columns(
        moment=pl.when(is_from_confirming).then("new_last_confirmed_at").otherwise("new_learned_at")
    ).sort("agent_id", "old_id", "new_stated_at", "new_learned_at", "new_id")
    heirs = dated.group_by("agent_id", "old_id", maintain_order=True).agg(
        superseded_at=pl.col("moment").first(), latest_id=pl.col("new_id").last()
    )
    heirs = heirs.with_columns(new_id=ends_of(heirs, "old_id", "latest_id"))
    strangers = pl.concat(
        [_told_apart(heirs, judged), parted(heirs, undone, sides=OLD_AND_NEW), _opposed(heirs, standing)]
    )
    is_stranger = strangers.unique().with_columns(is_stranger=YES)
    settled = heirs.join(is_stranger, on=["agent_id", "old_id", "new_id"], how="left").select(
        "agent_id", "old_id", "superseded_at", root_id="new_id",
        heir_id=pl.when("is_stranger").then("latest_id").otherwise("new_id"),
    )  # fmt: skip
    return dated.join(settled, on=["agent_id", "old_id"], maintain_order="left")


def _told_apart(heirs: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """Return those of the successions whose ends were judged to be about different things."""
    ends = ["agent_id", "old_id", "new_id"]
    other = judged.filter(pl.col("verdict") == Verdict.COMPATIBLE.value)
    either_way = [
        other.select("agent_id", old_id=one, new_id=another)
        for one, another in (("left_id", "right_id"), ("right_id", "left_id"))
    ]
    return heirs.join(pl.concat(either_way), on=ends, how="semi").select(ends)


def _opposed(heirs: pl.DataFrame, standing: pl.DataFrame) -> pl.DataFrame:
    """Return those of the successions whose ends contradict each other, whether that is decided or open."""
    ends = {"first_id": pl.min_horizontal("old_id", "new_id"), "second_id": pl.max_horizontal("old_id", "new_id")}
    found = heirs.with_columns(**ends).join(standing, on=["agent_id", *ends], how="semi")
    return found.select("agent_id", "old_id", "new_id")


def _touching(opposed: pl.DataFrame, retired: pl.DataFrame) -> pl.DataFrame:
    """Tell of each contradicting pair whether one of the two gives way tonight anyway."""
    leaving = retired.with_columns(leaves=YES)
    return (
        opposed.join(leaving.rename({"id": "old_id", "leaves": "old_leaves"}), on=["agent_id", "old_id"], how="left")
        .join(leaving.rename({"id": "new_id", "leaves": "new_leaves"}), on=["agent_id", "new_id"], how="left")
        .with_columns(is_touched=pl.any_horizontal("old_leaves", "new_leaves").fill_null(NO))
        .sort("agent_id", "first_id", "second_id")
    )


def _with_components(opposed: pl.DataFrame) -> pl.DataFrame:
    """Put pairs that share a fact together: each marks its facts, and a fact is changed by one proposal a night."""
    left, right, facts = numbered(opposed, "old_id", "new_id")
    label = np.arange(len(facts))
    while (label[left] != label[right]).any():
        least = np.minimum(label[left], label[right])
        for ends in (label[left], label[right]):
            np.minimum.at(label, ends, least)
        label = label[label]
    return opposed.with_columns(component=facts["id"].gather(label[left]))


def _of(pairs: pl.DataFrame, marks: pl.DataFrame) -> Sequence[tuple[Any, ...]]:
    """Return the rows of those facts that occur in a pair."""
    ends = pl.concat([pairs.select("agent_id", id="old_id"), pairs.select("agent_id", id="new_id")])
    return marks.join(ends, on=["agent_id", "id"], how="semi").rows()


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
