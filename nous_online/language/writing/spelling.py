"""Gives what people type in haste in English its capitals and apostrophes: "mira cant" has a name and a denial."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from nous_online.core.patterns import regex
from nous_online.language.lexicon import FUNCTION_WORDS, MONTHS, SMALL_WORDS, english_lead, word_list
from nous_online.language.writing.chats import is_asking
from nous_online.language.writing.sentences import Sentence, straighten_apostrophes

CONTRACTIONS = {
    **{f"{verb}nt": f"{verb}n't" for verb in word_list("denied")},
    "i": "I", "i'm": "I'm", "i've": "I've", "i'll": "I'll", "i'd": "I'd", "im": "I'm", "ive": "I've",
    "thats": "that's", "theyre": "they're", "youre": "you're", "theyve": "they've",
}  # fmt: skip
"""What is nothing else in English."""
DAYS = {
    day: day.capitalize()
    for name in word_list("weekdays") | MONTHS.keys() - {"may", "march"}
    for day in (name, f"{name}s")
}
_INSIDE = regex(r"(?<=[\w,;)'] )[^\W\d_a-z][^\W\d_]{2,20}(?: (?:& |of |and )?[^\W\d_a-z][^\W\d_]{2,20}){0,3}")
"""Words with a capital inside a sentence."""
_COUNTED = regex(r"\b(?:an?|the|my|our|his|her|their|this|that|every|no) ([^\W\d_A-Z][\w']{1,20})")
_WORD = regex(r"(?<![\w'@./-])[^\W\d_A-Z][\w']{0,20}+(?![@/]|\.\w)")


def spelled_out(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences of a chat, those of a user in English with the capitals and apostrophes they left out.

    A name has the capital that somebody gave it inside a sentence of the same chat; no word of an assistant in small
    letters is one. In other languages a capital says something else: German "morgen" is tomorrow, "Morgen" a morning.
    """
    told = straighten_apostrophes(" ".join(each.text for each in sentences if is_asking(each))).casefold()
    words = told.split()
    # "my name is bea" has no word of English alone, and as many small words as no sentence of another language.
    is_plain = 2 * sum(word in FUNCTION_WORDS for word in words) >= len(words)
    if (lead := english_lead(told)) < 0 or (lead == 0 and not is_plain):
        return list(sentences)
    spelled = _names(sentences) | CONTRACTIONS | DAYS
    return [replace(each, text=_spelled(each.text, spelled)) if is_asking(each) else each for each in sentences]


def _names(sentences: Sequence[Sentence]) -> dict[str, str]:
    """Return the names of a chat by their small letters."""
    # "Bea Okafor" names Bea, but "Greenhill Farm" no farm.
    found = {name.split()[0] for each in sentences for name in _INSIDE.findall(each.text)}
    small = {word for each in sentences if not is_asking(each) for word in _WORD.findall(each.text)}
    small |= {word for each in sentences for word in _COUNTED.findall(each.text)}  # "a bus" is no Bus Éireann
    return {low: name for name in found if name[1:].islower() and (low := name.casefold()) not in small | SMALL_WORDS}


def _spelled(text: str, spelled: dict[str, str]) -> str:
    def spell(match: re.Match[str]) -> str:
        stem, apostrophe, ending = match[0].partition("'")
        return spelled.get(match[0]) or f"{spelled.get(stem, stem)}{apostrophe}{ending}"

    return _WORD.sub(spell, text)
