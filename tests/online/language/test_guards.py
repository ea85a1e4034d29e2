from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nous_online.language.pairs.guards import added, denied, differences, exact_differences
from nous_online.language.pairs.reading import clock, read

NEVER_DUPLICATES = """
the lease was signed on 5 May 2023       | the lease was signed on 5 May 2024       | date 5 May 2023 ≠ 5 May 2024
the host is atlas-prod1 | the host is atlas-prod2 | identifier atlas-prod1 ≠ atlas-prod2
it started in May 2023                   | it started in May 2024                   | date May 2023 ≠ May 2024
it says "pull the lever out" | it says "pull the handle out" | quoted pull the lever out ≠ pull the handle out
the API listens on port 8080             | the API listens on port 9090             | number 8080 ≠ 9090
the cache holds five entries             | the cache holds six entries              | number 5 ≠ 6
the review is on 5 May                   | the review is on 6 May                   | date 5 May ≠ 6 May
the standup starts at 9am                | the standup starts at 09:30              | time 09:00 ≠ 09:30
the timeout is 5 ms                      | the timeout is 5 s                       | unit ms ≠ s
we run version 1.2 of the agent          | we run version 1.3 of the agent          | version 1.2 ≠ 1.3
it needs Python 3.1                      | it needs Python 3.10                     | version 3.1 ≠ 3.10
the bucket is in us-east1                | the bucket is in us-west2                | identifier us-east1 ≠ us-west2
planes land on runway 12L/30R            | planes land on runway 12R/30L            | identifier 12l/30r ≠ 12r/30l
the branch is called "main"              | the branch is called "trunk"             | quoted main ≠ trunk
Alice prefers tea                        | Bob prefers tea                          | name Alice ≠ Bob
the owner of the repo is Dana Okafor     | the owner of the repo is Jonas Weber     | name Dana Okafor ≠ Jonas Weber
Jonas approves the invoices              | Tomas approves the invoices              | name Jonas ≠ Tomas
Orders are kept for a year               | Invoices are kept for a year             | orders ≠ invoices
the king was Leopold I                   | the king was Leopold II                  | numeral I ≠ II
the user likes spicy food                | the user doesn't like spicy food         | negation
deploys need an approval                 | deploys never need an approval           | negation
the feature flag is enabled              | the feature flag is disabled             | opposite enabled ≠ disabled
the sync happens on Monday               | the sync happens on Thursday             | value monday ≠ thursday
the backup rarely fails                  | the backup often fails                   | value rarely ≠ often
all pods restart at night                | some pods restart at night               | value all ≠ some
the guest is mildly allergic to nuts     | the guest is severely allergic to nuts   | value slightly ≠ severely
the lease ends at the start of the year  | the lease ends at the end of the year    | value start ≠ end
guests might park in the yard            | guests must park in the yard             | value may ≠ must
her car is red                           | her car is blue                          | value red ≠ blue
Arsenal beat Chelsea                     | Chelsea beat Arsenal                     | roles arsenal ⇄ chelsea
the cat chases the dog                   | the dog chases the cat                   | roles cat ⇄ dog
the drone is above its pilot             | the pilot is above the drone             | roles drone ⇄ pilot
it uses Kafka, not Redis                 | it uses Redis, not Kafka                 | negation
tags are mutable, so pulls may differ    | tags are not mutable, so pulls may not differ | negation
the job fails to start                   | the job starts                           | negation
Marlow is part of Orrin County, Tuscany  | Marlow is part of Tessel County, Tuscany | name Orrin ≠ Tessel
it was the second attempt on 3rd street  | it was the second attempt on 4th street  | ordinal 3 ≠ 4
it has three hundred and forty seats     | it has three hundred and fifty seats     | number 340 ≠ 350
it holds two thousand one hundred litres | it holds two thousand two hundred litres | number 2100 ≠ 2200
it freezes below minus ten               | it freezes below ten                     | number 10 ≠ 10
the gym is for over-sixteens             | the gym is for over-eighteens            | number 16 ≠ 18
the note is due in a fortnight           | the note is due in three weeks           | number 14 ≠ 3
they built it in '87                     | they built it in 1978                    | number 1987 ≠ 1978
nobody calls before ten                  | nobody calls before 9 a.m.               | number 10 ≠ none
they own half of the mill                | they own 60% of the mill                 | number none ≠ 60
Opa nimmt 0,5 mg am Tag                  | Opa nimmt 0,25 mg am Tag                 | number 0.5 ≠ 0.25
Er nimmt 2,5 ml                          | Er nimmt 5,2 ml                          | number 2.5 ≠ 5.2
Le loyer est de 1 015 €                  | Le loyer est de 1 050 €                  | number 1015 ≠ 1050
Der Ofen wiegt 1.240 kg                  | Der Ofen wiegt 1,3 kg                    | number 1.240 ≠ 1.3
Wir haben zwei Hunde                     | Wir haben 3 Hunde                        | number none ≠ 3
Der Termin ist am 3.7. um 14 Uhr         | Der Termin ist am 4. Juli um 14 Uhr      | date 3 July ≠ 4 July
Der Termin ist um 14.30 Uhr              | Der Termin ist um 15.30 Uhr              | time 14:30 ≠ 15:30
家賃は月85,000円です                        | 家賃は月80,000円です                        | number 85000 ≠ 80000
wir nutzen die Version 3.7.1              | wir nutzen die Version 3.7.2             | version 3.7.1 ≠ 3.7.2
"""

