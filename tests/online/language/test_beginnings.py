"""Statements that say of themselves that they begin later, and retire nothing before."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nous_online.language.pairs.beginnings import begins, without_starts
from nous_online.language.pairs.judging import SURE_FROM, JudgedStatement, OfflineJudge, Pair, Verdict

SAID = datetime(2026, 11, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("From January the sauna costs 14 euros", "From January"),
        ("The sauna costs 14 euros as of 1 March 2027", "as of 1 March 2027"),
        ("Starting in February we bake on Mondays", "Starting in February"),
        ("Ab dem 1. Dezember gilt der neue Tarif", "Ab dem 1. Dezember"),
        ("À partir de janvier, la piscine ouvre à dix heures", "À partir de janvier"),
        ("A partir de enero la clase cuesta 20 euros", "A partir de enero"),
        ("Ida moves to Oslo next month", "next month"),
        ("Ida zieht nächstes Jahr nach Oslo", "nächstes Jahr"),
        ("I'm not at the sauna any more after Christmas", "after Christmas"),
        ("Nach Weihnachten ist die Sauna zu", "Nach Weihnachten"),
    ],
)
def test_what_begins_later_is_told_by_its_words(text: str, found: str) -> None:
    assert begins(text, SAID) == found


@pytest.mark.parametrize(
    "text",
    [
        "The sauna costs 14 euros since January",
        "From November the sauna costs 14 euros",
        "The sauna costs 14 euros as of 1 March 2026",
        "From September the sauna costs 14 euros",
        "From January to March the sauna is closed",
        "I got a letter from June",
        "The sauna costs 14 euros from 31 February",
        "The parcel is from Marta",
        "We march from the hall",
    ],
)
def test_what_holds_already_and_what_is_no_beginning_is_not(text: str) -> None:
    assert begins(text, SAID) is None
    assert begins("From January the sauna costs 14 euros", None) is None


def test_after_christmas_is_past_in_spring() -> None:
    assert begins("Ida got the dog after Christmas", datetime(2027, 2, 1, tzinfo=UTC)) is None


def test_what_begins_later_retires_nothing_by_itself() -> None:
    today = JudgedStatement("Renting a canoe is 35 euros a day", stated_at=datetime(2026, 11, 2, tzinfo=UTC))

    def judged(text: str) -> tuple[Verdict, bool]:
        (found,) = OfflineJudge().judge([Pair(today, JudgedStatement(text, stated_at=SAID), 0.94)])
        return found.verdict, found.confidence >= SURE_FROM

    assert judged("From January renting a canoe will be 39 euros a day") == (Verdict.UPDATES, False)
    assert judged("Renting a canoe is 39 euros a day now") == (Verdict.UPDATES, True)


def test_of_two_that_open_with_when_they_begin_the_later_replaces_the_earlier_then() -> None:
    a, b = "From December an hour of sauna costs €14.", "From March an hour of sauna is €16."
    said = (JudgedStatement(a, stated_at=SAID), JudgedStatement(b, stated_at=datetime(2026, 11, 12, tzinfo=UTC)))
    others = ("From December the sauna opens at six.", "From March the pool closes at nine.")

    (judgement,) = OfflineJudge().judge([Pair(*said, similarity=0.8)])

    assert (judgement.verdict, judgement.confidence < SURE_FROM) == (Verdict.UPDATES, True)
    assert without_starts(a, b) == ("an hour of sauna costs €14.", "an hour of sauna is €16.")
    assert without_starts(a, "The sauna is open") == (a, "The sauna is open")
    (apart,) = OfflineJudge().judge([Pair(*map(JudgedStatement, others), similarity=0.6)])
    assert apart.verdict is Verdict.COMPATIBLE
