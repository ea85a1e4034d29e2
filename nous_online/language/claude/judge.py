"""A language model as a judge: one question for each newer statement with all it is held against, by one deadline.

It is never a reason to lose a memory: what would retire one is asked again in the other order, and a pair without an
answer is `unsure`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from nous_online.core.errors import Unavailable
from nous_online.core.settings import settings
from nous_online.language.claude.client import model_client
from nous_online.language.claude.pair_prompt import (
    MAX_TOKENS,
    PROMPT_VERSION,
    PairAnswer,
    answer_to,
    pairs_request,
    read_answers,
    together,
)
from nous_online.language.claude.replies import Failure, LanguageModel, LLMError, Usage
from nous_online.language.claude.spending import Meter, Spent
from nous_online.language.claude.verdicts import confirmed, needs_confirmation, swapped
from nous_online.language.pairs.judging import Judge, Judgement, OfflineJudge, Pair, Verdict, later

PURPOSE = "judge"
AT_ONCE = 4
"""Requests under way at one time for one call."""
REST_S = 30.0
"""How long nothing is asked after two calls in a row got no answer: while the model is down, learning stays quick."""
REST_AFTER = 2
"""Calls without any answer: a single one may have met a moment's trouble."""
LEAST_S = 0.05  # no answer comes in less
TOO_LONG = "the two statements are too long to be asked about"
OUTAGES = frozenset({Failure.TRANSIENT, Failure.PERMANENT, Failure.QUOTA})
"""Failures that speak of the server, the network or the account, rather than of one pair."""


@dataclass(frozen=True)
class Given:
    """An answer about a pair, and the model that gave it."""

    answer: PairAnswer
    model: str


Outcome: TypeAlias = Given | LLMError
Outcomes: TypeAlias = tuple[Outcome, Outcome | None]
"""What came of a pair, and of the same pair swapped where it was asked about."""


@dataclass
class Sitting:
    """One call of the judge: when it ends, and the limit of the account it ran into, if any."""

    ends_at: float
    limit: LLMError | None = None

    def left_s(self) -> float:
        """Return the seconds left for a request; raise `LLMError` when nothing more is to be sent."""
        if self.limit is not None:
            raise LLMError(str(self.limit), Failure.QUOTA)
        left = self.ends_at - time.monotonic()
        if left < LEAST_S:
            raise LLMError("its turn did not come by the deadline; the night asks again", Failure.TRANSIENT)
        return left


@dataclass
class Rest:
    """When a model is left alone after calls in vain; shared by all judges of one client."""

    seconds: float = REST_S
    until: float = 0.0
    failed_in_a_row: int = 0

    def left_s(self) -> float:
        """Return how long nothing is to be asked; 0 or less when it may be."""
        return self.until - time.monotonic()

    def note(self, *, is_down: bool) -> None:
        """Take notice of a call that got no answer at all, or of one that did."""
        self.failed_in_a_row = self.failed_in_a_row + 1 if is_down else 0
        if self.failed_in_a_row >= REST_AFTER:
            self.until = time.monotonic() + self.seconds


