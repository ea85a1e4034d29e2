"""Features of a pair of statements for the boosted trees: shared words and order, roots, and named things.

A paraphrase keeps roots and named things; an update or an exchanged role changes one of them.
"""
# ruff: noqa: PLR2004 — word lengths and shares are read best in place

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from nous_online.language.lexicon import (
    ARTICLES,
    ATTRIBUTES,
    COPULAS,
    FUNCTION_WORDS,
    KIND_NOUNS,
    LIKING,
    MANY_VALUED,
    NUMBER_WORDS,
    PROGRESSIVE_STATES,
    UNIDENTIFIED,
    UNITS,
    tables,
    word_list,
)
from nous_online.language.pairs.guards import (
    EMPTY,
    GUARDS,
    PREDICATING,
    common_prefix,
    content_stems,
    denied,
    guards_fired,
    is_near_spelling,
    negations,
    unmatched_names,
    unmatched_numbers,
)
from nous_online.language.pairs.reading import Reading, StatementWords, read, read_words, stem
from nous_online.language.pairs.slots import filled_slot, shared_slot

ROOTS: dict[str, str] = {word: root for root, listed in tables()["roots"].items() for word in (*listed.split(), root)}
RESTRICTORS, INTENTIONS = word_list("restrictors"), word_list("intentions")
LINKS = frozenset({"of", "de", "la", "del", "von", "van", "da", "do", "der"})
QUALIFIED_BY = frozenset({",", "(", ")", "in", "the"})
MAX_ROOTS = 120
# Guards compare a unit together with its number; by itself it says nothing.
PASSED_OVER = (
    FUNCTION_WORDS
    | word_list("light_words")
    | {word for word in UNITS if len(word) > 2 and word not in {"second", "pound"}}
)
KIND_ROOTS = frozenset(ROOTS.get(word) or stem(word) for word in KIND_NOUNS)
CHANGES = (
    "root_words_more", "root_names_more", "root_repeats", "things_unmatched_more", "things_demoted",
    "things_turned_wrongly", "last_narrowed", "restrictors", "joined_gap",
)  # fmt: skip
MAX_WORDS = 120  # of a statement; alignment is quadratic in words
LEAST_SIMILARITY = 0.85  # cosine of a near pair: `same` was trained on those
TURNS = frozenset(["is", "are", "was", "were", "by", "of", "has", "have", "had", "in", "being"])
MOST_WORDS = 22  # A longer statement makes more than one claim, and most of what it says may stand beside the other
LEAST_SHARED = 0.4  # Dice coefficient of the stems under which two statements hardly speak of one thing
NOBODY = frozenset({"nobody", "none", "noone"})
ROLE = re.compile(r"\b(?:is|are|was|were)\s(?:an?|the|one)\s(?:[\w-]+\s){1,4}?(?:of|in|for|at|to)\b")
"""What a statement opens with is called something of another thing: "Rice is an ingredient of …"."""
NAUGHT = EMPTY | {"there", "isn", "aren", "no"}
ACTORS = frozenset(map(stem, word_list("people")))
NOWHERE = -1.0  # place of what does not occur, where a place runs from 0, the first word, to 1, the last
MAX_LEFT_OVER = 12  # unmatched words compared pairwise; a pair with more is no paraphrase


@dataclass(frozen=True)
class Thing:
    """One name: its words in order, and whether it qualifies the name before it ("Ghent, Belgium")."""

    words: tuple[str, ...]
    is_qualifier: bool


def gist_features(a: Reading, b: Reading) -> dict[str, float]:
    """Return the features of shared roots and named things; symmetric in `a` and `b`."""
    found = {**_root_features(a, b), **_thing_features(a, b), **_form_features(a, b)}
    return {**found, "same_gist": float(not any(found[name] for name in CHANGES))}


def _sorted(name: str, one: float, other: float) -> dict[str, float]:
    """Return a feature of both statements as its lesser and its greater value, so that their order does not count."""
    fewer, more = sorted((one, other))
    return {f"{name}_fewer": float(fewer), f"{name}_more": float(more)}


