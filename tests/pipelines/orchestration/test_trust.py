"""What is trusted less takes neither the place nor the date of what is trusted more, whoever judges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import WordEmbedder
from drawn import embedded_facts
from judged_pairs import proposals
from night_crashes import night_outcome
from night_runs import NIGHT, SAID

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import OfflineJudge
from nous_pipelines.failpoints import go_on

OLD = "The port of the staging database is 5432."
NEW = "The port of the staging database is 6000."
DAY = timedelta(days=1)


@pytest.fixture
def aria(database: Database) -> Heart:
    return Heart.open(
        "aria", database=database, embedder=WordEmbedder(), judge=OfflineJudge(), works_in_background=False
    )


@pytest.fixture
def run(database_url: str, tmp_path: Path) -> Callable[[date], None]:
    def night(night: date) -> None:
        outcome = night_outcome(database_url, tmp_path, night, go_on)
        assert outcome.is_success, outcome.failures

    return night


def imported(heart: Heart, content: str, *, trust: int, day: int) -> None:
    details: Any = {"trust": trust, "learned_at": SAID + day * DAY, "idempotency_key": f"{content} {day}"}
    heart.learn_deferred([(content, details)])


def standing(owner: psycopg.Connection, agent_id: str = "aria") -> list[tuple[str, int, str, str]]:
    """Return text, trust, state and contradiction status of an agent's facts, in the order they were stated."""
    query = """select content, trust, state, contradiction_status from heart.facts
               where agent_id = %s order by learned_at"""
    return owner.execute(query, [agent_id]).fetchall()


def test_a_repetition_that_is_trusted_less_makes_a_fact_no_newer(aria: Heart) -> None:
    known = aria.learn(OLD, trust=60, learned_at=SAID).memory

    repeated = aria.learn(OLD, trust=10, learned_at=SAID + 9 * DAY).memory
    confirmed = aria.learn(OLD, trust=60, learned_at=SAID + 3 * DAY).memory

    assert (repeated.id, repeated.confirmation_count, repeated.last_confirmed_at) == (known.id, 1, SAID)
    assert (confirmed.confirmation_count, confirmed.last_confirmed_at) == (2, SAID + 3 * DAY)


def test_a_merge_takes_over_neither_date_nor_confidence_of_what_is_trusted_less() -> None:
    text = """
        id | content       | trust | confidence | learned_at | tags
        ---|---------------|-------|------------|------------|-----
        a  | one two three | 60    | 0.5        | 2026-05-01 | x
        b  | one two three | 60    | 0.7        | 2026-05-03 |
        c  | one two three | 10    | 1.0        | 2026-05-20 | y
    """

    (proposal,) = proposals(embedded_facts(text, WordEmbedder()))

    (taken,) = [change.set for change in proposal.changes if change.action == "absorbed"]
    assert taken == {
        "confirmation_count": 2, "last_confirmed_at": "2026-05-03T00:00:00+00:00", "tags": ["x", "y"],
        "sources": [], "confidence": 0.7,
    }  # fmt: skip


def test_an_old_value_that_anybody_repeats_does_not_take_the_place_of_a_later_one(
    aria: Heart, run: Callable[[date], None], owner: psycopg.Connection
) -> None:
    imported(aria, OLD, trust=60, day=0)
    imported(aria, OLD, trust=10, day=9)
    run(NIGHT)
    assert [state for _, _, state, _ in standing(owner)] == ["active", "superseded"]

    imported(aria, NEW, trust=60, day=5)
    run(NIGHT + DAY)

    assert standing(owner) == [
        (OLD, 60, "superseded", "none"), (NEW, 60, "active", "none"), (OLD, 10, "superseded", "none"),
    ]  # fmt: skip


# --- three agents, one night ---


@pytest.fixture(scope="module")
def one_night(
    copy_of: Callable[[str], AbstractContextManager[str]], template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[psycopg.Connection, dict[str, Heart]]]:
    """Agents who heard a later value, while learning or by an import, or another wording, after a night."""
    with (
        copy_of(template) as url,
        closing(Database(url)) as database,
        psycopg.connect(url, autocommit=True) as owner,
    ):
        hearts = {
            name: Heart.open(
                name, database=database, embedder=WordEmbedder(), judge=OfflineJudge(), works_in_background=False
            )
            for name in ("online", "imported", "wordings")
        }
        hearts["online"].learn(OLD, trust=60, learned_at=SAID)
        hearts["online"].learn(NEW, trust=59, learned_at=SAID + DAY)
        imported(hearts["imported"], OLD, trust=60, day=0)
        imported(hearts["imported"], NEW, trust=59, day=1)
        imported(hearts["wordings"], "api team deploys every Friday.", trust=10, day=0)
        imported(hearts["wordings"], "The api team deploys every Friday", trust=60, day=1)
        outcome = night_outcome(url, tmp_path_factory.mktemp("home"), NIGHT, go_on)
        assert outcome.is_success, outcome.failures
        yield owner, hearts


@pytest.mark.parametrize("name", ["online", "imported"])
def test_a_later_value_that_is_trusted_less_supersedes_nothing_and_is_not_lost(one_night, name: str) -> None:
    owner, hearts = one_night

    assert standing(owner, name) == [(OLD, 60, "active", "open"), (NEW, 59, "active", "open")]
    assert len(hearts[name].contradictions()) == 1


def test_a_repetition_that_is_trusted_less_stays_behind_the_wording_that_is_trusted_more(one_night) -> None:
    owner, _ = one_night

    assert standing(owner, "wordings") == [
        ("api team deploys every Friday.", 10, "superseded", "none"),
        ("The api team deploys every Friday", 60, "active", "none"),
    ]
