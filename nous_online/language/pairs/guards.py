"""Why two statements can never be duplicates, however close their vectors: pure, explained, before any threshold.

Cosine cannot see a changed value. These guards can: each compares one kind of checkable content
and answers in words. No guard ever says that two statements *are* the same.
"""
# ruff: noqa: PLR2004 — word lengths and edit budgets are read best in place

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from itertools import takewhile

from nous_online.language.pairs.lexicon import (
    COPULAS,
    DATED,
    DEGREES,
    DEMONYM_ENDS,
    DETERMINERS,
    FUNCTION_WORDS,
    LIKING,
    MONTHS,
    NEGATORS,
    NEGATORS_BEFORE_VERBS,
    OPPOSITES,
    PAIRED_WORDS,
    PLACE_ENDS,
    QUASI_NEGATORS,
    RAISING_VERBS,
    RIVAL_SPELLINGS,
    RIVALS,
    SYMMETRIC,
)
from nous_online.language.pairs.reading import (
    Date,
    Number,
    Reading,
    StatementWords,
    cleaned,
    folded_letters,
    read,
    stem,
)
from nous_online.language.pairs.times import clock, unmatched_times

VALUE = "value"  # how the reason begins that tells two values of one kind apart
PLACING = frozenset({"in", "on", "at"})
COURTESIES = frozenset({"please", "kindly", "remember", "note", "reminder"})
RAISED = frozenset(map(stem, RAISING_VERBS))  # "I don't think it is" denies what follows, not the thinking


def differences(a: str, b: str) -> tuple[str, ...]:
    """Return, in words, each reason why `a` and `b` can never be duplicates; empty when no guard fires.

    Numbers, dates, times, units, versions, identifiers, quoted strings, names, negation, opposites,
    rival values and exchanged roles are compared after normalising their spelling, so "8pm" equals "20:00".
    """
    if cleaned(a) == cleaned(b):
        return ()
    one, other = read(a), read(b)
    return tuple(reason for guard in GUARDS.values() for reason in guard(one, other))


def exact_differences(a: str, b: str) -> tuple[str, ...]:
    """Return the reasons of those guards alone that compare what is written down exactly, in any language.

    Two values of one kind ("quarterly", "monthly") are such as well: of 819 pairs written for training that differ in
    one, 57 say the same.
    """
    one, other = read(a), read(b)
    exact = (reason for name in EXACT for reason in GUARDS[name](one, other))
    return (*exact, *(reason for reason in _opposites(one, other) if reason.startswith(VALUE)))


def guards_fired(a: Reading, b: Reading) -> frozenset[str]:
    """Return the names of the guards that fire on two statements, as in `GUARDS`."""
    return frozenset(name for name, guard in GUARDS.items() if any(guard(a, b)))


def _numbers(a: Reading, b: Reading) -> Iterable[str]:
    only_a, only_b = unmatched_numbers(a, b), unmatched_numbers(b, a)
    if not only_a and not only_b:
        return
    if len(only_a) == 1 and len(only_b) == 1:
        yield _number_reason(only_a[0], only_b[0])
        return
    yield f"number {_listed(n.shown for n in only_a)} ≠ {_listed(n.shown for n in only_b)}"


def unmatched_numbers(a: Reading, b: Reading) -> list[Number]:
    """Return the quantities of `a` that `b` states nowhere; a lone 1 may be written "one", "a" or not at all."""
    loose = {"one", "a", "an", "single"} & set(b.words)
    return [
        number
        for number in a.numbers
        if not any(same_number(number, other) for other in b.numbers)
        and not (number.shown == "1" and loose)
        and not any(number.bare in {date.year, date.day} for date in b.dates)
    ]


