"""Guards: reasons why two statements can't be duplicates, however close their vectors. Pure.

A cosine hardly changes with a changed value; guards see it. Each compares one kind of content and returns its reasons
in words. No guard ever says that two statements *are* the same.
"""
# ruff: noqa: PLR2004 — word lengths and edit budgets are read best in place

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import takewhile

from nous_online.language.lexicon import (
    ARTICLES,
    COPULAS,
    DATED,
    FUNCTION_WORDS,
    LIKING,
    MONTHS,
    NEGATORS,
    OPPOSITES,
    RIVALS,
    groups,
    is_english,
    tables,
    word_list,
)
from nous_online.language.pairs.figures import NUMERALS
from nous_online.language.pairs.reading import (
    NOON,
    Date,
    Number,
    Reading,
    StatementWords,
    clock,
    folded_letters,
    normalise,
    read,
    read_words,
    stem,
    unmatched_times,
)

Guard = Callable[[Reading, Reading], Iterable[str]]
EMPTY_SET: frozenset[str] = frozenset()
IMPLYING: dict[tuple[bool, float], frozenset[str]] = {
    (False, 1): frozenset({"one", "a", "an", "single"}),
    (False, 2): frozenset({"both", "either", "pair", "couple", "twice", "twin", "twins"}),
    (False, 3): frozenset({"trio", "triple"}),
    (True, 50): frozenset({"half", "halves"}),
}
"""Words that may stand for a number, by whether it is of percent; "one" and "a" may, and need not."""
VOWELS = frozenset("aeiouyáéíóúäöüæøå")
HOURS_OF_CLOCK = frozenset(map(float, range(1, 13)))
PRONOUN = frozenset({"I"})  # "Trask I" and "What I said": by itself it may be the pronoun, so it counts for nothing
NOTHING = "none"  # stands in a reason for a statement without any number, date and so on
VALUE = "value"  # prefix of the reason for two values of one kind
PLACING = frozenset({"in", "on", "at"})
CHANGED_TO = re.compile(
    r"\b(?:(?:mov|switch|chang|rais|bump|swapp|migrat|upgrad|downgrad|increas|decreas|dropp|reduc|renam|convert|shift"
    r"|transferr|extend|shorten|relocat)(?:ed|ing|e)|went|gone|goes|rose|risen|fell|fallen|grew|cut)\b[^,.;!?]{0,40}?"
    r" from ((?:[^,.;!?]|\.\d){1,40}?) (?:over )?to ((?:[^,.;!?]|\.\d){1,40})",
    re.IGNORECASE,
)
"""What something changed from and to."""
COURTESIES = frozenset({"please", "kindly", "remember", "note", "reminder"})
DETERMINERS, SYMMETRIC = word_list("determiners"), word_list("symmetric")
QUASI_NEGATORS, NEGATORS_BEFORE_VERBS = word_list("quasi_negators"), word_list("negators_before_verbs")
RAISED = frozenset(map(stem, word_list("raising_verbs")))
DEMONYM_ENDS = word_list("demonym_ends")
PLACE_ENDS = frozenset(["", "y", "ey", "o", "a", "e", "ia", "s", "land"])
VALUES = (*RIVALS, *groups("degrees"))
RIVAL_SPELLINGS: dict[str, str] = tables()["spellings"]
PAIRED_WORDS = frozenset[str]().union({word for pair in OPPOSITES for word in pair}, *VALUES, RIVAL_SPELLINGS)


def differences(a: str, b: str) -> tuple[str, ...]:
    """Return, in words, each reason why `a` and `b` can never be duplicates; empty when no guard fires.

    Numbers, dates, times, units, versions, identifiers, quoted strings, names, negation, opposites,
    rival values and exchanged roles are compared after normalising their spelling, so "8pm" equals "20:00".
    """
    if normalise(a) == normalise(b):
        return ()
    one, other = read(a), read(b)
    return tuple(reason for guard in GUARDS.values() for reason in guard(one, other))


def exact_differences(a: str, b: str) -> tuple[str, ...]:
    """Return the reasons of the guards that compare exact content, in any language, and of rival values."""
    # Rival values ("quarterly", "monthly") are nearly exact: of 819 training pairs that differ in one, 57 are the same.
    one, other = read(a), read(b)
    exact = (reason for name in EXACT for reason in GUARDS[name](one, other))
    return (*exact, *(reason for reason in _opposites(one, other) if reason.startswith(VALUE)))


