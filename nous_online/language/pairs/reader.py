"""The pair reader: a small cross-encoder that rates each way in which a later statement may affect an earlier one."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nous_online.core.errors import Unavailable
from nous_online.core.patterns import regex
from nous_online.language.lexicon import SMALL_WORDS, is_english
from nous_online.language.minilm import session, tokenizer, word_pieces

if TYPE_CHECKING:
    from tokenizers import Encoding

FOLDER = Path(__file__).parent / "model"
OUTCOMES = ("same", "update", "negation", "distinct", "refines", "vaguer", "contradiction")
"""What the later statement may do to the earlier, in the order of the model's columns (training/pairs/README.md)."""
WORD_OR_NUMBER = regex(r"(?:[^\W_]|[\u0300-\u036f\u064b-\u0652\u0900-\u0963\u0966-\u0dff])+")
"""Letters and digits, with the signs for vowels that Hindi, Tamil or Arabic write beside them."""
PLAIN_WORD = regex(r"[a-z0-9]+")
"""The same in lower case and ASCII, where it is found in half the time."""
UNSPACED = regex(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
"""Thai, kana and Chinese characters, written without spaces between words."""
HIRAGANA = regex(r"[\u3040-\u309f]+")
"""Signs in which Japanese writes particles and endings: two of them in a row tell nothing of what a text is about."""
GROUPING = regex(r"(?<=\d),(?=\d{3}(?!\d))")
NO_FRACTION = regex(r"(?<![\d.])(\d{3,12})\.0{1,6}(?![\d.]{0,12}\d)")
SHORTEST_CONTENT, BEGINNING = 3, 5
"""Letters of a content word at least, and the length of the prefix by which two are compared: endings vary."""
YEAR = regex(r"(?:19|20)\d\d")
LEAST_CHANCE = 1e-4
MOST_TOKENS = 62
"""Word pieces of one statement that are read: the limit the model was trained with."""
Weights: TypeAlias = tuple[Any, Any]
"""The ONNX sessions of the first layers, and of the others."""
IsEnough: TypeAlias = Callable[[NDArray[np.float64]], bool]
"""Tells from the scores of the first layers whether the others need not be asked."""
MOST_READ = 1024
"""Pairs whose scores a process keeps: each night of a range reads the same canaries."""


@dataclass(frozen=True)
class NeighbourOdds:
    """Corrects the reader's chance of a change for neighbours, most of which are about something else.

    A third of the reader's training pairs are changes; of the neighbours of a new statement hardly one in forty is, and
    those without a common word are the least likely. Coefficients of a logistic regression in log odds, fitted by
    `training/pairs/calibrate.py` on changes and unrelated pairs that are near each other in stores of one person.
    """

    intercept: float
    change: float
    """Coefficient of the log odds of the reader's own chance."""
    shared: float
    """Coefficient of each shared content word, a shared subject included, up to `most_shared`."""
    most_shared: int
    notice_from: float
    """Chance from which two statements count as a change."""
    retire_from: float
    """Chance from which the earlier one is superseded; below, a contradiction is opened."""

    def chance(self, change: float, *, shared: int, is_in_depth: bool) -> float:
        """Return the corrected chance of a change, given the reader's own.

        0 for a pair without a shared word that the reader was not trained for: another language, or too long.
        """
        if not (shared or is_in_depth):
            return 0.0
        clipped = min(max(change, LEAST_CHANCE), 1 - LEAST_CHANCE)
        odds = self.intercept + self.change * math.log(clipped / (1 - clipped))
        odds += self.shared * min(shared, self.most_shared)
        return 1 / (1 + math.exp(-odds))


@dataclass(frozen=True)
class Calibration:
    """Thresholds chosen for one set of weights on pairs outside the training set: see the model card beside them."""

    version: str
    first_sha256: str
    onnx_sha256: str
    early: float
    """Chance of `same` and of a change below which an early answer, after two of nine layers, is the last one."""
    early_does: float
    """The same of the log odds that an action does what a trigger warns of."""
    temperature: float
    """Divisor of the model's scores, so that its chances are calibrated (temperature scaling)."""
    same_at: float
    """Chance of `same` from which two statements say the same."""
    change_at: float
    """Chance of a change (update, negation, contradiction) from which the two may not hold together; how many of those
    that stand near each other are changes, `neighbours` says."""
    retire_at: float
    """Chance of update and negation together from which the earlier may give way; below, a contradiction is opened."""
    foreign_at: float
    """Word pieces per word, in both statements together, from which a text is too foreign for the model."""
    neighbours: NeighbourOdds
    curves: dict[str, list[list[float]]]
    """For `same` and `change`: the model's chances, and the observed frequencies."""

    def held(self, outcome: str, chance: float) -> float:
        """Return the observed frequency for a chance of `same` or `change`, interpolated."""
        given, came_true = self.curves[outcome]
        return float(np.interp(chance, given, came_true))


@dataclass(frozen=True)
class Chances:
    """The chances of one pair, and whether it is within what the model was trained for."""

    outcomes: NDArray[np.float64]
    """One chance for each of `OUTCOMES`."""
    is_in_depth: bool

    @property
    def same(self) -> float:
        """Chance that the later statement says the same in other words."""
        return float(self.outcomes[0])

    @property
    def distinct(self) -> float:
        """Chance that both hold, each of its own thing."""
        return float(self.outcomes[3])

    @property
    def replaces(self) -> float:
        """Chance that the later statement replaces a value of the earlier, or ends it."""
        return float(self.outcomes[1] + self.outcomes[2])

    @property
    def ends(self) -> float:
        """Chance that the later statement ends what the earlier says, without another value."""
        return float(self.outcomes[2])

    @property
    def change(self) -> float:
        """Chance that the two do not hold together: an update, an ending or a contradiction."""
        return float(self.outcomes[1] + self.outcomes[2] + self.outcomes[6])

    def and_back(self, other: Chances) -> Chances:
        """Return these chances with the lower chance of `same` of two orders; they need not sum to 1 then."""
        return replace(self, outcomes=np.array([min(self.same, other.same), *self.outcomes[1:]]))


@cache
def calibration() -> Calibration:
    """Return the calibration of the weights, from its file; raise `Unavailable` when that is missing or malformed."""
    path = FOLDER / "pair_reader.json"
    try:
        numbers = json.loads(path.read_text("utf-8"))
        return Calibration(neighbours=NeighbourOdds(**numbers.pop("neighbours")), **numbers)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise Unavailable(f"{path} can't be read ({error}); reinstall nous-pipelines") from error


def weights() -> Weights:
    """Return both halves of the model; raise `Unavailable` when a file is missing or altered."""
    numbers = calibration()
    return weights_in(FOLDER, numbers.first_sha256, numbers.onnx_sha256)


def weights_in(folder: Path, first_sha256: str, onnx_sha256: str) -> Weights:
    """Return the ONNX sessions of a model: its first layers with an early answer, and the others."""
    return (
        session(folder / "pair_reader_first.onnx", first_sha256, is_exact=True),
        session(folder / "pair_reader.onnx", onnx_sha256, is_exact=True),
    )


def read_pairs(pairs: Sequence[tuple[str, str]]) -> list[Chances]:
    """Return the model's chances for each (earlier, later) pair of texts; raise `Unavailable` without its file."""
    read = encodings(pairs)
    if len(read) > 1:
        found = start_reading(read, of_two_things)
    else:  # one is not worth another thread
        found = [scores(weights(), of_two_things, *each) for each in read]
    return [
        Chances(chances(each[: len(OUTCOMES)]), is_in_depth(pieces, texts))
        for each, pieces, texts in zip(found, read, pairs, strict=True)
    ]


def read_actions(pairs: Sequence[tuple[str, str]]) -> Iterator[float]:
    """Yield the log odds that an action does what a trigger warns of, for each (trigger, action).

    Other threads read while the caller goes on. The odds are not calibrated. Raises `Unavailable` without its file.
    """
    found = start_reading(encodings(pairs), of_another_act)
    return (float(each[len(OUTCOMES)]) for each in found)


def of_two_things(early: NDArray[np.float64], below: float | None = None) -> bool:
    """Tell from early scores whether two statements neither say the same nor exclude each other.

    `below`: the chance that both have to stay under; without it that of the calibration.
    """
    same, update, negation, _, _, _, contradiction = chances(early[: len(OUTCOMES)])
    return max(same, update + negation + contradiction) < (calibration().early if below is None else below)


def of_another_act(early: NDArray[np.float64]) -> bool:
    """Tell from early scores whether an action is far from what a trigger warns of."""
    return early[len(OUTCOMES)] < calibration().early_does


def start_reading(pairs: Sequence[tuple[Encoding, Encoding]], is_enough: IsEnough) -> Iterator[NDArray[np.float64]]:
    """Start to read pairs on as many cores as there are, and return what waits for the model's scores of each."""
    return cores().map(partial(scores, weights(), is_enough), *zip(*pairs, strict=True)) if pairs else iter(())


@cache
def cores() -> ThreadPoolExecutor:
    """Return a thread for each core, kept: callers at once share them."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="nous-reader")


if hasattr(os, "register_at_fork"):  # a fork takes no threads along
    os.register_at_fork(after_in_child=cores.cache_clear)


def encodings(pairs: Sequence[tuple[str, str]]) -> list[tuple[Encoding, Encoding]]:
    """Return the word pieces of both texts of each pair; every distinct text is cut up once."""
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    encoded = dict(zip(texts, word_pieces([*map(with_plain_numbers, texts)], add_special_tokens=False), strict=True))
    return [(encoded[one], encoded[other]) for one, other in pairs]


def with_plain_numbers(text: str) -> str:
    """Return an English text in which equal numbers are written alike: 1,533 and 1533.0 as 1533.

    Elsewhere a comma may part decimals; and of a short number the zero may count: Python 3.0.
    """
    return NO_FRACTION.sub(r"\1", GROUPING.sub("", text)) if is_english(text) else text


def scores(model: Weights, is_enough: IsEnough, one: Encoding, other: Encoding) -> NDArray[np.float64]:
    """Return the model's scores of one pair, laid out as it was trained: [CLS] one [SEP] other [SEP].

    Each pair is read alone: int8 scales are taken over all that is read at once, so that in a batch the chances of one
    pair would depend on the others. Alone it costs a fifth more.
    """
    start, end = (tokenizer().token_to_id(name) for name in ("[CLS]", "[SEP]"))
    return scored(model, is_enough, (start, *one.ids[:MOST_TOKENS], end), (*other.ids[:MOST_TOKENS], end))


@lru_cache(maxsize=MOST_READ)
def scored(model: Weights, is_enough: IsEnough, first: tuple[int, ...], second: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the model's scores of the word pieces of one pair, not to be written to.

    Two layers of nine tell most strangers from each other: where their answer is enough the others are not asked.
    """
    sides = np.asarray([[0] * len(first) + [1] * len(second)], dtype=np.int64)
    feeds = {"input_ids": np.asarray([[*first, *second]], dtype=np.int64), "token_type_ids": sides}
    found, states = model[0].run(None, feeds)
    if not is_enough(found[0].astype(np.float64)):
        (found,) = model[1].run(None, {"states": states, "token_type_ids": sides})
    last: NDArray[np.float64] = found[0].astype(np.float64)
    last.flags.writeable = False
    return last


def chances(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the chance of each outcome."""
    exponents = np.exp((scores - scores.max()) / calibration().temperature)
    return exponents / exponents.sum()


def is_in_depth(read: tuple[Encoding, Encoding], texts: tuple[str, str]) -> bool:
    """Tell whether both texts are short enough to be read whole, in words the model knows as words, and in English."""
    one, other = read
    pieces = len(one.ids) + len(other.ids)
    words = len({*one.word_ids}) + len({*other.word_ids})
    is_read_whole = max(len(one.ids), len(other.ids)) <= MOST_TOKENS
    return is_read_whole and pieces < calibration().foreign_at * max(words, 1) and all(map(is_english, texts))


def shared_content(one: str, other: str, *, is_of_words: bool = False) -> int:
    """Count what two texts both speak of, in any language: content words by their first letters, or pairs of signs.

    Years are none: every dated statement has one. `is_of_words` leaves out all numbers: where little else is
    understood, a day in both would make them one matter.
    """
    shared = {word for word in content_of(one) & content_of(other) if not YEAR.fullmatch(word)}
    return sum(not word.isdigit() for word in shared) if is_of_words else len(shared)


@lru_cache(maxsize=8_192)
def content_of(text: str) -> frozenset[str]:
    """Return the content words of a text, cut short as endings change; of a script without spaces pairs of signs."""
    found: set[str] = set()
    folded = text.casefold()
    is_plain = folded.isascii()
    for word in (PLAIN_WORD if is_plain else WORD_OR_NUMBER).findall(folded):
        if not is_plain and UNSPACED.search(word):
            pairs = {word[at : at + 2] for at in range(len(word) - 1)}
            found |= {pair for pair in pairs if not HIRAGANA.fullmatch(pair)}
        elif word not in SMALL_WORDS and (len(word) >= SHORTEST_CONTENT or word.isdigit()):
            found.add(word[:BEGINNING])
    return frozenset(found)
