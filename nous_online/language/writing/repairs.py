"""Tells which faults of a session are mended in it later: in three weeks they are no longer true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nous_online.core.policy import WritingPolicy
from nous_online.language.lexicon import (
    ANNOUNCED,
    CAUSE,
    COURTESY,
    DECISION,
    FAULT,
    FIXING,
    HEDGE,
    LABELLED,
    MENDING,
    PAST,
    QUOTED,
)
from nous_online.language.writing.chats import is_question, told_stems
from nous_online.language.writing.points import (
    DEEDS,
    LEAST_COMMON,
    MANY_COMMON,
    NEAR,
    Point,
    first_word,
    is_decided,
    is_standing,
    is_statement,
)
from nous_online.language.writing.sentences import Sentence, straighten_apostrophes

POLICY = WritingPolicy()


class Mending(NamedTuple):
    """What a sentence says is mended or other now: where it stands, the stems of its words, and its reach.

    A fault in as many blocks before it is mended without a word in common.
    """

    block: int
    words: frozenset[str]
    reach: int


def mendings(sentences: Sequence[Sentence]) -> list[Mending]:
    """Return what a text tells as mended or other than before, in order: all of it, whatever becomes no fact."""
    return [mending for each in sentences if (mending := mending_of(each))]


def mending_of(sentence: Sentence) -> Mending | None:
    """Return what a sentence says is mended or other now, None for other sentences.

    "Fixed." and "Let me fix that." mend a fault that stands near, "Fix: …" the one just before, and "The mill now reads
    it" what shares its words.
    """
    text = straighten_apostrophes(sentence.text)
    label = LABELLED.match(text)
    is_labelled = label and label.lastgroup == "fix" and first_word(text[label.end() :]) not in DEEDS
    is_announced = ANNOUNCED.search(text) and FIXING.search(text)
    if not (is_labelled or is_announced or MENDING.search(text)) or is_question(sentence) or HEDGE.search(text):
        return None
    if not (is_announced or is_statement(sentence) or COURTESY.fullmatch(text)):  # "Great, it works now!"
        return None
    words = told_stems(MENDING.sub("", FIXING.sub("", text)))
    return Mending(sentence.block, words, NEAR if len(words) < LEAST_COMMON else int(bool(is_labelled)))


def is_mended(point: Point, mends: Sequence[Mending]) -> bool:
    """Tell whether a point states a fault that one of `mends` mends later.

    What was decided or is to hold stays, and so does what is told of the past or together with how it was mended.
    """
    text = straighten_apostrophes(point.text)
    plain = QUOTED.sub("x", text)
    is_fault = point.label == "cause" or FAULT.search(plain)
    is_lasting = is_decided(text) or any(map(is_standing, point.sentences)) or PAST.search(text) or MENDING.search(text)
    if is_lasting or not (is_fault or (CAUSE.search(plain) and not DECISION.search(plain))):
        return False
    own, last = told_stems(text), point.sentences[-1].block
    return any(
        len(common := own & each.words) >= max(LEAST_COMMON, POLICY.mended_share * min(len(own), len(each.words)))
        or (is_fault and (len(common) >= MANY_COMMON or each.block <= last + each.reach))
        for each in mends
        if each.block > last
    )
