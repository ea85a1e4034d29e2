"""The seam that answers for a pair of statements: same, update, contradiction, compatible or unsure.

The question is never which statement is true, only: is it the same slot, and which was stated later?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

from nous_online.pairs.denials import denied
from nous_online.pairs.guards import differences
from nous_online.pairs.matching import LEAST_SIMILARITY, load_model, pair_features
from nous_online.pairs.sharing import shared_slot
from nous_online.pairs.subjects import other_subjects
from nous_online.pairs.unseen import unseen

Touch: TypeAlias = tuple[str | None, str | None]
UNRELATED_BELOW = 0.1  # chance of `same` under which a pair without a shared slot is simply two statements


class Verdict(StrEnum):
    """What one statement is to another; `UNSURE` is always a valid answer and the cheapest one."""

    SAME = "same"
    UPDATES = "updates"
    CONTRADICTS = "contradicts"
    COMPATIBLE = "compatible"
    UNSURE = "unsure"


@dataclass(frozen=True)
class Statement:
    """A memory's words as a judge sees them; `trust` runs from 0 to 100 and is the caller's to weigh."""

    text: str
    subject: str | None = None
    stated_at: datetime | None = None
    trust: int = 50


@dataclass(frozen=True)
class Pair:
    """Two statements of one agent and the cosine of their vectors; `b` is the newer where the order is known."""

    a: Statement
    b: Statement
    similarity: float


@dataclass(frozen=True)
class Judgement:
    """A verdict with who gave it and why; `slot` names what both speak about, `later` which was stated later."""

    verdict: Verdict
    confidence: float
    reason: str
    slot: str | None
    later: Literal["a", "b"] | None
    model: str
    prompt_version: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0


class Judge(Protocol):
    """Anything that gives one judgement per pair, in order."""

    @property
    def name(self) -> str: ...

    @property
    def prompt_version(self) -> str: ...

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Judge each pair on its own; raise `Unavailable` when no verdict can be had now."""
        ...


class OfflineJudge:
    """Guards, then a small calibrated classifier: no network, no key, about a millisecond a pair."""

    prompt_version = "guards-4"

    @property
    def name(self) -> str:
        return f"offline:{load_model().version}"

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Judge each pair from its words alone; `Unavailable` is raised when the model file is missing or altered.

        Two statements too far apart to be the same, that neither share a slot nor deny each other, are compatible
        whatever the guards would say: they are not asked.
        """
        touches = [_touch(pair) for pair in pairs]
        is_open = [
            pair.similarity >= LEAST_SIMILARITY or any(touch) for pair, touch in zip(pairs, touches, strict=True)
        ]
        reasons = [reasons_apart(pair) if asked else () for pair, asked in zip(pairs, is_open, strict=True)]
        chances = chances_of_same(pairs, reasons)
        return [self._judged(*parts) for parts in zip(pairs, touches, reasons, chances, strict=True)]

    def _judged(self, pair: Pair, touch: Touch, reasons: Sequence[str], chance: float) -> Judgement:
        slot, denial = touch
        stated_later = later(pair)
        verdict, confidence, reason = decide(
            reasons, slot=slot, denial=denial, chance=chance, merge_at=load_model().merge_at, later=stated_later
        )
        return Judgement(verdict, confidence, reason, slot, stated_later, self.name, self.prompt_version)


def _touch(pair: Pair) -> Touch:
    """Return the slot a pair shares, if any, else what one of them says and the other denies."""
    known, new = (pair.b, pair.a) if later(pair) == "a" else (pair.a, pair.b)
    if other_subjects(known.subject, new.subject):
        return None, None
    slot = shared_slot(known.text, new.text, subjects=(known.subject, new.subject))
    return slot, None if slot else denied(pair.a.text, pair.b.text)


def reasons_apart(pair: Pair) -> tuple[str, ...]:
    """Return each reason why a pair can never be duplicates: other subjects, hidden text, what the guards find."""
    reasons = (other_subjects(pair.a.subject, pair.b.subject), unseen(pair.a.text, pair.b.text))
    return (*filter(None, reasons), *differences(pair.a.text, pair.b.text))


def chances_of_same(pairs: Sequence[Pair], reasons: Sequence[Sequence[str]]) -> list[float]:
    """Return the classifier's chance of `same` per pair: 0 where a guard fired or the cosine is under 0.85."""
    open_to_doubt = [i for i, pair in enumerate(pairs) if not reasons[i] and pair.similarity >= LEAST_SIMILARITY]
    model = load_model()
    rows = pair_features([(pairs[i].a.text, pairs[i].b.text, pairs[i].similarity) for i in open_to_doubt])
    chances = [0.0] * len(pairs)
    for index, chance in zip(open_to_doubt, model.probability(rows), strict=True):
        chances[index] = float(chance)
    return chances


def later(pair: Pair) -> Literal["a", "b"] | None:
    """Return which statement was made later, None when that is unknown or both were made at once."""
    first, second = pair.a.stated_at, pair.b.stated_at
    if first is None or second is None or first == second:
        return None
    return "b" if second > first else "a"


def decide(
    reasons: Sequence[str],
    *,
    slot: str | None,
    denial: str | None,
    chance: float,
    merge_at: float,
    later: Literal["a", "b"] | None,
) -> tuple[Verdict, float, str]:
    """Turn guard reasons, shared slot, denial and the classifier's chance of `same` into a verdict with its reason."""
    if not reasons and chance >= merge_at:
        return Verdict.SAME, chance, "same words in substance, and no guard fired"
    if denial is not None:
        return Verdict.CONTRADICTS, 0.9, f"one says “{denial}”, the other denies it"
    if slot is not None:
        return _about_one_slot(f"same slot “{slot}”, {'; '.join(reasons) or 'another value'}", later=later)
    if reasons:
        return Verdict.COMPATIBLE, 0.7, "; ".join(reasons)
    if chance < UNRELATED_BELOW:
        return Verdict.COMPATIBLE, min(1 - chance, 0.9), "different statements, no shared slot with another value"
    return Verdict.UNSURE, max(chance, 1 - chance), "close, but not close enough to merge"


def _about_one_slot(why: str, *, later: Literal["a", "b"] | None) -> tuple[Verdict, float, str]:
    """Order turns another value of one slot into an update; without it, it is an open contradiction."""
    if later is None:
        return Verdict.CONTRADICTS, 0.9, f"{why}, order unknown"
    return Verdict.UPDATES, 0.9, f"{why}, stated later"
