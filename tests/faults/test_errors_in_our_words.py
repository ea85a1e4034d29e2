"""What PostgreSQL says of a failure stays between us and the log: no row, constraint or host reaches a caller."""

from __future__ import annotations

import psycopg
import pytest

from nous_online.core.errors import InvalidInput, NotFound, NousError, Refused, Unavailable, Unsupported
from nous_online.database.connection import TROUBLES, Database, connection_failure
from nous_online.heart import Heart

FAILING = {
    "a missing table": ("select * from heart.sesame", Unsupported),
    "a missing column": ("select sesame from heart.facts", Unsupported),
    "a value of another type": ("select 'sesame'::integer", InvalidInput),
    "a second row of one key": (
        "insert into heart.agents (id, embedding_space_id) select 'aria', embedding_space_id from heart.agents",
        Refused,
    ),
    "a forbidden statement": ("select * from lifecycle.snapshots", Refused),
    "a failure of no kind we know": ("select 1 / 0 from generate_series(1, 1) sesame", InvalidInput),
}


@pytest.mark.parametrize(("statement", "kind"), FAILING.values(), ids=FAILING)
def test_no_word_of_the_driver_is_in_the_error_and_all_are_in_its_cause(
    heart: Heart, database: Database, statement: str, kind: type[NousError]
) -> None:
    with pytest.raises(kind) as raised, database.transaction("aria") as connection:
        connection.execute(statement)  # type: ignore[arg-type]

    cause = raised.value.__cause__
    assert isinstance(cause, psycopg.Error)
    assert str(cause).splitlines()[0] not in str(raised.value)
    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize("sign", [sign for signs, _ in TROUBLES for sign in signs])
def test_a_failed_connection_is_told_without_its_host(sign: str) -> None:
    said = connection_failure(
        psycopg.OperationalError(f'connection to server at "db.internal" failed: {sign} for user "nous"')
    )

    assert "db.internal" not in said
    assert said != "it refuses"


def test_a_host_nobody_knows_is_not_quoted_to_a_caller() -> None:
    with pytest.raises(Unavailable, match="nobody knows its host") as refused:
        Database("postgresql://nous@db.sesame.invalid/nous")

    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize("verb", ["learn", "learn_deferred", "add_censor"])
def test_the_episode_of_another_agent_is_not_found(heart: Heart, database: Database, verb: str) -> None:
    other = Heart.open(
        "boris", database=database, embedder=heart.agent.embedder, judge=heart.agent.judge, works_in_background=False
    )
    foreign = other.record_episode("Tea helped.").id
    calls = {
        "learn": lambda: heart.learn("Tea helps", source_episode_id=foreign),
        "learn_deferred": lambda: heart.learn_deferred([("Tea helps", {"source_episode_id": foreign})]),
        "add_censor": lambda: heart.add_censor("boil milk", "it burns", learned_from_episode_id=foreign),
    }

    with pytest.raises(NotFound, match=str(foreign)):
        calls[verb]()
