"""Closed episodes: what the tests of their completion tell, and what they look at afterwards."""

from __future__ import annotations

from typing import Any

import psycopg

from nous_online.heart import Heart

TALK = "Ada: the parcel is late.\nfact: Parcels to Oslo take nine days\nfact: Ada orders from Bergen"


def facts(owner: psycopg.Connection) -> list[dict[str, Any]]:
    with owner.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        return cursor.execute("select * from heart.facts order by content").fetchall()


def waiting(owner: psycopg.Connection) -> tuple[int, float, str | None] | None:
    """The attempts at the one unfinished completion, the seconds until the next, and the last error."""
    return owner.execute(
        "select attempt_count, extract(epoch from due_at - now())::float, last_error "
        "from heart.completions where finished_at is null"
    ).fetchone()


def make_due(owner: psycopg.Connection) -> None:
    owner.execute("update heart.completions set due_at = now() where finished_at is null")


def tries(heart: Heart, owner: psycopg.Connection, count: int) -> None:
    """Have what waits tried so many times, as if it was due each time."""
    for _ in range(count):
        make_due(owner)
        heart.work()
