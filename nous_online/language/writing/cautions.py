"""What a failure teaches to beware of: the action that went wrong, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nous_online.core.policy import WritingPolicy
from nous_online.language.pairs.reading import stem
from nous_online.language.writing.credentials import holds_credential
from nous_online.language.writing.lexrank import content_words
from nous_online.language.writing.phrases import alternatives
from nous_online.language.writing.sentences import Sentence, is_prose, said, split, straight
from nous_online.language.writing.titles import bare, first_words

POLICY = WritingPolicy()
LONGEST_TRIGGER = 20
"""Words of an action; what is longer is a story."""
LEAST_TRIGGER, LEAST_WHEN_POINTING = 1, 3
"""Content words of an action; "taking it first" could be anything."""

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
_WRONG = alternatives(
    "fail(?:s|ed|ure|ures|ing)?", "broke", "broken", "breaks", "crash(?:es|ed|ing)?", "errors?", "outage", "lost",
    "losing", "deleted", "wrong", "wrongly", "timed out", "time-?out", "rejected", "refused", "rolled back",
    "corrupt(?:s|ed|ing)?", "overwr(?:ites|ote|itten)", "leak(?:s|ed|ing)?", "blocked", "mistakes?", "mistaken(?:ly)?",
    "forgot", "forgotten", "missed", "regress(?:ed|ion|ions)(?! tests?)", "denied", "could not", "couldn't",
    "did not work", "didn't work", "stuck", "exhausted", "ran out",
)  # fmt: skip
_REMEDY = alternatives("fixed", "solved", "resolved", "remedied", "worked around", "mended", "restored", "recovered")
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


@dataclass(frozen=True)
class Caution:
    """An action to beware of, and what comes of it."""

    trigger: str
    reason: str


def cautions(lessons: Sequence[str], sentences: Sequence[Sentence]) -> list[Caution]:
    """Return at most three cautions: from the lessons first, then from the sentence that says what went wrong.

    `sentences` come most central first; of those that tell a failure the first with a readable action is taken.
    """
    taught = [caution for lesson in lessons for text in split(" ".join(lesson.split())) for caution in warned(text)]
    happened = next((caution for sentence in sentences for caution in gone_wrong(sentence)), None)
    kept: list[Caution] = []
    for caution in [*taught, *([happened] if happened else [])]:
        if not any(stems(caution.trigger) <= stems(other.trigger) for other in kept):
            kept.append(caution)
    return kept[: POLICY.most_censors]


def stems(text: str) -> set[str]:
    """Return the content words of an action without their endings, so that "restarted" is "restart"."""
    return {stem(word) for word in content_words(text)}


def warned(lesson: str) -> Iterator[Caution]:
    """Yield what one lesson forbids: "never …", "don't …", "avoid …", or "… before doing it"."""
    plain = straight(lesson)
    match = _FORBIDDEN.search(plain) or _OMITTED.search(plain) or _TOO_EARLY.search(plain)
    trigger = action(match) if match and not holds_credential(lesson) else None
    if trigger:
        yield Caution(trigger, lesson.strip())


def gone_wrong(sentence: Sentence) -> Iterator[Caution]:
    """Yield the action a sentence holds responsible for what went wrong."""
    text = straight(sentence.text)
    if not _WRONG.search(text) or _REMEDY.search(text) or text.endswith("?") or not is_prose(text):
        return
    patterns = (_CAUSE_FIRST, _BECAUSE, _CAUSED, _AFTERWARDS)
    match = next((match for pattern in patterns if (match := pattern.search(text))), None)
    if match and (trigger := action(match)):
        yield Caution(trigger, said(sentence))


def action(match: re.Match[str]) -> str | None:
    """Return the action of a match as a few words, without who did it; None where it says too little to be matched."""
    words = bare(_ENDS_ACTION.sub("", match["action"]))
    words = words[who.end() :] if (who := _WHO.match(words)) else words
    trigger = bare(first_words(words, LONGEST_TRIGGER))
    least = LEAST_WHEN_POINTING if _POINTS_BACK.search(trigger) else LEAST_TRIGGER
    return trigger if len(trigger.split()) > 1 and len(stems(trigger)) >= least else None
