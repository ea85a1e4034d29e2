"""The points of a transcript: what is said in one go and will still hold, each told so that it stands alone.

What is said is weighed by its form, its figures and names, and a few words for what was decided, caused, mended or
learned. Those are known in four languages; of others only the form, the figures and the names count. A failure also
teaches to beware of the action that went wrong.
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
from nous_online.language.lexicon import FUNCTION_WORDS, phrases
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.guards import differences
from nous_online.language.pairs.reading import cleaned, read, stem
from nous_online.language.writing.credentials import holds_credential
from nous_online.language.writing.lexrank import EDGE, bare, content_words, first_words, lexrank, opened, word_count
from nous_online.language.writing.phrases import (
    ADVISING,
    ANNOUNCED,
    CAUSE,
    CORRECTING,
    COURTESY,
    DECISION,
    DONE,
    HEDGE,
    INSTRUCTING,
    LABELLED,
    MENDED,
    OWN,
    PLANNED,
    PREFERENCE,
    RAN,
    REFUSED,
    REFUSING,
    REQUEST,
    RULE,
    STEP,
    TALLY,
    UNANCHORED,
    VERBS,
    WE,
)
from nous_online.language.writing.sentences import (
    CLOSING,
    TALKING,
    Sentence,
    is_prose,
    role_of,
    said,
    split,
    straight,
    uses_tools,
    with_days,
)

POLICY = WritingPolicy()
MOST_WORDS = 40  # said in one go, that are one point; more are several
SHORT_ANSWER, LONGEST_QUESTION = 14, 25  # words; a longer answer says itself what it answers
ASSISTANTS = frozenset({"assistant", "agent", "ai", "bot", "model"})
ASKING = frozenset({"user", "human"})
FRAGMENT = 8
LEAST_WORDS = 4  # of a point: less says nothing on its own
NEAR = 8  # sentences after which a correction no longer speaks of one
ASKS_OR_LEADS = ("?", "？", ":", "：", ",")  # noqa: RUF001 — of a sentence by itself: a question, a lead-in, a salutation
LEAST_COMMON = 2  # content words of what is refused, that stand in what was said before
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
    "density": 1.5, "mended": 1.0, "rank": 1.5, "refuses": 0.4, "decision": 0.9, "cause": 0.6,
    "place": 0.5, "unanchored": -1.0, "hedge": -1.0,
}  # fmt: skip
"""Weights of what tells a decision, a cause or a fix, found in the same way (0.74)."""
FOUND = ("decision", "cause", "mended")
HOLDING = ("decision", "cause", "mended", "planned", "rule", "preference")
ARTICLES = ("the ", "a ", "an ", "our ")
CODE_NAME = re.compile(r"[a-z][\w-]{0,60}(?:[/_.]\w|[A-Z])")
"""A path or a name in code stays as it is written: `src/app.py` is another file than `Src/app.py`."""
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
    if sentence.is_heading or not is_prose(text) or text.rstrip(CLOSING).endswith(ASKS_OR_LEADS):
        return False
    speaker = (sentence.speaker or "").casefold()
    if speaker in ASSISTANTS and ANNOUNCED.search(text):
        return False
    if speaker in ASKING and REQUEST.match(text) and not (RULE.search(text) or PREFERENCE.search(text)):
        return False
    return not (COURTESY.fullmatch(text) or STEP.match(text) or RAN.match(text) or INSTRUCTING.search(text))


def explained(detail: str) -> str:
    """Return what is said from one request to an assistant to the next where somebody explains at length or pastes.

    Where no tool was used in between nothing was found out: of that only what people say of themselves is kept.
    """
    exchanges: list[list[str]] = [[]]
    for line in detail.splitlines():
        name = role_of(line)
        exchanges += [[]] if name in ASKING and not uses_tools(line) else []
        exchanges[-1].append(line)
    return " ".join(
        " ".join(" ".join(exchange).split())
        for exchange in exchanges
        if longest_turn(exchange) > POLICY.most_answer_words and not any(map(uses_tools, exchange))
    )


def longest_turn(exchange: Sequence[str]) -> int:
    """Return the words of the longest turn that a role opens in an exchange, 0 where none does."""
    words = [0]
    for line in exchange:
        words += [0] if role_of(line) in TALKING else []
        words[-1] += word_count(line) if len(words) > 1 else 0
    return max(words)


def tells(point: Point) -> bool:
    """Tell whether a point beside an agent's work says what was done, found, decided or always holds, or why.

    The agent's advice, and what is only asked of it, passes with the work.
    """
    text = straight(point.text)
    is_asking = (point.speaker or "").casefold() in ASKING
    if is_own(point) or (is_asking and (point.question or RULE.search(text) or PREFERENCE.search(text))):
        return True
    is_told = point.label or DONE.search(text) or any(CUES[name].search(text) for name in FOUND)
    return bool(is_told) and not (ADVISING.search(text) or HEDGE.search(text))


def is_own(point: Point) -> bool:
    """Tell whether somebody who asks an assistant says something of themselves."""
    return (point.speaker or "").casefold() in ASKING and bool(OWN.search(straight(point.text)) or WE.match(point.text))


def says_little(text: str) -> bool:
    """Tell whether a sentence says next to nothing without those around it: "Hm.", "Partly.", "gotta run"."""
    return word_count(text) < LEAST_WORDS and len(content_words(text)) < LEAST_COMMON and not _DIGITS.search(text)


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
    if (answer.speaker or "").casefold() in ASKING and REQUEST.match(straight(answer.text)):
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


def bearing(sentences: Sequence[Sentence]) -> NDArray[np.bool_]:
    """Return which sentences may stand in a summary: what is stated, not taken back, and says something by itself."""
    passing = mended(sentences)
    return np.array(
        [
            place not in passing
            and states(sentence)
            and (not says_little(sentence.text) or question_before(sentences, place) is not None)
            for place, sentence in enumerate(sentences)
        ]
    )


def questions_of(sentences: Sequence[Sentence]) -> dict[int, int]:
    """Return, by the place of each short answer, that of its question."""
    return {place: place - 1 for place in range(len(sentences)) if question_before(sentences, place)}


def stated(point: Point) -> str:
    """Return a point as a text that stands alone: its question, who says "I", its days as dates, no opening "so"."""
    first = " ".join(opened(point.sentences[0].text.split())) or point.sentences[0].text
    text = " ".join([first, *(sentence.text for sentence in point.sentences[1:])])
    text = text if CODE_NAME.match(text) else text[:1].upper() + text[1:]
    is_fragment = word_count(text) <= FRAGMENT and not VERBS.search(text)  # a longer one has a verb that is not known
    names = point.speaker and (point.question or OWN.search(straight(text)) or WE.match(text) or is_fragment)
    said = f"{point.speaker}: {text}" if names else text
    return with_days(f"{point.question.text} {said}" if point.question else said, point.sentences[0].day)


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


def worths_of(
    points: Sequence[Point], vectors: Vectors, count: int, weights: Mapping[str, float] = LASTING
) -> NDArray[np.float64]:
    """Return the worth of each point of a transcript of `count` sentences; `vectors` holds a unit row a point."""
    if not points:
        return np.zeros(0)
    ranks = lexrank(vectors).tolist()
    found = [features(each, rank, each.places[0] / count) for each, rank in zip(points, ranks, strict=True)]
    return np.array([sum(weights.get(name, 0.0) * value for name, value in each.items()) for each in found])


def telling(points: Sequence[Point], vectors: Vectors, count: int) -> NDArray[np.float64]:
    """Return how much the words of each of `count` sentences tell of what was decided, caused and mended."""
    worths = np.zeros(count)
    for point, worth in zip(points, worths_of(points, vectors, count, OUTCOME), strict=True):
        worths[list(point.places)] = worth
    return np.exp(POLICY.telling_pull * worths)


def lasting(points: Sequence[Point], vectors: Vectors, worths: NDArray[np.float64], *, most: int) -> list[int]:
    """Return at most `most` points worth keeping as facts, in order; no two that say the same.

    What says best why something happened is among them: without it the others tell half of what was learned.
    """
    chosen: list[int] = []
    order: list[int] = np.argsort(-worths, kind="stable").tolist()
    ranked = [place for place in order if worths[place] >= POLICY.least_worth]
    why = next((place for place in ranked if CAUSE.search(straight(points[place].text))), None)
    for place in sorted(ranked, key=lambda each: each != why):
        if len(chosen) == most:
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


LONGEST_TRIGGER = 20  # words of an action; what is longer is a story
LEAST_TRIGGER, LEAST_WHEN_POINTING = 1, 3  # content words of an action; "taking it first" could be anything

_ACTION = r"(?P<action>[^,.;!?]{3,160})"
_FORBIDDEN = re.compile(
    r"(?<!\bI )(?<!\bto )\b(?:never|do not|don't|avoid|stop|refrain from|must(?:n't| not)|should(?:n't| not)(?: have)?"
    r"|(?<=\bnot )to)\s++(?:ever\s++)?(?P<action>[^.;!?]{3,160})",
    re.IGNORECASE,
)
_OMITTED = re.compile(
    r"\b(?:to|never|not|don't)\s++(?P<action>[^,.;!?]{3,120}?\swithout\s[^\W\d_]+ing\b[^,.;!?]{0,80})",
    re.IGNORECASE,
)
_TOO_EARLY = re.compile(r"\b(?:before|prior to)\s++(?P<action>[^\W\d_]+ing\b[^,.;!?]{2,160})", re.IGNORECASE)
_POINTS_BACK = re.compile(r"\b(?:it|them|this|that|these|those|there|so)\b", re.IGNORECASE)
_ENDS_ACTION = re.compile(
    r"(?:[,;:]|\s-\s|\b(?:because|since|as it|as this|as that|so that|otherwise|or else|unless|until|which|it will"
    r"|it would|when it)\b)(?s:.*+)",
    re.IGNORECASE,
)
_WRONG, _REMEDY = phrases("wrong"), phrases("remedy")
_CAUSE_FIRST = re.compile(rf"^(?:\w+ )?(?:when|after|because|since|once|as soon as|by)\s++{_ACTION},\s", re.IGNORECASE)
_BECAUSE = re.compile(rf"\b(?:because(?: of)?|due to)\s++{_ACTION}", re.IGNORECASE)
_AFTERWARDS = re.compile(rf"\b(?:after|when|by)\s++{_ACTION}", re.IGNORECASE)
_CAUSED = re.compile(
    r"^(?P<action>[^,.;!?]{3,160}?)(?<!\s)\s++(?:caused?|led to|broke|breaks|resulted in|crashed|triggered|deleted"
    r"|corrupted|overwrote)\b",
    re.IGNORECASE,
)
_WHO = re.compile(
    r"(?:and |so |but )?(?:i|we|you|they|he|she|it|the agent|the assistant)\s+(?:had |have |just |then )?",
    re.IGNORECASE,
)


def cautions(lessons: Sequence[str], sentences: Sequence[Sentence]) -> list[tuple[str, str]]:
    """Return at most three actions to beware of, each with what comes of it: from the lessons first.

    Then from the sentence that says what went wrong. `sentences` come most central first; of those that tell a failure
    the first with a readable action is taken.
    """
    taught = [caution for lesson in lessons for text in split(" ".join(lesson.split())) if (caution := warned(text))]
    happened = next((caution for sentence in sentences if (caution := gone_wrong(sentence))), None)
    kept: list[tuple[str, str]] = []
    for trigger, reason in [*taught, *([happened] if happened else [])]:
        if not any(stems(trigger) <= stems(other) for other, _ in kept):
            kept.append((trigger, reason))
    return kept[: POLICY.most_censors]


def stems(text: str) -> set[str]:
    """Return the content words of an action without their endings, so that "restarted" is "restart"."""
    return {stem(word) for word in content_words(text)}


def warned(lesson: str) -> tuple[str, str] | None:
    """Return what one lesson forbids, and the lesson: "never …", "don't …", "avoid …", or "… before doing it"."""
    plain = straight(lesson)
    match = _FORBIDDEN.search(plain) or _OMITTED.search(plain) or _TOO_EARLY.search(plain)
    trigger = action(match) if match and not holds_credential(lesson) else None
    return (trigger, lesson.strip()) if trigger else None


def gone_wrong(sentence: Sentence) -> tuple[str, str] | None:
    """Return the action a sentence holds responsible for what went wrong, and the sentence."""
    text = straight(sentence.text)
    if not _WRONG.search(text) or _REMEDY.search(text) or text.endswith("?") or not is_prose(text):
        return None
    patterns = (_CAUSE_FIRST, _BECAUSE, _CAUSED, _AFTERWARDS)
    match = next((match for pattern in patterns if (match := pattern.search(text))), None)
    trigger = action(match) if match else None
    return (trigger, said(sentence)) if trigger else None


def action(match: re.Match[str]) -> str | None:
    """Return the action of a match as a few words, without who did it; None where it says too little to be matched."""
    words = bare(_ENDS_ACTION.sub("", match["action"]))
    words = words[who.end() :] if (who := _WHO.match(words)) else words
    trigger = bare(first_words(words, LONGEST_TRIGGER))
    least = LEAST_WHEN_POINTING if _POINTS_BACK.search(trigger) else LEAST_TRIGGER
    return trigger if len(trigger.split()) > 1 and len(stems(trigger)) >= least else None
