"""Events survive whoever delivers them: processes that die, race, run late, or wake up on another server."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from listener import Listener, rested
from twins import Say, Twin

from nous_online.core.deadline import Deadline
from nous_online.core.errors import Unsupported
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.agent import Event
from nous_online.queue.outbox import deliver_due


@pytest.fixture
def listener() -> Listener:
    return Listener()


def documented_renumbering() -> list[str]:
    """The statements that the decision record tells the owner of a restored database to run."""
    record = Path(__file__).parents[3] / "docs/decisions/0010-outbox-in-the-order-of-transactions.md"
    (block,) = re.findall(r"```sql\n(.*?)```", record.read_text("utf-8"), re.DOTALL)
    return [statement for statement in block.split(";") if statement.strip()]


def test_a_database_restored_from_a_dump_says_so_instead_of_waiting_for_ever(
    heart: Heart, owner: psycopg.Connection, listener: Listener
) -> None:
    heart.subscribe("*", listener, consumer="brain", since="beginning")
    heart.publish("before_the_dump")
    heart.deliver()
    owner.execute("update heart.outbox_cursors set last_xid = '4000000000' where consumer = 'brain'")
    owner.execute("update heart.outbox set written_xid = '3999999999'")

    heart.publish("after_the_restore")
    with pytest.raises(Unsupported, match="restored from a dump"):
        heart.deliver()
    for statement in documented_renumbering():
        owner.execute(statement)
    heart.deliver()

    assert listener.names == ["before_the_dump", "after_the_restore"]


def test_a_process_that_dies_while_it_delivers_leaves_the_events_to_the_next(
    heart: Heart, database: Database, embedder: Any, judge: Any, owner: psycopg.Connection, listener: Listener
) -> None:
    def dies(_event: Event) -> None:
        raise SystemExit

    heart.subscribe("*", dies, consumer="brain")
    heart.publish("first")
    with pytest.raises(SystemExit):
        heart.deliver()
    survivor = Heart.open("aria", database=database, embedder=embedder, judge=judge, works_in_background=False)
    survivor.subscribe("*", listener, consumer="brain")

    survivor.deliver()
    heard_during_the_lease = list(listener.heard)
    rested(owner)
    survivor.deliver()

    assert heard_during_the_lease == []
    assert listener.names == ["first"]


def test_a_process_killed_while_it_delivers_loses_nothing(
    heart: Heart, database_url: str, embedder: Any, owner: psycopg.Connection, listener: Listener
) -> None:
    def deliver(say: Say) -> None:
        def handle(event: Event) -> None:
            say(event.name)
            if event.name == "second":
                os.kill(os.getpid(), signal.SIGKILL)

        other = Heart.open("aria", database=Database(database_url), embedder=embedder, works_in_background=False)
        other.subscribe("*", handle, consumer="brain")
        other.deliver()

    heart.subscribe("*", listener, consumer="brain").cancel()
    for name in ("first", "second", "third"):
        heart.publish(name)
    killed = Twin(deliver).end()

    heart.subscribe("*", listener, consumer="brain")
    rested(owner)
    heart.deliver()

    assert killed == (-signal.SIGKILL, ["first", "second"])
    assert listener.names == ["first", "second", "third"]


def test_the_worker_beside_the_heart_delivers_by_itself(
    database: Database, embedder: Any, judge: Any, listener: Listener
) -> None:
    with Heart.open("aria", database=database, embedder=embedder, judge=judge) as heart:
        heart.subscribe("build_ended", listener, consumer="brain")
        heart.publish("build_ended")
        for _ in range(1000):
            if listener.heard:
                break
            time.sleep(0.01)

    assert listener.names == ["build_ended"]


def test_two_who_deliver_at_once_call_each_handler_once(heart: Heart) -> None:
    heard: list[int] = []
    entered, go_on = threading.Event(), threading.Event()

    def handler(event: Event) -> None:
        heard.append(event.id)
        entered.set()
        go_on.wait(10)

    heart.subscribe("*", handler, consumer="brain")
    heart.publish("first")
    first = threading.Thread(target=heart.deliver)
    first.start()
    entered.wait(10)

    second = heart.deliver()
    go_on.set()
    first.join(10)

    assert second == 0
    assert len(heard) == 1


def test_delivery_ends_between_two_events_when_its_time_is_up(heart: Heart) -> None:
    clock = threading.Event()
    heard: list[str] = []

    def slow(event: Event) -> None:
        heard.append(event.name)
        clock.wait(0.6)

    heart.subscribe("*", slow, consumer="brain")
    for name in ("first", "second", "third"):
        heart.publish(name)

    delivered = deliver_due(heart.agent, Deadline(1))

    assert delivered == len(heard) == 2


def test_a_handler_slower_than_its_lease_leaves_the_next_holder_in_peace(
    heart: Heart, database: Database, embedder: Any, judge: Any, owner: psycopg.Connection
) -> None:
    next_one = Heart.open("aria", database=database, embedder=embedder, judge=judge, works_in_background=False)
    entered, go_on = threading.Event(), threading.Event()
    next_delivery = threading.Thread(target=next_one.deliver)

    def overtaken(_event: Event) -> None:
        owner.execute("update heart.outbox_cursors set retry_at = now() where consumer = 'brain'")
        next_delivery.start()
        entered.wait(10)
        raise RuntimeError("too late to matter")

    def waits(_event: Event) -> None:
        entered.set()
        go_on.wait(10)

    heart.subscribe("*", overtaken, consumer="brain")
    next_one.subscribe("*", waits, consumer="brain")
    heart.publish("first")
    heart.deliver()
    held = "select retry_at > now() + interval '30 s', failed_count from heart.outbox_cursors where consumer = 'brain'"
    after_the_slow_one = owner.execute(held).fetchone()
    go_on.set()
    next_delivery.join(10)

    assert after_the_slow_one == (True, 0)
    assert owner.execute("select retry_at from heart.outbox_cursors where consumer = 'brain'").fetchone() == (None,)
