"""A statement in fewer words: its shortest sentence, and one line `key: value (scope)`, cut from the text itself.

Words are only left out, never put in. What could be checked in the statement (numbers, dates, names, identifiers,
negation) stays: a wording that lost some of it is passed over for a longer one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from nous_online.pairs.guards import added, differences
from nous_online.pairs.lexicon import FUNCTION_WORDS, NEGATORS, UNITS
from nous_online.pairs.reading import MAX_CHARS, folded_letters, read_words
from nous_online.pairs.subjects import ARTICLES, subject_words
from nous_online.writing.phrases import NO_SUBJECT, UNANCHORED, VERBS
from nous_online.writing.sentences import split, straight, unmarked

MOST_KEY_WORDS = 4
LONGEST_SCOPE = 30
"""Characters; a longer category or tag says no more where a statement holds."""

_OPENER = re.compile(
    r"(?:(?:so|well|ok|okay|also|fyi|actually|basically)\b,?\s+)?(?:please\s+)?"
    r"(?:(?:note|remember|keep in mind|be aware|it(?: is|'s) (?:important|worth noting)|it should be noted)"
    r"\b[\s,:]*(?:that\s)?\s*)?",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"(?P<who>[A-Z][\w'-]*(?:\s[A-Z][\w'-]*)?)\s(?:has\s)?(?:mentioned|said|told (?:me|us)|noted|explained|stated)"
    r"\s(?:that\s)?(?:he|she|they)\s(?=\w)"
)
_FILLERS = frozenset({"really", "very", "actually", "basically", "quite", "simply", "essentially", "strongly"})
_COUNTING = frozenset({"few", "little", "lot", "bit", "couple", "number", "dozen", "hundred", "thousand", "million"})
_TAIL = re.compile(r"(?:,?\s(?:because|so that|due to|thanks to|given that)\b|,\s(?:which|where|especially|as)\b).*$")
_LINKS = frozenset({"is", "are"})
_SPOKEN = frozenset({"he", "she", "it", "they", "i"})
_EDGE = ".,;:!? "


@lru_cache(maxsize=16_384)
def shortest_sentence(text: str) -> str:
    """Return a statement without courtesies, fillers and sentences that add nothing checkable to the first.

    A text longer than can be checked (4,000 characters) is returned as it is.
    """
    if len(text) > MAX_CHARS:
        return text
    plain = unmarked(" ".join(text.split())) or text
    first = next(split(plain), plain)
    wordings = (_plainer(first), _plainer(plain), plain)
    return next((each for each in wordings if keeps(text, each)), text)


def keeps(text: str, shorter: str) -> bool:
    """Tell whether a shorter wording states every number, date, name and identifier of a text, denies what it denies,
    and is no longer."""
    if not shorter.strip() or size(shorter) > size(text):
        return False
    return shorter == text or not (added(shorter, text) or differences(text, shorter))


def size(text: str) -> int:
    """Return the bytes of a text, by which its tokens are estimated."""
    return len(text.encode("utf-8", "replace"))


def _plainer(text: str) -> str:
    """Return a text without its opening courtesy, "Ana said that she", and words that only stress."""
    rest = _TELLING.sub(r"\g<who> ", _OPENER.sub("", text, count=1), count=1)
    words = [word for word in rest.split() if word not in _FILLERS]
    shown = " ".join(words)
    return shown[:1].upper() + shown[1:] if text[:1].isupper() and shown[:1].islower() else shown


@lru_cache(maxsize=16_384)
def fact_line(text: str, subject: str | None = None, scope: str | None = None) -> str:
    """Return a statement as one line: `key: value (scope)` where it can be taken apart, at most as long as `text`.

    The key is the subject or what the statement opens with; the value is the rest without what the key says.
    """
    statement = shortest_sentence(text)
    if len(statement) > MAX_CHARS:
        return statement
    terse = _terse(statement)
    keyed = _keyed(terse, subject)
    wordings = [_TAIL.sub("", keyed), keyed, terse]
    scoped = [f"{each} ({scope})" for each in wordings[:2]] if scope and not says(terse, scope) else []
    ordered = (*scoped, *wordings)
    return next((each for each in ordered if size(each) <= size(statement) and keeps(text, each)), statement)


def key_of(line: str) -> str | None:
    """Return the key a line opens with, None where it has none."""
    key, colon, value = line.partition(": ")
    return key if colon and value and 0 < len(key.split()) <= MOST_KEY_WORDS else None


def says(text: str, phrase: str) -> bool:
    """Tell whether a text holds all the letters of a phrase, in their order and side by side."""
    return folded_letters(phrase) in folded_letters(text)


def _terse(statement: str) -> str:
    """Return a statement without articles and its final full stop; "a few" and "an hour" keep theirs."""
    words = statement.split()
    kept = [word for place, word in enumerate(words) if not _is_idle_article(words, place)]
    return " ".join(kept).rstrip(". ") or statement


def _is_idle_article(words: Sequence[str], place: int) -> bool:
    word = words[place]
    follower = words[place + 1].strip(_EDGE) if place + 1 < len(words) else ""
    if word.lower() not in ARTICLES or not follower or (place and not word.islower()):
        return False
    if word[0].isupper() and follower[:1].isupper():  # "The Hague", "A Rake's Progress"
        return False
    before = words[place - 1] if place else ""
    is_counting = follower.lower() in _COUNTING or follower.lower() in UNITS or any(c.isdigit() for c in before)
    return word.lower() == "the" or not is_counting


def _keyed(terse: str, subject: str | None) -> str:
    """Return a terse statement as `key: value`, or as it is where no key can be told."""
    if key_of(terse):
        return terse
    key, value = _opening(terse) or ("", terse)
    named = subject_words(subject)
    if subject and named and not set(named) <= set(read_words(terse).words):
        words = value.split() if key.lower() in _SPOKEN else terse.split()
        rest = words[1:] if words[0].lower() in _SPOKEN and len(words) > 1 else words
        return f"{subject}: {' '.join(rest)}"
    if not key or key.lower() in _SPOKEN:
        return terse
    return f"{key}: {value}"


def _opening(terse: str) -> tuple[str, str] | None:
    """Return what a statement opens with up to its verb, and the rest without a bare "is"; None where no verb shows."""
    words = terse.split()
    for place in _verb_places(words):
        head = words[:place]
        lower = head[0].lower()
        if lower in (FUNCTION_WORDS | NO_SUBJECT | UNANCHORED | NEGATORS) - _SPOKEN or any(_breaks(w) for w in head):
            return None
        value = words[place + 1 :] if words[place] in _LINKS and place + 1 < len(words) else words[place:]
        return " ".join(head), " ".join(value)
    return None


def _verb_places(words: Sequence[str]) -> Iterator[int]:
    for place in range(1, min(len(words), MOST_KEY_WORDS + 1)):
        if VERBS.fullmatch(straight(words[place]).strip(_EDGE)) and words[place][0].islower():
            yield place


def _breaks(word: str) -> bool:
    return word[-1] in ",;:.!?" or word.lower() in NEGATORS
