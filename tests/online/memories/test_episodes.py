"""Episodes: started, told more of, closed, recorded."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from nous_online.core.domain import Artifact, Episode
from nous_online.core.errors import Conflict, InvalidInput, NotFound, Refused
from nous_online.heart import Heart
from nous_online.memories.episodes import current_episode

MAY = datetime(2026, 5, 1, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


def current(heart: Heart, session_id: str | None = None) -> Episode | None:
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        return current_episode(connection, heart.agent.id, session_id)


def events(owner: psycopg.Connection, episode: Episode) -> list[tuple[str, str, str]]:
    return owner.execute(
        "select action, from_state, to_state from lifecycle.events where memory_id = %s order by version_after",
        [episode.id],
    ).fetchall()


def queued(owner: psycopg.Connection) -> list[UUID]:
    return [row[0] for row in owner.execute("select episode_id from heart.completions").fetchall()]


def announced(owner: psycopg.Connection, name: str) -> list[UUID]:
    return [row[0] for row in owner.execute("select memory_id from heart.outbox where name = %s", [name]).fetchall()]


def test_a_started_episode_is_open_and_raw(heart: Heart):
    episode = heart.start_episode(
        "Plan the move", session_id="monday", participants=["Ada"], frame_used="task", encoded_censors=["no-fridays"]
    )

    assert (episode.state, episode.compression_tier, episode.title) == ("open", "raw", "Plan the move")
    assert (episode.frame_used, episode.encoded_censors, episode.participants) == ("task", ["no-fridays"], ["Ada"])
    assert (episode.ended_at, episode.completed_at, episode.session_id) == (None, None, "monday")


def test_an_episode_without_a_frame_is_neutral(heart: Heart):
    episode = heart.start_episode()

    assert (episode.frame_used, episode.encoded_censors) == (None, None)


def test_each_line_of_an_update_ends_up_in_the_detail(heart: Heart):
    episode = heart.start_episode()

    heart.update_episode(episode.id, append="Ada: shall we?")
    told = heart.update_episode(episode.id, append="Ben: we shall.\nAnd soon.")

    assert told.detail == "Ada: shall we?\nBen: we shall.\nAnd soon."


def test_the_event_of_a_line_keeps_the_line_and_not_all_before_it(heart: Heart, owner: psycopg.Connection):
    episode = heart.start_episode("Moving")
    for line in ("We packed.", "We drove: ü 🚚", "We unpacked."):
        heart.update_episode(episode.id, append=line)

    images = owner.execute(
        "select before, after from lifecycle.events where action = 'updated' order by version_after"
    ).fetchall()

    assert images == [
        ({"detail": None}, {"detail": "We packed."}),
        ({"detail": {"characters": 10}}, {"detail": {"appended": "\nWe drove: ü 🚚"}}),
        ({"detail": {"characters": 24}}, {"detail": {"appended": "\nWe unpacked."}}),
    ]


def test_a_line_can_be_taken_back_until_another_follows(heart: Heart):
    episode = heart.start_episode("Moving")
    for line in ("We packed.", "We drove: ü 🚚", "We drove back."):
        heart.update_episode(episode.id, append=line)

    heart.undo(episode.id, reason="we stayed")
    heart.undo(episode.id, reason="we never left")

    assert heart.get_episode(episode.id).detail == "We packed."


def test_the_words_of_an_open_episode_are_indexed_when_it_ends(heart: Heart, owner: psycopg.Connection):
    episode = heart.start_episode("Moving")
    heart.update_episode(episode.id, append="The wardrobe was heavy.")
    words = "select array_agg(lexeme order by lexeme) from heart.postings where memory_kind = 'episode'"
    while_open = owner.execute(words).fetchone()

    heart.close_episode(episode.id)

    assert while_open == (["move"],)
    assert owner.execute(words).fetchone() == (["heavi", "move", "wardrob"],)


def test_lists_grow_and_hold_everything_once(heart: Heart):
    first, second = uuid4(), uuid4()
    episode = heart.start_episode(tags=["move"], decision_ids=[first])

    told = heart.update_episode(
        episode.id, tags=["move", "office"], decision_ids=[second, first], lessons_learned=["Ask early."]
    )

    assert (told.tags, told.decision_ids, told.lessons_learned) == (
        ["move", "office"],
        [first, second],
        ["Ask early."],
    )


def test_an_update_that_tells_nothing_new_leaves_no_version(heart: Heart, owner: psycopg.Connection):
    episode = heart.start_episode("Plan the move", tags=["move"])

    same = heart.update_episode(episode.id, title="Plan the move", tags=["move"], surprise_level=None)

    assert same == episode
    assert events(owner, episode) == [("started", "new", "open")]


def test_closing_queues_the_completion_and_announces_it_once(heart: Heart, owner: psycopg.Connection):
    episode = heart.start_episode(started_at=MAY)
    heart.update_episode(episode.id, append="Ada: done.")

    closed = heart.close_episode(
        episode.id, outcome="success", surprise_level=0.25, lessons_learned=["Ask early."], ended_at=MAY + HOUR
    )
    again = heart.close_episode(episode.id, outcome="success", ended_at=MAY + 2 * HOUR)

    assert (closed.state, closed.outcome, closed.surprise_level) == ("closed", "success", 0.25)
    assert (closed.ended_at, closed.duration_seconds) == (MAY + HOUR, 3600)
    assert again == closed
    assert queued(owner) == announced(owner, "episode_closed") == [episode.id]
    assert [action for action, _, _ in events(owner, episode)] == ["started", "updated", "closed"]


def test_closing_from_many_threads_closes_once(heart: Heart, owner: psycopg.Connection):
    episode = heart.start_episode()

    with ThreadPoolExecutor(8) as pool:
        closed = list(pool.map(lambda _: heart.close_episode(episode.id, outcome="success"), range(8)))

    assert len({each.row_version for each in closed}) == 1
    assert announced(owner, "episode_closed") == [episode.id]


def test_lines_from_many_threads_are_all_kept(heart: Heart):
    episode = heart.start_episode()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: heart.update_episode(episode.id, append=f"line {n}"), range(16)))

    detail = heart.get_episode(episode.id).detail or ""
    assert sorted(detail.splitlines()) == sorted(f"line {n}" for n in range(16))


def test_a_closed_episode_takes_no_further_line_but_everything_else(heart: Heart):
    episode = heart.record_episode("Ada: done.")

    with pytest.raises(Refused, match="start another episode"):
        heart.update_episode(episode.id, append="Ada: wait!")

    told = heart.update_episode(episode.id, title="The end", tags=["late"], artifacts=[("pr", "#12")])
    assert (told.detail, told.title, told.tags) == ("Ada: done.", "The end", ["late"])


def test_a_new_title_of_a_closed_episode_is_what_it_is_found_by(heart: Heart, owner: psycopg.Connection):
    episode = heart.record_episode("Ada: done.", summary="All done.")
    before = owner.execute("select embedding from heart.episodes").fetchone()

    heart.update_episode(episode.id, title="Zebras")

    assert owner.execute("select embedding from heart.episodes").fetchone() != before


def test_recording_starts_and_closes_in_one_call(heart: Heart, owner: psycopg.Connection):
    decision = uuid4()

    episode = heart.record_episode(
        "Ada: done.",
        title="Move",
        summary="We moved.",
        started_at=MAY,
        ended_at=MAY + HOUR,
        decision_ids=[decision],
        outcome="partial",
        artifacts=[("commit", "4f3d51d"), ("file", "docs/move.md")],
    )

    assert (episode.state, episode.detail, episode.summary) == ("closed", "Ada: done.", "We moved.")
    assert (episode.duration_seconds, episode.decision_ids, episode.outcome) == (3600, [decision], "partial")
    assert heart.episode_artifacts(episode.id) == [Artifact("commit", "4f3d51d"), Artifact("file", "docs/move.md")]
    assert queued(owner) == announced(owner, "episode_closed") == [episode.id]
    assert owner.execute("select embedding is not null from heart.episodes").fetchone() == (True,)
    assert events(owner, episode) == [("recorded", "new", "closed")]


def test_a_recorded_episode_with_one_date_happened_in_that_moment(heart: Heart):
    began = heart.record_episode("a", started_at=MAY)
    ended = heart.record_episode("b", ended_at="2026-05-01T09:00:00Z")

    assert {(each.started_at, each.ended_at) for each in (began, ended)} == {(MAY, MAY)}


def test_artifacts_are_kept_once(heart: Heart):
    episode = heart.start_episode(artifacts=[("adr", "0008")])

    heart.update_episode(episode.id, artifacts=[("adr", "0008"), ("pr", "#12")])

    assert heart.episode_artifacts(episode.id) == [Artifact("adr", "0008"), Artifact("pr", "#12")]


def test_a_second_episode_of_a_session_closes_nothing_and_is_the_current_one(heart: Heart):
    first = heart.start_episode(session_id="monday", started_at=MAY)
    second = heart.start_episode(session_id="monday", started_at=MAY + HOUR)
    other = heart.start_episode(session_id="tuesday", started_at=MAY + 2 * HOUR)

    assert heart.get_episode(first.id).state == "open"
    assert current(heart, "monday") == second
    assert current(heart) == other
    heart.close_episode(second.id)
    assert current(heart, "monday") == first
    assert current(heart, "wednesday") is None


@pytest.mark.parametrize("session_id", [None, "default"])
def test_the_default_session_prefers_its_own_episode_to_a_later_one_of_another(heart: Heart, session_id: str | None):
    own = heart.start_episode(session_id=session_id, started_at=MAY)
    other = heart.start_episode(session_id="monday", started_at=MAY + HOUR)

    assert current(heart) == current(heart, "default") == own
    assert current(heart, "monday") == other

    heart.close_episode(own.id)
    assert current(heart) == other
    assert current(heart, "default") is None


def test_an_episode_of_another_agent_is_not_there(heart: Heart):
    other = Heart.open("basil", database=heart.agent.database, embedder=heart.agent.embedder, works_in_background=False)
    episode = other.start_episode("Plan the move")

    for call in (heart.get_episode, heart.close_episode, heart.episode_artifacts, heart.update_episode):
        with pytest.raises(NotFound, match=str(episode.id)):
            call(episode.id)
    assert current(heart) is None


# --- retries ---


def test_a_retry_with_the_same_key_tells_nothing_twice(heart: Heart, owner: psycopg.Connection):
    started = heart.start_episode("Plan", idempotency_key="start-1")
    once = heart.update_episode(started.id, append="Ada: hello", idempotency_key="turn-1")
    recorded = heart.record_episode("Ada: done.", idempotency_key="record-1")

    assert heart.start_episode("Plan", idempotency_key="start-1").id == started.id
    assert heart.update_episode(started.id, append="Ada: hello", idempotency_key="turn-1") == once
    assert heart.record_episode("Ada: done.", idempotency_key="record-1") == recorded
    assert owner.execute("select count(*) from heart.episodes").fetchone() == (2,)
    assert queued(owner) == [recorded.id]


def test_a_key_used_for_another_content_is_a_conflict(heart: Heart):
    heart.record_episode("Ada: done.", idempotency_key="record-1")

    with pytest.raises(Conflict, match="record-1"):
        heart.record_episode("Ben: done.", idempotency_key="record-1")


def test_a_key_used_for_another_episode_another_field_or_another_verb_is_a_conflict(heart: Heart):
    first, second = heart.start_episode("One"), heart.start_episode("Two")
    heart.update_episode(first.id, append="Ada: hello", outcome="success", idempotency_key="turn-1")
    heart.start_episode("Plan", session_id="monday", idempotency_key="start-1")
    heart.record_episode("Ada: done.", ended_at=MAY, idempotency_key="record-1")
    others: list[tuple[str, Callable[[], Episode]]] = [
        (
            "turn-1",
            lambda: heart.update_episode(second.id, append="Ada: hello", outcome="success", idempotency_key="turn-1"),
        ),
        (
            "turn-1",
            lambda: heart.update_episode(first.id, append="Ada: hello", outcome="failure", idempotency_key="turn-1"),
        ),
        ("turn-1", lambda: heart.record_episode("Ada: hello", outcome="success", idempotency_key="turn-1")),
        ("start-1", lambda: heart.start_episode("Plan", session_id="tuesday", idempotency_key="start-1")),
        ("record-1", lambda: heart.record_episode("Ada: done.", ended_at=MAY + HOUR, idempotency_key="record-1")),
    ]

    for key, tell in others:
        with pytest.raises(Conflict, match=key):
            tell()

    assert heart.get_episode(second.id) == second
    assert heart.get_episode(first.id).outcome == "success"


def test_a_retried_update_is_answered_after_its_episode_was_closed(heart: Heart):
    episode = heart.start_episode("Plan")
    heart.update_episode(episode.id, append="Ada: hello", title="The plan", idempotency_key="turn-1")
    closed = heart.close_episode(episode.id)

    assert heart.update_episode(episode.id, append="Ada: hello", title="The plan", idempotency_key="turn-1") == closed


def test_one_key_from_many_threads_is_one_episode(heart: Heart, owner: psycopg.Connection):
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: heart.record_episode("Ada: done.", idempotency_key="k").id, range(8)))

    assert len(ids) == 1
    assert owner.execute("select count(*) from heart.episodes").fetchone() == (1,)


# --- what can't be told ---


@pytest.mark.parametrize(
    ("tell", "message"),
    [
        (lambda heart, _: heart.start_episode("x" * 501), "500"),
        (lambda heart, _: heart.start_episode(trust=101), "trust"),
        (lambda heart, _: heart.start_episode(mood="good"), "unknown detail 'mood'"),
        (lambda heart, _: heart.start_episode(append="a line"), "unknown detail 'append'"),
        (lambda heart, _: heart.start_episode(session_id="x" * 101), "session_id"),
        (lambda heart, episode: heart.update_episode(episode, append="  "), "detail is empty"),
        (lambda heart, episode: heart.update_episode(episode, append="a\x00b"), "NUL"),
        (lambda heart, episode: heart.update_episode(episode, artifacts=[("branch", "main")]), "artifact"),
        (lambda heart, episode: heart.update_episode(episode, artifacts=["main"]), "pair"),
        (lambda heart, episode: heart.update_episode(episode, artifacts=[("pr", "x" * 201)]), "200"),
        (lambda heart, episode: heart.update_episode(episode, decision_ids=["x" * 201]), "200"),
        (lambda heart, episode: heart.update_episode(episode, decision_ids=[7]), "id or reference"),
        (lambda heart, episode: heart.update_episode(episode, decision_ids="first"), "list"),
        (lambda heart, episode: heart.update_episode(episode, decision_ids=[uuid4()] * 1001), "1,000"),
        (lambda heart, episode: heart.close_episode(episode, outcome="good"), "outcome"),
        (lambda heart, episode: heart.close_episode(episode, surprise_level=2), "surprise_level"),
        (lambda heart, episode: heart.close_episode(episode, ended_at="2020-01-01T00:00:00Z"), "before started_at"),
        (lambda heart, _: heart.record_episode("a", started_at=MAY, ended_at=MAY - HOUR), "before started_at"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_leaves_the_episode_open(
    heart: Heart, owner: psycopg.Connection, tell: Callable[[Any, UUID], object], message: str
):
    episode = heart.start_episode()

    with pytest.raises(InvalidInput, match=message):
        tell(heart, episode.id)

    assert owner.execute("select state, row_version from heart.episodes").fetchall() == [("open", 1)]


def test_a_procedure_that_is_not_there_can_not_be_named(heart: Heart, owner: psycopg.Connection):
    absent = uuid4()

    with pytest.raises(NotFound, match=str(absent)):
        heart.start_episode(procedures_activated=[absent])

    assert owner.execute("select count(*) from heart.episodes").fetchone() == (0,)


def test_a_detail_beyond_its_limit_is_refused_as_a_whole(heart: Heart):
    episode = heart.start_episode()
    told = heart.update_episode(episode.id, append="x" * (1024 * 1024 - 10))

    with pytest.raises(InvalidInput, match="1,048,576"):
        heart.update_episode(episode.id, append="y" * 10)

    assert heart.get_episode(episode.id) == told


def test_an_episode_that_would_last_longer_than_its_duration_can_say_is_refused(heart: Heart) -> None:
    long_ago = datetime(1900, 1, 1, tzinfo=UTC)
    opened = heart.start_episode("A voyage", started_at=long_ago)

    with pytest.raises(Conflict, match="more than the 24,855 days an episode may last"):
        heart.close_episode(opened.id)
    with pytest.raises(Conflict, match="mend started_at or ended_at"):
        heart.record_episode("A voyage", started_at=long_ago, ended_at=long_ago + timedelta(days=24_856))

    assert heart.close_episode(opened.id, ended_at=long_ago + timedelta(days=24_855)).state == "closed"
