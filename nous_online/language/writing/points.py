"""The points of a transcript: what is said in one go and will still hold, each told so that it stands alone.

What is said is weighed by its form, its figures and names, and a few words for what was decided, caused, mended or
learned. Those are known in four languages; of others only the form, the figures and the names count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from nous_online.core.policy import WritingPolicy
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.guards import differences
from nous_online.language.pairs.lexicon import FUNCTION_WORDS
from nous_online.language.pairs.reading import cleaned, read
from nous_online.language.writing.days import with_days
from nous_online.language.writing.lexrank import content_words, lexrank, word_count
from nous_online.language.writing.phrases import (
    CAUSE,
    CORRECTING,
    COURTESY,
    DECISION,
    HEDGE,
    INSTRUCTING,
    LABELLED,
    MENDED,
    OWN,
    PLANNED,
    PREFERENCE,
    REFUSED,
    REFUSING,
    RULE,
    STEP,
    TALLY,
    UNANCHORED,
    VERBS,
    WE,
)
from nous_online.language.writing.sentences import CLOSING, Sentence, is_prose, straight
from nous_online.language.writing.titles import EDGE, opened

POLICY = WritingPolicy()
MOST_WORDS = 40
"""Said in one go, that are one point; more are several."""
SHORT_ANSWER, LONGEST_QUESTION = 14, 25
"""Words; a longer answer says itself what it answers."""
FRAGMENT = 8
LEAST_WORDS = 4
"""Of a point: less says nothing on its own."""
NEAR = 8
"""Sentences after which a correction no longer speaks of one."""
LEAST_COMMON = 2
"""Content words of what is refused, that stand in what was said before."""
_DIGITS = re.compile(r"\d+(?:[.,:/h]\d+)*")
CUES = {
    "decision": DECISION, "cause": CAUSE, "mended": MENDED, "planned": PLANNED, "rule": RULE, "preference": PREFERENCE,
    "hedge": HEDGE, "tally": TALLY, "refuses": REFUSING,
}  # fmt: skip
LASTING: Mapping[str, float] = {
    "words": 2.0, "place": 1.0, "answer": 0.8, "density": 1.4, "figures": 0.4, "names": 0.3, "rank": 0.8,
    "planned": 0.3, "mended": 0.3, "decision": 0.3, "rule": 0.3, "label": 1.0, "preference": 1.0, "hedge": -1.0,
    "exclaims": -0.7, "tally": -3.0,
}  # fmt: skip
"""Weights of what is worth keeping as a fact; by their logistic regression on 24 transcripts, rounded (area under the
curve 0.83 on those left out), and by hand for labels, preferences and tallies, which those transcripts hardly have."""
OUTCOME: Mapping[str, float] = {
    "words": 1.0, "density": 1.5, "mended": 1.0, "rank": 1.5, "refuses": 0.4, "decision": 0.9, "cause": 0.6,
    "label": 1.0, "place": 0.5, "unanchored": -1.0, "exclaims": -1.5, "tally": -1.0,
}  # fmt: skip
"""Weights of what tells a decision, a cause or a fix, found in the same way (0.74)."""
HOLDING = ("decision", "cause", "mended", "planned", "rule", "preference")
ARTICLES = ("the ", "a ", "an ", "our ")
SUBJECT = re.compile(r"\w[\w '&./#-]{0,48}\w")


@dataclass(frozen=True)
class Point:
    """Sentences that one speaker says in one go, and the question they answer; `places` are where they stand."""

    places: tuple[int, ...]
    sentences: tuple[Sentence, ...]
    question: Sentence | None = None
    label: str | None = None

    @property
    def text(self) -> str:
        """What was said, word for word."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def speaker(self) -> str | None:
        """Who said it."""
        return self.sentences[0].speaker


def points_of(sentences: Sequence[Sentence]) -> list[Point]:
    """Return what is said in one go, without courtesies, questions, steps, and what is taken back soon after."""
    passing = mended(sentences)
    labels = labels_of(sentences)
    found: list[Point] = []
    for _, block in groupby(range(len(sentences)), key=lambda place: (sentences[place].turn, sentences[place].block)):
        places = list(block)
        for run in runs(sentences, places, passing):
            asked = question_before(sentences, run[0]) if run[0] == places[0] else None
            found.append(Point(tuple(run), tuple(sentences[place] for place in run), asked, labels.get(run[0])))
    return [each for each in found if word_count(stated(each)) >= LEAST_WORDS]


