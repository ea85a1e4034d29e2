"""Shortens a statement: without courtesies, and as one line `key: value (scope)`.

Words are only left out, never added. A shorter wording that loses a number, date, name, identifier or negation is
rejected for a longer one. The speaker, conditions and every later sentence stay, since a later sentence may take the
statement back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from nous_online.core.patterns import regex
from nous_online.language.lexicon import (
    ARTICLES,
    FUNCTION_WORDS,
    NEGATORS,
    NO_SUBJECT,
    UNANCHORED,
    UNITS,
    VERBS,
    phrases,
)
from nous_online.language.pairs.guards import added, differences
from nous_online.language.pairs.reading import folded_letters, read_words, stem
from nous_online.language.pairs.wordings import subject_words
from nous_online.language.writing.sentences import split_sentences, straighten_apostrophes, strip_markdown

MOST_KEY_WORDS = 5
LONGEST_STATEMENT = 2_000  # characters; checking a longer text would take longer than learning it
LONGEST_SCOPE = 30  # characters; a longer category or tag is no scope

_OPENER = regex(
    r"(?:(?:so|well|ok|okay|also|fyi|actually|basically),\s+)?(?:please\s+)?"
    r"(?:(?:note|remember|keep in mind|be aware|it(?: is|'s) (?:important to note|worth noting)|it should be noted)"
    r"(?:\s?[:,]\s+(?:that\s)?|\sthat\s)(?=\S+\s+\S+\s+\S))?",
    re.IGNORECASE,
)
_COURTESY = regex(
    r"(?:(?:many )?(?:thanks|thank you|thx|cheers)(?:,? (?:a lot|so much|very much|again|in advance|all|everyone))*"
    r"|please|sorry|great|ok(?:ay)?|hi|hello|bye|(?:you(?:'re| are) )?welcome|(?:i )?hope (?:this|that|it) helps"
    r"|let me know(?: what you think| if you have (?:any )?questions)?|have a (?:nice|good|great) (?:day|evening))\W*",
    re.IGNORECASE,
)
_FILLERS = frozenset({"really", "very", "actually", "basically", "simply"})
_COUNTING = frozenset({"few", "little", "lot", "bit", "couple", "number", "dozen", "hundred", "thousand", "million"})
_TAIL = regex(r"(?:,?\s(?:because|due to|thanks to)\b|,\swhich\b).*$")
_LIMITING = phrases("limiting")
_GOES_ON = regex(r"[,.;:!?…]\s|[。！？]")  # noqa: RUF001 — full-width marks end sentences too
_LEANING = frozenset(
    "is are was were am be been being only just mainly mostly partly largely simply probably perhaps possibly".split()  # noqa: SIM905
)
"""Words after which a reason can't be left out: "it was due to the disk"."""
_LINKS = frozenset({"is", "are", "am"})
_SPOKEN = frozenset({"he", "she", "it", "they", "i"})
_OWNERS = frozenset({"my", "our", "his", "her", "their", "its"})
_NO_KEY = (FUNCTION_WORDS | NO_SUBJECT | UNANCHORED | NEGATORS) - _OWNERS
_INSIDE = frozenset({"of", "for", "in", "on", "at", "to", "and", "from", "by", "with"}) | _OWNERS
_EDGE = ".,;:!? "


@lru_cache(maxsize=16_384)
def shortest_sentence(text: str) -> str:
    """Return a statement without courtesies and fillers; a text of more than 2,000 characters is returned as it is."""
    if len(text) > LONGEST_STATEMENT:
        return text
    plain = strip_markdown(" ".join(text.split())) or text
    wordings = dict.fromkeys((_without_fillers(plain), plain))
    return next((each for each in wordings if keeps_facts(_without_courtesies(plain), each)), text)


def byte_count(text: str) -> int:
    """Return the length of a text in bytes of UTF-8, a measure that does not depend on a model's tokenizer."""
    return len(text.encode("utf-8", "surrogatepass"))


