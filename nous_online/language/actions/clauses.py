"""A trigger as an act and its clauses, an action as words in their places: what is compared word for word."""
# ruff: noqa: SIM905, E501 — a list of words reads best as words

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from nous_online.language.actions.action_words import (
    DENIALS,
    LACKS,
    MOST_CHARACTERS,
    meanings,
    root,
    spoken_words,
    warned_act,
)
from nous_online.language.actions.conditions import SEASONS, WEEKDAYS
from nous_online.language.pairs.lexicon import FUNCTION_WORDS, MONTHS

PREPOSITIONS = frozenset(
    """to in on at for from by with without lacking while during before after into onto over above below under via behind
    of against between when until than as if out about through outside inside near""".split()
)
TIMES = {
    "before": "before",
    "until": "before",
    "after": "after",
    "during": "during",
    "while": "during",
    "when": "during",
}
"""Prepositions of time: the same thing before, during and after something is three things."""
DENIED_WORDS = 4  # how many words after a "no" it bears on
ENDS_DENIAL = frozenset({"but", "and", "so"})
UNSAID = frozenset(
    """directly straight again too also right away own more less than larger older longer bigger greater am pm noon midday
    midnight""".split()
) | frozenset({*MONTHS, *SEASONS, *WEEKDAYS, *(f"{day}s" for day in WEEKDAYS)})
"""What a clause may say without being another clause for it, and what the conditions compare."""
LONG_ADVERB = re.compile(r"\A\w{4,200}ly")
SEGMENT = re.compile(
    r"(?<!\s)\s++(?=(?:to|in|on|at|for|from|by|with|without|while|during|before|after|into|onto|over|above|below|under|via|behind"
    r"|of|against|between|when|until|than|as|about|through|outside|inside|near|more|less|larger|older)\b)"
)


@dataclass(frozen=True)
class Clause:
    """What stands behind one preposition of a trigger, or behind its verb; `preposition` is then empty."""

    preposition: str
    words: tuple[str, ...]

    @property
    def is_lacking(self) -> bool:
        """Whether it names what is missing."""
        return self.preposition in LACKS


@dataclass(frozen=True)
class WordPlace:
    """A word of an action and where it stands."""

    word: str
    root: str
    meanings: frozenset[str]
    preposition: str
    is_denied: bool
    before: str | None
    """The content word right before it."""


@lru_cache(maxsize=4096)
def read_clauses(trigger: str) -> tuple[str, tuple[Clause, ...]]:
    """Return the verb of a trigger and its clauses, the object first."""
    verb = ""
    found: list[tuple[str, list[str]]] = [("", [])]
    for word in spoken_words(trigger[:MOST_CHARACTERS]):
        if word.isdigit():
            continue
        if not verb and word not in FUNCTION_WORDS:
            verb = word
        elif word in PREPOSITIONS:
            if found[-1][1] or found[-1][0] not in LACKS:
                found.append((word, []))
        elif word not in FUNCTION_WORDS and word not in UNSAID and not LONG_ADVERB.fullmatch(word):
            found[-1][1].append(word)
    return verb, tuple(Clause(name, tuple(words)) for name, words in found if words)


@lru_cache(maxsize=1024)
def read_places(action: str) -> tuple[WordPlace, ...]:
    """Return the content words of an action, in order, each with where it stands."""
    found: list[WordPlace] = []
    preposition, before, denied = "", None, 0
    for word in spoken_words(action[:MOST_CHARACTERS]):
        if word in PREPOSITIONS:
            preposition, before = word, None
        if word in DENIALS or word in LACKS:
            denied = DENIED_WORDS
        if word.isdigit():
            continue
        if word in FUNCTION_WORDS:
            denied, before = 0 if word in ENDS_DENIAL else denied, None
            continue
        found.append(
            WordPlace(word, root(word), meanings([root(word)]), preposition, denied > 0 and word not in DENIALS, before)
        )
        before, denied = word, denied - 1
    return tuple(found)


@lru_cache(maxsize=4096)
def variants(trigger: str) -> tuple[str, ...]:
    """Return a trigger without each of its clauses in turn, without its verb and without its object.

    An action lies nearer to the whole trigger than to each of these when it speaks of all the trigger speaks of.
    """
    act = warned_act(trigger)
    head, *rest = SEGMENT.split(act.strip())
    shorter = [" ".join([head, *rest[:place], *rest[place + 1 :]]) for place in range(len(rest))]
    verb, _, thing = head.partition(" ")
    if thing:
        shorter += [" ".join([thing, *rest]), " ".join([verb, *rest])]
    return tuple(dict.fromkeys(shorter))
