"""Parts a trigger into its act and its condition, and tells what an action says of the condition.

"Don't email customers without approval" is about emailing customers. An action that does so and says nothing of an
approval may be what the trigger warns of: that takes a question, not silence.
"""
# ruff: noqa: E501 — a pattern reads best whole

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from nous_online.language.actions.action_words import (
    LACKS,
    MOST_CHARACTERS,
    Clause,
    in_english,
    parse_action,
    read_places,
    root,
    roots,
    warned_act,
)
from nous_online.language.actions.triggers import (
    LACKING_NUMBER,
    NEAR_WORD,
    best_match,
    check_conditions,
    lack,
)

Stance = Literal["kept", "broken", "mentioned", "unsaid"]
"""What an action says of a condition: that the trigger does not apply, that it does, something, or nothing."""
LEADING = re.compile(
    r"\A((?:without|unless|during|while|when|after|until|outside)\b[^,]{1,80}), (.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
OPENERS = (
    r"(?:without|during|while|when|whenever|before|after|until|während|pendant|durante|outside (?=.{0,20}\bhours))\s"
)
CONDITIONS = re.compile(
    rf"(?<=\S)\s+(?={OPENERS}|(?:above|over|more than|exceeding|at least|below|under|less than)\s\S*\d\S*(?:\s\w+)?(?:\s{OPENERS}|\Z))",
    re.IGNORECASE,
)
"""Where a condition of the act begins: an exception, a time or an amount."""
CLOCK_BEFORE_VERB = re.compile(r"\A((?:before|after|at|from) \d\d:\d\d) (.+)\Z", re.DOTALL)
"""In German the verb comes last: "after 22:00 staubsaugen"."""
CONSENTING = roots(
    "approval approve consent consented permission ask asking agree agreement agreed ok okay confirm confirmation confirming sign-off"
    " authorization authorisation review reviewed checking check clearance say says saying allow allows want wants request requests"
    " freigabe zustimmung erlaubnis genehmigung accord approbation autorisation permiso aprobación autorización permission"
)
"""Words of a condition that somebody agrees."""
AGREED = re.compile(
    r"\b(?:(?:pre-?)?approved|agreed|consented|confirmed|authori[sz]ed|permitted|allowed|cleared|green-?lit|signed (?:it |this )?off|sign-off (?:from|by)"
    r"|ok|okay|okayed|ok'd|(?:said|says) (?:yes|so|that)|go-ahead|asked (?:me|us|for it)|freigegeben|genehmigt|zugestimmt|erlaubt|approuvé|autorisé|d'accord|aprobado|autorizado)\b"
    r"(?!\s*[=:]\s*(?:false|none|no|0)\b)",
    re.IGNORECASE,
)
"""How an action says that somebody did agree."""
WITH = re.compile(r"\bwith\b([^,.;:]*)", re.IGNORECASE)
EITHER = re.compile(
    r"(?<![\w'-])(?P<first>[\w'-]++(?:, [\w'-]++){0,3}+),? or (?P<last>[\w'-]++(?: [\w'-]++){0,2}?)"
    r"(?= (?:to|with|for|from|of|in|on|at|by|into|as|that|which|who)\b|[,.;]|\Z)",
    re.IGNORECASE,
)
"""Things or deeds of which an act names several: "an address or phone number to", "deleting or moving backups"."""


@dataclass(frozen=True)
class ConditionalAct:
    """A trigger in parts: "email customers", and "without approval" or "during office hours"."""

    act: str
    conditions: tuple[str, ...]


@lru_cache(maxsize=4096)
def part_trigger(trigger: str) -> ConditionalAct | None:
    """Return a trigger in its parts; None where it names no condition that this module knows."""
    act = warned_act(LEADING.sub(r"\2 \1", trigger[:MOST_CHARACTERS].strip().rstrip(".")))
    act = CLOCK_BEFORE_VERB.sub(r"\2 \1", act)
    about, *conditions = (each.strip(" ,") for each in CONDITIONS.split(act))
    return ConditionalAct(about, tuple(conditions)) if conditions else None


@lru_cache(maxsize=4096)
def alternatives(trigger: str) -> tuple[str, ...]:
    """Return a trigger with each of what its act names with "or": "sharing addresses or names" warns of either.

    What stands in a condition stays: "without approval by Ana or Bo" is met by either.
    """
    parted = part_trigger(trigger)
    found = EITHER.search(parted.act if parted else warned_act(trigger[:MOST_CHARACTERS]))
    if found is None:
        return ()
    before, after = found.string[: found.start()], found.string[found.end() :]
    first, last = found["first"].split(", "), found["last"]
    deed, _, thing = last.partition(" ")
    if thing and (not before or (first[-1].endswith("ing") and deed.endswith("ing"))):  # deeds of one thing
        last, after = deed, f" {thing}{after}"
    conditions = "".join(f" {each}" for each in (parted.conditions if parted else ()))
    return tuple(f"{before}{each}{after}{conditions}" for each in (*first, last))


@lru_cache(maxsize=8192)
def stances(parted: ConditionalAct, action: str) -> dict[str, Stance]:
    """Return what an action says of each condition of a trigger."""
    plain = in_english(action[:MOST_CHARACTERS])
    return {each: stance(parted.act, each, plain) for each in parted.conditions}


def stance(act: str, condition: str, action: str) -> Stance:
    """Return what an action says of one condition of an act."""
    is_exception = condition.lower().startswith("without")
    met = {each for each in check_conditions(condition, action) if each is not None}
    if met and not LACKING_NUMBER.search(condition.lower()):
        return "kept" if (True in met if is_exception else False in met) else "broken"
    words = words_of(act, condition)
    places = read_places(action)
    found = [
        places[number] for strength, number in (best_match(word, action) for word in words) if strength >= NEAR_WORD
    ]
    if not is_exception:
        return "mentioned" if found else "unsaid"
    if lack(Clause("without", words), action, is_denying=False):
        return "broken"
    is_agreed = not CONSENTING.isdisjoint(map(root, words)) and AGREED.search(action)
    if is_agreed and not parse_action(action).is_denying:
        return "kept"
    if any(best_match(word, clause)[0] >= NEAR_WORD for word in words for clause in WITH.findall(action)):
        return "kept"
    return "mentioned" if found else "unsaid"


def words_of(act: str, condition: str) -> tuple[str, ...]:
    """Return the content words of a condition that are not in its act as well."""
    known = {place.root for place in read_places(act)}
    return tuple(place.word for place in read_places(condition) if place.root not in known and place.word not in LACKS)
