"""Days that a text names: the one it was said on, and what "tomorrow" or "Friday the 24th" means on it."""

from __future__ import annotations

import re
from datetime import date, timedelta
from itertools import pairwise

_MONTHS = (
    "january januar jänner janvier enero", "february februar février febrero", "march märz mars marzo",
    "april avril abril", "may mai mayo", "june juni juin junio", "july juli juillet julio", "august août agosto",
    "september septembre septiembre sept", "october oktober octobre octubre", "november novembre noviembre",
    "december dezember décembre diciembre",
)  # fmt: skip
"""English, German, French, Spanish; three letters or four do as well."""
_WEEKDAYS = (
    "monday montag lundi lunes", "tuesday dienstag mardi martes", "wednesday mittwoch mercredi miércoles",
    "thursday donnerstag jeudi jueves", "friday freitag vendredi viernes", "saturday samstag samedi sábado",
    "sunday sonntag dimanche domingo",
)  # fmt: skip
_MONTH = {
    short: number
    for number, names in enumerate(_MONTHS, start=1)
    for name in names.split()
    for short in (name, name[:3], name[:4])
}
_WEEKDAY = {name: number for number, names in enumerate(_WEEKDAYS) for name in names.split()}
_AWAY = {
    "tomorrow": 1, "demain": 1, "morgen": 1, "yesterday": -1, "gestern": -1, "hier": -1, "ayer": -1, "tonight": 0,
    "today": 0, "heute": 0, "aujourd'hui": 0, "hoy": 0,
}  # fmt: skip
"""Days from the one on which it is said; in Spanish "mañana" is a morning too, and is left alone."""

_MONTH_NAME = rf"(?:{'|'.join(sorted(_MONTH, key=len, reverse=True))})"
_NAMED = re.compile(
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.)?\s(?:of\s|de\s)?(?P<month>{_MONTH_NAME})\b"
    r"(?:[.,]?\s(?:de\s)?(?P<year>20\d\d|\d\d)\b(?![.:]\d))?"
    rf"|\b(?P<month2>{_MONTH_NAME})\.?\s(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b(?![.:]\d)(?:,?\s(?P<year2>20\d\d)\b)?",
    re.IGNORECASE,
)
_NUMERIC = re.compile(
    r"\b(?P<year>20\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b"
    r"|\b(?P<day2>\d{1,2})(?P<mark>[./])(?P<month2>\d{1,2})(?P=mark)(?P<year2>20\d\d|\d\d)\b"
)
_YEAR_LAST = re.compile(
    r"\b(?P<month>[A-Z][a-z]{2})\s{1,2}(?P<day>\d{1,2})\s\d\d:\d\d:\d\d\s(?:[A-Z]{2,5}\s)?(?P<year>20\d\d)\b"
)
_RELATIVE = re.compile(
    rf"(?<![\w'-])(?:(?P<away>{'|'.join(_AWAY)})"
    rf"|(?:(?P<past>last|vergangenen|letzten)\s|(?P<ahead>next|by|until|till|from|this|bis|kommenden|nächsten)\s)?"
    rf"(?P<weekday>{'|'.join(_WEEKDAY)})(?P<past2>\s(?:dernier|pasado))?"
    r"(?:\s(?:the\s|den\s|le\s|el\s)?(?P<number>\d{1,2})(?:st|nd|rd|th)?(?!\d|[.,:]\d|\s?(?:am|pm|h|uhr)\b))?"
    r"|\bthe\s(?P<only>\d{1,2})(?:st|nd|rd|th)(?!\s[^\W\d_]+ber\b))(?![\w'-])",
    re.IGNORECASE,
)
_CENTURY = 2000
LEAP_DAY = (2, 29)
_WEEK, _MONTH_DAYS = 7, 31


def day_in(text: str, *, after: date | None = None) -> date | None:
    """Return the first whole date a text names; one without a year takes that of `after`."""
    for pattern in (_NUMERIC, _YEAR_LAST, _NAMED):
        for match in pattern.finditer(text):
            if found := _date_of(match.groupdict(), after):
                return found
    return None


def _date_of(parts: dict[str, str | None], after: date | None) -> date | None:
    """Return the date some parts of a match make, None where they make none."""
    told = {name: parts.get(name) or parts.get(f"{name}2") for name in ("day", "month", "year")}
    month, year = told["month"] or "", int(told["year"] or (after.year if after else 0))
    number = int(month) if month.isdigit() else _MONTH.get(month.casefold(), 0)
    if not told["month"] or (parts.get("month2") or "A")[0].islower():  # "may 3" is no date where it is small
        return None
    try:
        return date(year + (_CENTURY if 0 < year < 100 else 0), number, int(told["day"] or 0))  # noqa: PLR2004
    except ValueError:
        return None


def with_days(text: str, said_on: date | None) -> str:
    """Return a text with its days told whole: "by Friday (24 October 2025)", "on 7 February 2026".

    A bare weekday is left alone, since nobody knows of which week it is. A date without a year is the one nearest to
    `said_on`, and left alone where that is more than half as far as the next one: nobody knows of which year it is.
    """
    if said_on is None:
        return text
    told = {match.end(): f" {near.year}" for match in _NAMED.finditer(text) if (near := _nearest(match, said_on))}
    for match in _RELATIVE.finditer(text):
        is_named = _NAMED.match(text, match.start("number") if match["number"] else match.end() + 1)
        if not is_named and (day := _meant(match, said_on)):
            told[match.end()] = f" ({day.day} {day:%B %Y})"
    pieces = [text[start:end] + told[end] for start, end in pairwise([0, *sorted(told)])]
    return "".join([*pieces, text[max(told, default=0) :]])


def _nearest(match: re.Match[str], said_on: date) -> date | None:
    """Return the date a day and a month without a year mean; None where they have one, or mean none."""
    if match["year"] or match["year2"] or not (day := _date_of(match.groupdict(), said_on)):
        return None
    years = (day.replace(year=day.year + away) for away in (0, 1, -1) if (day.month, day.day) != LEAP_DAY)
    one, *others = sorted(years, key=lambda each: abs(each - said_on)) or [None]
    is_sure = one is not None and all(2 * abs(one - said_on) <= abs(other - said_on) for other in others if other)
    return one if is_sure else None


def _meant(match: re.Match[str], said_on: date) -> date | None:
    """Return the day a relative expression means; None for a bare weekday, of which nobody knows which week."""
    if word := match["away"]:
        is_greeting = word == "Morgen"  # the German noun
        return None if is_greeting else said_on + timedelta(_AWAY[word.casefold()])
    if number := match["number"] or match["only"]:
        around = (said_on + timedelta(days) for days in range(_MONTH_DAYS))
        near = next((day for day in around if day.day == int(number)), None)
        weekday = match["weekday"] and _WEEKDAY[match["weekday"].casefold()]
        return near if near and (weekday is None or near.weekday() == weekday) else None
    ahead = (_WEEKDAY[match["weekday"].casefold()] - said_on.weekday() - 1) % _WEEK + 1
    if match["past"] or match["past2"]:
        return said_on + timedelta(ahead - _WEEK if ahead < _WEEK else -_WEEK)
    return said_on + timedelta(ahead) if match["ahead"] else None
