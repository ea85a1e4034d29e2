"""Whether an action does what a trigger in words warns of: the same act, the same object, nothing that contradicts it.

Cosine alone cannot tell: "git push origin feature/login" lies near "pushing directly to main branch". So the words are
compared clause by clause, what is said of time and amount is computed, and the cosine is asked twice: how near the
action is to the trigger, and whether it is as near to the trigger with one of its clauses left out.
"""
# ruff: noqa: SIM905 — a list of words reads best as words

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from math import exp

from nous_online.language.actions.action_words import (
    DENIALS,
    LOOKING,
    MOST_CHARACTERS,
    denies,
    is_opposed,
    meanings,
    only_looks,
    only_speaks,
    read_deed,
    root,
    undoes,
    warned_act,
)
from nous_online.language.actions.clauses import TIMES, Clause, WordPlace, read_clauses, read_places
from nous_online.language.actions.conditions import LACKING_NUMBER, conditions
from nous_online.language.pairs.lexicon import KIND_NOUNS

OTHER_FORM = 0.9  # what "medical" is to "medicine"
NEAR_WORD = 0.5
"""From here on a word of the action counts as one of the trigger's."""
SAME_BEGINNING = 5
NAMED_THING = re.compile(r"[./\\][A-Za-z_][\w./\\-]|\w-\d|\w==\d")
KINDS = frozenset(map(root, KIND_NOUNS)) | frozenset(
    map(
        root,
        "branch server database table file folder directory repository account environment project customer".split(),
    )
)
"""What a specific word before it says enough without: "main" for "the main branch"."""
KINDS_OF_NAMED = frozenset(
    map(root, "file package image path folder directory host server machine site page record bucket".split())
)
"""What a file name, a path or a host name is one of."""
FINISHED = re.compile(r"\b(?:done|finished|over|ended|completed?)\b")
EXCLUSIVE = (
    (re.compile(r"\b(?:all|every|everyone|everybody|whole|entire)\b"), re.compile(r"\bonly\b")),
    (
        re.compile(r"\b(?:another|other|others|else's|someone's|somebody's)\b"),
        re.compile(r"\b(?:my|his|her|its|our|their|your) own\b"),
    ),
    (re.compile(r"\b(?:your|my|our|their|his|her) own\b"), re.compile(r"\b(?:another|other)\b")),
    (re.compile(r"\b(?:alone|by (?:my|your|him|her)self)\b"), re.compile(r"\btogether\b")),
)
"""Wordings of a trigger, and those of an action that rule them out."""


@dataclass(frozen=True)
class Comparison:
    """What speaks for and against an action being what a trigger warns of; each 0 to 1, but for the cosines."""

    similarity: float
    """Cosine of trigger and action."""
    narrowness: float
    """Least cosine the action gains by the trigger having a clause; negative where a clause leads away from it."""
    act: float
    """Whether it says the trigger's verb, or another for the same."""
    coverage: float
    """Mean over the clauses of the share of their words that it says."""
    least_covered: float
    """That share of the clause it says least of; 0 where it leaves out a condition, or another verb comes first."""
    is_met: float
    """It meets a condition of time or amount."""
    is_unmet: float
    contradicts: float
    """It denies a word of the trigger, or says "after" for "before"."""
    lacks: float
    """It lacks what the trigger warns of lacking."""
    has: float
    """It has what the trigger warns of lacking."""
    is_opposed: float
    only_looks: float
    only_speaks: float
    """It is a question, a refusal or a report."""
    undoes: float
    """It takes away, stops or guards what the trigger names."""

    @property
    def is_near(self) -> bool:
        """Whether it is nearly the trigger's own words: same act, every clause said, nothing against it."""
        against = (self.is_unmet, self.contradicts, self.has, self.is_opposed)
        is_done = not (self.only_looks or self.only_speaks or self.undoes)
        return is_done and self.act >= 1 and self.least_covered >= OTHER_FORM and not any(against)


WEIGHTS = Comparison(
    similarity=1.64,
    narrowness=4.16,
    act=0.37,
    coverage=0.09,
    least_covered=0.0,
    is_met=1.11,
    is_unmet=-3.15,
    contradicts=-2.43,
    lacks=1.78,
    has=-2.41,
    is_opposed=-2.5,  # by hand: the opposite, or another value, is a guard
    only_looks=-2.58,
    only_speaks=-3.51,
    undoes=-2.66,
)
BIAS = -0.94
"""Fitted with the action's length as a cause of its own, which is left out here: in the tables it tells too much.

What those tables give 0.65 stands at 0.5 (decision 0009).
"""


def likelihood(compared: Comparison) -> float:
    """Return how likely an action is what the trigger warns of, 0 to 1."""
    return 1 / (1 + exp(-log_odds(compared)))


def log_odds(compared: Comparison) -> float:
    """Return the log odds of `likelihood`: below 0 where it is less likely than not."""
    return BIAS + sum(w * v for w, v in zip(astuple(WEIGHTS), astuple(compared), strict=True))


