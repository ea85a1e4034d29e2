"""Activating a procedure: found by any of its names, counted, in mind, noted and announced, at once or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from nous_online.core.domain import Procedure
from nous_online.core.errors import InvalidInput, NotFound, Refused
from nous_online.core.policy import DEFAULT_SESSION
from nous_online.heart import Heart

MAY = datetime(2026, 5, 1, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def procedure(heart: Heart) -> Procedure:
    return heart.store_procedure("Architecture Decision", goals=["choose"])


def in_mind(owner: psycopg.Connection, session_id: str) -> list[Any]:
    """What is in the working memory of a session, as it is stored."""
    row = owner.execute("select items from heart.working_memory where session_id = %s", [session_id]).fetchone()
    return row[0] if row else []


@pytest.mark.parametrize(
    "asked",
    ["Architecture Decision", "architecture-decision", "ARCHITECTURE_DECISION", " architecture decision ", "id"],
)
def test_a_procedure_is_found_by_id_name_or_slug(heart: Heart, procedure: Procedure, asked: str) -> None:
    loaded = heart.activate_procedure(procedure.id if asked == "id" else asked, at=JUNE)

    assert (loaded.id, loaded.activation_count, loaded.last_activated_at) == (procedure.id, 1, JUNE)


def test_an_exact_name_goes_before_a_slug(heart: Heart) -> None:
    heart.store_procedure("Ship it", goals=["a"])
    exact = heart.store_procedure("ship-it", goals=["b"])

    assert heart.activate_procedure("ship-it").id == exact.id


def test_a_slug_that_fits_several_asks_which(heart: Heart) -> None:
    heart.store_procedure("Ship it", goals=["a"])
    heart.store_procedure("ship-it", goals=["b"])

    with pytest.raises(InvalidInput, match="'Ship it', 'ship-it'"):
        heart.activate_procedure("SHIP IT")


@pytest.mark.parametrize("asked", ["nothing", "---", "architecture"])
def test_what_is_not_there_is_not_found(heart: Heart, procedure: Procedure, asked: str) -> None:
    with pytest.raises(NotFound, match=asked):
        heart.activate_procedure(asked)


def test_an_activated_procedure_is_in_mind_and_announced(
    heart: Heart, procedure: Procedure, owner: psycopg.Connection
) -> None:
    heart.activate_procedure("architecture-decision", session_id="s1")
    heart.activate_procedure("architecture-decision")

    for session_id in ("s1", DEFAULT_SESSION):
        assert str(procedure.id) in str(in_mind(owner, session_id))
    announced = owner.execute(
        "select memory_id, payload->>'session_id', payload->>'name' from heart.outbox "
        "where name = 'procedure_loaded' order by id"
    ).fetchall()
    assert announced == [(procedure.id, "s1", procedure.name), (procedure.id, DEFAULT_SESSION, procedure.name)]


def test_the_episode_that_is_open_names_the_procedure_once(heart: Heart, procedure: Procedure) -> None:
    episode = heart.start_episode("Choosing a store", session_id="s1")
    other = heart.start_episode("Gardening", session_id="s2")

    heart.activate_procedure(procedure.id, session_id="s1")
    heart.activate_procedure(procedure.id, session_id="s1")

    assert heart.get_episode(episode.id).procedures_activated == [procedure.id]
    assert heart.get_episode(other.id).procedures_activated == []


def test_without_a_session_the_latest_open_episode_names_it(heart: Heart, procedure: Procedure) -> None:
    episode = heart.start_episode("Choosing a store")

    heart.activate_procedure(procedure.id)

    assert heart.get_episode(episode.id).procedures_activated == [procedure.id]


def test_activations_are_counted_exactly_under_concurrency(heart: Heart, procedure: Procedure) -> None:
    heart.start_episode("Choosing a store", session_id="s1")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: heart.activate_procedure(procedure.id, session_id="s1"), range(18)))

    assert heart.get_procedure(procedure.id).activation_count == 18


def test_an_activation_that_fails_leaves_nothing(heart: Heart, procedure: Procedure, owner: psycopg.Connection) -> None:
    episode = heart.start_episode("Choosing a store", session_id="s1")
    owner.execute("alter table heart.working_memory add constraint full_up check (session_id <> 's1')")

    with pytest.raises(Refused, match="rule of the schema"):
        heart.activate_procedure(procedure.id, session_id="s1")

    assert heart.get_procedure(procedure.id) == procedure
    assert heart.get_episode(episode.id).procedures_activated == []
    assert owner.execute("select from heart.outbox where name = 'procedure_loaded'").fetchall() == []


def test_an_activation_that_was_replayed_does_not_turn_back_the_clock(heart: Heart, procedure: Procedure) -> None:
    heart.activate_procedure(procedure.id, at=JUNE)

    assert heart.activate_procedure(procedure.id, at=MAY).last_activated_at == JUNE


@pytest.mark.parametrize("session_id", ["", "s" * 101])
def test_a_session_must_have_a_name(heart: Heart, procedure: Procedure, session_id: str) -> None:
    with pytest.raises(InvalidInput, match="session_id"):
        heart.activate_procedure(procedure.id, session_id=session_id)
