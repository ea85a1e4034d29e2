"""Words that are misspelt or cut short in one of two statements, and read as the other writes them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nous_online.language.pairs.judging import JudgedStatement, OfflineJudge, Pair, Verdict
from nous_online.language.pairs.slips import in_one_spelling
from nous_online.language.pairs.wordings import may_be_same

TIMES = (datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC))
ONE_WORD = """
The caterer's contact is in the binder | The caterer's contcat is in the binder
Our warehouse is in Leeds | our warehose is in Leeds
Your dentist appointment is on 4 May | Your dentist apointment is on 4 May
Tom prefers decaf coffee on weekdays | Tom prefers decaf cofee on weekdays
The committee meets on the first Monday | The commitee meets on the first Monday
Received the parcel from Lena | Recieved the parcel from Lena
Send the invoice to Ana | Send teh invoice to Ana
Rehearsal is on Tuesday at 7 | Rehearsal is on Tues at 7
Rehearsal is on Tuesday at 7 | Rehearsal is on Tuseday at 7
The lease ends in September | The lease ends in Sept
approximately 40 guests are coming | approx. 40 guests are coming
The boiler needs a minimum pressure of 1 bar | The boiler needs a min. pressure of 1 bar
The grant closes on February 14th | the grant closes on 14 Feb
The office is on the first floor of 22 Tanner Street | The office is on the 1st floor of 22 Tanner St
The merchant's number is 01632 960 114 | The merchant's number is 01632960114
La clase de guitarra es a las 17:00 los jueves | la clase de guitarra es a las 5 de la tarde los jueves
Éloïse est élève au collège Molière | eloise est eleve au college Moliere
Der Schlüssel zum Keller hängt hinter der Tür | der schluessel zum keller haengt hinter der tuer
The plumber is Herr Krämer | the plumber is Herr Kraemer
Mr Kaminski runs the library on Mondays | Mr Kaminski runs the libary on Mondays
The pool is 4.50 euros per visit | The pool is 4,50€ per visit
The studio rents for €1,150 a week | the studio rents for 1.150,00 € a week
The guide asks 60 dollars per hour | The guide asks $60/hour
The vet's number is 01632 960 118 | The vet's number is 01632-960118
The vet's number is 01632 960 118 | The vet's number is +44 1632 960118
"""
TWO_WORDS = """
Mr Janssen owns the boat in the harbour | Mr Jansen owns the boat in the harbour
Martha keeps the spare key | Matha keeps the spare key
We scrapped the old plan | We scraped the old plan
The choir meets in the hall | The choirs meet in the hall
The patient has hypertension | The patient has hypotension
We prescribe this drug | We proscribe this drug
The sample contains nitrate | The sample contains nitrite
La casa è vuota da anni | La cassa è vuota da anni
The kettle is in. Sat with Ana | The kettle is inside. Saturated with Ana
The mac is on the desk | The machine is on the desk
Send it to the dep in Leeds | Send it to the department in Leeds
Das Auto ist schön groß | Das Auto ist schon groß
The doctor is in room 3, 4 and 5 | The doctor is in room 345
The trip is on 3/4/2026 | The trip is on 4/3/2026
It starts at 5 de la mañana | It starts at 17:00
Her number is 01632 960 114 | Her number is 01632 960 115
The trip is on 2026-03-04 | The trip is on 2026-04-03
We meet on 4 May | We meet on 4 March
The programme is on at 3 pm | The programme is on at 3
She sat on the chair at the office | She starts on Saturday at the office
The form is in the drawer | The from is in the drawer
The pool is 4.50 euros per visit | The pool is 4.50 dollars per visit
The lot costs 1.150 € | The lot costs 1,15 €
The vet's number is 01632 960 118 | The vet's number is +44 1632 960119
The vet's number is 01632 960 118 | The vet's number is 632 960 118
It costs €2 million | It costs €2
The dose is half a tablet | The dose is a tablet
"""


def pairs_of(lines: str) -> list[list[str]]:
    """Return the two statements of each line."""
    return [line.split(" | ") for line in lines.strip().splitlines()]


def judged(a: str, b: str, similarity: float = 0.9) -> Verdict:
    """Return the verdict on two statements, the second one later."""
    first, second = (JudgedStatement(text, stated_at=moment) for text, moment in zip((a, b), TIMES, strict=True))
    return OfflineJudge().judge([Pair(first, second, similarity)])[0].verdict


@pytest.mark.parametrize(("right", "slip"), pairs_of(ONE_WORD))
def test_a_slip_and_a_word_cut_short_are_read_as_what_they_mean(right: str, slip: str) -> None:
    assert may_be_same(*in_one_spelling(slip, right))
    assert in_one_spelling(right, slip) == in_one_spelling(slip, right)[::-1]


@pytest.mark.parametrize(("one", "other"), pairs_of(TWO_WORDS))
def test_two_words_that_look_alike_stay_two(one: str, other: str) -> None:
    assert not may_be_same(*in_one_spelling(one, other))


SMALL_WORDS = """
A woman is mixing ingredients in a bowl | An intrusive system is around the instrument
The fruit is on the table as an answer | It is always once overgrown or inside another
The nurse is in St Mary's | The stairs of the store are steep
The dryer is by the door, my towels too | Memory sticks are in the bakery
The tv is in the den | The television licence is due in December
"""


@pytest.mark.parametrize(("one", "other"), pairs_of(SMALL_WORDS))
def test_a_small_word_is_no_longer_word_cut_short(one: str, other: str) -> None:
    assert in_one_spelling(one, other) == (one, other)


@pytest.mark.parametrize("similarity", [0.55, 0.95])
@pytest.mark.parametrize(("right", "slip"), pairs_of(ONE_WORD))
def test_a_repeat_with_a_slip_is_the_same_however_far_its_vector(right: str, slip: str, similarity: float) -> None:
    assert judged(right, slip, similarity) is judged(slip, right, similarity) is Verdict.SAME


def test_a_slip_hides_no_other_difference() -> None:
    assert judged("Tom prefers decaf cofee", "Tom never prefers decaf coffee") is not Verdict.SAME
    assert judged("Rehearsal is on Tues at 7", "Rehearsal is on Tuesday at 8") is not Verdict.SAME
    assert judged("The dentist apointment is on 4 May", "The dentist appointment is on 6 May") is not Verdict.SAME


def test_a_number_in_words_at_the_beginning_is_the_number() -> None:
    assert judged("Six chairs are missing from the hall", "6 chairs are missing from the hall") is Verdict.SAME
    assert judged("Six chairs are missing from the hall", "7 chairs are missing from the hall") is not Verdict.SAME