MAY_BE_DUPLICATES = """
Please close the gate at dusk            | Kindly close the gate at dusk
Deploys happen on Friday                 | Deploy happens on Friday
the meeting is at 8pm                    | the meeting is at 20:00
the meeting is at noon                   | the meeting is at 12:00
she has five cats                        | she has 5 cats
there are twenty-five users              | there are 25 users
the ticket costs €10                     | the ticket costs 10 euros
the round raised $3 million              | the round raised 3m dollars
he lives in the United States            | he lives in the US
he lives in the U.S.                     | he lives in the USA
the list has 3,000 rows                  | the list has 3000 rows
the runway is 1533.0 metres long         | the runway is 1,533 m long
it takes 1000 ms                         | it takes 1 s
it was signed on 5 May 2023              | it was signed on May 5, 2023
it was signed on 2023-05-05              | it was signed on the 5th of May 2023
it doesn't run on Windows                | it does not run on Windows
The Service Runs On Port 80              | the service runs on port 80
Ferrets are climbing down                | Some ferrets are climbing down
Tallis is the largest town of Hungary     | Tallis is the largest Hungarian town
the manager of Köln is Peter Stöger      | the manager of Koln is Peter Stoger
the file is "notes.txt"                  | the file is notes.txt
Rosa is the mayor of Turin               | the mayor of Turin is Rosa
Anna and Ben run the shop                | Ben and Anna run the shop
the test fails about once a week         | the test is flaky
the job fails to start                   | the job does not start
Anna eats no meat and drinks no milk     | Anna doesn't eat meat and doesn't drink milk
deploys never need an approval any more  | deploys no longer need an approval
I don't think the cache is shared        | I think the cache is not shared
Quinn of Ghent is the mayor of Ghent     | the mayor of Ghent is Quinn of Ghent
the shop opened in 2016 in Bergen        | the shop opened in Bergen in 2016
the park covers 12.5 sq km               | the park covers 12.5 square kilometres
Sørby runs the shop                      | Sorby runs the shop
the backup seldom fails                  | the backup rarely fails
one user complained                      | 1 user complained
it has three hundred and forty seats     | it has 340 seats
the tank takes six thousand four hundred | the tank takes 6,400
the fund holds one point two million     | the fund holds 1.2 million
it freezes below minus ten               | it freezes below -10
the pool is for under-twelves            | the pool is for under 12s
the note is due in a fortnight           | the note is due in two weeks
there are a hundred grosh to the tolar   | there are 100 grosh to the tolar
half a dozen nurses run it               | six nurses run it
they built it in '87                     | they built it in 1987
nobody calls before ten                  | nobody calls before 10 a.m.
they own half of the mill                | they own 50% of the mill
two firms bid for it                     | both firms bid for it
Twelve boats lie at the pier             | At the pier lie 12 boats
they live in Mill Street                 | they live in Mill St
the plane lands at Copenhagen            | the plane lands at CPH
What I heard was wrong                   | what came to my ears was wrong
Der Ofen wiegt 1.240 kg                  | Der Ofen wiegt 1240 kg
Der Ofen wiegt 1.240 kg                  | Der Ofen wiegt 1,24 kg
Der Ofen wiegt 1.240 kg                  | Der Ofen wiegt 1,240 kg
Il y a 2 chats dans la maison            | Dans la maison il y a deux chats
"""


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("The rows are 2, 5 and 7", ["2", "5", "7"]),
        ("The ports are 1,2,3", ["1", "2", "3"]),
        ("Rooms 2,5 and 7 are on the left", ["2", "5", "7"]),
        ("In room 3 200 guests can sit", ["3", "200"]),
        ("The hall seats 1,240 people", ["1,240"]),
        ("The host is 192.168.100.200", ["192.168.100.200"]),
        ("Der Server ist 192.168.100.200", ["192.168.100.200"]),
        ("3. Buy milk", ["3"]),
        ("1.2. Die Ziele sind klar", ["1.2"]),
        ("Ich habe 2, 5 und 7 gesehen, nicht 1,2,3", ["2", "5", "7", "1", "2", "3"]),
    ],
)
def test_lists_versions_and_addresses_are_no_decimals_and_no_days(text, numbers):
    assert [number.shown for number in read(text).numbers] == [*dict.fromkeys(numbers)]
    assert not read(text).dates


def rows(table):
    return [tuple(cell.strip() for cell in line.split("|")) for line in table.strip().splitlines()]


