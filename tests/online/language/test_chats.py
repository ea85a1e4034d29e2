"""What a user tells an assistant in a chat: what of it becomes a fact, and in which words."""
# ruff: noqa: RUF001 — full-width question marks are cases

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nous_online.language.lexicon import HEALTH
from nous_online.language.writing.lexrank import word_vectors
from nous_online.language.writing.writer import EndedEpisode, FactDraft, draft_facts, levels_by_words, parse_episode

SAID_AT = datetime(2026, 9, 8, tzinfo=UTC)


def drawn(*turns: str) -> tuple[FactDraft, ...]:
    """What is drawn from a chat that the user begins."""
    spoken = parse_episode(EndedEpisode(chat(*turns), ended_at=SAID_AT))
    return draft_facts(spoken, word_vectors(spoken.sentences))


def facts(*turns: str) -> list[str]:
    return [fact.content for fact in drawn(*turns)]


def chat(*turns: str) -> str:
    return "\n".join(f"{('User', 'Assistant')[place % 2]}: {text}" for place, text in enumerate(turns))


THINGS = "anvil bellows hammer vice furnace"
LONG_TURN = (
    "It was a long day at the forge. Rosalind keeps the books on Wednesdays, and the gas comes from Tull and Sons "
    "since April. The anvil went to Harwick for a new face, it comes back on 3 October. Corin swept the yard, broke a "
    "window, mended it, and went home at four with the key of the coal shed in his pocket."
)


def test_what_a_user_tells_at_length_is_no_pasted_text() -> None:
    told = facts(LONG_TURN, "That sounds like a full day.")

    assert any("Rosalind keeps the books on Wednesdays" in fact for fact in told)
    assert any("3 October" in fact for fact in told)


def test_a_text_of_many_lines_or_words_that_a_user_pastes_is_no_fact() -> None:
    pasted = LONG_TURN.replace(". ", ".\n\n")

    assert facts(f"Proofread this:\n\n{pasted}", "Done.") == []


def test_what_a_user_tells_of_health_is_a_fact_though_the_answer_explains_at_length() -> None:
    advice = " ".join(["Ask the surgery for another one, and keep a list of what was taken and when."] * 6)

    assert facts("Bea is allergic to ibuprofen.", advice) == ["Bea is allergic to ibuprofen."]
    assert facts("The new gas comes from Tull and Sons in Harwick.", advice) != []
    assert facts("The list has at most 9 entries and no brand is on it.", advice) == []


BRIEF = (
    "I hate flying.",
    "I'm learning Danish.",
    "I love sushi.",
    "My name's Bea.",
    "I play tennis.",
    "Ich spiele Geige.",
)


@pytest.mark.parametrize("told", [*BRIEF, "I'm vegan.", "Ich bin Veganerin."])
def test_what_users_are_like_or_do_is_a_fact_however_short(told: str) -> None:
    assert facts("I moved here in spring.", "Welcome!", told, "Good to know.")[-1] == told


def test_of_many_short_things_that_a_user_tells_each_is_a_fact() -> None:
    assert facts(*(turn for told in BRIEF for turn in (told, "Noted."))) == [*BRIEF]


@pytest.mark.parametrize("said", ["I agree completely.", "I love it.", "I'm so tired.", "I hope so.", "My own fault."])
def test_a_few_words_about_the_moment_are_no_fact(said: str) -> None:
    assert said not in facts("I moved here in spring.", "Welcome!", said, "I see.")


@pytest.mark.parametrize("day", ["Übermorgen", "Nächsten Dienstag", "Freitags", "Gestern"])
def test_a_day_is_no_subject(day: str) -> None:
    (fact,) = drawn(f"{day} kommt Britta mit dem Zug aus Kiel.", "Ok.")

    assert fact.subject is None


@pytest.mark.parametrize(
    "told",
    [
        "On ne commande plus de pizzas le vendredi.",
        "El inyector lo pasamos a la cocina.",
        "Teść nie jest cukrzykiem.",
        "健太は市役所で働いています。",
        "妻子在医院上班。",
    ],
)
def test_what_a_user_tells_in_other_languages_is_a_fact_without_a_name_or_a_figure(told: str) -> None:
    assert facts(told, "Ok.") == [told]


