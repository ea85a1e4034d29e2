"""What people tell in passing: facts drawn from it, changes noticed in it, and what may hold beside each other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nous_online.core.policy import LearnPolicy
from nous_online.language.lexicon import HARMFUL
from nous_online.language.pairs.clauses import MOST_READ, clauses_of, parts_in_common, parts_of
from nous_online.language.pairs.guards import says_again
from nous_online.language.pairs.judging import SURE_FROM, JudgedStatement, Judgement, OfflineJudge, Pair, Verdict
from nous_online.language.pairs.reader import shared_content
from nous_online.language.pairs.wordings import may_add
from nous_online.language.writing.lexrank import word_vectors
from nous_online.language.writing.points import points_of
from nous_online.language.writing.sentences import human_text, sentences_of
from nous_online.language.writing.writer import EndedEpisode, draft_facts, parse_episode

EARLIER, LATER = (datetime(2026, month, 1, tzinfo=UTC) for month in (4, 5))
IN_PASSING = [
    (
        "Could you suggest a podcast for drives? By the way, I'm on chapter 4 of the Stendhal, and it drags a bit.",
        "The lasagne was a success, thanks! Oh, and I'm on chapter 9 of the Stendhal now, which gets better.",
    ),
    (
        "I've been spending about an hour each evening on the violin, which has helped my left hand a lot.",
        "I've been spending about two hours each evening on the violin, and I'm excited to play in spring.",
    ),
    (
        "We had a great evening at the chess club, where I play on board 6 this season. What should I cook on Sunday?",
        "My sister is visiting, so I need a recipe for five. By the way, I play on board 3 at the chess club now!",
    ),
]
OTHER_MATTERS = [
    (
        "Thanks, Melanie! That plate is wonderful, and so are the colours of the cup beside it. Did you make both?",
        "Thanks, Caroline! I painted it after a day at the beach, and it was calming to see the sun go down there.",
    ),
    (
        "By the way, I'm on chapter 4 of the Stendhal, and it drags a bit. Could you suggest a podcast for drives?",
        "I've been running about 20 kilometres each week, and I'm looking for softer shoes these days.",
    ),
    (
        "We had a great evening at the chess club, where I play on board 6 this season. What should I cook on Sunday?",
        "The lasagne was a success, thanks! My sister has invited six people, and we need more plates for the evening.",
    ),
]
MAY_ADD = """
    Grandpa takes a pill at 8 am | Grandpa takes a pill at 8 pm
    Anna has piano on Mondays | Anna has piano on Thursdays
    Max has school until 15:30 on Tuesdays | Max has school until 15:30 on Wednesdays
    Gym class is on Mondays at six | Gym class is on Wednesdays at six
    Lisa has a maths test on 3 December | Lisa has a maths test on 10 December
    Ben sleeps at Oma's on Fridays | Ben sleeps at Oma's on Saturdays
    Grandma takes the blue pill in the morning | Grandma takes the white pill in the morning
    Ana has a dog called Rex | Ana has a dog called Bello
    Emma plays the violin | Emma plays the piano
    The bins are emptied on Tuesdays | The bins are emptied on Fridays
"""
TAKES_ITS_PLACE = """
    The shop opens at 9 | The shop opens at 10
    Standup is at 9:00 | Standup is at 10:00
    The dentist appointment is on Tuesday | The dentist appointment is on Thursday
    Rent is due on the 1st | Rent is due on the 5th
    The API has a limit of 100 requests | The API has a limit of 250 requests
    Lena's best friend is Mia | Lena's best friend is Sophie
    Ana lives in Rome | Ana lives in Paris
    Anna has piano on Mondays | Anna's piano lesson has moved to Thursdays
