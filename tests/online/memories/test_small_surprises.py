"""What a caller expects of the verbs without reading their pages first."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from nous_online.core.domain import Fact
from nous_online.core.errors import Conflict, InvalidInput, NotFound
from nous_online.heart import Heart
from nous_online.language.minilm import LocalMiniLM, session


@pytest.mark.parametrize("types", ["fact", ["fact"], ("fact",)])
def test_one_kind_is_recalled_by_its_name(heart: Heart, types: Any) -> None:
    heart.learn("Deploys go out on Tuesdays")
    heart.store_procedure("Deploys", goals=["go out on Tuesdays"])

    found = heart.recall("Deploys on Tuesdays", types=types)

    assert [each.memory.kind for each in found] == ["fact"]


@pytest.mark.parametrize("day", ["2026-05-01", date(2026, 5, 1)])
def test_a_plain_date_is_midnight_utc(heart: Heart, day: Any) -> None:
    learned = heart.learn("The office moved to Lyon", learned_at=day)

    assert learned.memory.learned_at == datetime(2026, 5, 1, tzinfo=UTC)


def test_a_procedure_of_steps_alone_is_a_workflow(heart: Heart) -> None:
    assert heart.store_procedure("Deploy", steps=["test", "build"]).kind == "workflow"
    assert heart.store_procedure("Review", goals=["see mistakes"], steps=["read"]).kind == "k_line"


def test_a_memory_of_any_kind_is_got_by_its_id(heart: Heart) -> None:
    memories = [
        heart.learn("Backups are kept for 30 days").memory,
        heart.start_episode("Shipping"),
        heart.store_procedure("Deploy", steps=["test"]),
        heart.add_censor("deploying on a Friday", "nobody is there"),
    ]

    assert [heart.get(memory.id) for memory in memories] == memories
    with pytest.raises(NotFound, match="no memory"):
        heart.get(uuid4())


def contradicted(heart: Heart, owner: psycopg.Connection) -> tuple[Fact, Fact]:
    """Two facts that somebody said contradict each other."""
    one, other = (heart.learn(text).memory for text in ("The cellar is dry", "Water stands in the cellar"))
    owner.execute(
        "insert into heart.contradictions (agent_id, memory_a, memory_b, detected_at)"
        " values ('aria', least(%(a)s::uuid, %(b)s::uuid), greatest(%(a)s::uuid, %(b)s::uuid), now())",
        {"a": one.id, "b": other.id},
    )
    return one, other


def test_a_contradiction_holds_both_facts_as_a_doubt_does_and_is_decided_by_naming_the_winner(
    heart: Heart, owner: psycopg.Connection
) -> None:
    one, other = contradicted(heart, owner)
    (found,) = heart.contradictions()

    assert {found.a.content, found.b.content} == {"The cellar is dry", "Water stands in the cellar"}
    assert [found.a, found.b] == [heart.get_fact(each) for each in (found.memory_a, found.memory_b)]
    with pytest.raises(InvalidInput, match="keep names"):
        heart.resolve_contradiction(found.id, keep=uuid4())
    with pytest.raises(InvalidInput, match="or keep"):
        heart.resolve_contradiction(found.id)

    resolved = heart.resolve_contradiction(found.id, keep=other.id)

    assert resolved.status == "resolved"
    assert {side.id: side.state for side in (resolved.a, resolved.b)} == {one.id: "superseded", other.id: "active"}
    assert (heart.get(one.id).state, heart.get(other.id).state) == ("superseded", "active")
    assert heart.resolve_contradiction(found.id, keep=other.id) == resolved
    with pytest.raises(Conflict):
        heart.resolve_contradiction(found.id, keep=one.id)


def test_what_is_recalled_shows_itself_in_one_line(heart: Heart) -> None:
    fact = heart.learn(
        "The gate code is on the yellow note behind the second door of the shed", learned_at="2026-05-01"
    )

    (found,) = heart.recall("gate code", types="fact", limit=1)

    head = str(fact.memory.id)[:8]
    assert repr(fact.memory) == (
        f"<fact {head} active 2026-05-01: 'The gate code is on the yellow note behind the second door …'>"
    )
    assert repr(found).startswith(f"<fact {found.score:.2f} {head} 2026-05-01: 'The gate code")


def test_whatever_a_verb_returns_shows_itself_in_one_line(heart: Heart, owner: psycopg.Connection) -> None:
    long = "and so on, " * 40
    one, _ = contradicted(heart, owner)
    returned = [
        *heart.statements(one.id),
        heart.record_episode(f"The move, {long}"),
        heart.start_episode(f"The move, {long}"),
        heart.store_procedure(f"Deploy, {long}", steps=["test"]),
        heart.add_censor(f"deploying, {long}", long),
        heart.record_decision(f"Use two clusters, {long}", rationale=long),
        *heart.contradictions(),
        heart.assemble_context(query="the cellar"),
    ]

    shown = [repr(each) for each in returned]

    assert [text for text in shown if len(text) > 160 or "\n" in text or not text.startswith("<")] == []
    assert [text.split()[0] for text in shown] == [
        "<statement", "<episode", "<episode", "<procedure", "<censor", "<decision", "<contradiction", "<context",
    ]  # fmt: skip


def test_closing_with_another_outcome_is_a_conflict(heart: Heart) -> None:
    episode = heart.start_episode("Shipping")
    closed = heart.close_episode(episode.id, outcome="success")

    assert heart.close_episode(episode.id, outcome="success").id == closed.id
    assert heart.close_episode(episode.id).outcome == "success"
    with pytest.raises(Conflict, match="was closed as 'success'"):
        heart.close_episode(episode.id, outcome="failure")


def test_who_hears_of_a_fact_hears_what_it_says(heart: Heart, owner: psycopg.Connection) -> None:
    heart.learn("Backups are kept for 30 days", subject="backups")

    payload = owner.execute("select payload from heart.outbox where name = 'fact_learned'").fetchone()

    assert payload == ({"subject": "backups", "content": "Backups are kept for 30 days"},)


def test_opening_a_heart_loads_the_local_models(database: Any) -> None:
    session.cache_clear()

    Heart.open("aria", database=database, embedder=LocalMiniLM(), works_in_background=False)

    assert session.cache_info().currsize == 3, "of the vectors, and both halves of the reader of pairs"


def test_a_command_that_reads_no_text_waits_for_no_model(database: Any) -> None:
    Heart.open("aria", database=database, embedder=LocalMiniLM(), works_in_background=False).close()
    session.cache_clear()

    heart = Heart.open("aria", database=database, embedder=LocalMiniLM(), works_in_background=False, loads_models=False)
    heart.list_memories()
    before = session.cache_info().currsize
    heart.learn("Backups are kept for 30 days")

    assert before == 0
    assert session.cache_info().currsize > 0
