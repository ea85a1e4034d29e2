"""Puts right what a user of an assistant takes back soon after: "My flight leaves at nine", then "sorry, at ten"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from nous_online.core.patterns import regex
from nous_online.language.lexicon import COURTESY, NUMBER_WORDS, TAKING_BACK, word_list
from nous_online.language.writing.chats import (
    CLAUSE,
    FAR,
    ITS,
    NEVER_SUBJECT,
    PERSONS,
    is_asking,
    is_question,
    name_at_first,
    opening,
    told_before,
    told_stems,
)
from nous_online.language.writing.dates import MONTH_NAME, WEEKDAY_NAME, with_full_dates
from nous_online.language.writing.lexrank import capitalised, is_note
from nous_online.language.writing.matters import opens_clause
from nous_online.language.writing.points import is_statement
from nous_online.language.writing.sentences import CLOSING, ENDINGS, Sentence, straighten_apostrophes

_WORDED = "|".join(sorted(NUMBER_WORDS.keys() | word_list("foreign_numbers")))
_MONTH = rf"(?!(?-i:may|march|mars|mar|jan|dec)\b){MONTH_NAME}\b"
_TITLE = r"(?-i:Dr|Mr|Mrs|Ms|Miss|Prof|Herr|Frau|Mme|Señora?)\.?\s"
_CAPITAL = r"(?-i:[A-ZÀ-ÖØ-Þ])[\w-]{1,30}"
_VALUE = regex(
    rf"\b(?:(?P<date>\d{{1,2}}(?:st|nd|rd|th|er|\.)?\s(?:of\s|de\s)?{_MONTH}|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?)"
    rf"|(?P<month>{_MONTH})|(?P<weekday>{WEEKDAY_NAME}\b)"
    r"|(?P<time>\d{1,2}(?:[:.]\d\d(?:\s?[ap]m)?|\s?[ap]m|h\d\d|h|\s(?:uhr|o'clock))|noon|midnight"
    r"|(?:half past|quarter (?:past|to)|halb|viertel (?:vor|nach))\s\w{1,10})"
    rf"|(?P<year>(?:19|20)\d\d)|(?P<number>\d{{1,15}}(?:[.,]\d{{1,15}}){{0,3}}|(?:{_WORDED}))"
    rf"|(?P<name>(?:{_TITLE})?{_CAPITAL}(?:\s{_CAPITAL}){{0,3}}))(?![\w-])",
    re.IGNORECASE,
)
"""What a correction may put another in the place of: both are of one kind."""
_DENIED = regex(r"(?:\A|,?\s)(?:(?:and|und|et|y) )?(?:not|nicht|pas|no)\s(?:[^\W\d_]{1,5}\s){0,2}?\Z", re.IGNORECASE)
"""Stands before the value that is taken back: "Thursday, not on Friday"."""
_NOUN = regex(
    r"(?:the|an?|my|our|his|her|at|on|in|by|from|der|die|das|den|dem|eine?[nmr]?|am|im|um|les?|la|l'|une?|à|au|el|los|las"
    r"|en|del?|not|nicht|pas)\b(?!.{0,40}\bones?\b)",
    re.IGNORECASE,
)
"""Opens a thing, a place or a time, or denies it."""
_TAKES_NOTHING_BACK = regex(
    r"\b(?:now|any ?more|no longer|jetzt|inzwischen|maintenant|ahora"
    r"|also|too|as well|another|other|auch|ander(?:e[mnrs]?)|aussi|autres?|también|otr[oa]s?)\b",
    re.IGNORECASE,
)
"""Tells that something has changed since, or comes on top."""
_BARELY = frozenset(
    {"is", "was", "are", "it's", "that's", "its", "ist", "war", "sind", "est", "était", "es", "era", "son"}
)
"""What may stand before a number that is told without anything of what it counts or when it is: "he is 4"."""


class _Value(NamedTuple):
    """A value in a text, where it stands, and the words beside it."""

    kind: str
    text: str
    start: int
    end: int
    beside: frozenset[str]


class _Correction(NamedTuple):
    """What a sentence, or its first clause, takes back: how surely, in which words, by which values and denials."""

    is_whole: bool
    is_sure: bool
    is_mild: bool
    text: str
    told: tuple[_Value, ...]
    denied: frozenset[str]
    rest: frozenset[str]


class _Righted(NamedTuple):
    """What is so, and the indexes of the first and the last statement it stands in the place of."""

    first: int
    last: int
    sentence: Sentence


def corrected(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences of a chat, with what is so in place of what its user takes back.

    It is one value instead of another of its kind, or both sentences in order where it is not certain which one it is.
    """
    told = list(sentences)
    place = 0
    while place < len(told):
        righted = next(filter(None, (_righted(told, place, each) for each in _corrections(told[place]))), None)
        if righted is None:
            place += 1
            continue
        first, last, sentence = righted
        gone = {_key(value) for each in told[first : last + 1] for value in _values(each.text)}
        after = told[place + 1] if place + 1 < len(told) else None
        is_of_old = after and after.turn == told[place].turn and not is_question(after)
        if after and is_of_old and (gone - set(_words(sentence.text))).intersection(_words(after.text)):
            sentence = replace(sentence, text=f"{_closed(sentence.text)} {after.text}")  # "Albrecht was last year's."
            del told[place + 1]
        del told[place]
        told[first : last + 1] = [sentence]
        place -= last - first
    return told


