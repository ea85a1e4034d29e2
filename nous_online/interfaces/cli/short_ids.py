"""Ids by their first digits: what a command is told is completed, and what people read is cut short."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast
from uuid import UUID

from typer import BadParameter

from nous_online.core.domain import shortened
from nous_online.core.errors import InvalidInput, NotFound
from nous_online.database.statements import statements

LEAST_DIGITS, DIGITS = 6, 32
DIGITS_ONLY = re.compile(f"[0-9a-f]{{{LEAST_DIGITS},{DIGITS}}}")
WHOLE = re.compile(r"\b([0-9a-f]{8}-[0-9a-f]{4})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
"""The first twelve digits tell the millisecond in which an id was made (UUID version 7, RFC 9562)."""
MOST_NAMED = 5
SORTS: Mapping[str, str] = {
    "statement_id": "statement",
    "recall_id": "recall",
    "changed": "change",
    "question": "question",
    "proposal": "proposal",
}
"""Of what the parameters of commands are ids; of memories, all others."""


class ShortId(str):
    """The first digits of an id, without dashes."""

    __slots__ = ()


def identifier(text: str) -> UUID | ShortId:
    """Return an id that a command was told, or its first digits, of which six are enough to look for it."""
    digits = text.strip().lower().replace("-", "")
    if not DIGITS_ONLY.fullmatch(digits):
        raise BadParameter(f"not a valid id: {text!r} (want a UUID, or at least its first {LEAST_DIGITS} digits)")
    return UUID(digits) if len(digits) == DIGITS else ShortId(digits)


def with_whole_ids(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a command was told with whole ids; raise `NotFound`, or `InvalidInput` naming all that begin so."""
    agent = told.get("agent") or told.get("named")
    return {name: whole(name, value, agent) for name, value in told.items()}


def whole(name: str, value: object, agent: str | None) -> object:
    if isinstance(value, list):
        return [whole(name, each, agent) for each in cast("list[object]", value)]
    return find_id(SORTS.get(name, "memory"), value, agent) if isinstance(value, ShortId) else value


def find_id(sort: str, digits: ShortId, agent: str | None) -> UUID:
    """Return the one id of a sort that begins with some digits."""
    from nous_online.interfaces.cli.output import agent_named, open_database

    is_of_all = sort == "proposal" and agent is None
    agent_id = None if is_of_all else agent_named(agent)
    bounds = {"first": UUID(digits.ljust(DIGITS, "0")), "last": UUID(digits.ljust(DIGITS, "f"))}
    query = statements("nous_online.interfaces.cli", "short_ids.sql")[sort]
    role = "nous_night" if is_of_all else "nous_app"
    with open_database(role) as database, database.transaction(agent_id) as connection:
        key = {"agent_id": agent_id, "limit": MOST_NAMED + 1, **bounds}
        found = connection.execute(query, key).fetchall()
    if not found:
        whose = "there is no" if is_of_all else f"agent {agent_id!r} has no"
        raise NotFound(f"{whose} {sort} whose id begins with {str(digits)!r}")
    if len(found) > 1:
        named = "; ".join(f"{each} ({shortened(text)})" for each, text in found[:MOST_NAMED])
        more = "; and more" if len(found) > MOST_NAMED else ""
        raise InvalidInput(f"several ids begin with {str(digits)!r}: {named}{more}; type more digits")
    return found[0][0]


def brief(text: object) -> str:
    """Return a sentence, or an id, with its ids cut short; every command takes them so."""
    return WHOLE.sub(r"\1", str(text))
