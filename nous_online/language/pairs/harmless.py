"""What may differ between two texts that still say the same: one short positive list, and doubt keeps two.

Any other word, and any other order of words, is another statement until a judge that reads says that it is not.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from nous_online.core.texts import seen_of
from nous_online.language.pairs.lexicon import NUMBER_WORDS, UNITS

QUOTES = str.maketrans({"‘": "'", "’": "'", "`": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "…": "."})  # noqa: RUF001 (typographic quotes are the subject)
WIDE = re.compile("[、。，；：！「」『』]")  # noqa: RUF001 (so are full-width marks)
OPENING, CLOSING = "\"'¡", ".,;:!،؛।\"'"
"""Punctuation around a word; one inside ("C++", "3.5") and a question mark stay."""
LABEL = re.compile(r"^\s*(?:reminder|note(?: to self)?|by the way|btw|fyi|hey|ok|okay)\s?[:,]\s", re.IGNORECASE)
"""What a statement may be announced with; without the colon "Reminder emails are sent" speaks of emails."""
CONTRACTIONS = (
    (re.compile(r"\bcan(?:'|no)t\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"(?<=[a-z])n't\b"), " not"),
    (re.compile(r"\b(it|that|there|here|he|she|what|who)'s\b"), r"\1 is"),
    (re.compile(r"\bi'm\b"), "i am"),
    (re.compile(r"\b(you|we|they)'re\b"), r"\1 are"),
    (re.compile(r"\b(i|you|we|they)'ve\b"), r"\1 have"),
    (re.compile(r"\b(i|you|we|they|it|he|she|that|there)'ll\b"), r"\1 will"),
)
LONGEST_SYMBOL = 2
"""Letters of a unit whose case tells it from another: "Mb", "MB"."""
CLOCK = re.compile(
    r"(?<![\d:.])(?:(\d{1,2})(?:[:.](\d{2}))?\s?([ap])\.?m\b|([01]?\d|2[0-3]):(\d{2}))(?![:\d])", re.IGNORECASE
)
MONEY = re.compile(r"([$€£¥])\s?(\d(?:[\d.,]*\d)?)")
CURRENCY = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy"}
THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\d,])")
MEASURED = re.compile(r"(?<![\w.,-])(\d(?:[\d.,]*\d)?)\s?([^\W\d_]+|%)(?!\w)")
AGREEING = {"are": "is", "were": "was", "have": "has", "do": "does"}
"""Verbs in the number of a subject that is the same word in both: "the team is", "the team are"."""
PRONOUN = frozenset({"I"})
ARTICLES = frozenset({"a", "an", "the"})
ARTICLE_MATTERS = frozenset({"few", "little", "most", ""})
"""Words that say something else behind an article ("few came", "a few came"), and the end of the text: "grade A"."""
FILLERS = frozenset({"please", "btw", "fyi", "also"})
ENGLISH = (frozenset(NUMBER_WORDS) - {"zero", "four", "six", "ten", "eleven"}) | frozenset(
    """the and with that this these those they their our your you from which when where who would should could does
    don't doesn't didn't isn't aren't wasn't weren't can't cannot won't hasn't haven't it's that's there's i'm you're
    we're they're i've you've we've they've i'll you'll we'll they'll please btw""".split()  # noqa: SIM905 (words)
)
"""Words no other language in Latin letters is likely to hold: where none stands, no other word may be left out."""


def may_be_same(a: str, b: str) -> bool:
    """Tell whether two texts have the same words in the same order, but for differences that never change the meaning.

    In any language: case, spacing, the punctuation around words, a label in front such as "Reminder:", the spelling of
    a unit or an hour. In English besides: articles, contractions, `please` and its like, a number in words, the number
    of a verb.
    """
    one, other = spelling(a), spelling(b)
    if one == other:
        return bool(one) or a == b
    is_english = bool(ENGLISH & {*one, *other})
    said = wording(a, is_english=is_english)
    return bool(said) and said == wording(b, is_english=is_english)


@lru_cache(maxsize=65_536)
def spelling(text: str) -> tuple[str, ...]:
    """Return the words of a text whatever their case, spacing and punctuation."""
    plain = WIDE.sub(" ", unicodedata.normalize("NFC", LABEL.sub("", seen_of(text))).translate(QUOTES))
    tokens = [token for written in plain.split() if (token := _bare(written))]
    return tuple(
        token if _has_own_case(token, before) else token.casefold()
        for before, token in zip(["", *tokens], tokens, strict=False)
    )


def _bare(written: str) -> str:
    """Take the punctuation around a word away, but for feet and inches, and the comma that makes an answer of "no,"."""
    word = written.lstrip(OPENING)
    token = word.rstrip(CLOSING)
    mark = word[len(token) : len(token) + 1]
    is_length = mark in {"'", '"'} and token[-1:].isdigit()
    return token + mark if is_length or (mark == "," and token.lower() in {"no", "not"}) else token


def _has_own_case(token: str, before: str) -> bool:
    """Tell whether another case may be another thing: a key ("aB3"), a unit ("5 Mb"), a letter ("plan A")."""
    if any(map(str.isdigit, token)):
        return token not in {token.lower(), token.upper()}
    is_letter = len(token) == 1 and bool(before) and token not in PRONOUN
    return is_letter or (len(token) <= LONGEST_SYMBOL and before[-1:].isdigit())


@lru_cache(maxsize=65_536)
def wording(text: str, *, is_english: bool) -> tuple[str, ...]:
    """Return the words of a text in one wording, as far as its language is known to allow."""
    plain = " ".join(spelling(text))
    if is_english:
        for pattern, opened in CONTRACTIONS:
            plain = pattern.sub(opened, plain)
        plain = THOUSANDS.sub(lambda match: match[0].replace(",", ""), plain)
        plain = " ".join(str(NUMBER_WORDS.get(word, word)) for word in plain.split())
    plain = MONEY.sub(lambda match: f"{match[2]} {CURRENCY[match[1]]}", CLOCK.sub(_hour, plain))
    tokens = MEASURED.sub(_measure, plain).split()
    return tuple(
        AGREEING.get(token, token) if is_english else token
        for token, follower in zip(tokens, [*tokens[1:], ""], strict=False)
        if not is_english or not (token in FILLERS or (token in ARTICLES and follower not in ARTICLE_MATTERS))
    )


def _hour(match: re.Match[str]) -> str:
    """Write an hour of the day in one way: "8 pm" and "20:00"."""
    hour, minute, half, hour24, minute24 = match.groups()
    if half is None:
        return f"{int(hour24):02}:{minute24}"
    return f"{int(hour) % 12 + 12 * (half in 'pP'):02}:{minute or '00'}"


def _measure(match: re.Match[str]) -> str:
    """Write a unit behind a number in one way: "45 euros" and "45 eur"; another unit of its kind is another word."""
    unit = UNITS.get(match[2])
    return match[0] if unit is None else f"{match[1]} {unit[0]}*{unit[1]:g}"