"""


def judged(earlier: str, later: str, *, similarity: float = 0.7) -> Judgement:
    sides = (JudgedStatement(text, stated_at=when) for text, when in ((earlier, EARLIER), (later, LATER)))
    return OfflineJudge().judge([Pair(*sides, similarity=similarity)])[0]


def facts(detail: str) -> list[str]:
    """What is drawn from a transcript by its words alone."""
    spoken = parse_episode(EndedEpisode(detail))
    return [fact.content for fact in draft_facts(spoken, word_vectors(spoken.sentences))]


def rows(table: str) -> list[tuple[str, str]]:
    return [(a.strip(), b.strip()) for a, b in (line.split("|") for line in table.strip().splitlines())]


@pytest.mark.parametrize(("earlier", "later"), IN_PASSING)
def test_a_change_told_in_passing_is_noticed_and_retires_nothing(earlier: str, later: str) -> None:
    judgement = judged(earlier, later)

    assert judgement.verdict is Verdict.UPDATES
    assert judgement.confidence < SURE_FROM


@pytest.mark.parametrize(("earlier", "later"), OTHER_MATTERS)
def test_texts_about_other_matters_are_left_alone(earlier: str, later: str) -> None:
    assert judged(earlier, later).verdict in {Verdict.COMPATIBLE, Verdict.UNSURE}


def test_parts_are_sentences_and_clauses_without_what_leads_in_and_without_questions() -> None:
    text = "Did it rain? Oh, and by the way, speaking of books, I'm on page 20 of the Stendhal, which is dull."

    assert parts_of(text) == ("I'm on page 20 of the Stendhal, which is dull.",)


def test_a_text_of_one_clause_has_no_clauses() -> None:
    assert clauses_of("I'm on page 20 of the Stendhal") == []


def test_of_two_single_sentences_only_what_people_say_of_themselves_is_read_part_by_part() -> None:
    one, other = "The index rose to 1,646, or 0.5 percent", "The index fell to 1,646, or 0.1 percent"

    assert parts_in_common(one, other) == []
    assert parts_in_common(f"Good news. {one}", other) != []


def test_only_parts_with_words_in_common_are_read_and_few_of_them() -> None:
    one = "; ".join(f"I take the red boat {name} to the harbour" for name in ("Ana", "Bea", "Cleo", "Dora"))

    assert parts_in_common(one, "The weather is fine today, and nobody works.") == []
    assert len(parts_in_common(one, one.replace("red", "blue"))) == MOST_READ


@pytest.mark.parametrize(("a", "b"), rows(MAY_ADD))
def test_another_time_or_thing_of_many_retires_nothing_by_itself(a: str, b: str) -> None:
    assert may_add(a, b)
    assert judged(a, b, similarity=0.9).confidence < SURE_FROM


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (
            "For clinics (not salons) cancelling is free until 72 hours before the visit",
            "Free cancellation window for salons has been widened to 48 hours before the appointment.",
        ),
        ("The pool opens at 7 (not on Sundays)", "On Sundays the pool opens at 10"),
        (
            "Late returns cost 2 euros a day (except for children)",
            "Children now pay 50 cents a day for late returns",
        ),
        ("All rooms are 80 euros excluding the suite", "The suite is 140 euros now"),
    ],
)
def test_what_a_statement_leaves_out_is_not_what_it_speaks_of(earlier: str, later: str) -> None:
    assert judged(earlier, later).confidence < SURE_FROM or judged(earlier, later).verdict is Verdict.COMPATIBLE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Everyone on the team gets a laptop (except interns)", "All team members receive a laptop"),
        ("All the rooms are heated (except the attic)", "Every room is heated"),
    ],
)
def test_what_leaves_something_out_is_not_the_same_as_what_does_not(one: str, other: str) -> None:
    assert Verdict.SAME not in {judged(one, other).verdict, judged(other, one).verdict}


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The shop moved from Hill Road to Mill Lane", "The shop is in Mill Lane"),
        ("Ana switched from oat milk to soy", "Ana drinks soy milk"),
        ("They cut the deposit from 300 to 200 euros", "the deposit is 200 euros"),
    ],
)
def test_what_something_changed_to_is_no_change_when_it_is_said_again(earlier: str, later: str) -> None:
    assert judged(earlier, later).verdict in {Verdict.COMPATIBLE, Verdict.UNSURE, Verdict.SAME}


def test_what_denies_the_new_value_does_not_say_it_again() -> None:
    told = "They cut the deposit from 300 to 200 euros"

    assert says_again(told, "the deposit is 200 euros")
    assert says_again(told, "nobody pays the 200 euros deposit") is None
    assert says_again(told, "the deposit is 150 euros") is None
    assert says_again(told, "the deposit was 300, now 200 euros") is None


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("They cut the deposit from 300 to 200 euros", "the deposit is 150 euros"),
        ("We migrated from Jenkins to Buildkite last week", "We are done with Buildkite, it's all Dagger"),
        ("The meeting was moved from Monday to Tuesday", "Tuesday's meeting is cancelled"),
    ],
)
def test_a_value_after_the_one_that_something_changed_to_is_a_change(earlier: str, later: str) -> None:
    assert judged(earlier, later).verdict is Verdict.UPDATES


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("We indent with tabs (not spaces)", "We indent with four spaces now"),
        ("The pool opens at 7 (not on Sundays)", "The pool opens at 6 now"),
    ],
)
def test_what_stands_in_brackets_may_be_the_new_value(earlier: str, later: str) -> None:
    assert judged(earlier, later).verdict is Verdict.UPDATES


@pytest.mark.parametrize(("a", "b"), rows(TAKES_ITS_PLACE))
def test_another_value_of_what_has_one_takes_its_place(a: str, b: str) -> None:
    assert not may_add(a, b)


def test_what_leads_in_to_a_fact_is_no_part_of_it() -> None:
    told = (
        "User: Could you suggest a podcast? By the way, speaking of books, I'm on page 220 of the Stendhal now.\n"
        "User: Oh, and also, my sister Emma has moved to Lisbon."
    )

    assert facts(told) == ["I'm on page 220 of the Stendhal now.", "My sister Emma has moved to Lisbon."]


@pytest.mark.parametrize(
    "line",
    [
        "Thanks for the suggestions, those really help me a lot!",
        "I'll definitely check some of those out this weekend.",
        "I need help finding something to read on the train.",
        "That sounds like a really good plan for the evening.",
    ],
)
def test_how_somebody_takes_up_an_answer_is_no_point(line: str) -> None:
    assert points_of(sentences_of(human_text(f"User: {line}"))) == []


@pytest.mark.parametrize(
    "line",
    [
        "Thanks, and never book anything before nine for me again.",
        "That is because the old boiler leaks when it freezes outside.",
        "I'm glad that my sister Emma found a flat in Porto.",
    ],
)
def test_what_lasts_or_names_something_stays_though_it_takes_up_an_answer(line: str) -> None:
    assert points_of(sentences_of(human_text(f"User: {line}"))) != []


@pytest.mark.parametrize(
    "told",
    [
        "I gave up coffee last week.",
        "I drink three cups of tea a day.",
        "I don't eat meat.",
        "I have two cats.",
        "My sister is lactose intolerant.",
        "I take the bus to work now.",
    ],
)
def test_what_a_user_tells_of_themselves_is_a_fact_without_a_name_or_a_figure(told: str) -> None:
    assert facts(f"User: {told}\nAssistant: I see, thanks for telling me.") == [told]


def test_each_statement_of_a_user_about_themselves_is_a_fact_of_its_own() -> None:
    told = "User: I gave up coffee last week. I get up at 7:15 these days, it is simply too dark before that."

    assert facts(told) == [
        "I gave up coffee last week.",
        "I get up at 7:15 these days, it is simply too dark before that.",
    ]


def test_what_is_told_before_a_question_in_the_same_sentence_is_a_fact() -> None:
    asked = "User: My flight is on 3 December at 7:10, can you remind me?\nUser: If I moved, would I have to register?"

    assert facts(asked) == ["My flight is on 3 December at 7:10."]


def test_an_assistants_advice_and_examples_are_no_memories_of_the_user() -> None:
    chat = (
        "User: Can you give me an example of a short bio?\n"
        "Assistant: I live in Oslo and I work as a marine biologist. My dog Rex is 4 years old.\n"
        "User: Nice. I live in Bergen myself."
    )

    assert facts(chat) == ["I live in Bergen myself."]


def test_a_day_of_every_year_gets_no_year() -> None:
    said = EndedEpisode("User: My sister's birthday is on 21 August.", ended_at=datetime(2026, 10, 23, tzinfo=UTC))
    spoken = parse_episode(said)

    (fact,) = draft_facts(spoken, word_vectors(spoken.sentences))

    assert fact.content == "My sister's birthday is on 21 August."


def test_a_change_of_one_sentence_retires_no_fact_of_several() -> None:
    earlier = "It's fine. Since the clocks changed I get up at 7:15, it's simply too dark before that"
    later = "Was great, I ran with the new shoes and my 5k time is 29 minutes 30 now!!"

    judgement = judged(earlier, later)

    assert judgement.verdict is not Verdict.UPDATES or judgement.confidence < SURE_FROM
    assert judged("Our rent is 900 euros. The flat is in Ulm.", "Our rent is 950 euros now").confidence < SURE_FROM


NOTHING_IN_COMMON = [
    (
        "Nobody reads my notes anyway. Oh and rowing: we've moved practice to Thursdays, the boathouse has no light.",
        "Fat and happy. So, the papers: my accountant is called Ines; the rowing club's books are kept by Olga.",
    ),
    (
        "J'ai deux ruches au fond du jardin. Elles vont bien, surtout la grande, et Paul a eu son premier stage : "
        "à la mairie, du 4 janvier au 12 février.",
        "1 500 euros, que je ne reverrai pas. Par contre bonne nouvelle, la banque m'accorde 22 000 sur dix ans, "
        "je signe le 12 mars à Vannes.",
    ),
    (
        "Le camion rouge, je le garde, c'est celui avec lequel je livre tous les jours.",
        "J'ai aussi deux assurances à ne pas confondre : le camion est chez Maif, 640 euros par an, la maison est chez "
        "Axa. 410 euros.",
    ),
]

ONE_WORD_IN_COMMON = (
    "Le camion rouge, je le garde, c'est celui avec lequel je livre tous les jours.",
    "J'ai aussi deux assurances à ne pas confondre : le camion est chez Maif, 640 euros par an, la maison est chez Axa",
)


@pytest.mark.parametrize(("earlier", "later"), [*NOTHING_IN_COMMON, ONE_WORD_IN_COMMON])
def test_texts_of_several_sentences_are_in_doubt_only_where_two_of_these_are(earlier: str, later: str) -> None:
    judgement = judged(earlier, later, similarity=0.5)

    assert judgement.verdict in {Verdict.COMPATIBLE, Verdict.UNSURE}
    assert judgement.change < LearnPolicy().doubt_from


def test_a_change_that_crosses_sentences_is_noticed_where_the_whole_is_surely_one() -> None:
    earlier = "Bea sits with my mother at night, ten till six, as she wanders off otherwise."
    later = "Bea gave notice on Monday. Her back. So from tonight it's Tomás who sits with my mother at night."

    assert judged(earlier, later, similarity=0.6).verdict is Verdict.UPDATES


def test_that_one_person_tells_both_is_no_sign_that_they_are_about_the_same() -> None:
    texts = "I get up at seven these days", "My time over five kilometres is 29 minutes"
    told, of_run = (
        OfflineJudge().judge(
            [
                Pair(
                    *(JudgedStatement(text, subject, when) for text, when in zip(texts, (EARLIER, LATER), strict=True)),
                    0.5,
                )
            ]
        )[0]
        for subject in ("User", "the run")
    )

    assert told.change < of_run.change


RETIRES_NOTHING = [
    (
        "I've moved my entry to the short race at Long Lake, 1 November 2026",
        "Bremen, 12 December 2026, booked. Bloods: Dr Marsh rang, the value's too high, she wants me down to 62.5 "
        "micrograms, so half a tablet or whatever, from tomorrow (19 October 2026). honestly",
    ),
    (
        "Important for the cake: Leo can't have peanuts, emergency pen and everything.",
        "Leo just left. He loved the cake, no peanuts anywhere, and we scrubbed the kitchen as he carries that pen.",
    ),
    ("Ana can't have milk.", "Ana drinks milk again."),
]


@pytest.mark.parametrize(("earlier", "later"), RETIRES_NOTHING)
def test_a_longer_text_retires_what_a_sentence_of_it_replaces_and_no_text_an_allergy(earlier: str, later: str) -> None:
    judgement = judged(earlier, later, similarity=0.5)

    assert judgement.verdict is not Verdict.UPDATES or judgement.confidence < SURE_FROM


def test_a_sentence_of_a_longer_text_retires_what_it_replaces() -> None:
    news = (
        "Good news for all who get up early. The bakery opens at six now. See you there, and bring your friends along."
    )

    for later in ("Good news. The bakery opens at six now.", news):
        judgement = judged("The bakery opens at seven.", later)
        assert (judgement.verdict, judgement.confidence >= SURE_FROM) == (Verdict.UPDATES, True)


def test_a_year_in_both_is_nothing_in_common() -> None:
    assert shared_content("The race is on 1 November 2026", "Bremen on 12 December 2026 is booked") == 0
    assert shared_content("Room 2026 is free", "The key of room 2026") == 1


@pytest.mark.parametrize(
    "text",
    [
        "Ana is allergic to cats",
        "Leo cannot eat rye",
        "Aspirin is off limits for Bo",
        "Der Kater verträgt keine Milch",
        "Mia hat eine Nussallergie",
        "Zoé ne peut pas manger de noix",
        "Luis no puede tomar leche",
    ],
)
def test_what_somebody_must_never_be_given_is_told_in_several_languages(text: str) -> None:
    assert HARMFUL.search(text)
    assert not HARMFUL.search("Ana eats what there is and can have it all")


@pytest.mark.parametrize(
    ("earlier", "later"),
    rows("""
