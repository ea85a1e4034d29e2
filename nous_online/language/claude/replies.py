"""Requests to a language model, and its answers, parsed without trust: a reply with its tokens, or an `LLMError`."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, cast

from nous_online.core.domain import Addable
from nous_online.core.errors import Unavailable

Request: TypeAlias = Mapping[str, Any]
"""The parameters of one call of the Messages API, `model` and `max_tokens` among them; alone or in a batch."""


class Failure(StrEnum):
    """The kinds of failure, by what a caller can do about them."""

    TRANSIENT = "transient"
    """The server or the network; the same request may succeed later."""
    PERMANENT = "permanent"
    """The request, the key or the model is wrong; asking again changes nothing."""
    REFUSED = "refused"
    """The model declined to answer; another model may be asked once."""
    TRUNCATED = "truncated"
    """The answer ended before it was complete; more tokens or a shorter text would help."""
    MALFORMED = "malformed"
    """The answer does not have the form that was asked for."""
    QUOTA = "quota"
    """A limit of the account was reached; nothing more is to be sent now."""


@dataclass(frozen=True)
class Usage(Addable):
    """Tokens of one or more requests. `input_tokens` counts neither those read from the cache nor those written."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True)
class Reply:
    """A complete answer: its text, the model that gave it, and its tokens."""

    text: str
    model: str
    usage: Usage