def keeps_facts(text: str, shorter: str) -> bool:
    """Tell whether a wording is no longer than a text and has its numbers, dates, names, identifiers and negation."""
    if not shorter.strip() or byte_count(shorter) > byte_count(text):
        return False
    return shorter == text or not (added(shorter, text) or differences(text, shorter))


def _without_fillers(text: str) -> str:
    """Return a text without its opening courtesy and intensifiers; "not really" and "very much" stay."""
    words = _without_courtesies(text).split()
    around = zip(["", *words], words, [*words[1:], ""], strict=False)
    kept = [
        word for before, word, after in around if word not in _FILLERS or _denies(before) or after.startswith("much")
    ]
    return _recapitalised(text, " ".join(kept))


def _denies(word: str) -> bool:
    lower = straighten_apostrophes(word.lower()).strip(_EDGE)
    return lower in NEGATORS or lower.endswith("n't")


def _without_reason(line: str) -> str:
    """Return a line without a reason at its end; unchanged where more follows the reason, or where the line is negated.

    "We did not leave because of the cost" does not say that nobody left.
    """
    tail = _TAIL.search(line)
    words = line[: tail.start()].split() if tail else []
    if not tail or not words or words[-1].lower() in _LEANING or words[-1].endswith(":") or any(map(_denies, words)):
        return line
    goes_on = _GOES_ON.search(tail[0].lstrip(", ")) or _LIMITING.search(tail[0])
    return line if goes_on else " ".join(words)


def _without_courtesies(text: str) -> str:
    """Return a text without courtesies such as "Please note that" and "Thanks!", whose capitals look like names."""
    sentences = list(split_sentences(text))
    kept = [each for each in sentences if not _COURTESY.fullmatch(straighten_apostrophes(each))]
    rest = " ".join(kept) if kept and kept != sentences else text
    return _recapitalised(rest, _OPENER.sub("", rest, count=1)) or text


def _recapitalised(text: str, rest: str) -> str:
    """Return the rest of a text, capitalised where the text is."""
    return rest[:1].upper() + rest[1:] if text[:1].isupper() else rest


@lru_cache(maxsize=16_384)
def fact_line(text: str, subject: str | None = None, scope: str | None = None) -> str:
    """Return a statement as one line that is no longer, `key: value (scope)` where a key is found.

    The key is the subject or the words before the verb; the value is the rest.
    """
    whole = with_subject(_without_courtesies(text), subject)
    statement = with_subject(shortest_sentence(text), subject)
    if len(text) > LONGEST_STATEMENT:
        return with_subject(text, subject)
    terse = without_articles(statement)
    wordings = [each for keyed in (_about(terse, subject), _keyed(terse)) for each in (_without_reason(keyed), keyed)]
    scoped = [f"{each} ({scope})" for each in wordings if scope and not holds_phrase(each, scope)]
    return shortest_kept(statement, dict.fromkeys((*scoped, *wordings, terse)), whole=whole)


def terse_line(text: str) -> str:
    """Return a statement without courtesies, fillers, articles and a reason at its end."""
    statement = shortest_sentence(text)
    if len(text) > LONGEST_STATEMENT:
        return text
    terse = without_articles(statement)
    return shortest_kept(statement, (_without_reason(terse), terse), whole=_without_courtesies(text))


def shortest_kept(statement: str, wordings: Iterable[str], *, whole: str) -> str:
    """Return the first wording that is no longer than `statement` and keeps the facts of `whole`, else `statement`."""
    return next(
        (each for each in wordings if byte_count(each) <= byte_count(statement) and keeps_facts(whole, each)), statement
    )


def with_subject(text: str, subject: str | None) -> str:
    """Return a statement with its subject in front, unless it names the subject."""
    if not subject or subject.casefold() in text.casefold():
        return text
    about = {stem(word) for word in subject_words(subject)}
    return f"{subject}: {text}" if about - {stem(word) for word in read_words(text).words} else text


