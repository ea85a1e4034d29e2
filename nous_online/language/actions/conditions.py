"""Whether an action meets what a trigger says of when and how much: weekdays, months, hours and amounts."""
# ruff: noqa: SIM905 — a list of words reads best as words

from __future__ import annotations

import re
from functools import lru_cache

from nous_online.language.pairs.guards import same_number
from nous_online.language.pairs.lexicon import MONTHS, NUMBER_WORDS
from nous_online.language.pairs.reading import CURRENCIES, Number, read
from nous_online.language.pairs.times import EITHER_HALF

Span = tuple[int, int]
"""From one minute of the day to another, both included."""

WEEKDAYS = {
    name: frozenset({number})
    for number, name in enumerate("monday tuesday wednesday thursday friday saturday sunday".split())
} | {"weekend": frozenset({5, 6}), "weekday": frozenset(range(5)), "workday": frozenset(range(5))}
SEASONS = {
    "spring": frozenset({3, 4, 5}),
    "summer": frozenset({6, 7, 8}),
    "autumn": frozenset({9, 10, 11}),
    "winter": frozenset({12, 1, 2}),
}
PARTS_OF_DAY: dict[str, Span] = {
    "morning": (300, 719),
    "lunch": (690, 840),
    "midday": (690, 780),
    "afternoon": (720, 1079),
    "evening": (1050, 1439),
    "tonight": (1050, 1439),
    "night": (1260, 1439),
}
OFFICE_HOURS: Span = (540, 1020)
WORD = re.compile(r"[A-Za-z]+")
LATER_HALF = re.compile(r"\b(?:afternoon|evening|tonight|night)\b")
AMBIGUOUS_MONTHS = {"may", "march"}
SPOKEN_HOUR = re.compile(
    rf"\b(at|since|until|from|half past) (\d{{1,2}}|{'|'.join(NUMBER_WORDS)})\b"
    r"(?=\s*(?:$|[,.;)]|(?:in|on|o'?clock|today|tomorrow|this|and|with)\b))"
)
OF_OFFICE_HOURS = re.compile(
    r"\b(outside|after|out of|beyond|during|in|within) (?:\w+ )?(?:working|business|office|opening) hours\b"
)
RELATION = re.compile(r"\b(before|until|after|past|later than|earlier than)\b")
COMPARISON = re.compile(
    r"\b(above|over|more than|(?:larg|bigg|great|long|old|high)er than|exceeding|at least"
    r"|below|under|less than|fewer than|(?:small|short|young|low)er than)\s+(?=[$€£]?\d|\w+\b)"
)
LACKING_NUMBER = re.compile(rf"\b(?:without|lacking|missing) (?:at least )?(?:\d+|{'|'.join(NUMBER_WORDS)})\b")
UPWARD = ("above", "over", "more", "larg", "bigg", "great", "long", "old", "high", "exceed", "at least")


@lru_cache(maxsize=4096)
def conditions(trigger: str, action: str) -> tuple[bool | None, ...]:
    """Return for each condition of the trigger whether the action meets it, None where it says nothing of it."""
    low, said = trigger.lower(), action.lower()
    found: list[bool | None] = [
        bool(wanted & named) if named else None
        for wanted, named in ((weekdays(low), weekdays(said)), (months(trigger), months(action)))
        if wanted
    ]
    office, spans = OF_OFFICE_HOURS.search(low), hours(trigger)
    if office:
        inside = in_office_hours(said)
        found.append(None if inside is None else inside == (office[1] in {"during", "in", "within"}))
    elif spans:
        named_spans = hours(action)
        found.append(any(is_in(span, spans[0], low) for span in named_spans) if named_spans else None)
    return (*found, *amounts_met(trigger, action))


def weekdays(text: str) -> frozenset[int]:
    """Return the weekdays a lower-case text names, Monday as 0."""
    words = WORD.findall(text)
    return frozenset[int]().union(*(WEEKDAYS.get(word.removesuffix("s"), frozenset()) for word in words))


def months(text: str) -> frozenset[int]:
    """Return the months a text names, January as 1; "may" and "march" count where they are capitalised."""
    found: set[int] = set()
    for word in WORD.findall(text):
        name = word.lower()
        if name in SEASONS:
            found |= SEASONS[name]
        elif name in MONTHS and (name not in AMBIGUOUS_MONTHS or word[0].isupper()):
            found.add(list(MONTHS).index(name) + 1)
    return frozenset(found)


def hours(text: str) -> list[Span]:
    """Return the times of day a text names; parts of the day only where it names no time."""
    low = text.lower()
    later = 720 if LATER_HALF.search(low) else 0
    found = [(minute, minute) for minute in sorted(read(text).times) if minute < EITHER_HALF]
    for match in SPOKEN_HOUR.finditer(low):
        hour = int(match[2]) if match[2].isdigit() else int(NUMBER_WORDS[match[2]])
        if hour <= 24:  # noqa: PLR2004 (hours of a day)
            minute = hour * 60 + 30 * (match[1] == "half past") + (later if hour < 12 else 0)  # noqa: PLR2004
            found.append((minute, minute))
    said = {word.removesuffix("s") for word in WORD.findall(low)}
    return found or [span for name, span in PARTS_OF_DAY.items() if name in said]


def is_in(span: Span, wanted: Span, trigger: str) -> bool:
    """Tell whether a time of day lies where the trigger says: before, after, or about then."""
    relation = RELATION.search(trigger)
    if relation is None:
        slack = 59 if wanted[0] == wanted[1] else 0
        return span[0] <= wanted[1] + slack and span[1] >= wanted[0]
    return span[0] < wanted[0] if relation[1] in {"before", "until", "earlier than"} else span[1] > wanted[1]


def in_office_hours(action: str) -> bool | None:
    """Tell whether a lower-case action lies in office hours, None where it does not say."""
    days, spans = weekdays(action), hours(action)
    if days and days <= WEEKDAYS["weekend"]:
        return False
    if not spans:
        return None
    return all(OFFICE_HOURS[0] <= low and high <= OFFICE_HOURS[1] for low, high in spans)


def amounts_met(trigger: str, action: str) -> tuple[bool | None, ...]:
    """Return whether an amount of the action is as the trigger compares or names it; empty where that names none."""
    compared = COMPARISON.search(trigger.lower())
    limits = read(trigger[compared.end() if compared else 0 :]).numbers
    if not limits:
        return ()
    limit, named = limits[0], read(action).numbers
    if compared is None and LACKING_NUMBER.search(trigger.lower()):  # fewer than "without two approvals" asks for
        return (all(number.value < limit.value for number in named) if named else None,)
    if compared is None:
        return (any(same_number(limit, number) for number in named) if named else None,)
    like = [number for number in named if number.dimension == limit.dimension]
    if not like and (limit.dimension not in CURRENCIES or str(limit.dimension) in read(action).words):
        like = [number for number in named if number.dimension is None]
    upward = compared[1].startswith(UPWARD)
    return (any(is_beyond(number, limit, upward=upward) for number in like) if like else None,)


def is_beyond(number: Number, limit: Number, *, upward: bool) -> bool:
    """Tell whether an amount is more, or less, than a limit; one without a unit is taken for the limit's."""
    value, bound = (number.value, limit.value) if number.dimension else (number.bare, limit.bare)
    return value > bound if upward else value < bound