@lru_cache(maxsize=65_536)
def roots(reading: Reading) -> tuple[str, ...]:
    """Return the roots of a statement's content words, in order; derived words have one root ("author", "written")."""
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
    return {
        **_sorted("roots", len(only_a), len(only_b)),
        "roots_share": (len(only_a) + len(only_b)) / max(1, one.total() + other.total()),
        **_sorted("root_words", len(words_a) - kinds_a, len(words_b) - kinds_b),
        "root_kinds": float(kinds_a + kinds_b),
        **_sorted("root_names", len(only_a) - len(words_a), len(only_b) - len(words_b)),
        "root_repeats": float(max((abs(one[word] - other[word]) for word in one.keys() & other.keys()), default=0)),
    }


def _left_over(only_a: list[str], only_b: list[str], names: set[str]) -> tuple[list[str], list[str]]:
    """Return the unmatched roots of both sides without typing slips, derivations and words written as two."""
    if "".join(only_a) == "".join(only_b):
        return [], []
    if max(len(only_a), len(only_b)) > MAX_LEFT_OVER:
        return only_a, only_b

    def is_derived(a: str, b: str) -> bool:  # common words on one stem: at least five letters, most of the longer word
        if a in names or b in names or not (a.isalpha() and b.isalpha()):
            return False
        shared = common_prefix(a, b)
        return shared >= 5 and shared >= 0.55 * max(len(a), len(b))

    free = list(only_b)
    left: list[str] = []
    for word in only_a:
        partner = next((other for other in free if is_near_spelling(word, other) or is_derived(word, other)), None)
        if partner is None:
            left.append(word)
        else:
            free.remove(partner)
    return left, free


@lru_cache(maxsize=65_536)
def things(reading: Reading) -> tuple[Thing, ...]:
    """Return the names in a statement, in order: runs of capitalised words with digits and links such as "of"."""
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
        **_sorted("things_unmatched", none_a, none_b),
        "things_demoted": float(aside_a + aside_b),
        "things_turned_freely": float(turned and _order_of(a) != _order_of(b)),
        "things_turned_wrongly": float(turned and _order_of(a) == _order_of(b)),
        **_qualifier_features(a, b),
    }


def _unmatched(a: Reading, b: Reading) -> tuple[int, int]:
    """Return how many unqualified names of `a` are missing in `b`, and how many `b` has only as qualifiers."""
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
    """Tell whether two names share most words of the shorter one, typing slips allowed."""
    few, many = sorted((a.words, b.words), key=len)
    shared = sum(any(word == other or is_near_spelling(word, other) for other in many) for word in few)
    return 2 * shared > len(few)


def _turned(a: Reading, b: Reading) -> bool:
    """Tell whether the first and the last name of one statement are in reverse order in the other."""
    one, other = ([thing for thing in things(reading) if not thing.is_qualifier] for reading in (a, b))
    if len(one) < 2 or len(other) < 2:
        return False
    crossed = is_same_thing(one[0], other[-1]) and is_same_thing(one[-1], other[0])
    return crossed and not (is_same_thing(one[0], other[0]) and is_same_thing(one[-1], other[-1]))


def _order_of(reading: Reading) -> tuple[bool, bool]:
    """Return what decides the order of names: whether there is a passive, and a relation before the first name."""
    is_passive = "by" in reading.words and bool(COPULAS & set(reading.words))
    opening = takewhile(lambda word: not _is_named(word) or word == reading.cased[0] == "The", reading.cased)
    return is_passive, any(word.lower() not in FUNCTION_WORDS for word in opening)