def test_what_is_told_in_a_script_without_spaces_is_a_fact_a_sentence() -> None:
    said = "姉の美咲は横浜に住んでいます。健太は市役所で働いています。ありがとう。天気を教えてください。"

    assert facts(said, "はい。") == ["姉の美咲は横浜に住んでいます。", "健太は市役所で働いています。"]


OF_HEALTH = """
unser Jüngster, der Paul, darf keine Erdnüsse.
mi hija no puede comer cacahuates.
Nico es celíaco.
Gaël ne peut pas manger d'arachides.
Anna è intollerante al lattosio.
O Rui não pode comer camarão.
Sanne is zwanger.
Nils tål inte jordnötter.
Jaś nie może jeść orzeszków ziemnych.
Babcia ma cukrzycę i bierze insulinę.
Hania jest uczulona na orzechy.
У Миши аллергия на орехи.
Emre şeker hastası.
ليلى لديها حساسية من الفول السوداني.
राहुल को मूंगफली से एलर्जी है।
息子の蓮はピーナッツアレルギーです。
小明对花生过敏。
""".strip().splitlines()


@pytest.mark.parametrize("told", OF_HEALTH)
def test_what_a_user_tells_of_health_is_kept_in_the_languages_of_the_reader(told: str) -> None:
    whole = told[:1].upper() + told[1:]

    assert facts(whole, "Ok.") == [whole]
    assert whole in facts("Hallo.", "Gibt es Allergien in der Familie?", f"Ja, {told}", "Ok.")[-1]


def test_what_opens_an_answer_in_other_languages_is_no_part_of_a_fact() -> None:
    assert facts("Hola.", "¿Alguna alergia?", "Sí, mi hija es celíaca.") == ["Mi hija es celíaca."]
    assert facts("はい、蓮は卵アレルギーです。", "Ok.") == ["蓮は卵アレルギーです。"]


def test_a_word_that_is_of_health_in_another_sense_alone_is_no_fact_of_it() -> None:
    assert not HEALTH.search("Den Ausschlag gab am Ende der Preis, und da darf kein Auto stehen.")


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("My uncle runs the ferry.", "He can't take aspirin, it made him bleed."),
        ("Ma mère vit à Nantes.", "Elle est diabétique, 20 mg le matin."),
        ("Mi hermana viene en junio.", "Ella es celíaca desde niña."),
    ],
)
def test_whom_a_pronoun_means_is_told_with_it(before: str, told: str) -> None:
    assert f"{before} {told}" in facts(before, "I see.", told, "Noted.")


def test_a_name_says_whom_a_pronoun_means_where_it_is_the_only_one() -> None:
    assert "Corin works in the yard. He starts at 6:30 in the forge." in facts(
        "Corin works in the yard.", "Good.", "He starts at 6:30 in the forge.", "Noted."
    )
    assert facts("Corin met Rosalind and Bea.", "Good.", "He starts at 6:30 in the forge.", "Noted.") == [
        "Corin met Rosalind and Bea."
    ]


def test_an_assistant_that_repeats_what_it_was_told_takes_nothing_back() -> None:
    told = "Number 7 nails are at 12 euros, I have three boxes."

    assert told in facts(told, "No. 7 at 12 euros noted.")
    off = "Fencing lessons with Bea are off until 3 October 2026."
    assert off in facts(off, "No fencing lessons with Bea, then.")


def test_words_that_say_nothing_in_spanish_are_nothing_in_common() -> None:
    told = "Bea ha dejado Burgos: se mudó a Soria y lo tengo cerca."

    assert told in facts(told, "¿Contento?", "Sí, aunque no se lo digo.", "Bien.")


def test_what_is_told_before_a_question_is_told_in_spanish_too() -> None:
    assert facts("Soy zurdo de nacimiento, ¿lo sabías?", "No.") == ["Soy zurdo de nacimiento."]


