"""Open pairs become questions with an estimate, as far as the budget goes: nearest first, canaries added.

A question holds all open pairs of one newer statement. What would retire a memory is asked again in the other order
when the answers come home."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, cast
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


class Fate(StrEnum):
    """What became of one request, by what is to be done about it."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """The model declined: the other model may be asked once."""
    TRUNCATED = "truncated"
    """The answer was cut short: once more, with room for more."""
    MALFORMED = "malformed"
    """The line, or the answer in it, has another form than was asked for."""
    INVALID = "invalid"
    """The API will never take this request."""
    LOST = "lost"
    """The server or the credit failed, the batch expired or was cancelled, or no line came: asked again."""
    UNKNOWN = "unknown"
    """A type of result nobody has heard of: asked again, and told."""


NOTHING_USED = Usage()
FATES = {
    Failure.REFUSED: Fate.REFUSED,
    Failure.TRUNCATED: Fate.TRUNCATED,
    Failure.MALFORMED: Fate.MALFORMED,
    Failure.PERMANENT: Fate.INVALID,
    Failure.TRANSIENT: Fate.LOST,
    Failure.QUOTA: Fate.LOST,
}


@dataclass(frozen=True)
class Outcome:
    """What became of one request, and its tokens; `answers` are there, by number, when it was answered."""

    fate: Fate
    detail: str = ""
    answers: Mapping[int, PairAnswer | LLMError] = field(default_factory=dict[int, PairAnswer | LLMError])
    usage: Usage = NOTHING_USED
    is_unpaid: bool = False
    """Whether it was lost to a limit of the account, or to its credit."""

    def about(self, number: int) -> OfPair:
        """Return what became of the question about one pair."""
        if self.fate is not Fate.ANSWERED:
            return OfPair(self.fate)
        return of_pair(answer_to(number, self.answers))


@dataclass(frozen=True)
class OfPair:
    """What became of the question about one pair in one order; `answer` is there when it was answered."""

    fate: Fate
    answer: PairAnswer | None = None


def of_pair(found: Asked | PairAnswer) -> OfPair:
    """Return what an answer about a pair, or the lack of one, comes to."""
    if isinstance(found, LLMError):
        return OfPair(FATES[found.kind])
    return OfPair(Fate.ANSWERED, found if isinstance(found, PairAnswer) else found.answer)


@dataclass(frozen=True)
class BatchOutcomes:
    """One outcome for each request that was sent, and how many lines were none of them."""

    by_id: Mapping[str, Outcome]
    duplicate_count: int = 0
    unknown_count: int = 0
    """Lines about custom ids nobody sent."""
    broken_count: int = 0
    """Lines that are no JSON object."""
    unknown_types: tuple[str, ...] = field(default=())

    @property
    def usage(self) -> Usage:
        """What all of them used together."""
        return sum((outcome.usage for outcome in self.by_id.values()), NOTHING_USED)

    @property
    def unpaid(self) -> Sequence[str]:
        """What was said of each that was lost to a limit of the account."""
        return [outcome.detail for outcome in self.by_id.values() if outcome.is_unpaid]

    @property
    def failed_count(self) -> int:
        """How many brought no answer."""
        return sum(outcome.fate is not Fate.ANSWERED for outcome in self.by_id.values())


def outcomes_of(lines: Iterable[bytes], custom_ids: Sequence[str]) -> BatchOutcomes:
    """Return one outcome for each custom id sent: the first line about one counts, and without a line it is lost."""
    wanted, found = set(custom_ids), dict[str, Outcome]()
    duplicates = unknown = broken = 0
    for line in filter(bytes.strip, lines):
        custom_id, outcome = outcome_of(line)
        broken += outcome.fate is Fate.MALFORMED and outcome.detail == NO_OBJECT
        if custom_id in found:
            duplicates += 1
        elif custom_id not in wanted:
            unknown += custom_id is not None
        else:
            found[custom_id] = outcome
    missing = Outcome(Fate.LOST, "no line came for it")
    types = {outcome.detail for outcome in found.values() if outcome.fate is Fate.UNKNOWN}
    by_id = {custom_id: found.get(custom_id, missing) for custom_id in custom_ids}
    return BatchOutcomes(by_id, duplicates, unknown, broken, tuple(sorted(types)))


def outcome_of(line: bytes) -> tuple[str | None, Outcome]:
    """Return whose a line is and what it says; of a broken one, whose it says it is, if it still says so."""
    try:
        entry: object = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict):
        named = CUSTOM_ID.search(line)
        return named[1].decode() if named else None, Outcome(Fate.MALFORMED, NO_OBJECT)
    known = cast("dict[str, Any]", entry)
    custom_id = known.get("custom_id")
    return custom_id if isinstance(custom_id, str) else None, result_outcome(fields(known.get("result")))


def result_outcome(result: Mapping[str, Any]) -> Outcome:
    """Return what the result of one request says."""
    kind = str(result.get("type"))
    if kind == "succeeded":
        return message_outcome(fields(result.get("message")))
    if kind == "errored":
        return error_outcome(fields(result.get("error")))
    if kind in {"expired", "canceled"}:
        return Outcome(Fate.LOST, kind)
    return Outcome(Fate.UNKNOWN, said(kind))


def error_outcome(error: Mapping[str, Any]) -> Outcome:
    """Return whether a request that failed may succeed later."""
    inner = fields(error.get("error")) or error
    kind = str(inner.get("type"))
    detail = said(f"{kind}: {inner.get('message')}")
    if kind_of_error(inner) is Failure.QUOTA:  # it comes as an `invalid_request_error`, among others
        return Outcome(Fate.LOST, detail, is_unpaid=True)
    return Outcome(Fate.INVALID if kind in PERMANENT else Fate.LOST, detail)


def message_outcome(message: Mapping[str, Any]) -> Outcome:
    """Return what a message says, and what the parser makes of it."""
    usage = usage_of(message)
    try:
        return Outcome(Fate.ANSWERED, answers=read_answers(reply_of(message).text), usage=usage)
    except LLMError as error:
        return Outcome(FATES[error.kind], said(str(error)), usage=usage)


QUESTION, CANARY = "q", "c"
"""How a custom id ends: pairs of one newer statement, or a pair whose verdict is known beforehand."""

# --- requests ---

PREFIX_DIGITS = 12
ALONE = (Fate.REFUSED, Fate.TRUNCATED, Fate.MALFORMED)
"""What keeps a pair from being asked about together with others the next time: any of them may have been the reason."""
WIDER = 4
"""How many times the room an answer gets that was cut short before."""
MOST_REQUESTS = 4_000
"""Of one batch, about 30 MB; the API takes 100,000, but what is lost with one batch is asked about again."""
MOST_BYTES = 100_000_000
"""Of one batch; the API takes 256 MB."""

# --- a pair on its way to Claude and back: what has to be kept meanwhile is not a word of it ---

Home = Sequence[Any]
"""What brings an answer home, as JSON: hash, both ids, when each was stated, similarity, is the order known; in the row
of a batch the number of the question besides."""


@dataclass(frozen=True)
class PairQuestion:
    """A pair that Claude is asked about, known by the hash of its content."""

    pair_hash: str
    left_id: str
    right_id: str
    is_ordered: bool
    pair: Pair

    @property
    def home(self) -> Home:
        """What has to be kept while it is on its way."""
        moments = [said.stated_at and said.stated_at.isoformat() for said in (self.pair.a, self.pair.b)]
        return [self.pair_hash, self.left_id, self.right_id, *moments, self.pair.similarity, self.is_ordered]


def questions_of(pairs: pl.DataFrame, facts: pl.DataFrame) -> list[PairQuestion]:
    """Return pairs (with the columns `with_hashes` leaves) as questions, in order; `facts` are those they rest on."""
    names = ("pair_hash", "left_id", "right_id", "is_ordered")
    rows = pairs.select(names).iter_rows()
    return [
        PairQuestion(pair_hash, left_id, right_id, is_ordered, pair)
        for (pair_hash, left_id, right_id, is_ordered), pair in zip(rows, judge_pairs(pairs, facts), strict=True)
    ]


def brought_home(agent_id: str, homes: Sequence[Home], facts: Iterable[Sequence[Any]]) -> dict[str, Pair]:
    """Return the pairs of a batch, by hash, with the current text of their facts (rows of `STATEMENT_SCHEMA`).

    A pair is left out if one of its facts is gone or its content changed since: the answer is about another text.
    """
    table = pl.DataFrame(list(facts), schema=STATEMENT_SCHEMA, orient="row")
    rows = [
        (agent_id, left, right, similarity, False, is_ordered, moment(left_at), moment(right_at), asked)
        for asked, left, right, left_at, right_at, similarity, is_ordered, *_ in homes
    ]
    pairs = with_hashes(pl.DataFrame(rows, schema={**FOUND, "asked": pl.String}, orient="row"), table)
    same = pairs.filter(pl.col("pair_hash") == pl.col("asked"))
    return dict(zip(same["pair_hash"], judge_pairs(same, table), strict=True))


def moment(text: str | None) -> datetime | None:
    """Read a moment as it was kept."""
    return datetime.fromisoformat(text) if text is not None else None


@dataclass(frozen=True)
class Tried:
    """What earlier batches of an agent left unsettled: for each model and pair how often for which reason."""

    counts: Mapping[tuple[str, str], Counter[str]] = field(default_factory=dict[tuple[str, str], Counter[str]])

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, str]]) -> Tried:
        """Count rows of model, hash of a pair, and reason."""
        counts: dict[tuple[str, str], Counter[str]] = {}
        for model, pair_hash, reason in rows:
            counts.setdefault((model, pair_hash), Counter())[reason] += 1
        return cls(counts)

    def count(self, model: str, pair_hash: str, reason: str) -> int:
        """Return how often a model's answer about a pair came to this."""
        return self.counts.get((model, pair_hash), Counter())[reason]


