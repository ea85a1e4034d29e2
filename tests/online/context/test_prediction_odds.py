"""The arithmetic of predictions: order for rankings, exact numbers for formulas."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import log

import numpy as np
import pytest

from nous_online.context.scorer import (
    BIAS,
    CITED,
    RETRIEVED,
    WEIGHTS,
    Likely,
    Nearness,
    PastRecall,
    Ranking,
    Sighted,
    chances_of,
    expected_share,
    features,
    lift,
    log_odds,
    past_of,
)

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
FILE = "file:a.py"


def ago(days: float) -> datetime:
    return NOON - timedelta(days=days)


def asked(session: str, days: float, *cited: str, found: tuple[str, ...] = (), ignored: tuple[str, ...] = ()):
    return PastRecall(session, ago(days), [*cited, *found, *ignored], list(cited), list(ignored))


def past(*recalls: PastRecall[str], seen: dict[int, dict[str, float]] | None = None, session: str | None = None):
    sighted = [Sighted(place, name, ago(days)) for place, when in (seen or {}).items() for name, days in when.items()]
    return past_of(recalls, sighted, session_id=session, at=NOON)


def likely(known, atoms, near=None, *, limit: int) -> tuple[list[Likely[str]], float]:
    ranking = Ranking(known, atoms, near or {})
    return [ranking.at(place) for place in ranking.places()[:limit]], ranking.expected


def ranked(*recalls: PastRecall[str], atoms=(), seen=None, near=None, session=None) -> list[str]:
    return [each.memory for each in likely(past(*recalls, seen=seen, session=session), atoms, near, limit=50)[0]]


def test_a_citation_counts_in_full_a_find_less_and_what_was_ignored_nothing():
    known = past(asked("s", 1, "cited", found=("found",), ignored=("ignored",)))

    assert dict(zip(known.memories, known.use_weight, strict=True)) == {"cited": CITED, "found": RETRIEVED}


def test_finds_of_a_long_list_count_the_less_the_longer_it_is():
    known = past(asked("s", 1, found=tuple(f"m{n}" for n in range(100))))

    assert known.use_weight.tolist() == pytest.approx([RETRIEVED / 10] * 100)


def test_a_memory_counts_once_a_session_with_the_most_it_was_used():
    known = past(asked("s", 2, found=("m",)), asked("s", 1, "m"), asked("s", 1, "m"))

    assert known.use_weight.tolist() == [CITED]
    assert known.ages.tolist() == [1]


def test_the_lift_of_a_signal_is_the_log_odds_its_sessions_add_to_the_rate():
    known = past(asked("s", 0, "m"), seen={0: {"s": 0}})

    (found,) = lift(known, known.seen_in[0], np.array([0.1]))

    assert found == pytest.approx(log((1 + 2 * 0.1) / (3 - 1.2)) - log(0.1 / 0.9))


def test_chances_are_the_logistic_function_of_the_weighed_features():
    (chance,) = chances_of({"rate": np.array([-1.0]), "file": np.array([2.0])})

    assert log_odds(chance) == pytest.approx(BIAS - WEIGHTS["rate"] + 2 * WEIGHTS["file"])


def test_what_was_used_with_the_open_file_comes_before_what_is_used_as_often_elsewhere():
    recalls = [asked(f"a{n}", n, "with-a") for n in range(1, 5)] + [asked(f"b{n}", n, "with-b") for n in range(1, 5)]

    assert ranked(*recalls, atoms=[FILE], seen={0: {f"a{n}": n for n in range(1, 5)}}) == ["with-a", "with-b"]


def test_sessions_with_a_signal_that_used_nothing_speak_against_a_memory():
    recalls = [asked(f"a{n}", n, "m") for n in range(1, 4)]
    few = past(*recalls, seen={0: {f"a{n}": n for n in range(1, 4)}})
    many = past(*recalls, seen={0: {f"a{n}": n for n in range(1, 4)} | {f"idle{n}": 1 for n in range(20)}})

    assert likely(few, [FILE], limit=1)[0][0].confidence > likely(many, [FILE], limit=1)[0][0].confidence


def test_what_was_used_lately_comes_before_what_was_used_long_ago():
    assert ranked(asked("s", 60, "old"), asked("t", 1, "new")) == ["new", "old"]


def test_what_is_cited_comes_before_what_is_only_found():
    assert ranked(asked("s", 1, "cited", found=("found",))) == ["cited", "found"]


def test_what_this_session_cited_is_not_predicted_but_its_company_is():
    recalls = [asked(f"s{n}", n, "a", "b") for n in range(1, 4)] + [asked(f"t{n}", n, "c") for n in range(1, 4)]

    assert ranked(*recalls, asked("now", 0, "a"), session="now") == ["b", "c"]


def test_a_second_signal_of_a_kind_counts_less_than_the_first():
    known = past(asked("s", 1, "m"), seen={0: {"s": 1}, 1: {"s": 1}})
    both = features(known, ["module:src/auth", "module:src"], {})["module"]
    first = features(known, ["module:src/auth", "file:a"], {})["module"]

    assert 1.3 < both[0] / first[0] < 1.5


def test_what_was_never_used_comes_in_when_it_is_near_to_the_words():
    order = ranked(asked("s", 1, "used"), near={"far": Nearness(0.0, 0.1), "near": Nearness(0.5, 0.9)})

    assert order == ["used", "near", "far"]


def test_nothing_is_predicted_from_nothing():
    assert likely(past(), [FILE], limit=10) == ([], 0.0)


def test_the_order_of_recalls_does_not_matter():
    recalls = [asked(f"s{n}", n, f"m{n % 3}", found=("x",)) for n in range(1, 9)]
    seen = {0: {"s1": 1, "s4": 4}}
    forwards, backwards = (
        {each.memory: each.confidence for each in likely(past(*order, seen=seen), [FILE], limit=9)[0]}
        for order in (recalls, recalls[::-1])
    )

    assert forwards == backwards


def test_reasons_say_how_often_and_under_which_signal():
    recalls = [asked("s1", 1, "m"), asked("s2", 2, "m"), asked("s3", 3, "n", found=("m",)), asked("t", 1, "other")]
    known = past(*recalls, seen={0: {"s1": 1, "s2": 2, "s3": 3}})

    reasons = {each.memory: each.reasons for each in likely(known, [FILE], {"other": Nearness(0.1)}, limit=9)[0]}

    assert reasons["m"] == ("used in 2 of the last 3 sessions with a.py open",)
    assert reasons["other"] == ("used in 1 of the 4 sessions looked at",)


def test_chances_stay_chances_with_every_signal_and_a_thousand_sessions():
    recalls = [asked(f"s{n}", n / 10, "always") for n in range(1000)]
    atoms = [f"{kind}:x" for kind in WEIGHTS if kind not in {"rate", "day", "fortnight", "company", "words", "meaning"}]
    seen = {place: {f"s{n}": n / 10 for n in range(40)} for place in range(len(atoms))}

    ((only,), expected) = likely(past(*recalls, seen=seen), atoms, limit=5)

    assert 0.8 < only.confidence < 1
    assert expected == pytest.approx(only.confidence, abs=1e-4)


def test_what_was_only_found_says_so_and_nearness_is_told_where_it_is_great():
    found, near = past(asked("s", 1, found=("m",)), asked("t", 2, found=("m",))), {"m": Nearness(0.0, 0.9)}

    ((only,), _) = likely(found, [], near, limit=1)

    assert only.reasons == (
        "found in 2 earlier sessions, and not ignored",
        "near in words or meaning to what is being done",
    )


def test_a_session_wants_one_thing_more_than_anybody_expects():
    assert expected_share([0.5, 0.5], 3.0) == 0.25
    assert expected_share([], 0.0) == 0
