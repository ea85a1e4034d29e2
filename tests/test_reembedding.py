"""Moving an agent to another embedding space, while it goes on recalling and learning."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import psycopg
import pytest
from conftest import ScriptedJudge, ScriptedWriter, WordEmbedder, words
from psycopg.sql import SQL, Identifier

from nous_online.database import Database, register_space
from nous_online.embedding import Embedder, EmbeddingSpace, LocalMiniLM, Vectors, unit_rows
from nous_online.errors import InvalidInput, Moved, Refused
from nous_online.heart import Heart, embedder_of
from nous_online.kinds import KINDS
from nous_pipelines import reembedding
from nous_pipelines.assets.reembedding import PARTS, NextSpace, embedding_space_switched, next_embeddings
from nous_pipelines.nights import end_of
from nous_pipelines.reembedding import BUCKETS, Due, all_due, build_indexes, fill, reembed, settle, switch
from nous_pipelines.resources import NightRun
from nous_pipelines.snapshot import Snapshot, take_snapshot

STATEMENTS = [
    f"The {word} is deployed by team {number}" for number, word in enumerate(("api", "web", "worker", "docs"))
]


class WideEmbedder:
    """Another space than that of `WordEmbedder`, and wider: a cosine of the two can't even be computed."""

    space = EmbeddingSpace(id="words-96", model="wide words", weights_sha256="", dimensions=96)

    def __init__(self, on_embed: Callable[[], None] = lambda: None) -> None:
        self.on_embed = on_embed
        self.embedded_count = 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.on_embed()
        self.embedded_count += len(texts)
        seeds = [[int.from_bytes(word.encode()[-4:], "big") for word in words(text)] for text in texts]
        rows = [
            sum((np.random.default_rng(seed).standard_normal(96) for seed in each), np.full(96, 1e-6)) for each in seeds
        ]
        return unit_rows(np.asarray(rows, dtype=np.float32).reshape(len(texts), 96))

    def embed_query(self, text: str) -> Vectors:
        return self.embed_documents([text])[0]


@pytest.fixture
def night(database: Database) -> Iterator[Database]:
    """The database as the night sees it, with the wide space known."""
    register_space(database.url, WideEmbedder.space, is_indexed=False)
    opened = Database(database.url, role="nous_night", max_connections=3)
    yield opened
    opened.close()


@pytest.fixture
def full(heart: Heart) -> Heart:
    """An agent that has something of every kind, and something retired."""
    for statement in STATEMENTS:
        heart.learn(statement)
    heart.learn("Backups are kept for 30 days", context="They spoke about the backups of the api")
    heart.learn("Backups are kept for 90 days")
    heart.record_episode("We deployed the web app. It went well.", title="A deployment")
    heart.store_procedure("roll back", goals=["undo a deployment"], core_tools=["helm"])
    heart.add_censor("deploy on friday", "it failed before")
    heart.work()
    return heart


def opened(database: Database, embedder: Embedder, **details: Any) -> Heart:
    return Heart.open(
        "aria", database=database, embedder=embedder, judge=ScriptedJudge(), writer=ScriptedWriter(),
        works_in_background=False, **details,
    )  # fmt: skip


def snapshot_of(night: Database, folder: Path) -> Snapshot:
    """Take the snapshot of tonight as if it were over."""
    tonight = datetime.now(UTC).date()
    return take_snapshot(night, folder, night=tonight, probe_days=30, now=end_of(tonight))


def vectors_in(owner: psycopg.Connection) -> set[tuple[str, int, int]]:
    """Return which space ids, vector widths and widths of the space itself occur among all memories."""
    query = SQL("""
        select s.id, width, s.dimensions from heart.{table} m
        join heart.embedding_spaces s on s.id = m.embedding_space_id
        cross join lateral (values (vector_dims(embedding)), (vector_dims(context_embedding))) v(width)
        where width is not null""")
    tables = [Identifier(kind.table) for kind in KINDS.values()]
    return {row for table in tables for row in owner.execute(query.format(table=table)).fetchall()}


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


