"""What comes back from a language model: a reply with its tokens, or one of six kinds of failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from nous_online.core.errors import Unavailable

Request: TypeAlias = Mapping[str, Any]
"""The parameters of one call of the Messages API, `model` and `max_tokens` among them; alone or in a batch."""


class Failure(StrEnum):
    """Why there is no answer, by what a caller would do about it."""

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
class Usage:
    """Tokens of one or more requests. `input_tokens` counts neither those read from the cache nor those written."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


@dataclass(frozen=True)
class Reply:
    """A complete answer: its text, the model that gave it, and its tokens."""

    text: str
    model: str
    usage: Usage


class LLMError(Unavailable):
    """A language model gave no usable answer; `kind` says why, `usage` what was paid for nonetheless.

    `status` is that of HTTP when the server answered with a failure, None when the answer never came or was no failure.
    `wait_s` is how long the server asks to wait, None when asking again soon is no use.
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


class LanguageModel(Protocol):
    """Anything that answers one request by a deadline."""

    @property
    def is_open(self) -> bool:
        """Whether an answer can come soon; false while what it takes to ask is still being loaded."""
        ...

    def ask(self, request: Request, *, deadline_s: float) -> Reply:
        """Return the complete answer; raise `LLMError` and nothing else, by `deadline_s` seconds at the latest."""
        ...
