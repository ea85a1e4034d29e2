"""What an agent was doing when it learned something helps to find it when it does the same again.

The names are those of the document that asked for it (frame-tagged memory encoding).
"""

from __future__ import annotations

import pytest

from nous_online.heart import Heart
from nous_online.recall.recall import Recall, RecallDetails

CENSORS = ["no-friday-deploys", "no-premature-optimisation"]


def boosts(recall: Recall, content: str) -> tuple[float, float]:
    """The frame and the censor boost of the answer that starts with `content`."""
    (parts,) = [answer.parts for answer in recall if answer.content.startswith(content)]
    return parts.frame_boost, parts.censor_boost


def contents(recall: Recall) -> list[str]:
    return [answer.content for answer in recall]


def test_learn_fact_with_frame(heart: Heart) -> None:
    learned = heart.learn("Postgres keeps the orders", encoded_frame="decision").memory

    assert heart.get(learned.id).encoded_frame == "decision"


def test_learn_fact_with_censors(heart: Heart) -> None:
    learned = heart.learn("Postgres keeps the orders", encoded_censors=CENSORS).memory

    assert heart.get(learned.id).encoded_censors == CENSORS


def test_learn_fact_no_frame_backward_compat(heart: Heart) -> None:
    learned = heart.learn("Postgres keeps the orders").memory

    assert (learned.encoded_frame, learned.encoded_censors) == (None, None)
    assert boosts(heart.recall("orders", frame="decision", active_censors=CENSORS), "Postgres") == (1.0, 1.0)


def test_frame_boost_same_frame(heart: Heart) -> None:
    heart.learn("Postgres keeps the orders", encoded_frame="decision")

    neutral, same = heart.recall("orders"), heart.recall("orders", frame="decision")

    assert boosts(same, "Postgres") == (pytest.approx(1.3), 1.0)
    assert same[0].score == pytest.approx(1.3 * neutral[0].score)


def test_frame_boost_different_frame(heart: Heart) -> None:
    heart.learn("Postgres keeps the orders", encoded_frame="conversation")

    neutral, other = heart.recall("orders"), heart.recall("orders", frame="decision")

    assert boosts(other, "Postgres") == (1.0, 1.0)
    assert other[0].score == pytest.approx(neutral[0].score)


def test_frame_boost_null_frame_neutral(heart: Heart) -> None:
    heart.learn("Postgres keeps the orders")
    heart.learn("Redis keeps the sessions", encoded_frame="decision")

    assert boosts(heart.recall("orders", frame="decision"), "Postgres") == (1.0, 1.0)
    assert boosts(heart.recall("sessions"), "Redis") == (1.0, 1.0)


def censor_boosted(heart: Heart, encoded: list[str], active: list[str]) -> float:
    """How often more a fact encoded under some censors counts while others are active."""
    heart.learn("Postgres keeps the orders", encoded_censors=encoded)
    neutral, boosted = heart.recall("orders"), heart.recall("orders", active_censors=active)
    assert boosts(boosted, "Postgres")[1] == pytest.approx(boosted[0].score / neutral[0].score)
    return boosted[0].score / neutral[0].score


def test_censor_overlap_full(heart: Heart) -> None:
    assert censor_boosted(heart, CENSORS, CENSORS[::-1]) == pytest.approx(1.2)


def test_censor_overlap_partial(heart: Heart) -> None:
    assert censor_boosted(heart, CENSORS[:1], CENSORS) == pytest.approx(1.1)


def test_censor_overlap_none(heart: Heart) -> None:
    assert censor_boosted(heart, CENSORS[:1], CENSORS[1:]) == pytest.approx(1.0)


def test_frame_and_censors_multiply(heart: Heart) -> None:
    heart.learn("Postgres keeps the orders", encoded_frame="decision", encoded_censors=CENSORS)

    neutral, boosted = heart.recall("orders"), heart.recall("orders", frame="decision", active_censors=CENSORS)

    assert boosted[0].score == pytest.approx(1.3 * 1.2 * neutral[0].score)


def test_a_strong_match_in_another_frame_beats_a_weak_one_in_the_same_frame(heart: Heart) -> None:
    heart.learn("Invoices of the orders are kept in Postgres for ten years", encoded_frame="conversation")
    heart.learn("The canteen is open on Fridays for invoices", encoded_frame="decision")

    asked = heart.recall("Where are invoices of the orders kept?", frame="decision")

    assert contents(asked)[0].startswith("Invoices of the orders")


def test_of_two_equal_matches_the_one_of_the_same_frame_comes_first(heart: Heart) -> None:
    heart.learn("Orders are kept in the blue store", encoded_frame="conversation")
    heart.learn("Orders are kept in the green store", encoded_frame="decision")

    for frame, first in (("decision", "green"), ("conversation", "blue")):
        assert first in contents(heart.recall("where are orders kept", frame=frame))[0]


def test_nothing_is_hidden_by_a_frame(heart: Heart) -> None:
    heart.learn("Orders are kept in the blue store", encoded_frame="conversation")
    heart.learn("Orders are kept in the green store", encoded_frame="decision")

    assert len(heart.recall("where are orders kept", frame="debug", active_censors=CENSORS)) == 2


def test_episode_compression_tier_default(heart: Heart) -> None:
    assert heart.start_episode("Moving the orders").compression_tier == "raw"
    assert heart.record_episode("We moved the orders to Postgres.", title="Orders").compression_tier == "raw"


def test_episode_frame_encoding(heart: Heart) -> None:
    episode = heart.record_episode(
        "We moved the orders to Postgres.", title="Orders", frame_used="task", encoded_censors=CENSORS
    )

    details = RecallDetails(types=["episode"], frame="task", active_censors=CENSORS)

    assert (episode.frame_used, episode.encoded_censors) == ("task", CENSORS)
    assert boosts(heart.recall("orders", **details), "Orders") == (pytest.approx(1.3), pytest.approx(1.2))


def test_procedure_frame_encoding(heart: Heart) -> None:
    procedure = heart.store_procedure(
        "Move orders", core_patterns=["copy, compare, switch"], encoded_frame="task", encoded_censors=CENSORS
    )

    details = RecallDetails(types=["procedure"], frame="task", active_censors=CENSORS)

    assert (procedure.encoded_frame, procedure.encoded_censors) == ("task", CENSORS)
    assert boosts(heart.recall("orders", **details), "Move orders") == (pytest.approx(1.3), pytest.approx(1.2))


def test_censor_frame_encoding(heart: Heart) -> None:
    censor = heart.add_censor(
        "dropping the orders table", "It took a day to restore", encoded_frame="task", encoded_censors=CENSORS
    )

    details = RecallDetails(types=["censor"], frame="task", active_censors=CENSORS)

    assert (censor.encoded_frame, censor.encoded_censors) == ("task", CENSORS)
    assert boosts(heart.recall("orders", **details), "dropping") == (pytest.approx(1.3), pytest.approx(1.2))
