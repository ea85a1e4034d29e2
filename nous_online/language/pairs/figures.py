"""Numbers, dates and hours in the forms of other languages, written as English writes them. Pure.

"1.240,50" becomes "1240.5", "3.7. um 14.30 Uhr" becomes "3 July um 14:30 Uhr", and "7月3日" "3 July".
"""
# ruff: noqa: PLR2004 — days, months and hours are read best in place

from __future__ import annotations

import re

from nous_online.core.patterns import regex
from nous_online.language.lexicon import (
    ENGLISH_MONTHS,
    FUNCTION_WORDS,
    MONTH_NUMBERS,
    UNITS,
    UNSPACED,
    is_english,
    tables,
    word_list,
)

NUMERALS: dict[str, str] = {
    word: figure for figure, words in tables()["numerals"].items() for word in words.casefold().split()
}
"""Numbers in words of other languages, and their figures."""
_DIGIT = regex(r"\d")
_WORD = regex(r"[^\W\d_]+")
_MONEY = "|".join(sorted(map(re.escape, word_list("money")), key=len, reverse=True))
_NUMBER = regex(
    r"(?<![\w.,:/'])(?<!\d )(?P<whole>[1-9]\d{0,2}"
    r"(?:(?: \d{3}){1,4}(?! ?\d)|(?:\.\d{3}){1,2}|(?:'\d{3}){1,4}|(?:,\d{3}){1,4}(?=\.\d))|\d{1,15})"
    rf"(?P<fraction>,\d{{1,15}}|(?<=[\d',]\d{{3}})\.\d{{1,15}})?(?!\d|[.,:/']\d)(?P<money> ?(?:{_MONEY})(?!\w))?",
    re.IGNORECASE,
)
_SEPARATOR = regex("[ .,']")
_OPEN = regex(r"[1-9]\d{0,2}[.,]\d{3}")
"""A whole number that is a thousand in one language and has three decimals in another: "1.240"."""
_UNIT = regex(r" ?(%|°?[^\W\d_]{1,14})(?!\w)")
_MONTH = "|".join(sorted(map(re.escape, MONTH_NUMBERS), key=len, reverse=True))
_NAMED_DAY = regex(
    rf"(?<![\w.,:/-])(?P<day>\d{{1,2}})(?:\.|er|º|°)? (?:de )?(?P<month>{_MONTH})\b(?: (?:del? )?(?P<year>\d{{4}})\b)?",
    re.IGNORECASE,
)
_DAY = regex(
    r"(?:(?P<at>\b(?:am|vom|zum|bis|ab|seit|dem|den|der) )|(?<![\w.,:/-]))(?P<day>\d{1,2})\.(?P<month>\d{1,2})\."
    r"(?:(?P<year>\d{4})\b|(?(at)|(?= (?:um|ab|von|bis) )))(?!\w|[.,]\d)",
    re.IGNORECASE,
)
"""A day in digits: behind a preposition, with its year, or before an hour; else it may number a section."""
_HOUR = regex(
    r"(?<![\w.,:/-])(?P<hour>[01]?\d|2[0-3])(?:(?:[.:](?P<minute>[0-5]\d))?(?= ?Uhr\b)| ?h ?(?P<past>[0-5]\d)\b)",
    re.IGNORECASE,
)
_UNSPACED_MYRIADS = regex(r"(?<![\d.,])(\d{1,4}) ?[万萬만] ?(?:(\d) ?[千천]|(\d{1,4})(?![\d.,]))?")
_UNSPACED_GROUPS = regex(r"(?<=\d),(?=\d{3}(?!\d))")
_UNSPACED_DAY = regex(r"(?<!\d)(?:(?P<year>\d{4}) ?[年년] ?)?(?P<month>\d{1,2}) ?[月월] ?(?P<day>\d{1,2}) ?[日일号號]")
_UNSPACED_HOUR = regex(
    r"(?:(?P<morning>午前|上午|오전)|(?P<evening>午後|下午|오후))? ?(?<!\d)(?P<hour>\d{1,2}) ?[時时시](?![間间])"
    r" ?(?:(?P<minute>\d{1,2}) ?[分분]|(?P<half>[半반]))?"
)
_BESIDE = regex(rf"(?<={UNSPACED.pattern})(?=\d)|(?<=\d)(?={UNSPACED.pattern})")


