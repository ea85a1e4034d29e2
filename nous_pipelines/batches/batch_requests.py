"""Drafts batches of questions about undecided pairs within a budget, nearest pairs first, and reads their results.

A question asks about all open pairs of one newer statement together. An answer that would retire a memory is confirmed
with the pair swapped when the results are imported.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, TypeAlias, cast
from uuid import UUID

import polars as pl

from nous_online.language.claude.judge import CANARIES
from nous_online.language.claude.judge import Outcome as Asked
from nous_online.language.claude.pair_prompt import (
    MAX_TOKENS,
    PairAnswer,
    answer_to,
    pairs_request,
    read_answers,
    together,
)
from nous_online.language.claude.replies import (
    Failure,
    LLMError,
    Request,
    Usage,
    fields,
    kind_of_error,
    reply_of,
    said,
    usage_of,
)
from nous_online.language.claude.spending import cost_of
from nous_online.language.pairs.judging import Pair
from nous_online.language.tokens import claude_tokens
from nous_pipelines.phases.asking import STATEMENT_SCHEMA, judge_pairs, with_hashes
from nous_pipelines.phases.neighbours import FOUND

CUSTOM_ID = re.compile(rb'"custom_id"\s*:\s*"([A-Za-z0-9_-]{1,64})"')
PERMANENT = {"invalid_request_error", "request_too_large"}
NO_OBJECT = "the line is no JSON object"


class AnswerStatus(StrEnum):
    """The status of a request or answer, by what has to be done next."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """The model declined: the fallback model is asked once."""
    TRUNCATED = "truncated"
    """The answer reached the token limit: asked once more, with a higher limit."""
    MALFORMED = "malformed"
    """The line, or the answer in it, does not match the schema."""
    INVALID = "invalid"
    """The API will never accept this request."""
    LOST = "lost"
    """The server or the credit failed, the batch expired or was cancelled, or no line came: asked again."""
    UNKNOWN = "unknown"
    """A type of result that this version does not know: asked again, and reported."""


NOTHING_USED = Usage()
STATUS_OF_FAILURE = {
    Failure.REFUSED: AnswerStatus.REFUSED,
    Failure.TRUNCATED: AnswerStatus.TRUNCATED,
    Failure.MALFORMED: AnswerStatus.MALFORMED,
    Failure.PERMANENT: AnswerStatus.INVALID,
    Failure.TRANSIENT: AnswerStatus.LOST,
    Failure.QUOTA: AnswerStatus.LOST,
}


@dataclass(frozen=True)
class Outcome:
    """The status of one request and its tokens; `answers` by the number of the pair, if it was answered."""

    status: AnswerStatus
    detail: str = ""
    answers: Mapping[int, PairAnswer | LLMError] = field(default_factory=dict[int, PairAnswer | LLMError])
    usage: Usage = NOTHING_USED
    is_unpaid: bool = False
    """Whether it was lost to a limit of the account, or to its credit."""

    def for_pair(self, number: int) -> PairOutcome:
        """Return the outcome for one pair of the question, counted from 1."""
        if self.status is not AnswerStatus.ANSWERED:
            return PairOutcome(self.status)
        return pair_outcome(answer_to(number, self.answers))


@dataclass(frozen=True)
class PairOutcome:
    """The outcome for one pair in one order; `answer` is set if it was answered."""

    status: AnswerStatus
    answer: PairAnswer | None = None


def pair_outcome(found: Asked | PairAnswer) -> PairOutcome:
    """Return an answer about a pair, or the error in its place, as an outcome."""
    if isinstance(found, LLMError):
        return PairOutcome(STATUS_OF_FAILURE[found.kind])
    return PairOutcome(AnswerStatus.ANSWERED, found if isinstance(found, PairAnswer) else found.answer)


@dataclass(frozen=True)
class BatchOutcomes:
    """One outcome for each request sent, and the number of lines that matched no request."""

    by_id: Mapping[str, Outcome]
    duplicate_count: int = 0
    unknown_count: int = 0
    """Lines with a custom id that was not sent."""
    broken_count: int = 0
    """Lines that are not a JSON object."""
    unknown_types: tuple[str, ...] = field(default=())

    @property
    def usage(self) -> Usage:
        """The sum of all tokens."""
        return sum((outcome.usage for outcome in self.by_id.values()), NOTHING_USED)

    @property
    def unpaid(self) -> Sequence[str]:
        """The messages of requests that failed because of a limit of the account."""
        return [outcome.detail for outcome in self.by_id.values() if outcome.is_unpaid]

    @property
    def failed_count(self) -> int:
        """The number of requests without an answer."""
        return sum(outcome.status is not AnswerStatus.ANSWERED for outcome in self.by_id.values())


def outcomes_of(lines: Iterable[bytes], custom_ids: Sequence[str]) -> BatchOutcomes:
    """Return one outcome for each custom id sent: that of its first line, `LOST` if it has none."""
    wanted, found = set(custom_ids), dict[str, Outcome]()
    duplicates = unknown = broken = 0
    for line in filter(bytes.strip, lines):
        custom_id, outcome = outcome_of(line)
        broken += outcome.status is AnswerStatus.MALFORMED and outcome.detail == NO_OBJECT
        if custom_id in found:
            duplicates += 1
        elif custom_id not in wanted:
            unknown += custom_id is not None
        else:
            found[custom_id] = outcome
    missing = Outcome(AnswerStatus.LOST, "no line came for it")
    types = {outcome.detail for outcome in found.values() if outcome.status is AnswerStatus.UNKNOWN}
    by_id = {custom_id: found.get(custom_id, missing) for custom_id in custom_ids}
    return BatchOutcomes(by_id, duplicates, unknown, broken, tuple(sorted(types)))


def outcome_of(line: bytes) -> tuple[str | None, Outcome]:
    """Return custom id and outcome of a line; of a broken line the custom id that can still be found in it, if any."""
    try:
        entry: object = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        named = CUSTOM_ID.search(line)
        return named[1].decode() if named else None, Outcome(AnswerStatus.MALFORMED, NO_OBJECT)
    known = cast("dict[str, Any]", entry)
    custom_id = known.get("custom_id")
    return custom_id if isinstance(custom_id, str) else None, result_outcome(fields(known.get("result")))


def result_outcome(result: Mapping[str, Any]) -> Outcome:
    """Return the outcome in the result of one request."""
    kind = str(result.get("type"))
    if kind == "succeeded":
        return message_outcome(fields(result.get("message")))
    if kind == "errored":
        return error_outcome(fields(result.get("error")))
    if kind in {"expired", "canceled"}:
        return Outcome(AnswerStatus.LOST, kind)
    return Outcome(AnswerStatus.UNKNOWN, said(kind))


def error_outcome(error: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a failed request, by whether it may succeed later."""
    inner = fields(error.get("error")) or error
    kind = str(inner.get("type"))
    detail = said(f"{kind}: {inner.get('message')}")
    if kind_of_error(inner) is Failure.QUOTA:  # it comes as an `invalid_request_error`, among others
        return Outcome(AnswerStatus.LOST, detail, is_unpaid=True)
    return Outcome(AnswerStatus.INVALID if kind in PERMANENT else AnswerStatus.LOST, detail)


