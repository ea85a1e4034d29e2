"""What learning has read of two statements is kept by what they say, for the night that would read them again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import JudgedStatement, OfflineJudge, Pair
from nous_online.memories.erasure import Part, erase_some
from nous_online.memories.learning import pair_hash, statement_digest

OPENS, OPENED = "The office in Lima opens at nine", "The office in Lima opens at ten"
AT = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.fixture
def reader(database: Database) -> Iterator[Heart]:
    """An agent that learns with the built-in judge."""
    with Heart.open("aria", database=database, embedder=WordEmbedder(), judge=OfflineJudge()) as heart:
        yield heart


def kept(owner: psycopg.Connection) -> list[tuple[object, ...]]:
    said = "select agent_id, pair_hash, model, prompt_version, verdict, later, reason from heart.judgements"
    return owner.execute(said).fetchall()


def hash_of(earlier: str, later: str, *, subject: str | None = None) -> str:
    one, other = (statement_digest(text, subject) for text in (earlier, later))
    return pair_hash(one, other, WordEmbedder.space.id, is_ordered=True)


def test_what_is_read_is_kept_as_the_night_would_ask_for_it(reader: Heart, owner: psycopg.Connection) -> None:
    reader.learn(OPENS, learned_at=AT)

    reader.learn(OPENED, learned_at=AT + timedelta(hours=1))

    vectors = WordEmbedder().embed_documents([OPENS, OPENED])
    one, other = JudgedStatement(OPENS, None, AT), JudgedStatement(OPENED, None, AT + timedelta(hours=1))
    (said,) = OfflineJudge().judge([Pair(one, other, float(vectors[0] @ vectors[1]))])
    assert kept(owner) == [
        ("aria", hash_of(OPENS, OPENED), said.model, said.prompt_version, said.verdict.value, "b", said.reason)
    ]


def test_the_subject_is_part_of_what_was_read(reader: Heart, owner: psycopg.Connection) -> None:
    reader.learn(OPENS, subject="office", learned_at=AT)

    reader.learn(OPENED, subject="office", learned_at=AT + timedelta(hours=1))

    assert [row[1] for row in kept(owner)] == [hash_of(OPENS, OPENED, subject="office")]


def test_what_was_said_before_the_fact_it_was_read_with_is_left_to_the_night(
    reader: Heart, owner: psycopg.Connection
) -> None:
    reader.learn(OPENS, learned_at=AT)

    reader.learn(OPENED, learned_at=AT - timedelta(days=1))

    assert kept(owner) == []


def test_a_statement_that_becomes_no_fact_leaves_no_verdict(reader: Heart, owner: psycopg.Connection) -> None:
    reader.learn(OPENS, learned_at=AT)
    reader.learn("The canteen in Lima opens at nine", learned_at=AT + timedelta(minutes=5))
    before = kept(owner)

    assert reader.learn(f"{OPENS}.", learned_at=AT + timedelta(hours=1)).action == "confirmed"

    assert kept(owner) == before


def test_another_judge_leaves_its_verdicts_to_the_night(database: Database, owner: psycopg.Connection) -> None:
    judge = ScriptedJudge()
    with Heart.open("aria", database=database, embedder=WordEmbedder(), judge=judge) as heart:
        heart.learn(OPENS, learned_at=AT)
        heart.learn(OPENED, learned_at=AT + timedelta(hours=1))

    assert judge.asked
    assert kept(owner) == []


def test_erasing_either_fact_erases_what_was_read_of_both(
    reader: Heart, owner: psycopg.Connection, database_url: str
) -> None:
    first = reader.learn(OPENS, learned_at=AT).memory
    reader.learn(OPENED, learned_at=AT + timedelta(hours=1))
    assert kept(owner)

    erase_some(
        database_url, "aria", Part((first.id,)), reason="asked for", erasers=[], embedder_of=lambda _: WordEmbedder()
    )

    assert kept(owner) == []