@pytest.mark.parametrize(
    "crumb",
    [
        "Fine, I'll take that.",
        "Great, nettles, I'll look for them.",
        "Something about weather for once.",
        "I pay both in March.",
        "I'll be old when it's paid.",
        "Ja, das dachte ich mir.",
        "That's what she said.",
        "You didn't ask why there are two keys for the shed.",
    ],
)
def test_what_only_takes_up_what_was_said_is_no_fact(crumb: str) -> None:
    assert facts("Bea mended the roof of the forge in May.", "Good.", crumb, "Fine.") == [
        "Bea mended the roof of the forge in May."
    ]


@pytest.mark.parametrize(
    ("asked", "crumb"),
    [
        ("Shall I mention the cellar?", "Only the attic, nobody likes the cellar."),
        ("How do you feel?", "Tired and proud."),
        ("It is getting dark early.", "It's fine."),
        ("She may be right.", "I was afraid of that."),
        ("¿Contento?", "Bastante, aunque no lo parezca."),
    ],
)
def test_a_reply_is_no_part_of_the_fact_behind_it(asked: str, crumb: str) -> None:
    told = "The roofer is called Osric and comes on 3 October."

    assert facts("Hello there.", asked, f"{crumb} {told}", "Noted.") == [f"{told[:-1]} 2026."]


def test_an_answer_that_only_chooses_is_no_fact() -> None:
    assert facts(
        "The forge opens at 9 on Mondays.", "Shall I mention Corin?", "Only Rosalind, nobody knows Corin."
    ) == ["The forge opens at 9 on Mondays."]


def test_of_many_statements_of_a_chat_most_are_facts() -> None:
    told = [f"The {thing} costs {place + 20} euros at Tull and Sons." for place, thing in enumerate(THINGS.split())]

    assert facts(*(turn for each in told for turn in (each, "That is on the list now, thank you."))) == told


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("What happened?", "Bea gives up the bakery in spring."),
        ("Any dose?", "10 mg, as before, but in the evening."),
        ("Is he well?", "He is allergic to bees, the doctor says."),
    ],
)
def test_an_answer_that_tells_something_stays(asked: str, answer: str) -> None:
    assert any(answer in fact for fact in facts("I rang Bea.", asked, f"{answer} The van stands in Harwick.", "Ah."))


def test_another_matter_begins_another_fact() -> None:
    anvil = "The anvil goes to Harwick on Friday for its new face."

    told = facts(f"{anvil} Oh and fencing: we moved the class to Mondays at nine.", "Noted.")

    assert told == [anvil, "Fencing: we moved the class to Mondays at nine."]


@pytest.mark.parametrize(
    ("told", "category"),
    [
        ("Corin would never touch the hives of my sister.", None),
        ("I'm back on tea, only before noon though.", None),
        ("We always give each other books on 6 January.", None),
        ("I'd like to only hammer on Mondays from now on.", None),
        ("From now on we're called the Harwick Smiths.", None),
        ("Tonight I sit in the forge instead, with a book.", None),
        ("We decided to keep the old bellows for Bea.", "decision"),
        ("I prefer larch, it keeps longer in water.", "preference"),
        ("Short answers please, I read you at the anvil.", "rule"),
        ("I have two keys for the forge, don't mix them up.", "rule"),
        ("Never book anything before nine for me again.", "rule"),
        ("From now on call me Bea, my name is too long.", "rule"),
        ('When I say "the shed" I mean the one in Harwick.', "rule"),
        ("Et jamais de listes à puces : pas de listes à rallonge.", "rule"),
    ],
)
def test_in_a_chat_only_what_has_the_form_of_a_rule_is_one(told: str, category: str | None) -> None:
    (fact,) = drawn(told, "I see.")

    assert fact.category == category


