"""One agent fills no disk: it keeps as many memories and bytes as its policy lets it, and is told what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from conftest import ScriptedJudge, ScriptedWriter, WordEmbedder

from nous_online.core.errors import QuotaExceeded
from nous_online.core.policy import LearnPolicy
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.api.problems import kind_of
from nous_online.memories import status

ENTRANCES: dict[str, Callable[[Heart], Any]] = {
    "learn": lambda heart: heart.learn("Tea helps"),
    "learn_deferred": lambda heart: heart.learn_deferred([("Tea helps", {})]),
    "start_episode": lambda heart: heart.start_episode("Tea"),
    "record_episode": lambda heart: heart.record_episode("Tea helped."),
    "store_procedure": lambda heart: heart.store_procedure("Brew tea", goals=["tea"]),
    "add_censor": lambda heart: heart.add_censor("boil milk", "it burns"),
}


def opened(database: Database, agent: str = "aria", **limits: int) -> Heart:
    return Heart.open(
        agent,
        database=database,
        embedder=WordEmbedder(),
        judge=ScriptedJudge(),
        writer=ScriptedWriter(),
        policy=replace(LearnPolicy(), **limits),
        works_in_background=False,
    )


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_no_entrance_keeps_more_memories_than_the_policy_lets(database: Database, entrance: str) -> None:
    heart = opened(database, most_memories=2)
    heart.learn_deferred([("Cats like fish", {}), ("Dogs like bones", {})])

    with pytest.raises(QuotaExceeded, match=r"holds 2 memories .* lets it keep 2 of .*nous erase --memory ID"):
        ENTRANCES[entrance](heart)

    with database.transaction("aria") as connection:
        assert connection.execute("select count(*) from heart.memories").fetchone() == (2,)
    assert heart.recall("what do cats like?")[0].content == "Cats like fish"


def test_bytes_are_limited_too_and_an_episode_can_not_grow_beyond_them(database: Database) -> None:
    heart = opened(database, most_bytes=1_000)
    episode = heart.start_episode("Tea")
    heart.update_episode(episode.id, append="x" * 600)

    for grow in (
        lambda: heart.update_episode(episode.id, append="y" * 600),
        lambda: heart.learn("z" * 600),
        lambda: heart.record_episode("z" * 600),
    ):
        with pytest.raises(QuotaExceeded, match="bytes"):
            grow()

    assert heart.learn("Tea helps").action == "stored"


def test_the_limit_of_one_agent_is_none_of_another(database: Database) -> None:
    opened(database, most_memories=1).learn("Tea helps")

    assert opened(database, "boris", most_memories=1).learn("Tea helps").action == "stored"


def test_repeats_are_not_taken_for_memories_and_a_higher_limit_makes_room(database: Database) -> None:
    heart = opened(database, most_memories=2)
    for _ in range(5):
        heart.learn("Tea helps")
    heart.learn("Cats like fish")
    with pytest.raises(QuotaExceeded):
        heart.learn("Dogs like bones")

    opened(database, most_memories=3).learn("Dogs like bones")

    assert heart.count() == {"active": 3}


def test_a_measurement_stands_for_a_while_and_what_another_process_stored_is_seen_after_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "STANDS_S", 0.0)
    monkeypatch.setattr(status, "WORTH", 0.0)
    heart, other = opened(database, most_memories=2), opened(database, most_memories=10)
    heart.learn("Tea helps")
    other.learn_deferred([("Cats like fish", {}), ("Dogs like bones", {})])
    status.KEPT.clear()

    with pytest.raises(QuotaExceeded):
        heart.learn("Birds like seeds")


def test_over_http_it_is_insufficient_storage() -> None:
    assert kind_of(QuotaExceeded("full")).status == 507
