"""A night that ends at any of its steps, however it ends, is finished by the next run as if nothing had been."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import psycopg
import pytest
from night_crashes import EXIT_CODE, TIMES, contents, night_outcome, run_apart
from night_runs import NIGHT, remember
from turns import IS_ALL, TURN, in_turn

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_pipelines.failpoints import go_on, reach

WAYS = ("exception", "exit", "kill")
POINTS = (
    "snapshot begins",
    "snapshot table written",
    "snapshot part described",
    "snapshot described",
    "snapshot in place",
    "phases read",
    "plan made",
    "plan written",
    "checks written",
    "night held",
    "plan stored",
    "proposals decided",
    "proposals stored",
    "texts cooled",
    "memories changed",
    "usage added",
    "contradictions opened",
    "links added",
    "chunk committed",
    "facts marked",
    "words passed on",
    "plan closed",
    "outcome written",
)
"""In the order in which a night reaches them; some are reached for each table, or each chunk of proposals."""
TURNS = 6
ENDS = [(point, WAYS if IS_ALL else (WAYS[(place + TURN // TURNS) % len(WAYS)],)) for place, point in enumerate(POINTS)]
"""How a night ends at each step: by one way each, in turn, or by all of them where more examples are asked for."""
CODES = {"exception": 0, "exit": EXIT_CODE, "kill": -signal.SIGKILL}
COPIES = ("The office opens at nine.", "Cats like fish.") * 2


@pytest.fixture(scope="module")
def prepared(server, template):
    """A store of two agents in which a night has something to do of several kinds, and what the night makes of it."""
    from conftest import ScriptedJudge, ScriptedWriter, WordEmbedder

    name = f"prepared_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute(f"create database {name} template {template}")
        database = Database(server.dsn(name))
        for agent_id in ("aria", "ben"):
            heart = Heart.open(
                agent_id, database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), writer=ScriptedWriter(),
                works_in_background=False,
            )  # fmt: skip
            live(heart)
        database.close()
        yield name
        connection.execute(f"drop database {name} with (force)")


def live(heart: Heart) -> None:
    """Learn some things twice, use one of them, and close an episode that is old by the night."""
    remember(heart, *COPIES)
    for _ in range(3):
        found = heart.recall("when does the office open?", at=datetime(2026, 5, 20, tzinfo=UTC))
        heart.cite(found.id, [found[0].memory.id], at=datetime(2026, 5, 20, tzinfo=UTC))
    heart.record_episode(
        title="A deploy", detail="We deployed. It took 9 minutes.", summary="A deploy of 9 minutes.",
        started_at=datetime(2026, 5, 2, tzinfo=UTC), ended_at=datetime(2026, 5, 2, 1, tzinfo=UTC), outcome="success",
    )  # fmt: skip


@pytest.fixture
def store(server, prepared) -> Iterator[str]:
    """The URL of a copy of the prepared store."""
    yield from copied(server, prepared)


def copied(server, prepared) -> Iterator[str]:
    name = f"night_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute(f"create database {name} template {prepared}")
        yield server.dsn(name)
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture(scope="module")
def undisturbed(server, prepared, tmp_path_factory):
    """Every table as a night leaves it that nothing disturbs, and the steps it came by."""
    reached: list[str] = []
    for url in copied(server, prepared):
        outcome = night_outcome(url, tmp_path_factory.mktemp("undisturbed"), NIGHT, reached.append)
        assert outcome.is_success, outcome.failures
        return reached, read(url)
    raise AssertionError("a copy is always made")


def read(url: str, *, without: Iterable[str] = TIMES) -> dict[str, list[str]]:
    with psycopg.connect(url, autocommit=True) as owner:
        return contents(owner, without=without)


def test_a_night_comes_by_every_numbered_step_in_their_order(undisturbed):
    reached, left = undisturbed

    assert tuple(dict.fromkeys(reached)) == POINTS
    assert reached.count("chunk committed") == 2
    assert {"merged", "absorbed"} <= {word for row in left["lifecycle.events"] for word in row.split('"')}


def test_in_production_a_step_does_nothing():
    assert reach("plan made") is None


@pytest.mark.parametrize(("point", "ways"), in_turn(ENDS, of=TURNS), ids=in_turn(POINTS, of=TURNS))
def test_a_night_that_ends_at_a_step_is_finished_as_if_nothing_had_been(store, tmp_path, undisturbed, point, ways):
    is_kept = point == "snapshot in place"  # taken once and never again: each end needs a place of its own
    ends = [run_apart(store, tmp_path / way if is_kept else tmp_path, NIGHT, point=point, way=way) for way in ways]
    finished = night_outcome(store, tmp_path / ways[-1] if is_kept else tmp_path, NIGHT, go_on)

    for way, (code, said) in zip(ways, ends, strict=True):
        assert code == CODES[way]
        if way == "exception":
            is_success, failures = said
            assert is_success is False
            assert any(point in failure for failure in failures)
    assert (finished.is_success, finished.failures) == (True, ())
    differing = {table for table, rows in read(store).items() if rows != undisturbed[1][table]}
    assert differing == set()


@pytest.mark.parametrize("point", in_turn(["snapshot begins", "phases read"], of=2))
def test_a_full_disk_stops_the_night_and_names_the_file(store, tmp_path, point):
    before = read(store, without=())

    code, said = run_apart(store, tmp_path, NIGHT, point=point, way="full disk")

    assert code == 0
    is_success, failures = said
    assert not is_success
    assert any("can't be written" in failure and "is there space left" in failure for failure in failures)
    assert read(store, without=()) == before
    assert night_outcome(store, tmp_path, NIGHT, go_on).failures == ()