@pytest.mark.parametrize(
    ("told", "subject"),
    [
        ("Osric comes on 3 October for the roof.", "Osric"),
        ("Dr Amari doubled the amlodipine on Friday.", "Dr Amari"),
        ("Otherwise yes, at nine on Mondays in Harwick.", None),
        ("Twenty past nine suits Harwick best on Mondays.", None),
        ("Siete años que vive en Burgos y cumple 40.", None),
        ("D'ailleurs les tuiles de Harwick étaient fendues en 1890.", None),
        ("The yard was paved under Victoria in 1868.", None),
        ("My sister's van is in Harwick since 4 May.", "User"),
        ("There's a new baker in Harwick, at number 4.", None),
        ("Heute war der Amboss in Harwick an der Reihe, für 40 Euro.", None),
    ],
)
def test_the_subject_is_what_a_sentence_opens_with_or_none(told: str, subject: str | None) -> None:
    (fact,) = drawn(told, "I see.")

    assert fact.subject == subject


def test_a_title_names_no_role_and_the_short_levels_say_something() -> None:
    levels = levels_by_words(
        EndedEpisode(
            chat(
                "I signed for the new forge on Monday in Harwick.",
                "Congratulations! A wise choice.",
                "Ten years. My bookkeeper Rosalind says the rate of 3 percent is good for a forge of that size.",
                "Rosalind knows. Shall I note it?",
                "Yes. Osric repairs the roof from 3 October on.",
                "A wise man.",
            )
        )
    )

    assert levels.title == "I signed for the new forge on Monday in Harwick"
    assert not levels.index_word.startswith("user")
    assert "Ten years" not in levels.compressed
    assert "A wise" not in levels.summary
    assert "Rosalind says the rate of 3 percent" in levels.summary


def test_what_an_assistant_explains_stays_in_the_summary() -> None:
    told = "Slake the lime for three weeks, sieve it, and mix one part of it with three parts of sharp sand. " * 4

    assert "sharp sand" in levels_by_words(EndedEpisode(chat("How do I make lime mortar?", told))).summary


@pytest.mark.parametrize(
    ("asked", "answer", "fact"),
    [
        ("How many horses are you shoeing in a week now?", "Twelve. Mostly cobs.", "How many horses"),
        ("Who is looking after the forge while you're away?", "Corin Marsh.", "Who is looking after"),
        ("Does the apprentice have a name yet?", "Wilf Harkness.", "Does the apprentice"),
        ("When do you expect the new anvil?", "In November, once it has been paid.", "When do you expect"),
    ],
)
def test_a_bare_answer_is_told_with_its_question(asked: str, answer: str, fact: str) -> None:
    told = facts("I shod two mares at Olm today.", asked, answer, "Noted.")

    assert any(each.startswith(fact) and answer.split(".", maxsplit=1)[0] in each for each in told)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("Which tone would you like?", "Formal, very formal."),
        ("Shall I add a line about the anvil?", "Corin's anvil, yes."),
        ("Are you pleased with it?", "Mostly."),
        ("How long should the letter be in words?", "Forty or fifty."),
    ],
)
def test_an_answer_about_the_assistants_own_work_is_no_fact(asked: str, answer: str) -> None:
    assert not [each for each in facts("I shod two mares at Olm today.", asked, answer, "Done.") if "?" in each]


def test_a_fact_is_found_by_the_question_it_answers() -> None:
    told = drawn(
        "I shod two mares at Olm today.", "Do you still use coke?", "If I change anyway, charcoal from Harwick."
    )

    assert [each.context for each in told if "charcoal" in each.content] == [
        "Do you still use coke?\nIf I change anyway, charcoal from Harwick."
    ]


@pytest.mark.parametrize(
    ("torn", "choice"),
    [
        ("I'm undecided between coke and charcoal for the new forge.", "Charcoal it is. Decided."),
        ("Ich schwanke noch zwischen Koks und Holzkohle.", "Dann Holzkohle. Entschieden."),
        ("I'm torn between Harwick and Olm for the second shop.", "I'll go with Olm."),
    ],
)
def test_a_choice_takes_the_place_of_the_hesitation(torn: str, choice: str) -> None:
    told = facts(f"The bellows leak on the left side. {torn}", "Both have their merits.", choice, "Good.")

    assert f"{torn} {choice}" in told
    assert torn not in told


