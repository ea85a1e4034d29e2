"""What a short statement is about: its content words reduced to roots, and the things it names.

A paraphrase keeps both; an update, a narrower place or an exchanged role changes one of them.
"""
# ruff: noqa: PLR2004 — word lengths and shares are read best in place

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from nous_online.language.pairs.guards import is_near_spelling
from nous_online.language.pairs.lexicon import (
    COPULAS,
    FUNCTION_WORDS,
    KIND_NOUNS,
    LIGHT_WORDS,
    RESTRICTORS,
    ROOTS,
    UNITS,
)
from nous_online.language.pairs.reading import Reading, stem

LINKS = frozenset({"of", "de", "la", "del", "von", "van", "da", "do", "der"})
QUALIFIED_BY = frozenset({",", "(", ")", "in", "the"})
MAX_ROOTS = 120
# A unit beside its number agrees or not in the guards; apart from it, it adds nothing.
PASSED_OVER = (
    FUNCTION_WORDS | LIGHT_WORDS | {word for word in UNITS if len(word) > 2 and word not in {"second", "pound"}}
)
KIND_ROOTS = frozenset(ROOTS.get(word) or stem(word) for word in KIND_NOUNS)
CHANGES = (
    "root_words_more", "root_names_more", "root_repeats", "things_unmatched_more", "things_demoted",
    "things_turned_wrongly", "last_narrowed", "restrictors", "joined_gap",
)  # fmt: skip
MAX_LEFT_OVER = 12  # words compared one by one; a pair that differs in more is no wording of one statement


@dataclass(frozen=True)
class Thing:
    """One name as written: its words in order, and whether it only narrows the name before it ("Ghent, Belgium")."""

    words: tuple[str, ...]
    is_qualifier: bool


def gist_features(a: Reading, b: Reading) -> dict[str, float]:
    """Describe how far two statements share roots and named things; the same with `a` and `b` exchanged."""
    found = {**_root_features(a, b), **_thing_features(a, b), **_form_features(a, b)}
    return {**found, "same_gist": float(not any(found[name] for name in CHANGES))}


@lru_cache(maxsize=65_536)
def roots(reading: Reading) -> tuple[str, ...]:
    """Return the content words of a statement, in order, each as the root it shares with its derivations."""
    found: list[str] = []
    terms = reading.terms[:MAX_ROOTS]
    for word, follower in zip(terms, (*terms[1:], ""), strict=False):
        if not (word[0] in "#@" or word.isalnum()) or word in PASSED_OVER:
            continue
        if word in KIND_NOUNS and follower in {"of", "called", "named"}:
            continue
        root = ROOTS.get(word)
        if root is None or root not in found:  # "designed by the architect" says it once
            found.append(root or stem(word))
    return tuple(found)


def _root_features(a: Reading, b: Reading) -> dict[str, float]:
    one, other = Counter(roots(a)), Counter(roots(b))
    names = {stem(name.lower()) for name in (*a.names, *b.names)}
    only_a, only_b = _left_over(list((one - other).elements()), list((other - one).elements()), names)
    words_a, words_b = (
        [word for word in only if word not in names and word[0] not in "#@"] for only in (only_a, only_b)
    )
    kinds_a, kinds_b = (sum(word in KIND_ROOTS for word in words) for words in (words_a, words_b))
    named_a, named_b = len(only_a) - len(words_a), len(only_b) - len(words_b)
    return {
        "roots_fewer": float(min(len(only_a), len(only_b))),
        "roots_more": float(max(len(only_a), len(only_b))),
        "roots_share": (len(only_a) + len(only_b)) / max(1, one.total() + other.total()),
        "root_words_fewer": float(min(len(words_a) - kinds_a, len(words_b) - kinds_b)),
        "root_words_more": float(max(len(words_a) - kinds_a, len(words_b) - kinds_b)),
        "root_kinds": float(kinds_a + kinds_b),
        "root_names_fewer": float(min(named_a, named_b)),
        "root_names_more": float(max(named_a, named_b)),
        "root_repeats": float(max((abs(one[word] - other[word]) for word in one.keys() & other.keys()), default=0)),
    }


def _left_over(only_a: list[str], only_b: list[str], names: set[str]) -> tuple[list[str], list[str]]:
    """Take away what is the same after all: a slip, a derivation ("operator", "operated"), one word written as two."""
    if "".join(only_a) == "".join(only_b) or max(len(only_a), len(only_b)) > MAX_LEFT_OVER:
        return ([], []) if "".join(only_a) == "".join(only_b) else (only_a, only_b)
    free = list(only_b)
    left: list[str] = []
    for word in only_a:
        partner = next((other for other in free if is_near_spelling(word, other) or _derived(word, other, names)), None)
        if partner is None:
            left.append(word)
        else:
            free.remove(partner)
    return left, free


def _derived(a: str, b: str, names: set[str]) -> bool:
    """Tell whether two common words are built on one stem: at least five letters and most of the longer word."""
    if a in names or b in names or not (a.isalpha() and b.isalpha()):
        return False
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    return shared >= 5 and shared >= 0.55 * max(len(a), len(b))


