"""Events leave the outbox in order, at least once, and nobody waits for a consumer that fails."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from listener import Listener, rested

from nous_online.core.deadline import pause_s
from nous_online.core.errors import InvalidInput
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.agent import Event, emit
from nous_online.queue.outbox import POLICY


@pytest.fixture
def listener() -> Listener:
    return Listener()


def cursor_of(owner: psycopg.Connection, consumer: str) -> tuple[Any, ...] | None:
    return owner.execute(
        "select failed_count, last_error, retry_at > now() from heart.outbox_cursors where consumer = %s", [consumer]
    ).fetchone()


def test_a_subscriber_hears_what_happens_after_it_subscribed(heart: Heart, listener: Listener) -> None:
    heart.learn("The api is deployed on Fridays", subject="deploys")
    heart.subscribe("fact_learned", listener, consumer="brain")
    learned = heart.learn("The cat sleeps on the sofa", subject="cat").memory

    delivered = heart.deliver()

    (event,) = listener.heard
    assert delivered == 1
    assert (event.name, event.agent_id, event.memory_id) == ("fact_learned", "aria", learned.id)


def test_a_subscriber_can_ask_for_everything_since_the_beginning(heart: Heart, listener: Listener) -> None:
    heart.publish("build_started", {"number": 1})
    heart.publish("build_ended", {"number": 1})
    heart.subscribe("*", listener, consumer="brain", since="beginning")

    heart.deliver()

    assert [(event.name, event.payload) for event in listener.heard] == [
        ("build_started", {"number": 1}),
        ("build_ended", {"number": 1}),
    ]


def test_a_subscriber_hears_only_what_it_asked_for_and_each_event_once(heart: Heart, listener: Listener) -> None:
    heart.subscribe("build_ended", listener, consumer="brain")
    for name in ("build_started", "build_ended", "build_started"):
        heart.publish(name)

    heart.deliver()
    heart.deliver()

    assert listener.names == ["build_ended"]


def test_a_subscriber_can_ask_for_several_names_in_one_queue(heart: Heart, listener: Listener) -> None:
    heart.subscribe(["build_started", "build_ended"], listener, consumer="brain")
    for name in ("build_started", "lunch_began", "build_ended"):
        heart.publish(name)

    heart.deliver()

    assert listener.names == ["build_started", "build_ended"]


def test_a_consumer_that_hears_one_name_is_not_given_another_beside_it(heart: Heart, listener: Listener) -> None:
    first = heart.subscribe("build_started", listener, consumer="brain")
    heart.subscribe(["build_started"], listener, consumer="brain").cancel()

    for name in ("build_ended", "*", ["build_started", "build_ended"]):
        with pytest.raises(InvalidInput, match="name all in one call, or choose another consumer name"):
            heart.subscribe(name, listener, consumer="brain")

    first.cancel()
    heart.subscribe("build_ended", listener, consumer="brain")
    heart.publish("build_ended")
    heart.deliver()
    assert listener.names == ["build_ended"]


@pytest.mark.parametrize("name", [[], ["Build"], [["*"]], None, {"build_ended"}])
def test_a_subscriber_asks_for_events_by_their_names(heart: Heart, listener: Listener, name: Any) -> None:
    with pytest.raises(InvalidInput, match="event"):
        heart.subscribe(name, listener, consumer="brain")


def test_a_slow_transaction_is_not_overtaken_and_not_lost(heart: Heart, database: Database, listener: Listener) -> None:
    heart.subscribe("*", listener, consumer="brain")
    with database.transaction("aria") as slow:
        emit(slow, "aria", "fact_learned", payload={"order": 1})
        heart.publish("after_the_slow_one", {"order": 2})
        heart.deliver()
        heard_meanwhile = list(listener.heard)

    heart.deliver()

    assert heard_meanwhile == []
    assert [event.payload["order"] for event in listener.heard] == [1, 2]


def test_an_id_drawn_early_by_a_late_transaction_is_still_delivered(
    heart: Heart, database: Database, listener: Listener
) -> None:
    """The later transaction holds the lower id: a cursor that went by ids alone would step over it."""
    heart.subscribe("*", listener, consumer="brain")
    with database.transaction("aria") as early:
        early.execute("select pg_current_xact_id()")
        with database.transaction("aria") as late:
            emit(late, "aria", "fact_learned", payload={"is": "late"})
            emit(early, "aria", "fact_learned", payload={"is": "early"})
        heart.deliver()

    heart.deliver()

    assert [event.payload["is"] for event in listener.heard] == ["early", "late"]


def test_transactions_are_ordered_by_number_not_by_their_digits(
    heart: Heart, owner: psycopg.Connection, listener: Listener
) -> None:
    heart.subscribe("*", listener, consumer="brain", since="beginning")
    for xid in ("100", "99", "9"):
        row = ["aria", "fact_learned", f'{{"xid": {xid}}}', xid]
        owner.execute("insert into heart.outbox (agent_id, name, payload, written_xid) values (%s, %s, %s, %s)", row)

    heart.deliver()

    assert [event.payload["xid"] for event in listener.heard] == [9, 99, 100]


def test_what_is_rolled_back_is_never_delivered(heart: Heart, database: Database, listener: Listener) -> None:
    heart.subscribe("*", listener, consumer="brain")

    def failing() -> None:
        with database.transaction("aria") as connection:
            emit(connection, "aria", "fact_learned")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()

    heart.publish("still_there")
    heart.deliver()

    assert listener.names == ["still_there"]


def test_a_failed_event_comes_again_before_any_later_one(heart: Heart, owner: psycopg.Connection) -> None:
    listener = Listener(failures=1)
    heart.subscribe("*", listener, consumer="brain")
    heart.publish("first")
    heart.publish("second")

    heart.deliver()
    at_rest = cursor_of(owner, "brain")
    heart.deliver()
    heard_at_rest = list(listener.heard)
    rested(owner)
    heart.deliver()

    assert at_rest is not None
    assert (at_rest[0], at_rest[2]) == (1, True)
    assert "(first): RuntimeError('the listener is ill')" in at_rest[1]
    assert heard_at_rest == []
    assert listener.names == ["first", "second"]
    assert (cursor_of(owner, "brain") or ())[0] == 0


def test_a_consumer_that_fails_holds_up_nobody_else(heart: Heart, listener: Listener) -> None:
    heart.subscribe("*", Listener(failures=99), consumer="a broken one")
    heart.subscribe("*", listener, consumer="brain")
    heart.publish("first")

    heart.deliver()

    assert listener.names == ["first"]


def test_what_was_heard_before_a_failure_is_not_heard_again(heart: Heart, owner: psycopg.Connection) -> None:
    heard: list[str] = []

    def handler(event: Event) -> None:
        heard.append(event.name)
        if event.name == "second" and heard.count("second") == 1:
            raise RuntimeError("not now")

    heart.subscribe("*", handler, consumer="brain")
    for name in ("first", "second", "third"):
        heart.publish(name)

    heart.deliver()
    rested(owner)
    heart.deliver()

    assert heard == ["first", "second", "second", "third"]


def test_rests_grow_up_to_five_minutes() -> None:
    limits = {"first_s": POLICY.first_delay_s, "longest_s": POLICY.longest_delay_s}

    assert [pause_s(count, **limits) for count in (1, 2, 3, 4)] == [1, 2, 4, 8]
    assert pause_s(5_000, **limits) == 300


def test_the_events_of_one_agent_are_not_heard_by_another(
    heart: Heart, database: Database, embedder: Any, judge: Any, listener: Listener
) -> None:
    other = Heart.open("ben", database=database, embedder=embedder, judge=judge, works_in_background=False)
    other.subscribe("*", listener, consumer="brain", since="beginning")
    heart.publish("for_aria")
    other.publish("for_ben")

    other.deliver()

    assert [(event.agent_id, event.name) for event in listener.heard] == [("ben", "for_ben")]


def test_a_cancelled_subscriber_keeps_its_place(heart: Heart, listener: Listener) -> None:
    subscription = heart.subscribe("*", listener, consumer="brain")
    subscription.cancel()
    subscription.cancel()
    heart.publish("meanwhile")
    heart.deliver()
    heard_after_cancelling = list(listener.heard)

    heart.subscribe("*", listener, consumer="brain")
    heart.deliver()

    assert heard_after_cancelling == []
    assert listener.names == ["meanwhile"]


def test_a_subscriber_that_cancels_while_it_listens_misses_nothing_later(heart: Heart) -> None:
    heard: list[str] = []

    def handler(event: Event) -> None:
        heard.append(event.name)
        subscription.cancel()

    subscription = heart.subscribe("*", handler, consumer="brain")
    heart.publish("first")
    heart.publish("second")
    heart.deliver()

    subscription = heart.subscribe("*", handler, consumer="brain")
    heart.deliver()

    assert heard == ["first", "second"]


def test_asking_for_other_names_during_a_round_misses_nothing_after_the_event_at_hand(heart: Heart) -> None:
    heard: list[str] = []

    def handler(event: Event) -> None:
        heard.append(event.name)
        subscription.cancel()
        heart.subscribe(["build_started", "build_ended"], lambda each: heard.append(each.name), consumer="brain")

    subscription = heart.subscribe("build_started", handler, consumer="brain")
    heart.publish("build_started")
    heart.publish("build_ended")
    heart.deliver()

    heart.deliver()

    assert heard == ["build_started", "build_ended"]


def test_cancelling_while_a_round_is_under_way_keeps_the_place(heart: Heart, listener: Listener) -> None:
    """One consumer's handler ends the subscription of another, whose turn was settled before."""
    heart.subscribe("*", lambda _event: late.cancel(), consumer="a first one")
    late = heart.subscribe("build_ended", listener, consumer="brain")
    heart.publish("build_ended")
    heart.deliver()

    heart.subscribe("build_ended", listener, consumer="brain")
    heart.deliver()

    assert listener.names == ["build_ended"]