def _numbers(a: Reading, b: Reading) -> Iterable[str]:
    only_a, only_b = unmatched_numbers(a, b), unmatched_numbers(b, a)
    if len(only_a) == 1 and len(only_b) == 1:
        (one,), (other,) = only_a, only_b
        if one.version or other.version:
            yield f"version {one.shown} ≠ {other.shown}"
        elif one.bare == other.bare and one.unit != other.unit:
            yield f"unit {one.unit} ≠ {other.unit}"
        else:
            yield f"number {one.shown} ≠ {other.shown}"
    elif only_a or only_b:
        yield f"number {_listed(n.shown for n in only_a)} ≠ {_listed(n.shown for n in only_b)}"


def give_two_values(a: str, b: str) -> bool:
    """Tell whether each of two statements gives a value of one kind (a number, a date, a colour, …) that differs."""
    return not all(map(gives_one_number, exact_differences(a, b)))


def gives_one_number(reason: str) -> bool:
    """Tell whether a reason is that one statement has a number and the other has none."""
    return reason.startswith(f"number {NOTHING} ≠") or (reason.startswith("number") and reason.endswith(f"≠ {NOTHING}"))


def unmatched_numbers(a: Reading, b: Reading) -> list[Number]:
    """Return the quantities of `a` that `b` has neither in figures nor in words, as a date or as an hour."""
    return [
        number
        for number in a.numbers
        if not any(same_number(number, other) for other in b.numbers)
        and IMPLYING.get((number.dimension == "share", number.bare), EMPTY_SET).isdisjoint(b.words)
        and not _is_in_words(number, b)
        and not any(number.bare in {date.year, date.day} for date in b.dates)
        and not (  # "before ten" and "until 10 a.m."
            number.dimension is None
            and number.bare in HOURS_OF_CLOCK
            and any((time - number.bare * 60) % NOON == 0 for time in b.times)
        )
    ]


def _is_in_words(number: Number, reading: Reading) -> bool:
    """Tell whether a statement in another language has a number in words: "zwei" for 2."""
    figures = format(number.bare, "g")
    is_told = any(NUMERALS.get(word.casefold()) == figures for word in reading.cased)
    return is_told and not is_english(reading.text)


def same_number(a: Number, b: Number) -> bool:
    """Tell whether two quantities may agree; a missing unit agrees with any unit of the same digits."""
    return any(_agree(one, other) for one in a.readings for other in b.readings)


def _agree(a: Number, b: Number) -> bool:
    if a.version or b.version:
        return (a.version or a.shown) == (b.version or b.shown)
    if a.dimension and b.dimension and a.dimension != b.dimension:
        return False
    if a.dimension and b.dimension:
        return abs(a.value - b.value) <= 1e-6 * max(abs(a.value), abs(b.value))
    return abs(a.bare - b.bare) <= 1e-9 * max(abs(a.bare), abs(b.bare))


def _both_differ(kind: str, missing: Callable[[Reading, Reading], Iterable[str]]) -> Guard:
    """Return the guard that fires where each statement has something of a kind that is `missing` in the other."""

    def guard(a: Reading, b: Reading) -> Iterable[str]:
        only_a, only_b = list(missing(a, b)), list(missing(b, a))
        if only_a and only_b:
            yield f"{kind} {_listed(only_a)} ≠ {_listed(only_b)}"

    return guard


def missing_dates(a: Reading, b: Reading) -> list[str]:
    """Return the dates of `a` that are none of `b`, neither whole nor by the day alone."""
    loose = {number.bare for number in b.numbers}
    return [
        str(date) for date in a.dates if date.day not in loose and not any(same_date(date, other) for other in b.dates)
    ]


def same_date(a: Date, b: Date) -> bool:
    """Tell whether two dates can be the same day: parts that both state must agree, in either order when ambiguous."""
    if a.year and b.year and a.year != b.year:
        return False
    if a.swapped or b.swapped:
        return {a.month, a.day} == {b.month, b.day}
    return all(one == other for one, other in ((a.month, b.month), (a.day, b.day)) if one and other)


def missing_identifiers(a: Reading, b: Reading) -> list[str]:
    """Return the identifiers of `a` that stand nowhere in `b`."""
    return sorted(token for token in a.identifiers if token not in b.text.lower())


