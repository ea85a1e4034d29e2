"""Moving an agent to another embedding space: what is made beside, what moves at once, and in Dagster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
import numpy as np
import psycopg
import pytest
from conftest import WordEmbedder
from psycopg.sql import SQL, Identifier
from wide_space import STATEMENTS, WideEmbedder, as_night, filled, vectors_in

from nous_online.core.domain import KINDS
from nous_online.core.errors import Refused
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.cli.memory_commands import event_lines
from nous_online.language.embedding import Embedder
from nous_online.language.minilm import Vectors
from nous_pipelines.orchestration import reembedding
from nous_pipelines.orchestration.code_location import (
    PARTS,
    NextSpace,
    embedding_space_switched,
    next_embeddings,
)
from nous_pipelines.orchestration.reembedding import (
    BUCKETS,
    Due,
    all_due,
    build_indexes,
    fill_vectors,
    reembed,
    switch_agent,
    switch_agents,
)
from nous_pipelines.orchestration.resources import CommandedNight


@pytest.fixture
def night(database: Database) -> Iterator[Database]:
    """The database as the night sees it, with the wide space known."""
    with as_night(database) as opened_as_night:
        yield opened_as_night


@pytest.fixture
def full(heart: Heart) -> Heart:
    """An agent that has something of every kind, and something retired."""
    return filled(heart)


# --- filling and switching ---


def test_everything_of_an_agent_moves_with_an_event_each(
    full: Heart, night: Database, owner: psycopg.Connection
) -> None:
    before = owner.execute("select count(*) from heart.memories").fetchone()

    (move,) = reembed(night, WideEmbedder(), ["aria"])

    events = owner.execute(
        "select memory_kind, before, after, actor from lifecycle.events where action = 're-embedded'"
    ).fetchall()
    assert vectors_in(owner) == {("words-96", 96, 96)}
    assert owner.execute("select embedding_space_id from heart.agents").fetchone() == ("words-96",)
    assert (sum(move.moved.values()),) == before == (len(events),)
    assert {kind for kind, *_ in events} == set(KINDS)
    assert [event[1:] for event in events] == [
        ({"embedding_space_id": "words-64"}, {"embedding_space_id": "words-96"}, "operator")
    ] * len(events)


def test_the_history_shows_a_move_on_the_day_it_was_made(heart: Heart, night: Database) -> None:
    fact = heart.learn("The cellar is damp", learned_at="2026-01-05T08:00:00Z").memory

    reembed(night, WideEmbedder(), ["aria"])

    moved, learned = heart.history(fact.id)
    assert (moved.action, moved.happened_at, moved.effective_at) == ("re-embedded", moved.recorded_at, fact.learned_at)
    assert event_lines(moved).startswith(f"{moved.recorded_at:%Y-%m-%d %H:%M}")
    assert event_lines(learned).startswith("2026-01-05 08:00")


def test_filling_makes_only_what_is_missing_and_leaves_what_serves_alone(
    full: Heart, night: Database, owner: psycopg.Connection
) -> None:
    wide = WideEmbedder()
    fill_vectors(night, wide, ["aria"])
    first = wide.embedded_count

    again = fill_vectors(night, wide, ["aria"])
    full.learn("The mobile app is tested by hand")
    later = fill_vectors(night, wide, ["aria"])

    assert (again, later) == (0, 1)
    assert wide.embedded_count > first > 0
    assert vectors_in(owner) == {("words-64", 64, 64)}
    assert [each.content for each in full.recall("who deploys the api", types=["fact"], limit=1)] == [STATEMENTS[0]]


def test_a_memory_changed_after_it_was_embedded_is_embedded_anew(
    full: Heart, night: Database, owner: psycopg.Connection
) -> None:
    fill_vectors(night, WideEmbedder(), ["aria"])
    full.store_procedure("roll back", goals=["return to the last release"], core_tools=["kubectl"])

    assert all_due(night, ["aria"], "words-96")["aria"].missing == 1
    assert fill_vectors(night, WideEmbedder(), ["aria"]) == 1

    switch_agents(night, WideEmbedder(), ["aria"])
    stored = owner.execute("select embedding::text from heart.procedures").fetchone()
    expected = WideEmbedder().embed_query("roll back\nreturn to the last release\nkubectl")
    assert stored is not None
    assert np.allclose(np.fromstring(stored[0].strip("[]"), sep=","), expected, atol=1e-5)


def test_each_bucket_fills_its_own_part(full: Heart, night: Database) -> None:
    wide = WideEmbedder()
    total = all_due(night, ["aria"], "words-96")["aria"].missing

    parts = [fill_vectors(night, wide, ["aria"], buckets=[bucket]) for bucket in BUCKETS]

    assert sum(parts) == total
    assert max(parts) < total


def test_switching_is_refused_while_vectors_are_missing(
    full: Heart, night: Database, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembedding, "MOST_MISSING", 2)
    fill_vectors(night, WideEmbedder(), ["aria"], buckets=BUCKETS[:4])
    versions = owner.execute("select id, row_version from heart.memories order by id").fetchall()

    with pytest.raises(Refused, match=r"memories of agent 'aria' have no vector .*'words-96'.*next_embeddings"):
        switch_agents(night, WideEmbedder(), ["aria"])
    with pytest.raises(Refused, match="stays where it is"):
        switch_agent(night, WideEmbedder(), "aria")

    assert owner.execute("select id, row_version from heart.memories order by id").fetchall() == versions
    assert full.recall("who deploys the api", limit=1)


def test_the_last_few_are_caught_up_in_the_switch(full: Heart, night: Database, owner: psycopg.Connection) -> None:
    fill_vectors(night, WideEmbedder(), ["aria"])
    full.learn("The mobile app is tested by hand")

    switch_agent(night, WideEmbedder(), "aria")

    assert vectors_in(owner) == {("words-96", 96, 96)}


def test_moving_back_embeds_nothing_anew(full: Heart, night: Database, owner: psycopg.Connection) -> None:
    query = "select id, embedding::text, context_embedding::text from heart.facts order by id"
    before = owner.execute(query).fetchall()
    reembed(night, WideEmbedder(), ["aria"])

    class Counting(WordEmbedder):
        count = 0

        def embed_documents(self, texts: Sequence[str]) -> Vectors:
            Counting.count += len(texts)
            return super().embed_documents(texts)

    reembed(night, Counting(), ["aria"])

    assert Counting.count == 0
    assert owner.execute(query).fetchall() == before
    assert vectors_in(owner) == {("words-64", 64, 64)}


def test_moving_again_to_the_same_space_changes_nothing(
    full: Heart, night: Database, owner: psycopg.Connection
) -> None:
    reembed(night, WideEmbedder(), ["aria"])
    events = owner.execute("select count(*) from lifecycle.events").fetchone()

    assert reembed(night, WideEmbedder(), ["aria"]) == []
    assert owner.execute("select count(*) from lifecycle.events").fetchone() == events


def test_agents_move_one_by_one(full: Heart, night: Database, database: Database, owner: psycopg.Connection) -> None:
    other = Heart.open("borea", database=database, embedder=WordEmbedder(), works_in_background=False)
    other.learn(STATEMENTS[0])

    reembed(night, WideEmbedder(), ["aria"])

    homes = owner.execute("select id, embedding_space_id from heart.agents order by id").fetchall()
    assert homes == [("aria", "words-96"), ("borea", "words-64")]
    assert other.recall("who deploys the api")[0].content == STATEMENTS[0]


# --- indexes ---


def test_the_indexes_built_beside_are_those_the_schema_builds(night: Database, owner: psycopg.Connection) -> None:
    query = (
        "select indexname, indexdef from pg_indexes where schemaname = 'heart'"
        r" and indexname like '%hnsw\_' || left(md5('words-96'), 8)"
    )
    build_indexes(night.url, WideEmbedder.space)
    beside = owner.execute(query).fetchall()

    for name, _ in beside:
        owner.execute(SQL("drop index heart.{}").format(Identifier(name)))
    owner.execute("select heart.index_embedding_space('words-96')")

    assert len(beside) == 8
    assert sorted(owner.execute(query).fetchall()) == sorted(beside)


def test_a_large_move_lays_the_indexes_aside_and_builds_them_after_it(
    full: Heart, night: Database, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembedding, "LARGE_MOVE", 1)
    build_indexes(night.url, WideEmbedder.space)
    seen: list[int] = []
    moving = reembedding.switch_agent
    count = "select count(*) from pg_indexes where indexname like '%%hnsw\\_' || left(md5('words-96'), 8)"

    def watched(*arguments: Any, **details: Any) -> Any:
        seen.extend(owner.execute(count).fetchone() or ())
        return moving(*arguments, **details)

    monkeypatch.setattr(reembedding, "switch_agent", watched)
    reembed(night, WideEmbedder(), ["aria"])

    assert seen == [0]
    assert owner.execute(count).fetchone() == (8,)


# --- in Dagster, and on the terminal ---


class ToWide(NextSpace):
    def embedder(self) -> Embedder:
        return WideEmbedder()


def materialised(
    asset: dg.AssetsDefinition, night_run: CommandedNight, *, partition: str | None = None
) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [next_embeddings, embedding_space_switched],
        selection=[asset],
        partition_key=partition,
        resources={"night_run": night_run, "next_space": ToWide()},
        raise_on_error=False,
    )


def test_the_switch_waits_for_all_partitions_and_then_moves_everybody(
    full: Heart, night: Database, database_url: str, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All partitions but one are filled by what fills each of them."""
    monkeypatch.setattr(reembedding, "MOST_MISSING", 0)
    night_run = CommandedNight(database_url=database_url, home="")
    (last,) = owner.execute("select right(max(id::text), 1) from heart.facts").fetchone() or ()
    fill_vectors(night, WideEmbedder(), ["aria"], buckets=[part for part in PARTS.get_partition_keys() if part != last])

    early = materialised(embedding_space_switched, night_run)
    part = materialised(next_embeddings, night_run, partition=last)
    late = materialised(embedding_space_switched, night_run)

    assert not early.success
    assert any(
        "stays where it is" in str(event.step_failure_data.error) for event in early.all_events if event.is_step_failure
    )
    assert part.success
    assert late.success
    assert vectors_in(owner) == {("words-96", 96, 96)}


def test_an_agent_named_in_the_run_moves_alone(full: Heart, night: Database, database: Database) -> None:
    other = Heart.open("borea", database=database, embedder=WordEmbedder(), works_in_background=False)
    other.learn(STATEMENTS[0])
    fill_vectors(night, WideEmbedder(), ["aria", "borea"])

    settled = materialised(
        embedding_space_switched, CommandedNight(database_url=database.url, home="", agent_ids=["borea"])
    )

    assert settled.success
    assert set(all_due(night, ["aria", "borea"], "words-96")) == {"aria"}
    assert all_due(night, ["aria"], "words-96")["aria"].missing == 0


def test_a_dry_run_counts_and_changes_nothing(full: Heart, night: Database, owner: psycopg.Connection) -> None:
    left = all_due(night, ["aria"], "words-96")

    assert left == {"aria": Due(9, 9)}
    assert owner.execute("select count(*) from heart.next_embeddings").fetchone() == (0,)