def test_filling_makes_only_what_is_missing_and_leaves_what_serves_alone(
    full: Heart, night: Database, owner: psycopg.Connection
) -> None:
    wide = WideEmbedder()
    fill(night, wide, ["aria"])
    first = wide.embedded_count

    again = fill(night, wide, ["aria"])
    full.learn("The mobile app is tested by hand")
    later = fill(night, wide, ["aria"])

    assert (again, later) == (0, 1)
    assert wide.embedded_count > first > 0
    assert vectors_in(owner) == {("words-64", 64, 64)}
    assert [each.content for each in full.recall("who deploys the api", types=["fact"], limit=1)] == [STATEMENTS[0]]


def test_a_memory_changed_after_it_was_embedded_is_embedded_anew(
    full: Heart, night: Database, owner: psycopg.Connection
) -> None:
    fill(night, WideEmbedder(), ["aria"])
    full.store_procedure("roll back", goals=["return to the last release"], core_tools=["kubectl"])

    assert all_due(night, ["aria"], "words-96")["aria"].missing == 1
    assert fill(night, WideEmbedder(), ["aria"]) == 1

    settle(night, WideEmbedder(), ["aria"])
    stored = owner.execute("select embedding::text from heart.procedures").fetchone()
    expected = WideEmbedder().embed_query("roll back\nreturn to the last release\nkubectl")
    assert stored is not None
    assert np.allclose(np.fromstring(stored[0].strip("[]"), sep=","), expected, atol=1e-5)


def test_each_bucket_fills_its_own_part(full: Heart, night: Database) -> None:
    wide = WideEmbedder()
    total = all_due(night, ["aria"], "words-96")["aria"].missing

    parts = [fill(night, wide, ["aria"], buckets=[bucket]) for bucket in BUCKETS]

    assert sum(parts) == total
    assert max(parts) < total


def test_switching_is_refused_while_vectors_are_missing(
    full: Heart, night: Database, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembedding, "LAST_FEW", 2)
    fill(night, WideEmbedder(), ["aria"], buckets=BUCKETS[:4])
    versions = owner.execute("select id, row_version from heart.memories order by id").fetchall()

    with pytest.raises(Refused, match=r"memories of agent 'aria' have no vector .*'words-96'.*next_embeddings"):
        settle(night, WideEmbedder(), ["aria"])
    with pytest.raises(Refused, match="stays where it is"):
        switch(night, WideEmbedder(), "aria")

    assert owner.execute("select id, row_version from heart.memories order by id").fetchall() == versions
    assert full.recall("who deploys the api", limit=1)


def test_the_last_few_are_caught_up_in_the_switch(full: Heart, night: Database, owner: psycopg.Connection) -> None:
    fill(night, WideEmbedder(), ["aria"])
    full.learn("The mobile app is tested by hand")

    switch(night, WideEmbedder(), "aria")

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
    query = "select indexname, indexdef from pg_indexes where schemaname = 'heart' and indexname like '%hnsw%'"
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
    moving = reembedding.switch
    count = "select count(*) from pg_indexes where indexname like '%%hnsw\\_' || left(md5('words-96'), 8)"

    def watched(*arguments: Any, **details: Any) -> Any:
        seen.extend(owner.execute(count).fetchone() or ())
        return moving(*arguments, **details)

    monkeypatch.setattr(reembedding, "switch", watched)
    reembed(night, WideEmbedder(), ["aria"])

    assert seen == [0]
    assert owner.execute(count).fetchone() == (8,)


# --- who is open meanwhile ---


