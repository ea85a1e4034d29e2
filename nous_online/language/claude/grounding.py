"""Checks a model's text against its source: quotations word for word, and every name, number and date."""
# ruff: noqa: RUF001 — typographic quotes are what is straightened

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from nous_online.core.patterns import regex
from nous_online.language.lexicon import FUNCTION_WORDS, word_list
from nous_online.language.pairs.guards import negations, same_date, same_number
from nous_online.language.pairs.reading import Date, Number, Reading, clock, read, stem, unmatched_times
from nous_online.language.writing.lexrank import OPENERS, content_words, word_count
from nous_online.language.writing.sentences import sentences_of, split_sentences

LEAST_QUOTE = 3  # words; "Yes, please." would be evidence of anything
LEAST_SHARED = 0.3
"""Share of a statement's content words that its evidence must have; the others may be names in place of pronouns."""
MOST_UNTOLD = 2
"""Words of a fact that may be missing in the record; 89 % of 363 facts people drew from dialogues have no more."""
LEAST_ALIKE = 0.6  # share of a sentence's content words from which another sentence is about the same

ADVERBS = OPENERS | word_list("adverbs")  # capitalised first words that are no names: "Meanwhile Orla …"

_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"'})
_DIGITS = regex(r"\d+(?:[.,:]\d+)*")
_WORD = regex(r"[^\W\d_][\w'’]*")
_OPENING = (":", ";", '"', "—", "–")
_MARKS = regex(r"[.,:]")
_VALUE = regex(r"\d{1,300}(?:\.\d+)?")
_POSSESSIVE = regex(r"['’](?:s|S)?$")


@dataclass(frozen=True)
class SentenceClaim:
    """The content stems of one sentence, and whether it is negated."""

    stems: frozenset[str]
    is_denied: bool


@dataclass(frozen=True)
class GroundingText:
    """A source text with its words in lower case and its figures parsed."""

    text: str
    words: frozenset[str]
    numbers: tuple[Number, ...]
    values: frozenset[float]
    dates: tuple[Date, ...]
    times: frozenset[int]
    identifiers: frozenset[str]
    said: tuple[SentenceClaim, ...]


def source_of(*texts: str) -> GroundingText:
    """Return texts as one source, parsed twice: by the sentences of a transcript, and split as a draft is."""
    whole = single_spaced("\n".join(texts))
    sentences = [sentence for text in texts for sentence in sentences_of(text)]
    pieced = [read(each) for sentence in sentences for each in (sentence.text, sentence.speaker) if each]
    readings = [*pieced, *map(read, split_sentences(whole))]
    numbers = tuple(dict.fromkeys(number for reading in readings for number in reading.numbers))
    dates = tuple(dict.fromkeys(date for reading in readings for date in reading.dates))
    counts = {number.bare for number in numbers} | {float(each) for reading in readings for each in reading.ordinals}
    parts = {float(part) for date in dates for part in (date.year, date.month, date.day) if part}
    return GroundingText(
        text=whole,
        words=frozenset(map(bare_word, _WORD.findall(whole))),
        numbers=numbers,
        values=frozenset(counts | parts | set(values_in(whole))),
        dates=dates,
        times=frozenset[int]().union(*(reading.times for reading in readings)),
        identifiers=frozenset[str]().union(*(reading.identifiers for reading in readings)),
        said=tuple(map(sentence_claim, pieced)),
    )


def sentence_claim(reading: Reading) -> SentenceClaim:
    """Return the content stems of a sentence, and whether it has an odd number of negations."""
    return SentenceClaim(content_stems(reading.text), bool(negations(reading) % 2))


def single_spaced(text: str) -> str:
    """Return a text with single spaces and straight quotation marks."""
    return " ".join(text.translate(_QUOTES).split())


def bare_word(word: str) -> str:
    """Return a word in lower case without a possessive ending."""
    return _POSSESSIVE.sub("", word).casefold()


