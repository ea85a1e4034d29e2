"""Reads dates in text, and completes those that only the day of a talk makes whole ("tomorrow", "Friday the 24th")."""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise

from nous_online.core.patterns import regex

_MONTHS = (
    "january januar jänner janvier enero", "february februar février febrero", "march märz mars marzo",
    "april avril abril", "may mai mayo", "june juni juin junio", "july juli juillet julio", "august août agosto",
    "september septembre septiembre sept", "october oktober octobre octubre", "november novembre noviembre",
    "december dezember décembre diciembre",
)  # fmt: skip
"""English, German, French and Spanish; the first three or four letters count as well."""
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
_ENGLISH = {
    "tomorrow", "yesterday", "tonight", "today", "the", "next week", "day after tomorrow", "day before yesterday",
    *(names.split()[0] for names in _WEEKDAYS),
}  # fmt: skip
_AWAY = {
    "day after tomorrow": 2, "après-demain": 2, "übermorgen": 2, "pasado mañana": 2, "day before yesterday": -2,
    "avant-hier": -2, "vorgestern": -2, "antes de ayer": -2, "anteayer": -2, "tomorrow": 1, "demain": 1, "morgen": 1,
    "yesterday": -1, "gestern": -1, "hier": -1, "ayer": -1, "tonight": 0, "today": 0, "heute": 0, "aujourd'hui": 0,
    "hoy": 0, "mañana": 1,
}  # fmt: skip
"""Days from the date of the sentence."""

MONTH_NAME = rf"(?:{'|'.join(sorted(_MONTH, key=len, reverse=True))})"
WEEKDAY_NAME = rf"(?:{'|'.join(_WEEKDAY)})"
_NAMED = regex(
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.)?\s(?:of\s|de\s)?(?P<month>{MONTH_NAME})\b"
    r"(?:[.,]?\s(?:de\s)?(?P<year>20\d\d|\d\d)\b(?![.:]\d))?"
    rf"|\b(?P<month2>{MONTH_NAME})\.?\s(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b(?![.:]\d)(?:,?\s(?P<year2>20\d\d)\b)?",
    re.IGNORECASE,
)
_NUMERIC = regex(
    r"\b(?P<year>20\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b"
    r"|\b(?P<day2>\d{1,2})(?P<mark>[./])(?P<month2>\d{1,2})(?P=mark)(?P<year2>20\d\d|\d\d)\b"
)
_YEAR_LAST = regex(
    r"\b(?P<month>[A-Z][a-z]{2})\s{1,2}(?P<day>\d{1,2})\s\d\d:\d\d:\d\d\s(?:[A-Z]{2,5}\s)?(?P<year>20\d\d)\b"
)
_DIGIT = regex(r"\d")
_TOMORROW = r"(?:\A|(?<=[.,;:!?(¡¿«] )|(?<=[¡¿«])|(?<=\by )|(?<=\bhasta )|(?<=\bpara ))mañana(?! (?:de|y|tras)\b)"
"""Spanish "mañana" where it opens a clause or stands behind "hasta": elsewhere it may be a morning."""
_RELATIVE = regex(
    rf"(?<![\w'-])(?:(?P<away>{'|'.join(each for each in _AWAY if each != 'mañana')}|{_TOMORROW})"
    r"|(?P<week>next week|nächste Woche|la semaine prochaine|la semana que viene)"
    rf"|(?:(?P<past>last|vergangenen|letzten)\s|(?P<ahead>next|by|until|till|from|this|bis|kommenden|nächsten|próximo)\s)?"
    rf"(?P<weekday>{WEEKDAY_NAME})"
    r"(?:\s(?:(?P<past2>dernier|pasado)|(?P<ahead2>prochain|que viene))\b)?(?!\sof\b)"
    r"(?:\s(?:the\s|den\s|le\s|el\s)?(?P<number>\d{1,2})(?:st|nd|rd|th)?(?!\d|[.,:]\d|\s?(?:am|pm|h|uhr)\b))?"
    r"|\b(?:by|until|till|due|before)\s(?:on\s)?the\s(?P<only>\d{1,2})(?:st|nd|rd|th)"
    r"(?!\s(?:of|[^\W\d_]+ber)\b|\s(?:and|or|to|until|till|-)\s(?:the\s)?\d))(?![\w'-])",
    re.IGNORECASE,
)
_MORGEN_FIRST = regex(
    r"(?:\A|(?<=[.!?:] ))Morgen (?:früh|Vormittag|Mittag|Nachmittag|Abend|Nacht|will (?=[A-ZÄÖÜ]|ich|er|sie|wir)"
    r"|ist|bin|sind|hat|wird|muss|kann|soll|darf"
    r"|(?!went|kept|felt|left|sent|spent|built|often|then|even|dealt|meant|hurt|zusammen|allen)"
    r"[a-zäöüß]{2,20}(?:[^aeiou\s]t|en|[^aeiou\s]e))\b"
)
"""Opens a German sentence before its verb, as "tomorrow": "Morgen kommt Bo"; no greeting and no Welsh name."""
_HABIT = regex(
    rf"\b(?:every|each|always|usually|whenever|normally|jeden?|immer|chaque|toujours|cada|siempre"
    rf"|(?:for|on|am|le) an? {WEEKDAY_NAME})\b",
    re.IGNORECASE,
)
"""Says that a weekday is meant of every week."""
_CENTURY = 2000
LEAP_DAY = (2, 29)
_WEEK, _MONTH_DAYS = 7, 31


