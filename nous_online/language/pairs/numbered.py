"""Things that a number or code names: "Order 5501 is shipped" and "Order 5502 is shipped" are about two.

By rule, without a model. Where the number is a value ("We are in room 12", "Version 4 is live"), it names nothing.
"""

from __future__ import annotations

import itertools
import re
from functools import lru_cache

from nous_online.core.patterns import regex
from nous_online.language.lexicon import (
    ARTICLES,
    ATTRIBUTES,
    DATED,
    FOREIGN_WORDS,
    FUNCTION_WORDS,
    MONTH_NUMBERS,
    UNITS,
    phrases,
    word_list,
)

WORD = regex(r"[^\W_](?:[\w'\u2019.:%/-]*\w)?%?|\S")
CODE = regex(r"(?:[a-z]{1,5}[/-]?)?\d{1,9}(?:[/-][a-z\d]{1,9}){0,3}[a-f]?")
"""A number or code that may name a thing: "12", "12b", "bx-17", "2024-118", but not "3.11", "9:30" or "40kg"."""
NO_CODE = regex(r"\d{1,2}[/-]\d{1,2}|\d{4}-\d\d-\d\d|v\d+")  # a score or hours ("9-17"), a day, a version
NUMBER_MARK = regex(
    r"(?:\b(?:n[or]|num|number|nummer|número|numéro)\b\.?|n[º°]|#)\s?(?=[a-z]{0,5}[/-]?\d)", re.IGNORECASE
)
"""What may stand between a thing and its number: "Rechnung Nr. 1041"."""
OPENING = ARTICLES | frozenset({"der", "die", "das", "den", "dem", "el", "la", "le", "les", "los", "las"})
OF = frozenset({"of", "de", "du", "del", "von"})
OF_WHAT = regex(r"(?:of|de|du|del|von|des|der) (?!\d)", re.IGNORECASE)
LABELLING = regex(r"\A(?:\s?[:\u2013\u2014-]\s|\W*\Z)")
STATE = regex(r"\A(?![\w-]{1,30}(?:s|ly)\b)([a-zß-ÿ-]{4,30})\W*\Z")
"""A last word that is no plural: "Gerät 12 defekt", but not "Klasse 24 Kinder" or "class 24 pupils"."""
IS = regex(r"(?:is|was|runs|ist|war|wird|es|est) (?:(?:now|jetzt|ahora|maintenant) )?", re.IGNORECASE)
JOINTS = frozenset({"and", "or", "but", "und", "oder", "aber", "y", "o", "pero", "et", "ou", "mais"})
PLACING = frozenset({"in", "at", "on", "from", "im", "am", "auf", "en", "dans", "à"})
PICKED = word_list("singling") | word_list("owning")
MOST_WORDS, MOST_OF_NOTE = 10, 2  # before the number, in a statement with a verb and in a note without one
MOST_READ = 200  # characters
SMALL_WORDS = FUNCTION_WORDS | FOREIGN_WORDS
UNNUMBERED = SMALL_WORDS | ATTRIBUTES | DATED | MONTH_NUMBERS.keys() | UNITS.keys() | word_list("before_values")
"""Words before a number that names no thing: it moves on, is a day or a quantity, or stands behind a small word."""
NO_VERBS = SMALL_WORDS | JOINTS | DATED | UNITS.keys()
BEHIND_NOUNS = JOINTS | OF | PLACING | {"for", "für", "pour", "para", "per"}
DOING = word_list("irregular_past") | word_list("of_persons") | frozenset({"use", "keep", "add", "give"})
IS_DONE, IS_OF_ONE = map(phrases, ("is_done", "is_of_one"))
VERB_BEHIND = regex(
    r"(?:(?:in|at|on|of|from|to|for|with|by|im|am|von|für|nach|de|del|en|para|à|pour|du|au)"
    r"(?: [\w'\u2019-]{1,30}){1,3}? )?"
    rf"(?P<verb>{phrases('tells_of_one').pattern})",
    re.IGNORECASE,
)
"""A verb behind a number, or behind a place after it: "Bed 7 in ward B is free"."""


def other_numbered(a: str, b: str) -> str | None:
    """Return the reason that two statements are about things with a number each, None where they are not.

    All that is said before the number is the same; what is said of the things need not be, unless no verb that is known
    tells it: then only numbers may differ, and there must be a second one.
    """
    if of_a_row := _of_a_row(a, b):
        return of_a_row
    one, other = named_by_number(a), named_by_number(b)
    differing = [(number, its) for number, its in zip(one, other, strict=False) if number != its]
    if not differing or len(one) != len(other) or not all(_is_code(word) for both in differing for word in both):
        return None
    spoken, its_spoken = ({*WORD.findall(text.casefold())} for text in (a, b))
    if any(number in its_spoken or its in spoken for number, its in differing):
        return None  # "Order 5502 replaces 5501"
    return f"two things, {' '.join(one)} and {' '.join(other)}"


