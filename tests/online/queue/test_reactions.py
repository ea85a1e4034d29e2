"""What the heart does about events, exactly once, and never silently not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import psycopg
import pytest
from listener import last_error, rested, skipped

from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.minilm import Vectors
from nous_online.memories.agent import PROBE


class SickEmbedder:
    """An embedder that can fall ill."""

    def __init__(self, healthy: Any) -> None:
        self.healthy = healthy
        self.space = healthy.space
        self.is_ill = False
        self.is_mad = False
        self.asked: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.asked.extend(texts)
        if self.is_ill:
            raise RuntimeError("ill")
        if self.is_mad:
            return np.full((len(texts), 64), np.nan, dtype=np.float32)
        return self.healthy.embed_documents(texts)

    def embed_query(self, text: str) -> Vectors:
        return self.embed_documents([text])[0]


# --- a decision was recorded ---


def test_a_recorded_decision_is_linked_to_the_current_episode(heart: Heart) -> None:
    episode = heart.start_episode("Choosing a store")

    decision = heart.record_decision("Keep one store")

    assert decision.episode_id == episode.id
    assert heart.get_decision(decision.id) == decision
    assert heart.get_episode(episode.id).decision_ids == [decision.id]
    assert heart.decisions(episode_id=episode.id) == [heart.get_decision(decision.id)]


def test_a_decision_of_a_session_is_linked_to_its_episode(heart: Heart) -> None:
    mine = heart.start_episode("Mine", session_id="s")
    other = heart.start_episode("Begun later", session_id="t")

    decision = heart.record_decision("Keep one store", session_id="s")

    assert heart.get_episode(mine.id).decision_ids == [decision.id]
    assert heart.get_episode(other.id).decision_ids == []


def test_a_decision_can_be_linked_to_an_episode_that_is_over(heart: Heart) -> None:
    heart.start_episode("The current one")
    over = heart.record_episode("We compared two stores", title="Stores")

    decision = heart.record_decision("Keep one store", episode_id=over.id)

    assert heart.get_decision(decision.id).episode_id == over.id
    assert heart.get_episode(over.id).decision_ids == [decision.id]


def test_a_decision_without_an_episode_is_only_recorded(heart: Heart, owner: psycopg.Connection) -> None:
    decision = heart.record_decision("Keep one store")

    assert heart.get_decision(decision.id).episode_id is None
    assert skipped(owner) == []


def test_a_late_reaction_links_the_episode_of_then(heart: Heart, database: Database, owner: psycopg.Connection) -> None:
    """The decision waits behind a slow transaction while its episode ends and another begins."""
    then = heart.start_episode("Then", session_id="s")
    with database.transaction("aria") as slow:
        slow.execute("select pg_current_xact_id()")
        decision = heart.record_decision("Keep one store", session_id="s")
        linked_meanwhile = heart.get_decision(decision.id).episode_id
        heart.close_episode(then.id)
        heart.start_episode("Now", session_id="s")

    heart.deliver()

    assert linked_meanwhile is None
    assert heart.get_decision(decision.id).episode_id == then.id
    assert heart.get_episode(then.id).decision_ids == [decision.id]


# --- a decision failed ---


def test_a_failed_decision_leaves_a_censor_that_warns(heart: Heart) -> None:
    decision = heart.record_decision("Deploy the api on Friday evening", rationale="It is quiet then")

    heart.resolve_decision(decision.id, status="failed", outcome="Nobody was there to roll it back")

    (censor,) = heart.list_censors()
    assert (censor.trigger, censor.reason) == ("Deploy the api on Friday evening", "Nobody was there to roll it back")
    assert (censor.severity, censor.learned_from_decision_id) == ("warn", decision.id)
    (fired,) = heart.check_censors("Deploy the api on Friday evening")
    assert fired.censor.id == censor.id


@pytest.mark.parametrize(
    ("rationale", "reason"), [("It is quiet then", "It is quiet then"), (None, "'Deploy on Friday' was decided before")]
)
def test_a_failure_without_outcome_says_what_is_known(heart: Heart, rationale: str | None, reason: str) -> None:
    decision = heart.record_decision("Deploy on Friday", rationale=rationale)

    heart.resolve_decision(decision.id, status="failed")

    assert heart.list_censors()[0].reason.startswith(reason)


def test_failing_twice_at_the_same_leaves_one_censor(heart: Heart) -> None:
    for _ in range(2):
        decision = heart.record_decision("Deploy the api on Friday evening")
        heart.resolve_decision(decision.id, status="failed")

    assert len(heart.list_censors()) == 1


def test_very_long_titles_and_outcomes_leave_a_censor_too(heart: Heart) -> None:
    decision = heart.record_decision("ä" * 1000)

    heart.resolve_decision(decision.id, status="failed", outcome="ö" * 20_000)

    assert len(heart.list_censors()) == 1


def test_decisions_that_worked_or_were_given_up_leave_none(heart: Heart) -> None:
    for status in ("succeeded", "abandoned"):
        heart.resolve_decision(heart.record_decision(f"It {status}").id, status=status)

    assert heart.list_censors() == []


def test_an_ill_embedder_delays_the_censor_and_loses_nothing(
    database: Database, embedder: Any, judge: Any, owner: psycopg.Connection
) -> None:
    sick = SickEmbedder(embedder)
    heart = Heart.open("aria", database=database, embedder=sick, judge=judge, works_in_background=False)
    decision = heart.record_decision("Deploy on Friday")
    sick.is_ill = True
    for _ in range(20):
        heart.resolve_decision(decision.id, status="failed")
        rested(owner)
    censors_meanwhile, error_meanwhile = heart.list_censors(), last_error(owner)

    sick.is_ill = False
    heart.deliver()

    assert censors_meanwhile == []
    assert "the embedder failed" in error_meanwhile
    assert len(heart.list_censors()) == 1
    assert skipped(owner) == []


def test_an_ill_embedder_is_left_in_peace_while_the_heart_rests(database: Database, embedder: Any, judge: Any) -> None:
    sick = SickEmbedder(embedder)
    heart = Heart.open("aria", database=database, embedder=sick, judge=judge, works_in_background=False)
    sick.is_ill = True
    heart.resolve_decision(heart.record_decision("Deploy on Friday").id, status="failed")

    for number in range(3):
        heart.record_decision(f"Decision {number}")
    heart.deliver()

    assert sick.asked == [PROBE, "Deploy on Friday"]
    assert heart.agent.awake.is_set()


def test_an_embedder_that_answers_nonsense_is_asked_several_times_and_blocks_nothing_for_ever(
    database: Database, embedder: Any, judge: Any, owner: psycopg.Connection
) -> None:
    sick = SickEmbedder(embedder)
    heart = Heart.open("aria", database=database, embedder=sick, judge=judge, works_in_background=False)
    decision = heart.record_decision("Deploy on Friday")
    sick.is_mad = True
    heart.resolve_decision(decision.id, status="failed")
    skipped_at_once = skipped(owner)

    for _ in range(10):
        rested(owner)
        heart.deliver()

    assert skipped_at_once == []
    assert skipped(owner) == ["decision_failed"]
    assert "NaN" in last_error(owner)


# --- a guardrail was triggered ---


def test_a_triggered_guardrail_counts_an_activation_of_its_censor(heart: Heart) -> None:
    censor = heart.add_censor("deploy on Friday", "nobody is there", escalation_threshold=2)

    heart.publish("guardrail_triggered", {"censor_id": str(censor.id)})
    once = heart.get_censor(censor.id)
    heart.publish("guardrail_triggered", memory_id=censor.id)
    twice = heart.get_censor(censor.id)

    assert (once.activation_count, once.severity) == (1, "warn")
    assert (twice.activation_count, twice.severity) == (2, "block")


def test_a_guardrail_may_name_several_censors(heart: Heart) -> None:
    censors = [heart.add_censor(trigger, "so it is") for trigger in ("deploy on Friday", "eat the last cake")]

    heart.publish("guardrail_triggered", {"censor_ids": [str(censor.id) for censor in censors]})

    assert [heart.get_censor(censor.id).activation_count for censor in censors] == [1, 1]


def test_a_guardrail_may_tell_the_action_instead(heart: Heart, owner: psycopg.Connection) -> None:
    meant = heart.add_censor("git push --force", "others lose their work", is_literal=True)
    other = heart.add_censor("eat the last cake", "so it is", is_literal=True)

    heart.publish("guardrail_triggered", {"action": "git push --force origin main"})
    heart.publish("guardrail_triggered", {"action": "something harmless"})

    assert heart.get_censor(meant.id).activation_count == 1
    assert heart.get_censor(other.id).activation_count == 0
    assert skipped(owner) == []


def test_a_guardrail_counts_the_censors_that_are_still_there(heart: Heart, owner: psycopg.Connection) -> None:
    known = heart.add_censor("deploy on Friday", "nobody is there")

    heart.publish("guardrail_triggered", {"censor_ids": [str(uuid4()), str(known.id)]})

    assert heart.get_censor(known.id).activation_count == 1
    assert skipped(owner) == []


def test_a_guarded_action_is_checked_as_the_user_and_project_it_tells_of(heart: Heart) -> None:
    private = heart.add_censor("git push --force", "others lose work", is_literal=True, scope="private", user_id="ann")
    projects = heart.add_censor("git push", "the branch is frozen", is_literal=True, scope="project", project_id="p")
    action = {"action": "git push --force origin main"}

    for payload in (action, {**action, "user_id": "ann"}, {**action, "project_id": "p"}):
        heart.publish("guardrail_triggered", payload)

    assert [heart.get_censor(censor.id).activation_count for censor in (private, projects)] == [1, 1]


def test_the_memory_of_a_guarded_action_is_not_taken_for_a_censor(heart: Heart, owner: psycopg.Connection) -> None:
    meant = heart.add_censor("git push --force", "others lose their work", is_literal=True)
    about = heart.learn("The main branch is protected").memory

    heart.publish("guardrail_triggered", {"action": "git push --force"}, memory_id=about.id)

    assert heart.get_censor(meant.id).activation_count == 1
    assert skipped(owner) == []


def test_an_activation_by_a_guardrail_is_announced_in_turn(heart: Heart) -> None:
    heard: list[str] = []
    heart.subscribe("censor_activated", lambda event: heard.append(event.name), consumer="brain")
    censor = heart.add_censor("deploy on Friday", "nobody is there")
    heart.publish("guardrail_triggered", {"censor_id": str(censor.id)})

    heart.deliver()

    assert heard == ["censor_activated"]


# --- calibration drifted ---


def test_drift_flags_the_procedures_it_names_for_review(heart: Heart) -> None:
    drifted, sound = (heart.store_procedure(name, goals=["calm"]) for name in ("Deploy the api", "Bake bread"))

    heart.publish(
        "calibration_drift", {"procedure_ids": [str(drifted.id)], "drift": -0.31, "note": "too sure of Fridays"}
    )

    flagged = heart.get_procedure(drifted.id)
    assert (flagged.state, flagged.review_reason) == (
        "review",
        "calibration drifted by -0.31: too sure of Fridays",
    )
    assert heart.get_procedure(sound.id).state == "active"


def test_drift_flags_the_procedures_of_a_domain(heart: Heart) -> None:
    inside = heart.store_procedure("Deploy the api", domain="operations", goals=["calm"])
    outside = heart.store_procedure("Bake bread", domain="kitchen", goals=["calm"])

    heart.publish("calibration_drift", {"domain": "operations"})

    assert heart.get_procedure(inside.id).review_reason == "calibration drifted"
    assert heart.get_procedure(outside.id).state == "active"
