"""Parses a short statement into words, numbers, dates, times, identifiers, quotations and names.

All patterns are bounded, so that hostile text costs linear time.
"""
# ruff: noqa: PLR2004, RUF001 — word lengths are read best in place, and typographic quotes are the subject

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from nous_online.core.patterns import regex
from nous_online.language.lexicon import COPULAS, FUNCTION_WORDS, MONTHS, NUMBER_WORDS, UNITS, tables, word_list
from nous_online.language.pairs.figures import is_of_either, with_plain_figures

SINGULAR_VERBS, NO_NAMES = word_list("singular_verbs"), word_list("never_names") | NUMBER_WORDS.keys()
ALIASES: dict[str, str] = tables()["aliases"]
SCALES = {
    "hundred": 1e2, "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9, "trillion": 1e12,
}  # fmt: skip
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
ORDINAL_WORDS = {word: value for value, word in enumerate(_ORDINALS.split(), start=1) if word != "second"}
CURRENCIES = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy"}
EITHER_HALF = 1_440  # minutes added to a time that may be in the morning or in the evening: "half past three"
NOON = 720
DAWN = 360  # "ten at night" is 22:00, "two at night" is 02:00
HOURS = {"one": 1, **{word: value for word, value in NUMBER_WORDS.items() if 1 < value <= 12}}
AMOUNTS = {"quarter": 15, "half": 30, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25}
WRITTEN = regex(
    r"\b(\d{1,2})(?:[:.](\d{2}))?(?::\d{2})?\s?([ap])\.?m\b\.?|\b([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?\b|\b(noon|midnight)\b",
    re.IGNORECASE,
)
SPOKEN = regex(
    rf"\b(?:(?P<part>{'|'.join(AMOUNTS)}|\d{{1,2}}) (?:minutes )?(?P<way>past|(?<=quarter )to|(?<=minutes )to) )?"
    rf"(?P<hour>\d{{1,2}}|{'|'.join(HOURS)})(?:[:.](?P<minute>\d{{2}}))?(?P<whole> o'clock)?"
    r"(?: in the (?P<day>morning|afternoon|evening)\b| at (?P<night>night)\b)?\b",
    re.IGNORECASE,
)


def extract_times(text: str, mark: Callable[[str], str]) -> tuple[frozenset[int], str]:
    """Return the times in a text, in minutes since midnight, and the text with each time replaced by its `mark`.

    A time that may be in either half of the day has `EITHER_HALF` added.
    """
    found: set[int] = set()

    def keep(minutes: int) -> str:
        found.add(minutes)
        return mark(f"@{minutes}")

    def keep_spoken(match: re.Match[str]) -> str:
        hour = int(match["hour"]) if match["hour"].isdigit() else HOURS[match["hour"].lower()]
        is_time = match["part"] or match["whole"] or match["day"] or match["night"]
        return keep(_spoken(match, hour)) if is_time and hour in HOURS.values() else match.group()

    def keep_written(match: re.Match[str]) -> str:
        hour12, minute12, half, hour, minute, named = match.groups()
        if named:
            return keep(NOON if named.lower() == "noon" else 0)
        if half:
            return keep((int(hour12) % 12 + 12 * (half.lower() == "p")) * 60 + int(minute12 or 0))
        return keep(int(hour) * 60 + int(minute))

    rest = WRITTEN.sub(keep_written, SPOKEN.sub(keep_spoken, text))
    return frozenset(found), rest


def _spoken(match: re.Match[str], hour: int) -> int:
    minutes = hour % 12 * 60 + int(match["minute"] or 0)
    if part := match["part"]:
        amount = int(part) if part.isdigit() else AMOUNTS[part.lower()]
        minutes = (minutes + (amount if match["way"].lower() == "past" else -amount)) % NOON
    if match["day"]:
        return minutes + NOON * (match["day"].lower() != "morning")
    return minutes + (NOON * (minutes >= DAWN) if match["night"] else EITHER_HALF)


