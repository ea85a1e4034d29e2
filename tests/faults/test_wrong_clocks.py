"""A clock gone wrong, or a mistyped year, freezes no slot: nothing that was said counts as later than it can be."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder

from nous_online.core.errors import InvalidInput
from nous_online.database.connection import Database, prepare
from nous_online.heart import Heart
from nous_online.interfaces.exporting import export_agent, restore_agent
from nous_online.language.pairs.judging import Verdict

AHEAD = "2099-01-01T00:00:00+00:00"


def active(heart: Heart) -> list[str]:
    return [answer.content for answer in heart.recall("What is the build number of phoenix?")]


def test_a_value_that_has_yet_to_begin_hides_no_value_of_today_whichever_was_said_first(
    database: Database, embedder: WordEmbedder
) -> None:
    texts = [f"The build number of phoenix is {number}" for number in (7, 8, 9)]
    sure = ScriptedJudge({(one, other): Verdict.UPDATES for one in texts for other in texts})
    heart = Heart.open("aria", database=database, embedder=embedder, judge=sure, works_in_background=False)
    heart.learn("The build number of phoenix is 7", valid_from=AHEAD)

    heart.learn("The build number of phoenix is 8")
    heart.learn("The build number of phoenix is 9", valid_from=AHEAD)

    assert active(heart) == ["The build number of phoenix is 8"]


def test_a_key_takes_no_value_that_has_yet_to_begin(heart: Heart) -> None:
    heart.learn("The build number of phoenix is 8", key="phoenix/build")

    with pytest.raises(InvalidInput, match=r"lies ahead, and key 'phoenix/build' has a value that holds now"):
        heart.learn("The build number of phoenix is 9", valid_from=AHEAD, key="phoenix/build")

    assert active(heart) == ["The build number of phoenix is 8"]


def test_nothing_is_superseded_as_of_a_day_to_come(heart: Heart) -> None:
    old, new = (heart.learn(text).memory for text in ("The build number of phoenix is 7", "Tea helps"))

    with pytest.raises(InvalidInput, match="lies ahead"):
        heart.supersede_fact(old.id, new.id, reason="mistyped", at=AHEAD)


@pytest.fixture
def frozen(heart: Heart, owner: psycopg.Connection) -> Heart:
    """A memory of an earlier version, which took a fact of the year 2099."""
    heart.learn("The build number of phoenix is 7")
    owner.execute("set session_replication_role = replica")
    owner.execute("update heart.facts set learned_at = %(at)s, last_confirmed_at = %(at)s", {"at": AHEAD})
    owner.execute("update heart.statements set said_at = %s", [AHEAD])
    return heart


def test_what_an_earlier_version_dated_ahead_counts_from_its_writing_after_the_upgrade(
    frozen: Heart, owner: psycopg.Connection
) -> None:
    owner.execute("delete from migration.applied where number = 20")

    prepare(frozen.agent.database.url)
    frozen.learn("The build number of phoenix is 8")

    assert active(frozen) == ["The build number of phoenix is 8", "The build number of phoenix is 7"]
    assert owner.execute(
        "select count(*) from heart.facts f join heart.statements s on s.fact_id = f.id "
        "where greatest(learned_at, last_confirmed_at, said_at) > now()"
    ).fetchone() == (0,)


def test_what_an_export_dated_ahead_counts_from_its_writing_once_it_is_restored(frozen: Heart, tmp_path: Path) -> None:
    export_agent(frozen.agent.database, "aria", tmp_path / "aria.jsonl")

    restore_agent(frozen.agent.database, tmp_path / "aria.jsonl", agent_id="again")
    restored = Heart.open(
        "again", database=frozen.agent.database, embedder=frozen.agent.embedder, judge=frozen.agent.judge
    )
    restored.learn("The build number of phoenix is 8")

    assert active(restored) == ["The build number of phoenix is 8", "The build number of phoenix is 7"]
    restored.close()