# --- the batches to be ---


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
    questions: list[Sequence[PairQuestion]] = field(default_factory=list[Sequence[PairQuestion]])
    """What is asked together, question by question."""
    requests: list[tuple[str, Request]] = field(default_factory=list[tuple[str, Request]])
    estimated_usd: float = 0.0
    bytes: int = 0

    def add(self, pieces: Sequence[tuple[str, Request]], *, is_confirmed: bool = False) -> None:
        """Append requests, each with what its custom id is to end with; those may be confirmed when they come home."""
        self.requests += pieces
        self.estimated_usd += sum(estimate(request, is_confirmed=is_confirmed) for _, request in pieces)
        self.bytes += sum(size(request) for _, request in pieces)

    @property
    def pairs(self) -> list[PairQuestion]:
        """Every pair that is asked about, in order."""
        return [pair for question in self.questions for pair in question]

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
        return sum(len(sheet.pairs) for sheet in self.sheets)

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
    questions: Sequence[PairQuestion],
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
    sheets: list[Sheet] = []
    last: dict[str, Sheet] = {}
    asked = questions_together(questions, models=models, tried=tried)
    for question, model in asked:
        number = len(last[model].questions) if model in last else 0
        piece = piece_of(question, model=model, tried=tried, number=number)
        sheet = last.get(model)
        if sheet is None or is_full(sheet, piece[1]):
            sheet = with_canaries(agent_id, model)
            piece = piece_of(question, model=model, tried=tried, number=0)
        is_new = sheet is not last.get(model)
        cost_usd = estimate(piece[1], is_confirmed=True) + (sheet.estimated_usd if is_new else 0.0)
        if cost_usd > left_usd or (stops_when_full and is_new and model in last):
            break
        left_usd -= cost_usd
        sheet.questions.append(question)
        sheet.add([piece], is_confirmed=True)
        sheets += [sheet] if is_new else []
        last[model] = sheet
    count = sum(len(question) for question, _ in asked)
    done = Written(tuple(sheets), too_long=len(questions) - count)
    return replace(done, held_back=count - done.pair_count)


