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

from nous_online.core.patterns import regex
from nous_online.language.actions.action_words import (
    LACKS,
    MOST_CHARACTERS,
    Clause,
    in_english,
    meanings,
    parse_action,
    read_places,
    root,
    roots,
    warned_act,
)
from nous_online.language.actions.commands import read_command
from nous_online.language.actions.rules import read_rule
from nous_online.language.actions.triggers import (
    LACKING_NUMBER,
    NEAR_WORD,
    best_match,
    check_conditions,
    lack,
)

Stance = Literal["kept", "broken", "mentioned", "unsaid"]
"""What an action says of a condition: that the trigger does not apply, that it does, something, or nothing."""
LEADING = regex(
    r"\A((?:without|unless|during|while|when|after|until|outside)\b[^,]{1,80}), (.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
OPENERS = (
    r"(?:without|during|while|when|whenever|before|after|until|während|pendant|durante|outside (?=.{0,20}\bhours))\s"
)
CONDITIONS = regex(
    rf"(?<=\S)\s+(?={OPENERS}|(?:above|over|more than|exceeding|at least|below|under|less than)\s\S*\d\S*(?:\s\w+)?(?:\s{OPENERS}|\Z))",
    re.IGNORECASE,
)
"""Where a condition of the act begins: an exception, a time or an amount."""
CLOCK_BEFORE_VERB = regex(r"\A((?:before|after|at|from) \d\d:\d\d) (.+)\Z", re.DOTALL)
"""In German the verb comes last: "after 22:00 staubsaugen"."""
CONSENTING = roots(
    "approval approve consent consented permission ask asking agree agreement agreed ok okay confirm confirmation confirming sign-off"
    " authorization authorisation review reviewed checking check clearance say says saying allow allows want wants request requests"
    " freigabe zustimmung erlaubnis genehmigung accord approbation autorisation permiso aprobación autorización permission"
)
"""Words of a condition that somebody agrees."""
AGREED = regex(
    r"\b(?:(?:pre-?)?approved|agreed|consented|confirmed|authori[sz]ed|permitted|allowed|cleared|green-?lit|signed (?:it |this )?off|sign-off (?:from|by)"
    r"|ok|okay|okayed|ok'd|(?:said|says) (?:yes|so|that)|go-ahead|asked (?:me|us|for it)|freigegeben|genehmigt|zugestimmt|erlaubt|approuvé|autorisé|d'accord|aprobado|autorizado)\b"
    r"(?!\s*[=:]\s*(?:false|none|no|0)\b)",
    re.IGNORECASE,
)
"""How an action says that somebody did agree."""
WITH = regex(r"\bwith\b([^,.;:]*)", re.IGNORECASE)
_ITEM = r"[\w'/@=-]++(?:\.[\w/-]++){0,9}+"
EITHER = regex(
    rf"(?<![\w'./@=-])(?P<first>{_ITEM}(?:, (?!or ){_ITEM}(?: (?!or ){_ITEM})?+){{0,3}}+),? or (?P<last>{_ITEM}(?: {_ITEM}){{0,5}}?)"
    r"(?= (?:to|with|for|from|of|in|on|at|by|into|as|that|which|who|over|outside|about|during|than|older|newer|larger|bigger|smaller|more|less"
    r"|when|while|if|unless|without|before|after|until|under|above|below|between|since|against|through|near|containing|including)\b|[,.;]|\Z)",
    re.IGNORECASE,
)
"""Things or deeds of which an act names several: "an address or phone number to", "deleting or moving backups"."""


LONGEST_THING = 3  # words
ANOTHER_DEED = regex(r"\w{2,30} (?:the|a|an|any|our|your|their|my|his|her|its) \w", re.IGNORECASE)
DETERMINED = regex(r"\b(?:the|a|an|any|our|your|their|my|his|her|its|all)\s*+\Z", re.IGNORECASE)
OF_THE_LAST = regex(r"\A with (?:[\w'-]{1,40}+ ){1,4}?((?:to|outside|into|from|via|over|by|at|in|on) .*)\Z", re.DOTALL)
"""What may be said of the last thing alone, as the first one has a word of its own before it."""
TAKING_WITH = roots(
    "share discuss talk speak mix combine blend replace swap exchange connect contact meet trade fill load"
)
"""Verbs that go with "with": it says with whom."""


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
    """Return a trigger with each of what its act names with "or", and what else it forbids in further sentences.

    "Sharing addresses or names" warns of either. What stands in a condition stays: "without approval by Ana or Bo" is met
    by either.
    """
    parted = part_trigger(trigger)
    conditions = "".join(f" {each}" for each in (parted.conditions if parted else ()))
    named = either(parted.act if parted else warned_act(trigger[:MOST_CHARACTERS]))
    further = read_rule(trigger[:MOST_CHARACTERS]).further
    return (*(f"{each}{conditions}" for each in named), *further)


def either(act: str) -> tuple[str, ...]:
    """Return an act with each of the things or deeds that it names with "or"; empty where it names one."""
    found = EITHER.search(act)
    if found is None:
        return ()
    before, after = act[: found.start()], act[found.end() :]
    first, last = found["first"].split(", "), found["last"]
    deed, _, thing = last.partition(" ")
    if thing and (not before or (first[-1].endswith("ing") and deed.endswith("ing"))):  # deeds of one thing
        return tuple(f"{before}{each} {thing}{after}" for each in (*first, deed))
    if ANOTHER_DEED.match(last):  # "close the window or open a door"
        return (*(f"{before}{each}" for each in first), f"{last}{after}")
    if before and len(last.split()) > LONGEST_THING:  # nobody knows what of it is said of each
        return ()
    of_all = after
    if own := OF_THE_LAST.match(after):  # "email client lists or exports with passwords outside the company"
        is_alike = before.count(" ") <= 1 or DETERMINED.search(before) or root(before.split()[0]) in TAKING_WITH
        of_all = after if is_alike else f" {own[1]}"
    noun = last.rsplit(" ", 1)[-1]
    if thing and noun.endswith("s") and not first[-1].endswith("s"):  # "delete old or archived files"
        first = [f"{each} {noun}" for each in first]
    return (*(f"{before}{each}{of_all}" for each in first), f"{before}{last}{after}")


@lru_cache(maxsize=8192)
def says_instead(trigger: str, action: str) -> Literal["done", "mentioned", "unsaid"]:
    """Return whether an action does what a rule asks for instead of the act, speaks of it, or doesn't."""
    instead, act = read_rule(trigger[:MOST_CHARACTERS]).instead, warned_act(trigger[:MOST_CHARACTERS])
    if not instead:
        return "unsaid"
    action = in_english(action[:MOST_CHARACTERS])
    if is_done_instead(act, instead, action):
        return "done"
    known = {place.root for place in read_places(act)}
    places = [place for place in read_places(action) if place.root not in known and not place.is_denied]
    meant = frozenset[str]().union(*(place.meanings for place in places))
    words = words_of(act, instead)
    said = [word for word in words if not meanings([root(word)]).isdisjoint(meant)]
    return "mentioned" if said and 2 * len(said) >= len(words) else "unsaid"


def asks_for_consent(trigger: str) -> bool:
    """Tell whether a rule says to ask somebody first, instead of doing the act."""
    return not CONSENTING.isdisjoint(parse_action(read_rule(trigger[:MOST_CHARACTERS]).instead).words)


def is_done_instead(act: str, instead: str, action: str) -> bool:
    """Tell whether an action is the other deed, is done at the other time, or has the consent asked for."""
    forbidden, other, done = parse_action(act), parse_action(instead), parse_action(action)
    is_other = bool(done.head_meanings & other.head_meanings) and done.head_meanings.isdisjoint(forbidden.head_meanings)
    is_other = is_other or (done.head in other.words and done.head != forbidden.head)
    if read_command(action) and len(done.head_meanings) > 1 and done.head_meanings.isdisjoint(forbidden.head_meanings):
        is_other = is_other or other.head in done.words  # "mv dumps archive/" archives them
    if is_other and forbidden.head_meanings.isdisjoint(meanings(set(done.words) - {done.head})):
        return True
    met = check_conditions(instead, action)
    if (met and all(met)) or is_same_deed_otherwise(act, instead, action):
        return True
    return bool(AGREED.search(action)) and stance(act, f"without {instead}", action) == "kept"


def is_same_deed_otherwise(act: str, instead: str, action: str) -> bool:
    """Tell whether an action does the deed as a rule asks for: in black, and not in colour."""
    if parse_action(act).head_meanings.isdisjoint(parse_action(instead).head_meanings):
        return False
    says = {
        word: best_match(word, action)[0] >= NEAR_WORD for word in (*words_of(act, instead), *words_of(instead, act))
    }
    asked, forbidden = words_of(act, instead), words_of(instead, act)
    return bool(asked) and all(says[word] for word in asked) and not all(says[word] for word in forbidden)


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