def same_number(a: Number, b: Number) -> bool:
    """Tell whether two quantities agree; a missing unit agrees with any unit of the same digits."""
    if a.version or b.version:
        return _version(a) == _version(b)
    if a.dimension and b.dimension and a.dimension != b.dimension:
        return False
    if a.dimension and b.dimension:
        return abs(a.value - b.value) <= 1e-6 * max(abs(a.value), abs(b.value))
    return abs(a.bare - b.bare) <= 1e-9 * max(abs(a.bare), abs(b.bare))


def _version(number: Number) -> str:
    return number.version or number.shown


def _number_reason(a: Number, b: Number) -> str:
    if a.version or b.version:
        return f"version {a.shown} ≠ {b.shown}"
    if a.bare == b.bare and a.unit != b.unit:
        return f"unit {a.unit} ≠ {b.unit}"
    return f"number {a.shown} ≠ {b.shown}"


def _ordinals(a: Reading, b: Reading) -> Iterable[str]:
    only_a, only_b = a.ordinals - b.ordinals, b.ordinals - a.ordinals
    if only_a and only_b:
        yield f"ordinal {_listed(map(str, sorted(only_a)))} ≠ {_listed(map(str, sorted(only_b)))}"


def _dates(a: Reading, b: Reading) -> Iterable[str]:
    only_a, only_b = _unmatched_dates(a, b), _unmatched_dates(b, a)
    if only_a and only_b:
        yield f"date {_listed(map(str, only_a))} ≠ {_listed(map(str, only_b))}"


def _unmatched_dates(a: Reading, b: Reading) -> list[Date]:
    loose = {number.bare for number in b.numbers}
    return [date for date in a.dates if date.day not in loose and not any(same_date(date, other) for other in b.dates)]


def same_date(a: Date, b: Date) -> bool:
    """Tell whether two dates can be the same day: parts that both state must agree, in either order when ambiguous."""
    if a.year and b.year and a.year != b.year:
        return False
    if a.swapped or b.swapped:
        return {a.month, a.day} == {b.month, b.day}
    return all(one == other for one, other in ((a.month, b.month), (a.day, b.day)) if one and other)


def _times(a: Reading, b: Reading) -> Iterable[str]:
    only_a, only_b = unmatched_times(a.times, b.times), unmatched_times(b.times, a.times)
    if only_a and only_b:
        yield f"time {_listed(clock(t) for t in sorted(only_a))} ≠ {_listed(clock(t) for t in sorted(only_b))}"


def _identifiers(a: Reading, b: Reading) -> Iterable[str]:
    only_a = {token for token in a.identifiers if token not in b.text.lower()}
    only_b = {token for token in b.identifiers if token not in a.text.lower()}
    if only_a and only_b:
        yield f"identifier {_listed(sorted(only_a))} ≠ {_listed(sorted(only_b))}"


def _numerals(a: Reading, b: Reading) -> Iterable[str]:
    if a.numerals != b.numerals:
        yield f"numeral {_listed(sorted(a.numerals))} ≠ {_listed(sorted(b.numerals))}"


def _quotes(a: Reading, b: Reading) -> Iterable[str]:
    only_a, only_b = _missing_quotes(a, b), _missing_quotes(b, a)
    if only_a and only_b:
        yield f"quoted {_listed(only_a)} ≠ {_listed(only_b)}"


def _missing_quotes(a: Reading, b: Reading) -> list[str]:
    said = folded_letters(b.text)
    return [quote for quote in a.quotes if folded_letters(quote) not in said]


def _names(a: Reading, b: Reading) -> Iterable[str]:
    only_a, only_b = unmatched_names(a, b), unmatched_names(b, a)
    if only_a and only_b:
        yield f"name {' '.join(only_a)} ≠ {' '.join(only_b)}"