def _corrections(sentence: Sentence) -> Iterator[_Correction]:
    """Yield what a user's sentence takes back by its words, and by its first clause; none without a mark of it."""
    text = straighten_apostrophes(sentence.text)
    mark = TAKING_BACK.match(text)
    if mark is None or not is_asking(sentence) or is_question(sentence) or _TAKES_NOTHING_BACK.search(text):
        return
    first = CLAUSE.split(text[mark.end() :], maxsplit=1)[0]
    for end in dict.fromkeys((len(text), mark.end() + len(first))):
        if end > mark.end() and not COURTESY.fullmatch(text[mark.end() : end]):
            yield _correction(text[:end], mark, is_whole=end == len(text))


def _correction(text: str, mark: re.Match[str], *, is_whole: bool) -> _Correction:
    """Return what stands behind the mark: the values that are so, those that are not, and the stems of the rest."""
    marked = {*_words(mark[0])}
    values = [each._replace(beside=each.beside - marked) for each in _values(text) if each.start >= mark.end()]
    denials = {each: match for each in values if (match := _DENIED.search(text[mark.end() : each.start]))}
    rest = text
    for value in reversed(values):
        start = mark.end() + denials[value].start() if value in denials else value.start
        rest = f"{rest[:start]} {rest[value.end :]}"
    return _Correction(
        is_whole=is_whole,
        is_sure=mark["sure"] is not None,
        is_mild=mark["mild"] is not None,
        text=text[mark.end() :],
        told=tuple(value for value in values if value not in denials),
        denied=frozenset(_key(value) for value in denials),
        rest=told_stems(rest[mark.end() :]),
    )


def _righted(sentences: Sequence[Sentence], place: int, found: _Correction) -> _Righted | None:
    """Return what is so instead of what a sentence takes back, None where it may take back nothing of the user's."""
    own, last = told_before(sentences, place)
    near = [each for each in own or last if is_statement(each)]
    is_restated = bool(found.denied or found.rest)
    if not near or not (is_restated or found.is_sure or _may_be_own(sentences, place, near[-1], found)):
        return None
    is_named = found.denied or (found.rest and opening(found.text) not in PERSONS | {"it", "it's", "es", "il"})
    told = [each for each in sentences[max(0, place - FAR) : place] if is_asking(each) and is_statement(each)]
    fitting = [
        (each, text)
        for each in (told if is_named else near)
        if found.told and found.rest <= told_stems(each.text) and (text := _with_values(each.text, found))
    ]
    if fitting and found.is_whole and (is_restated or len(fitting) == 1):
        each, text = fitting[-1]
        at = _index(sentences, each)
        return _Righted(at, at, replace(each, text=text))
    return _both(sentences, place, [each for each, _ in fitting] or near[-1:], found)


def _may_be_own(sentences: Sequence[Sentence], place: int, own: Sentence, found: _Correction) -> bool:
    """Tell whether a bare value may correct the user's own words: no answer, and nobody else named another value."""
    between = sentences[_index(sentences, own) + 1 : place]
    others = [value for each in between if not is_asking(each) for value in _values(each.text)]
    kinds, known = {value.kind for value in found.told}, set(_words(own.text))
    return not _is_answer(sentences, place) and all(value.kind not in kinds or _key(value) in known for value in others)


