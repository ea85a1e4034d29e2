"""An agent to whom everything has happened, with rows in every table of agents."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from night_runs import NIGHT, plan_of, remember

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.exporting import TABLES
from nous_online.language.pairs.judging import Verdict
from nous_online.recall.recall import refresh_statistics
from nous_pipelines.plan.apply import apply_plan
from nous_pipelines.plan.undo import Selection, undo

NINE = ("the office opens at nine", "the office opens at nine now")
MAY = datetime(2026, 5, 20, 9, tzinfo=UTC)
DIFFERS = {
    "heart.facts": ("written_xid",), "heart.episodes": ("written_xid",), "heart.procedures": ("written_xid",),
    "heart.censors": ("written_xid",), "lifecycle.events": ("id", "undoes"),
    "lifecycle.plans": ("agent_ids", "counts", "checks"),
}  # fmt: skip
"""What a row is given anew, and what of a night is about other agents."""


def live(heart: Heart, judge: Any, database_url: str, tmp_path: Path) -> Heart:
    """Let everything happen to agent aria: learning, a night, what was taken back, sessions; return her memory."""
    judge.verdicts |= dict.fromkeys((NINE, NINE[::-1]), Verdict.SAME)
    remember(heart, *NINE, "the boat is fast")
    heart.learn("The boat is fast now.", learned_at=MAY, encoded_frame="task", tags=["boats"])
    heart.learn("The crane lifts nine tonnes", key="crane/load", learned_at=MAY)
    heart.learn("Twelve tonnes hang from the crane", key="crane/load")
    night = Database(database_url, role="nous_night")
    plan = plan_of(night, tmp_path, judge)
    apply_plan(night, plan, run_id="a run")
    undo(night, Selection(night=NIGHT), reason="a mistake")
    night.close()
    episode = heart.start_episode("At the harbour", started_at=MAY, artifacts=[("file", "log.txt")])
    heart.record_decision("Sail tomorrow", rationale="the wind", decided_at=MAY)
    heart.close_episode(episode.id, append="fact: Ada sails a boat.\nThe ropes were wet.", ended_at=MAY)
    heart.work()
    heart.store_procedure("retry uploads", core_patterns=["wait, then try again"])
    heart.add_censor("deploy on friday", "it failed before")
    heart.focus("sail", frame="task")
    heart.load_context(note="bring ropes")
    found = heart.recall("office", frame="task", active_censors=["no-deploys"])
    heart.cite(found.id, [found[0].id])
    keep_by_hand(database_url, episode.id, found[0].id)
    return heart


def keep_by_hand(url: str, episode: UUID, fact: UUID) -> None:
    """Store what only long nights leave: a cold text, a link, a verdict, a contradiction, figures."""
    cold = "insert into heart.cold_texts (agent_id, memory_id, tier, detail) values ('aria', %s, 'raw', 'The ropes …')"
    link = "insert into heart.links (agent_id, from_id, to_id, kind, weight) values ('aria', %s, %s, 'related', 0.7)"
    verdict = """insert into heart.judgements (agent_id, pair_hash, model, prompt_version, verdict, confidence, reason)
                 values ('aria', 'a hash', 'a model', '1', 'same', 0.9, 'they say the same')"""
    sighting = "insert into heart.sightings (agent_id, signal, session_id) values ('aria', 'file:boat.py', 's-1')"
    pair = """insert into heart.contradictions (agent_id, memory_a, memory_b)
              select 'aria', min(id::text)::uuid, max(id::text)::uuid from heart.facts"""
    figures = "insert into lifecycle.health (agent_id, night, figures) values ('aria', '2026-06-01', '{}')"
    policy = "insert into lifecycle.agent_policies (agent_id, policy) values ('aria', '{\"unused_days\": 60}')"
    with psycopg.connect(url, autocommit=True) as owner:
        for statement in (pair, figures, policy):
            owner.execute(statement)
        refresh_statistics(owner, "aria")
        owner.execute(cold, [episode])
        owner.execute(link, [episode, fact])
        owner.execute(verdict)
        owner.execute(sighting)


def exported_rows(url: str, agent_id: str = "%") -> dict[str, list[str]]:
    """Return every row of every table that is exported, of one agent or of all, as text in a fixed order."""
    kept: dict[str, list[str]] = {}
    with psycopg.connect(url, autocommit=True) as owner:
        for name in TABLES:
            dropped = list(DIFFERS.get(name, ()))
            row = "to_jsonb(t) - %s::text[]"
            whose = "coalesce(to_jsonb(t) ->> 'agent_id', to_jsonb(t) ->> 'id', '')"
            query = f"select ({row})::text from {name} t where {whose} like %s order by 1"  # noqa: S608 (our names)
            kept[name] = [found for (found,) in owner.execute(query, [dropped, agent_id])]
    return kept
