"""Where in a text a credential stands that somebody told: found and hidden before anything is stored.

What is hidden is gone, so nothing is hidden for being near a word: it has the form of a key, or is named as one and
looks like one. A summary leaves out far more (`credentials.py`), which costs it no more than a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from nous_online.language.pairs.lexicon import FUNCTION_WORDS
from nous_online.language.writing.credentials import (
    ASSIGNED,
    EDGE,
    HINTS,
    KEYWORD,
    NAMED_PHRASE,
    OTHER_WAYS,
    SPOKEN,
    TOKEN,
    is_random,
    may_be_value,
    may_hold,
    mixes,
    names_one,
)
from nous_online.language.writing.sentences import straight

MARK = "[credential hidden]"
Span = tuple[int, int]
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z\d ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----))*(?:-----END [A-Z\d ]{0,60}-----)?"
)
_KEY = re.compile(
    r"\b(?P<mixed>(?:sk|rk)[-_][\w-]{16,200})|\b(?:gh[opsur]_\w{16,200}|github_pat_\w{16,200}|glpat-[\w-]{12,200}"
    r"|(?:hf|npm|pypi)[_-]\w{16,200}|(?:AKIA|ASIA)[A-Z\d]{12,40}|xox[abeoprs]-[\w-]{8,200}|AIza[\w-]{20,200}"
    r"|ya29\.[\w-]{8,200}|eyJ[\w-]{6,2000}\.[\w-]{4,2000}(?:\.[\w-]{0,2000})?)"
    r"|\b(?:Bearer|Basic)\s+(?P<header>[\w.~+/=-]{12,2000})|://[^\s/:@]{1,80}:(?P<password>[^\s/@]{1,80})@"
    r"|(?<!\d)(?P<card>\d{4}[\s-]\d{4}[\s-]\d{4}[\s-]\d{1,7})(?!\d)"
)
_URL = re.compile(r"\b[a-z][a-z\d+.-]{1,20}://[^\s?#]{1,2000}", re.IGNORECASE)
_PUBLIC = re.compile(
    r"(?:ssh-(?:rsa|dss|ed25519)|ecdsa-[\w-]{1,40})\s+[\w+/=]{20,4000}|\bsha\d{1,3}[-:][\w+/=]{20,200}"
)
_BESIDE = re.compile(rf"(?<![^\W_]){KEYWORD}(?![^\W_])[\s:\"'`]{{1,3}}(?P<value>[\w+/=-]{{16,200}})", re.IGNORECASE)
_IS_SPOKEN = re.compile(rf"{SPOKEN}|(?:_pass|pw)\s?[=:]", re.IGNORECASE)
_IS_CODE = re.compile(r"[\s_-]codes?\b", re.IGNORECASE)
"""Of a gate or a door: what people tell an agent to have it told again."""
_RUN = re.compile(r"[A-Za-z\d]{16,200}")
_NEXT_WORD = re.compile(r"[\s-]{1,2}(?P<word>[a-z]{2,12})\b")
_SIGNS = frozenset("@#$%^&*!+=?")
_ENDS_SENTENCE = re.compile(r"[\"'`)\]]{0,3}\s{0,8}(?:[.!?,;](?:\s|$)|$|\n)")
LEAST_CHANGES = 0.3
"""Share of characters of a key at which their kind changes: about 0.45 in random ones, 0.2 in words run together."""
LEAST_DIGITS = 3
LEAST_LETTERS = 4
NAMES = tuple(hint for hint in HINTS if hint[0].isalpha())
"""Without one of these nothing is named as a credential."""
PIECE = 8_000
"""Characters that are read at once, up to the white space before: a pattern at work holds up every other thread."""


def hidden(text: str) -> tuple[str, int]:
    """Return a text with a mark in place of each credential, and how many there were."""
    spans = merged(sorted(spans_of(text)))
    kept, start = list[str](), 0
    for begin, end in spans:
        kept += [text[start:begin], MARK]
        start = end
    return "".join([*kept, text[start:]]), len(spans)


def merged(spans: list[Span]) -> list[Span]:
    """Return spans in order, those that overlap as one."""
    found: list[Span] = []
    for begin, end in spans:
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def spans_of(text: str) -> Iterator[Span]:
    """Yield where credentials stand: whole blocks of keys, then line by line, long ones in pieces."""
    if "PRIVATE KEY" in text:
        yield from (match.span() for match in _PRIVATE_KEY.finditer(text))
    start = 0
    while start < len(text):
        end = text.find("\n", start, start + PIECE) + 1
        if not end and len(text) - start > PIECE:
            end = max(text.rfind(" ", start, start + PIECE) + 1, start + PIECE // 2)
        piece = text[start : end or len(text)]
        if may_hold(piece):
            yield from ((start + begin, start + end) for begin, end in spans_in_line(straight(piece)))
        start += len(piece)


def spans_in_line(line: str) -> Iterator[Span]:
    """Yield where in a line something has the form of a key, or is named as a credential and looks like one."""
    for match in _KEY.finditer(line):
        name = match.lastgroup or ""
        is_one = {"mixed": mixes, "header": is_token, "card": is_card}.get(name, bool)
        if is_one(match[name or 0]):
            yield match.span(name) if name in {"header", "password", "card"} else match.span()
    public = [match.span() for pattern in (_URL, _PUBLIC) for match in pattern.finditer(line)]
    for match in TOKEN.finditer(line):
        is_public = any(begin <= match.start() < end for begin, end in public)
        if not is_public and any(is_random(run) and is_scrambled(run) for run in _RUN.findall(match[0])):
            yield match.span()
    lowered = line.lower()
    if any(name in lowered for name in NAMES):
        yield from named_spans(line)


def named_spans(line: str) -> Iterator[Span]:
    """Yield the values that a line says are a password, key, token or code."""
    for match in ASSIGNED.finditer(line):
        if names_one(match) and looks_told(match):
            yield trimmed(match)
    for pattern in (*OTHER_WAYS, _BESIDE):
        for match in pattern.finditer(line):
            if looks_told(match):
                yield trimmed(match)
    for match in NAMED_PHRASE.finditer(line):
        if FUNCTION_WORDS.isdisjoint(match["words"].casefold().replace("-", " ").split()):
            yield match.start("words"), end_of_phrase(line, match.end("words"))


def end_of_phrase(line: str, end: int) -> int:
    """Return where a row of words that makes no sentence ends."""
    while (more := _NEXT_WORD.match(line, end)) and more["word"] not in FUNCTION_WORDS:
        end = more.end()
    return end


def looks_told(match: re.Match[str]) -> bool:
    """Tell whether what a pattern took for a value looks like a credential, and not like a word about one."""
    begin, end = trimmed(match)
    word, before = match.string[begin:end], match.string[match.start() : begin]
    if _IS_CODE.search(before) or not may_be_value(word) or MARK[1:4] == word[:3]:
        return False
    is_spoken = bool(_IS_SPOKEN.search(match[0].replace(word, " ")))
    if word.isdigit():
        return is_spoken and len(word) >= LEAST_DIGITS
    letters = sum(map(str.isalpha, word))
    if mixes(word):
        return True
    has_sign = bool(_SIGNS.intersection(word)) and letters >= LEAST_LETTERS
    is_plain = letters == len(word) >= LEAST_LETTERS and is_spoken
    is_given = before.rstrip().endswith(("=", ":")) or bool(_ENDS_SENTENCE.match(match.string, end))
    return has_sign or (is_plain and is_given and word.casefold() == word)


def trimmed(match: re.Match[str]) -> Span:
    """Return where the value of a match stands, without the punctuation around it."""
    begin, end = match.span("value")
    word = match["value"]
    return begin + len(word) - len(word.lstrip(EDGE)), begin + len(word.rstrip(EDGE)) if word.rstrip(EDGE) else end


def is_token(value: str) -> bool:
    """Tell whether what stands after `Bearer` or `Basic` is a token and no word."""
    return mixes(value) or value.startswith("eyJ")


def is_scrambled(token: str) -> bool:
    """Tell whether capitals, small letters and digits follow each other as by chance.

    A time (`20261120T093015Z`) keeps to one kind for long, and so do words run together, but for the capital of each.
    """
    kinds = ["d" if char.isdigit() else "u" if char.isupper() else "l" for char in token]
    changes = sum(one != other and (one, other) != ("u", "l") for one, other in pairwise(kinds))
    return changes >= LEAST_CHANGES * len(kinds)


def is_card(number: str) -> bool:
    """Tell whether the last digit of a number is the check digit of a card (Luhn)."""
    digits = [int(char) for char in reversed(number) if char.isdigit()]
    doubled = [digit if place % 2 == 0 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(digits)]
    return sum(doubled) % 10 == 0