def key_of(line: str) -> str | None:
    """Return the key of a line, None without one."""
    key, colon, value = line.partition(": ")
    return key if colon and value.strip() and 0 < len(key.split()) <= MOST_KEY_WORDS else None


def holds_phrase(text: str, phrase: str) -> bool:
    """Tell whether a text holds a phrase, whatever its case, spacing and punctuation."""
    return folded_letters(phrase) in folded_letters(text)


def without_articles(statement: str) -> str:
    """Return a statement without articles and final full stop; "a few" and "an hour" keep their article."""
    words = statement.split()
    kept = [word for place, word in enumerate(words) if not _is_idle_article(words, place)]
    return " ".join(kept).rstrip(". ") or statement


def _is_idle_article(words: Sequence[str], place: int) -> bool:
    word = words[place]
    follower = words[place + 1].strip(_EDGE) if place + 1 < len(words) else ""
    opens = place == 0 or words[place - 1].endswith(":")
    if word.lower() not in ARTICLES or not follower or not (opens or word.islower()):
        return False
    if word[0].isupper() and follower[:1].isupper() and not follower.isupper():  # "The Hague", but not "The CI"
        return False
    before = words[place - 1] if place else ""
    is_counting = follower.lower() in _COUNTING or follower.lower() in UNITS or any(map(str.isdigit, before))
    return word.lower() == "the" or not is_counting


def _keyed(terse: str) -> str:
    """Return a terse statement as `key: value`, unchanged where no key is found."""
    key = key_of(terse)
    if key:
        value = terse[len(key) + 2 :].split()
        is_spoken = len(value) > 1 and value[0].lower() in _SPOKEN
        return f"{key}: {' '.join(_without_link(value[1:]) if is_spoken else value)}"
    words = terse.split()
    for place in _verb_places(words):
        return f"{' '.join(words[:place])}: {' '.join(_without_link(words[place:]))}"
    return terse


def _about(terse: str, subject: str | None) -> str:
    """Return a statement that names its subject later as `subject: rest`, else what `_keyed` returns."""
    phrase, words = without_articles(subject or "").split(), terse.split()
    lower = [word.lower() for word in words]
    starts = [at for at in range(1, len(words)) if phrase and lower[at : at + len(phrase)] == [*map(str.lower, phrase)]]
    if len(starts) != 1 or key_of(terse) or not any(map(_is_verb, words[1 : starts[0]], words[2:])):
        return _keyed(terse)
    start, end = starts[0], starts[0] + len(phrase)
    is_placed = lower[start - 1] in _INSIDE - _OWNERS
    follower = words[end] if end < len(words) else ""
    if not is_placed and (not follower.isalpha() or follower in FUNCTION_WORDS):
        return _keyed(terse)
    return f"{subject}: {' '.join([*words[: start - is_placed], *words[end:]])}"


def _without_link(words: Sequence[str]) -> Sequence[str]:
    return words[1:] if len(words) > 1 and words[0] in _LINKS else words


def _verb_places(words: Sequence[str]) -> Iterator[int]:
    """Yield the indexes of verbs before which a statement can be split into key and value."""
    if words[0].lower() in _NO_KEY:
        return
    for place in range(1, min(len(words) - 1, MOST_KEY_WORDS + 1)):
        before, word = words[place - 1], words[place]
        if before[-1] in ",;:.!?" or before.lower() in _NO_KEY - _INSIDE:
            return
        if (
            _is_verb(word, words[place + 1])
            and before.lower() not in _INSIDE
            and not straighten_apostrophes(before).endswith("'s")
        ):
            yield place


def _is_verb(word: str, follower: str) -> bool:
    """Tell whether a word can only be a verb; a past form only before a function word or a name: "moved to Rome"."""
    if not word.islower() or not VERBS.fullmatch(straighten_apostrophes(word)):
        return False
    is_plain = follower.islower() and follower not in FUNCTION_WORDS
    return not (word.endswith("ed") and is_plain)