def test_recall_and_learn_never_fail_during_the_whole_move(
    database: Database, night: Database, owner: psycopg.Connection
) -> None:
    heart = opened(database, WordEmbedder(), next_embedder=WideEmbedder())
    heart.learn_deferred([(f"The service number {n} is called {chr(97 + n % 26)}{n}", {}) for n in range(400)])
    done, failures, missed, learned = threading.Event(), list[Exception](), list[str](), list[str]()

    def live() -> None:
        turn = 0
        while not done.is_set():
            turn += 1
            try:
                text = f"Visitor {turn} likes colour{turn}"
                heart.learn(text)
                learned.append(text)
                for asked in (text, "The service number 7 is called h7"):
                    if heart.recall(asked, limit=1)[0].content != asked:
                        missed.append(asked)
            except Exception as error:  # whatever it is, it is what the test looks for
                failures.append(error)

    thread = threading.Thread(target=live)
    thread.start()
    try:
        wide = WideEmbedder(on_embed=lambda: time.sleep(0.05))
        moves = [reembed(night, each, ["aria"]) for each in (wide, WordEmbedder(), wide)]
        after = len(learned)
        while len(learned) < after + 3 and not failures:
            time.sleep(0.01)
    finally:
        done.set()
        thread.join()

    assert (failures, missed) == ([], [])
    assert [len(each) for each in moves] == [1, 1, 1]
    assert vectors_in(owner) == {("words-96", 96, 96)}
    assert heart.agent.embedder.space.id == "words-96"
    assert owner.execute("select count(*) from heart.facts").fetchone() == (400 + len(learned),)


@pytest.mark.parametrize(
    "verb",
    [
        lambda heart: heart.learn("The mobile app is tested by hand"),
        lambda heart: heart.learn_deferred([("The mobile app is tested by hand", {})]),
        lambda heart: heart.recall("who deploys the api"),
        lambda heart: heart.check_censors("deploy on friday"),
        lambda heart: heart.add_censor("drop a table", "it failed before"),
        lambda heart: heart.record_episode("We deployed the web app."),
        lambda heart: heart.store_procedure("roll forward", goals=["mend a deployment"]),
        lambda heart: heart.focus("Deploying the api"),
    ],
    ids=[
        "learn",
        "learn_deferred",
        "recall",
        "check_censors",
        "add_censor",
        "record_episode",
        "store_procedure",
        "focus",
    ],
)
def test_a_heart_left_open_with_the_old_embedder_says_so_and_stores_nothing(
    full: Heart, night: Database, owner: psycopg.Connection, verb: Callable[[Heart], object]
) -> None:
    reembed(night, WideEmbedder(), ["aria"])
    count = owner.execute("select count(*) from heart.memories").fetchone()

    with pytest.raises(Moved, match=r"'aria' was re-embedded.*'words-96'.*'words-64'; open its heart again"):
        verb(full)

    assert owner.execute("select count(*) from heart.memories").fetchone() == count
    assert vectors_in(owner) == {("words-96", 96, 96)}


def test_a_heart_opened_with_both_embedders_goes_over_by_itself(
    full: Heart, database: Database, night: Database
) -> None:
    heart = opened(database, WordEmbedder(), next_embedder=WideEmbedder())
    reembed(night, WideEmbedder(), ["aria"])

    assert heart.recall("who deploys the api", types=["fact"], limit=1)[0].content == STATEMENTS[0]
    assert heart.check_censors("deploy on friday")
    assert opened(database, WideEmbedder()).learn(STATEMENTS[1]).action == "confirmed"


def test_what_was_left_to_do_is_done_in_the_new_space(
    full: Heart, database: Database, night: Database, owner: psycopg.Connection
) -> None:
    heart = opened(database, WordEmbedder(), next_embedder=WideEmbedder())
    heart.record_episode("We shipped it.\nfact: The printer lives on floor 3")
    reembed(night, WideEmbedder(), ["aria"])

    assert heart.work().completed == 1
    assert heart.recall("where does the printer live", limit=1)[0].content == "The printer lives on floor 3"
    assert vectors_in(owner) == {("words-96", 96, 96)}


def test_an_agent_of_another_space_is_not_opened_with_a_strange_embedder(
    full: Heart, database: Database, night: Database
) -> None:
    reembed(night, WideEmbedder(), ["aria"])

    with pytest.raises(InvalidInput, match=r"'words-96'.*'words-64'.*nous reembed"):
        opened(database, WordEmbedder())


