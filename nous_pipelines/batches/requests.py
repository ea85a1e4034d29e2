"""Open pairs become ordered requests with an estimate, as far as the budget goes: nearest first, canaries added."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from uuid import UUID

from nous_online.claude.pair_prompt import MAX_TOKENS, is_askable, pair_request
from nous_online.claude.prices import cost_of
from nous_online.claude.replies import Request, Usage
from nous_online.claude.verdicts import CANARIES, swapped
from nous_online.tokens import claude_tokens
from nous_pipelines.batches.outcomes import Fate
from nous_pipelines.batches.questions import Question, Tried

STRAIGHT, SWAPPED, CANARY = "s", "w", "c"
"""How a custom id ends: the pair in order, in the other order, or a pair whose verdict is known beforehand."""
PREFIX_DIGITS = 12
WIDER = 4
"""How many times the room an answer gets that was cut short before."""
MOST_REQUESTS = 4_000
"""Of one batch, about 30 MB; the API takes 100,000, but what is lost with one batch is asked about again."""
MOST_BYTES = 100_000_000
"""Of one batch; the API takes 256 MB."""


@dataclass(frozen=True)
class Models:
    """Who is asked, and who is asked once about what the first refuses."""

    judge: str
    fallback: str


@dataclass
class Sheet:
    """One batch to be: of one agent and one model, canaries first; `homes` bring its answers home."""

    agent_id: str
    model: str
    questions: list[Question] = field(default_factory=list[Question])
    requests: list[tuple[str, Request]] = field(default_factory=list[tuple[str, Request]])
    estimated_usd: float = 0.0
    bytes: int = 0

    def add(self, pieces: Sequence[tuple[str, Request]]) -> None:
        """Append requests, each with what its custom id is to end with."""
        self.requests += pieces
        self.estimated_usd += sum(estimate(request) for _, request in pieces)
        self.bytes += sum(size(request) for _, request in pieces)

    def take(self, question: Question, pieces: Sequence[tuple[str, Request]]) -> None:
        """Append a pair with its requests."""
        self.questions.append(question)
        self.add(pieces)

    def named(self, row_id: UUID) -> list[tuple[str, Request]]:
        """Return the requests under the custom ids they have in the batch of a row."""
        return [(f"{prefix(row_id)}-{ending}", request) for ending, request in self.requests]


@dataclass(frozen=True)
class Written:
    """What is to be asked for one agent, and how many pairs the budget holds back or are too long to be asked about."""

    sheets: tuple[Sheet, ...] = ()
    held_back: int = 0
    too_long: int = 0

    @property
    def pair_count(self) -> int:
        """How many pairs are asked about."""
        return sum(len(sheet.questions) for sheet in self.sheets)

    @property
    def request_count(self) -> int:
        """How many requests that takes."""
        return sum(len(sheet.requests) for sheet in self.sheets)

    @property
    def estimated_usd(self) -> float:
        """What they cost at the most, in US dollars."""
        return sum(sheet.estimated_usd for sheet in self.sheets)


def prefix(row_id: UUID) -> str:
    """Return what all custom ids of a row begin with."""
    return row_id.hex[:PREFIX_DIGITS]


def written(
    agent_id: str,
    questions: Sequence[Question],
    *,
    models: Models,
    tried: Tried,
    left_usd: float,
    stops_when_full: bool = False,
) -> Written:
    """Return the requests about pairs, in their order, until the estimate reaches `left_usd`, in US dollars.

    What comes after is held back, even if it is cheaper: the order says what matters. With `stops_when_full` so is what
    comes after the first sheet that is full. Raises `InvalidInput` for a model without a price.
    """
    askable = [question for question in questions if is_askable(question.pair)]
    sheets: list[Sheet] = []
    last: dict[str, Sheet] = {}
    for question in askable:
        model = model_for(question, models=models, tried=tried)
        sheet, cost_usd = sheet_for(question, last.get(model) or with_canaries(agent_id, model), tried=tried)
        is_new = sheet is not last.get(model)
        cost_usd += sheet.estimated_usd if is_new else 0.0
        if cost_usd > left_usd or (stops_when_full and is_new and model in last):
            break
        left_usd -= cost_usd
        sheet.take(question, pieces_of(question, model=model, tried=tried, number=len(sheet.questions)))
        sheets += [sheet] if is_new else []
        last[model] = sheet
    done = Written(tuple(sheets), too_long=len(questions) - len(askable))
    return replace(done, held_back=len(askable) - done.pair_count)


def sheet_for(question: Question, sheet: Sheet, *, tried: Tried) -> tuple[Sheet, float]:
    """Return the sheet a pair goes onto, a new one when this is full, and what asking about the pair may cost."""
    pieces = pieces_of(question, model=sheet.model, tried=tried, number=len(sheet.questions))
    cost_usd = sum(estimate(request) for _, request in pieces)
    return with_canaries(sheet.agent_id, sheet.model) if is_full(sheet, pieces) else sheet, cost_usd


def model_for(question: Question, *, models: Models, tried: Tried) -> str:
    """Return who is asked about a pair: the fallback once the judge has refused."""
    is_refused = tried.count(models.judge, question.pair_hash, Fate.REFUSED)
    return models.fallback if is_refused else models.judge


def pieces_of(question: Question, *, model: str, tried: Tried, number: int) -> list[tuple[str, Request]]:
    """Return the two requests about a pair, one for each order, with more room where an answer was cut short."""
    is_cut = tried.count(model, question.pair_hash, Fate.TRUNCATED)
    room = MAX_TOKENS * (WIDER if is_cut else 1)
    both = ((STRAIGHT, question.pair), (SWAPPED, swapped(question.pair)))
    return [(f"{number}-{ending}", pair_request(pair, model=model, max_tokens=room)) for ending, pair in both]


def with_canaries(agent_id: str, model: str) -> Sheet:
    """Return a sheet that asks about nothing yet but the pairs whose verdict is known."""
    sheet = Sheet(agent_id, model)
    sheet.add([(f"{n}-{CANARY}", pair_request(canary.pair, model=model)) for n, canary in enumerate(CANARIES)])
    return sheet


def is_full(sheet: Sheet, pieces: Sequence[tuple[str, Request]]) -> bool:
    """Tell whether a batch would grow too large."""
    is_long = len(sheet.requests) + len(pieces) > MOST_REQUESTS
    return is_long or sheet.bytes + sum(size(request) for _, request in pieces) > MOST_BYTES


# --- estimates ---


def estimate(request: Request) -> float:
    """Return what a request may cost in a batch, in US dollars: nothing comes from the cache, all room is used.

    Raises `InvalidInput` for a model without a price.
    """
    fixed_tokens, _ = fixed(request["model"])
    usage = Usage(
        input_tokens=claude_tokens(asked(request)), output_tokens=request["max_tokens"], cache_write_tokens=fixed_tokens
    )
    return cost_of(request["model"], usage, is_batch=True)


def size(request: Request) -> int:
    """Return how many bytes a request takes in a batch."""
    _, fixed_bytes = fixed(request["model"])
    return fixed_bytes + len(json.dumps(asked(request)))


def asked(request: Request) -> str:
    """Return what differs from request to request."""
    return request["messages"][0]["content"]


@cache
def fixed(model: str) -> tuple[int, int]:
    """Return tokens and bytes of what every request about a pair says, which is counted once."""
    same = {**pair_request(CANARIES[0].pair, model=model), "messages": []}
    text = json.dumps(same)
    return claude_tokens(text), len(text)
