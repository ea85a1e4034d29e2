"""What the answers of a batch, and those that confirm them, amount to: a judgement, or why a pair is asked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace

from nous_online.language.claude.judge import canaries_failed, confirmed, needs_confirmation
from nous_online.language.claude.pair_prompt import PROMPT_VERSION, PairAnswer
from nous_online.language.claude.replies import Usage
from nous_online.language.claude.spending import cost_of
from nous_online.language.pairs.judging import Judgement, Pair, Verdict
from nous_pipelines.batches.batch_requests import CANARY, QUESTION, BatchOutcomes, Fate, OfPair, Tried

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
class BatchContents:
    """What a batch asked, in its order: the hashes of the pairs of each question, and its canaries, after a prefix."""

    prefix: str
    questions: Sequence[Sequence[str]]
    canaries: Sequence[str]

    @property
    def hashes(self) -> list[str]:
        """All pairs that were asked about."""
        return [pair_hash for question in self.questions for pair_hash in question]


@dataclass(frozen=True)
class Straight:
    """What a batch said of its pairs in the order they were asked about in, by hash; nothing where it lied."""

    by_hash: Mapping[str, OfPair] = field(default_factory=dict[str, OfPair])
    shares: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    """The tokens of a question, shared among its pairs."""
    canaries_wrong: tuple[str, ...] = ()


def straight_of(asked: BatchContents, outcomes: BatchOutcomes) -> Straight:
    """Return what a batch says of the pairs it asked about; one canary answered wrongly, and none of it is believed."""
    wrong = tuple(canaries_failed(canary_answers(asked, outcomes)))
    if wrong:
        return Straight(canaries_wrong=wrong)
    found: dict[str, OfPair] = {}
    shares: dict[str, Usage] = {}
    for number, question in enumerate(asked.questions):
        outcome = outcomes.by_id[f"{asked.prefix}-{number}-{QUESTION}"]
        for place, pair_hash in enumerate(question, start=1):
            found[pair_hash] = outcome.about(place)
            shares[pair_hash] = share_of(outcome.usage, len(question))
    return Straight(found, shares)


def to_confirm(pairs: Mapping[str, Pair], straight: Straight) -> list[str]:
    """Return the pairs whose answer would retire a memory: each is asked about once more, swapped and alone."""
    found = straight.by_hash.items()
    return [each for each, said in found if each in pairs and said.answer and needs_confirmation(said.answer)]


def opinions_of(
    asked: BatchContents,
    pairs: Mapping[str, Pair],
    straight: Straight,
    back: Mapping[str, OfPair],
    *,
    model: str,
    tried: Tried,
) -> Opinions:
    """Return what the answers in both orders, `back` those about the swapped pairs, come to.

    A pair that is not among `pairs` says something else by now, and its answer counts for nothing.
    """
    if straight.canaries_wrong:
        again = dict.fromkeys(asked.hashes, NOT_BELIEVED)
        return Opinions(again=again, canaries_wrong=straight.canaries_wrong)
    judgements: dict[str, Judgement] = {}
    again: dict[str, str] = {}
    for pair_hash in asked.hashes:
        first, other = straight.by_hash[pair_hash], back.get(pair_hash)
        obstacle = first if first.answer is None else other if other is not None and other.answer is None else None
        if pair_hash not in pairs:
            again[pair_hash] = GONE
        elif obstacle is None and first.answer is not None:
            judgement = confirmed(pairs[pair_hash], first.answer, other and other.answer, model=model)
            judgements[pair_hash] = metered(judgement, straight.shares[pair_hash], model)
        elif obstacle is not None:
            is_last = tried.count(model, pair_hash, obstacle.fate) >= MOST_AGAIN.get(obstacle.fate, ANY_NUMBER)
            if is_last:
                judgements[pair_hash] = metered(undecidable(obstacle.fate, model), straight.shares[pair_hash], model)
            if not is_last or obstacle.fate is Fate.REFUSED:
                again[pair_hash] = obstacle.fate.value
    return Opinions(judgements, again)


def undecidable(fate: Fate, model: str) -> Judgement:
    """Return the `unsure` that is kept of a pair which is not asked about again with this model and prompt."""
    reason = f"no answer of {model} is to be had: {WORDS[fate]}"
    return Judgement(Verdict.UNSURE, 0.0, reason, None, None, model, PROMPT_VERSION)


def share_of(usage: Usage, count: int) -> Usage:
    """Return an equal share of tokens."""
    return Usage(*(tokens // count for tokens in astuple(usage)))


def metered(judgement: Judgement, usage: Usage, model: str) -> Judgement:
    """Return a judgement with its tokens and what they cost in a batch, in US dollars."""
    return replace(
        judgement,
        input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=cost_of(model, usage, is_batch=True),
    )


def canary_answers(asked: BatchContents, outcomes: BatchOutcomes) -> dict[str, PairAnswer | None]:
    """Return what was said of each canary that was sent, by its name."""
    sent = ((name, outcomes.by_id.get(f"{asked.prefix}-{n}-{CANARY}")) for n, name in enumerate(asked.canaries))
    return {name: outcome.about(1).answer for name, outcome in sent if outcome is not None}