def test_the_environment_offers_the_embedder_of_a_space_it_can_serve() -> None:
    assert isinstance(embedder_of(LocalMiniLM.space), LocalMiniLM)
    assert embedder_of(WideEmbedder.space) is None


# --- what nights and people see of it ---


def test_a_night_of_the_past_sees_no_change_in_what_was_moved(full: Heart, night: Database, tmp_path: Path) -> None:
    full.recall("who deploys the api")
    earlier = snapshot_of(night, tmp_path / "before")
    before = earlier.table("facts")

    reembed(night, WideEmbedder(), ["aria"])

    later = snapshot_of(night, tmp_path / "after")
    past = later.table("facts")
    assert (earlier.table("recalls")["embedding"].null_count(), later.table("recalls")["embedding"].null_count()) == (
        0,
        1,
    )
    assert not any(past["is_rewound"])
    assert set(past["embedding_space_id"]) == {"words-96"}
    assert past.drop("embedding", "embedding_space_id", "row_version").equals(
        before.drop("embedding", "embedding_space_id", "row_version")
    )


def test_undoing_takes_back_what_was_done_to_a_memory_and_not_its_move(
    heart: Heart, database: Database, night: Database, owner: psycopg.Connection
) -> None:
    heart.store_procedure("roll back", goals=["undo a deployment"], core_tools=["helm"])
    kept = heart.store_procedure("roll back", goals=["return to the last release"], core_tools=["kubectl"])
    reembed(night, WideEmbedder(), ["aria"])

    event = opened(database, WideEmbedder()).undo(kept.id, reason="the old way was better")

    assert event.action == "revised"
    assert owner.execute("select goals, core_tools from heart.procedures").fetchone() == (
        ["undo a deployment"],
        ["helm"],
    )
    assert vectors_in(owner) == {("words-96", 96, 96)}


# --- in Dagster, and on the terminal ---


class ToWide(NextSpace):
    def embedder(self) -> Embedder:
        return WideEmbedder()


def materialised(
    asset: dg.AssetsDefinition, night_run: NightRun, *, partition: str | None = None
) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [next_embeddings, embedding_space_switched],
        selection=[asset],
        partition_key=partition,
        resources={"night_run": night_run, "next_space": ToWide()},
        raise_on_error=False,
    )


def test_the_switch_waits_for_all_partitions_and_then_moves_everybody(
    full: Heart, database_url: str, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembedding, "LAST_FEW", 0)
    night_run = NightRun(database_url=database_url)

    early = materialised(embedding_space_switched, night_run)
    parts = [materialised(next_embeddings, night_run, partition=part) for part in PARTS.get_partition_keys()]
    late = materialised(embedding_space_switched, night_run)

    assert not early.success
    assert any(
        "stays where it is" in str(event.step_failure_data.error) for event in early.all_events if event.is_step_failure
    )
    assert all(part.success for part in parts)
    assert late.success
    assert vectors_in(owner) == {("words-96", 96, 96)}


def test_an_agent_named_in_the_run_moves_alone(full: Heart, night: Database, database: Database) -> None:
    other = Heart.open("borea", database=database, embedder=WordEmbedder(), works_in_background=False)
    other.learn(STATEMENTS[0])
    fill(night, WideEmbedder(), ["aria", "borea"])

    settled = materialised(embedding_space_switched, NightRun(database_url=database.url, agent_ids=["borea"]))

    assert settled.success
    assert set(all_due(night, ["aria", "borea"], "words-96")) == {"aria"}
    assert all_due(night, ["aria"], "words-96")["aria"].missing == 0


def test_a_dry_run_counts_and_changes_nothing(full: Heart, night: Database, owner: psycopg.Connection) -> None:
    left = all_due(night, ["aria"], "words-96")

    assert left == {"aria": Due(9, 9)}
    assert owner.execute("select count(*) from heart.next_embeddings").fetchone() == (0,)
