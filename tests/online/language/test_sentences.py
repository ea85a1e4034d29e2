# ruff: noqa: RUF001 — full-width marks are what other scripts write

from __future__ import annotations

import re
import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nous_online.language.writing.sentences import (
    LONGEST_SENTENCE,
    Sentence,
    is_prose,
    join_sentences,
    sentences_of,
    with_speaker,
)


def texts(transcript: str) -> list[str]:
    return [sentence.text for sentence in sentences_of(transcript)]


def speakers(transcript: str, **named: list[str]) -> list[str | None]:
    return [sentence.speaker for sentence in sentences_of(transcript, **named)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Vance met Mr. J. Quill at 5 p.m. on the dock.",
        "It takes 3.5 ms on version 2.1.4 of the client.",
        "See https://example.org/a.b?c=d.e for the plan, e.g. its third page.",
        "The U.S. team ships approx. 40 crates.",
        "We keep fruit, bread etc. in the shed.",
        "Ab dem 1. Januar gilt die Rechnung vom 2.12. über 98 Euro.",
    ],
)
def test_abbreviations_initials_decimals_and_addresses_end_no_sentence(sentence):
    assert texts(sentence) == [sentence]


def test_a_sentence_ends_with_its_quotation_marks_and_brackets():
    assert texts('She said "Go." Then he left (at last). Why? Nobody knows… Really!') == [
        'She said "Go."',
        "Then he left (at last).",
        "Why?",
        "Nobody knows…",
        "Really!",
    ]


def test_chat_in_small_letters_is_split_too():
    assert texts("the shed is locked. ask orla for the key") == ["the shed is locked.", "ask orla for the key"]


def test_scripts_without_spaces_are_split_at_their_own_full_stops():
    assert texts("倉庫は閉まっています。鍵はオルラにあります！本当？") == [
        "倉庫は閉まっています。",
        "鍵はオルラにあります！",
        "本当？",
    ]


def test_who_speaks_goes_on_speaking_until_another_does():
    transcript = "Orla: The shed is locked.\nI have the key.\nPiet: Thanks.\nOrla: Any time."

    found = [(sentence.speaker, sentence.text, sentence.turn) for sentence in sentences_of(transcript)]

    assert found == [
        ("Orla", "The shed is locked.", 1),
        ("Orla", "I have the key.", 1),
        ("Piet", "Thanks.", 2),
        ("Orla", "Any time.", 3),
    ]


@pytest.mark.parametrize(
    ("transcript", "spoke"),
    [
        ("**Orla:** The shed is locked.\n**Piet:** Fine.", ["Orla", "Piet"]),
        ("[10:42] Orla: The shed is locked.\n[10:43] Piet: Fine.", ["Orla", "Piet"]),
        ("#Person1#: The shed is locked.\n#Person2#: Fine.", ["#Person1#", "#Person2#"]),
        ("### User\nThe shed is locked.\n### Assistant\nFine.", ["User", "Assistant"]),
        ("Orla:\nThe shed is locked.\nPiet (by phone): Fine.", ["Orla", "Piet"]),
        ("小林：倉庫は閉まっています。\n佐藤：はい。", ["小林", "佐藤"]),
    ],
)
def test_speakers_are_read_in_the_forms_transcripts_write_them(transcript, spoke):
    assert speakers(transcript) == spoke


def test_who_writes_a_mail_speaks_on_its_day_below_its_subject():
    mail = (
        "From: Orla Quill <orla@mill.example>\nTo: Piet\nDate: Mon, 19 Jan 2026 09:12\nSubject: Re: the shed\n\n"
        "Dear Piet,\n\nthe shed is locked.\n\nVon: Piet\nAn: Orla\nBetreff: AW: the shed\n\nFine."
    )

    found = [(each.speaker, each.text, each.day) for each in sentences_of(mail) if not each.is_heading]

    monday = date(2026, 1, 19)
    assert found == [
        ("Orla Quill", "Dear Piet,", monday),
        ("Orla Quill", "the shed is locked.", monday),
        ("Piet", "Fine.", monday),
    ]


@pytest.mark.parametrize("line", ["From: the harbour we saw the shed.", "To: Piet", "De: nadie"])
def test_a_line_alone_is_no_head_of_a_mail(line):
    assert texts(f"{line}\nThe shed is locked.\nIt rained.\nIt is green.")[0] == line


def test_labels_speak_no_more_than_addresses_and_times():
    transcript = (
        "Decision: keep the lock.\nRoot cause: rust.\nValueError: no key\nhttps://example.org\nAt 10:30 it rained."
    )

    assert set(speakers(transcript)) == {None}


