"""What becomes of a closed episode: title, summary, facts, procedures, censors, decisions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from closed_episodes import TALK, facts, waiting
from conftest import ScriptedWriter, WordEmbedder

from nous_online.core.domain import PROCEDURE, Episode, Procedure
from nous_online.database.changes import Cause, add_memory
from nous_online.heart import Heart
from nous_online.memories.episodes import new_episode, store_deferred
from nous_online.queue.worker import Worked

MAY = datetime(2026, 5, 1, 9, tzinfo=UTC)
NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


def completed(heart: Heart, detail: str | None = TALK, **details: Any) -> Episode:
    """Record an episode, do what is due, and return what became of it."""
    episode = heart.record_episode(detail, **details)
    heart.work()
    return heart.get_episode(episode.id)


def procedure(heart: Heart, name: str) -> Procedure:
    cause = Cause("agent", "learned", "a test", effective_at=MAY)
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        return add_memory(connection, "aria", PROCEDURE, {"name": name}, cause=cause)


def counts(owner: psycopg.Connection) -> list[tuple[str, int, int]]:
    return owner.execute("select name, success_count, failure_count from heart.procedures order by name").fetchall()


def announcements(owner: psycopg.Connection) -> list[dict[str, Any]]:
    return [row[0] for row in owner.execute("select payload from heart.outbox where name = 'episode_completed'")]


# --- what is drawn ---


def test_a_closed_episode_gets_a_title_a_summary_and_the_shorter_levels(heart: Heart, owner: psycopg.Connection):
    episode = completed(heart)

    levels = owner.execute("select compressed, index_word from heart.episodes").fetchone()
    assert episode.title == "About ada the parcel is late"
    assert (episode.summary, levels) == ("Ada: the parcel is late.", ("Ada: the parcel is late.", "scripted"))
    assert (episode.state, episode.compression_tier, episode.completion_note) == ("closed", "raw", None)
    assert episode.completed_at is not None
    assert heart.work() == Worked()


def test_what_was_told_as_title_and_summary_stays(heart: Heart):
    episode = completed(heart, title="Late parcel", summary="It was late.")

    assert (episode.title, episode.summary) == ("Late parcel", "It was late.")


def test_the_vector_stands_for_title_and_summary(heart: Heart, owner: psycopg.Connection):
    episode = completed(heart)

    (stored,) = owner.execute("select embedding::text from heart.episodes").fetchone() or ("",)
    expected = WordEmbedder().embed_query(f"{episode.title}\n{episode.summary}")
    assert [float(x) for x in stored.strip("[]").split(",")] == pytest.approx(expected.tolist(), abs=1e-5)


def test_facts_are_learned_as_the_episode_was_lived(heart: Heart, owner: psycopg.Connection):
    episode = completed(
        heart,
        frame_used="task",
        encoded_censors=["no-fridays"],
        trust=30,
        scope="project",
        user_id="ada",
        project_id="move",
        started_at=MAY,
        ended_at=MAY + HOUR,
    )

    stored = facts(owner)
    assert [fact["content"] for fact in stored] == ["Ada orders from Bergen", "Parcels to Oslo take nine days"]
    told = {
        "source": f"episode:{episode.id}",
        "source_kind": "episode",
        "source_episode_id": episode.id,
        "learned_at": MAY + HOUR,
        "encoded_frame": "task",
        "encoded_censors": ["no-fridays"],
        "trust": 30,
        "scope": "project",
        "user_id": "ada",
        "project_id": "move",
    }
    assert [{name: fact[name] for name in told} for fact in stored] == [told, told]


def test_a_fact_that_is_known_is_confirmed(heart: Heart, owner: psycopg.Connection):
    known = heart.learn("Parcels to Oslo take nine days", learned_at=MAY - HOUR).memory

    completed(heart, started_at=MAY)

    assert heart.get(known.id).confirmation_count == 1
    assert len(facts(owner)) == 2
    assert str(known.id) in announcements(owner)[0]["facts"]


def test_at_most_24_facts_are_learned(heart: Heart, owner: psycopg.Connection):
    lines = [
        f"fact: {word} lives in house {number}" for number, word in enumerate("abcdefghijklmnopqrstuvwxyz", start=10)
    ]

    completed(heart, "\n".join(lines))

    assert [fact["content"][0] for fact in facts(owner)] == [*"abcdefghijklmnopqrstuvwx"]


def test_a_fact_that_cannot_be_stored_holds_up_nothing(heart: Heart, owner: psycopg.Connection):
    completed(heart, f"fact: {'x' * 40_000}\nfact: Ada orders from Bergen")

    assert [fact["content"] for fact in facts(owner)] == ["Ada orders from Bergen"]
    assert waiting(owner) is None


def test_the_completion_is_announced_with_what_came_of_it(heart: Heart, owner: psycopg.Connection):
    episode = completed(heart)

    (payload,) = announcements(owner)
    assert payload["episode_id"] == str(episode.id)
    assert set(payload["facts"]) == {str(fact["id"]) for fact in facts(owner)}
    assert payload["censors"] == []


@pytest.mark.parametrize("told", [{"tags": ["walk"]}, {"title": "A silent walk", "outcome": "success"}])
def test_an_episode_without_detail_is_skipped_with_the_reason(
    heart: Heart, owner: psycopg.Connection, writer: ScriptedWriter, told: dict[str, Any]
):
    episode = completed(heart, None, **told)

    assert episode.completed_at is not None
    assert episode.completion_note == "skipped: the episode has neither a detail nor a summary to draw from"
    assert (episode.summary, writer.told, waiting(owner)) == (None, [], None)
    assert announcements(owner) == [{"episode_id": str(episode.id), "facts": [], "censors": []}]


def test_an_episode_that_was_only_summarised_is_drawn_from_its_summary(heart: Heart, owner: psycopg.Connection):
    episode = completed(heart, None, summary="fact: Ada orders from Bergen")

    assert episode.completion_note is None
    assert [fact["content"] for fact in facts(owner)] == ["Ada orders from Bergen"]


def test_the_writer_is_told_how_it_ended(heart: Heart, writer: ScriptedWriter):
    completed(
        heart, participants=["Ada"], lessons_learned=["Order early."], outcome="partial", title="Parcels", ended_at=MAY
    )

    (told,) = writer.told
    assert (told.detail, told.title, told.outcome, told.ended_at) == (TALK, "Parcels", "partial", MAY)
    assert (list(told.participants), list(told.lessons)) == (["Ada"], ["Order early."])


def test_imported_episodes_are_completed_in_the_order_they_ended(
    heart: Heart, writer: ScriptedWriter, owner: psycopg.Connection
):
    told = [
        new_episode(f"fact: {text}", {"ended_at": f"{moment}T09:00:00Z"}, now=NOW)
        for text, moment in (("The office is in Faro.", "2026-05-03"), ("The office is in Porto.", "2026-05-02"))
    ]
    store_deferred(heart.agent, told, heart.agent.deadline(None))

    assert heart.work().completed == len(told)

    assert [each.detail for each in writer.told] == ["fact: The office is in Porto.", "fact: The office is in Faro."]
    assert owner.execute("select content, learned_at::date::text from heart.facts order by learned_at").fetchall() == [
        ("The office is in Porto.", "2026-05-02"),
        ("The office is in Faro.", "2026-05-03"),
    ]


def test_an_episode_that_just_closed_does_not_wait_for_an_imported_past(heart: Heart, writer: ScriptedWriter):
    told = [new_episode("fact: The office is in Faro.", {"ended_at": "2026-05-03T09:00:00Z"}, now=NOW)]
    store_deferred(heart.agent, told, heart.agent.deadline(None))
    heart.record_episode("fact: The kettle is new.")

    assert heart.work().completed == 1 + len(told)

    assert [each.detail for each in writer.told] == ["fact: The kettle is new.", "fact: The office is in Faro."]


# --- procedures, censors, decisions ---


@pytest.mark.parametrize(
    ("outcome", "counted"),
    [("success", (1, 0)), ("failure", (0, 1)), ("partial", (0, 0)), ("ongoing", (0, 0)), (None, (0, 0))],
)
def test_the_procedures_of_an_episode_share_its_outcome(
    heart: Heart, owner: psycopg.Connection, outcome: str | None, counted: tuple[int, int]
):
    used = [procedure(heart, name).id for name in ("pack", "ship")]
    procedure(heart, "wait")

    completed(heart, outcome=outcome, procedures_activated=used)

    assert counts(owner) == [("pack", *counted), ("ship", *counted), ("wait", 0, 0)]


def test_a_failure_suggests_censors_that_only_warn(heart: Heart, owner: psycopg.Connection):
    episode = completed(
        heart, "Ada: it broke.\nnever: ship glass without foam", outcome="failure", frame_used="task", trust=40
    )

    (censor,) = owner.execute(
        "select trigger, reason, severity, state, learned_from_episode_id, trust, encoded_frame from heart.censors"
    ).fetchall()
    assert censor == (
        "ship glass without foam",
        "it failed before",
        "warn",
        "active",
        episode.id,
        40,
        "task",
    )
    assert len(announcements(owner)[0]["censors"]) == 1


def test_a_success_suggests_no_censor(heart: Heart, owner: psycopg.Connection):
    completed(heart, "Ada: it worked.\nnever: ship glass without foam", outcome="success")

    assert owner.execute("select count(*) from heart.censors").fetchone() == (0,)


def decide(owner: psycopg.Connection, title: str, at: datetime, session_id: str | None) -> UUID:
    row = owner.execute(
        "insert into brain.decisions (agent_id, title, decided_at, session_id) "
        "values ('aria', %s, %s, %s) returning id",
        [title, at, session_id],
    ).fetchone()
    assert row
    return row[0]


def test_decisions_of_the_session_made_meanwhile_are_linked_both_ways(heart: Heart, owner: psycopg.Connection):
    early, here, late = (decide(owner, f"d{n}", MAY + n * HOUR, "monday") for n in (-1, 1, 3))
    elsewhere = decide(owner, "elsewhere", MAY + HOUR, "tuesday")

    episode = completed(
        heart, session_id="monday", started_at=MAY, ended_at=MAY + 2 * HOUR, decision_ids=[early], outcome="success"
    )

    linked = owner.execute("select id from brain.decisions where episode_id = %s", [episode.id]).fetchall()
    assert episode.decision_ids == [early, here]
    assert {row[0] for row in linked} == {early, here}
    assert late not in episode.decision_ids
    assert elsewhere not in episode.decision_ids
