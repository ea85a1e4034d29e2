"""When a statement says that what it tells is yet to begin: "from January", "ab dem 1. März"; by rule."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from nous_online.core.patterns import regex
from nous_online.language.lexicon import MONTH_NUMBERS

STARTS = (
    r"from|starting(?: from| in| on)?|beginning(?: in| on)?|as (?:of|from)|effective(?: from)?|ab|à partir d[eu]|dès"
    r"|a partir del?|desde|a partire da(?:l|ll)?|vanaf"
)
MONTH = "|".join(sorted(map(re.escape, MONTH_NUMBERS), key=len, reverse=True))
BEGINNING = regex(
    rf"(?<![\w'-])(?P<start>{STARTS})\s(?:the\s|dem\s|le\s|el\s|il\s)?"
    r"(?:(?P<day>\d{1,2})(?:st|nd|rd|th|er|[.º°])?\s(?:of\s|de\s)?)?"
    rf"(?P<month>{MONTH})\b\.?(?:\s(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:.]))?"
    r"(?:,?\s(?:of\s|de\s|del\s)?(?P<year>\d{4}))?(?![\w-])"
    r"(?!\s?[-\u2013]|\s(?:to|until|till|through|bis|à|au|hasta|tot)\b)",
    re.IGNORECASE,
)
COMING = regex(
    r"\b(?:next (?:month|year)|nächste[ns] (?:monats?|jahres?|jahr)|mois prochain|an(?:née)? prochaine?"
    r"|(?:mes|año) que viene|próximo (?:mes|año)|volgende maand|volgend jaar)\b",
    re.IGNORECASE,
)
YEARS_END = regex(
    r"\b(?:after (?:christmas|xmas|(?:the )?new year)|nach (?:weihnachten|neujahr)"
    r"|après noël|después de (?:navidad|reyes))\b",
    re.IGNORECASE,
)
"""The turn of the year, which is ahead in autumn and past in spring."""
AUTUMN = 9  # the month from which it is ahead
ALSO_NAMES = frozenset({"april", "may", "june", "august"})  # behind a small "from" these may be people
MONTHS_AHEAD = 6  # a month without a year that is further ahead is the past one
LEAST_AHEAD = timedelta(days=7)


def begins(text: str, said_at: datetime | None) -> str | None:
    """Return the words by which a statement says that it holds from a later month on; None where it holds already.

    What begins on a day within a week counts as there: nobody needs the old value that long.
    """
    if said_at is None:
        return None
    if coming := COMING.search(text):
        return coming[0]
    if said_at.month >= AUTUMN and (turn := YEARS_END.search(text)):
        return turn[0]
    return next((match[0] for match in BEGINNING.finditer(text) if _is_ahead(match, said_at)), None)


def without_starts(a: str, b: str) -> tuple[str, str]:
    """Return two statements that both open with when they begin, without it: "From May a loaf is …", "From June …"."""
    openings = BEGINNING.match(a), BEGINNING.match(b)
    if not (openings[0] and openings[1]):
        return a, b
    first, second = ((text[each.end() :]).lstrip(" ,") for text, each in zip((a, b), openings, strict=True) if each)
    return (first, second) if first and second else (a, b)


def _is_ahead(match: re.Match[str], said_at: datetime) -> bool:
    is_bare = not (match["day"] or match["day2"] or match["year"])
    if is_bare and match["month"].casefold() in ALSO_NAMES and match["start"] == "from":  # "a letter from June"
        return False
    month = MONTH_NUMBERS[match["month"].casefold()]
    ahead = (month - said_at.month) % 12
    year = int(match["year"] or said_at.year + (said_at.month + ahead > 12))  # noqa: PLR2004 (months of a year)
    if not match["year"] and ahead > MONTHS_AHEAD:
        return False
    day = int(match["day"] or match["day2"] or 1)
    try:
        begin = said_at.replace(year=year, month=month, day=day)
    except ValueError:
        return False
    return begin - said_at > LEAST_AHEAD
