"""What the drawn table of triggers and actions shows of firing, on the local model: the figures of decision 0009."""

from __future__ import annotations

import pytest
from drawn_actions import DrawnPair, drawn_pairs
from unseen_actions import UNSEEN

from nous_online.checking import parts_of
from nous_online.deeds import closeness
from nous_online.embedding import LocalMiniLM, Vectors
from nous_online.policy import CensorPolicy

POLICY = CensorPolicy()


@pytest.fixture(scope="module")
def vectors() -> dict[str, Vectors]:
    """The vector of every trigger and of every part of an action."""
    pairs = drawn_pairs()
    parts = {part for pair in pairs for part in parts_of(pair.action, most=POLICY.most_parts)}
    texts = sorted({pair.trigger for pair in pairs} | parts)
    return dict(zip(texts, LocalMiniLM().embed_documents(texts), strict=True))


def fires(trigger: str, action: str, vectors: dict[str, Vectors]) -> bool:
    """Tell whether an action sets off a trigger, as a check finds it."""
    similarities = {part: float(vectors[trigger] @ vectors[part]) for part in parts_of(action, most=POLICY.most_parts)}
    return any(
        similarity >= POLICY.similarity_floor
        and closeness(trigger, part, similarity, policy=POLICY) >= POLICY.firing_closeness
        for part, similarity in similarities.items()
    )


def share(pairs: list[DrawnPair], vectors: dict[str, Vectors]) -> float:
    """Return how many of the pairs fire, as a share."""
    return sum(fires(pair.trigger, pair.action, vectors) for pair in pairs) / len(pairs)


@pytest.mark.parametrize(
    ("is_held_out", "hit_rate", "false_alarm_rate", "stranger_rate"),
    [(False, 0.697, 0.106, 0.0047), (True, 0.697, 0.227, 0.0025)],
)
def test_firing_on_the_local_model_is_as_good_as_published(
    vectors: dict[str, Vectors],
    *,
    is_held_out: bool,
    hit_rate: float,
    false_alarm_rate: float,
    stranger_rate: float,
) -> None:
    half = [pair for pair in drawn_pairs() if pair.is_held_out == is_held_out]
    triggers = {pair.trigger for pair in half}
    strangers = [(trigger, pair.action) for pair in half for trigger in triggers if trigger != pair.trigger]

    fired_strangers = sum(fires(trigger, action, vectors) for trigger, action in strangers) / len(strangers)

    assert share([pair for pair in half if pair.fires], vectors) >= hit_rate - 0.02
    assert share([pair for pair in half if not pair.fires], vectors) <= false_alarm_rate + 0.02
    assert fired_strangers <= stranger_rate + 0.001


def test_the_example_of_the_local_model_holds(vectors: dict[str, Vectors]) -> None:
    trigger = "pushing directly to main branch"

    assert fires(trigger, "git push origin main", vectors)
    assert not fires(trigger, "git pull origin main", vectors)


def test_the_drawn_table_is_balanced_and_half_of_it_held_out() -> None:
    pairs = drawn_pairs()

    assert len(pairs) == 264
    assert sum(pair.fires for pair in pairs) == 132
    assert sum(pair.is_held_out for pair in pairs) == 132
    assert len({(pair.trigger, pair.action) for pair in pairs}) == 264


def test_the_unseen_table_names_each_pair_once() -> None:
    pairs = drawn_pairs(UNSEEN)

    assert len({pair.trigger for pair in pairs}) == 60
    assert (sum(pair.fires for pair in pairs), len(pairs)) == (120, 241)
    assert len({(pair.trigger, pair.action) for pair in pairs}) == 241
