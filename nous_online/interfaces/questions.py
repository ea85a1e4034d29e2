"""Questions that only a person can answer, open contradictions and doubts: those alike, and settling them together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

from psycopg import Connection

from nous_online.core.domain import Fact
from nous_online.core.errors import Conflict, InvalidInput, NotFound
from nous_online.database.statements import fetch, statements
from nous_online.heart import Heart
from nous_online.memories.contradictions import Ruling, keeper, losers

SQL = statements("nous_online.interfaces", "questions.sql")
Alike = Literal["sources", "subject"]
"""What questions may have in common: the two sources of their facts, or one subject."""
NOT_ONE = "fact {} perhaps replaces {} facts: name one of them with --against"


@dataclass(frozen=True)
class OpenQuestion:
    """Two active facts of which a person has to say whether both hold: a contradiction, or a doubt."""

    kind: Literal["contradiction", "doubt"]
    id: UUID
    """The contradiction, or of a doubt the later fact."""
    earlier_id: UUID
    later_id: UUID
    sources: list[str] | None
    """The sources of both, in order; None if one has none."""
    subject: str | None
    """The subject of both, in lower case; None if they differ."""

    def is_alike(self, other: OpenQuestion, by: Alike) -> bool:
        mine = getattr(self, by)
        return mine is not None and mine == getattr(other, by)


def open_questions(connection: Connection, agent_id: str) -> list[OpenQuestion]:
    """Return the open contradictions and doubts between active facts, the oldest first."""
    return fetch(connection, OpenQuestion, SQL["open_questions"], {"agent_id": agent_id})


def questions_of(heart: Heart) -> list[OpenQuestion]:
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        return open_questions(connection, heart.agent.id)


def hold_both(heart: Heart, questions: Iterable[OpenQuestion], *, why: str) -> int:
    """Decide of each question that both facts hold, and return of how many.

    One after the other: those decided before an error stay decided. A question that somebody decided meanwhile is left.
    """
    settled = 0
    for each in questions:
        try:
            if each.kind == "contradiction":
                heart.resolve_contradiction(each.id, "both_valid", note=why)
            else:
                heart.keep_both(each.later_id, each.earlier_id, reason=why)
        except (Conflict, NotFound):
            continue
        settled += 1
    return settled


def settle_doubt(
    heart: Heart, later: Fact, ruling: Ruling, *, against: UUID | None = None, why: str | None = None
) -> list[UUID]:
    """Decide whether a fact replaces those it perhaps replaces, or one of them; return the earlier facts it was about.

    It is ruled as of a contradiction between the earlier fact (`a`) and the later one (`b`). Raises `InvalidInput`
    where a ruling needs one earlier fact and there are several.
    """
    earlier = [against] if against else list(later.perhaps_replaces)
    if not {*earlier} <= {*later.perhaps_replaces} or not earlier:
        raise NotFound(f"fact {later.id} is in no doubt{f' to replace {against}' if against else ''}")
    if ruling.resolution in ("a_wins", "same") and len(earlier) > 1:
        raise InvalidInput(NOT_ONE.format(later.id, len(earlier)))
    for each in earlier:
        settle_pair(heart, each, later.id, ruling, why=why)
    return earlier


def settle_pair(heart: Heart, earlier_id: UUID, later_id: UUID, ruling: Ruling, *, why: str | None) -> None:
    """Decide whether a fact replaces one earlier fact; what holds and gave way to the other is active again."""
    if ruling.resolution == "same":
        join(heart, heart.get_fact(earlier_id), heart.get_fact(later_id), why=why)
    lost = losers(earlier_id, later_id, ruling)
    if ruling.resolution == "both_valid" or any(heart.get_fact(each).state != "active" for each in lost.values()):
        heart.keep_both(later_id, earlier_id, reason=why)
    for loser, winner in lost.items():
        # Of several, one may have left already, and the later fact leaves with the first.
        if ruling.resolution == "a_wins" or heart.get_fact(loser).state == "active":
            heart.supersede_fact(loser, winner, reason=why, at=datetime.now(UTC))


def join(heart: Heart, earlier: Fact, later: Fact, *, why: str | None) -> None:
    """Merge two facts that say the same into the one that is to be kept."""
    kept = keeper(earlier, later)
    loser, now = later.id if kept is earlier else earlier.id, datetime.now(UTC)
    heart.supersede_fact(loser, kept.id, reason=why, is_same=True, at=now)


def alike(questions: Sequence[OpenQuestion], one: OpenQuestion, by: Alike) -> list[OpenQuestion]:
    """Return the questions with the same sources, or the same subject, as one of them."""
    return [each for each in questions if each.is_alike(one, by)]


def about(
    questions: Sequence[OpenQuestion], *, source: str | None = None, subject: str | None = None
) -> list[OpenQuestion]:
    """Return the questions with a fact from a source, about a subject, or with both where both are given."""
    return [
        each
        for each in questions
        if (source is None or source in (each.sources or ())) and (subject is None or subject.lower() == each.subject)
    ]