class LLMError(Unavailable):
    """A language model gave no usable answer; `kind` says why, `usage` has the tokens that were paid for.

    `status` is the HTTP status of an error answer, None without one. `wait_s` is how long the server asks to wait, None
    when a retry is no use.
    """

    def __init__(
        self,
        message: str,
        kind: Failure,
        *,
        usage: Usage = Usage(),
        status: int | None = None,
        wait_s: float | None = 0.0,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.usage = usage
        self.status = status
        self.wait_s = wait_s

    @property
    def may_pass_soon(self) -> bool:
        """Whether the same request may succeed after a pause."""
        return self.kind is Failure.TRANSIENT and self.wait_s is not None


class LanguageModel(Protocol):
    """Anything that answers one request by a deadline."""

    @property
    def is_open(self) -> bool:
        """Whether the package is loaded; before that a call takes seconds longer."""
        ...

    def ask(self, request: Request, *, deadline_s: float) -> Reply:
        """Return the complete answer; raise `LLMError` and nothing else, by `deadline_s` seconds at the latest."""
        ...


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
    """Return the reply in a message of the API, from a call or a batch.

    Raises `LLMError`, with the tokens used, when it was refused, cut short, stopped otherwise, or is no message.
    """
    content = fields(message)
    usage, model = usage_of(content), said(content.get("model"))
    _require_finished(content, model=model, usage=usage)
    texts = [block.get("text") for block in map(fields, listing(content.get("content"))) if block.get("type") == "text"]
    text = "".join(text for text in texts if isinstance(text, str))
    if not text or not is_well_formed(text) or not model:
        told = "a message without a text" if model else "something else than a message"
        raise LLMError(f"{model or 'the server'} sent {told}; ask again", Failure.MALFORMED, usage=usage)
    return Reply(text, model, usage)


def usage_of(message: Mapping[str, Any]) -> Usage:
    """Return the tokens of a message, 0 for each count that is missing or invalid."""
    counts = fields(message.get("usage"))
    return Usage(
        input_tokens=tokens_of(counts.get("input_tokens")),
        output_tokens=tokens_of(counts.get("output_tokens")),
        cache_read_tokens=tokens_of(counts.get("cache_read_input_tokens")),
        cache_write_tokens=tokens_of(counts.get("cache_creation_input_tokens")),
    )


def kind_of_error(error: Mapping[str, Any], *, status: int | None = None, says_when: bool = True) -> Failure:
    """Return the kind of an error object of the API, from an answer with `status` or from one item of a batch.

    `says_when` tells whether the answer named a time to retry, which it never does for a limit of the account.
    """
    code, words = fields(error.get("details")).get("error_code"), said(error.get("message")).lower()
    is_about_money = (
        status == PAYMENT_REQUIRED
        or "insufficient_quota" in (error.get("type"), error.get("code"))  # of OpenAI, with 429
        or error.get("type") == "billing_error"
        or (isinstance(code, str) and code in SPENDING_CODES)
        or any(phrase in words for phrase in SPENDING_WORDS)
    )
    if is_about_money or (status == TOO_MANY_REQUESTS and not says_when):
        return Failure.QUOTA
    if status is None:
        passes = str(error.get("type")) in PASSING_TYPES
    else:
        passes = status in PASSING_STATUSES or (status >= SERVER_ERRORS_FROM and status != NEVER_IMPLEMENTED)
    return Failure.TRANSIENT if passes else Failure.PERMANENT


def fields(value: object) -> Mapping[str, Any]:
    """Return a value that is a JSON object, an empty one for any other value."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def unrepeated(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object; raise `ValueError` where a key stands twice."""
    if len(dict(members)) < len(members):
        raise ValueError("a key stands twice")
    return dict(members)


def said(text: object) -> str:
    """Return text from outside as part of a message: one short line without control characters."""
    words = " ".join(text.split()) if isinstance(text, str) else ""
    shown = "".join(letter if letter.isprintable() else "�" for letter in words)
    return shown if len(shown) <= LONGEST_SAID else f"{shown[:LONGEST_SAID]}…"


def moment_of(text: object) -> datetime | None:
    """Return the moment in an RFC 3339 text, in UTC without a zone, None for any other value."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _require_finished(message: Mapping[str, Any], *, model: str, usage: Usage) -> None:
    stopped = message.get("stop_reason")
    reason = stopped if isinstance(stopped, str) else ""
    if reason in FINISHED:
        return
    if reason == "refusal":
        category = said(fields(message.get("stop_details")).get("category")) or "no category given"
        raise LLMError(f"{model} declined to answer ({category}); ask another model", Failure.REFUSED, usage=usage)
    if reason in CUT_SHORT:
        told = f"{model} stopped after {usage.output_tokens} tokens ({reason}) before its answer was complete"
        raise LLMError(f"{told}; {CUT_SHORT[reason]}", Failure.TRUNCATED, usage=usage)
    told = f"{model or 'the server'} stopped for the reason {said(str(stopped))!r}, with which no answer is complete"
    raise LLMError(f"{told}; ask again", Failure.MALFORMED, usage=usage)


def listing(value: object) -> list[object]:
    """Return a value that is a JSON list, an empty list for any other value."""
    return cast("list[object]", value) if isinstance(value, list) else []


def is_well_formed(text: str) -> bool:
    """Tell whether a text can be encoded as UTF-8, without half of a surrogate pair."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def tokens_of(count: object) -> int:
    """Return a count of tokens, 0 for an invalid value."""
    if not isinstance(count, int) or isinstance(count, bool):
        return 0
    return count if 0 <= count <= MOST_TOKENS else 0


ROOM_FOR_THINKING = 2_000
"""Tokens added for thinking, which counts towards `max_tokens`, for models that can't be told to answer at once."""
OFF = {"thinking": {"type": "disabled"}}
OFF_BUT_BETWEEN_TOOLS = {"thinking": {"type": "between_tools"}}
NEVER_ON: Mapping[str, Any] = {}
FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "claude-haiku-5-5": OFF,
    "claude-sonnet-5-5": OFF_BUT_BETWEEN_TOOLS,
    "claude-sonnet-5": OFF,
    "claude-haiku-4": NEVER_ON,
    "claude-sonnet-4": NEVER_ON,
    "claude-opus-4": NEVER_ON,
}
"""Parameters that turn thinking off, by family of models; models of other families may think."""


def object_of(**properties: Any) -> dict[str, Any]:
    """Return the JSON schema of an object with all of `properties` and no others."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def json_request(
    model: str, *, system: str, data: tuple[str, str], schema: Mapping[str, Any], max_tokens: int
) -> Request:
    """Return the request for one JSON object of a schema; the instructions are cached by the server.

    `data` is a word for the data, and the data as JSON without angle brackets. It goes inside an element with a random
    name, so that nothing in it can close the element and pass for instructions.
    """
    kind, shown = data
    element = f"{kind}-{secrets.token_hex(8)}"
    return {
        "model": model,
        **without_thinking(model, max_tokens=max_tokens),
        "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": f"<{element}>\n{shown}\n</{element}>"}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    }


def without_thinking(model: str, *, max_tokens: int) -> dict[str, Any]:
    """Return the parameters that make `model` answer without thinking, `max_tokens` among them.

    A model of an unknown family gets `ROOM_FOR_THINKING` on top. The settings of the families are from Anthropic's
    migration guides for Haiku 5.5 and Sonnet 5.5, October 2026.
    """
    known = [family for family in FAMILIES if model.startswith(family)]
    if not known:
        return {"max_tokens": max_tokens + ROOM_FOR_THINKING}
    return {"max_tokens": max_tokens, **FAMILIES[max(known, key=len)]}
