"""Draws from a failed episode which action went wrong: what its lessons forbid, and what its transcript blames."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nous_online.core.patterns import regex
from nous_online.core.policy import WritingPolicy
from nous_online.language.lexicon import WRONG, phrases
from nous_online.language.writing.chats import told_stems
from nous_online.language.writing.credentials import holds_credential
from nous_online.language.writing.lexrank import first_words, strip_punctuation
from nous_online.language.writing.points import POINTS_BACK
from nous_online.language.writing.sentences import (
    Sentence,
    is_prose,
    split_sentences,
    straighten_apostrophes,
    with_speaker,
)

POLICY = WritingPolicy()
LONGEST_TRIGGER = 20  # words of a trigger; a longer one tells a story and fits nothing else
LEAST_TRIGGER, LEAST_WHEN_POINTING = 1, 3  # content words; more with a pronoun: "taking it first" could be anything

_ACTION = r"(?P<action>[^,.;!?]{3,160})"
_FORBIDDEN = regex(
    r"(?<!\bI )(?<!\bto )\b(?:never|do not|don't|avoid|stop|refrain from|must(?:n't| not)|should(?:n't| not)(?: have)?"
    r"|(?<=\bnot )to)\s++(?:ever\s++)?(?P<action>[^.;!?]{3,160})",
    re.IGNORECASE,
)
_OMITTED = regex(
    r"\b(?:to|never|not|don't)\s++(?P<action>[^,.;!?]{3,120}?\swithout\s[^\W\d_]+ing\b[^,.;!?]{0,80})",
    re.IGNORECASE,
)
_TOO_EARLY = regex(r"\b(?:before|prior to)\s++(?P<action>[^\W\d_]+ing\b[^,.;!?]{2,160})", re.IGNORECASE)
_ENDS_ACTION = regex(
    r"(?:[,;:]|\s-\s|\b(?:because|since|as it|as this|as that|so that|otherwise|or else|unless|until|which|it will"
    r"|it would|when it)\b)(?s:.*+)",
    re.IGNORECASE,
)
_REMEDY = phrases("remedy")
_CAUSE_FIRST = regex(rf"^(?:\w+ )?(?:when|after|because|since|once|as soon as|by)\s++{_ACTION},\s", re.IGNORECASE)
_BECAUSE = regex(rf"\b(?:because(?: of)?|due to)\s++{_ACTION}", re.IGNORECASE)
_AFTERWARDS = regex(rf"\b(?:after|when|by)\s++{_ACTION}", re.IGNORECASE)
_CAUSED = regex(
    r"^(?P<action>[^,.;!?]{3,160}?)(?<!\s)\s++(?:caused?|led to|broke|breaks|resulted in|crashed|triggered|deleted"
    r"|corrupted|overwrote)\b",
    re.IGNORECASE,
)
_WHO = regex(
    r"(?:and |so |but )?(?:i|we|you|they|he|she|it|the agent|the assistant)\s+(?:had |have |just |then )?",
    re.IGNORECASE,
)


def find_cautions(lessons: Sequence[str], sentences: Sequence[Sentence]) -> list[tuple[str, str]]:
    """Return at most three (trigger, reason) pairs: actions to avoid, taken from the lessons first.

    The last comes from the transcript: `sentences` are sorted most central first, and the first of them that blames a
    readable action for a failure is used.
    """
    taught = [
        caution
        for lesson in lessons
        for text in split_sentences(" ".join(lesson.split()))
        if (caution := forbidden_action(text))
    ]
    happened = next((caution for sentence in sentences if (caution := blamed_action(sentence))), None)
    kept: list[tuple[str, str]] = []
    for trigger, reason in [*taught, *([happened] if happened else [])]:
        if not any(told_stems(trigger) <= told_stems(other) for other, _ in kept):
            kept.append((trigger, reason))
    return kept[: POLICY.most_censors]


def forbidden_action(lesson: str) -> tuple[str, str] | None:
    """Return the action one lesson forbids ("never …", "avoid …", "before doing …") and the lesson, or None."""
    plain = straighten_apostrophes(lesson)
    match = _FORBIDDEN.search(plain) or _OMITTED.search(plain) or _TOO_EARLY.search(plain)
    trigger = clean_action(match) if match and not holds_credential(lesson) else None
    return (trigger, lesson.strip()) if trigger else None


def blamed_action(sentence: Sentence) -> tuple[str, str] | None:
    """Return the action a sentence blames for a failure, and the sentence with its speaker, or None."""
    text = straighten_apostrophes(sentence.text)
    if not WRONG.search(text) or _REMEDY.search(text) or text.endswith("?") or not is_prose(text):
        return None
    patterns = (_CAUSE_FIRST, _BECAUSE, _CAUSED, _AFTERWARDS)
    match = next((match for pattern in patterns if (match := pattern.search(text))), None)
    trigger = clean_action(match) if match else None
    return (trigger, with_speaker(sentence)) if trigger else None


def clean_action(match: re.Match[str]) -> str | None:
    """Return the `action` group of a match as a short trigger without its actor, None where too few words are left."""
    words = strip_punctuation(_ENDS_ACTION.sub("", match["action"]))
    words = words[who.end() :] if (who := _WHO.match(words)) else words
    trigger = strip_punctuation(first_words(words, LONGEST_TRIGGER))
    least = LEAST_WHEN_POINTING if POINTS_BACK.search(trigger) else LEAST_TRIGGER
    return trigger if len(trigger.split()) > 1 and len(told_stems(trigger)) >= least else None