@dataclass(frozen=True)
class ModelJudge:
    """Judges pairs by asking `model` about all of one newer statement at once, and again where one would be retired.

    What it refuses is asked once of `fallback`. A call takes at most `deadline_s` seconds. Every request is metered, in
    the thread that made it. While the client is not open yet, the offline judge answers. Safe to share between threads.
    """

    client: LanguageModel
    meter: Meter
    model: str
    fallback: str
    deadline_s: float
    rest: Rest = field(default_factory=Rest)
    at_once: int = AT_ONCE

    @property
    def prompt_version(self) -> str:
        """The version of what is asked."""
        return PROMPT_VERSION

    @property
    def name(self) -> str:
        """The model that is asked first."""
        return self.model

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Judge each pair on its own, the first ones first; raise `Unavailable` when no pair got an answer.

        After two such calls in a row nothing is sent for half a minute, and it is raised at once.
        """
        if not self.client.is_open:
            return OfflineJudge().judge(pairs)
        questions = together(pairs)
        outcomes = self._asked([[pairs[place] for place in places] for places in questions])
        judgements = [undecided(pair, TOO_LONG) for pair in pairs]
        for places, found in zip(questions, outcomes, strict=True):
            for place, (straight, back) in zip(places, found, strict=True):
                judgements[place] = judged(pairs[place], straight, back, model=self.model)
        return judgements

    def outcomes(
        self, questions: Sequence[Sequence[Pair]], sitting: Sitting, *, max_tokens: int = MAX_TOKENS
    ) -> list[list[Outcome]]:
        """Return what came of each pair of each question, asked in the order given, some questions at once."""
        ask = partial(self._answered, sitting=sitting, max_tokens=max_tokens)
        with ThreadPoolExecutor(self.at_once, thread_name_prefix="nous-judge") as pool:
            return list(pool.map(ask, questions))

    def in_both_orders(
        self, questions: Sequence[Sequence[Pair]], sitting: Sitting, *, max_tokens: int = MAX_TOKENS
    ) -> list[list[Outcomes]]:
        """Return what came of each pair of each question, and of those swapped that would retire a memory.

        Each of those is asked about alone: no third text has a say in both answers.
        """
        straight = self.outcomes(questions, sitting, max_tokens=max_tokens)
        retiring = [
            (number, place)
            for number, found in enumerate(straight)
            for place, each in enumerate(found)
            if isinstance(each, Given) and needs_confirmation(each.answer)
        ]
        turned = [[swapped(questions[number][place])] for number, place in retiring]
        again = self.outcomes(turned, sitting, max_tokens=max_tokens)
        back = {key: outcome for key, (outcome,) in zip(retiring, again, strict=True)}
        return [
            [(outcome, back.get((number, place))) for place, outcome in enumerate(found)]
            for number, found in enumerate(straight)
        ]

    def _asked(self, questions: Sequence[Sequence[Pair]]) -> list[list[Outcomes]]:
        """Ask, unless that was in vain lately; raise `Unavailable` when no pair got an answer."""
        if not questions:
            return []
        if self.rest.left_s() > 0:
            raise Unavailable(f"{self.model} gave no answers; it is asked again in {self.rest.left_s():.0f} s")
        found = self.in_both_orders(questions, Sitting(time.monotonic() + self.deadline_s))
        all_straight = [straight for question in found for straight, _ in question]
        failures = [outcome for outcome in all_straight if isinstance(outcome, LLMError)]
        is_vain = len(failures) == len(all_straight)
        self.rest.note(is_down=is_vain and OUTAGES.issuperset(each.kind for each in failures))
        if is_vain:
            raise Unavailable(f"{self.model} judged none of {len(failures)} pairs: {failures[0]}")
        return found

    def _answered(self, pairs: Sequence[Pair], sitting: Sitting, max_tokens: int) -> list[Outcome]:
        """Return the answer about each pair in one order, the fallback's after a refusal, or why there is none."""
        try:
            return self._ask(pairs, self.model, sitting, max_tokens)
        except LLMError as error:
            if error.kind is not Failure.REFUSED or self.fallback == self.model:
                return [error] * len(pairs)
        try:
            return self._ask(pairs, self.fallback, sitting, max_tokens)
        except LLMError as error:
            return [error] * len(pairs)

    def _ask(self, pairs: Sequence[Pair], model: str, sitting: Sitting, max_tokens: int) -> list[Outcome]:
        left_s = sitting.left_s()
        usage = Usage()
        try:
            reply = self.client.ask(pairs_request(pairs, model=model, max_tokens=max_tokens), deadline_s=left_s)
            usage = reply.usage
            answers = read_answers(reply.text)
        except LLMError as error:
            self.meter(Spent(PURPOSE, model, PROMPT_VERSION, usage + error.usage, error=f"{error.kind}: {error}"))
            if error.kind is Failure.QUOTA:
                sitting.limit = error
            raise
        found = [answer_to(number, answers) for number in range(1, len(pairs) + 1)]
        unread = next((each for each in found if isinstance(each, LLMError)), None)
        self.meter(Spent(PURPOSE, model, PROMPT_VERSION, usage, error=unread and f"{unread.kind}: {unread}"))
        return [each if isinstance(each, LLMError) else Given(each, model) for each in found]


def judged(pair: Pair, straight: Outcome, back: Outcome | None, *, model: str) -> Judgement:
    """Return the judgement that what came of a pair amounts to; its model is the fallback where that had a say."""
    if isinstance(straight, LLMError):
        return undecided(pair, f"no answer: {straight}")
    other = None if back is None or isinstance(back, LLMError) else back
    say = {straight.model, other.model if other else straight.model} - {model}
    return confirmed(pair, straight.answer, other and other.answer, model=min(say, default=model))


def undecided(pair: Pair, why: str) -> Judgement:
    """Return that nobody knows, and why."""
    return Judgement(Verdict.UNSURE, 0.0, why, None, later(pair), "none", PROMPT_VERSION)


def default_judge(*, meter: Meter) -> Judge:
    """Return the judge the settings name: a language model where they name one, else the built-in one.

    Raises `InvalidInput` for a key or an address nothing can be sent with.
    """
    return appointed(None)(meter)


def appointed(judge: Judge | None) -> Callable[[Meter], Judge]:
    """Return who judges, by who pays: the judge given, or without one that of `default_judge`, which raises the same.

    All judges it returns share one client, which opens in the background, and rest together.
    """
    if judge is not None:
        return lambda _meter: judge
    chosen = settings()
    if not chosen.asks_model:
        return lambda _meter: OfflineJudge()
    client, rest = model_client(chosen), Rest()
    client.open_soon()
    return lambda meter: ModelJudge(
        client,
        meter,
        model=chosen.judge_model,
        fallback=chosen.writer_model,
        deadline_s=chosen.claude_deadline_s,
        rest=rest,
    )
