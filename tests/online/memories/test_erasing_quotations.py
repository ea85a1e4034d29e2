"""By which words the copies of an agent's memories are recognised."""

from __future__ import annotations

import re
from uuid import UUID

import psycopg
from erased_rows import insert

from nous_online.memories.erasure import find_quotations, purge_transaction

NAME = "aria-7"
A, B = UUID(int=1), UUID(int=2)
QUOTED: dict[str, dict[str, object]] = {
    "heart.facts": {
        "content": "q content", "context": "q context", "subject": "q subject", "tags": ["qtag-one"],
        "sources": '[{"source": "q source"}]',
    },
    "heart.episodes": {
        "id": A, "title": "q title", "detail": "q detail", "summary": "q summary", "compressed": "q compressed",
        "lessons_learned": ["q lesson"], "participants": ["q participant"], "tags": ["qtag-two"],
        "completion_note": "q completion",
    },
    "heart.episode_artifacts": {"episode_id": A, "kind": "file", "reference": "q-reference.py"},
    "heart.completions": {"episode_id": A, "draft": '{"facts": [{"content": "q draft"}]}', "last_error": "q failure"},
    "heart.procedures": {
        "name": "q name", "domain": "q domain", "goals": ["q goal"], "core_patterns": ["q pattern"],
        "core_tools": ["q tool"], "core_concepts": ["q concept"], "implementation_notes": ["q hint"],
        "steps": '[{"action": "q step"}]', "template": '{"hint": "q template"}', "trigger": "q occasion",
        "review_reason": "q review", "censors": ["q warning"], "tags": ["qtag-three"],
    },
    "heart.censors": {"trigger": "q trigger", "reason": "q reason"},
    "heart.working_memory": {
        "session_id": "s", "task": "q task", "items": '[{"kind": "note", "text": "q note"}]',
        "open_threads": '["q thread"]',
    },
    "heart.cold_texts": {"memory_id": A, "tier": "raw", "detail": "q cold", "summary": "q cool", "compressed": "q icy"},
    "heart.recalls": {"query": "q question", "result_limit": 1},
    "heart.contradictions": {"memory_a": A, "memory_b": B, "note": "q remark", "judgement": '{"reason": "q verdict"}'},
    "heart.judgements": {
        "pair_hash": "h", "model": "m", "prompt_version": "1", "verdict": "same", "confidence": 1, "reason": "q judged"
    },
    "heart.llm_requests": {"purpose": "judge", "model": "m", "request": '{"of": ["q prompt"]}', "error": "q refusal"},
    "heart.outbox": {"name": "fact_learned", "payload": '{"content": "q payload"}'},
    "heart.outbox_cursors": {"consumer": "c", "last_error": "q crash"},
    "brain.decisions": {
        "title": "q decision", "rationale": "q rationale", "outcome": "q outcome", "files": ["q-file.py"],
        "tags": ["qtag-four"],
    },
    "lifecycle.proposals": {
        "id": UUID(int=3), "night": "2026-06-01", "plan_hash": "own", "kind": "merge", "targets": [A], "read_set": "[]",
        "changes": '[{"set": {"summary": "q change"}}]', "reason": "q grounds", "outcome": "q refused",
    },
    "lifecycle.events": {
        "memory_kind": "fact", "memory_id": A, "action": "changed", "from_state": "active", "to_state": "active",
        "version_before": 1, "version_after": 2, "actor": "agent", "reason": "r", "effective_at": "2026-06-01",
        "before": '{"context": "q before", "subject": "qword", "learned_at": "2026-06-01 10:00:00"}',
        "after": '{"detail": {"appended": "q appended"}, "lessons_learned": ["q after"], "state": "active"}',
    },
}  # fmt: skip
"""Every column an agent's words can stand in, each with words of its own."""


def test_a_copy_is_recognised_by_the_words_of_every_column(owner: psycopg.Connection, database_url: str) -> None:
    insert(owner, NAME, QUOTED)
    told = set(re.findall(r"\bq(?: |-|word|tag-)[a-z]*(?:\.py)?", str(QUOTED)))

    with purge_transaction(database_url) as connection:
        found = find_quotations(connection, NAME)

    assert len(told) > 50
    assert told - found == set()
    assert found & {"same", "active", "note", "fact_learned", "2026-06-01 10:00:00"} == set()


def test_labels_that_another_agent_has_too_recognise_nobody(owner: psycopg.Connection, database_url: str) -> None:
    insert(
        owner,
        NAME,
        {"heart.facts": {"content": "The ocelot sleeps", "subject": "kitchen", "tags": ["night", "ocelot"]}},
    )
    insert(owner, "ben", {"brain.decisions": {"title": "Cook", "tags": ["night"], "files": ["kitchen"]}})

    with purge_transaction(database_url) as connection:
        found = find_quotations(connection, NAME)

    assert found & {"kitchen", "night", "ocelot"} == {"ocelot"}
