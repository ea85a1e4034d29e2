"""Who is open while an agent moves to another embedding space, and what nights and people see of the move."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from conftest import WordEmbedder
from wide_space import STATEMENTS, WideEmbedder, as_night, filled, opened, vectors_in

from nous_online.core.errors import InvalidInput, Moved
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.embedding import embedder_of
from nous_online.language.minilm import LocalMiniLM
from nous_pipelines.nights import end_of
from nous_pipelines.orchestration.reembedding import reembed
from nous_pipelines.snapshots.snapshot import Snapshot, take_snapshot


@pytest.fixture
def night(database: Database) -> Iterator[Database]:
    """The database as the night sees it, with the wide space known."""
    with as_night(database) as opened_as_night:
        yield opened_as_night


@pytest.fixture
def full(heart: Heart) -> Heart:
    """An agent that has something of every kind, and something retired."""
    return filled(heart)


def snapshot_of(night: Database, folder: Path) -> Snapshot:
    """Take the snapshot of tonight as if it were over."""
    tonight = datetime.now(UTC).date()
    return take_snapshot(night, folder, night=tonight, probe_days=30, now=end_of(tonight))


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
    assert len(heart.check_censors("deploy on friday")) == 1
    assert opened(database, WideEmbedder()).learn(STATEMENTS[1]).action == "confirmed"


def test_what_was_left_to_do_is_done_in_the_new_space(
    full: Heart, database: Database, night: Database, owner: psycopg.Connection
) -> None:
    heart = opened(database, WordEmbedder(), next_embedder=WideEmbedder())
    heart.record_episode("We shipped it.\nfact: The printer lives on floor 3")
    reembed(night, WideEmbedder(), ["aria"])

    assert heart.work().completed == 1
    assert heart.recall("where does the printer live", types=["fact"])[0].content == "The printer lives on floor 3"
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