def message_outcome(message: Mapping[str, Any]) -> Outcome:
    """Return the outcome in a message, with its parsed answers."""
    usage = usage_of(message)
    try:
        return Outcome(AnswerStatus.ANSWERED, answers=read_answers(reply_of(message).text), usage=usage)
    except LLMError as error:
        return Outcome(STATUS_OF_FAILURE[error.kind], said(str(error)), usage=usage)


QUESTION, CANARY = "q", "c"
"""The last letter of a custom id: a question about pairs, or a canary, whose verdict is known."""

# --- requests ---

PREFIX_DIGITS = 12
ALONE = (AnswerStatus.REFUSED, AnswerStatus.TRUNCATED, AnswerStatus.MALFORMED)
"""Statuses after which a pair is asked about alone: it may have been the cause for the whole question."""
WIDER = 4
"""Factor on the token limit of an answer that was truncated before."""
MOST_REQUESTS = 4_000
"""In one batch, about 30 MB; the API takes 100,000, but everything in a lost batch has to be asked again."""
MOST_BYTES = 100_000_000
"""In one batch; the API takes 256 MB."""

# --- a pair in a batch: only ids and hashes are stored meanwhile, no word of a memory ---

PairReference = Sequence[Any]
"""A pair as JSON in the row of a batch: hash, both ids, both times stated, similarity, whether the order is known, and
there also the number of its question. From it an answer is matched to its facts."""


@dataclass(frozen=True)
class PairQuestion:
    """A pair that Claude is asked about, identified by the hash of its content."""

    pair_hash: str
    left_id: str
    right_id: str
    is_ordered: bool
    pair: Pair

    @property
    def reference(self) -> PairReference:
        """The JSON stored while the question is in a batch."""
        moments = [each.stated_at and each.stated_at.isoformat() for each in (self.pair.a, self.pair.b)]
        return [self.pair_hash, self.left_id, self.right_id, *moments, self.pair.similarity, self.is_ordered]


