from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nous_online.language.minilm import unit_rows
from nous_online.language.writing.lexrank import content_words, lexrank, most_telling, summarise, word_count, worth
from nous_online.language.writing.sentences import Sentence, sentences_of, told

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
    assert word_count(told([STORY[i] for i in chosen])) <= 30


def test_a_sentence_said_twice_is_lifted_once(embedder):
    twice = [STORY[0], STORY[0], STORY[3]]

    assert summarise(twice, vectors_of(embedder, twice), words=100) == [0, 2]


def test_where_nothing_fits_the_sentence_that_says_most_stands_alone(embedder):
    vectors = vectors_of(embedder, STORY)

    assert summarise(STORY, vectors, words=1) == [int(np.argmax(worth(STORY, vectors)))]


def test_of_two_alike_the_one_that_can_be_checked_is_worth_more(embedder):
    pair = [Sentence("The wheel turned for forty years."), Sentence("the wheel turned for so many years.")]
    vectors = np.ones((2, 4), dtype=np.float32) / 2

    one, other = worth(pair, vectors) / [len(content_words(each.text)) for each in pair]

    assert one > other


def test_chatter_and_function_words_are_no_content():
    assert content_words("Yeah, the WHEEL of the mill is, um, 7 years old!") == {"wheel", "mill", "7", "years", "old"}


def test_a_script_without_spaces_is_counted_by_its_characters():
    assert word_count("one two three") == 3
    assert word_count("倉庫は閉まっています") == 6


def test_a_long_text_is_sampled_from_all_over_it():
    long = [Sentence(f"{'wheel mill rye' if i % 10 == 3 else 'so it was'} {i}") for i in range(100)]

    kept = most_telling(long, 10)

    assert kept == [10 * i + 3 for i in range(10)]
    assert most_telling(long[:5], 10) == [0, 1, 2, 3, 4]


WORDS = st.lists(st.sampled_from(["mill", "wheel", "rye", "flood", "yeah", "Veldt", "7"]), min_size=1, max_size=12)


@given(
    st.lists(st.builds(Sentence, WORDS.map(" ".join)), min_size=1, max_size=25), st.integers(1, 60), st.integers(0, 9)
)
def test_any_summary_fits_unless_it_is_a_single_sentence(sentences, words, seed):
    rows = unit_rows(np.random.default_rng(seed).standard_normal((len(sentences), 8)))

    chosen = summarise(sentences, rows, words=words)

    assert chosen == sorted(set(chosen))
    assert len(chosen) == 1 or word_count(told([sentences[i] for i in chosen])) <= words
