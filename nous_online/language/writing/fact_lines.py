"""A statement in fewer words: without courtesies, and as one line `key: value (scope)`, cut from the text itself.

Words are only left out, never put in. What could be checked in the statement (numbers, dates, names, identifiers,
negation) stays: a wording that lost some of it is passed over for a longer one. So do who said it, what it holds
under, and every later sentence, which may take it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from nous_online.language.lexicon import ARTICLES, FUNCTION_WORDS, NEGATORS, UNITS, phrases
from nous_online.language.pairs.guards import added, differences
from nous_online.language.pairs.reading import folded_letters, read_words, stem
from nous_online.language.pairs.wordings import subject_words
from nous_online.language.writing.phrases import NO_SUBJECT, UNANCHORED, VERBS
from nous_online.language.writing.sentences import split, straight, unmarked

MOST_KEY_WORDS = 5
LONGEST_STATEMENT = 2_000  # characters; a longer text is a passage, whose checking would take longer than its learning
LONGEST_SCOPE = 30  # characters; a longer category or tag says no more where a statement holds

_OPENER = re.compile(
    r"(?:(?:so|well|ok|okay|also|fyi|actually|basically),\s+)?(?:please\s+)?"
    r"(?:(?:note|remember|keep in mind|be aware|it(?: is|'s) (?:important to note|worth noting)|it should be noted)"
    r"(?:\s?[:,]\s+(?:that\s)?|\sthat\s)(?=\S+\s+\S+\s+\S))?",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"(?:(?:many )?(?:thanks|thank you|thx|cheers)(?:,? (?:a lot|so much|very much|again|in advance|all|everyone))*"
    r"|please|sorry|great|ok(?:ay)?|hi|hello|bye|(?:you(?:'re| are) )?welcome|(?:i )?hope (?:this|that|it) helps"
    r"|let me know(?: what you think| if you have (?:any )?questions)?|have a (?:nice|good|great) (?:day|evening))\W*",
    re.IGNORECASE,
)
_FILLERS = frozenset({"really", "very", "actually", "basically", "simply"})
_COUNTING = frozenset({"few", "little", "lot", "bit", "couple", "number", "dozen", "hundred", "thousand", "million"})
_TAIL = re.compile(r"(?:,?\s(?:because|due to|thanks to)\b|,\swhich\b).*$")
_LIMITING = phrases("limiting")
_GOES_ON = re.compile(r"[,.;:!?…]\s|[。！？]")  # noqa: RUF001 — full-width marks end sentences too
_LEANING = frozenset(
    "is are was were am be been being only just mainly mostly partly largely simply probably perhaps possibly".split()  # noqa: SIM905
)
"""Words that a reason can't be taken from: "it was due to the disk"."""
_LINKS = frozenset({"is", "are", "am"})
_SPOKEN = frozenset({"he", "she", "it", "they", "i"})
_OWNERS = frozenset({"my", "our", "his", "her", "their", "its"})
_NO_KEY = (FUNCTION_WORDS | NO_SUBJECT | UNANCHORED | NEGATORS) - _OWNERS
_INSIDE = frozenset({"of", "for", "in", "on", "at", "to", "and", "from", "by", "with"}) | _OWNERS
_EDGE = ".,;:!? "


@lru_cache(maxsize=16_384)
def shortest_sentence(text: str) -> str:
    """Return a statement without courtesies and fillers; all it says besides them stays.

    A text of more than 2,000 characters is returned as it is.
    """
    if len(text) > LONGEST_STATEMENT:
        return text
    plain = unmarked(" ".join(text.split())) or text
    wordings = dict.fromkeys((_plainer(plain), plain))
    return next((each for each in wordings if keeps(_unopened(plain), each)), text)


def byte_count(text: str) -> int:
    """Return the bytes of a text in UTF-8: which of two wordings is the shorter one is the same for every model."""
    return len(text.encode("utf-8", "surrogatepass"))


def keeps(text: str, shorter: str) -> bool:
    """Tell whether a shorter wording states every number, date, name and identifier of a text, denies what it denies,
    and is no longer."""
    if not shorter.strip() or byte_count(shorter) > byte_count(text):
        return False
    return shorter == text or not (added(shorter, text) or differences(text, shorter))


def _plainer(text: str) -> str:
    """Return a text without its opening courtesy and words that only stress; "not really" and "very much" stay."""
    words = _unopened(text).split()
    around = zip(["", *words], words, [*words[1:], ""], strict=False)
    kept = [
        word for before, word, after in around if word not in _FILLERS or _denies(before) or after.startswith("much")
    ]
    return _like(text, " ".join(kept))