def questions_together(
    questions: Sequence[PairQuestion], *, models: Models, tried: Tried
) -> list[tuple[Sequence[PairQuestion], str]]:
    """Return which pairs are asked about together and of whom, in the order of the first of each.

    One that earlier got no answer is asked about alone: what was in the way of it is not to be in the way of others.
    """
    by_model = {model: list[PairQuestion]() for model in (models.judge, models.fallback)}
    found: list[tuple[Sequence[PairQuestion], str]] = []
    for question in questions:
        model = model_for(question, models=models, tried=tried)
        if any(tried.count(models.judge, question.pair_hash, fate) for fate in ALONE):
            found += [([question], model)] if together([question.pair]) else []
        else:
            by_model[model].append(question)
    for model, free in by_model.items():
        found += [([free[i] for i in places], model) for places in together([each.pair for each in free])]
    order = {question.pair_hash: place for place, question in enumerate(questions)}
    return sorted(found, key=lambda each: order[each[0][0].pair_hash])


def model_for(question: PairQuestion, *, models: Models, tried: Tried) -> str:
    """Return who is asked about a pair: the fallback once the judge has refused."""
    is_refused = tried.count(models.judge, question.pair_hash, Fate.REFUSED)
    return models.fallback if is_refused else models.judge


def piece_of(question: Sequence[PairQuestion], *, model: str, tried: Tried, number: int) -> tuple[str, Request]:
    """Return the request about pairs, with more room where an answer was cut short, and how its custom id ends."""
    is_cut = any(tried.count(model, each.pair_hash, Fate.TRUNCATED) for each in question)
    room = MAX_TOKENS * (WIDER if is_cut else 1)
    request = pairs_request([each.pair for each in question], model=model, max_tokens=room)
    return f"{number}-{QUESTION}", request