def added(known: str, new: str) -> tuple[str, ...]:
    """Return the dates, numbers, times, identifiers and names only `new` states, and thus says more than `known`."""
    one, other = read(known), read(new)
    dates = (str(date) for date in other.dates if not any(_as_precise(date, said) for said in one.dates))
    days = (word for word in other.words if word in DATED - set(MONTHS) and word not in one.words)
    numbers = (number.shown for number in unmatched_numbers(other, one))
    times = (clock(minutes) for minutes in sorted(unmatched_times(other.times, one.times)))
    codes = sorted(token for token in other.identifiers if token not in one.text.lower())
    ordinals = map(str, sorted(other.ordinals - one.ordinals))
    return tuple(dict.fromkeys((*dates, *days, *numbers, *times, *codes, *ordinals, *unmatched_names(other, one))))


def _as_precise(date: Date, said: Date) -> bool:
    """Tell whether `said` states every part of `date`: "May" is less than "May 5"."""
    parts = ((date.year, said.year), (date.month, said.month), (date.day, said.day))
    return same_date(date, said) and all(has for part, has in parts if part)


def _openings(a: Reading, b: Reading) -> Iterable[str]:
    """Statements alike but for the word they open with speak of two things: "Orders are kept", "Invoices are kept"."""
    if len(a.words) < 2 or a.words[1:] != b.words[1:]:
        return
    first, other = a.words[0], b.words[0]
    if first == other or stem(first) == stem(other) or is_near_spelling(first, other):
        return
    names = {name.lower() for name in (*a.names, *b.names)}  # which have a guard of their own
    if {first, other} & (FUNCTION_WORDS | COURTESIES | names) or first.endswith("ly") or other.endswith("ly"):
        return
    yield f"{first} ≠ {other}"


def _preferences(a: Reading, b: Reading) -> Iterable[str]:
    """One who prefers dark mode may prefer concise answers too: what is liked and shares no word is another thing."""
    only_a, only_b = _liked(a), _liked(b)
    if only_a and only_b and not {stem(word) for word in only_a} & {stem(word) for word in only_b}:
        yield f"preference {' '.join(only_a[:3])} ≠ {' '.join(only_b[:3])}"


def _liked(reading: Reading) -> list[str]:
    place = next((place for place, word in enumerate(reading.words) if word in LIKING), len(reading.words))
    return [word for word in reading.words[place + 1 :] if word.isalnum() and word not in FUNCTION_WORDS]


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
    ]


def _spelled(name: str, words: Sequence[str], joined: str) -> bool:
    letters = folded_letters(name)
    if letters in words or (len(letters) > 3 and letters.rstrip("s") in joined):
        return True
    return any(is_near_spelling(letters, word) or _demonym(letters, word) for word in words)


def is_near_spelling(a: str, b: str) -> bool:
    """Tell whether two words are one name with a slip: equal first letter and at most one edit per five letters."""
    shortest = min(len(a), len(b))
    if shortest < 5 or a[0] != b[0] or abs(len(a) - len(b)) > 2:
        return False
    matched = sum(block.size for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())
    return max(len(a), len(b)) - matched <= shortest // 5


def _demonym(a: str, b: str) -> bool:
    """Tell whether one word names the people or adjective of the other, as "Turkish" and "Turkey"."""
    stem = _common_prefix(list(a), list(b))
    ends = {a[stem:], b[stem:]}
    return stem >= 4 and bool(ends & DEMONYM_ENDS) and bool(ends & PLACE_ENDS)


def _negation(a: Reading, b: Reading) -> Iterable[str]:
    if negations(a) % 2 != negations(b) % 2 or _denies(a, b) or _denies(b, a):
        yield "negation"


def negations(reading: StatementWords) -> int:
    """Count what turns a statement round: "not", "never", "without", "stopped" …; "not only" does not."""
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
    """Tell whether `a` negates a word that `b` states: two negations in one sentence do not make up for each other."""
    denied = [scope[0] for scope in _scopes(a) if scope and scope[0] not in RAISED]
    spared = {word for scope in _scopes(b) for word in scope}
    stated_a, stated_b = ([stem(word) for word in reading.words] for reading in (a, b))
    return any(
        word in stated_b and word not in spared and stated_a.count(word) == denied.count(word) for word in denied
    )