def _denies(word: str) -> bool:
    lower = straight(word.lower()).strip(_EDGE)
    return lower in NEGATORS or lower.endswith("n't")


def _without_reason(line: str) -> str:
    """Return a line without the reason it ends with; whole where more follows, or where the reason is what it denies.

    "We did not leave because of the cost" does not say that nobody left.
    """
    tail = _TAIL.search(line)
    words = line[: tail.start()].split() if tail else []
    if not tail or not words or words[-1].lower() in _LEANING or words[-1].endswith(":") or any(map(_denies, words)):
        return line
    goes_on = _GOES_ON.search(tail[0].lstrip(", ")) or _LIMITING.search(tail[0])
    return line if goes_on else " ".join(words)


def _unopened(text: str) -> str:
    """Return a text without its courtesies, "Please note that" and "Thanks!", which could pass for names."""
    sentences = list(split(text))
    told = [each for each in sentences if not _COURTESY.fullmatch(straight(each))]
    rest = " ".join(told) if told and told != sentences else text
    return _like(rest, _OPENER.sub("", rest, count=1)) or text


def _like(text: str, rest: str) -> str:
    """Return the rest of a text with a capital first letter where the text has one."""
    return rest[:1].upper() + rest[1:] if text[:1].isupper() else rest


@lru_cache(maxsize=16_384)
def fact_line(text: str, subject: str | None = None, scope: str | None = None) -> str:
    """Return a statement as one line, no longer than it: `key: value (scope)` where it can be taken apart.

    The key is the subject or what the statement opens with; the value is the rest without what the key says.
    """
    whole = with_subject(_unopened(text), subject)
    statement = with_subject(shortest_sentence(text), subject)
    if len(text) > LONGEST_STATEMENT:
        return with_subject(text, subject)
    terse = terser(statement)
    wordings = [each for keyed in (_about(terse, subject), _keyed(terse)) for each in (_without_reason(keyed), keyed)]
    scoped = [f"{each} ({scope})" for each in wordings if scope and not says(each, scope)]
    return shortest_kept(statement, dict.fromkeys((*scoped, *wordings, terse)), whole=whole)


def terse_line(text: str) -> str:
    """Return a statement without courtesies, fillers, articles and the reason it ends with."""
    statement = shortest_sentence(text)
    if len(text) > LONGEST_STATEMENT:
        return text
    terse = terser(statement)
    return shortest_kept(statement, (_without_reason(terse), terse), whole=_unopened(text))


def shortest_kept(statement: str, wordings: Iterable[str], *, whole: str) -> str:
    """Return the first wording that is no longer than `statement` and keeps what `whole` states; else `statement`."""
    return next(
        (each for each in wordings if byte_count(each) <= byte_count(statement) and keeps(whole, each)), statement
    )


def with_subject(text: str, subject: str | None) -> str:
    """Return a statement with its subject before it where it does not name it itself."""
    if not subject or subject.casefold() in text.casefold():
        return text
    about = {stem(word) for word in subject_words(subject)}
    return f"{subject}: {text}" if about - {stem(word) for word in read_words(text).words} else text


def key_of(line: str) -> str | None:
    """Return the key a line opens with, None where it has none."""
    key, colon, value = line.partition(": ")
    return key if colon and value.strip() and 0 < len(key.split()) <= MOST_KEY_WORDS else None


def says(text: str, phrase: str) -> bool:
    """Tell whether a text holds all the letters of a phrase, in their order and side by side."""
    return folded_letters(phrase) in folded_letters(text)


def terser(statement: str) -> str:
    """Return a statement without articles and its final full stop; "a few" and "an hour" keep theirs."""
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
    """Return a terse statement as `key: value`, or as it is where no key can be told."""
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
    """Return a statement that names its subject later as `subject: rest`; as it is where the rest would be torn."""
    phrase, words = terser(subject or "").split(), terse.split()
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
    """Yield the places of the verbs a statement can be parted before, as long as what it opens with can be a key."""
    if words[0].lower() in _NO_KEY:
        return
    for place in range(1, min(len(words) - 1, MOST_KEY_WORDS + 1)):
        before, word = words[place - 1], words[place]
        if before[-1] in ",;:.!?" or before.lower() in _NO_KEY - _INSIDE:
            return
        if _is_verb(word, words[place + 1]) and before.lower() not in _INSIDE and not straight(before).endswith("'s"):
            yield place


def _is_verb(word: str, follower: str) -> bool:
    """Tell whether a word can only be the verb: a past form only before what it is about, as in "moved to Rome"."""
    if not word.islower() or not VERBS.fullmatch(straight(word)):
        return False
    is_plain = follower.islower() and follower not in FUNCTION_WORDS
    return not (word.endswith("ed") and is_plain)