def questions_of(pairs: pl.DataFrame, facts: pl.DataFrame) -> list[PairQuestion]:
    """Return pairs of `with_hashes` as questions, in order; `facts` are those the hashes were made with."""
    names = ("pair_hash", "left_id", "right_id", "is_ordered")
    rows = pairs.select(names).iter_rows()
    return [
        PairQuestion(pair_hash, left_id, right_id, is_ordered, pair)
        for (pair_hash, left_id, right_id, is_ordered), pair in zip(rows, judge_pairs(pairs, facts), strict=True)
    ]


def pairs_of_batch(
    agent_id: str, references: Sequence[PairReference], facts: Iterable[Sequence[Any]]
) -> dict[str, Pair]:
    """Return the pairs of a batch, by hash, with the current text of their facts (rows of `STATEMENT_SCHEMA`).

    A pair is left out if one of its facts is gone or its content changed since: the answer is about another text.
    """
    table = pl.DataFrame(list(facts), schema=STATEMENT_SCHEMA, orient="row")
    rows = [
        (agent_id, left, right, similarity, False, is_ordered, moment(left_at), moment(right_at), asked)
        for asked, left, right, left_at, right_at, similarity, is_ordered, *_ in references
    ]
    pairs = with_hashes(pl.DataFrame(rows, schema={**FOUND, "asked": pl.String}, orient="row"), table)
    same = pairs.filter(pl.col("pair_hash") == pl.col("asked"))
    return dict(zip(same["pair_hash"], judge_pairs(same, table), strict=True))


def moment(text: str | None) -> datetime | None:
    """Parse a time as `reference` stores it."""
    return datetime.fromisoformat(text) if text is not None else None


PriorAttempts: TypeAlias = Counter[tuple[str, str, str]]
"""How often earlier batches left a pair undecided: by model, hash of the pair, and reason."""

# --- drafts of batches ---


@dataclass(frozen=True)
class Models:
    """The model that judges, and the one asked once about pairs that it refuses."""

    judge: str
    fallback: str


@dataclass
class BatchDraft:
    """A batch to send, for one agent and one model, with the canaries first."""

    agent_id: str
    model: str
    questions: list[Sequence[PairQuestion]] = field(default_factory=list[Sequence[PairQuestion]])
    """The pairs of each question."""
    requests: list[tuple[str, Request]] = field(default_factory=list[tuple[str, Request]])
    estimated_usd: float = 0.0
    bytes: int = 0

    def add(self, pieces: Sequence[tuple[str, Request]], *, is_confirmed: bool = False) -> None:
        """Append requests, each with the end of its custom id; `is_confirmed` adds the cost of a confirmation."""
        self.requests += pieces
        self.estimated_usd += sum(estimate(request, is_confirmed=is_confirmed) for _, request in pieces)
        self.bytes += sum(size(request) for _, request in pieces)

    @property
    def pairs(self) -> list[PairQuestion]:
        """All pairs asked about, in order."""
        return [pair for question in self.questions for pair in question]

    def named(self, row_id: UUID) -> list[tuple[str, Request]]:
        """Return the requests with the custom ids they have in the batch of a row."""
        return [(f"{prefix(row_id)}-{ending}", request) for ending, request in self.requests]


@dataclass(frozen=True)
class DraftedBatches:
    """The drafts for one agent, and the number of pairs that the budget holds back or that are too long to ask."""

    drafts: tuple[BatchDraft, ...] = ()
    held_back: int = 0
    too_long: int = 0

    @property
    def pair_count(self) -> int:
        """The number of pairs asked about."""
        return sum(len(draft.pairs) for draft in self.drafts)

    @property
    def request_count(self) -> int:
        """The number of requests."""
        return sum(len(draft.requests) for draft in self.drafts)

    @property
    def estimated_usd(self) -> float:
        """Upper bound of their cost in US dollars."""
        return sum(draft.estimated_usd for draft in self.drafts)


def prefix(row_id: UUID) -> str:
    """Return the prefix of all custom ids of a row."""
    return row_id.hex[:PREFIX_DIGITS]