def runs(sentences: Sequence[Sentence], places: Sequence[int], passing: frozenset[int]) -> Iterator[list[int]]:
    """Yield the sentences of one block that state something, together as long as they are few words."""
    held: list[int] = []
    for place in places:
        is_held = place not in passing and states(sentences[place])
        words = word_count(" ".join(sentences[each].text for each in [*held, place]))
        if held and (not is_held or words > MOST_WORDS):
            yield held
            held = []
        held += [place] if is_held else []
    if held:
        yield held


def states(sentence: Sentence) -> bool:
    """Tell whether a sentence states something: no heading, question, courtesy, or step that is about to be taken."""
    text = straight(sentence.text)
    if sentence.is_heading or not is_prose(text) or text.rstrip(CLOSING).endswith(("?", "？", ":")):  # noqa: RUF001
        return False
    return not (COURTESY.fullmatch(text) or STEP.match(text) or INSTRUCTING.search(text))


def labels_of(sentences: Sequence[Sentence]) -> dict[int, str]:
    """Return which sentences stand under a label, such as "Lesson: …", or in the list below "To do:"."""
    found: dict[int, str] = {}
    listed: str | None = None
    for place, sentence in enumerate(sentences):
        match = LABELLED.match(sentence.text)
        if match or sentence.is_heading or sentence.speaker:
            listed = match.lastgroup if match and match.end() == len(sentence.text.rstrip()) else None
        if label := (match.lastgroup if match else listed):
            found[place] = label
    return found


def question_before(sentences: Sequence[Sentence], place: int) -> Sentence | None:
    """Return the question a short answer answers: the last sentence of another speaker's turn before it."""
    answer, before = sentences[place], sentences[place - 1] if place else None
    if before is None or before.speaker == answer.speaker or not before.text.rstrip(CLOSING).endswith(("?", "？")):  # noqa: RUF001
        return None
    is_short = word_count(answer.text) <= SHORT_ANSWER and word_count(before.text) <= LONGEST_QUESTION
    return before if is_short and not CORRECTING.match(straight(answer.text)) else None


def mended(sentences: Sequence[Sentence]) -> frozenset[int]:
    """Return the places of sentences that are taken back: by the next one, or by a later one about the same figures."""
    found = {
        place - 1 for place, sentence in enumerate(sentences) if place and CORRECTING.match(straight(sentence.text))
    }
    said = [frozenset(_DIGITS.findall(sentence.text)) | content_words(sentence.text) for sentence in sentences]
    for place, sentence in enumerate(sentences):
        for match in REFUSED.finditer(straight(sentence.text)):
            refused = frozenset(_DIGITS.findall(match[0])) | content_words(match[0])
            for before in range(max(0, place - NEAR), place):
                common = refused & said[before]
                is_same = len(common) >= LEAST_COMMON or any(word[0].isdigit() for word in common)
                if is_same and sentences[before].turn != sentence.turn:
                    found.add(before)
    return frozenset(found)


def bearing(sentences: Sequence[Sentence]) -> NDArray[np.float64]:
    """Return what each sentence has to do with the outcome: 1 for a plain statement, less for what passes."""
    passing, labels = mended(sentences), labels_of(sentences)
    weights = np.ones(len(sentences))
    for place, sentence in enumerate(sentences):
        text = straight(sentence.text)
        cues = sum(bool(pattern.search(text)) for pattern in (DECISION, CAUSE, MENDED)) + 2 * (place in labels)
        doubts = (place in passing) + bool(TALLY.search(text)) + 0.5 * bool(HEDGE.search(text))
        weights[place] = states(sentence) * POLICY.outcome_bonus**cues * POLICY.passing_share**doubts
    return weights


def questions_of(sentences: Sequence[Sentence]) -> dict[int, int]:
    """Return, by the place of each short answer, that of its question."""
    return {place: place - 1 for place in range(len(sentences)) if question_before(sentences, place)}


def stated(point: Point) -> str:
    """Return a point as a text that stands alone: its question, who says "I", its days as dates, no opening "so"."""
    first = " ".join(opened(point.sentences[0].text.split())) or point.sentences[0].text
    text = " ".join([first, *(sentence.text for sentence in point.sentences[1:])])
    text = text[:1].upper() + text[1:]
    names = point.speaker and (point.question or OWN.search(straight(text)) or WE.match(text) or is_fragment(text))
    said = f"{point.speaker}: {text}" if names else text
    return with_days(f"{point.question.text} {said}" if point.question else said, point.sentences[0].day)