def _of_a_row(a: str, b: str) -> str | None:
    """Return the reason that two statements are like rows of a table: "Room 10 seats 11 people", "Room 11 seats 48 …".

    Only numbers differ, of two at least, and the first to differ is that of a thing: it directly follows a noun, and
    what is behind it makes it no quantity. All 30 such pairs among those for training are about two things.
    """
    rows = [[word.casefold() for word in WORD.findall(NUMBER_MARK.sub("", text[:MOST_READ]))] for text in (a, b)]
    differing = [each for each in zip(itertools.count(), *rows, strict=False) if each[1] != each[2]]
    figures = sum(any(map(str.isdigit, word)) for word in rows[0])
    is_row = len(rows[0]) == len(rows[1]) and bool(differing) and figures > 1
    if not is_row or not all(any(map(str.isdigit, word)) for _, *both in differing for word in both):
        return None
    place, *numbers = differing[0]
    thing, behind = rows[0][int(rows[0][0] in OPENING) : place], rows[0][place + 1 : place + 3]
    is_thing = all(_is_code(number) and _may_be_named(thing, number) for number in numbers) and _is_note(thing)
    is_told = len(behind) > 1 and behind[0][0].isalpha() and behind[1][0].isalnum()
    is_quantity = not is_told or behind[0] in NO_VERBS or behind[1] in BEHIND_NOUNS  # "40 chairs and 12 tables"
    if not is_thing or (is_quantity and not (named_by_number(a) and named_by_number(b))):
        return None
    return f"two things, {' and '.join(' '.join((*thing, number)) for number in numbers)}"


@lru_cache(maxsize=65_536)
def named_by_number(text: str) -> tuple[str, ...]:
    """Return the words of what a statement is about through the number or code that names it; empty without one."""
    plain = NUMBER_MARK.sub("", text[:MOST_READ])
    found = [*WORD.finditer(plain)]
    words = [word[0].casefold() for word in found]
    start = int(words[:1] != [] and words[0] in OPENING)
    for place in range(start, min(len(words), MOST_WORDS + 1)):
        thing, rest = words[start:place], plain[found[place].end() :].removeprefix(" ")
        if _is_code(words[place]) and _may_be_named(thing, words[place]) and _tells(thing, rest):
            return (*thing, words[place])
    return ()


def _is_code(word: str) -> bool:
    return CODE.fullmatch(word) is not None and NO_CODE.fullmatch(word) is None


def _may_be_named(thing: list[str], number: str) -> bool:
    """Tell whether a number behind these words may be that of a thing; a code needs none before it."""
    if not thing:
        return number[0].isalpha()
    said = {*thing}
    is_picked = bool(PICKED & said) or any(word.endswith(("'s", "\u2019s")) for word in thing)
    is_placed = bool(PLACING & said) and is_picked  # "My desk in room 12 is …": the desk may have moved
    is_plain = all(word[0].isalnum() for word in thing) and JOINTS.isdisjoint(said)
    return is_plain and not is_placed and thing[-1][0].isalpha() and thing[-1] not in UNNUMBERED


def _tells(thing: list[str], rest: str) -> bool:
    """Tell whether the text behind a number tells something of the thing, and nothing that passes from one to another.

    That is a verb in the singular, or in a note without a verb a participle or one word, a colon, "of …" or nothing.
    """
    verb = VERB_BEHIND.match(rest)
    told = rest[verb.start("verb") :] if verb else rest
    if IS_OF_ONE.match(IS.sub("", told, count=1)):
        return False
    return verb is not None or (_is_note(thing) and _ends_note(rest))


def _is_note(thing: list[str]) -> bool:
    """Tell whether the words before a number are a noun and one more word at most, without a verb."""
    words = [word for word in thing if word not in OF]
    is_plural = any(word.endswith("s") and not word.endswith(("ss", "us", "is")) for word in words[-1:])
    is_verb = is_plural or any(word.endswith("ed") for word in words[-1:])
    return len(words) <= MOST_OF_NOTE and not is_verb and (SMALL_WORDS | DOING).isdisjoint(words)


def _ends_note(rest: str) -> bool:
    state = STATE.match(rest)
    is_state = state is not None and state[1] not in SMALL_WORDS | UNITS.keys() | DATED
    return is_state or any(each.match(rest) for each in (IS_DONE, OF_WHAT, LABELLING))