def test_delivers_more_than_a_batch_in_order(heart: Heart, database: Database, listener: Listener) -> None:
    heart.subscribe("*", listener, consumer="brain")
    with database.transaction("aria") as connection:
        for number in range(250):
            emit(connection, "aria", "fact_learned", payload={"number": number})

    delivered = heart.deliver()

    assert delivered == 250
    assert [event.payload["number"] for event in listener.heard] == list(range(250))


@pytest.mark.parametrize(
    "name", ["", "Build", "build ended", "1st", "x" * 101, "fact_learned", "decision_failed", None]
)
def test_an_event_from_outside_has_a_name_of_its_own(heart: Heart, name: Any) -> None:
    with pytest.raises(InvalidInput, match="event"):
        heart.publish(name)


@pytest.mark.parametrize(
    "payload", [{"x": float("nan")}, {"x": object()}, {"x": "\ud800"}, {"x": "y" * 70_000}, ["x"], {"x": "\x00"}]
)
def test_a_payload_that_cannot_be_kept_is_refused(heart: Heart, owner: psycopg.Connection, payload: Any) -> None:
    with pytest.raises(InvalidInput):
        heart.publish("build_ended", payload)

    assert owner.execute("select count(*) from heart.outbox").fetchone() == (0,)


@pytest.mark.parametrize("consumer", ["", "heart", None, "x" * 101])
def test_a_consumer_has_a_name_of_its_own(heart: Heart, listener: Listener, consumer: Any) -> None:
    with pytest.raises(InvalidInput, match="consumer"):
        heart.subscribe("*", listener, consumer=consumer)


def test_a_handler_can_be_called(heart: Heart) -> None:
    with pytest.raises(InvalidInput, match="handler"):
        heart.subscribe("*", "print", consumer="brain")  # pyright: ignore[reportArgumentType]


def test_an_event_from_outside_may_tell_of_a_memory(heart: Heart, listener: Listener) -> None:
    heart.subscribe("*", listener, consumer="brain")
    memory_id = uuid4()

    heart.publish("seen_again", memory_id=memory_id)
    heart.deliver()

    assert [event.memory_id for event in listener.heard] == [memory_id]
