from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nous_online.language.minilm import unit_rows
from nous_online.language.writing.lexrank import (
    content_words,
    index_word,
    lexrank,
    one_line,
    sentence_scores,
    spread_sample,
    summarise,
    summary_text,
    title_of,
    word_count,
)
from nous_online.language.writing.sentences import Sentence, sentences_of

STORY = sentences_of(
    """Orla: The mill closed in March after the flood.
    Piet: Yeah, wow, really?
    Orla: The flood took the wheel of the mill and forty sacks of rye.
    Piet: Rye prices doubled in Veldt.
    Orla: The mill reopens with a new wheel on 4 May.
    Piet: Okay, great, thanks!"""
)


def vectors_of(embedder, sentences):
    return embedder.embed_documents([sentence.text for sentence in sentences])


def test_the_sentence_all_others_resemble_is_most_central():
    middle = np.ones(4)
    rows = unit_rows(np.stack([*(np.eye(4) + middle), middle]))

    ranks = lexrank(rows)

    assert int(np.argmax(ranks)) == 4
    assert ranks[:4] == pytest.approx(ranks[0])
    assert ranks.mean() == pytest.approx(1.0)


def test_sentences_with_nothing_in_common_are_equally_central():
    assert lexrank(np.eye(3, dtype=np.float32)) == pytest.approx(1.0)


def test_opposite_sentences_pull_each_other_no_further_down():
    ranks = lexrank(np.array([[1, 0], [-1, 0]], dtype=np.float32))

    assert ranks == pytest.approx(1.0)


def test_no_sentences_have_no_ranks_and_no_summary():
    nothing = np.zeros((0, 4), dtype=np.float32)

    assert lexrank(nothing).shape == (0,)
    assert summarise([], nothing, words=50) == []


def test_a_summary_keeps_the_order_and_leaves_the_chatter_out(embedder):
    chosen = summarise(STORY, vectors_of(embedder, STORY), words=30)

    assert chosen == sorted(chosen)
    assert set(chosen) <= {0, 2, 3, 4}
    assert word_count(summary_text([STORY[i] for i in chosen])) <= 30


def test_a_summary_is_told_in_plain_sentences_and_names_whoever_says_i():
    told = [
        Sentence("So, the shed is locked", "Orla", 1),
        Sentence("I have the key!", "Orla", 1),
        Sentence("no smoke in the shed please", "Piet", 2),
        Sentence("12, students 8", "Orla", 3),
        Sentence("I sealed the roof.", "assistant", 4),
        Sentence("src/roof.py holds its area", "assistant", 4),
    ]

    assert summary_text(told) == (
        "The shed is locked. Orla: I have the key! Piet: No smoke in the shed please. Orla: 12, students 8. "
        "I sealed the roof. src/roof.py holds its area."
    )
    assert summary_text(told[1:2]) == "Orla: I have the key!"


@pytest.mark.parametrize(
    ("text", "speaker", "is_named"),
    [
        ("You can have the shed on Friday.", "Orla", True),
        ("The shed is ours until Friday.", "Orla", True),
        ("On Friday we have the shed.", "Orla", True),
        ("Ich habe den Schuppen bis Freitag.", "Orla", True),
        ("Lo llevo yo el viernes al cobertizo.", "Orla", True),
        ("The US office has the shed until Friday.", "Orla", False),
        ("The EU pays for the shed from Mon 8 Dec on.", "Orla", False),
        ("The shed stands 5 mi from the mill at Veldt.", "Orla", False),
        ("La porte du hangar de bois est ouverte depuis lundi.", "Orla", False),
        ("Este mes el cobertizo de la finca queda cerrado del todo.", "Orla", False),
        ("Il capannone è chiuso, ma la chiave è da Piet.", "Orla", False),
        ("You can have the shed on Friday.", "user", False),
        ("I have the shed until Friday.", "assistant", False),
    ],
)
def test_a_summary_names_whoever_speaks_of_themselves_or_to_others(text, speaker, is_named):
    assert summary_text([Sentence(text, speaker, 1)]) == (f"{speaker}: {text}" if is_named else text)


def test_a_sentence_said_twice_is_lifted_once(embedder):
    twice = [STORY[0], STORY[0], STORY[3]]

    assert summarise(twice, vectors_of(embedder, twice), words=100) == [0, 2]


def test_where_nothing_fits_the_sentence_that_says_most_stands_alone(embedder):
    vectors = vectors_of(embedder, STORY)

    assert summarise(STORY, vectors, words=1) == [int(np.argmax(sentence_scores(STORY, vectors)))]


def test_of_two_alike_the_one_that_can_be_checked_is_worth_more(embedder):
    pair = [Sentence("The wheel turned for forty years."), Sentence("the wheel turned for so many years.")]
    vectors = np.ones((2, 4), dtype=np.float32) / 2

    one, other = sentence_scores(pair, vectors) / [len(content_words(each.text)) for each in pair]

    assert one > other


def test_chatter_and_function_words_are_no_content():
    assert content_words("Yeah, the WHEEL of the mill is, um, 7 years old!") == {"wheel", "mill", "7", "years", "old"}


def test_a_script_without_spaces_is_counted_by_its_characters():
    assert word_count("one two three") == 3
    assert word_count("倉庫は閉まっています") == 6


def test_a_long_text_is_sampled_from_all_over_it():
    long = [Sentence(f"{'wheel mill rye' if i % 10 == 3 else 'so it was'} {i}") for i in range(100)]

    kept = spread_sample(long, 10)

    assert kept == [10 * i + 3 for i in range(10)]
    assert spread_sample(long[:5], 10) == [0, 1, 2, 3, 4]


WORDS = st.lists(st.sampled_from(["mill", "wheel", "rye", "flood", "yeah", "Veldt", "7"]), min_size=1, max_size=12)


@given(
    st.lists(st.builds(Sentence, WORDS.map(" ".join)), min_size=1, max_size=25), st.integers(1, 60), st.integers(0, 9)
)
def test_any_summary_fits_unless_it_is_a_single_sentence(sentences, words, seed):
    rows = unit_rows(np.random.default_rng(seed).standard_normal((len(sentences), 8)))

    chosen = summarise(sentences, rows, words=words)

    assert chosen == sorted(set(chosen))
    assert len(chosen) == 1 or word_count(summary_text([sentences[i] for i in chosen])) <= words


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
    assert one_line("The mill closed.\n It reopens in May.") == "The mill closed. It reopens in May."


def test_a_longer_text_is_condensed_to_its_first_sentence():
    assert one_line("The mill closed in March. " + "It rained for days. " * 9) == "The mill closed in March."


def test_a_long_sentence_is_cut_short_and_says_so():
    line = one_line("The crew of the barge " + "and the crew of the boat " * 9)

    assert line.startswith("The crew of the barge and the crew")
    assert line.endswith("boat…")
    assert len(line.split()) <= 24


@given(st.text())
def test_what_is_condensed_is_one_line(text):
    line = one_line(text)

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
