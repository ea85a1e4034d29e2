"""Two of everything at once, where it is the same thing: a history taken in, an agent erased."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg

from nous_online.heart import Heart
from nous_online.memories.erasure import count_rows, erase_agent, purge_transaction

LINES = 40


def test_a_history_that_four_take_in_at_once_is_there_once(heart: Heart, owner: psycopg.Connection) -> None:
    history = [(f"shelf {place} holds tea", {"idempotency_key": f"line {place}"}) for place in range(LINES)]

    with ThreadPoolExecutor(4) as pool:
        stored = [*pool.map(lambda _: heart.learn_deferred(history, deadline_s=30), range(4))]

    assert sorted(stored) == [0, 0, 0, LINES]
    assert owner.execute("select count(*), count(distinct content) from heart.facts").fetchone() == (LINES, LINES)


def test_two_who_erase_one_agent_at_once_leave_nothing_of_it(
    heart: Heart, database_url: str, owner: psycopg.Connection
) -> None:
    for place in range(5):
        heart.learn(f"shelf {place} holds tea")
    with purge_transaction(database_url) as connection:
        before = sum(count_rows(connection, "aria").values())

    with ThreadPoolExecutor(2) as pool:
        erased = [*pool.map(lambda _: erase_agent(database_url, "aria", reason="asked for"), range(2))]

    assert sum(sum(each.rows.values()) for each in erased) == before > 5
    with purge_transaction(database_url) as connection:
        assert count_rows(connection, "aria") == {}
