"""Typed features of two statements that may exclude each other: what both speak of, and where they part.

They add to those of `matching` what tells another value of one slot, or a denial, from a statement about another thing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nous_online.language.pairs.content_features import Thing, gist_features, is_same_thing, roots, things
from nous_online.language.pairs.denials import EMPTY, MAX_WORDS, PREDICATING, content_stems, denied
from nous_online.language.pairs.guards import GUARDS, guards_fired, is_near_spelling, negations
from nous_online.language.pairs.lexicon import (
    ATTRIBUTES,
    FUNCTION_WORDS,
    LIKING,
    MANY_VALUED,
    NUMBER_WORDS,
    PROGRESSIVE_STATES,
    UNIDENTIFIED,
)
from nous_online.language.pairs.reading import Reading, StatementWords, read, read_words, stem
from nous_online.language.pairs.slot_rivalry import shared_slot
from nous_online.language.pairs.slots import filled_slot

MOST_WORDS = 22
"""A longer statement makes more than one claim, and most of what it says may stand beside the other."""
LEAST_SHARED = 0.4
"""Dice coefficient of the stems under which two statements hardly speak of one thing."""
NOBODY = frozenset({"nobody", "none", "noone"})
ROLE = re.compile(r"\b(?:is|are|was|were)\s(?:an?|the|one)\s(?:[\w-]+\s){1,4}?(?:of|in|for|at|to)\b")
NAUGHT = EMPTY | {"there", "isn", "aren", "no"}
PEOPLE = """man woman men women boy boys girl girls person people kid child guy lady someone somebody players player
group"""
ACTORS = frozenset(map(stem, PEOPLE.split()))
NOWHERE = -1.0
"""Place of what does not occur, where a place runs from 0, the first word, to 1, the last."""


def conflict_rows(pairs: Sequence[tuple[str, str, float]]) -> NDArray[np.float64]:
    """Return one row of `CONFLICT_FEATURES` per (a, b, cosine); each is the same with a and b exchanged."""
    rows = [
        list(conflict_features(read(min(a, b)), read(max(a, b)), similarity).values()) for a, b, similarity in pairs
    ]
    return np.asarray(rows, dtype=np.float64).reshape(len(rows), len(CONFLICT_FEATURES))


def may_conflict(a: str, b: str) -> bool:
    """Tell whether two statements are worth comparing: one is turned round, or both say what lasts of what is known.

    "A clerk is stamping a permit" is true beside "A clerk is sorting mail": nobody knows which clerk, and both pass.
    """
    one, other = read_words(a), read_words(b)
    if max(len(one.words), len(other.words)) > MOST_WORDS:
        return False
    if negations(one) % 2 != negations(other) % 2:
        return True
    return _is_lasting(one) and _is_lasting(other)


def speak_of_one_thing(a: str, b: str) -> bool:
    """Tell at little cost whether it may pay to compare two statements: they share words, or one alone denies."""
    one, other = content_stems(a), content_stems(b)
    if 2 * len({*one} & {*other}) >= LEAST_SHARED * (len(one) + len(other)):
        return True
    return negations(read_words(a)) % 2 != negations(read_words(b)) % 2


def tell_likings(a: str, b: str) -> bool:
    """Tell whether both say what somebody likes and neither denies it: who likes tea may like coffee too."""
    one, other = read_words(a), read_words(b)
    are_alike = negations(one) % 2 == negations(other) % 2
    return are_alike and bool(LIKING & {*one.words}) and bool(LIKING & {*other.words})


def _is_lasting(said: StatementWords) -> bool:
    """Tell whether a statement names what it is about, and does not speak of the moment alone."""
    opening = said.words[:1]
    is_titled = len(said.cased) > 1 and said.cased[1][0].isupper()
    if not opening or (not is_titled and (opening[0] in UNIDENTIFIED or opening[0] in NUMBER_WORDS)):
        return False
    verbs = zip(said.words, (*said.words[1:], ""), strict=False)
    return not any(
        verb in PREDICATING and word.endswith("ing") and word not in PROGRESSIVE_STATES for verb, word in verbs
    )


def shared_words(a: str, b: str) -> str:
    """Return the stems two statements share, in the order of the first: what both speak of."""
    other = {*content_stems(b)}
    return " ".join(stem for stem in content_stems(a) if stem in other)


def conflict_features(a: Reading, b: Reading, similarity: float) -> dict[str, float]:
    """Describe what two statements share and where they part."""
    return {
        "similarity": similarity,
        **gist_features(a, b),
        **_fired(a, b),
        **_slots(a, b),
        **_denials(a, b),
        **_spans(a, b),
        **_about(a, b),
        **_relation(a, b),
    }


def _fired(a: Reading, b: Reading) -> dict[str, float]:
    fired = guards_fired(a, b)
    return {f"guard_{name}": float(name in fired) for name in GUARDS}


def _slots(a: Reading, b: Reading) -> dict[str, float]:
    one, other = filled_slot(a.text, None), filled_slot(b.text, None)
    return {
        "slot_shared": float(shared_slot(a.text, b.text) is not None),
        "slot_equal": float(one is not None and other is not None and one.key == other.key),
        "slots_read": float((one is not None) + (other is not None)),
    }


def _denials(a: Reading, b: Reading) -> dict[str, float]:
    """Count negations, and how much of what both say is left of them once the negating words are taken away."""
    turns = sorted((negations(a), negations(b)))
    missing, more = _reach(a, b) if turns[0] % 2 != turns[1] % 2 else (NOWHERE, NOWHERE)
    one, other = set(content_stems(a.text)), set(content_stems(b.text))
    return {
        "denied": float(denied(a.text, b.text) is not None),
        "negations_fewer": float(turns[0]),
        "negations_more": float(turns[1]),
        "negation_parity": float(turns[0] % 2 != turns[1] % 2),
        "stems_dice": 2 * len(one & other) / max(1, len(one) + len(other)),
        "stems_held": len(one & other) / max(1, min(len(one), len(other))),
        "stems_shared": float(len(one & other)),
        "stems_only_fewer": float(min(len(one - other), len(other - one))),
        "stems_only_more": float(max(len(one - other), len(other - one))),
        "opening_stem": float(_opening(a) == _opening(b)),
        "denied_missing": missing,
        "denied_more": more,
        "actors_apart": float(bool(_actors(a) and _actors(b) and not _actors(a) & _actors(b))),
    }


def _reach(a: Reading, b: Reading) -> tuple[float, float]:
    """Count what a denial speaks of and the other statement does not, and what only the other one says.

    Who denies something denies all that says it in more words; nobody is no man, no woman and no two people.
    """
    denial, said = (a, b) if negations(a) % 2 else (b, a)
    about, told = ({*roots(reading)} - NAUGHT for reading in (denial, said))
    if NOBODY & set(denial.words) or "person" in denial.words:
        about, told = about - ACTORS, {root for root in told - ACTORS if not root.startswith("#")}
    loose = {word for word in about - told if any(is_near_spelling(word, other) for other in told)}
    return float(len(about - told - loose)), float(len(told - about))


@lru_cache(maxsize=65_536)
def _actors(reading: Reading) -> frozenset[str]:
    return ACTORS & {*roots(reading)}


def _opening(reading: Reading) -> str:
    return next(iter(content_stems(reading.text)), "")


def _spans(a: Reading, b: Reading) -> dict[str, float]:
    """Measure what is left between the words two statements open with and those they end in."""
    one, other = _spoken(a), _spoken(b)
    shortest = min(len(one), len(other))
    opening = _shared(one, other)
    ending = min(_shared(one[::-1], other[::-1]), shortest - opening)
    left, right = (words[opening : len(words) - ending] for words in (one, other))
    return {
        "opening_shared": opening / max(1, shortest),
        "ending_shared": ending / max(1, shortest),
        "span_fewer": float(min(len(left), len(right))),
        "span_more": float(max(len(left), len(right))),
        "span_figures": float(min(_figures(left), _figures(right))),
        "span_content": float(min(_contents(left), _contents(right))),
    }


@lru_cache(maxsize=65_536)
def _spoken(reading: Reading) -> tuple[str, ...]:
    return tuple(word for word in reading.terms[:MAX_WORDS] if word[0] in "#@~" or word[0].isalnum())


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    return next((i for i, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), min(len(one), len(other)))


def _figures(words: Sequence[str]) -> int:
    return sum(word[0] in "#@" for word in words)


def _contents(words: Sequence[str]) -> int:
    return sum(word not in FUNCTION_WORDS for word in words)


def _about(a: Reading, b: Reading) -> dict[str, float]:
    """Tell which of the things both name stand first, and which stand last, in either."""
    one, other = things(a), things(b)
    firsts = sorted((_place(one[:1], b), _place(other[:1], a)))
    lasts = sorted((_place(one[-1:], b), _place(other[-1:], a)))
    shared = sum(any(is_same_thing(thing, match) for match in other) for thing in one)
    return {
        "first_place_fewer": firsts[0],
        "first_place_more": firsts[1],
        "last_place_fewer": lasts[0],
        "last_place_more": lasts[1],
        "things_shared": float(shared),
        "things_left_fewer": float(min(len(one), len(other)) - shared),
        "things_left_more": float(max(len(one), len(other)) - shared),
    }


def _place(named: Sequence[Thing], other: Reading) -> float:
    """Return where in `other` a thing stands that it names too."""
    known = things(other)
    found = [place for place, match in enumerate(known) if named and is_same_thing(named[0], match)]
    return found[0] / max(1, len(known) - 1) if found else NOWHERE


def _relation(a: Reading, b: Reading) -> dict[str, float]:
    """Describe what both say of the things they name: shared roots, and whether it holds of one thing at a time."""
    one, other = set(a.words), set(b.words)
    names = {stem(name.lower()) for name in (*a.names, *b.names)}
    said_a, said_b = ({root for root in roots(reading) if root not in names} for reading in (a, b))
    return {
        "roots_shared": float(len(said_a & said_b)),
        "roots_left_fewer": float(min(len(said_a - said_b), len(said_b - said_a))),
        "roots_left_more": float(max(len(said_a - said_b), len(said_b - said_a))),
        "roots_bare": float(not said_a - said_b or not said_b - said_a),
        "roles_first": float(_names_role(a) + _names_role(b)),
        "many_valued": float(bool(one & other & MANY_VALUED)),
        "attributes": float(bool(one & other & ATTRIBUTES)),
    }


@lru_cache(maxsize=65_536)
def _names_role(reading: Reading) -> bool:
    """Tell whether a statement calls what it opens with something of another thing: "Rice is an ingredient of …"."""
    return ROLE.search(reading.text) is not None


CONFLICT_FEATURES = tuple(conflict_features(read(""), read(""), 0.0))