def _numerals(a: Reading, b: Reading) -> Iterable[str]:
    if a.numerals != b.numerals and (a.numerals | b.numerals) != PRONOUN:
        yield f"numeral {_listed(sorted(a.numerals))} ≠ {_listed(sorted(b.numerals))}"


def _names(a: Reading, b: Reading) -> Iterable[str]:
    only_a, only_b = unmatched_names(a, b), unmatched_names(b, a)
    if only_a and only_b:
        yield f"name {' '.join(only_a)} ≠ {' '.join(only_b)}"


def added(known: str, new: str) -> tuple[str, ...]:
    """Return the dates, numbers, times, identifiers and names that `new` has and `known` has not."""
    one, other = read(known), read(new)

    def is_as_precise(date: Date, said: Date) -> bool:  # "May" is less than "May 5"
        parts = ((date.year, said.year), (date.month, said.month), (date.day, said.day))
        return same_date(date, said) and all(has for part, has in parts if part)

    dates = (str(date) for date in other.dates if not any(is_as_precise(date, said) for said in one.dates))
    said = {word.removesuffix("s") for word in one.words}  # "on Tuesday" is no more than "Tuesdays"
    days = (word for word in other.words if (day := word.removesuffix("s")) in DATED - set(MONTHS) and day not in said)
    numbers = (number.shown for number in unmatched_numbers(other, one))
    times = (clock(minutes) for minutes in sorted(unmatched_times(other.times, one.times)))
    ordinals = map(str, sorted(other.ordinals - one.ordinals))
    return tuple(
        dict.fromkeys(
            (*dates, *days, *numbers, *times, *missing_identifiers(other, one), *ordinals, *unmatched_names(other, one))
        )
    )


def says_again(earlier: str, later: str) -> str | None:
    """Return that a statement says no more than what an earlier one tells something changed to; None otherwise.

    After "Rent rose from 900 to 950 euros", "Rent is 950 euros" is no change of it.
    """
    spoken = {*read(later).words}
    if added(earlier, later) or not spoken.isdisjoint(NEGATORS):
        return None
    for change in CHANGED_TO.finditer(earlier):
        former, new = (_first_content(side) for side in change.groups())
        if new in spoken and former and former not in spoken:
            return f"it says again what the other one tells as new: {new}"
    return None


def _first_content(text: str) -> str | None:
    return next((word for word in read(text).words if word[0].isalnum() and word not in FUNCTION_WORDS), None)


def _openings(a: Reading, b: Reading) -> Iterable[str]:
    """Yield the first words where nothing else differs: "Orders are kept", "Invoices are kept" are about two things."""
    if len(a.words) < 2 or a.words[1:] != b.words[1:]:
        return
    first, other = a.words[0], b.words[0]
    if first == other or stem(first) == stem(other) or is_near_spelling(first, other) or a.terms[:1] == b.terms[:1]:
        return  # the terms are equal where one is "six" and the other "6"
    names = {name.lower() for name in (*a.names, *b.names)}  # which have a guard of their own
    if {first, other} & (FUNCTION_WORDS | COURTESIES | names) or first.endswith("ly") or other.endswith("ly"):
        return
    yield f"{first} ≠ {other}"


def _preferences(a: Reading, b: Reading) -> Iterable[str]:
    """Yield two preferences without a common word: one who prefers dark mode may prefer concise answers too."""
    liked: list[list[str]] = []
    for reading in (a, b):
        place = next((place for place, word in enumerate(reading.words) if word in LIKING), len(reading.words))
        liked.append([word for word in reading.words[place + 1 :] if word.isalnum() and word not in FUNCTION_WORDS])
    only_a, only_b = liked
    if only_a and only_b and not {stem(word) for word in only_a} & {stem(word) for word in only_b}:
        yield f"preference {' '.join(only_a[:3])} ≠ {' '.join(only_b[:3])}"


def unmatched_names(a: Reading, b: Reading) -> list[str]:
    """Return the names in `a` that no word of `b` spells, allowing plurals, slips, demonyms and initials."""
    joined = folded_letters(b.text)
    initials = "".join(name[0].lower() for name in b.names)
    acronyms = {name.lower() for name in b.names if name.isupper() and 2 <= len(name) <= 5}
    own = "".join(name[0].lower() for name in a.names)
    shortened = {acronym for acronym in acronyms if acronym in own}
    return [
        name
        for name in a.names
        if not _spelled(name.lower(), b.words, joined)
        and not (name.isupper() and len(name) > 1 and name.lower() in initials)
        and not any(name[0].lower() in acronym for acronym in shortened)
        and not any(_abbreviates(*sorted((name.lower(), other.lower()), key=len)) for other in b.names)
    ]


