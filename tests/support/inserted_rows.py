"""Rows as somebody writes them who goes round the write path."""

from __future__ import annotations

INSERT_FACT = "insert into heart.facts (id, agent_id, content) values (%s, %s, 'written by hand')"
INSERT_STATEMENT = """
    insert into heart.statements (agent_id, fact_id, content, said_at, reason)
    values (%s, %s, 'written by hand', now(), 'first')"""
INSERT_EVENT = """
    insert into lifecycle.events (agent_id, memory_kind, memory_id, action, from_state, to_state, version_before,
                                  version_after, actor, reason, effective_at)
    values (%s, 'fact', %s, 'learned', %s, %s, 0, %s, 'agent', 'by hand', now())"""