def unmatched_times(times: Set[int], others: Set[int]) -> set[int]:
    """Return the times that match none of `others`; "half past three" matches 03:30 and 15:30."""

    def is_one(time: int, other: int) -> bool:
        return time == other or (max(time, other) >= EITHER_HALF and (time - other) % NOON == 0)

    return {time for time in times if not any(is_one(time, other) for other in others)}


def clock(time: int) -> str:
    """Return a time as HH:MM."""
    return f"{time % EITHER_HALF // 60:02}:{time % 60:02}"


FIRST_MARK, LAST_MARK = 0xE000, 0xF8FF  # the private-use characters, more of them than a text has characters
_MARK = regex(f"[{chr(FIRST_MARK)}-{chr(LAST_MARK)}]")
MAX_CHARS = 4_000  # read of a text; a difference after them only keeps no two texts apart, it joins none
_QUOTES = str.maketrans(
    {"‘": "'", "’": "'", "`": "'", "“": '"', "”": '"', "«": '"', "»": '"', "–": "-", "—": "-", "−": "-"}
)
_UNDECOMPOSED = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe", "ı": "i"})
_INITIALS = regex(r"\b(?:[A-Z]\.\s?){2,6}|\b[A-Z]\.[A-Z]\b")
_ALIAS = regex(rf"\b(?:{'|'.join(ALIASES)})\b", re.IGNORECASE)
_COUNTRY = regex(r"\bUS\b")  # read as "USA": in lower case it would be the pronoun
_WORD = regex(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?|[^\w\s]", re.UNICODE)
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DATES = (
    regex(r"\b(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?!\d)"),
    regex(
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<m>{_MONTH})\b(?:\s?,?\s?(?P<y>\d{{4}})\b)?", re.IGNORECASE
    ),
    regex(
        rf"\b(?P<m>{_MONTH})\s(?:the\s)?(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:\s?,?\s?(?P<y>\d{{4}})\b)?",
        re.IGNORECASE,
    ),
    regex(rf"\b(?P<m>{_MONTH})\s?,?\s?(?:of\s)?(?P<y>\d{{4}})\b", re.IGNORECASE),
)
_SLASHED = regex(r"(?<![\w/.])(\d{1,2})[/.](\d{1,2})[/.](\d{4}|\d{2})(?![\w/]|\.\d)")
_BARE_MONTH = regex(
    r"(?<=\b[a-z]\s)|(?<=[a-z,]\s)(January|February|March|April|May|June|July|August|September|October|November|December)\b"
)
_SPOKEN_AMOUNTS = (
    (regex(r"\bhalf an hour\b", re.IGNORECASE), "30 minutes"),
    (regex(r"\b(?:three quarters|three-quarters) of an hour\b", re.IGNORECASE), "45 minutes"),
    (regex(r"\b(?:a )?quarter of an hour\b", re.IGNORECASE), "15 minutes"),
    (regex(r"\b(?:an hour and a half|one and a half hours)\b", re.IGNORECASE), "90 minutes"),
    (regex(r"\b(?:a |one )?fortnight\b", re.IGNORECASE), "14 days"),
    (regex(r"\bhalf a dozen\b", re.IGNORECASE), "6"),
    (regex(r"\bhalf an? (?=[a-z])", re.IGNORECASE), "0.5 "),
    (regex(r"\b(?:a|one) dozen\b", re.IGNORECASE), "12"),
    (regex(r"\b(?:a|one) (?=(?:hundred|thousand|million|billion)\b)", re.IGNORECASE), "1 "),
    (regex(r"\bone (?=point\b)", re.IGNORECASE), "1 "),
    (regex(r"(?<!\w)'(?=[4-9]\d(?![\w']))"), "19"),
)
_AGES = regex(r"\b(under|over)-(\d{1,3})s?\b", re.IGNORECASE)
_MINUS = regex(r"\bminus (?=\d)", re.IGNORECASE)
_POINT = regex(r"\b(\d{1,3}) point (\d)\b(?! ?\d)", re.IGNORECASE)
_HUNDREDS = regex(
    r"(?<![\d.,])(\d{1,2}) hundred\b(?: (?:and )?(\d{1,2})(?![\d:]|[.,]\d| ?(?:%|hundred)))?", re.IGNORECASE
)
_THOUSANDS = regex(
    r"(?<![\d.,])(\d{1,3}) thousand,? (?:and )?(\d{1,3})(?![\d:]|[.,]\d| ?(?:%|hundred|thousand))", re.IGNORECASE
)
"""Compound numbers, after their words were turned into digits: "6 thousand 4 hundred and 12"."""
_IDENTIFIER = regex(r"(?P<token>[\w@#](?:[@#.:+=&?%~-]*+[\w/]++)*+)[@#.:+=&?%~-]*+")
_NUMBER = regex(
    r"(?P<sign>(?<![\w.)-])-\s?)?(?P<money>[$€£¥])?\s?(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)*)"
    r"(?P<ordinal>(?:st|nd|rd|th)\b)?(?:\s?-?(?P<scale>k|bn|m|thousand|million|billion|trillion|hundred)\b)?"
    r"\s?-?(?P<unit>%|°?[^\W\d_]{1,14}\b)?"
)
_TENS = "|".join(word for word, value in NUMBER_WORDS.items() if value >= 20)
_SMALL = "|".join(sorted((word for word, value in NUMBER_WORDS.items() if value < 20), key=len, reverse=True))
_SPELLED = regex(
    rf"\b(?:(?P<tens>{_TENS})(?:[\s-](?P<units>{_SMALL}|one)\b)?|(?P<few>{_SMALL})|(?P<ordinal>{'|'.join(ORDINAL_WORDS)}))\b"
    rf"|\b(?P<limit>under|over)-(?P<ages>{_SMALL})s\b",
    re.IGNORECASE,
)
_ENDINGS = (("ingly", 8), ("edly", 7), ("ies", 5), ("ing", 6), ("ed", 5), ("es", 5), ("s", 4), ("ly", 6), ("e", 5))
_CONTRACTIONS = tuple(
    (regex(pattern), whole)
    for pattern, whole in (
        (r"\bwon't\b", "will not"), (r"(?i)\bcan't\b", "can not"), (r"\bcannot\b", "can not"),
        (r"(?i)(?<=[a-z])n't\b|(?<=[a-z]) n't\b", " not"), (r"(?i)\b(i|you|we|they)'(ve|re|m|ll|d)\b", r"\1"),
        (r"(?<=\w)'s\b", ""),
    )
)  # fmt: skip
_QUANTITY = regex(r"\A[\d.,]++-?([^\W\d_]++)(-[^\W\d_]++)*+")
_FIGURE = regex(r"v?\d+(?:[.,:/-]\d+)*(?:st|nd|rd|th|s|%)?", re.IGNORECASE)
_BEFORE_VERSION = regex(r"\b(?:v|version|release|[A-Z]\w*)\s?$")
_ZEROES = regex(r"(?<!\.0)(?:\.0)++$")
_ROMAN = regex(r"[IVX]{1,5}")
_QUOTED = regex(r'"([^"]{1,120})"|(?<!\w)\'([^\']{2,120})\'(?!\w)')