def _abbreviates(short: str, name: str) -> bool:
    """Tell whether a few letters are a name without its vowels: "St" and "Street", "CPH" and "Copenhagen"."""
    letters = iter(name)
    is_short = 2 <= len(short) <= 4 and len(name) >= len(short) + 2 and short[0] == name[0]
    return is_short and VOWELS.isdisjoint(short[1:]) and all(letter in letters for letter in short)


def _spelled(name: str, spoken: Sequence[str], joined: str) -> bool:
    letters = folded_letters(name)
    if letters in spoken or (len(letters) > 3 and letters.rstrip("s") in joined):
        return True

    def is_demonym(word: str) -> bool:  # the people or the adjective of a place: "Turkish", "Turkey"
        start = common_prefix(letters, word)
        ends = {letters[start:], word[start:]}
        return start >= 4 and bool(ends & DEMONYM_ENDS) and bool(ends & PLACE_ENDS)

    return any(is_near_spelling(letters, word) or is_demonym(word) for word in spoken)


def is_near_spelling(a: str, b: str) -> bool:
    """Tell whether two words are one name with a slip: equal first letter and at most one edit per five letters."""
    shortest = min(len(a), len(b))
    if shortest < 5 or a[0] != b[0] or abs(len(a) - len(b)) > 2:
        return False
    matched = sum(block.size for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())
    return max(len(a), len(b)) - matched <= shortest // 5


def _negation(a: Reading, b: Reading) -> Iterable[str]:
    if negations(a) % 2 != negations(b) % 2 or _denies(a, b) or _denies(b, a):
        yield "negation"


def negations(reading: StatementWords) -> int:
    """Count the negations of a statement: "not", "never", "without", "stopped" …, but not "not only"."""
    return len(_negators(reading))


def _negators(reading: StatementWords) -> list[int]:
    """Return the places of the negating words; "fails" and its like count before a verb alone."""
    found: list[int] = []
    for place, (word, follower) in enumerate(zip(reading.words, (*reading.words[1:], ""), strict=False)):
        turns = word in NEGATORS and follower not in {"only", "just", "least", "later"}
        stops = word in NEGATORS_BEFORE_VERBS and (follower == "to" or follower.endswith("ing"))
        if turns or stops or word in QUASI_NEGATORS:
            found.append(place)
    return found


def _denies(a: Reading, b: Reading) -> bool:
    """Tell whether `a` negates a word that `b` states: two negations in one sentence don't cancel each other."""
    denied = [scope[0] for scope in _scopes(a) if scope and scope[0] not in RAISED]
    spared = {word for scope in _scopes(b) for word in scope}
    stated_a, stated_b = ([stem(word) for word in reading.words] for reading in (a, b))
    return any(
        word in stated_b and word not in spared and stated_a.count(word) == denied.count(word) for word in denied
    )


def _scopes(reading: Reading) -> list[list[str]]:
    """Return, for each negating word, the stems in its scope: the next content words of its clause."""
    free = FUNCTION_WORDS | NEGATORS | {"longer"}
    scopes: list[list[str]] = []
    for place in _negators(reading):
        after = takewhile(
            lambda word: word.isalnum() and word not in {"and", "but"}, reading.words[place + 1 : place + 8]
        )
        before = reading.words[max(0, place - 1) : place] if reading.words[place] == "no" else ()
        scopes.append([stem(word) for word in (*after, *before) if word not in free])
    return scopes


def _opposites(a: Reading, b: Reading) -> Iterable[str]:
    only_a, only_b = (
        [RIVAL_SPELLINGS.get(word, word) for word in own.words if word in PAIRED_WORDS and word not in other.words]
        for own, other in ((a, b), (b, a))
    )
    for one, other in ((one, other) for one in only_a for other in only_b if one != other):
        if (one, other) in OPPOSITES:
            yield f"opposite {one} ≠ {other}"
            return
        if any(one in group and other in group for group in VALUES):
            yield f"{VALUE} {one} ≠ {other}"
            return


def _roles(a: Reading, b: Reading) -> Iterable[str]:
    if swapped := exchanged(a, b):
        yield f"roles {swapped[0]} ⇄ {swapped[1]}"


