"""Reading an episode in full, whatever the nights left of it in its row."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import psycopg
import pytest
from erased_rows import insert

from nous_online.core.errors import NotFound
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.episodes import FullText

DETAIL = "Ada: the billing database moves to cluster seven. Ben: the old one is switched off in June."


def condensed(owner: psycopg.Connection, episode_id: UUID, tier: str, **values: str | None) -> None:
    """Put an episode into a tier, as a night would leave its row."""
    assignments = ", ".join(f"{name} = %({name})s" for name in values)
    owner.execute("set session_replication_role = replica")
    owner.execute(
        f"update heart.episodes set compression_tier = %(tier)s, {assignments} where id = %(id)s",  # noqa: S608
        {"tier": tier, "id": episode_id, **values},
    )
    owner.execute("set session_replication_role = default")


def chilled(owner: psycopg.Connection, episode_id: UUID, tier: str, **values: object) -> None:
    insert(owner, "aria", {"heart.cold_texts": {"memory_id": episode_id, "tier": tier, **values}})


def told(heart: Heart) -> UUID:
    return heart.record_episode(DETAIL, title="The move", summary="Billing moved").id


def test_a_raw_episode_is_read_from_its_row(heart: Heart) -> None:
    episode_id = told(heart)

    assert heart.full_text(episode_id) == FullText(
        episode_id, "The move", DETAIL, "detail", is_cold=False, purge_after=None
    )


def test_a_condensed_episode_is_read_from_cold_storage_and_stays_condensed(
    heart: Heart, owner: psycopg.Connection
) -> None:
    episode_id = told(heart)
    condensed(owner, episode_id, "fossil", detail=None, summary=None)
    expiry = datetime(2027, 1, 1, tzinfo=UTC)
    chilled(owner, episode_id, "raw", detail=DETAIL, purge_after=expiry)
    chilled(owner, episode_id, "summary", summary="Billing moved")

    found = heart.full_text(episode_id)

    assert found == FullText(episode_id, "The move", DETAIL, "detail", is_cold=True, purge_after=expiry)
    (answer,) = heart.recall("the move", types=["episode"], limit=1)
    assert DETAIL not in answer.text
    assert heart.get_episode(episode_id).detail is None


def test_once_the_detail_is_purged_the_next_shorter_text_is_read(heart: Heart, owner: psycopg.Connection) -> None:
    episode_id = told(heart)
    condensed(owner, episode_id, "compressed", detail=None, summary=None, compressed="Moved")
    chilled(owner, episode_id, "summary", summary="Billing moved")

    found = heart.full_text(episode_id)

    assert (found.text, found.level, found.is_cold) == ("Billing moved", "summary", True)


def test_what_the_row_says_now_comes_before_what_it_said(heart: Heart, owner: psycopg.Connection) -> None:
    episode_id = told(heart)
    condensed(owner, episode_id, "compressed", detail=None, summary="told again")
    chilled(owner, episode_id, "summary", summary="Billing moved")

    assert heart.full_text(episode_id).text == "told again"


def test_of_two_lost_summaries_the_later_one_is_read(heart: Heart, owner: psycopg.Connection) -> None:
    episode_id = told(heart)
    condensed(owner, episode_id, "fossil", detail=None, summary=None)
    chilled(owner, episode_id, "summary", summary="first", stored_at=datetime(2026, 1, 1, tzinfo=UTC))
    chilled(owner, episode_id, "compressed", summary="told again", stored_at=datetime(2026, 2, 1, tzinfo=UTC))

    assert heart.full_text(episode_id).text == "told again"


def test_of_an_episode_nobody_told_anything_of_there_is_only_the_title(heart: Heart) -> None:
    titled, untitled = heart.start_episode("A walk"), heart.start_episode()

    assert [(heart.full_text(each.id).text, heart.full_text(each.id).level) for each in (titled, untitled)] == [
        ("A walk", "title"),
        ("", "title"),
    ]


def test_another_agent_reads_nothing_of_it(heart: Heart, database: Database, owner: psycopg.Connection) -> None:
    episode_id = told(heart)
    chilled(owner, episode_id, "raw", detail=DETAIL)
    other = Heart.open("ben", database=database, embedder=heart.agent.embedder, works_in_background=False)

    with pytest.raises(NotFound, match=f"agent 'ben' has no episode {episode_id}"):
        other.full_text(episode_id)


@pytest.mark.parametrize(
    ("tier", "kept"),
    [("summary", {"title", "summary", "compressed"}), ("compressed", {"title", "compressed"}), ("fossil", {"title"})],
)
def test_facts_are_drawn_from_what_was_told_though_a_night_came_first(
    heart: Heart, owner: psycopg.Connection, tier: str, kept: set[str]
) -> None:
    talk = "Ada: the parcel is late.\nfact: Parcels to Oslo take nine days"
    episode_id = heart.record_episode(talk).id
    condensed(owner, episode_id, tier, detail=None)
    chilled(owner, episode_id, "raw", detail=talk)

    assert heart.work().completed == 1

    episode = heart.get_episode(episode_id)
    (fact,) = heart.recall("parcels to Oslo", types=["fact"])
    assert fact.content == "Parcels to Oslo take nine days"
    assert {name for name in ("title", "detail", "summary", "compressed") if getattr(episode, name)} == kept
    assert episode.completed_at is not None
