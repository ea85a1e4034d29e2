"""Evidence for checks, drawn: a few facts of two agents, and plans about them."""

from __future__ import annotations

import polars as pl
from drawn import NIGHT, drawn_facts, merge

from nous_online.language.pairs.judging import OfflineJudge
from nous_pipelines.night_policy import Policies
from nous_pipelines.phases.proposals import Change, Read
from nous_pipelines.plan.evidence import SAID, Evidence
from nous_pipelines.plan.planning import planned
from nous_pipelines.snapshots.table_schemas import RECALLS

VECTORS = {"a": (1.0, 0.0, 0.0), "b": (0.8, 0.6, 0.0), "c": (0.0, 1.0, 0.0), "d": (0.0, 0.0, 1.0)}
FACTS = drawn_facts(
    """
    id | agent_id
    ---|---------
    a  | aria
    b  | aria
    c  | aria
    d  | aria
    x  | ben
    y  | ben
    """,
    vectors=VECTORS,
)


def evidence(*proposals, facts=FACTS, **changes):
    """Evidence about facts alone, unless `changes` say more."""
    found = facts.filter(pl.col("state") == "active", pl.col("embedding").is_not_null())
    recalled = found.select("agent_id", "id", "embedding", "rank_weight", kind=pl.lit("fact"))
    values = {
        "plan": planned(NIGHT, proposals, agent_ids=[], policy={}),
        "memories": facts.select("agent_id", "id", "state", "trust", "is_pinned", kind=pl.lit("fact")),
        "statements": SAID.empty(),
        "searchable": lambda agent_ids: recalled.filter(pl.col("agent_id").is_in(list(agent_ids))),
        "phases": [],
        "probes": RECALLS.empty(),
        "earlier_leaving": {},
        "costs": {},
        "policies": Policies(),
        "judge": OfflineJudge(),
    }
    return Evidence(**{**values, **changes})


def gone(memory, **values):
    """A proposal that takes one memory out of `active` without naming a successor, unless `values` do."""
    change = Change("fact", memory, set={"state": "superseded", **values})
    return merge(memory, read_set=(Read("fact", memory, 1),), changes=(change,))


def probe(*cited, vector, limit=1, agent_id="aria", types=()):
    row = {
        "agent_id": agent_id,
        "query": "how?",
        "types": list(types),
        "result_limit": limit,
        "cited_ids": list(cited),
        "embedding": vector,
    }
    return pl.DataFrame([row], schema=RECALLS)
