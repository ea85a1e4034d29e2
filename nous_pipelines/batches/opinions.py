"""What the outcomes of a batch amount to: a judgement for each pair, or why it is asked about again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nous_online.claude.pair_prompt import PROMPT_VERSION, Answer
from nous_online.claude.prices import cost_of
from nous_online.claude.verdicts import canaries_failed, confirmed, needs_confirmation
from nous_online.pairs.judging import Judgement, Pair, Verdict
from nous_pipelines.batches.outcomes import NOTHING_USED, Fate, Outcome, Outcomes
from nous_pipelines.batches.questions import Tried
from nous_pipelines.batches.requests import CANARY, STRAIGHT, SWAPPED

MOST_AGAIN = {Fate.TRUNCATED: 1, Fate.MALFORMED: 3, Fate.REFUSED: 0, Fate.INVALID: 0}
"""How often a pair is asked about again for a reason; for any other as often as it takes."""
ANY_NUMBER = 1_000_000
NOT_BELIEVED = "canary"
GONE = "changed"
"""Why pairs are asked about again besides the fate of their requests: the batch, or the pair, is not what it was."""
WORDS = {
    Fate.TRUNCATED: "its answer was cut short twice",
    Fate.MALFORMED: f"its answer could not be read {MOST_AGAIN[Fate.MALFORMED] + 1} times",
    Fate.REFUSED: "it declined to answer",
    Fate.INVALID: "the request was refused as invalid",
}


@dataclass(frozen=True)
class Opinions:
    """Judgements by the hash of their pair; `again` says of the others why, and of a refusal that it was one."""

    judgements: Mapping[str, Judgement] = field(default_factory=dict[str, Judgement])
    again: Mapping[str, str] = field(default_factory=dict[str, str])
    canaries_wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """What a batch asked, in its order: the hashes of its pairs and the names of its canaries, after one prefix."""

    prefix: str
    hashes: Sequence[str]
    canaries: Sequence[str]


def opinions_of(asked: Asked, pairs: Mapping[str, Pair], outcomes: Outcomes, *, model: str, tried: Tried) -> Opinions:
    """Return what a batch says of the pairs it asked about, by their number in it.

    One canary answered wrongly, and nothing of the batch is believed. A pair that is not among `pairs` says something
    else by now, and its answer counts for nothing.
    """
    wrong = tuple(canaries_failed(canary_answers(asked, outcomes)))
    if wrong:
        return Opinions(again=dict.fromkeys(asked.hashes, NOT_BELIEVED), canaries_wrong=wrong)
    judgements: dict[str, Judgement] = {}
    again: dict[str, str] = {}
    for number, pair_hash in enumerate(asked.hashes):
        both = [outcomes.by_id[f"{asked.prefix}-{number}-{way}"] for way in (STRAIGHT, SWAPPED)]
        if pair_hash not in pairs:
            again[pair_hash] = GONE
        elif (obstacle := obstacle_of(*both)) is None:
            judgements[pair_hash] = metered(opinion_on(pairs[pair_hash], *both, model=model), both, model)
        else:
            is_last = tried.count(model, pair_hash, obstacle.fate) >= MOST_AGAIN.get(obstacle.fate, ANY_NUMBER)
            if is_last:
                judgements[pair_hash] = metered(undecidable(obstacle, model), both, model)
            if not is_last or obstacle.fate is Fate.REFUSED:
                again[pair_hash] = obstacle.fate.value
    return Opinions(judgements, again)


def obstacle_of(straight: Outcome, swapped: Outcome) -> Outcome | None:
    """Return what keeps a pair from being settled: a missing answer, that to the swapped pair only where it counts."""
    if straight.answer is None:
        return straight
    return swapped if swapped.answer is None and needs_confirmation(straight.answer) else None


def opinion_on(pair: Pair, straight: Outcome, swapped: Outcome, *, model: str) -> Judgement:
    """Return what the answers in both orders come to."""
    if straight.answer is None:
        raise ValueError("a pair without an answer has no opinion")
    return confirmed(pair, straight.answer, swapped.answer, model=model)


def undecidable(obstacle: Outcome, model: str) -> Judgement:
    """Return the `unsure` that is kept of a pair which is not asked about again with this model and prompt."""
    reason = f"no answer of {model} is to be had: {WORDS[obstacle.fate]}"
    return Judgement(Verdict.UNSURE, 0.0, reason, None, None, model, PROMPT_VERSION)


def metered(judgement: Judgement, outcomes: Sequence[Outcome], model: str) -> Judgement:
    """Return a judgement with the tokens of its two answers and what they cost in a batch, in US dollars."""
    usage = sum((outcome.usage for outcome in outcomes), NOTHING_USED)
    return replace(
        judgement,
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=cost_of(model, usage, is_batch=True),
    )


def canary_answers(asked: Asked, outcomes: Outcomes) -> dict[str, Answer | None]:
    """Return what was said of each canary that was sent, by its name."""
    sent = ((name, outcomes.by_id.get(f"{asked.prefix}-{n}-{CANARY}")) for n, name in enumerate(asked.canaries))
    return {name: outcome.answer for name, outcome in sent if outcome is not None}
