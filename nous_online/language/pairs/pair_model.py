"""The boosted trees that give near statements a chance of being the same, and the features they see of a pair.

A paraphrase keeps roots and named things; an update or an exchanged role changes one of them.
"""
# ruff: noqa: PLR2004 — word lengths and shares are read best in place

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nous_online.core.errors import Unavailable
from nous_online.language.lexicon import (
    ARTICLES,
    COPULAS,
    FUNCTION_WORDS,
    KIND_NOUNS,
    UNITS,
    tables,
    word_list,
)
from nous_online.language.pairs.guards import (
    common_prefix,
    is_near_spelling,
    negations,
    unmatched_names,
    unmatched_numbers,
)
from nous_online.language.pairs.reading import Reading, read, stem

Rows = NDArray[np.float64]
MODEL_PATH = Path(__file__).parent / "model" / "pair_model.json"
CHUNK = 4096  # rows evaluated at once on all trees, about 30 MB
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


def pair_features(pairs: Sequence[tuple[str, str, float]]) -> Rows:
    """Return one row of `FEATURES` for each (a, b, cosine); every feature is symmetric in a and b."""
    rows = [list(features(read(min(a, b)), read(max(a, b)), similarity).values()) for a, b, similarity in pairs]
    return np.asarray(rows, dtype=np.float64).reshape(len(rows), len(FEATURES))


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


FEATURES = tuple(features(read(""), read(""), 0.0))


@dataclass(frozen=True)
class PairModel:
    """The shipped trees, one row each: perfect binary trees of `depth` levels over `features`.

    `given` and `came_true` are the points of the curve that calibrates their chances on pairs not seen in training.
    """

    version: str
    features: tuple[str, ...]
    depth: int
    split_feature: NDArray[np.int32]
    split_value: Rows
    leaf: Rows
    intercept: float
    given: Rows
    came_true: Rows
    decide_at: float

    def held(self, chance: float) -> float:
        """Return how often pairs with this raw chance were the same."""
        return float(np.interp(chance, self.given, self.came_true))

    def raw_chance(self, rows: Rows) -> Rows:
        """Return the trees' own chance of `same` for each row of `pair_features`, not calibrated."""
        chunks = [rows[at : at + CHUNK] for at in range(0, len(rows), CHUNK)]
        score = np.concatenate([np.empty(0), *map(self._scores, chunks)])
        return 1 / (1 + np.exp(-score))

    def _scores(self, rows: Rows) -> Rows:
        """Return the summed leaves of all trees for each row."""
        lines, trees = np.arange(len(rows))[:, None], np.arange(len(self.leaf))
        node = np.zeros((len(rows), len(trees)), dtype=np.int64)
        for _ in range(self.depth):
            is_more = rows[lines, self.split_feature[trees, node]] > self.split_value[trees, node]
            node = 2 * node + 1 + is_more
        return self.intercept + self.leaf[trees, node - self.split_feature.shape[1]].sum(axis=1)


def trees_from(stored: dict[str, Any]) -> PairModel:
    """Return the trees that the training stored as plain lists."""
    return PairModel(
        version=stored["version"],
        features=tuple(stored["features"]),
        depth=stored["depth"],
        split_feature=np.asarray(stored["split_feature"], dtype=np.int32),
        split_value=np.asarray(stored["split_value"], dtype=np.float64),
        leaf=np.asarray(stored["leaf"], dtype=np.float64),
        intercept=stored["intercept"],
        given=np.asarray(stored["curve"]["given"], dtype=np.float64),
        came_true=np.asarray(stored["curve"]["came_true"], dtype=np.float64),
        decide_at=stored["decide_at"],
    )


def checksum(stored: dict[str, Any]) -> str:
    """Return the SHA-256 of a stored model as canonical JSON, without its own checksum."""
    return hashlib.sha256(json.dumps(stored, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@cache
def load_model(path: Path = MODEL_PATH) -> PairModel:
    """Read the shipped trees; raise `Unavailable` when they are missing, altered or made for other features."""
    if not path.is_file():
        message = f"{path} is missing; reinstall nous-pipelines or run: python -m training.trees --data DIR"
        raise Unavailable(message)
    return parse_model(path.read_text("utf-8"))


def parse_model(text: str) -> PairModel:
    """Return the trees in the JSON of the training, after checking its checksum and the names of its features."""
    stored = json.loads(text)
    claimed = stored.pop("sha256", None)
    if claimed != checksum(stored):
        message = "the pair model does not match its own SHA-256; reinstall nous-pipelines"
        raise Unavailable(message)
    model = trees_from(stored)
    if model.features != FEATURES:
        message = f"the pair model {model.version} was trained on other features than this version computes; retrain it"
        raise Unavailable(message)
    return model