def values_in(text: str) -> Iterator[float]:
    """Yield the values of all digits: "4,200" is 4200, and each part of "9:30" counts."""
    for run in _DIGITS.findall(text):
        parts = [run.replace(",", ""), *_MARKS.split(run)]
        yield from (float(part) for part in parts if _VALUE.fullmatch(part))


def is_quoted(quote: str, source: GroundingText) -> bool:
    """Tell whether the source holds a quotation of three or more words, in any white space and quotation marks."""
    words = single_spaced(quote)
    return word_count(words) >= min(LEAST_QUOTE, word_count(source.text)) and words in source.text


def invented_details(text: str, source: GroundingText) -> tuple[str, ...]:
    """Return the names, numbers, dates and times of a text that its source does not have.

    Of 500 summaries of public dialogues by people 97 % have none.
    """
    found: list[str] = []
    for sentence in split_sentences(single_spaced(text)):
        reading = read(sentence)
        found += [name for name in names_in(sentence, reading) if bare_word(name) not in source.words]
        found += sorted(each for each in reading.identifiers - source.identifiers if each not in source.text.lower())
        found += figures_beyond(sentence, reading, source)
    return tuple(dict.fromkeys(found))


def names_in(sentence: str, reading: Reading) -> Iterator[str]:
    """Yield the capitalised words; the first word of a clause only where it can only be a name."""
    for match in _WORD.finditer(sentence):
        word = match.group()
        before = sentence[: match.start()].rstrip(" '(")
        opens = word[0].isupper() and (not before or before.endswith(_OPENING))
        is_name = (
            word in reading.names and bare_word(word) not in ADVERBS if opens else bare_word(word) not in FUNCTION_WORDS
        )
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


def reversed_sentences(text: str, source: GroundingText) -> tuple[str, ...]:
    """Return the sentences of a text that are negated where every similar sentence of the source is not, or vice versa.

    Of 339 sentences in summaries of public dialogues by people that is 1 %.
    """

    def is_turned(own: SentenceClaim) -> bool:
        alike = [said for said in source.said if len(own.stems & said.stems) >= LEAST_ALIKE * max(1, len(own.stems))]
        return bool(alike) and all(said.is_denied != own.is_denied for said in alike)

    return tuple(
        sentence for sentence in split_sentences(single_spaced(text)) if is_turned(sentence_claim(read(sentence)))
    )


def is_mostly_stated(statement: str, source: GroundingText) -> bool:
    """Tell whether the source has all but two of a statement's content words; scripts without spaces always pass."""
    known = frozenset[str]().union(*(said.stems for said in source.said))
    own = {part for word in content_words(statement) if word_count(word) == 1 for part in parts_of(word)}
    return len(own - known) <= MOST_UNTOLD


def follows(statement: str, evidence: str) -> bool:
    """Tell whether a statement follows from its evidence or one sentence of it: shared words, figures and negation.

    Of 1,210 observations that people and models drew from public dialogues 83 % follow from the turn they name, and
    0.2 % from a random one.
    """
    reading = read(statement)
    has_figures = bool(reading.numbers or reading.dates or reading.times or _DIGITS.search(statement))

    def follows_from(sentence: str) -> bool:
        is_denied_alike = negations(reading) % 2 == negations(read(sentence)) % 2
        if not is_denied_alike or not is_about(statement, sentence):
            return False
        return not has_figures or not any(figures_beyond(statement, reading, source_of(sentence)))

    return any(map(follows_from, dict.fromkeys((evidence, *split_sentences(single_spaced(evidence))))))


def is_about(statement: str, evidence: str) -> bool:
    """Tell whether evidence shares enough content words with a statement; never for one without content words."""
    own = content_stems(statement)
    return bool(own) and len(own & content_stems(evidence)) >= LEAST_SHARED * len(own)


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's content words, or pairs of letters in a script without spaces."""
    return frozenset(part for word in content_words(text) for part in parts_of(word))


def parts_of(word: str) -> Iterable[str]:
    """Return the stem of a word, or the pairs of its letters in a script without spaces."""
    return (stem(word),) if word_count(word) == 1 else map("".join, pairwise(word))
