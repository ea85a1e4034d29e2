"""Reads, checks and stores the policy fields in which an agent differs from the default."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, cast

from psycopg import Connection
from psycopg.types.json import Jsonb

from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.plan.apply import find_agents

SQL = statements("nous_pipelines.plan", "agent_policies.sql")


def own_policy(database: Database, agent_id: str) -> dict[str, Any]:
    """Return the policy fields set for an agent; raise `NotFound` for an unknown agent."""
    find_agents(database, [agent_id])
    with database.transaction() as connection:
        return stored(connection, agent_id)


def set_policy(database: Database, agent_id: str, values: Mapping[str, float], *, is_reset: bool) -> dict[str, Any]:
    """Set fields of an agent's policy, or with `is_reset` replace all of them, and return those set now.

    They take effect with the next snapshot; a night with a snapshot keeps its policy. Raises `InvalidInput` for values
    that are invalid together, and `NotFound` for an unknown agent; nothing was changed then.
    """
    find_agents(database, [agent_id])
    with database.transaction() as connection:
        known = {} if is_reset else stored(connection, agent_id)
        whole = NightPolicy().overridden({**known, **values})
        own = {name: getattr(whole, name) for name in {**known, **values}}
        connection.execute(SQL["store_policy"], {"agent_id": agent_id, "policy": Jsonb(own)})
    return own


def stored(connection: Connection, agent_id: str) -> dict[str, Any]:
    """Return the stored policy fields of an agent."""
    row = connection.execute(SQL["read_policy"], {"agent_id": agent_id}).fetchone()
    return row[0] if row else {}


@cache
def meanings() -> dict[str, str]:
    """Return the sentence below each field of `NightPolicy`."""
    # From the source: a string below a field is no docstring that Python keeps.
    (policy,) = ast.parse(inspect.getsource(NightPolicy)).body
    return {
        field.target.id: inspect.cleandoc(sentence.value.value).replace("\n", " ")
        for field, sentence in pairwise(cast("ast.ClassDef", policy).body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(sentence, ast.Expr)
        and isinstance(sentence.value, ast.Constant)
        and isinstance(sentence.value.value, str)
    }