My sister Kezia is a nurse at the BRI and works nights | Kezia has come off nights, she's on days since Monday
My daughter Ines goes to the Waldorf school and plays the cello | Ines has given up the cello
My mother lives alone and has a cleaner twice a week | mum's cleaner quit
"""),
)
def test_what_changes_a_clause_without_a_subject_leaves_the_other(earlier: str, later: str) -> None:
    assert judged(earlier, later).reason.startswith("the later one replaces a part")


@pytest.mark.parametrize(
    ("earlier", "later"),
    rows("""
Our printer is Halden, and the cut-off for Friday's paper is 17:30. | Heads up: Halden moved the cut-off to 16:45.
Members get an email two weeks ahead and a text the day before. | We've turned the emails off, it's only the text now.
The gate fee is £12 before noon and £9 after noon. | The gate fee after noon is £11 now, before noon it stays.
"""),
)
def test_what_changes_one_of_two_things_told_together_retires_neither(earlier: str, later: str) -> None:
    judgement = judged(earlier, later)

    assert (judgement.verdict, judgement.confidence < SURE_FROM) == (Verdict.UPDATES, True)
    assert judgement.reason.startswith("the later one replaces a part")


def test_a_label_before_a_value_is_no_part_that_stays() -> None:
    judgement = judged("Shirt sponsor: Nolan Tyres", "Our shirt sponsor is Peat & Sons now")

    assert (judgement.verdict, judgement.confidence >= SURE_FROM) == (Verdict.UPDATES, True)


@pytest.mark.parametrize(
    ("earlier", "later"),
    rows("""