def find_date(text: str, *, after: date | None = None) -> date | None:
    """Return the first complete date in a text, None without one; a date without a year takes the year of `after`."""
    if _DIGIT.search(text) is None:  # most lines have none
        return None
    for pattern in (_NUMERIC, _YEAR_LAST, _NAMED):
        for match in pattern.finditer(text):
            if found := _parse_date(match.groupdict(), after):
                return found
    return None


def _parse_date(parts: dict[str, str | None], after: date | None) -> date | None:
    """Return the date in the groups of a match, None where they make no valid one."""
    # A pattern with two alternatives names the groups of the second `day2`, `month2` and `year2`.
    given = {name: parts.get(name) or parts.get(f"{name}2") for name in ("day", "month", "year")}
    month, year = given["month"] or "", int(given["year"] or (after.year if after else 0))
    number = int(month) if month.isdigit() else _MONTH.get(month.casefold(), 0)
    if not given["month"] or (parts.get("month2") or "A")[0].islower():  # "may 3" in lower case can be the verb
        return None
    try:
        return date(year + (_CENTURY if 0 < year < 100 else 0), number, int(given["day"] or 0))  # noqa: PLR2004
    except ValueError:
        return None


_YEARLY = regex(
    r"(?:birth|name)days?\b|anniversar|\b(?:every|each) year\b|geburtstag|namenstag|jahrestag|anniversaire|cumpleaños"
    r"|aniversari|compleann|verjaardag",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def with_full_dates(text: str, said_on: date | None) -> str:
    """Return a text with complete dates: "by Friday (24 October 2025)", "demain (2025-10-24)", "on 7 February 2026".

    A bare weekday stays as it is, since its week is unknown. A date without a year becomes the one nearest to
    `said_on`, and stays as it is where that is more than half as far away as the next nearest: its year is unknown.
    So does what comes every year, such as a birthday.
    """
    if said_on is None:
        return text
    named = () if _YEARLY.search(text) else _NAMED.finditer(text)
    inserts = {
        match.end(): f" de {near.year}" if " de " in match[0] else f" {near.year}"
        for match in named
        if (near := _nearest_year(match, said_on))
    }
    is_habit = _HABIT.search(text)
    for match in _RELATIVE.finditer(text):
        if is_habit and match["weekday"]:
            continue
        is_named = _NAMED.match(text, match.start("number") if match["number"] else match.end() + 1)
        if not is_named and (day := _relative_date(match, said_on)):
            spelled = f"{'week of ' if match['week'] else ''}{day.day} {day:%B %Y}" if _is_english(match) else f"{day}"
            inserts[match.end()] = f" ({spelled})"
    parts = [text[start:end] + inserts[end] for start, end in pairwise([0, *sorted(inserts)])]
    return "".join([*parts, text[max(inserts, default=0) :]])


def _is_english(match: re.Match[str]) -> bool:
    """Tell whether a relative date is in English words; in other languages no month is named in English beside it."""
    word = (match["away"] or match["week"] or match["weekday"] or "the").casefold()
    return word in _ENGLISH


def _nearest_year(match: re.Match[str], said_on: date) -> date | None:
    """Return the date meant by a day and month without a year; None with a year, or where the year is uncertain."""
    if match["year"] or match["year2"] or not (day := _parse_date(match.groupdict(), said_on)):
        return None
    years = (day.replace(year=day.year + away) for away in (0, 1, -1) if (day.month, day.day) != LEAP_DAY)
    one, *others = sorted(years, key=lambda each: abs(each - said_on)) or [None]
    is_sure = one is not None and all(2 * abs(one - said_on) <= abs(other - said_on) for other in others if other)
    return one if is_sure else None


def _relative_date(match: re.Match[str], said_on: date) -> date | None:
    """Return the date meant by a relative expression; None for a bare weekday, whose week is unknown."""
    if word := match["away"]:
        is_noun = word == "Morgen" and not _MORGEN_FIRST.match(match.string, match.start())  # German "morning"
        return None if is_noun else said_on + timedelta(_AWAY[word.casefold()])
    if number := match["number"] or match["only"]:
        around = (said_on + timedelta(days) for days in range(_MONTH_DAYS))
        near = next((day for day in around if day.day == int(number)), None)
        weekday = match["weekday"] and _WEEKDAY[match["weekday"].casefold()]
        return near if near and (weekday is None or near.weekday() == weekday) else None
    if match["week"]:
        return said_on + timedelta(_WEEK - said_on.weekday())
    ahead = (_WEEKDAY[match["weekday"].casefold()] - said_on.weekday() - 1) % _WEEK + 1
    if match["past"] or match["past2"]:
        return said_on + timedelta(ahead - _WEEK if ahead < _WEEK else -_WEEK)
    return said_on + timedelta(ahead) if match["ahead"] or match["ahead2"] else None