def draft_batches(
    agent_id: str,
    questions: Sequence[PairQuestion],
    *,
    models: Models,
    tried: PriorAttempts,
    left_usd: float,
    stops_when_full: bool = False,
) -> DraftedBatches:
    """Return drafts with requests about the pairs, in order, until the estimated cost reaches `left_usd` US dollars.

    All pairs after that are held back, even cheaper ones: the order is by importance. With `stops_when_full` so are
    those after the first full draft. Raises `InvalidInput` for a model without a price.
    """
    drafts: list[BatchDraft] = []
    last: dict[str, BatchDraft] = {}
    grouped = group_questions(questions, models=models, tried=tried)
    for question, model in grouped:
        number = len(last[model].questions) if model in last else 0
        piece = request_for(question, model=model, tried=tried, number=number)
        draft = last.get(model)
        if draft is None or is_full(draft, piece[1]):
            draft = with_canaries(agent_id, model)
            piece = request_for(question, model=model, tried=tried, number=0)
        is_new = draft is not last.get(model)
        cost_usd = estimate(piece[1], is_confirmed=True) + (draft.estimated_usd if is_new else 0.0)
        if cost_usd > left_usd or (stops_when_full and is_new and model in last):
            break
        left_usd -= cost_usd
        draft.questions.append(question)
        draft.add([piece], is_confirmed=True)
        drafts += [draft] if is_new else []
        last[model] = draft
    count = sum(len(question) for question, _ in grouped)
    done = DraftedBatches(tuple(drafts), too_long=len(questions) - count)
    return replace(done, held_back=count - done.pair_count)


def group_questions(
    questions: Sequence[PairQuestion], *, models: Models, tried: PriorAttempts
) -> list[tuple[Sequence[PairQuestion], str]]:
    """Return the pairs of each question with the model to ask, in the order of the first pair of each.

    A pair that got no answer before is asked about alone, so that it can't spoil a question for others. Pairs that are
    too long are left out.
    """
    by_model = {model: list[PairQuestion]() for model in (models.judge, models.fallback)}
    found: list[tuple[Sequence[PairQuestion], str]] = []
    for question in questions:
        model = model_for(question, models=models, tried=tried)
        if any(tried[models.judge, question.pair_hash, status] for status in ALONE):
            found += [([question], model)] if together([question.pair]) else []
        else:
            by_model[model].append(question)
    for model, free in by_model.items():
        found += [([free[i] for i in places], model) for places in together([each.pair for each in free])]
    order = {question.pair_hash: place for place, question in enumerate(questions)}
    return sorted(found, key=lambda each: order[each[0][0].pair_hash])


def model_for(question: PairQuestion, *, models: Models, tried: PriorAttempts) -> str:
    """Return the model to ask about a pair: the fallback once the judge has refused."""
    is_refused = tried[models.judge, question.pair_hash, AnswerStatus.REFUSED]
    return models.fallback if is_refused else models.judge


def request_for(
    question: Sequence[PairQuestion], *, model: str, tried: PriorAttempts, number: int
) -> tuple[str, Request]:
    """Return the end of the custom id and the request about pairs, with more tokens if an answer was truncated."""
    is_cut = any(tried[model, each.pair_hash, AnswerStatus.TRUNCATED] for each in question)
    room = MAX_TOKENS * (WIDER if is_cut else 1)
    request = pairs_request([each.pair for each in question], model=model, max_tokens=room)
    return f"{number}-{QUESTION}", request


def with_canaries(agent_id: str, model: str) -> BatchDraft:
    """Return a draft with nothing but the canaries."""
    draft = BatchDraft(agent_id, model)
    draft.add([(f"{n}-{CANARY}", pairs_request([canary.pair], model=model)) for n, canary in enumerate(CANARIES)])
    return draft


def is_full(draft: BatchDraft, request: Request) -> bool:
    """Return whether a batch would become too large with one more request."""
    return len(draft.requests) >= MOST_REQUESTS or draft.bytes + size(request) > MOST_BYTES


# --- estimates ---


def estimate(request: Request, *, is_confirmed: bool = False) -> float:
    """Return an upper bound of a request's cost in a batch, in US dollars: no cache hits, and the longest answer.

    With `is_confirmed` it includes asking everything once more, outside of a batch. Raises `InvalidInput` for a
    model without a price.
    """
    fixed_tokens, _ = fixed(request["model"])
    usage = Usage(
        input_tokens=claude_tokens(asked(request)), output_tokens=request["max_tokens"], cache_write_tokens=fixed_tokens
    )
    once = cost_of(request["model"], usage, is_batch=True)
    return once + cost_of(request["model"], usage, is_batch=False) if is_confirmed else once


def size(request: Request) -> int:
    """Return the size of a request in a batch, in bytes."""
    _, fixed_bytes = fixed(request["model"])
    return fixed_bytes + len(json.dumps(asked(request)))


def asked(request: Request) -> str:
    """Return the part of a request that differs from others."""
    return request["messages"][0]["content"]


@cache
def fixed(model: str) -> tuple[int, int]:
    """Return tokens and bytes of the part that all requests to a model share; counting it is slow, so it is cached."""
    same = {**pairs_request([CANARIES[0].pair], model=model), "messages": []}
    text = json.dumps(same)
    return claude_tokens(text), len(text)
