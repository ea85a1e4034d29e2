from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nous_online.language.minilm import Vectors
from nous_online.language.passages import (
    MOST_PASSAGES,
    about,
    direction,
    passages,
    recall_vector,
    sentences,
    surroundings,
)

LONG = "The blue deployment serves everybody until noon. The green deployment takes over after the smoke tests."


def axis(number: int) -> Vectors:
    return np.eye(8, dtype=np.float32)[number]


def drawn(texts: list[str]) -> dict[str, Vectors]:
    return {text: axis(number % 8) for number, text in enumerate(dict.fromkeys(texts))}


def test_each_sentence_is_embedded_with_its_subject_before_it():
    assert sentences(LONG, "deploys") == [
        "deploys: The blue deployment serves everybody until noon.",
        "deploys: The green deployment takes over after the smoke tests.",
    ]


def test_a_subject_that_opens_the_sentence_is_not_repeated():
    assert about("Caroline", "Caroline: hello") == "Caroline: hello"
    assert about(None, "hello") == "hello"


def test_an_exclamation_joins_the_sentence_after_it():
    assert sentences("Wow! I never knew that you play the violin in an orchestra.", None) == [
        "Wow! I never knew that you play the violin in an orchestra."
    ]


def test_every_line_of_a_context_is_a_passage():
    assert surroundings("Ana: where to?\n\n  Ben: home  ") == ["Ana: where to?", "Ben: home"]
    assert surroundings(None) == []


def test_a_single_sentence_without_context_is_recalled_by_its_own_vector():
    content = "Deploys go through blue/green since May"

    assert recall_vector(content, None, None, drawn(passages(content, None, None))) is None


def test_sentences_and_context_turn_the_vector_towards_them():
    texts = passages(LONG, None, "Ana: who deploys?")
    vectors = drawn(texts)

    blend = recall_vector(LONG, None, "Ana: who deploys?", vectors)

    assert blend is not None
    assert [float(blend @ vectors[text]) > 0 for text in texts] == [True] * 4
    assert blend @ vectors[LONG] > blend @ vectors[texts[1]] > blend @ vectors["Ana: who deploys?"]


@given(st.text(max_size=400), st.none() | st.text(max_size=20), st.none() | st.text(max_size=400))
def test_any_text_gives_a_unit_vector_or_none(content, subject, context):
    texts = passages(content, subject, context)

    blend = recall_vector(content, subject, context, drawn(texts))

    assert blend is None or abs(float(np.linalg.norm(blend)) - 1) < 1e-5


def test_a_very_long_text_costs_a_bounded_number_of_embeddings():
    book = " ".join(f"Chapter {number} tells of a long and winding road to the sea." for number in range(500))

    assert len(passages(book, None, book.replace(". ", ".\n"))) == 1 + 2 * MOST_PASSAGES


def test_opposite_vectors_leave_the_first():
    assert direction([axis(0), -axis(0)]).tolist() == axis(0).tolist()