def _qualifier_features(a: Reading, b: Reading) -> dict[str, float]:
    """Return how many qualifiers only one statement has, after its last name and elsewhere."""
    last: list[set[str]] = []
    elsewhere: list[set[str]] = []
    for reading in (a, b):
        named = things(reading)
        ended = list(takewhile(lambda thing: thing.is_qualifier, reversed(named)))
        last.append({word for thing in ended for word in thing.words})
        others = named[: len(named) - len(ended)]
        elsewhere.append({word for thing in others if thing.is_qualifier for word in thing.words})
    return {
        "last_narrowed": float(len(last[0] - set(b.words)) + len(last[1] - set(a.words))),
        "last_narrowed_gap": float(bool(last[0]) != bool(last[1])),
        "narrowed": float(len(elsewhere[0] - set(b.words)) + len(elsewhere[1] - set(a.words))),
    }


def _form_features(a: Reading, b: Reading) -> dict[str, float]:
    one, other = set(a.words), set(b.words)
    joined = [sum(word in {"and", "or"} for word in reading.words) for reading in (a, b)]
    return {
        "restrictors": float(len((one ^ other) & RESTRICTORS)),
        "joined_gap": float(abs(joined[0] - joined[1])),
        "copular": float(bool(one & COPULAS) + bool(other & COPULAS)),
        "possessive_gap": float(("'s" in a.text) != ("'s" in b.text)),
    }


def pair_features(pairs: Sequence[tuple[str, str, float]]) -> NDArray[np.float64]:
    """Return one row of `FEATURES` for each (a, b, cosine); every feature is symmetric in a and b."""
    return _rows(pairs, features, len(FEATURES))


def conflict_rows(pairs: Sequence[tuple[str, str, float]]) -> NDArray[np.float64]:
    """Return one row of `CONFLICT_FEATURES` per (a, b, cosine); each is the same with a and b exchanged."""
    return _rows(pairs, conflict_features, len(CONFLICT_FEATURES))


def _rows(
    pairs: Sequence[tuple[str, str, float]], describe: Callable[[Reading, Reading, float], dict[str, float]], width: int
) -> NDArray[np.float64]:
    rows = [list(describe(read(min(a, b)), read(max(a, b)), similarity).values()) for a, b, similarity in pairs]
    return np.asarray(rows, dtype=np.float64).reshape(len(rows), width)


def features(a: Reading, b: Reading, similarity: float) -> dict[str, float]:
    """Return all features of one pair: cosine, shared and differing words, order, and typed differences."""
    return {
        "similarity": similarity,
        **_overlap(a, b),
        **_unshared(a, b),
        **_order(a, b),
        **_typed(a, b),
        **gist_features(a, b),
    }


