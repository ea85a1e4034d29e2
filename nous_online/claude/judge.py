"""Claude as the judge of an online call: each pair on its own, by one deadline, and never a reason to lose a memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from nous_online.claude.client import claude_of
from nous_online.claude.pair_prompt import PROMPT_VERSION, Answer, is_askable, pair_request, read_answer
from nous_online.claude.replies import Failure, LanguageModel, LLMError, Usage
from nous_online.claude.spending import Meter, Spent
from nous_online.claude.verdicts import confirmed, needs_confirmation, swapped
from nous_online.errors import Unavailable
from nous_online.pairs.judging import Judge, Judgement, OfflineJudge, Pair, Verdict, later
from nous_online.settings import settings

PURPOSE = "judge"
AT_ONCE = 4
"""Requests under way at one time for one call: enough for a learn in doubt about two facts, in both orders."""
REST_S = 30.0
"""How long nothing is asked after two calls in a row got no answer: while Claude is down, learning stays quick."""
REST_AFTER = 2
"""Calls without any answer: a single one may have met a moment's trouble."""
LEAST_S = 0.05  # no answer comes in less
TOO_LONG = "the two statements are too long to be asked about"
OUTAGES = frozenset({Failure.TRANSIENT, Failure.PERMANENT, Failure.QUOTA})
"""Failures that speak of the server, the network or the account, rather than of one pair."""


@dataclass(frozen=True)
class Given:
    """An answer about a pair, and the model that gave it."""

    answer: Answer
    model: str


Outcome: TypeAlias = Given | LLMError


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
    """When Claude is left alone after calls in vain; shared by all judges of one client."""

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
class ClaudeJudge:
    """Judges each pair by asking about it alone, in both orders where a memory could be retired.

    What `model` refuses is asked once of `fallback`, and a pair that gets no answer is `unsure`. A call takes at most
    `deadline_s` seconds. Every request is metered, in the thread that made it. Safe to share between threads.
    """

    claude: LanguageModel
    meter: Meter
    model: str
    fallback: str
    deadline_s: float
    rest: Rest = field(default_factory=Rest)

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
        asked = [pair for pair in pairs if is_askable(pair)]
        outcomes = iter(self._asked(asked) if asked else [])
        return [
            judged(pair, *next(outcomes), model=self.model) if is_askable(pair) else undecided(pair, TOO_LONG)
            for pair in pairs
        ]

    def _asked(self, pairs: Sequence[Pair]) -> list[tuple[Outcome, Outcome | None]]:
        """Return what came of each pair, and of the same pair swapped where it was asked about."""
        if self.rest.left_s() > 0:
            raise Unavailable(f"{self.model} gave no answers; it is asked again in {self.rest.left_s():.0f} s")
        sitting = Sitting(time.monotonic() + self.deadline_s)
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="nous-judge") as pool:
            if 2 * len(pairs) <= AT_ONCE:
                answered = partial(self._answered, sitting=sitting)
                straight, back = pool.map(answered, pairs), pool.map(answered, map(swapped, pairs))
                outcomes = list[tuple[Outcome, Outcome | None]](zip(straight, back, strict=True))
            else:
                outcomes = list(pool.map(partial(self._answered_in_turn, sitting=sitting), pairs))
        failures = [outcome for outcome, _ in outcomes if isinstance(outcome, LLMError)]
        self.rest.note(is_down=len(failures) == len(pairs) and OUTAGES.issuperset(each.kind for each in failures))
        if len(failures) == len(pairs):
            raise Unavailable(f"{self.model} judged none of {len(pairs)} pairs: {failures[0]}")
        return outcomes

    def _answered_in_turn(self, pair: Pair, sitting: Sitting) -> tuple[Outcome, Outcome | None]:
        """Ask about a pair, and about the same pair swapped if a memory could be retired."""
        straight = self._answered(pair, sitting)
        if isinstance(straight, LLMError) or not needs_confirmation(straight.answer):
            return straight, None
        return straight, self._answered(swapped(pair), sitting)

    def _answered(self, pair: Pair, sitting: Sitting) -> Outcome:
        """Return the answer about a pair in one order, the fallback's where the model refuses, or why there is none."""
        try:
            return self._ask(pair, self.model, sitting)
        except LLMError as error:
            if error.kind is not Failure.REFUSED or self.fallback == self.model:
                return error
        try:
            return self._ask(pair, self.fallback, sitting)
        except LLMError as error:
            return error

    def _ask(self, pair: Pair, model: str, sitting: Sitting) -> Given:
        left_s = sitting.left_s()
        usage = Usage()
        try:
            reply = self.claude.ask(pair_request(pair, model=model), deadline_s=left_s)
            usage = reply.usage
            answer = read_answer(reply.text)
        except LLMError as error:
            self.meter(Spent(PURPOSE, model, PROMPT_VERSION, usage + error.usage, error=f"{error.kind}: {error}"))
            if error.kind is Failure.QUOTA:
                sitting.limit = error
            raise
        self.meter(Spent(PURPOSE, model, PROMPT_VERSION, usage))
        return Given(answer, model)


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
    """Return the judge the settings name: Claude where there is a key for it, else the built-in one.

    Raises `InvalidInput` for a key or an address nothing can be sent with.
    """
    return appointed(None)(meter)


def appointed(judge: Judge | None) -> Callable[[Meter], Judge]:
    """Return who judges, by who pays: the judge given, or without one that of `default_judge`, which raises the same.

    All judges it returns share one client, and rest together.
    """
    if judge is not None:
        return lambda _meter: judge
    chosen = settings()
    if not chosen.asks_claude:
        return lambda _meter: OfflineJudge()
    claude, rest = claude_of(chosen), Rest()
    return lambda meter: ClaudeJudge(
        claude,
        meter,
        model=chosen.judge_model,
        fallback=chosen.writer_model,
        deadline_s=chosen.claude_deadline_s,
        rest=rest,
    )