def _scopes(reading: Reading) -> list[list[str]]:
    """Return, per negating word, the stems it bears on: the next content words of its clause."""
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
    only_a = [_rival(word) for word in a.words if word in PAIRED_WORDS and word not in b.words]
    only_b = [_rival(word) for word in b.words if word in PAIRED_WORDS and word not in a.words]
    pairs = ((one, other) for one in only_a for other in only_b if one != other)
    for one, other in pairs:
        if (one, other) in OPPOSITES:
            yield f"opposite {one} ≠ {other}"
            return
        if any(one in group and other in group for group in (*RIVALS, *DEGREES)):
            yield f"{VALUE} {one} ≠ {other}"
            return


def _rival(word: str) -> str:
    return RIVAL_SPELLINGS.get(word, word)


def _roles(a: Reading, b: Reading) -> Iterable[str]:
    swapped = exchanged(a, b)
    if swapped:
        yield f"roles {swapped[0]} ⇄ {swapped[1]}"


def exchanged(a: Reading, b: Reading) -> tuple[str, str] | None:
    """Return the two phrases that changed places between `a` and `b` while all else stayed, or None.

    Places in a list ("x and y") and relations that hold both ways ("x met y") are no exchange.
    """
    one, other = _content(a), _content(b)
    if _turned_at_copula(one, other):
        return None
    start = _common_prefix(one, other)
    end = _common_prefix(one[start:][::-1], other[start:][::-1])
    left, right = one[start : len(one) - end], other[start : len(other) - end]
    if len(left) != len(right) or not left or sorted(left) != sorted(right):
        return None
    return _phrases(left, right, before=one[:start][-1:])


def _turned_at_copula(one: list[str], other: list[str]) -> bool:
    """Tell whether one statement is "X is Y" and the other "Y is X"."""
    places = [place for place, word in enumerate(one) if word in COPULAS][:4]
    return any([*one[place + 1 :], one[place], *one[:place]] == other for place in places)


def _content(reading: Reading) -> list[str]:
    return [word for word in reading.words if word.isalnum() and word not in DETERMINERS]


def _common_prefix(a: list[str], b: list[str]) -> int:
    return next((i for i, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))


def _phrases(left: list[str], right: list[str], *, before: list[str]) -> tuple[str, str] | None:
    """Split `left` into x + middle + y so that `right` is y + middle + x, related one way by the middle."""
    for first in range(1, min(len(left), 6)):
        for last in range(1, min(len(left) - first + 1, 6)):
            x, middle, y = left[:first], left[first : len(left) - last], left[len(left) - last :]
            adjuncts = middle == before or x[0] in PLACING or y[0] in PLACING  # "in 1943 in Oakland": no exchange
            if right == [*y, *middle, *x] and _relates(middle) and not adjuncts and not {*x, *y} <= FUNCTION_WORDS:
                return " ".join(x), " ".join(y)
    return None


def _relates(middle: list[str]) -> bool:
    """Tell whether the words between two phrases say something of one about the other that does not hold back."""
    return bool(middle) and not SYMMETRIC & set(middle) and not set(middle) <= COPULAS


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(list(parts)[:3]) or "none"


GUARDS: dict[str, Callable[[Reading, Reading], Iterable[str]]] = {
    "numbers": _numbers,
    "ordinals": _ordinals,
    "dates": _dates,
    "times": _times,
    "identifiers": _identifiers,
    "numerals": _numerals,
    "quotes": _quotes,
    "names": _names,
    "openings": _openings,
    "preferences": _preferences,
    "negation": _negation,
    "opposites": _opposites,
    "roles": _roles,
}
EXACT = ("numbers", "ordinals", "dates", "times", "identifiers", "numerals", "quotes", "names", "roles", "preferences")
"""Guards of what a reader of meanings may miss; but for likings they need no list of words."""
