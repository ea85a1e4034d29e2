"""Errors about agents that nobody began: who reads is told of the nearest names, and nothing is created."""

from __future__ import annotations

from difflib import get_close_matches

from nous_online.core.errors import NotFound, NousError
from nous_online.core.settings import Settings
from nous_online.database.connection import as_night
from nous_online.database.statements import statements

SQL = statements("nous_online.interfaces", "known_agents.sql")
UNNAMED = str(Settings.model_fields["agent"].default)
"""The agent of whoever names none: it may be read before it knows anything, since its name is no mistake."""
MOST_NEAR, CONNECT_S = 3, 3.0


def unknown_agent(url: str, agent_id: str) -> NotFound:
    """Return the error for an agent that is not known: its name, the nearest known ones, and how an agent begins."""
    known = known_agents(url)
    near = get_close_matches(agent_id, known, n=MOST_NEAR, cutoff=0.5) or sorted(known)[:MOST_NEAR]
    names = f"; known are: {', '.join(near)}" if near else ""
    begins = f'nous learn "…" --agent {agent_id}, or nous import FILE --agent {agent_id}'
    return NotFound(f"agent {agent_id!r} is not known here{names}. One begins with the first thing it learns: {begins}")


def check_known(url: str, agent_id: str) -> None:
    """Raise `NotFound` for an agent that is not known, where all agents can be listed."""
    known = known_agents(url)
    if known and agent_id not in {UNNAMED, *known}:
        raise unknown_agent(url, agent_id)


def known_agents(url: str) -> list[str]:
    """Return all agents by name; none where they can't be listed."""
    try:
        # The role of calls sees one agent only; that of nights sees all.
        with as_night(url, seconds=CONNECT_S) as connection:
            return [row[0] for row in connection.execute(SQL["known_agents"])]
    except NousError:
        return []