def with_plain_figures(text: str) -> str:
    """Return a text of single spaces with its numbers, dates and hours as English writes them.

    What is open stays: "1.240" and "1,240" have a thousand in one language and three decimals in another.
    """
    if not _DIGIT.search(text):
        return text
    if UNSPACED.search(text):
        return _of_unspaced_script(text)
    if not is_english(text):
        text = _HOUR.sub(_hour, _DAY.sub(_day, _NAMED_DAY.sub(_day, text)))
    return _NUMBER.sub(lambda match: _number(match, text), text)


def _number(match: re.Match[str], text: str) -> str:
    whole, fraction = match["whole"], match["fraction"] or ""
    groups = _SEPARATOR.split(whole)
    is_grouped = len(groups) > 1
    if not (is_grouped or fraction) or (fraction.startswith(",") and _OPEN.fullmatch(whole + fraction)):
        return match[0]
    if is_english(text):  # "rooms 2,5 and 7" is a list; a text without small words may be in any language
        is_sure = "'" in whole or bool(" " in whole and match["money"])
        is_evident = is_grouped or whole == "0" or _is_measured(match) or _has_no_small_words(text)
        is_sure = is_sure or (fraction.startswith(",") and is_evident)
    else:
        is_sure = bool(fraction or match["money"]) or "." not in whole or len(groups) > 2
    if not is_sure:
        return match[0]
    decimals = fraction[1:] if is_english(text) else fraction[1:].rstrip("0")
    return "".join(groups) + (f".{decimals}" if decimals else "") + (match["money"] or "")


def is_of_either(figures: str, text: str) -> bool:
    """Tell whether figures of a text may be a thousand as well as three decimals: in English they are not."""
    return _OPEN.fullmatch(figures) is not None and not (is_english(text) or UNSPACED.search(text))


def _is_measured(match: re.Match[str]) -> bool:
    unit = _UNIT.match(match.string, match.end())
    return unit is not None and unit[1].casefold() in UNITS


def _has_no_small_words(text: str) -> bool:
    return FUNCTION_WORDS.isdisjoint(_WORD.findall(text.casefold()))


def _day(match: re.Match[str]) -> str:
    parts = match.groupdict()
    day, month = int(parts["day"]), parts["month"]
    number = int(month) if month.isdigit() else MONTH_NUMBERS[month.casefold()]
    if not (1 <= day <= 31 and 1 <= number <= 12):
        return match[0]
    year = f" {parts['year']}" if parts["year"] else ""
    return f"{parts.get('at') or ''}{day} {ENGLISH_MONTHS[number - 1].capitalize()}{year}"


def _hour(match: re.Match[str]) -> str:
    return f"{int(match['hour']):02}:{match['minute'] or match['past'] or '00'}"


def _of_unspaced_script(text: str) -> str:
    """Return a text of a script without spaces in the same way; a space parts its figures from its words."""
    text = _UNSPACED_HOUR.sub(_unspaced_hour, _UNSPACED_DAY.sub(lambda match: f" {_day(match)} ", text))
    plain = _UNSPACED_MYRIADS.sub(_myriads, _UNSPACED_GROUPS.sub("", text))
    return " ".join(_BESIDE.sub(" ", plain).split())


def _unspaced_hour(match: re.Match[str]) -> str:
    hour = int(match["hour"])
    hour = hour % 12 + 12 * bool(match["evening"]) if match["morning"] or match["evening"] else hour
    return f" {hour:02}:{int(match['minute'] or 30 * bool(match['half'])):02} " if hour < 24 else match[0]


def _myriads(match: re.Match[str]) -> str:
    myriads, thousands, rest = (int(part or 0) for part in match.groups())
    return str(10_000 * myriads + 1_000 * thousands + rest)