def with_canaries(agent_id: str, model: str) -> Sheet:
    """Return a sheet that asks about nothing yet but the pairs whose verdict is known."""
    sheet = Sheet(agent_id, model)
    sheet.add([(f"{n}-{CANARY}", pairs_request([canary.pair], model=model)) for n, canary in enumerate(CANARIES)])
    return sheet


def is_full(sheet: Sheet, request: Request) -> bool:
    """Tell whether a batch would grow too large with one more request."""
    return len(sheet.requests) >= MOST_REQUESTS or sheet.bytes + size(request) > MOST_BYTES


# --- estimates ---


def estimate(request: Request, *, is_confirmed: bool = False) -> float:
    """Return what a request may cost in a batch, in US dollars: nothing comes from the cache, all room is used.

    With `is_confirmed` all is asked once more, without a batch. Raises `InvalidInput` for a model without a price.
    """
    fixed_tokens, _ = fixed(request["model"])
    usage = Usage(
        input_tokens=claude_tokens(asked(request)), output_tokens=request["max_tokens"], cache_write_tokens=fixed_tokens
    )
    once = cost_of(request["model"], usage, is_batch=True)
    return once + cost_of(request["model"], usage, is_batch=False) if is_confirmed else once


def size(request: Request) -> int:
    """Return how many bytes a request takes in a batch."""
    _, fixed_bytes = fixed(request["model"])
    return fixed_bytes + len(json.dumps(asked(request)))


def asked(request: Request) -> str:
    """Return what differs from request to request."""
    return request["messages"][0]["content"]


@cache
def fixed(model: str) -> tuple[int, int]:
    """Return tokens and bytes of what every request about pairs says, which is counted once."""
    same = {**pairs_request([CANARIES[0].pair], model=model), "messages": []}
    text = json.dumps(same)
    return claude_tokens(text), len(text)