@pytest.mark.parametrize(
    ("before", "asked", "told", "whole"),
    [
        (
            "Theo is ill, so The Salt Register comes in spring.", "Is it late?", "No, it comes out on Ada Blum's list.",
            "Theo is ill, so The Salt Register comes in spring. It comes out on Ada Blum's list.",
        ),
        (
            "We were at the lake.", "How is Mirabelle?", "She takes half a tablet of Felimazol.",
            "How is Mirabelle? She takes half a tablet of Felimazol.",
        ),
        (
            "Wir waren am See.", "Wie geht es Mirabelle?", "Sie bekommt eine halbe Tablette Felimazol.",
            "Wie geht es Mirabelle? Sie bekommt eine halbe Tablette Felimazol.",
        ),
    ],
)  # fmt: skip
def test_what_opens_with_it_or_she_is_told_with_what_says_whom(before: str, asked: str, told: str, whole: str) -> None:
    assert whole in facts(before, asked, told, "Noted.")


@pytest.mark.parametrize(
    ("asked", "answer", "told", "whole"),
    [
        (
            "Can you tell me Osric's number?",
            "I don't have it.",
            "It's 07700 900118. He's away until the tenth, Ida stands in for him.",
            "Can you tell me Osric's number? It's 07700 900118.",
        ),
        (
            "When does the forge close?",
            "I can't say. Shall I look it up?",
            "It's six on weekdays and noon on Saturdays.",
            "When does the forge close? It's six on weekdays and noon on Saturdays.",
        ),
        (
            "Who supplies our coal?",
            "I have nothing on that, sorry. Can you tell me?",
            "Tull and Sons, since May.",
            "Who supplies our coal? Tull and Sons, since May.",
        ),
    ],
)
def test_what_a_user_asked_and_then_says_is_told_with_the_question(
    asked: str, answer: str, told: str, whole: str
) -> None:
    assert any(fact.startswith(whole) for fact in facts(asked, answer, told, "Noted."))


def test_what_an_assistant_answered_is_no_question_of_what_a_user_says_next() -> None:
    told = facts("How long does a 2 kg loaf bake?", "About fifty minutes at 220 degrees.", "It's 3 kg, by the way.")

    assert not any("How long" in fact for fact in told)


def test_what_somebody_says_of_a_person_or_thing_is_no_mere_reply() -> None:
    told = facts("We fly on Friday.", "A packing list?", "The sister has the dog. The keys are with Corin Marsh.")

    assert any("The sister has the dog." in each for each in told)


def test_what_stands_behind_a_sentence_that_hangs_is_not_lost_with_it() -> None:
    said = "Good. He also scrapped the rota, so no pager for me. And we moved to Olm, phone is 377."

    told = facts("Henrik runs the forge now.", "Noted.", said)

    assert [each for each in told if "phone is 377" in each] == ["We moved to Olm, phone is 377."]


def test_a_number_that_a_user_tells_is_a_fact() -> None:
    assert facts("Osric's mobile is 07700 900118.", "Saved.") == ["Osric's mobile is 07700 900118."]


def test_a_brief_statement_of_a_user_is_a_fact() -> None:
    told = "Software ist Vectorworks interiorcad."

    assert told in facts("Die Küche wird aus Eiche gebaut.", "Schön.", told)


@pytest.mark.parametrize(
    ("told", "taken_back", "fact"),
    [
        ("My flight to Oslo leaves at nine", "sorry, it leaves at ten", "My flight to Oslo leaves at ten"),
        ("My daughter was born in 2015", "wait, 2016", "My daughter was born in 2016"),
        ("I have an interview on Friday", "no wait, it's on Thursday", "I have an interview on Thursday"),
        ("My son's teacher is Mrs Albrecht", "no, I meant Mrs Albers", "My son's teacher is Mrs Albers"),
        ("I have two cats and three dogs", "sorry, four dogs", "I have two cats and four dogs"),
        ("The visit is on Friday at nine", "sorry, Thursday at ten", "The visit is on Thursday at ten"),
        ("My wife's birthday is on 3 May", "oh wait, 4 May", "My wife's birthday is on 4 May"),
        ("I take 20 mg of ramipril", "no, 10 mg", "I take 10 mg of ramipril"),
        ("Mein Flug nach Oslo geht um neun", "Entschuldigung, um zehn", "Mein Flug nach Oslo geht um zehn"),
        ("Mon avion part vendredi de Lyon", "pardon, c'est jeudi", "Mon avion part jeudi de Lyon"),
        ("Mi hija nació en 2015 en Sevilla", "perdón, nació en 2016", "Mi hija nació en 2016 en Sevilla"),
    ],
)
def test_the_value_that_a_user_corrects_is_told_in_place_of_the_old_one(told: str, taken_back: str, fact: str) -> None:
    assert facts(told, "Noted.", taken_back, "Noted.") == [fact]
    assert facts(f"{told}. {taken_back[0].upper()}{taken_back[1:]}.", "Noted.") == [f"{fact}."]


