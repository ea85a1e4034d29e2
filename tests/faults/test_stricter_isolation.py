"""Calls go on as they were written where the owner of a database makes a stricter isolation the default."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder

from nous_online.database.connection import Database
from nous_online.heart import Heart


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_crossing_calls_succeed_where_the_owner_makes_a_stricter_isolation_the_default(
    database_url: str, owner: psycopg.Connection, level: str
) -> None:
    owner.execute(f"alter database {owner.info.dbname} set default_transaction_isolation = '{level}'")  # type: ignore[arg-type]
    database = Database(database_url)
    heart = Heart.open(
        "aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), works_in_background=False
    )

    with ThreadPoolExecutor(8) as pool:
        actions = [each.action for each in pool.map(lambda _: heart.learn("Tea helps"), range(48))]
    with database.transaction("aria") as connection:
        found = connection.execute("show transaction_isolation").fetchone()
    with database.transaction("aria", is_snapshot=True) as connection:
        snapshot = connection.execute("show transaction_isolation").fetchone()
    database.close()

    assert (sorted(set(actions)), actions.count("stored")) == (["confirmed", "stored"], 1)
    assert (found, snapshot) == (("read committed",), ("repeatable read",))