def shares_act(trigger: str, action: str) -> bool:
    """Tell, in a few microseconds, whether an action says a trigger's verb or another for the same."""
    warned, deed = read_deed(warned_act(trigger[:MOST_CHARACTERS])), read_deed(action[:MOST_CHARACTERS])
    return not warned.head_meanings.isdisjoint(deed.meanings)


@lru_cache(maxsize=8192)
def compare_words(trigger: str, action: str) -> Comparison:
    """Compare an action with a trigger word for word; the cosines are left at 0."""
    trigger, action = warned_act(trigger[:MOST_CHARACTERS]), action[:MOST_CHARACTERS]
    warned, deed = read_deed(trigger), read_deed(action)
    verb, clauses = read_clauses(trigger)
    places = read_places(action)
    act = 1.0 if not warned.head_meanings.isdisjoint(deed.meanings) else best(verb, places)[0]
    said = [each for each in clauses if not each.is_lacking]
    covered = [coverage(each, action, places) for each in said]
    mean = sum(covered) / len(covered) if covered else 1.0
    lacking = [lack(each, places, is_denying=deed.is_denying) for each in clauses if each.is_lacking]
    met = conditions(trigger, action)
    if lacking and True in met and LACKING_NUMBER.search(trigger.lower()):  # one approval where two are asked for
        lacking = [True]
    is_complete = None not in (*met, *lacking) and not warned.head_meanings.isdisjoint(deed.head_meanings)
    return Comparison(
        similarity=0.0,
        narrowness=0.0,
        act=act,
        coverage=mean,
        least_covered=min(covered, default=1.0) if is_complete else 0.0,
        is_met=float(True in met),
        is_unmet=float(False in met),
        contradicts=float(
            denies(warned, deed)
            or any(contradicts(each, verb, places) or names_other_of_kind(each, action, places) for each in said)
            or (
                not deed.is_denying
                and any(TIMES.get(each.preposition) == "during" for each in said)
                and bool(FINISHED.search(action.lower()))
            )
            or any(one.search(trigger.lower()) and other.search(action.lower()) for one, other in EXCLUSIVE)
        ),
        lacks=float(any(each is True for each in lacking)),
        has=float(any(each is False for each in lacking)),
        is_opposed=float(is_opposed(warned, deed)),
        only_looks=float(only_looks(warned, deed)),
        only_speaks=float(only_speaks(action) and warned.head not in LOOKING),
        undoes=float(undoes(warned, deed)),
    )


def best(word: str, places: Sequence[WordPlace]) -> tuple[float, int]:
    """Return how well an action says a word, and where: 1 by itself, less by another for the same or of its family."""
    own, found = root(word), (0.0, -1)
    wanted = meanings([own])
    for number, place in enumerate(places):
        if own == place.root:
            return 1.0, number
        if not wanted.isdisjoint(place.meanings):
            found = max(found, (0.95, number))
        elif len(word) >= SAME_BEGINNING and word[:SAME_BEGINNING] == place.word[:SAME_BEGINNING]:
            found = max(found, (OTHER_FORM, number))
    return found


def coverage(clause: Clause, action: str, places: Sequence[WordPlace]) -> float:
    """Return how much of a clause an action says; half where it names a thing that may be of the clause's kind."""
    words = [word for word in clause.words if root(word) not in KINDS] or clause.words
    share = sum(best(word, places)[0] for word in words) / len(words)
    is_named = any(root(word) in KINDS_OF_NAMED for word in clause.words) and NAMED_THING.search(action)
    return max(share, 0.5) if is_named else share


def contradicts(clause: Clause, verb: str, places: Sequence[WordPlace]) -> bool:
    """Tell whether an action denies what a clause says, or puts it at another time."""
    for word in clause.words:
        strength, number = best(word, places)
        if strength < NEAR_WORD:
            continue
        place = places[number]
        mine, its = TIMES.get(clause.preposition), TIMES.get(place.preposition)
        if mine and its and mine != its:
            return True
        if mine in {"before", "after"} and place.preposition in {"on", "at"}:
            return True
        if place.is_denied and not mine and verb not in DENIALS and root(word) != root(verb):
            return True
        if clause.preposition == "with" and place.preposition == "without":
            return True
    return False


def names_other_of_kind(clause: Clause, action: str, places: Sequence[WordPlace]) -> bool:
    """Tell whether a clause names one of a kind, and an action says nothing of that one but names another."""
    specific = [word for word in clause.words if root(word) not in KINDS]
    if not specific or len(specific) == len(clause.words) or not NAMED_THING.search(action):
        return False
    return all(best(word, places)[0] < NEAR_WORD for word in specific)


def lack(clause: Clause, places: Sequence[WordPlace], *, is_denying: bool) -> bool | None:
    """Tell whether an action lacks what a clause says is missing; None where it says nothing of it."""
    found = [best(word, places) for word in clause.words]
    said = [places[number] for strength, number in found if strength >= NEAR_WORD]
    if is_denying or any(place.is_denied or place.preposition == "before" for place in said):
        return True
    return False if said else None