@dataclass(frozen=True)
class Number:
    """A quantity: `value` in the base unit of `dimension`, `bare` without unit, `shown` the digits as written.

    `is_of_either`: of 1,240 in another language nobody knows whether its separator groups thousands or opens decimals.
    """

    value: float
    shown: str
    dimension: str | None = None
    unit: str | None = None
    version: str | None = None
    bare: float = 0.0
    is_of_either: bool = False

    @property
    def readings(self) -> tuple[Number, ...]:
        """Return each quantity that this may be, the likelier first."""
        if not self.is_of_either:
            return (self,)
        return (self, replace(self, value=self.value / 1_000, bare=self.bare / 1_000, is_of_either=False))


@dataclass(frozen=True)
class Date:
    """A calendar date, any part of which may be missing; `swapped` where day and month may be exchanged (3/4/2025)."""

    year: int | None
    month: int | None
    day: int | None
    swapped: bool = False

    def __str__(self) -> str:
        month = list(MONTHS)[self.month - 1].capitalize() if self.month and self.month <= 12 else None
        return " ".join(str(part) for part in (self.day, month, self.year) if part)


@dataclass(frozen=True)
class StatementWords:
    """The words of one statement in order: `words` in lower case, `cased` as written; contractions are expanded."""

    text: str
    words: tuple[str, ...]
    cased: tuple[str, ...]