Norvik Waste empties the bins at Holm Street on Mondays. | Norvik Waste empties the bins at Mill Yard on Wednesdays.
Piano lessons are at the school on Mondays. | Piano lessons are at the church on Wednesdays.
Send invoices for Holm to Ruben. | Send invoices for Rask to Ida.
Calls to Holm Street go to Mill Yard after 8 rings. | Calls to Mill Yard now go to a service, not to Holm Street.
On duty for nights at Holm: Ruben Rask. | On duty for nights at Mill Yard: Ida Tate.
"""),
)
def test_what_is_told_of_another_place_retires_nothing(earlier: str, later: str) -> None:
    judgement = judged(earlier, later)

    assert judgement.verdict is not Verdict.UPDATES or judgement.confidence < SURE_FROM


def test_a_sum_in_slang_is_read_as_it_is_written() -> None:
    judgement = judged("The beginners' course is £78.", "beginners course - new price 84 quid", similarity=0.76)

    assert judgement.verdict is Verdict.UPDATES


def test_outside_of_english_a_reading_retires_only_what_is_worded_alike() -> None:
    told = "Die Heldin von Les Heures pâles heißt Odile."
    other = (
        "Übrigens drucken wir von Les Heures pâles jetzt doch 1200 Stück, die Buchhandlungen haben viel vorbestellt."
    )
    raised = judged("Vater nimmt 2,5 mg Bisoprolol", "Vater nimmt jetzt 5 mg Bisoprolol", similarity=0.93)

    assert judged(told, other, similarity=0.65).confidence < SURE_FROM
    assert "name" not in judged(told, other, similarity=0.65).reason, "not every German noun is a name"
    assert (raised.verdict, raised.confidence >= SURE_FROM) == (Verdict.UPDATES, True)