@lru_cache(maxsize=65_536)
def _stems(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(stem(word) for word in words[:MAX_WORDS] if word[0] in "#@~" or word.isalnum())


def _dice(one: Counter[str], other: Counter[str]) -> float:
    total = sum(one.values()) + sum(other.values())
    return 2 * sum((one & other).values()) / total if total else 1.0


def _grams(parts: Sequence[str], size: int) -> Counter[str]:
    return Counter(" ".join(parts[i : i + size]) for i in range(len(parts) - size + 1))


def _overlap(a: Reading, b: Reading) -> dict[str, float]:
    one, other = _stems(a.terms), _stems(b.terms)
    content_a, content_b = _content(one), _content(other)
    letters_a, letters_b = list(" ".join(one)[:600]), list(" ".join(other)[:600])
    return {
        "word_dice": _dice(Counter(one), Counter(other)),
        "content_dice": _dice(Counter(content_a), Counter(content_b)),
        "bigram_dice": _dice(_grams(one, 2), _grams(other, 2)),
        "content_bigram_dice": _dice(_grams(content_a, 2), _grams(content_b, 2)),
        "letter_dice": _dice(_grams(letters_a, 3), _grams(letters_b, 3)),
        "longest": float(max(len(one), len(other))),
        "length_ratio": min(len(one), len(other)) / max(len(one), len(other), 1),
        "length_gap": float(abs(len(one) - len(other))),
    }


def _content(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in FUNCTION_WORDS]


def _unshared(a: Reading, b: Reading) -> dict[str, float]:
    one, other = Counter(_stems(a.terms)), Counter(_stems(b.terms))
    only_a, only_b = list((one - other).elements()), list((other - one).elements())
    content_a, content_b = _content(only_a), _content(only_b)
    function_a, function_b = set(only_a) - set(content_a) - ARTICLES, set(only_b) - set(content_b) - ARTICLES
    likeness = [
        max((SequenceMatcher(None, x, y, autojunk=False).ratio() for y in content_b), default=0.0)
        for x in content_a[:12]
    ]
    is_bare = not content_a and not content_b
    return {
        **_sorted("content_only", len(content_a), len(content_b)),
        "content_only_share": (len(content_a) + len(content_b))
        / max(1, len(_content(list(one))) + len(_content(list(other)))),
        **_sorted("function_only", len(function_a), len(function_b)),
        "replaced_likeness": min(likeness) if likeness and content_b else (1.0 if is_bare else 0.5),
        "article_change": float(sum((one & Counter(ARTICLES)).values()) != sum((other & Counter(ARTICLES)).values())),
    }


def _order(a: Reading, b: Reading) -> dict[str, float]:
    one, other = _stems(a.terms), _stems(b.terms)
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    matched = sum(block.size for block in blocks)
    shared_a, shared_b = _unique_content(one, other), _unique_content(other, one)
    places = [shared_b.index(word) for word in shared_a]
    pairs = len(places) * (len(places) - 1) / 2
    inversions = sum(x > y for i, x in enumerate(places) for y in places[i + 1 :])
    kept = sum(_neighbours(shared_a, word) & _neighbours(shared_b, word) != set() for word in shared_a)
    return {
        "in_order": 2 * matched / max(1, len(one) + len(other)),
        "blocks": float(len(blocks) - 1),
        "longest_block": max((block.size for block in blocks), default=0) / max(1, len(one), len(other)),
        "rotated": _best_rotation(one, other),
        "inverted": inversions / pairs if pairs else 0.0,
        "inversions": float(inversions),
        "neighbours_kept": kept / len(shared_a) if shared_a else 1.0,
        "neighbours_lost": float(len(shared_a) - kept),
        "same_opening": float(one[:1] == other[:1]),
        "same_ending": float(one[-1:] == other[-1:]),
        "same_first_content": float(_content(one)[:1] == _content(other)[:1]),
        "same_last_content": float(_content(one)[-1:] == _content(other)[-1:]),
    }


def _best_rotation(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the best match in order of one sentence turned round at a verb ("X is Y", "Y is X") with the other."""
    turns = [place for place, word in enumerate(one) if word in TURNS and 0 < place < len(one) - 1][:4]
    rotations = [[*one[place + 1 :], one[place], *one[:place]] for place in turns]
    return max((SequenceMatcher(None, turned, other, autojunk=False).ratio() for turned in rotations), default=0.0)


def _unique_content(words: Sequence[str], others: Sequence[str]) -> list[str]:
    counts, other = Counter(words), Counter(others)
    return [word for word in words if word not in FUNCTION_WORDS and counts[word] == 1 == other[word]]


def _neighbours(words: list[str], word: str) -> set[str]:
    place = words.index(word)
    return {*words[max(0, place - 1) : place], *words[place + 1 : place + 2]}


def _typed(a: Reading, b: Reading) -> dict[str, float]:
    passive = [
        "by" in words and bool({"is", "are", "was", "were", "been", "being"} & {*words}) for words in (a.words, b.words)
    ]
    return {
        **_sorted("names", len(unmatched_names(a, b)), len(unmatched_names(b, a))),
        "numbers_more": float(max(len(unmatched_numbers(a, b)), len(unmatched_numbers(b, a)))),
        "dates_gap": float(abs(len(a.dates) - len(b.dates))),
        "negation_gap": float(abs(negations(a) - negations(b))),
        "intention_gap": float(len((set(a.words) ^ set(b.words)) & INTENTIONS)),
        "question_gap": float(("?" in a.words) != ("?" in b.words)),
        "passive_gap": float(passive[0] != passive[1]),
        "lists": float(min(a.words.count(","), b.words.count(",")) + min(a.words.count("and"), b.words.count("and"))),
        "names": float(min(len(a.names), len(b.names))),
    }


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
    fired = guards_fired(a, b)
    one, other = filled_slot(a.text, None), filled_slot(b.text, None)
    return {
        "similarity": similarity,
        **gist_features(a, b),
        **{f"guard_{name}": float(name in fired) for name in GUARDS},
        "slot_shared": float(shared_slot(a.text, b.text) is not None),
        "slot_equal": float(one is not None and other is not None and one.key == other.key),
        "slots_read": float((one is not None) + (other is not None)),
        **_denials(a, b),
        **_spans(a, b),
        **_about(a, b),
        **_relation(a, b),
    }


def _denials(a: Reading, b: Reading) -> dict[str, float]:
    """Count negations, and how much of what both say is left of them once the negating words are taken away."""
    turns = sorted((negations(a), negations(b)))
    missing, more = _reach(a, b) if turns[0] % 2 != turns[1] % 2 else (NOWHERE, NOWHERE)
    one, other = set(content_stems(a.text)), set(content_stems(b.text))
    actors = [ACTORS & {*roots(reading)} for reading in (a, b)]
    return {
        "denied": float(denied(a.text, b.text) is not None),
        **_sorted("negations", *turns),
        "negation_parity": float(turns[0] % 2 != turns[1] % 2),
        "stems_dice": 2 * len(one & other) / max(1, len(one) + len(other)),
        "stems_held": len(one & other) / max(1, min(len(one), len(other))),
        "stems_shared": float(len(one & other)),
        **_sorted("stems_only", len(one - other), len(other - one)),
        "opening_stem": float(content_stems(a.text)[:1] == content_stems(b.text)[:1]),
        "denied_missing": missing,
        "denied_more": more,
        "actors_apart": float(bool(actors[0] and actors[1] and not actors[0] & actors[1])),
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


def _spans(a: Reading, b: Reading) -> dict[str, float]:
    """Measure what is left between the words two statements open with and those they end in."""
    one, other = _spoken(a), _spoken(b)
    shortest = min(len(one), len(other))
    opening = common_prefix(one, other)
    ending = min(common_prefix(one[::-1], other[::-1]), shortest - opening)
    left, right = (words[opening : len(words) - ending] for words in (one, other))
    return {
        "opening_shared": opening / max(1, shortest),
        "ending_shared": ending / max(1, shortest),
        **_sorted("span", len(left), len(right)),
        "span_figures": float(min(sum(word[0] in "#@" for word in span) for span in (left, right))),
        "span_content": float(min(len(_content(span)) for span in (left, right))),
    }


@lru_cache(maxsize=65_536)
def _spoken(reading: Reading) -> tuple[str, ...]:
    return tuple(word for word in reading.terms[:MAX_WORDS] if word[0] in "#@~" or word[0].isalnum())


def _about(a: Reading, b: Reading) -> dict[str, float]:
    """Tell which of the things both name stand first, and which stand last, in either."""
    one, other = things(a), things(b)
    shared = sum(any(is_same_thing(thing, match) for match in other) for thing in one)
    return {
        **_sorted("first_place", _place(one[:1], b), _place(other[:1], a)),
        **_sorted("last_place", _place(one[-1:], b), _place(other[-1:], a)),
        "things_shared": float(shared),
        **_sorted("things_left", len(one) - shared, len(other) - shared),
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
        **_sorted("roots_left", len(said_a - said_b), len(said_b - said_a)),
        "roots_bare": float(not said_a - said_b or not said_b - said_a),
        "roles_first": float(sum(ROLE.search(reading.text) is not None for reading in (a, b))),
        "many_valued": float(bool(one & other & MANY_VALUED)),
        "attributes": float(bool(one & other & ATTRIBUTES)),
    }


CONFLICT_FEATURES = tuple(conflict_features(read(""), read(""), 0.0))
FEATURES = tuple(features(read(""), read(""), 0.0))