@dataclass(frozen=True)
class Reading(StatementWords):
    """One parsed statement.

    `terms` are its words with each date, time, identifier and number normalised: "3,000" and "3000" are "#3000".
    """

    terms: tuple[str, ...]
    numbers: tuple[Number, ...]
    ordinals: frozenset[int]
    dates: tuple[Date, ...]
    times: frozenset[int]
    identifiers: frozenset[str]
    quotes: tuple[str, ...]
    names: tuple[str, ...]
    numerals: frozenset[str]


class _Marks:
    """The terms cut out of a text so far; a private-use character stands in for each, so that the order is kept."""

    def __init__(self) -> None:
        self.terms: list[str] = []

    def mark(self, term: str) -> str:
        self.terms.append(term)
        return f" {chr(FIRST_MARK + len(self.terms) - 1)} "

    def spelled(self, rest: str) -> tuple[str, ...]:
        """Return the words of `rest` with each mark replaced by the term it stands for."""
        words = (_without_accents(word.lower()) for word in _WORD.findall(_expand_contractions(rest)))
        return tuple(
            self.terms[ord(word) - FIRST_MARK] if FIRST_MARK <= ord(word[0]) <= LAST_MARK else word for word in words
        )


@lru_cache(maxsize=65_536)
def read_words(text: str) -> StatementWords:
    """Return the words of one statement, at a third of the cost of `read`; only its first 4,000 characters count."""
    plain = normalise(text)
    cased = tuple(_WORD.findall(_expand_contractions(plain)))
    return StatementWords(plain, tuple(_without_accents(word.lower()) for word in cased), cased)


@lru_cache(maxsize=65_536)
def read(text: str) -> Reading:
    """Return one statement parsed; only its first 4,000 characters count."""
    # Each step takes its terms out of the text: the year of a date or the digits of an identifier are no numbers.
    plain = read_words(text)
    marks = _Marks()
    dates, rest = _extract_dates(plain.text, marks)
    times, rest = extract_times(rest, marks.mark)
    identifiers, rest = _extract_identifiers(rest, marks)
    numbers, ordinals, rest = _extract_numbers(rest, marks)
    return Reading(
        text=plain.text,
        words=plain.words,
        cased=plain.cased,
        terms=marks.spelled(rest),
        numbers=numbers,
        ordinals=ordinals,
        dates=dates,
        times=times,
        identifiers=identifiers,
        quotes=tuple(one or other for one, other in _QUOTED.findall(plain.text)),
        names=_names(plain.cased),
        numerals=_numerals(plain.cased),
    )


def normalise(text: str) -> str:
    """Return a text normalised: NFKC, straight quotes, single spaces, English figures, initials and aliases alike."""
    folded = (
        _MARK.sub(" ", unicodedata.normalize("NFKC", text[:MAX_CHARS])[:MAX_CHARS])
        .translate(_QUOTES)
        .replace("''", '"')
    )
    dotted = _INITIALS.sub(lambda match: match.group().replace(".", "").replace(" ", "") + " ", folded)
    spelled = _ALIAS.sub(lambda match: ALIASES[match.group().lower()], dotted)
    return with_plain_figures(" ".join(_COUNTRY.sub("USA", spelled).split()))


def folded_letters(text: str) -> str:
    """Return the letters and digits of a text in lower case, without accents."""
    lower = text.lower()
    return "".join(filter(str.isalnum, lower if lower.isascii() else _without_accents(lower)))


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    plain = unicodedata.normalize("NFD", word.translate(_UNDECOMPOSED))
    return "".join(c for c in plain if not unicodedata.combining(c)) or word


def _expand_contractions(plain: str) -> str:
    """Return a text with its contractions expanded: "doesn't" as "does not"."""
    if "'" not in plain and "cannot" not in plain:
        return plain
    for pattern, whole in _CONTRACTIONS:
        plain = pattern.sub(whole, plain)
    return plain