@pytest.mark.parametrize(
    ("told", "taken_back"),
    [
        ("My doctor is Dr Huber on Main Street", "Correction: Dr Hauser"),
        ("Our wifi is called after the dog's name", "No, I mean the cat's name"),
        ("My daughter plays the cello in a band", "Sorry, the violin"),
        ("My sister Lena lives in Bremen", "No, sorry, Hamburg"),
        ("I'm allergic to nuts", "Sorry, not nuts, shellfish"),
        ("The gym is open on Mondays", "No wait, Mondays and Thursdays"),
        ("We have two kids", "Actually three, the baby came in May"),
        ("Meine Tochter spielt Cello", "Entschuldigung, Geige"),
    ],
)
def test_where_it_is_not_certain_what_a_correction_replaces_both_are_told(told: str, taken_back: str) -> None:
    assert facts(told, "Noted.", taken_back, "Noted.") == [f"{told}. {taken_back}"]


def test_a_value_that_may_be_one_of_several_statements_is_told_with_all_of_them() -> None:
    told = facts("My flight leaves at nine. I take two bags to Oslo.", "Noted.", "Sorry, ten")

    assert told == ["My flight leaves at nine. I take two bags to Oslo. Sorry, ten"]


def test_a_correction_that_says_what_it_corrects_reaches_back_over_other_turns() -> None:
    between = ("I'm allergic to penicillin", "Noted.", "My boss plays drums, no joke", "Oh.")
    said = facts("I have an interview at Siemens on Friday", "Good.", *between, "No wait, the interview is on Thursday")
    denied = facts("Lena was born in 2015 in Graz", "Good.", *between, "Oh sorry, she was born in 2016, not 2015")

    assert [each for each in said if "interview" in each] == ["I have an interview at Siemens on Thursday"]
    assert [each for each in denied if "born" in each] == ["Lena was born in 2016 in Graz"]


def test_what_is_said_of_the_old_value_stays_with_the_correction() -> None:
    told = facts("My son's teacher is Mrs Albrecht", "Noted.", "sorry, Mrs Albers. Albrecht was last year's")

    assert told == ["My son's teacher is Mrs Albers. Albrecht was last year's"]


@pytest.mark.parametrize(
    ("told", "correction", "both"),
    [
        ("I take 5 mg of ramipril", "no, I take it at 8", "No, I take it at 8"),
        ("I paid 40 euros for the lamp", "sorry, I had 2 lamps", "Sorry, I had 2 lamps"),
        ("The meeting with Anna is on Monday", "No, the meeting with Tom is on Friday", "No, the meeting with Tom"),
    ],
)
def test_no_value_takes_the_place_of_what_it_may_not_be_a_value_of(told: str, correction: str, both: str) -> None:
    (fact,) = facts(told, "Okay, noted.", correction, "Got it.")

    assert fact.startswith(f"{told}. {both}")


@pytest.mark.parametrize(
    ("told", "more"),
    [
        ("My car is a Skoda", "well, my other car is a Fiat"),
        ("I lived in Rome until 2015", "no wait, I also lived in Oslo until 2018"),
    ],
)
def test_what_comes_on_top_takes_nothing_back(told: str, more: str) -> None:
    drawn_facts = facts(told, "Okay, noted.", more, "Got it.")

    assert len(drawn_facts) == 2
    assert drawn_facts[0] == told


def test_what_stands_behind_just_kidding_is_meant() -> None:
    assert facts("I won the lottery", "Wow!", "just kidding! I live in Graz", "Ha.") == ["I live in Graz"]


