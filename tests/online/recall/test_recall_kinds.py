"""One question to all kinds of memory: one ranking, each kind shown as it reads, nobody else's and nothing gone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nous_online.core.errors import InvalidInput
from nous_online.database.changes import Cause
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.procedures import flag_for_review
from nous_online.recall.recall import Recall, agents_with_stale_statistics, refresh_statistics

MAY, JUNE, JULY = (datetime(2026, month, 1, tzinfo=UTC) for month in (5, 6, 7))
HARBOUR = "heliotrope harbour"
KINDS = ("fact", "episode", "procedure", "censor")


@pytest.fixture
def full(heart: Heart) -> Heart:
    """An agent that knows one thing of each kind about the harbour."""
    heart.learn("The heliotrope harbour opens at six", learned_at=MAY, encoded_frame="task")
    heart.record_episode(
        "Ana: the heliotrope harbour was closed all day.",
        title="A day at the heliotrope harbour",
        summary="The heliotrope harbour stayed closed.",
        started_at=MAY,
        ended_at=MAY + timedelta(hours=2),
        frame_used="task",
    )
    heart.store_procedure(
        "Enter the heliotrope harbour",
        kind="workflow",
        goals=["be safe"],
        steps=["call the pilot", {"name": "slow down", "detail": "three knots"}],
        learned_at=MAY,
        encoded_frame="task",
    )
    heart.add_censor(
        "heliotrope harbour at night", "there are no lights", severity="block", learned_at=MAY, encoded_frame="task"
    )
    return heart


def kinds(recall: Recall) -> list[str]:
    return [answer.memory.kind for answer in recall]


def answer(recall: Recall, kind: str) -> str:
    (text,) = [each.text for each in recall if each.memory.kind == kind]
    return text


def test_one_question_is_answered_by_every_kind_in_one_ranking(full: Heart):
    found = full.recall(HARBOUR)

    assert sorted(kinds(found)) == sorted(KINDS)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_kinds_asked_for_answer(full: Heart, kind: str):
    assert kinds(full.recall(HARBOUR, types=[kind])) == [kind]


def test_the_best_answer_comes_first_whatever_its_kind(full: Heart):
    assert kinds(full.recall("no lights at night?"))[0] == "censor"
    assert kinds(full.recall("call the pilot and slow down"))[0] == "procedure"
    assert kinds(full.recall("when does it open, at six?"))[0] == "fact"
    assert kinds(full.recall("Ana was there all day, and it stayed closed"))[0] == "episode"


def test_the_limit_counts_all_kinds_together(full: Heart):
    assert len(full.recall(HARBOUR, limit=3)) == 3


def test_the_full_text_of_each_kind_reads_well(full: Heart):
    found = full.recall(HARBOUR)

    assert answer(found, "fact") == "The heliotrope harbour opens at six"
    assert answer(found, "episode") == (
        "A day at the heliotrope harbour\nAna: the heliotrope harbour was closed all day."
    )
    assert answer(found, "procedure") == (
        "Enter the heliotrope harbour\nGoals: be safe\n1. call the pilot\n2. slow down: three knots"
    )
    assert answer(found, "censor") == "heliotrope harbour at night: there are no lights"


def test_what_an_answer_is_about_and_its_category_are_told(full: Heart):
    told = {each.memory.kind: (each.memory.subject, each.memory.category) for each in full.recall(HARBOUR)}

    assert told["episode"][0] == "A day at the heliotrope harbour"
    assert told["procedure"][0] == "Enter the heliotrope harbour"
    assert told["censor"] == (None, "block")


def test_an_answer_is_shown_at_the_level_asked_for_or_the_next_more_detailed_one(
    full: Heart, owner: psycopg.Connection
):
    write_unseen(owner, "update heart.facts set compressed = 'opens at six', index_word = 'port-hours'")

    texts = {
        detail: {each.memory.kind: each.text for each in full.recall(HARBOUR, detail=detail)}
        for detail in ("full", "summary", "compressed", "index")
    }

    assert texts["index"]["fact"] == "port-hours"
    assert texts["compressed"]["fact"] == "opens at six"
    assert texts["summary"]["fact"] == texts["full"]["fact"] == "The heliotrope harbour opens at six"
    assert texts["summary"]["episode"] == "The heliotrope harbour stayed closed."
    assert "closed all day" in texts["full"]["episode"]


def test_an_unknown_level_is_refused(heart: Heart):
    with pytest.raises(InvalidInput, match="detail must be one of full, summary, compressed, index; got 'micro'"):
        heart.recall(HARBOUR, detail="micro")  # type: ignore[typeddict-item]


@pytest.mark.parametrize("kind", KINDS)
def test_the_frame_boosts_every_kind(full: Heart, kind: str):
    (same,) = full.recall(HARBOUR, types=[kind], frame="task")
    (other,) = full.recall(HARBOUR, types=[kind], frame="debug")

    assert (same.parts.frame_boost, other.parts.frame_boost) == (pytest.approx(1.3), 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_past_of_every_kind_can_be_asked_for(full: Heart, owner: psycopg.Connection, kind: str):
    for table in ("facts", "episodes", "procedures", "censors"):
        write_unseen(owner, f"update heart.{table} set state = 'archived', archived_at = '2026-06-02Z'")  # noqa: S608 - ours

    before, meanwhile, after = (
        kinds(full.recall(HARBOUR, types=[kind], as_of=as_of)) for as_of in (MAY - timedelta(days=1), JUNE, JULY)
    )

    assert (before, meanwhile, after) == ([], [kind], [])
    assert kinds(full.recall(HARBOUR, types=[kind])) == []


def test_what_happened_is_not_known_before_it_ended(full: Heart):
    during = MAY + timedelta(hours=1)

    assert "episode" not in kinds(full.recall(HARBOUR, as_of=during))
    assert "episode" in kinds(full.recall(HARBOUR, as_of=MAY + timedelta(hours=3)))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("update heart.censors set expires_at = now() - interval '1 minute'", "censor"),
        ("update heart.episodes set state = 'archived', archived_at = now()", "episode"),
        ("update heart.procedures set state = 'archived', archived_at = now()", "procedure"),
        ("update heart.facts set state = 'quarantined'", "fact"),
    ],
)
def test_what_has_expired_or_gone_answers_no_more(full: Heart, owner: psycopg.Connection, change: str, kind: str):
    write_unseen(owner, change)

    assert sorted(kinds(full.recall(HARBOUR))) == sorted(set(KINDS) - {kind})


def test_an_open_episode_and_a_procedure_under_review_still_answer(heart: Heart, owner: psycopg.Connection):
    heart.start_episode("A day at the heliotrope harbour")
    heart.store_procedure("Enter the heliotrope harbour", goals=["be safe"])
    write_unseen(owner, "update heart.procedures set state = 'review'")

    assert sorted(kinds(heart.recall(HARBOUR))) == ["episode", "procedure"]


def test_every_kind_is_counted_when_it_is_found(full: Heart, owner: psycopg.Connection):
    full.recall(HARBOUR)
    full.recall(HARBOUR)

    counted = owner.execute("select memory_kind, retrieved_count from heart.usage").fetchall()
    assert sorted(counted) == [(kind, 2) for kind in sorted(KINDS)]


def test_statistics_are_kept_for_each_kind_there_is(full: Heart, owner: psycopg.Connection):
    from nous_online.recall.recall import refresh_statistics

    before = [each.id for each in full.recall(HARBOUR)]
    with full.agent.database.transaction(full.agent.id) as connection:
        refresh_statistics(connection, full.agent.id)

    counted = owner.execute("select memory_kind, memory_count from heart.corpus_stats").fetchall()
    assert sorted(counted) == [(kind, 1) for kind in sorted(KINDS)]
    assert sorted(before) == sorted(each.id for each in full.recall(HARBOUR))


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    asker=st.sampled_from(["aria", "ben"]), user=st.sampled_from([None, "ana"]), project=st.sampled_from([None, "p"])
)
def test_no_answer_is_out_of_reach(two_agents: dict[str, Heart], asker: str, user: str | None, project: str | None):
    found = two_agents[asker].recall("harbour", user_id=user, project_id=project, limit=50)

    reach = {"system", "private"} | ({"user"} if user else set()) | ({"project"} if project else set())
    expected = {(asker, kind, scope) for kind in KINDS for scope in reach}
    assert {tuple(each.memory.source.split()) for each in found if each.memory.source} == expected


@pytest.fixture
def two_agents(database: Database, embedder: WordEmbedder, judge: ScriptedJudge) -> dict[str, Heart]:
    """Two agents who remember the same of every kind, for everybody, a user, a project and themselves."""
    opened = {"database": database, "embedder": embedder, "judge": judge, "works_in_background": False}
    hearts = {name: Heart.open(name, **opened) for name in ("aria", "ben")}
    for name, heart in hearts.items():
        for scope, reach in {
            "system": {"scope": "system"},
            "private": {},
            "user": {"user_id": "ana"},
            "project": {"scope": "project", "project_id": "p"},
        }.items():
            text = f"The harbour {scope}"
            heart.learn(text, source=f"{name} fact {scope}", **reach)
            heart.record_episode(text, title=text, source=f"{name} episode {scope}", **reach)
            heart.store_procedure(f"{name} {text}", goals=[text], source=f"{name} procedure {scope}", **reach)
            heart.add_censor(text, "why not", source=f"{name} censor {scope}", **reach)
    return hearts


def write_unseen(owner: psycopg.Connection, statement: str) -> None:
    """Write a row as some earlier night left it, without its event."""
    owner.execute("set session_replication_role = replica")
    owner.execute(statement)  # type: ignore[arg-type]
    owner.execute("set session_replication_role = origin")


def test_a_kind_the_agent_has_had_nothing_of_is_found_at_once(heart: Heart):
    heart.learn("The heliotrope harbour opens at six")
    before = kinds(heart.recall(HARBOUR))

    heart.add_censor("heliotrope harbour at night", "there are no lights")

    assert before == ["fact"]
    assert sorted(kinds(heart.recall(HARBOUR))) == sorted(kinds(heart.recall(HARBOUR))) == ["censor", "fact"]


def test_words_are_counted_again_only_where_memories_came_went_or_changed(
    two_agents: dict[str, Heart], database: Database, database_url: str, owner: psycopg.Connection
):
    names = sorted(two_agents)

    def to_count() -> list[str]:
        with closing(Database(database_url, role="nous_night")) as night, night.transaction() as connection:
            return list(agents_with_stale_statistics(connection, names))

    assert to_count() == names

    for name in names:
        with database.transaction(name) as connection:
            refresh_statistics(connection, name)

    assert to_count() == [], "as soon as they were counted"
    two_agents["ben"].learn("The harbour pilot starts at six.")
    assert to_count() == ["ben"]
    owner.execute("set session_replication_role = replica")
    owner.execute("delete from heart.facts where agent_id = 'aria'")
    assert to_count() == names


WORDS = ("harbour", "pilot", "heliotrope", "knot", "lamp", "tide")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
CHANGES: dict[str, Callable[[Heart, str, Any], object]] = {
    "learn": lambda heart, text, known: heart.learn_deferred([(f"the {text}", {"context": text[::-1]})]),
    "tell": lambda heart, text, known: heart.start_episode(text),
    "close": lambda heart, text, known: heart.record_episode(f"{text}. {text}", title=text),
    "forbid": lambda heart, text, known: heart.add_censor(text, "why not"),
    "practise": lambda heart, text, known: heart.store_procedure(text, goals=[text]),
    "tag": lambda heart, text, known: heart.update(known, tags=text.split()),
    "forget": lambda heart, text, known: heart.forget(known),
    "count": lambda heart, text, known: counted(heart),
}


def counted(heart: Heart, *, is_full: bool | None = None) -> list[list[object]]:
    """Bring the counts up to date and return them."""
    with heart.agent.database.transaction(heart.agent.id) as connection:
        refresh_statistics(connection, heart.agent.id, is_full=is_full)
        words = connection.execute("select lexeme, document_count from heart.term_stats order by 1").fetchall()
        corpus = connection.execute(
            "select to_jsonb(c) - 'refreshed_at' from heart.corpus_stats c order by 1"
        ).fetchall()
        pending = connection.execute("select count(*) from heart.word_changes").fetchall()
    return [words, corpus, pending]


@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), TEXTS), max_size=12))
def test_counts_that_were_moved_are_those_that_are_counted_anew(
    heart: Heart, owner: psycopg.Connection, changes: list[tuple[str, str]]
):
    for change, text in changes:
        known = owner.execute("select id from heart.facts where state = 'active' order by id desc limit 1").fetchall()
        if known or change not in {"tag", "forget"}:
            CHANGES[change](heart, text, known and known[0][0])

    with heart.agent.database.transaction(heart.agent.id) as connection:
        stale = agents_with_stale_statistics(connection, [heart.agent.id])
    moved = counted(heart)

    assert stale in ({}, {heart.agent.id: False})
    assert moved == counted(heart, is_full=True)


def test_a_change_that_is_rolled_back_is_not_counted(heart: Heart, owner: psycopg.Connection):
    heart.learn("The harbour opens at six")
    before = counted(heart)

    with owner.transaction(force_rollback=True):
        owner.execute("set constraints all deferred")
        owner.execute("update heart.facts set tags = '{lamp}'")

    assert counted(heart) == before


def test_words_of_an_agent_that_lost_memories_are_counted_anew(
    full: Heart, database_url: str, owner: psycopg.Connection
):
    counted(full)
    write_unseen(owner, "delete from heart.postings where memory_kind in ('fact', 'censor')")
    write_unseen(owner, "delete from heart.facts")
    write_unseen(owner, "delete from heart.censors")

    with closing(Database(database_url, role="nous_night")) as night, night.transaction() as connection:
        assert agents_with_stale_statistics(connection, ["aria"]) == {"aria": True}
    assert counted(full) == counted(full, is_full=True)
    with closing(Database(database_url, role="nous_night")) as night, night.transaction() as connection:
        assert agents_with_stale_statistics(connection, ["aria"]) == {}


def test_a_procedure_in_review_says_so_and_stands_behind_one_that_answers_nearly_as_well(heart: Heart):
    poor = heart.store_procedure("Moor the red barge with a long chain", goals=["moor the barge"], domain="chains")
    good = heart.store_procedure("Moor the red barge with one rope", goals=["moor the barge"], domain="barges")
    question = "moor the red barge with one rope, or a long chain"
    before = heart.recall(question)
    assert [each.id for each in before] == [poor.id, good.id], [each.parts for each in before]
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        cause = Cause("agent", "flagged", "it fails", effective_at=datetime.now(UTC))
        why = "worked in only 2 of 6 uses, less than 40%"
        flag_for_review(connection, "aria", procedure_ids=[poor.id], reason=why, cause=cause)

    found = heart.recall(question)
    context = heart.assemble_context(query=question, budget=2_000)

    assert [each.id for each in found] == [good.id, poor.id]
    assert found[1].text.splitlines()[:2] == [poor.name, f"In review: {why}"]
    assert "In review" not in found[0].text
    short = {detail: heart.recall(question, detail=detail)[1].text for detail in ("summary", "compressed")}
    assert short["summary"].splitlines() == [f"{poor.name}: moor the barge", f"In review: {why}"]
    assert short["compressed"] == f"{poor.name}: moor the barge In review: {why}"
    assert f"how to: Moor the red barge with a long chain In review: {why}" in context.text
    assert "how to: [in review] Moor the red barge with a long chain" in heart.assemble_context(budget=2_000).text
    assert "In review" not in heart.recall(question, as_of=datetime.now(UTC))[0].text