def with_plain_dates(text: str) -> str:
    """Return a text with each date that can be read in one way only in figures: "14 Feb" and "February 14th" alike."""
    for pattern in _DATES:
        text = pattern.sub(lambda match: _term_of_date(_date_of(match)), text)
    return text


def _date_of(match: re.Match[str]) -> Date:
    parts = match.groupdict()
    month = parts["m"]
    number = int(month) if month.isdigit() else list(MONTHS.values()).index(month[:3].lower()) + 1
    year, day = (int(parts[name]) if parts.get(name) else None for name in "yd")
    return Date(year, number, day)


def _term_of_date(date: Date) -> str:
    return f"@{date.year or ''}-{date.month}-{date.day or ''}"


def _extract_dates(plain: str, marks: _Marks) -> tuple[tuple[Date, ...], str]:
    found: list[Date] = []

    def keep(match: re.Match[str]) -> str:
        found.append(_date_of(match))
        return marks.mark(_term_of_date(found[-1]))

    def keep_slashed(match: re.Match[str]) -> str:
        first, second, year = (int(part) for part in match.groups())
        year = year if year > 99 else 2000 + year
        found.append(Date(year, min(first, second), max(first, second), swapped=True))
        return marks.mark(_term_of_date(found[-1]))

    for pattern in _DATES:
        plain = pattern.sub(keep, plain)
    plain = _SLASHED.sub(keep_slashed, plain)
    months = [match for match in _BARE_MONTH.findall(plain) if match]
    found += [Date(None, list(MONTHS).index(month.lower()) + 1, None) for month in months]
    return tuple(dict.fromkeys(found)), plain


def _extract_identifiers(plain: str, marks: _Marks) -> tuple[frozenset[str], str]:
    found: set[str] = set()

    def keep(match: re.Match[str]) -> str:
        token = match["token"].rstrip("./:-")
        if token.isalpha() or not is_identifier(token):
            return match.group()
        found.add(token.lower())
        return marks.mark(f"#{token.lower()}") + match.group()[len(token) :]

    rest = _IDENTIFIER.sub(keep, _AGES.sub(r"\1 \2", plain))
    return frozenset(found), rest


def is_identifier(token: str) -> bool:
    """Tell whether a token is a code, path, address or key, and no word or quantity."""
    if "_" in token.strip("_") or "@" in token.strip("@") or "://" in token:
        return True
    if _FIGURE.fullmatch(token):
        return False
    if not (any(c.isdigit() for c in token) and any(c.isalpha() for c in token)):
        return False
    quantity = _QUANTITY.fullmatch(token)
    return not (quantity and (quantity[1].lower() in UNITS or quantity[1].lower() in SCALES or len(quantity[1]) > 2))


def _extract_numbers(plain: str, marks: _Marks) -> tuple[tuple[Number, ...], frozenset[int], str]:
    ordinals: set[int] = set()
    numbers: list[Number] = []

    def in_digits(match: re.Match[str]) -> str:
        if match["ordinal"]:
            return f"{ORDINAL_WORDS[match['ordinal'].lower()]}th"
        if match["limit"]:
            return f"{match['limit']} {NUMBER_WORDS[match['ages'].lower()]}"
        parts = (match["tens"], match["units"], match["few"])
        return str(sum(NUMBER_WORDS.get(part.lower(), 1) for part in parts if part))

    for spoken, written in _SPOKEN_AMOUNTS:
        plain = spoken.sub(written, plain)
    digits = _SPELLED.sub(in_digits, plain)  # "twenty-five" → "25", "third" → "3th"; "one" stays, often a pronoun
    digits = _POINT.sub(r"\1.\2", _MINUS.sub("-", digits))
    digits = _HUNDREDS.sub(lambda match: str(100 * int(match[1]) + int(match[2] or 0)), digits)
    digits = _THOUSANDS.sub(lambda match: str(1_000 * int(match[1]) + int(match[2])), digits)

    def keep(match: re.Match[str]) -> str:
        if match["ordinal"]:
            ordinal = int(match["digits"].replace(",", "").split(".")[0][:15])
            ordinals.add(ordinal)
            return marks.mark(f"#{ordinal}th")
        before = digits[max(0, match.start() - 12) : match.start()]
        number = _number(match, before=before, is_of_either=is_of_either(match["digits"], plain))
        numbers.append(number)
        rest_of_match = "" if number.unit or not match["unit"] else f" {match['unit']} "  # a word that is no unit
        term = marks.mark(term_of(number))
        return f"{term} {marks.mark(f'~{number.dimension}')} " if number.dimension else f"{term}{rest_of_match}"

    rest = _NUMBER.sub(keep, digits)
    return tuple(dict.fromkeys(numbers)), frozenset(ordinals), rest


