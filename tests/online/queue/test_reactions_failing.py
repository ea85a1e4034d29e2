"""Reactions that fail, race or come late: never twice, never for ever, never silently."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from listener import last_error, rested, skipped
from stopwatch import stopwatch

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories.agent import emit


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("guardrail_triggered", {}),
        ("guardrail_triggered", {"censor_id": "no id"}),
        ("guardrail_triggered", {"censor_id": str(uuid4())}),
        ("guardrail_triggered", {"censor_ids": "abc"}),
        ("guardrail_triggered", {"action": 7}),
        ("calibration_drift", {}),
        ("calibration_drift", {"procedure_ids": [7]}),
        ("calibration_drift", {"domain": 7}),
        ("calibration_drift", {"domain": "x", "drift": "much"}),
    ],
)
def test_an_event_nobody_can_make_sense_of_is_passed_over_and_said_so(
    heart: Heart, owner: psycopg.Connection, caplog: pytest.LogCaptureFixture, name: str, payload: dict[str, Any]
) -> None:
    episode = heart.start_episode("Choosing a store")
    heart.publish(name, payload)
    decision = heart.record_decision("Keep one store")

    assert heart.get_episode(episode.id).decision_ids == [decision.id]
    assert skipped(owner) == [name]
    assert f"({name})" in last_error(owner)
    assert "passed over" in caplog.text


@pytest.mark.parametrize("name", ["decision_recorded", "decision_failed"])
@pytest.mark.parametrize("memory_id", [None, uuid4()])
def test_an_event_of_a_decision_that_is_not_there_is_passed_over(
    heart: Heart, database: Database, owner: psycopg.Connection, name: Any, memory_id: Any
) -> None:
    with database.transaction("aria") as connection:
        emit(connection, "aria", name, memory_id=memory_id, payload={"episode_id": str(uuid4())})

    heart.deliver()

    assert skipped(owner) == [name]


def test_a_failure_nobody_foresaw_is_tried_again_and_then_passed_over(
    heart: Heart, owner: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    procedure = heart.store_procedure("Deploy the api", goals=["calm"])
    owner.execute(
        "create function heart.break() returns trigger language plpgsql as $$ begin raise exception 'a bug'; end $$"
    )
    owner.execute("create trigger break before update on heart.procedures for each row execute function heart.break()")
    heart.publish("calibration_drift", {"procedure_ids": [str(procedure.id)]})
    failed_counts = [row[0] for row in owner.execute("select failed_count from heart.outbox_cursors").fetchall()]
    delivered_at_rest = heart.deliver()

    while not skipped(owner):
        rested(owner)
        heart.deliver()
        failed_counts += [row[0] for row in owner.execute("select failed_count from heart.outbox_cursors").fetchall()]

    assert delivered_at_rest == 0
    assert failed_counts == [1, 2, 3, 4, 5, 6, 7, 0]
    assert "a bug" in last_error(owner)
    assert heart.get_procedure(procedure.id).state == "active"


def test_what_a_failed_reaction_wrote_is_taken_back_and_the_others_stand(
    heart: Heart, owner: psycopg.Connection
) -> None:
    first, second = (heart.store_procedure(name, goals=["calm"]) for name in ("Deploy the api", "Bake bread"))
    owner.execute("alter table heart.procedures add check (name <> 'Bake bread' or state <> 'review')")

    heart.publish("calibration_drift", {"procedure_ids": [str(first.id), str(second.id)]})
    written_by_the_failed_one = heart.get_procedure(first.id).state
    heart.publish("calibration_drift", {"procedure_ids": [str(first.id)]})

    assert skipped(owner) == ["calibration_drift"]
    assert written_by_the_failed_one == "active"
    assert heart.get_procedure(first.id).state == "review"


def test_a_reaction_that_has_to_wait_keeps_nobody_past_the_deadline(
    heart: Heart, database_url: str, owner: psycopg.Connection
) -> None:
    episode = heart.start_episode("Choosing a store")
    heart.publish("build_ended")
    with psycopg.connect(database_url) as stalled:
        stalled.execute("select from heart.outbox_cursors for update")
        took_s = stopwatch()
        decision = heart.record_decision("Keep one store", deadline_s=1)
        lasted_s = took_s()
        stalled.rollback()

    heart.deliver()

    assert lasted_s < 2
    assert heart.get_episode(episode.id).decision_ids == [decision.id]


def test_many_decisions_at_once_are_all_linked(heart: Heart) -> None:
    episode = heart.start_episode("Choosing a store")

    with ThreadPoolExecutor(6) as pool:
        decisions = list(pool.map(lambda number: heart.record_decision(f"Decision {number}"), range(24)))
    heart.deliver()

    assert set(heart.get_episode(episode.id).decision_ids) == {decision.id for decision in decisions}
    assert len(heart.decisions(episode_id=episode.id)) == 24


def test_many_reactors_at_once_react_once(heart: Heart, database: Database) -> None:
    censor = heart.add_censor("deploy on Friday", "nobody is there", escalation_threshold=1000)
    with database.transaction("aria") as connection:
        for _ in range(50):
            emit(connection, "aria", "guardrail_triggered", memory_id=censor.id)

    threads = [threading.Thread(target=heart.deliver) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    heart.deliver()

    assert heart.get_censor(censor.id).activation_count == 50


def test_a_reaction_survives_a_process_that_ended_right_after_its_event(
    heart: Heart, database: Database, embedder: Any, judge: Any
) -> None:
    censor = heart.add_censor("deploy on Friday", "nobody is there")
    with database.transaction("aria") as connection:
        emit(connection, "aria", "guardrail_triggered", memory_id=censor.id)

    Heart.open("aria", database=database, embedder=embedder, judge=judge, works_in_background=False).deliver()

    assert heart.get_censor(censor.id).activation_count == 1


def test_subscribers_hear_of_decisions_as_the_heart_does(heart: Heart) -> None:
    heard: list[str] = []
    heart.subscribe("*", lambda event: heard.append(event.name), consumer="brain")
    decision = heart.record_decision("Keep one store")
    heart.resolve_decision(decision.id, status="failed")

    heart.deliver()

    assert heard[:2] == ["decision_recorded", "decision_failed"]