def _with_values(text: str, found: _Correction) -> str | None:
    """Return a statement with the told values in place of its own, None where one has no certain place in it."""
    old = _values(straighten_apostrophes(text))
    known = {_key(each) for each in old}
    new = [each for each in found.told if _key(each) not in known]
    spots = {spot: each for each in new if (spot := _spot(each, old, found.denied))}
    is_certain = len(spots) == len(new) and len({each.kind for each in found.told}) == len(found.told)
    # "The meeting with Tom is on Friday" may be another meeting.
    is_certain &= not found.rest or len(new) <= max(1, len(found.denied))
    if not spots or not is_certain or not found.denied <= known:
        return None
    for spot in sorted(spots, key=lambda each: -each.start):
        value = spots[spot].text if spot.start else capitalised(spots[spot].text)
        text = f"{text[: spot.start]}{value}{text[spot.end :]}"
    return text


def _spot(new: _Value, old: Sequence[_Value], denied: frozenset[str]) -> _Value | None:
    """Return the one value of a statement that another takes the place of: denied, between the same words, or alone.

    A number alone takes the place only of what it may count: "at 8" is no other value of "5 mg".
    """
    alike = [each for each in old if each.kind == new.kind]
    may_be_alone = new.kind != "number" or new.beside <= _BARELY
    for chosen, is_enough in (([each for each in alike if _key(each) in denied], True), (alike, may_be_alone)):
        beside = [each for each in chosen if each.beside & new.beside]
        if len(beside) == 1 or (len(chosen) == 1 and is_enough):
            return (beside or chosen)[0]
    return None


def _both(sentences: Sequence[Sentence], place: int, taken: Sequence[Sentence], found: _Correction) -> _Righted | None:
    """Return what is taken back and the sentence that does so as one, None where it may be about something else."""
    own = {value.kind for each in taken for value in _values(each.text)}
    is_alike = bool(found.told) and {value.kind for value in found.told} <= own
    is_same = found.rest <= frozenset[str]().union(*(told_stems(each.text) for each in taken))
    is_meant = found.is_sure or (found.is_mild and not _is_answer(sentences, place))
    if not ((is_meant and _names_thing(found)) or (is_alike and is_same)):
        return None
    first, last = _index(sentences, taken[0]), _index(sentences, taken[-1])
    if sentences[first].turn != sentences[last].turn:
        first = last
    *whole, correction = [
        with_full_dates(each.text, each.day) for each in [*sentences[first : last + 1], sentences[place]]
    ]
    text = " ".join([*map(_closed, whole), capitalised(correction)])
    return _Righted(first, last, replace(sentences[last], text=text, day=None))


def _names_thing(found: _Correction) -> bool:
    """Tell whether a correction names but a thing, a place or a time: "the violin", "it's in the evening"."""
    said = (found.text[its.end() :] if (its := ITS.match(found.text)) else found.text).replace("'s", "")
    is_clause = opens_clause(said) or not is_note(said)
    return not is_clause and bool(found.told or _NOUN.match(said))


def _is_answer(sentences: Sequence[Sentence], place: int) -> bool:
    before = sentences[place - 1]
    return not is_asking(before) and is_question(before)


def _index(sentences: Sequence[Sentence], sentence: Sentence) -> int:
    return next(place for place, each in enumerate(sentences) if each is sentence)


def _values(text: str) -> list[_Value]:
    """Return the values in a text in order; a word with a capital that only opens it is none."""
    found: list[_Value] = []
    ends = [match.end() for match in _VALUE.finditer(text)]
    for match, before in zip(_VALUE.finditer(text), [0, *ends], strict=False):
        start, kind = match.start(), str(match.lastgroup)
        while kind == "name" and (word := text[start : match.end()].partition(" ")[0]).casefold() in NEVER_SUBJECT:
            start += len(word) + 1
        is_opening = start == 0 and kind == "name" and " " not in match[0] and not name_at_first(text)
        if start < match.end() and not is_opening:
            beside = {*_words(text[before:start])[-1:], *_words(text[match.end() :])[:1]}
            found.append(_Value(kind, text[start : match.end()], start, match.end(), frozenset(beside)))
    return found


def _key(value: _Value) -> str:
    """Return what tells a value from others of its kind: of a name its last word, "Mrs Albers" is Albers."""
    text = value.text.casefold()
    return text.rpartition(" ")[2] if value.kind == "name" else text


def _words(text: str) -> list[str]:
    words = (word.strip(".,;:!?").removesuffix("'s") for word in straighten_apostrophes(text).casefold().split())
    return [word for word in words if word]


def _closed(text: str) -> str:
    return text if text.rstrip(CLOSING).endswith(ENDINGS) else f"{text}."
