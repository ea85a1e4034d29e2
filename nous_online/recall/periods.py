"""The days, months and years a question names. Pure; time linear in the length of the question.

Strict on purpose: a number, "may" or "march" alone is not a date. A library that searches for dates takes "we", "say"
and "may" for some, which costs more than it helps here: docs/decisions/0026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

MONTH_NAMES = """\
january januar janvier enero gennaio janeiro januari tammikuuta tammikuu stycznia styczeń ledna leden ocak января январь січня січень يناير जनवरी
february februar février febrero febbraio fevereiro februari helmikuuta helmikuu lutego luty února únor şubat февраля февраль лютого лютий فبراير फ़रवरी
march märz mars marzo março maart marts maaliskuuta maaliskuu marca marzec března březen mart марта март березня березень مارس मार्च
april avril abril aprile huhtikuuta huhtikuu kwietnia kwiecień dubna duben nisan апреля апрель квітня квітень أبريل अप्रैल
may mai mayo maggio maio mei maj toukokuuta toukokuu maja května květen mayıs мая май травня травень مايو मई
june juni juin junio giugno junho kesäkuuta kesäkuu czerwca czerwiec června červen haziran июня июнь червня червень يونيو जून
july juli juillet julio luglio julho heinäkuuta heinäkuu lipca lipiec července červenec temmuz июля июль липня липень يوليو जुलाई
august août agosto augustus augusti elokuuta elokuu sierpnia sierpień srpna srpen ağustos августа август серпня серпень أغسطس अगस्त
september septembre septiembre settembre setembro syyskuuta syyskuu września wrzesień září eylül сентября сентябрь вересня вересень سبتمبر सितंबर
october oktober octobre octubre ottobre outubro lokakuuta lokakuu października październik října říjen ekim октября октябрь жовтня жовтень أكتوبر अक्टूबर
november novembre noviembre novembro marraskuuta marraskuu listopada listopad listopadu kasım ноября ноябрь листопада листопад نوفمبر नवंबर
december dezember décembre diciembre dicembre dezembro desember joulukuuta joulukuu grudnia grudzień prosince prosinec aralık декабря декабрь грудня грудень ديسمبر दिसंबर"""  # noqa: E501, RUF001 - a line a month; Turkish has an i without a dot
"""The names of the months in eighteen languages, a line a month, as Unicode CLDR has them."""
ENGLISH_MONTHS = [line.split()[0] for line in MONTH_NAMES.split("\n")]
MONTHS = {
    **{name: number for number, line in enumerate(MONTH_NAMES.split("\n"), start=1) for name in line.split()},
    **{name[:3]: number for number, name in enumerate(ENGLISH_MONTHS, start=1)},
    "sept": 9,
}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
COUNTS = ("a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
MOST_CHARACTERS = 2_000
"""Characters of a question that are searched for dates."""
MOST_PERIODS = 8
FIRST_YEAR, LAST_YEAR = 1900, 2199


def _any(words: Sequence[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


_MONTH = rf"(?P<month>{_any(list(MONTHS))})\.?"
_YEAR = r"(?P<year>\d{4})"
_DAY = r"(?P<day>\d{1,2})"
_OF = r"(?:of\s|de\s|del\s)?"
_DATES = [
    re.compile(rf"(?<![\w.-]){pattern}(?![\w-]|[:.,]\d)")
    for pattern in (
        rf"{_YEAR}-(?P<month>\d\d)(?:-(?P<day>\d\d)(?:t[\d:.]{{4,15}}z?)?)?",
        rf"{_DAY}\.\s?(?P<month>\d{{1,2}})\.\s?{_YEAR}",
        rf"(?P<day>\d{{1,2}})/(?P<month>\d{{1,2}})/{_YEAR}",
        rf"(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})/{_YEAR}",
        rf"{_DAY}(?:st|nd|rd|th|er|[.º])?\s{_OF}{_MONTH}(?:,?\s{_OF}{_YEAR})?",
        rf"{_MONTH}\s(?:the\s)?{_DAY}(?:st|nd|rd|th)?(?:,?\s{_YEAR})?",
        rf"{_MONTH},?\s{_OF}{_YEAR}",
        rf"(?:in|during|of|since|this|last|early|late|mid)\s(?P<month>{_any(ENGLISH_MONTHS)})(?!\s\d)",
        rf"(?:in|during|of|since|for|year|en|em|im|nel|jahr|año|ano|année|w|в)\s{_YEAR}",
    )
]
_DATES.append(re.compile(rf"(?<!\d){_YEAR}年(?:(?P<month>\d{{1,2}})月(?:(?P<day>\d{{1,2}})日)?)?"))
_AGO = re.compile(rf"(?<!\w)(?P<count>\d{{1,3}}|an|one|{_any(COUNTS)})\s(?P<unit>day|week|month|year)s?\sago(?!\w)")
_LATELY = re.compile(
    rf"(?<!\w)(?:(?P<day>the day before yesterday|yesterday|last night|today)"
    rf"|(?P<which>last|past|this)\s(?P<unit>week|weekend|month|year|{_any(WEEKDAYS)}))(?!\w)"
)


@dataclass(frozen=True)
class Period:
    """From `start` up to, but not including, `end`."""

    start: datetime
    end: datetime


def periods_in(question: str, *, at: datetime) -> tuple[Period, ...]:
    """Return the days, months and years a question names, each once, the exact ones first.

    Read are dates of any order with their month in words (eighteen languages) or in digits, a month with its year, a
    year after a preposition, and English words such as "yesterday", "last week" and "three days ago", which are
    relative to `at`. A day or month without a year is its latest up to `at`; a date in digits that could be read in
    two orders is both. Nothing is read as of a moment outside the years 1900 to 2199.
    """
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        return ()
    text = " ".join(question[:MOST_CHARACTERS].casefold().split())
    # The exact ones first: memories of the first period are nominated, the others only raise a score.
    found = dict.fromkeys([*_dated(text, at), *_ago(text, at), *_lately(text, at)])
    return tuple(found)[:MOST_PERIODS]


def _dated(text: str, at: datetime) -> Iterator[Period]:
    """Yield the periods named by a date; the span of a longer date is not matched again by a shorter pattern."""
    taken: list[tuple[int, int]] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(start < stop and begin < end and (begin, stop) != (start, end) for begin, stop in taken):
                continue
            taken.append((start, end))
            period = _period(match.groupdict(), at)
            if period:
                yield period


def _period(parts: dict[str, str | None], at: datetime) -> Period | None:
    """Return the year, month or day that the parts of a date name; None for a day that does not exist."""
    month = parts.get("month") or ""
    number = int(month) if month.isdigit() else MONTHS.get(month)
    day, year = (int(parts.get(name) or 0) for name in ("day", "year"))
    if year and not FIRST_YEAR <= year <= LAST_YEAR:
        return None
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        start = midnight.replace(year=year or at.year, month=number or 1, day=day or 1)
        if not year and start > at:  # without a year it is the latest up to `at`
            start = start.replace(year=at.year - 1)
    except ValueError:
        return None
    if day:
        return Period(start, start + timedelta(days=1))
    return Period(start, _months_later(start, 1 if number else 12))


def _ago(text: str, at: datetime) -> Iterator[Period]:
    """Yield the periods "… days, weeks, months or years ago"; the longer the unit, the wider the period."""
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    for match in _AGO.finditer(text):
        word, unit = match["count"], match["unit"]
        count = int(word) if word.isdigit() else 1 if word in ("an", "one") else COUNTS.index(word) + 1
        if unit == "day":
            start, days = midnight - timedelta(days=count), 1
        elif unit == "week":  # seven days around the day meant
            start, days = midnight - timedelta(days=7 * count + 3), 7
        elif unit == "month":  # 21 days around it
            start, days = _months_later(midnight.replace(day=1), -count) + timedelta(days=at.day - 11), 21
        else:
            start, days = midnight.replace(year=max(at.year - count, 1), month=1, day=1), 366
        yield Period(start, start + timedelta(days=days))


def _lately(text: str, at: datetime) -> Iterator[Period]:
    """Yield yesterday, and the last or this week, month, year or weekday; the last week ends where today begins."""
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    day = timedelta(days=1)
    days = {"today": 0, "yesterday": 1, "last night": 1, "the day before yesterday": 2}
    for match in _LATELY.finditer(text):
        unit, is_this = match["unit"], match["which"] == "this"
        if match["day"]:
            start = midnight - days[match["day"]] * day
            yield Period(start, start + day)
        elif unit in WEEKDAYS:
            start = midnight - ((at.weekday() - WEEKDAYS.index(unit)) % 7 or (0 if is_this else 7)) * day
            yield Period(start, start + day)
        else:
            monday, first = midnight - at.weekday() * day, midnight.replace(day=1)
            begins = {"month": first, "year": first.replace(month=1)}.get(unit, monday)
            back = {"month": _months_later(first, -1), "year": begins.replace(year=max(at.year - 1, 1))}
            start = begins if is_this else back.get(unit, monday - 7 * day)
            ends = begins if unit == "year" and not is_this else midnight + is_this * day
            yield Period(start, max(ends, start + day))


def _months_later(moment: datetime, months: int) -> datetime:
    """Return the first of the month so many months later."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=max(year, 1), month=month + 1, day=1)