@pytest.mark.parametrize(
    ("told", "answer", "reply"),
    [
        ("I have an interview at Siemens on Friday", "Good.", "sorry, I was late"),
        ("My flight to Oslo leaves at nine", "Good.", "wait, what?"),
        ("My flight to Oslo leaves at nine", "Shall I book a taxi?", "no, thanks"),
        ("My flight to Oslo leaves at nine", "Good.", "actually I love it"),
        ("My flight to Oslo leaves at nine", "Do you want to leave home at seven?", "no, six"),
        ("My flight to Oslo leaves at nine", "I suggest leaving home at seven.", "no, six"),
        ("My flight to Oslo leaves at nine", "So it leaves at ten.", "no, nine"),
        ("I have 3 kids in Graz", "Is your brother Max there too?", "no, Tom"),
        ("I have 3 kids in Graz", "Lovely.", "no, I live with two cats"),
        ("I have an interview at Siemens on Friday", "Good.", "wait, my sister comes on Monday"),
        ("I have an interview at Siemens on Friday", "Good.", "actually I have a meeting with Tom on Thursday"),
        ("My flat is in Graz", "Good.", "Actually, my flat is in Linz now"),
    ],
)
def test_what_only_opens_like_a_correction_changes_no_fact(told: str, answer: str, reply: str) -> None:
    assert told in facts(told, answer, reply, "Noted.")


@pytest.mark.parametrize(
    "told",
    [
        "Suppose we moved to Italy, what would we eat?",
        "Let's say I had a dog, which breed suits a flat?",
        "If I were rich I'd just hire a cook lol",
        "Imagine they sign, I'd buy everyone pizza lol",
        "I would buy a boat in Olm if I won the lottery",
        "April fools! I won the lottery",
        "Just kidding, I adopted twelve cats yesterday",
        "I adopted twelve cats yesterday, just kidding",
        "I adopted twelve cats yesterday jk",
        "I adopted twelve cats yesterday. Only joking!",
        "Wenn ich reich wäre, würde ich einen Koch einstellen",
        "Ich habe im Lotto gewonnen. War nur ein Scherz!",
        "Si j'étais riche, j'achèterais un château à Lyon",
        "J'ai gagné au loto à Lyon. Je plaisante !",
        "Si fuera rico, compraría una casa en Sevilla",
        "Ayer gané la lotería en Sevilla. ¡Es broma!",
    ],
)
def test_what_is_merely_supposed_or_a_joke_is_no_fact(told: str) -> None:
    assert facts(told, "Ha!") == []


@pytest.mark.parametrize(
    "told",
    [
        "I'd like to move to Italy with my dog",
        "If it rains on Friday the market moves indoors",
        "If they offer me 70k I'd take it",
        "If I ate peanuts I'd die",
        "I wish I lived by the sea",
        "I suppose we'll move to Linz in May",
        "My boss said he'd pay more if I finished early",
        "My flatmate Bea plays drums, imagine that",
        "My son's birthday is April Fools' Day, no joke",
        "My brother was only joking with me when he sold the car",
        "Imagine, my sister Bea had twins in Olm!",
    ],
)
def test_plans_wishes_rules_and_what_is_no_joke_stay_facts(told: str) -> None:
    assert facts(told, "I see.") == [told]


def test_a_joke_of_the_turn_before_is_left_out_and_what_is_meant_stays() -> None:
    assert facts("I adopted twelve cats in Olm", "Wow.", "haha just kidding", "Ha.", "I have two cats") == [
        "I have two cats"
    ]
    assert facts("I'm moving to Mars in May", "Wow.", "Just kidding, I'm moving to Madrid in May") == [
        "Just kidding, I'm moving to Madrid in May"
    ]
    assert "I'm allergic to nuts" in facts("I'm allergic to nuts", "Noted.", "just kidding about the tie")


def test_of_a_question_only_what_is_told_before_its_condition_is_a_fact() -> None:
    assert facts("I moved to Ulm in May, and if I quit my job, can I stay?", "Yes.") == ["I moved to Ulm in May."]