def term_of(number: Number) -> str:
    """Return what stands for a number among the terms of a statement."""
    return f"#{number.version or format(number.bare, '.12g')}"


def _number(match: re.Match[str], *, before: str, is_of_either: bool) -> Number:
    digits = (match["digits"].replace(".", "") if is_of_either else match["digits"]).replace(",", "")
    word = CURRENCIES[match["money"]] if match["money"] else (match["unit"] or "").lower()
    written = (match["scale"] or "").lower()
    if written == "m" and UNITS.get(word, ("",))[0] not in CURRENCIES.values():  # metres, or millions of money
        word, written = "m", ""
    dimension, factor = UNITS.get(word, (None, 1.0))
    scale = SCALES.get(written, 1.0)
    versioned = "." in digits and (digits.count(".") > 1 or bool(_BEFORE_VERSION.search(before)))
    version = _ZEROES.sub("", digits) if versioned else None
    bare = float(".".join(digits.split(".")[:2])) * scale * (-1 if match["sign"] else 1)
    return Number(bare * factor, match["digits"], dimension, word if dimension else None, version, bare, is_of_either)


def _names(cased: tuple[str, ...]) -> tuple[str, ...]:
    """Return the capitalised words, without those that are capitalised only as first words or in a title."""
    letters = [word for word in cased if word[0].isalpha() and len(word) > 3]
    titled = len(letters) >= 4 and all(word[0].isupper() or word in FUNCTION_WORDS for word in letters)
    titled = titled and not COPULAS & set(cased)
    found: list[str] = []
    opening = True
    for index, word in enumerate(cased):
        if word[0].isalpha():
            lower = word.lower()
            follower = cased[index + 1] if index + 1 < len(cased) else ""
            usable = word[0].isupper() and len(word) > 1 and lower not in NO_NAMES and not titled
            if usable and (not opening or (word.isupper() and len(word) > 1) or _opens_as_name(lower, follower)):
                found.append(word)
            opening = False
        else:
            opening = word in {".", "!", "?", ":", '"'} or (opening and not word.isalnum())
    return tuple(dict.fromkeys(found))


def _opens_as_name(lower: str, follower: str) -> bool:
    """Tell whether the first word of a sentence can only be a name: no plural, and a verb or a name follows."""
    if lower in FUNCTION_WORDS or lower.endswith(("ing", "ed", "ly")):
        return False
    next_word = follower.lower()
    is_third_person = next_word.endswith("s") and not next_word.endswith("ss") and next_word not in FUNCTION_WORDS
    if lower.endswith("s"):  # "Jonas approves", but "Orders are kept" and "Deploys happen"
        return follower[:1].isupper() or next_word in SINGULAR_VERBS or is_third_person
    return follower[:1].isupper() or next_word in FUNCTION_WORDS or next_word.endswith(("s", "ed"))


def _numerals(cased: tuple[str, ...]) -> frozenset[str]:
    """Return Roman numerals that follow a capitalised word, as in "Leopold II"."""
    return frozenset(
        second
        for first, second in pairwise(cased)
        if _ROMAN.fullmatch(second) and first[0].isupper() and len(first) > 1
    )


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a word without the commonest English endings: "plays", "played" and "playing" agree."""
    if len(word) < 4 or not word.isalpha():
        return word
    for ending, least in _ENDINGS:
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            root = word[: -len(ending)]
            return root[:-1] if len(root) > 3 and root[-1] == root[-2] and ending in {"ing", "ed"} else root
    return word
