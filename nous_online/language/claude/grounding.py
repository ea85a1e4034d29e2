"""Whether what a model wrote stands on what it was shown: quotations word for word, every name, number and date."""
# ruff: noqa: RUF001 — typographic quotes are what is straightened

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from nous_online.language.lexicon import FUNCTION_WORDS, word_list
from nous_online.language.pairs.guards import negations, same_date, same_number
from nous_online.language.pairs.reading import Date, Number, Reading, clock, read, stem, unmatched_times
from nous_online.language.writing.lexrank import OPENERS, content_words, word_count
from nous_online.language.writing.sentences import sentences_of, split

LEAST_QUOTE = 3  # words; "Yes, please." is evidence of anything.
LEAST_SHARED = 0.3
"""Share of a statement's content words that its evidence has: the rest may be names in place of pronouns."""
MOST_UNTOLD = 2
"""Words of a fact that stand nowhere in the record; of 363 that people drew from public dialogues 89 % have no more."""
LEAST_ALIKE = 0.6  # share of a sentence's content words that another has which is taken to speak of the same

ADVERBS = OPENERS | word_list("adverbs")  # words that open a sentence before a name and are none: "Meanwhile Orla …"

_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"'})
_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"[^\W\d_][\w'’]*")
_OPENING = (":", ";", '"', "—", "–")
_MARKS = re.compile(r"[.,:]")
_VALUE = re.compile(r"\d{1,300}(?:\.\d+)?")
_POSSESSIVE = re.compile(r"['’](?:s|S)?$")


@dataclass(frozen=True)
class Said:
    """What one sentence is about, and whether it denies it."""

    stems: frozenset[str]
    is_denied: bool


@dataclass(frozen=True)
class GroundingText:
    """A text that others are drawn from, with its words in small letters and its figures taken apart."""

    text: str
    words: frozenset[str]
    numbers: tuple[Number, ...]
    values: frozenset[float]
    dates: tuple[Date, ...]
    times: frozenset[int]
    identifiers: frozenset[str]
    said: tuple[Said, ...]


def source_of(*texts: str) -> GroundingText:
    """Return what can be drawn from texts, read as they stand and as a draft is: squeezed, then cut into sentences."""
    whole = squeezed("\n".join(texts))
    told_by = [sentence for text in texts for sentence in sentences_of(text)]  # in pieces short enough to be read whole
    pieced = [read(each) for sentence in told_by for each in (sentence.text, sentence.speaker) if each]
    readings = [*pieced, *map(read, split(whole))]
    numbers = tuple(dict.fromkeys(number for reading in readings for number in reading.numbers))
    dates = tuple(dict.fromkeys(date for reading in readings for date in reading.dates))
    told = {number.bare for number in numbers} | {float(each) for reading in readings for each in reading.ordinals}
    parts = {float(part) for date in dates for part in (date.year, date.month, date.day) if part}
    return GroundingText(
        text=whole,
        words=frozenset(map(bare, _WORD.findall(whole))),
        numbers=numbers,
        values=frozenset(told | parts | set(values_in(whole))),
        dates=dates,
        times=frozenset[int]().union(*(reading.times for reading in readings)),
        identifiers=frozenset[str]().union(*(reading.identifiers for reading in readings)),
        said=tuple(map(said_in, pieced)),
    )


def said_in(reading: Reading) -> Said:
    """Return what a sentence is about, and whether an odd number of negations turns it round."""
    return Said(content_stems(reading.text), bool(negations(reading) % 2))


def squeezed(text: str) -> str:
    """Return a text with single spaces and straight quotation marks."""
    return " ".join(text.translate(_QUOTES).split())


def bare(word: str) -> str:
    """Return a word in small letters without a possessive ending."""
    return _POSSESSIVE.sub("", word).casefold()


def values_in(text: str) -> Iterator[float]:
    """Yield the values of all runs of digits: "4,200" is 4200, and each part of "9:30" counts."""
    for run in _DIGITS.findall(text):
        parts = [run.replace(",", ""), *_MARKS.split(run)]
        yield from (float(part) for part in parts if _VALUE.fullmatch(part))


def is_quoted(quote: str, source: GroundingText) -> bool:
    """Tell whether a quotation of three words or more stands in the source, but for white space and quotation marks."""
    words = squeezed(quote)
    return word_count(words) >= min(LEAST_QUOTE, word_count(source.text)) and words in source.text


