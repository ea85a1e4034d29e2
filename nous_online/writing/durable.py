"""Which sentences of a transcript are worth keeping as facts: statements that will still hold when the talk is over."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nous_online.embedding import Vectors
from nous_online.pairs.guards import differences
from nous_online.pairs.lexicon import FUNCTION_WORDS
from nous_online.pairs.reading import Reading, cleaned, read
from nous_online.policy import WritingPolicy
from nous_online.writing.lexrank import word_count
from nous_online.writing.phrases import (
    ASKING,
    DECISION,
    HOLDING,
    LASTING,
    NO_SUBJECT,
    OWN,
    PASSING,
    PREFERENCE,
    RULE,
    UNANCHORED,
    VERBS,
    WE,
    WEAK,
)
from nous_online.writing.sentences import CLOSING, ROLES, Sentence, is_prose, said, straight
from nous_online.writing.titles import EDGE, opened

POLICY = WritingPolicy()
SHORTEST, LONGEST = 4, 45
"""Words of a fact: less says nothing on its own, more says several things."""
FRAGMENT = 8
"""Words; a shorter sentence without a verb is a fragment."""
SUBJECT = re.compile(r"\w[\w '&./#-]{0,48}\w")
"""What may stand before a verb and name something: words only, and few."""
WORTH_KEEPING = 1.0
"""One kind of lasting wording, or a name together with something to check."""


THIRD_PERSON = re.compile(r"\b[a-z]{3,}(?<!s)s\b")
ARTICLES = ("the ", "a ", "an ", "our ")
ENDS = (".", "!", "。", "！")  # noqa: RUF001 — and an exclamation so
OPEN_ENDS = ("?", "？", ":", "…")  # noqa: RUF001 — a question in Chinese ends so
SPEAKING_FOR_ITSELF = frozenset({"assistant", "call", "function", "ai", "agent", "bot", "model", "tool", "system"})


@dataclass(frozen=True)
class Durable:
    """A sentence worth keeping: as a statement of its own, what it is about, and which kind of wording made it so."""

    sentence: Sentence
    content: str
    subject: str | None
    category: str | None


def durable(sentences: Sequence[Sentence], vectors: Vectors, ranks: NDArray[np.float64]) -> list[Durable]:
    """Return at most five sentences worth keeping, in order; no two that say the same.

    `ranks` holds the LexRank of each sentence: of two that would last equally, the more central one is kept.
    """
    likely = np.array([durability(sentence) for sentence in sentences])
    chosen: list[int] = []
    for place in np.argsort(-likely * np.sqrt(ranks), kind="stable").tolist():
        if likely[place] < WORTH_KEEPING or len(chosen) == POLICY.most_facts:
            continue
        if not any(repeats(sentences, vectors, place, other) for other in chosen):
            chosen.append(place)
    return [stated(sentences[i]) for i in sorted(chosen)]


def stated(sentence: Sentence) -> Durable:
    """Return a sentence as a statement of its own: whoever says "I" or "we" is named before it."""
    subject = subject_of(sentence)
    content = said(sentence) if sentence.speaker and subject == sentence.speaker else sentence.text
    return Durable(sentence, content, subject, category_of(sentence.text))


def repeats(sentences: Sequence[Sentence], vectors: Vectors, one: int, other: int) -> bool:
    """Tell whether two sentences state one fact: close, with no number, name or negation between them."""
    a, b = stated(sentences[one]).content, stated(sentences[other]).content
    close = float(vectors[one] @ vectors[other]) >= POLICY.same_fact_similarity
    return cleaned(a).casefold() == cleaned(b).casefold() or (close and not differences(a, b))


def durability(sentence: Sentence) -> float:
    """Return how likely a sentence will still hold later: 0 for talk, from 1 up for what is worth keeping.

    What addresses somebody, hedges, or exclaims about somebody else counts half.
    """
    if not is_statement(sentence):
        return 0.0
    text = straight(sentence.text)
    likely = wording(text) + substance(sentence, read(text))
    exclaims = text.endswith("!") and not OWN.search(text)
    return likely * (0.5 if WEAK.search(text) or exclaims else 1.0)


def is_statement(sentence: Sentence) -> bool:
    """Tell whether a sentence stands alone and states something: no question, request, greeting or passing remark."""
    text = straight(sentence.text)
    if sentence.is_heading or not is_prose(text) or not SHORTEST <= word_count(text) <= LONGEST:
        return False
    opening = (opened(text.split()) or [""])[0].casefold().strip(EDGE)
    if opening in NO_SUBJECT | UNANCHORED or text.rstrip(CLOSING).endswith(OPEN_ENDS) or PASSING.search(text):
        return False
    return says_something(text) and (not OWN.search(text) or speaks_for_somebody(sentence))


def says_something(text: str) -> bool:
    """Tell whether a text has a verb; a long sentence is taken to have one we don't know, a list entry is not."""
    if VERBS.search(text):
        return True
    is_ended = text.rstrip(CLOSING).endswith(ENDS)
    return is_ended and (word_count(text) > FRAGMENT or bool(THIRD_PERSON.search(text)))


def speaks_for_somebody(sentence: Sentence) -> bool:
    """Tell whether what a speaker says of himself is worth keeping: somebody named, a user who asks nothing."""
    if sentence.speaker is None or SPEAKING_FOR_ITSELF & set(sentence.speaker.casefold().split()):
        return False
    return sentence.speaker.casefold() not in ROLES or not ASKING.search(straight(sentence.text))


def wording(text: str) -> float:
    """Return what the wording of a sentence promises: a preference, a decision, a rule, what lasts or holds."""
    return (
        1.0 * bool(PREFERENCE.search(text))
        + 1.0 * bool(DECISION.search(text))
        + 1.0 * bool(RULE.search(text))
        + 0.6 * bool(LASTING.search(text))
        + 0.5 * bool(HOLDING.match(text))
    )


def substance(sentence: Sentence, reading: Reading) -> float:
    """Return what can be checked in a sentence: somebody or something named, a number, a date, an identifier."""
    names = bool(reading.names)
    figures = bool(reading.numbers or reading.dates or reading.times or reading.identifiers or reading.quotes)
    is_own = bool(OWN.search(straight(sentence.text))) and (sentence.speaker or "").casefold() not in ROLES
    return 0.5 * names + 0.5 * figures + 0.4 * is_own


def subject_of(sentence: Sentence) -> str | None:
    """Return what a sentence is about: who says "I", what stands before its verb, or the first name in it."""
    text = " ".join(opened(straight(sentence.text).split()))
    if sentence.speaker and (OWN.search(text) or WE.match(text)):
        return sentence.speaker
    verb = VERBS.search(text)
    about = text[: verb.start()].strip(EDGE) if verb else ""
    about = about.partition(" ")[2] if about.casefold().startswith(ARTICLES) else about
    if SUBJECT.fullmatch(about) and not set(about.casefold().split()) <= FUNCTION_WORDS:
        return about
    return next(iter(read(text).names), None)


def category_of(text: str) -> str | None:
    """Return which kind of lasting wording a sentence has, None for a plain statement."""
    kinds = (("preference", PREFERENCE), ("decision", DECISION), ("rule", RULE))
    return next((kind for kind, pattern in kinds if pattern.search(straight(text))), None)
