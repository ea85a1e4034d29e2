"""What became of each request of a batch, read from its results: in any order, doubled, missing or broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from nous_online.language.claude.judge import Outcome as Asked
from nous_online.language.claude.pair_prompt import PairAnswer, answer_to, read_answers
from nous_online.language.claude.replies import (
    Failure,
    LLMError,
    Usage,
    fields,
    kind_of_error,
    reply_of,
    said,
    usage_of,
)

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
