"""Closed lists of words, as `words.toml` has them: what guards, features, actions and the offline writer go by."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def tables() -> dict[str, Any]:
    """Return what `words.toml` holds, read once a process."""
    return tomllib.loads(files("nous_online.language").joinpath("words.toml").read_text("utf-8"))


def word_list(name: str) -> frozenset[str]:
    """Return the list of words called `name`."""
    return frozenset(tables()["words"][name].split())


def groups(name: str) -> tuple[frozenset[str], ...]:
    """Return the groups of words called `name`, such as `rivals`."""
    return tuple(frozenset(group.split()) for group in tables()[name].values())


def phrases(name: str) -> re.Pattern[str]:
    """Return a pattern of the wordings called `name`, each a whole word or phrase, in any case."""
    return re.compile(rf"\b(?:{'|'.join(tables()['phrases'][name])})\b", re.IGNORECASE)


ARTICLES = frozenset({"a", "an", "the"})
FUNCTION_WORDS = word_list("function_words")
COPULAS = word_list("copulas")
NEGATORS = word_list("negators")
LIKING = word_list("liking")
KIND_NOUNS = word_list("kind_nouns")
ATTRIBUTES = word_list("attributes")
MANY_VALUED = word_list("many_valued")
UNIDENTIFIED = word_list("unidentified")
PROGRESSIVE_STATES = word_list("progressive_states")
FOREIGN_WORDS = word_list("foreign_words")
MONTHS = {
    "january": "jan", "february": "feb", "march": "mar", "april": "apr", "may": "may", "june": "jun", "july": "jul",
    "august": "aug", "september": "sep", "october": "oct", "november": "nov", "december": "dec",
}  # fmt: skip
DATED = frozenset({*MONTHS, *MONTHS.values(), "noon", "midnight", "tomorrow"}) | word_list("weekdays")
_BELOW_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
NUMBER_WORDS = {word: value for value, word in enumerate(_BELOW_TWENTY.split()) if word != "one"} | {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)  # noqa: SIM905 (words)
}
"""Numbers in words; "one" is none, for it is often a pronoun."""
UNITS: dict[str, tuple[str, float]] = {
    word: (dimension, float(factor))
    for dimension, spellings in tables()["units"].items()
    for factor, listed in spellings.items()
    for word in listed.split()
}
"""Of each spelling of a unit, what it measures, and how many of the base unit one is."""
OPPOSITES = frozenset(
    pair
    for entry in tables()["opposites"]["pairs"].split()
    for one, _, other in [entry.partition("/")]
    for pair in ((one, other), (other, one))
)
RIVALS = groups("rivals")