def exchanged(a: Reading, b: Reading) -> tuple[str, str] | None:
    """Return the two phrases that changed places between `a` and `b` while all else stayed, or None.

    Places in a list ("x and y") and relations that hold both ways ("x met y", "x is y") are no exchange.
    """
    one, other = ([word for word in reading.words if word.isalnum() and word not in DETERMINERS] for reading in (a, b))
    copulas = [place for place, word in enumerate(one) if word in COPULAS][:4]
    if any([*one[place + 1 :], one[place], *one[:place]] == other for place in copulas):
        return None
    start = common_prefix(one, other)
    end = common_prefix(one[start:][::-1], other[start:][::-1])
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    if len(left) != len(right) or not left or sorted(left) != sorted(right):
        return None
    return _phrases(left, right, before=one[:start][-1:])


def common_prefix(a: Sequence[str], b: Sequence[str]) -> int:
    """Return how many words or letters both begin with."""
    return next((i for i, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))


def _phrases(left: list[str], right: list[str], *, before: list[str]) -> tuple[str, str] | None:
    """Split `left` into x + middle + y so that `right` is y + middle + x, related one way by the middle."""
    for first in range(1, min(len(left), 6)):
        for last in range(1, min(len(left) - first + 1, 6)):
            x, middle, y = left[:first], left[first : len(left) - last], left[len(left) - last :]
            adjuncts = middle == before or x[0] in PLACING or y[0] in PLACING  # "in 1943 in Oakland": no exchange
            relates = middle and not SYMMETRIC & set(middle) and not set(middle) <= COPULAS
            if right == [*y, *middle, *x] and relates and not adjuncts and not {*x, *y} <= FUNCTION_WORDS:
                return " ".join(x), " ".join(y)
    return None


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(list(parts)[:3]) or NOTHING


GUARDS: dict[str, Guard] = {
    "numbers": _numbers,
    "ordinals": _both_differ("ordinal", lambda a, b: map(str, sorted(a.ordinals - b.ordinals))),
    "dates": _both_differ("date", missing_dates),
    "times": _both_differ("time", lambda a, b: map(clock, sorted(unmatched_times(a.times, b.times)))),
    "identifiers": _both_differ("identifier", missing_identifiers),
    "numerals": _numerals,
    "quotes": _both_differ(
        "quoted", lambda a, b: (each for each in a.quotes if folded_letters(each) not in folded_letters(b.text))
    ),
    "names": _names,
    "openings": _openings,
    "preferences": _preferences,
    "negation": _negation,
    "opposites": _opposites,
    "roles": _roles,
}
EXACT = ("numbers", "ordinals", "dates", "times", "identifiers", "numerals", "quotes", "names", "roles", "preferences")
"""Guards of differences that a language model may miss; all but `preferences` work without a word list."""


LEAST_FRAME = 2  # content words of a statement that may be denied
EMPTY = NEGATORS | FUNCTION_WORDS | {"somebody", "someone", "something", "anybody", "anything", "nobody"}
KNOWN_TEXTS = 131_072
"""Texts whose stems are cached: a night compares each fact of an agent with 100,000 of them many times."""


def denied(a: str, b: str) -> str | None:
    """Return the content words of a statement that the other negates, None where neither negates the other.

    Both have the same content words; with others beside them 17 of 57 pairs of `facts_pairs` and SICK held together.
    """
    one, other = read_words(a), read_words(b)
    if negations(one) % 2 == negations(other) % 2:
        return None
    # With an opposite besides the negation both hold: "after 5 we may", "before 5 we may not". So do all 23 such pairs
    # of the training set.
    only_one, only_other = {*one.words} - {*other.words}, {*other.words} - {*one.words}
    if any(
        (word, its) in OPPOSITES or any({word, its} <= group for group in RIVALS)
        for word in only_one & PAIRED_WORDS
        for its in only_other & PAIRED_WORDS
    ):
        return None
    stems = content_stems(a)
    return " ".join(stems) if len(stems) >= LEAST_FRAME and {*stems} == {*content_stems(b)} else None


@lru_cache(maxsize=KNOWN_TEXTS)
def content_stems(text: str) -> tuple[str, ...]:
    """Return the distinct stems of a statement's content words, in order."""
    words = [word for word in read_words(text).words if word[0].isalnum() and word not in ARTICLES]
    return tuple(dict.fromkeys(stem(word) for word in words if word not in EMPTY))
