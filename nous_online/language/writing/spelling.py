"""Gives what people type in haste its capitals and apostrophes: "mira cant do saturdays" has a name and a denial."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from nous_online.language.lexicon import FUNCTION_WORDS, MONTHS, SMALL_WORDS, word_list
from nous_online.language.writing.chats import SPOKEN_ELSEWHERE, is_asking
from nous_online.language.writing.sentences import Sentence

LEAST_LETTERS = 3  # of a name
ENGLISH_SHARE = 2  # English small words for each one of another language, in a text that is in English
CONTRACTIONS = {
    **{f"{verb}nt": f"{verb}n't" for verb in word_list("denied")},
    "i": "I", "i'm": "I'm", "i've": "I've", "i'll": "I'll", "i'd": "I'd", "im": "I'm", "ive": "I've",
    "thats": "that's", "theyre": "they're", "youre": "you're", "theyve": "they've",
}  # fmt: skip
"""What is nothing else in English."""
DAYS = {day: day.capitalize() for day in [*word_list("weekdays"), *(set(MONTHS) - {"may", "march"})]}
_INSIDE = re.compile(r"(?<=[\w,;)'] )[^\W\d_a-z][^\W\d_]{2,20}(?: (?:& |of |and )?[^\W\d_a-z][^\W\d_]{2,20}){0,3}")
"""Words with a capital inside a sentence."""
_WORD = re.compile(r"(?<![\w'@./-])[^\W\d_A-Z][\w']{0,20}+(?![@/]|\.\w)")
_TITLED = re.compile(r"\b(?:mrs?|ms|miss|dr)\s[a-z]{3,20}\b")


def spelled_out(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences of a chat, those of a user with the capitals and apostrophes that its language has.

    A name has the capital that somebody gave it inside a sentence of the same chat; no word of an assistant in small
    letters is one.
    """
    words = [word for each in sentences if is_asking(each) for word in each.text.casefold().split()]
    elsewhere = sum(word in SPOKEN_ELSEWHERE for word in words)
    is_english = sum(word in FUNCTION_WORDS for word in words) > ENGLISH_SHARE * elsewhere
    spelled = _names(sentences) | (CONTRACTIONS | DAYS if is_english else {})
    return [replace(each, text=_spelled(each.text, spelled)) if is_asking(each) else each for each in sentences]


def _names(sentences: Sequence[Sentence]) -> dict[str, str]:
    """Return the names of a chat by their small letters."""
    # "Bea Okafor" names Bea, but "Greenhill Farm" no farm.
    found = {name.split()[0] for each in sentences for name in _INSIDE.findall(each.text)}
    small = {word for each in sentences if not is_asking(each) for word in _WORD.findall(each.text)}
    return {low: name for name in found if name[1:].islower() and (low := name.casefold()) not in small | SMALL_WORDS}


def _spelled(text: str, spelled: dict[str, str]) -> str:
    def spell(match: re.Match[str]) -> str:
        stem, apostrophe, ending = match[0].partition("'")
        if match[0] in spelled:
            return spelled[match[0]]
        plural = len(stem) > LEAST_LETTERS and stem.endswith("s") and stem not in spelled
        found = spelled.get(stem[:-1] if plural else stem)
        return f"{found}{'s' if plural else ''}{apostrophe}{ending}" if found else match[0]

    return _TITLED.sub(lambda match: match[0].title(), _WORD.sub(spell, text))
