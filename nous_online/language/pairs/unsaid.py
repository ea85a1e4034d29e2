"""What a later statement leaves unsaid of an earlier one that it changes; by rule, without a model."""

from __future__ import annotations

from typing import TypeAlias

from nous_online.core.patterns import regex
from nous_online.language.lexicon import DATED, MONTHS, SMALL_WORDS
from nous_online.language.pairs.guards import missing_dates, missing_identifiers, unmatched_names, unmatched_numbers
from nous_online.language.pairs.reading import Number, Reading, clock, read, term_of, unmatched_times

Values: TypeAlias = list[str]
DAYS = DATED - {*MONTHS, *MONTHS.values(), "noon", "midnight"}
JOINING = frozenset({"of", "the", "de", "la", "du", "von", "van", "der", "del", "&", "-"})  # words inside a name
LABEL = regex(r"\b([^\W\d_]{3,20}) (?=[^\W\d_]{0,5}-?\d)")
LEAST_BEFORE, BEGINNING = 3, 5  # letters of a word before a number that may say what it is of, and those compared


def left_unsaid(earlier: str, later: str) -> tuple[str, ...]:
    """Return the values of `earlier` that `later` neither repeats nor replaces by one of the same kind.

    Dates, times, numbers, identifiers and names are values: of "on 4 May at noon in the Adler" a statement of "6 May"
    leaves noon and the Adler. Where nothing of one kind is in both, the later one may replace one of them by a word,
    but not "port 34" by "host h6".
    """
    known, new = read(earlier), read(later)
    counted = _counted(known) & _counted(new)
    unsaid, names = _quantities(known, new, counted), _names(known, new)
    of_kinds = [
        (_days(known, new), _days(new, known), bool(_days(known))),
        (names, _names(new, known), bool(names)),
        (missing_identifiers(known, new), missing_identifiers(new, known), bool(known.identifiers)),
        (unsaid, _quantities(new, known, counted), bool(known.numbers or known.times or known.ordinals)),
    ]
    is_of_one_kind = any(come and is_known for _, come, is_known in of_kinds) or any(
        not counted.isdisjoint(_things(new, number)) for number in unmatched_numbers(new, known)
    )
    left = [value for gone, come, _ in of_kinds for value in gone[len(come) :]]
    return tuple(left) if is_of_one_kind or len(left) > 1 or _are_labelled(known, new) else ()


def _are_labelled(known: Reading, new: Reading) -> bool:
    """Tell whether both statements label a number or identifier, and the later one has none of the earlier labels."""
    labels, others = _labels(known), _labels(new)
    return bool(labels and others) and labels.isdisjoint(new.words)


def _labels(reading: Reading) -> set[str]:
    """Return the words directly before a number or identifier: "port" of "port 34", "host" of "host h6"."""
    return {label for label in LABEL.findall(reading.text.casefold()) if label not in SMALL_WORDS | DATED}


def _days(one: Reading, other: Reading | None = None) -> Values:
    """Return the dates of one statement that are not in the other, or else all such days of the week together."""
    said = {word.removesuffix("s") for word in other.words} if other else set[str]()
    days = [word.removesuffix("s") for word in one.words if word.removesuffix("s") in DAYS - said]
    dates = missing_dates(one, other) if other else [*map(str, one.dates)]
    return dates or [" ".join(days)][: len(days)]


def _names(one: Reading, other: Reading) -> Values:
    """Return the names that only one statement gives, such as "Academy of Brund", but no first word by itself."""
    unsaid, found = {*unmatched_names(one, other)}, list[list[int]]()
    for place, word in enumerate(one.cased):
        if word in one.names and not _is_beside_number(one, place):
            if found and JOINING.issuperset(one.words[found[-1][-1] + 1 : place]):
                found[-1].append(place)
            else:
                found.append([place])
    spelled = [[one.cased[place] for place in places] for places in found if not _only_opens(one, places)]
    return [" ".join(name) for name in spelled if unsaid.issuperset(name) and not _is_of_date(name[0])]


def _only_opens(one: Reading, places: list[int]) -> bool:
    """Tell whether a name is the first word of a sentence alone: there "Dinner" and "Budget" are capitalised too."""
    before = [word for word in one.cased[max(0, places[0] - 2) : places[0]] if word != "."]
    is_after_title = before[:1] and before[0][0].isupper()  # "Dr. Haas"
    mark = one.cased[max(0, places[0] - 1)]
    return len(places) == 1 and (places[0] == 0 or mark in "!?:" or (mark == "." and not is_after_title))


def _is_of_date(word: str) -> bool:
    return word.lower().removesuffix("s") in DATED


def _is_beside_number(one: Reading, place: int) -> bool:
    """Tell whether a word says what a number counts or what it is the number of: "14 Tische", "Raum 3", "4. Mai"."""
    before = [word for word in one.cased[max(0, place - 2) : place] if word != "."][-1:]
    return any(word[0].isdigit() for word in (*before, *one.cased[place + 1 : place + 2]))


def _quantities(one: Reading, other: Reading, counted: set[str]) -> Values:
    """Return the numbers and times that only one statement gives, without those of the things that both count."""
    unmatched = unmatched_numbers(one, other)
    numbers = [each.shown for each in unmatched if counted.isdisjoint(_things(one, each))]
    # Of a thing that both count one may give more numbers: "95 before midnight, 140 after", "165 after midnight now".
    alike = [each.shown for each in unmatched if not counted.isdisjoint(_things(one, each))]
    numbers += alike[sum(not counted.isdisjoint(_things(other, each)) for each in other.numbers) :]
    ordinals = (f"{each}." for each in sorted(one.ordinals - other.ordinals))
    return [*numbers, *ordinals, *map(clock, sorted(unmatched_times(one.times, other.times)))]


def _counted(reading: Reading) -> set[str]:
    return {thing for number in reading.numbers for thing in _things(reading, number)}


def _things(reading: Reading, number: Number) -> set[str]:
    """Return the words beside a number that may say what it is of, or its unit: "14 tables", "room 3", "4. Mai"."""
    place = reading.terms.index(term_of(number))
    before = [word for word in reading.terms[max(0, place - 1) : place] if len(word) >= LEAST_BEFORE]
    after = [word for word in reading.terms[place + 1 : place + 3] if word != "."][:1]
    words = {word for word in (*before, *after) if word.isalpha() and word not in SMALL_WORDS}
    return {word[:BEGINNING] for word in words} | {word for word in after if word.startswith("~")}