def invented(text: str, source: GroundingText) -> tuple[str, ...]:
    """Return the names, numbers, dates and times of a text that its source has not, as they stand in the text.

    Of the summaries people wrote of 500 public dialogues 97 % have none.
    """
    found: list[str] = []
    for sentence in split(squeezed(text)):
        reading = read(sentence)
        found += [name for name in names_in(sentence, reading) if bare(name) not in source.words]
        found += sorted(each for each in reading.identifiers - source.identifiers if each not in source.text.lower())
        found += figures_beyond(sentence, reading, source)
    return tuple(dict.fromkeys(found))


def names_in(sentence: str, reading: Reading) -> Iterator[str]:
    """Yield the words with a capital letter; one that opens a clause only when it can be nothing but a name."""
    for match in _WORD.finditer(sentence):
        word = match.group()
        before = sentence[: match.start()].rstrip(" '(")
        opens = word[0].isupper() and (not before or before.endswith(_OPENING))
        is_name = word in reading.names and bare(word) not in ADVERBS if opens else bare(word) not in FUNCTION_WORDS
        if word != word.lower() and is_name:
            yield word


def figures_beyond(sentence: str, reading: Reading, source: GroundingText) -> Iterator[str]:
    """Yield the numbers, dates and times of a sentence that its source does not state."""
    yield from (run for run in _DIGITS.findall(sentence) if not source.values.issuperset(values_in(run)))
    yield from (number.shown for number in reading.numbers if not is_stated(number, source))
    yield from (str(date) for date in reading.dates if not any(same_date(date, other) for other in source.dates))
    yield from (clock(each) for each in sorted(unmatched_times(reading.times, source.times)))


def is_stated(number: Number, source: GroundingText) -> bool:
    """Tell whether a source states a number, in its unit where the number has one."""
    if any(same_number(number, other) for other in source.numbers):
        return True
    return number.dimension is None and number.bare in source.values


def turned_round(text: str, source: GroundingText) -> tuple[str, ...]:
    """Return the sentences of a text that deny what every like sentence of its source says, or say what those deny.

    Of 339 sentences in summaries people wrote of public dialogues that is 1 %.
    """

    def is_turned(own: Said) -> bool:
        alike = [said for said in source.said if len(own.stems & said.stems) >= LEAST_ALIKE * max(1, len(own.stems))]
        return bool(alike) and all(said.is_denied != own.is_denied for said in alike)

    return tuple(sentence for sentence in split(squeezed(text)) if is_turned(said_in(read(sentence))))


def is_told(statement: str, source: GroundingText) -> bool:
    """Tell whether but two of a statement's content words stand in the source; scripts without spaces are let pass."""
    known = frozenset[str]().union(*(said.stems for said in source.said))
    own = {part for word in content_words(statement) if word_count(word) == 1 for part in parts_of(word)}
    return len(own - known) <= MOST_UNTOLD


def follows(statement: str, evidence: str) -> bool:
    """Tell whether a statement may be drawn from its evidence, or from one sentence of it.

    That has the same words, the same figures, and denies as much. Of 1,210 observations people and models drew from
    public dialogues 83 % follow from the turn they name, and 0.2 % from one taken at random.
    """
    reading = read(statement)
    has_figures = bool(reading.numbers or reading.dates or reading.times or _DIGITS.search(statement))

    def follows_from(sentence: str) -> bool:
        is_denied_alike = negations(reading) % 2 == negations(read(sentence)) % 2
        if not is_denied_alike or not is_about(statement, sentence):
            return False
        return not has_figures or not any(figures_beyond(statement, reading, source_of(sentence)))

    return any(map(follows_from, dict.fromkeys((evidence, *split(squeezed(evidence))))))


def is_about(statement: str, evidence: str) -> bool:
    """Tell whether evidence speaks of what a statement speaks of; one that speaks of nothing has none."""
    own = content_stems(statement)
    return bool(own) and len(own & content_stems(evidence)) >= LEAST_SHARED * len(own)


def content_stems(text: str) -> frozenset[str]:
    """Return what a text is about: the stems of its content words, pairs of letters in a script without spaces."""
    return frozenset(part for word in content_words(text) for part in parts_of(word))


def parts_of(word: str) -> Iterable[str]:
    """Return the stem of a word, or the pairs of its letters where words are not told apart by spaces."""
    return (stem(word),) if word_count(word) == 1 else map("".join, pairwise(word))
