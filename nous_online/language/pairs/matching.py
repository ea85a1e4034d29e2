"""Typed features of a pair of statements and the classifier that weighs them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nous_online.core.errors import Unavailable
from nous_online.language.pairs.conflicts import CONFLICT_FEATURES
from nous_online.language.pairs.content_features import gist_features
from nous_online.language.pairs.guards import negations, unmatched_names, unmatched_numbers
from nous_online.language.pairs.lexicon import FUNCTION_WORDS, INTENTIONS
from nous_online.language.pairs.reading import Reading, read, stem
from nous_online.language.pairs.trees import Trees, checksum, trees_from

MODEL_PATH = Path(__file__).parent / "model" / "pair_model.json"
MAX_WORDS = 120  # alignment is quadratic in words; what stands later only counts towards the lengths
LEAST_SIMILARITY = 0.85  # cosine from which `same` was trained; below it nothing is a candidate for merging
TURNS = frozenset(["is", "are", "was", "were", "by", "of", "has", "have", "had", "in", "being"])
ARTICLES = frozenset({"a", "an", "the"})


@dataclass(frozen=True)
class PairModel:
    """The classifiers of the offline judge, `same` over `FEATURES` and `conflict` over `CONFLICT_FEATURES`.

    `slot_held` and `denial_held` tell how often what was read off the words alone came true, `unasked_held` how often
    what nobody asks about was no conflict, `denial_at` from which chance a negation denies what the other one says.
    """

    version: str
    same: Trees
    conflict: Trees
    slot_held: float
    denial_held: float
    denial_at: float
    unasked_held: float

    @property
    def merge_at(self) -> float:
        """The trees' own chance of `same` from which two statements count as the same."""
        return self.same.decide_at

    def probability(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the trees' own chance of `same` for each row of `pair_features`."""
        return self.same.raw_chance(rows)


@cache
def load_model(path: Path = MODEL_PATH) -> PairModel:
    """Read the shipped classifiers; raise `Unavailable` when they are missing, altered or made for other features."""
    if not path.is_file():
        message = f"{path} is missing; reinstall nous-pipelines or run: python -m training.trees --data DIR"
        raise Unavailable(message)
    return parse_model(path.read_text("utf-8"))


def parse_model(text: str) -> PairModel:
    """Turn the JSON written by the training into arrays, after checking its checksum and its feature names."""
    stored = json.loads(text)
    claimed = stored.pop("sha256", None)
    if claimed != checksum(stored):
        message = "the pair model does not match its own SHA-256; reinstall nous-pipelines"
        raise Unavailable(message)
    model = PairModel(
        version=stored["version"],
        same=trees_from(stored["same"]),
        conflict=trees_from(stored["conflict"]),
        slot_held=stored["slot_held"],
        denial_held=stored["denial_held"],
        denial_at=stored["denial_at"],
        unasked_held=stored["unasked_held"],
    )
    if (model.same.features, model.conflict.features) != (FEATURES, CONFLICT_FEATURES):
        message = f"the pair model {model.version} was trained on other features than this version computes; retrain it"
        raise Unavailable(message)
    return model


def pair_features(pairs: Sequence[tuple[str, str, float]]) -> NDArray[np.float64]:
    """Return one row of `FEATURES` per (a, b, cosine); every feature is the same with a and b exchanged."""
    rows = [list(features(read(min(a, b)), read(max(a, b)), similarity).values()) for a, b, similarity in pairs]
    return np.asarray(rows, dtype=np.float64).reshape(len(rows), len(FEATURES))


def features(a: Reading, b: Reading, similarity: float) -> dict[str, float]:
    """Describe one pair: closeness, shared and differing words, order, and typed differences."""
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
    fewer, more = sorted((len(content_a), len(content_b)))
    likeness = [max((_likeness(x, y) for y in content_b), default=0.0) for x in content_a[:12]]
    return {
        "content_only_fewer": float(fewer),
        "content_only_more": float(more),
        "content_only_share": (fewer + more) / max(1, len(_content(list(one))) + len(_content(list(other)))),
        "function_only_fewer": float(min(len(function_a), len(function_b))),
        "function_only_more": float(max(len(function_a), len(function_b))),
        "replaced_likeness": min(likeness)
        if likeness and content_b
        else (1.0 if not content_a and not content_b else 0.5),
        "article_change": float(sum((one & Counter(ARTICLES)).values()) != sum((other & Counter(ARTICLES)).values())),
    }


def _likeness(a: str, b: str) -> float:
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


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
    """Return how well the words agree in order when one sentence is turned round at a verb: "X is Y", "Y is X"."""
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
    names = sorted((len(unmatched_names(a, b)), len(unmatched_names(b, a))))
    numbers = sorted((len(unmatched_numbers(a, b)), len(unmatched_numbers(b, a))))
    return {
        "names_fewer": float(names[0]),
        "names_more": float(names[1]),
        "numbers_more": float(numbers[1]),
        "dates_gap": float(abs(len(a.dates) - len(b.dates))),
        "negation_gap": float(abs(negations(a) - negations(b))),
        "intention_gap": float(len((set(a.words) ^ set(b.words)) & INTENTIONS)),
        "question_gap": float(("?" in a.words) != ("?" in b.words)),
        "passive_gap": float(_is_passive(a) != _is_passive(b)),
        "lists": float(min(a.words.count(","), b.words.count(",")) + min(a.words.count("and"), b.words.count("and"))),
        "names": float(min(len(a.names), len(b.names))),
    }


def _is_passive(reading: Reading) -> bool:
    return "by" in reading.words and bool({"is", "are", "was", "were", "been", "being"} & set(reading.words))


FEATURES = tuple(features(read(""), read(""), 0.0))