@pytest.mark.parametrize(("a", "b", "reason"), rows(NEVER_DUPLICATES))
def test_names_what_keeps_two_statements_apart(a, b, reason):
    assert reason in differences(a, b)


@pytest.mark.parametrize(("a", "b"), rows(MAY_BE_DUPLICATES))
def test_stays_silent_where_only_the_spelling_differs(a, b):
    assert differences(a, b) == ()
    assert differences(b, a) == ()


@pytest.mark.parametrize(("a", "b", "reason"), rows(NEVER_DUPLICATES))
def test_fires_in_both_directions(a, b, reason):
    assert differences(b, a), reason


@given(st.text(max_size=300))
def test_never_separates_a_statement_from_itself(text):
    assert differences(text, text) == ()
    assert differences(text, f" {text}\n") == ()


@given(st.text(alphabet="0123456789.,:-/ stnd May@€%½²٣", max_size=120), st.text(max_size=120))
def test_reads_any_text_without_failing(a, b):
    assert bool(differences(a, b)) == bool(differences(b, a))


@pytest.mark.parametrize(
    "hostile",
    [
        "1." * 50_000,
        "May " * 30_000,
        "a-" * 50_000,
        '"' * 100_000,
        "9" * 100_000 + "th",
        "A.B." * 30_000,
        "\ue000" * 9_000,
    ],
)
def test_answers_within_a_second_on_hostile_text(hostile):
    started = time.process_time()

    differences(hostile, hostile[1:] + " not")

    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The build cache is shared", "The build cache is not shared"),
        ("Ana eats meat", "Ana doesn't eat meat"),
        ("A man is playing the harp", "There is no man playing the harp"),
        ("Nobody is peeling an onion in the yard", "Someone is peeling an onion in the yard"),
    ],
)
def test_a_denial_shares_its_words_with_what_it_denies(one, other):
    assert denied(one, other) is not None
    assert denied(other, one) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana eats meat", "Ben doesn't drink wine"),
        ("The cache is not shared", "The cache isn't shared"),
        ("Ana eats meat", "Ana eats fish"),
        ("No", "Yes"),
        ("Orders may be changed before noon", "Orders may not be changed after noon"),
        ("Members enter with a card", "Visitors can't enter without a card"),
        ("Ana never eats meat at work because the kitchen is small", "Ana eats"),
    ],
)
def test_what_speaks_of_something_else_denies_nothing(one, other):
    assert denied(one, other) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The recital is on Saturday, 3 in the afternoon", "15:00 on Saturday: the recital"),
        ("no screens after 7 pm", "screens until seven in the evening"),
        ("the train leaves at quarter to nine", "the train leaves at 08:45"),
        ("the train leaves at quarter to nine", "the train leaves at 20:45"),
        ("half past three", "3:30 pm"),
        ("twenty minutes to four", "3:40 am"),
        ("one o'clock", "13:00"),
        ("two at night", "02:00"),
        ("eleven at night", "23:00"),
        ("spin it for half an hour", "spin it for 30 minutes"),
        ("it takes three quarters of an hour", "it takes 45 minutes"),
        ("an hour and a half", "90 minutes"),
        ("under-16s stay out", "those under 16 stay out"),
    ],
)
def test_one_time_told_in_two_ways_is_one(one: str, other: str) -> None:
    assert exact_differences(one, other) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the train leaves at quarter to nine", "the train leaves at quarter past nine"),
        ("the train leaves at quarter to nine", "the train leaves at 21:15"),
        ("the shop closes at six in the evening", "the shop opens at six in the morning"),
        ("the talk takes half an hour", "the talk takes 45 minutes"),
        ("from ten to five people come", "at 16:50 people come"),
    ],
)
def test_two_times_are_two(one: str, other: str) -> None:
    assert exact_differences(one, other) != ()


def test_a_number_that_is_no_hour_is_a_number() -> None:
    reading = read("30 in the morning class, 13 o'clock")

    assert reading.times == frozenset()
    assert {number.value for number in reading.numbers} == {30, 13}


def test_a_time_is_shown_as_a_clock_shows_it() -> None:
    assert [clock(time) for time in sorted(read("noon, 5:05 pm and half past three").times)] == [
        "12:00",
        "17:05",
        "03:30",
    ]


@pytest.mark.parametrize(
    ("known", "new", "more"),
    [
        ("Deploys go out Tuesdays and Thursdays, never Fridays", "Releases happen on Tuesday, not on Friday", ()),
        ("Yoga is on Monday", "Yoga: Mondays", ()),
        ("Yoga is in the old gym", "Yoga is on Mondays, in the old gym", ("mondays",)),
        ("Yoga is on Mondays", "Yoga is on Mondays and Fridays", ("fridays",)),
    ],
)
def test_a_day_of_the_week_adds_nothing_to_that_day_every_week(known: str, new: str, more: tuple[str, ...]) -> None:
    assert {each.casefold() for each in added(known, new)} == {*more}
