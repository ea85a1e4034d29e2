from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nous_online.language.writing.lexrank import word_count
from nous_online.language.writing.sentences import Sentence
from nous_online.language.writing.titles import condensed, index_word, title_of


@pytest.mark.parametrize(
    ("sentence", "title"),
    [
        ("The mill at Veldt reopens on 4 May.", "The mill at Veldt reopens on 4 May"),
        ("So, um, the flood took the wheel of the old mill.", "The flood took the wheel of the old mill"),
        (
            "The mill closed in March, because the flood took its wheel and forty sacks of rye.",
            "The mill closed in March",
        ),
        (
            "Hanne Brook will pay four thousand crowns for a new wheel to be made of the oldest oak.",
            "Hanne Brook will pay four thousand crowns",
        ),
        (
            'They read "The Lean Mill and the very long river that runs" aloud.',
            "They read The Lean Mill and the very long river",
        ),
    ],
)
def test_a_title_is_five_to_ten_words_that_end_where_a_clause_does(sentence, title):
    assert title_of([Sentence(sentence)]) == title


def test_whoever_says_i_is_named_in_the_title():
    assert title_of([Sentence("I moved to Veldt in May.", "Piet", 1)]) == "Piet: I moved to Veldt in May"


def test_a_heading_of_five_words_is_the_title():
    assert title_of([Sentence("It rained for days on end.")], headings=["Why the mill closed early:"]) == (
        "Why the mill closed early"
    )


def test_a_shorter_heading_stands_before_the_sentence():
    title = title_of([Sentence("The flood took the wheel of the old mill.")], headings=["The mill"])

    assert title.startswith("The mill: The flood took the wheel")
    assert len(title.split()) <= 10


def test_short_sentences_are_put_together():
    assert title_of([Sentence("It rained."), Sentence("Orla left.")]) == "It rained; Orla left"


def test_no_sentences_have_no_title():
    assert title_of([]) == ""


@given(st.lists(st.builds(Sentence, st.text(min_size=1, max_size=200)), max_size=5))
def test_a_title_has_ten_words_at_most_and_no_mark_at_its_end(sentences):
    title = title_of(sentences)

    assert word_count(title) <= 10
    assert title == title.strip(" .,;:!?")
    assert len(title) <= 100


def test_a_line_that_is_short_enough_is_kept_whole():
    assert condensed("The mill closed.\n It reopens in May.") == "The mill closed. It reopens in May."


def test_a_longer_text_is_condensed_to_its_first_sentence():
    assert condensed("The mill closed in March. " + "It rained for days. " * 9) == "The mill closed in March."


def test_a_long_sentence_is_cut_short_and_says_so():
    line = condensed("The crew of the barge " + "and the crew of the boat " * 9)

    assert line.startswith("The crew of the barge and the crew")
    assert line.endswith("boat…")
    assert len(line.split()) <= 24


@given(st.text())
def test_what_is_condensed_is_one_line(text):
    line = condensed(text)

    assert len(line.splitlines()) <= 1
    assert word_count(line) <= 24
    assert len(line) <= 200


@pytest.mark.parametrize(
    ("title", "word"),
    [
        ("Moved the billing to Postgres", "moved-billing-postgres"),
        ("The wheel, the wheel and the mill", "wheel-mill"),
        ("It is what it is", "it-is-what"),
        ("小林の倉庫", "小林の倉庫"),
        ("…", "episode"),
        (
            "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverein",
            "donaudampfschifffahrtsgesellschaftskapitänsmützena",
        ),
    ],
)
def test_the_index_word_is_what_a_title_is_about(title, word):
    assert index_word(title) == word