def test_where_roles_speak_list_entries_do_not():
    transcript = "assistant: Here is what I found:\n- Shed: locked\n- Shed: empty\nuser: Good."

    assert speakers(transcript) == ["assistant", "assistant", "assistant", "user"]


def test_a_participant_speaks_even_once_and_in_small_letters():
    transcript = "The shed stays locked over winter.\nIt was painted in May.\norla: fine by me"

    assert speakers(transcript, participants=["Orla"]) == [None, None, "orla"]


def test_headings_lists_quotes_and_check_boxes_lose_their_marks():
    transcript = "# The shed\n\n- paint it\n- [x] lock it\n1. First. Second.\n> quoted words\n---\n| a | b |"

    found = sentences_of(transcript)

    assert [sentence.text for sentence in found][:6] == [
        "The shed",
        "paint it",
        "lock it",
        "First.",
        "Second.",
        "quoted words",
    ]
    assert [sentence.is_heading for sentence in found][:2] == [True, False]


def test_a_wrapped_sentence_is_joined():
    wrapped = "The shed behind the old mill has been locked since the storm took\nOrla's roof and the river\nrose."

    assert texts(wrapped) == [" ".join(wrapped.split())]


def test_short_lines_without_full_stops_stay_apart():
    assert texts("Paint the shed\nLock the door") == ["Paint the shed", "Lock the door"]


def test_code_is_passed_over_unless_there_is_nothing_else():
    assert texts("Run this:\n```py\nprint(1)\n```\nIt prints one.") == ["Run this:", "It prints one."]
    assert texts("```py\nimport shed\nprint(1)\n```") == ["import shed", "print(1)"]


def test_a_fence_that_is_never_closed_hides_nothing():
    assert texts("It broke.\n```\nThen Orla came.") == ["It broke.", "Then Orla came."]


def test_a_run_without_full_stops_is_cut_between_words():
    found = texts("rain " * 400)

    assert len(found) > 1
    assert all(len(piece) <= LONGEST_SENTENCE and set(piece.split()) == {"rain"} for piece in found)


@pytest.mark.parametrize("blank", ["", " \n\t\n", "---\n***"])
def test_a_blank_text_has_no_sentences(blank):
    assert sentences_of(blank) == []


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("The shed is locked.", True),
        ("倉庫は閉まっています。", True),
        ('{"shed": {"locked": true}}', False),
        ("/var/lib/shed/00/17/a9.bin", False),
        ("| shed | 4 | 17 |", False),
        ("2041-02-03 04:05:06.789 0x7f3a 12 44", False),
        ("", False),
    ],
)
def test_prose_is_told_from_tables_paths_and_json(text, prose):
    assert is_prose(text) is prose


def test_a_telling_names_whoever_speaks_once_a_turn():
    turns = [
        Sentence("The shed is locked.", "Orla", 1),
        Sentence("I have the key.", "Orla", 1),
        Sentence("Good.", "Orla", 3),
        Sentence("It rained."),
    ]

    assert join_sentences(turns) == "Orla: The shed is locked. I have the key. Orla: Good. It rained."
    assert join_sentences([]) == ""
    assert with_speaker(turns[0]) == "Orla: The shed is locked."


MARKS = st.text(alphabet="ab Z.!?:;-#*>`|\n\t1。：\"'…é", max_size=300)


@given(MARKS | st.text(max_size=300))
def test_every_sentence_stands_in_the_text_and_no_words_are_invented(text):
    squeezed = re.sub(r"\s+", "", text)

    for sentence in sentences_of(text):
        assert sentence.text.strip() == sentence.text != ""
        assert len(sentence.text) <= LONGEST_SENTENCE
        assert sentence.speaker is None or sentence.speaker in text
        assert re.sub(r"\s+", "", sentence.text) in squeezed


@pytest.mark.parametrize("piece", ["- ", "a: ", "a b. ", "word ", "[(", "é:\n"])
def test_a_megabyte_of_anything_would_be_split_in_seconds(piece):
    def took_s(size: int) -> float:
        began = time.process_time()
        sentences_of(piece * (size // len(piece)))
        return time.process_time() - began

    most_s = min(10 / 8, 8 * took_s(2**15) + 0.1)  # linear time grows by 4, quadratic by 16
    assert any(took_s(2**17) < most_s for _ in range(5)), "who shares a core gets less done in a second of it"
