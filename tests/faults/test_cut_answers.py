"""An answer that never arrives: what was said again with its key is there once, whether it had been stored or not."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder
from fault_proxy import FaultProxy

from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database
from nous_online.heart import Heart

MOST_ANSWERS = 40
"""More than the server sends in one call of `learn`."""
STORED = "select count(*) from heart.requests where idempotency_key = %s"


@pytest.fixture
def proxy(database_url: str) -> Iterator[FaultProxy]:
    with FaultProxy.before(database_url) as opened:
        yield opened


def test_a_call_that_is_cut_after_any_answer_is_there_once_when_it_is_said_again(
    proxy: FaultProxy, database_url: str, owner: psycopg.Connection
) -> None:
    database = Database(proxy.url(database_url), max_connections=1)
    heart = Heart.open("aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge())
    answers = stored_though_cut = 0
    while answers < MOST_ANSWERS:
        told = {"idempotency_key": f"key {answers}", "deadline_s": 5}
        proxy.cut_after(answers)
        try:
            heart.learn(f"shelf {answers} holds tea", **told)
            break
        except Unavailable:
            stored_though_cut += owner.execute(STORED, [told["idempotency_key"]]).fetchone() == (1,)
        proxy.thaw()
        heart.learn(f"shelf {answers} holds tea", **told)
        answers += 1
    database.close()

    said = owner.execute("select count(*), count(distinct content) from heart.statements").fetchone()
    events = owner.execute("select count(*), count(distinct memory_id) from lifecycle.events").fetchone()
    assert (said, events) == ((answers + 1,) * 2, (answers + 1,) * 2)
    assert 0 < stored_though_cut < answers < MOST_ANSWERS
