"""What the API sent, read without trust: a message becomes a reply, an error one of six kinds of failure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from nous_online.language.claude.replies import Failure, LLMError, Reply, Usage

FINISHED = frozenset({"end_turn", "stop_sequence"})
CUT_SHORT = {"max_tokens": "allow it more tokens", "model_context_window_exceeded": "shorten the text"}
PASSING_STATUSES = frozenset({408, 409, 425, 429, 499})
NEVER_IMPLEMENTED = 501
TOO_MANY_REQUESTS = 429
PAYMENT_REQUIRED = 402
SERVER_ERRORS_FROM = 500
PASSING_TYPES = frozenset({"api_error", "overloaded_error", "rate_limit_error", "timeout_error", "conflict_error"})
# The limit a workspace or an organisation set for itself comes as a plain 400, without a code to tell it by.
SPENDING_WORDS = ("usage limit", "spend limit", "spending limit", "credit balance")
SPENDING_CODES = frozenset(
    {
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "linked_organization_billing_unavailable",
        "linked_organization_spend_limit_reached",
    }
)
LONGEST_SAID = 200
MOST_TOKENS = 2**31 - 1


def reply_of(message: object) -> Reply:
    """Return what a message of the API says, alone or as one result of a batch.

    Raises `LLMError`, with the tokens used, when it was refused, cut short, stopped otherwise, or is no message.
    """
    content = fields(message)
    usage, model = usage_of(content), said(content.get("model"))
    _require_finished(content, model=model, usage=usage)
    text = _text_of(content.get("content"))
    if not text or not model:
        told = "a message without a text" if model else "something else than a message"
        raise LLMError(f"{model or 'the server'} sent {told}; ask again", Failure.MALFORMED, usage=usage)
    return Reply(text, model, usage)


def usage_of(message: Mapping[str, Any]) -> Usage:
    """Return the tokens of a message; what is no count of tokens counts nothing."""
    counts = fields(message.get("usage"))
    return Usage(
        input_tokens=tokens_of(counts.get("input_tokens")),
        output_tokens=tokens_of(counts.get("output_tokens")),
        cache_read_tokens=tokens_of(counts.get("cache_read_input_tokens")),
        cache_write_tokens=tokens_of(counts.get("cache_creation_input_tokens")),
    )


def kind_of_error(error: Mapping[str, Any], *, status: int | None = None, says_when: bool = True) -> Failure:
    """Return the kind of failure of an error object of the API: of an answer with `status`, or of one item of a batch.

    `says_when` tells whether the answer named a time to come back, which a limit of the account never does.
    """
    if _is_about_money(error, status) or (status == TOO_MANY_REQUESTS and not says_when):
        return Failure.QUOTA
    return Failure.TRANSIENT if _passes(error, status) else Failure.PERMANENT


def fields(value: object) -> Mapping[str, Any]:
    """Return the JSON object `value` is, or an empty one when it is anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def said(text: object) -> str:
    """Return words that came from outside fit for one line of a message: short, and without control characters."""
    words = " ".join(text.split()) if isinstance(text, str) else ""
    shown = "".join(letter if letter.isprintable() else "�" for letter in words)
    return shown if len(shown) <= LONGEST_SAID else f"{shown[:LONGEST_SAID]}…"


def moment_of(text: object) -> datetime | None:
    """Return the moment an RFC 3339 text names, in UTC where it names no zone."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _require_finished(message: Mapping[str, Any], *, model: str, usage: Usage) -> None:
    stopped = message.get("stop_reason")
    if isinstance(stopped, str) and stopped in FINISHED:
        return
    if stopped == "refusal":
        category = said(fields(message.get("stop_details")).get("category")) or "no category given"
        raise LLMError(f"{model} declined to answer ({category}); ask another model", Failure.REFUSED, usage=usage)
    if isinstance(stopped, str) and stopped in CUT_SHORT:
        told = f"{model} stopped after {usage.output_tokens} tokens ({stopped}) before its answer was complete"
        raise LLMError(f"{told}; {CUT_SHORT[stopped]}", Failure.TRUNCATED, usage=usage)
    told = f"{model or 'the server'} stopped for the reason {said(str(stopped))!r}, with which no answer is complete"
    raise LLMError(f"{told}; ask again", Failure.MALFORMED, usage=usage)


def _text_of(content: object) -> str:
    """Return the words of all text blocks, or nothing when they could not be stored as UTF-8."""
    blocks = [fields(block) for block in cast("list[object]", content)] if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    text = "".join(text for text in texts if isinstance(text, str))
    return "" if any("\ud800" <= letter <= "\udfff" for letter in text) else text


def tokens_of(count: object) -> int:
    """Return a count of tokens; what is none counts nothing."""
    if not isinstance(count, int) or isinstance(count, bool):
        return 0
    return count if 0 <= count <= MOST_TOKENS else 0


def _is_about_money(error: Mapping[str, Any], status: int | None) -> bool:
    code = fields(error.get("details")).get("error_code")
    words = said(error.get("message")).lower()
    return (
        status == PAYMENT_REQUIRED
        or "insufficient_quota" in (error.get("type"), error.get("code"))  # of OpenAI, with 429
        or error.get("type") == "billing_error"
        or (isinstance(code, str) and code in SPENDING_CODES)
        or any(phrase in words for phrase in SPENDING_WORDS)
    )


def _passes(error: Mapping[str, Any], status: int | None) -> bool:
    """Tell whether the same request may succeed later; the status decides where there is one."""
    if status is None:
        return str(error.get("type")) in PASSING_TYPES
    return status in PASSING_STATUSES or (status >= SERVER_ERRORS_FROM and status != NEVER_IMPLEMENTED)