def is_fragment(text: str) -> bool:
    """Tell whether a few words have no verb; a longer text is taken to have one that is not known."""
    return word_count(text) <= FRAGMENT and not VERBS.search(text)


def features(point: Point, rank: float, place: float) -> dict[str, float]:
    """Return what speaks for a point and against it, each in 0 to 1 or as the logarithm of a count."""
    text, reading = straight(point.text), read(point.text)
    figures = len(reading.numbers) + len(reading.dates) + len(reading.times) + len(reading.identifiers)
    words = word_count(text)
    return {
        "words": math.log1p(words),
        "figures": math.log1p(figures or len(_DIGITS.findall(text))),
        "names": math.log1p(len(reading.names)),
        "density": len(content_words(text)) / max(1, words),
        "rank": rank,
        "place": place,
        "label": point.label is not None,
        "answer": point.question is not None,
        "exclaims": text.endswith("!"),
        "unanchored": text.split()[0].casefold().strip(EDGE) in UNANCHORED,
        **{name: bool(cue.search(text)) for name, cue in CUES.items()},
    }


def outcome_first(points: Sequence[Point], worths: NDArray[np.float64]) -> list[int]:
    """Return the points by their worth, after those that say best what was decided, what caused and mended it."""
    ranked: list[int] = np.argsort(-worths, kind="stable").tolist()
    telling: list[int] = []
    for pattern in (CAUSE, MENDED, DECISION):
        best = next((i for i in ranked if i not in telling and pattern.search(straight(points[i].text))), None)
        telling += [] if best is None else [best]
    return [*telling, *(i for i in ranked if i not in telling)]


def worths_of(
    points: Sequence[Point], vectors: Vectors, count: int, weights: Mapping[str, float] = LASTING
) -> NDArray[np.float64]:
    """Return the worth of each point of a transcript of `count` sentences; `vectors` holds a unit row a point."""
    if not points:
        return np.zeros(0)
    ranks = lexrank(vectors).tolist()
    found = [features(each, rank, each.places[0] / count) for each, rank in zip(points, ranks, strict=True)]
    return np.array([sum(weights.get(name, 0.0) * value for name, value in each.items()) for each in found])


def lasting(points: Sequence[Point], vectors: Vectors, worths: NDArray[np.float64], *, most: int) -> list[int]:
    """Return at most `most` points worth keeping as facts, in order; no two that say the same.

    What says best why something happened is among them: without it the others tell half of what was learned.
    """
    chosen: list[int] = []
    ranked: list[int] = np.argsort(-worths, kind="stable").tolist()
    why = next((place for place in ranked if CAUSE.search(straight(points[place].text))), None)
    for place in sorted(ranked, key=lambda each: each != why):
        if worths[place] < POLICY.least_worth or len(chosen) == most:
            break
        if holds_something(points[place]) and not any(repeats(points, vectors, place, other) for other in chosen):
            chosen.append(place)
    return sorted(chosen)


def holds_something(point: Point) -> bool:
    """Tell whether a point names somebody or something, a figure, or what was decided, caused, mended or planned."""
    text = straight(point.text)
    is_told = any(CUES[name].search(text) for name in HOLDING)
    return is_told or bool(point.label or _DIGITS.search(text) or read(point.text).names)


def repeats(points: Sequence[Point], vectors: Vectors, one: int, other: int) -> bool:
    """Tell whether two points state one fact: close, with no number, name or negation between them."""
    a, b = stated(points[one]), stated(points[other])
    close = float(vectors[one] @ vectors[other]) >= POLICY.same_fact_similarity
    return cleaned(a).casefold() == cleaned(b).casefold() or (close and not differences(a, b))


def subject_of(point: Point) -> str | None:
    """Return what a point is about: who says "I", what stands before its verb, or the first name in it."""
    text = " ".join(opened(straight(point.text).split()))
    if point.speaker and (OWN.search(text) or WE.match(text)):
        return point.speaker
    verb = VERBS.search(text)
    about = text[: verb.start()].strip(EDGE) if verb else ""
    about = about.partition(" ")[2] if about.casefold().startswith(ARTICLES) else about
    if SUBJECT.fullmatch(about) and not set(about.casefold().split()) <= FUNCTION_WORDS:
        return about
    return next(iter(read(text).names), None)


def category_of(point: Point) -> str | None:
    """Return which kind of lasting wording a point has, None for a plain statement."""
    if point.label == "decision":
        return "decision"
    kinds = (("preference", PREFERENCE), ("decision", DECISION), ("rule", RULE))
    return next((kind for kind, pattern in kinds if pattern.search(straight(point.text))), None)