@lru_cache(maxsize=65_536)
def things(reading: Reading) -> tuple[Thing, ...]:
    """Return the names in a statement, in order: runs of capitalised words with the digits and links inside them."""
    cased = reading.cased[: 2 * MAX_ROOTS]
    found: list[Thing] = []
    last_end = 0
    for start, end in _runs(cased):
        between = {word.lower() for word in cased[last_end:start]}
        words = tuple(word for word in reading.words[start:end] if word[0].isalnum() and word not in LINKS)
        found.append(Thing(words, is_qualifier=bool(found) and bool(between) and between <= QUALIFIED_BY))
        last_end = end
    return tuple(found)


def _runs(cased: Sequence[str]) -> Iterable[tuple[int, int]]:
    start = end = -1
    for place, word in enumerate(cased):
        if _is_named(word) or (end == place and word.isdigit()):
            start, end = (start if end == place else place), place + 1
        elif end == place and word in LINKS and place + 1 < len(cased) and _is_named(cased[place + 1]):
            end = place + 1
        elif end == place:
            yield start, end
            end = -1
    if end == len(cased):
        yield start, end


def _is_named(word: str) -> bool:
    return word[0].isupper() and word.lower() not in FUNCTION_WORDS


def _thing_features(a: Reading, b: Reading) -> dict[str, float]:
    none_a, aside_a = _unmatched(a, b)
    none_b, aside_b = _unmatched(b, a)
    turned = _turned(a, b)
    return {
        "things": float(min(len(things(a)), len(things(b)))),
        "things_unmatched_fewer": float(min(none_a, none_b)),
        "things_unmatched_more": float(max(none_a, none_b)),
        "things_demoted": float(aside_a + aside_b),
        "things_turned_freely": float(turned and _order_of(a) != _order_of(b)),
        "things_turned_wrongly": float(turned and _order_of(a) == _order_of(b)),
        **_qualifier_features(a, b),
    }


def _unmatched(a: Reading, b: Reading) -> tuple[int, int]:
    """Count the heads of `a` that `b` names nowhere, and those `b` names only to narrow another name."""
    none = aside = 0
    for thing in things(a):
        if thing.is_qualifier:
            continue
        matches = [other for other in things(b) if is_same_thing(thing, other)]
        if any(not other.is_qualifier for other in matches) or (not matches and set(thing.words) <= set(b.words)):
            continue
        aside += bool(matches)
        none += not matches
    return none, aside


def is_same_thing(a: Thing, b: Thing) -> bool:
    """Tell whether two names share most words of the shorter one, allowing slips."""
    few, many = sorted((a.words, b.words), key=len)
    shared = sum(any(word == other or is_near_spelling(word, other) for other in many) for word in few)
    return 2 * shared > len(few)


def _turned(a: Reading, b: Reading) -> bool:
    """Tell whether the first and the last name of one statement stand the other way round in the other."""
    one, other = ([thing for thing in things(reading) if not thing.is_qualifier] for reading in (a, b))
    if len(one) < 2 or len(other) < 2:
        return False
    crossed = is_same_thing(one[0], other[-1]) and is_same_thing(one[-1], other[0])
    return crossed and not (is_same_thing(one[0], other[0]) and is_same_thing(one[-1], other[-1]))


def _order_of(reading: Reading) -> tuple[bool, bool]:
    """Tell what decides which side a name stands on: a passive, and a relation said before the first name."""
    is_passive = "by" in reading.words and bool(COPULAS & set(reading.words))
    opening = takewhile(lambda word: not _is_named(word) or word == reading.cased[0] == "The", reading.cased)
    return is_passive, any(word.lower() not in FUNCTION_WORDS for word in opening)


def _qualifier_features(a: Reading, b: Reading) -> dict[str, float]:
    """Count the narrowing names that one statement alone has: after its last head, and elsewhere."""
    last, elsewhere = (
        [{word for thing in parts(reading) for word in thing.words} for reading in (a, b)]
        for parts in (_last_qualifiers, _other_qualifiers)
    )
    return {
        "last_narrowed": float(len(last[0] - set(b.words)) + len(last[1] - set(a.words))),
        "last_narrowed_gap": float(bool(last[0]) != bool(last[1])),
        "narrowed": float(len(elsewhere[0] - set(b.words)) + len(elsewhere[1] - set(a.words))),
    }


def _last_qualifiers(reading: Reading) -> list[Thing]:
    return list(takewhile(lambda thing: thing.is_qualifier, reversed(things(reading))))


def _other_qualifiers(reading: Reading) -> list[Thing]:
    ended = len(things(reading)) - len(_last_qualifiers(reading))
    return [thing for thing in things(reading)[:ended] if thing.is_qualifier]


def _form_features(a: Reading, b: Reading) -> dict[str, float]:
    one, other = set(a.words), set(b.words)
    return {
        "restrictors": float(len((one ^ other) & RESTRICTORS)),
        "joined_gap": float(abs(_joined(a) - _joined(b))),
        "copular": float(bool(one & COPULAS) + bool(other & COPULAS)),
        "possessive_gap": float(("'s" in a.text) != ("'s" in b.text)),
    }


def _joined(reading: Reading) -> int:
    return sum(word in {"and", "or"} for word in reading.words)
