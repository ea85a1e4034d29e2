"""What a user tells an assistant in one breath: which matters it has, how they are spelled, and what each leans on."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from nous_online.language.pairs.wordings import other_subjects
from nous_online.language.writing.dates import with_full_dates
from nous_online.language.writing.lexrank import word_vectors
from nous_online.language.writing.matters import matters_of
from nous_online.language.writing.sentences import Sentence, sentences_of
from nous_online.language.writing.spelling import spelled_out
from nous_online.language.writing.writer import EndedEpisode, FactDraft, draft_facts, parse_episode

SAID_AT = datetime(2026, 9, 8, tzinfo=UTC)


def drawn(*turns: str) -> list[FactDraft]:
    """What is drawn from a chat that the user begins."""
    said = "\n".join(f"{('User', 'Assistant')[place % 2]}: {text}" for place, text in enumerate(turns))
    spoken = parse_episode(EndedEpisode(said, ended_at=SAID_AT))
    return list(draft_facts(spoken, word_vectors(spoken.sentences)))


@pytest.mark.parametrize(
    ("said", "matters"),
    [
        (
            "The gas comes from Tull since April, and Rosalind keeps the books on Wednesdays.",
            ["The gas comes from Tull since April.", "Rosalind keeps the books on Wednesdays."],
        ),
        (
            "Osric can't do Mondays any more, also my left wrist is in plaster until June",
            ["Osric can't do Mondays any more.", "my left wrist is in plaster until June."],
        ),
        (
            "the anvil went to Harwick for a new face anyway the bellows leak on the left side",
            ["the anvil went to Harwick for a new face.", "the bellows leak on the left side."],
        ),
        (
            "We only take cash on market days — the card reader is with my cousin.",
            ["We only take cash on market days.", "the card reader is with my cousin."],
        ),
        (
            "I moved the forge to Olm in March, do I need a new permit?",
            ["I moved the forge to Olm in March.", "do I need a new permit?"],
        ),
        (
            "i have two apprentices now how do i split the orders between them",
            ["i have two apprentices now.", "how do i split the orders between them?"],
        ),
    ],
)
def test_each_matter_of_a_sentence_is_one_of_its_own(said: str, matters: list[str]) -> None:
    assert matters_of(said) == matters


@pytest.mark.parametrize(
    "said",
    [
        "I moved to Olm in March and I love it there by the water.",
        "My sister and my two brothers love the new forge in Harwick.",
        "I close the forge when Osric is away and the gas is low.",
        "I told Rosalind that the anvil is cracked and the insurance pays for it.",
        "We have larch, oak and beech in the shed behind the forge.",
        "I know what is wrong with the old bellows in the shed.",
        "Do I need a permit for the forge, and is it the council that gives it?",
        "Four hundred and eighty a night for the lot, which is not what I'd get in July.",
        "He halved the new tablet on Monday, two and a half of the amlodipine it is.",
        "Corin's hip is done on the ninth so me and Wilf are driving up to Olm.",
        "The roof (it leaks, and the gutter is gone) has to be done before May.",
        "Not to be confused with Bea the smith who does the gates for the council.",
        "I am fine with all of it, but I hate coriander in the soup.",
        "The plan we made is that Osric drives the van on Mondays.",
        "Rosalind and Osric agreed how many gates we need for Olm.",
        "I left my keys with Bea where they are there until Monday.",
        "The oven broke twice in May, what is more it leaks.",
        "Ich esse übrigens seit zwei Wochen kein Fleisch mehr in der Schmiede.",
    ],
)
def test_what_belongs_together_stays_one_sentence(said: str) -> None:
    assert matters_of(said) == [said]


def test_a_long_message_becomes_facts_of_one_matter_each_found_by_all_of_it() -> None:
    told = (
        "Osric starts at seven on Mondays now. The bellows are from Tull and Sons, they last ten years. "
        "My wrist is in plaster until 3 October."
    )

    facts = drawn(told, "Noted.")

    assert [fact.content for fact in facts] == [
        "Osric starts at seven on Mondays now.",
        "The bellows are from Tull and Sons, they last ten years.",
        "My wrist is in plaster until 3 October 2026.",
    ]
    assert all(fact.context and "until 3 October" in fact.context for fact in facts)
    assert drawn("Osric starts at seven on Mondays now.", "Noted.")[0].context is None


@pytest.mark.parametrize(
    "told",
    [
        "The oven failed its test, a spring and two burners. So it's off until Monday the 14th.",
        "The Tull wedding is on 3 October in Olm. Hot buffet at 48 a head.",
        "clinic rang. op's off!! I'm having it on 4 May 2026 instead, half 2, same place",
        "Edda gave up the violin. She wants drums, Fridays at half past four in Harwick.",
    ],
)
def test_what_says_more_of_the_sentence_before_stays_with_it(told: str) -> None:
    (fact,) = drawn(told, "I see.")

    assert fact.evidence == told


def test_he_is_whoever_was_named_last() -> None:
    facts = drawn(
        "My dad lent me four thousand for the van.", "Good.", "Osric wants less work. He does the gates.", "Ok."
    )

    assert not any("dad" in fact.content and "gates" in fact.content for fact in facts)


@pytest.mark.parametrize(
    "asked",
    [
        "who on earth do I put at the forge on a Monday",
        "right what's 92 times 180 grams of coal",
        "how much coal do I need for 40 gates in Harwick",
        "can you do again the numbers with the 745",
    ],
)
def test_a_question_without_its_mark_is_no_fact(asked: str) -> None:
    assert drawn(asked, "Twelve.") == []


def test_an_assistant_that_is_sorry_takes_nothing_back() -> None:
    told = "Physio is on Tuesdays at 10 with a lady called Anneli."

    assert [fact.content for fact in drawn(told, "Sorry to hear that. I'll keep it free.")] == [told]


def said(*turns: tuple[str, str]) -> list[str]:
    spoken = [Sentence(text, speaker=speaker, turn=turn) for turn, (speaker, text) in enumerate(turns)]
    return [each.text for each in spelled_out(spoken)]


def test_names_days_and_i_have_their_capitals_and_denials_their_apostrophes() -> None:
    assert said(
        ("user", "i told osric we cant do saturdays, and i miss him, and march on 20 ms later"),
        ("assistant", "Then ask Osric about Friday, when the farm at Greenhill Farm is open."),
        ("user", "osric's on the farm and i'm at tull's til monday"),
    ) == [
        "I told Osric we can't do Saturdays, and I miss him, and march on 20 ms later",
        "Then ask Osric about Friday, when the farm at Greenhill Farm is open.",
        "Osric's on the farm and I'm at tull's til Monday",
    ]


@pytest.mark.parametrize("told", ["i am in porto", "my name is bea and i swim", "i work at tesco on mondays"])
def test_a_chat_of_one_short_sentence_in_english_has_its_capitals_too(told: str) -> None:
    spelled = told.replace("i ", "I ").replace("mondays", "Mondays")

    assert said(("user", told)) == [spelled]


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        ("vado con i miei fratelli, lunedì e martedì siamo a casa di mia madre per la festa", "Bene."),
        ("ich komme morgen mit dem hammer, das essen war gut", "Zum Essen am Morgen passt der Hammer nicht."),
        ("Teściowa Barbara przyjeżdża w piątki i gotuje rosół.", "Ok."),
        ("Nonna Carla porta i bambini in piscina ogni sabato.", "Ok."),
        ("Min syster Karin bor i Uppsala och jobbar i Enköping.", "Ok."),
        ("Min kat sover i sengen.", "Ok."),
    ],
)
def test_in_other_languages_everything_stays_as_it_is(told: str, answer: str) -> None:
    assert said(("user", told), ("assistant", answer)) == [told, answer]


@pytest.mark.parametrize(
    ("told", "complete"),
    [
        ("The lunch next week is for 42.", "The lunch next week (week of 14 September 2026) is for 42."),
        ("Das Fest nächste Woche ist abgesagt.", "Das Fest nächste Woche (2026-09-14) ist abgesagt."),
        ("Tull wants the order by Tuesday for a Thursday drop.", None),
        ("I pick them up last Friday of the month.", None),
        ("I water the garden every Friday, by Friday it is dry.", None),
        ("Tull wants the order by Friday.", "Tull wants the order by Friday (11 September 2026)."),
    ],
)
def test_a_day_of_every_week_is_no_date(told: str, complete: str | None) -> None:
    assert with_full_dates(told, date(2026, 9, 8)) == (complete or told)


@pytest.mark.parametrize(
    ("told", "category"),
    [
        ("Metric only please, grams and litres, for all of the forge.", "rule"),
        ("Never ever suggest oil of truffles to me.", "rule"),
        ("If I tell you about a new order always ask me for the colour.", "rule"),
        ("Oh, and no exclamation marks, ever, in the letters.", "rule"),
        ("Don't talk to me about gates, Osric broke three on Monday.", None),
        ("The vet in Harwick says the dog is allergic to chicken.", None),
    ],
)
def test_an_order_in_passing_is_a_rule_and_an_idiom_is_none(told: str, category: str | None) -> None:
    assert [fact.category for fact in drawn(told, "I see.")][:1] == [category]


@pytest.mark.parametrize(
    ("told", "subject"),
    [
        ("Edda's got drums at 4 on Mondays in the school.", "Edda"),
        ("Mondays are free in the forge since 3 October.", None),
        ("nothing to do with the gate in Harwick before you ask", None),
    ],
)
def test_a_subject_is_a_name_and_no_crumb(told: str, subject: str | None) -> None:
    assert [fact.subject for fact in drawn(told, "I see.")][:1] == [subject]


def test_who_says_i_speaks_of_no_other_subject() -> None:
    told = ("Tull brings the coal on Mondays", "Tull rang me, so I get the coal on Fridays now")

    assert other_subjects("Tull", "user", told) is None
    assert other_subjects("Tull", "user", (told[0], "the coal comes on Fridays")) is not None
    assert other_subjects("Tull", "Osric", told) is not None
    assert other_subjects("Osric", "user", ("I like the old bellows", "I like the old bellows")) is not None
    assert other_subjects("Osric", "user", ("Osric: I like the old bellows", "I like the old bellows")) is not None


def test_a_common_noun_of_a_name_keeps_its_small_letter() -> None:
    said = [Sentence("I drove a bus for Bus Éireann, and corin too, as Corin likes it.", "user", turn=1)]

    (spelled,) = spelled_out(said)

    assert spelled.text == "I drove a bus for Bus Éireann, and Corin too, as Corin likes it."


def test_a_day_before_a_small_letter_ends_no_sentence() -> None:
    said = "Ich fahre vom 27. bis 30. Dezember nach Bad Aussee. Petra kommt mit."

    assert [each.text for each in sentences_of(said)] == [said[:51], said[52:]]


def test_each_matter_behind_a_cut_opens_with_a_capital() -> None:
    told = [each.content for each in drawn("We only take cash on market days — the card reader is with my cousin.")]

    assert "The card reader is with my cousin." in told
