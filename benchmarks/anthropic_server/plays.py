"""What the local server is to do with a request: answer it, refuse it, or fail halfway, as written down beforehand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from nous_online.language.claude.replies import Request


class PlayRoute(StrEnum):
    """What a request asks for."""

    MESSAGE = "message"
    COUNT_TOKENS = "count tokens"
    CREATE_BATCH = "create batch"
    LIST_BATCHES = "list batches"
    GET_BATCH = "get batch"
    CANCEL_BATCH = "cancel batch"
    DELETE_BATCH = "delete batch"
    BATCH_RESULTS = "batch results"
    LIST_MODELS = "list models"
    GET_MODEL = "get model"


@dataclass(frozen=True)
class Play:
    """How one request, or one item of a batch, is answered; as it stands it is answered properly and at once.

    A status of 200 lets the request do its work whatever then happens to the answer: a batch whose creation was
    answered with a cut connection exists. Any other status refuses it before anything is done.
    """

    text: str | Callable[[Request], str] | None = None
    """What the model says; without it the server's `answer`."""
    stop_reason: str | None = None
    """`refusal`, `pause_turn`, …; without it `end_turn`, or `max_tokens` where the text is longer than that."""
    stop_category: str | None = None
    """The category of a refusal: `cyber`, `bio`, …"""
    usage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Figures that take the place of those counted, such as `{"output_tokens": 7}`."""
    outcome: str = "succeeded"
    """Of an item in a batch: `succeeded`, `errored`, `expired`, `canceled`, or a type nobody has heard of."""
    status: int = 200
    error: str | None = None
    """The type of an error, by default the one that belongs to the status, and `api_error` of an errored item."""
    error_code: str | None = None
    """A stable code under `error.details`, such as `enforced_spend_limit_reached`."""
    message: str | None = None
    """The sentence of an error."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Added to the answer's, such as `{"retry-after": "7"}`."""
    body: bytes | None = None
    """Sent in place of the answer, such as half an object or a page of HTML."""
    delay_s: float = 0.0
    """How long nothing at all is answered, in seconds."""
    drip: float | None = None
    """The body comes at this many bytes a second."""
    cut_at: int | None = None
    """The connection ends after this many bytes of the body, all of which were announced."""
    stall_at: int | None = None
    """After this many bytes of the body nothing more comes, and the connection stays open."""
    is_lost: bool = False
    """The connection ends without a byte of an answer."""

    def __str__(self) -> str:
        changed = [each.name for each in fields(self) if getattr(self, each.name) != getattr(PROPER, each.name)]
        return ", ".join(f"{name}={getattr(self, name)}" for name in changed) or "a proper answer"


PROPER = Play()


@dataclass(frozen=True)
class BatchPlay:
    """What becomes of one batch; as it stands each item succeeds, in order, and the first look finds it ended.

    `items` says by position (from 0) how one item is answered, `each` says it for all others, by custom id and request.
    """

    items: Mapping[int, Play] = field(default_factory=dict[int, Play])
    each: Callable[[str, Request], Play] = lambda _custom_id, _request: PROPER
    looks: int | None = 0
    """How many times it is seen in progress, retrieved or listed, before it has ended; None: until `end_batches`."""
    done_before_cancel: int = 0
    """Of a batch that is cancelled, the first so many items are carried out nonetheless."""
    is_shuffled: bool = False
    duplicated: Sequence[int] = ()
    """Items whose line comes a second time, at the end."""
    missing: Sequence[int] = ()
    """Items that have no line."""
    unknown: Sequence[str] = ()
    """Custom ids nobody sent, each with an answer."""
    extra_lines: Sequence[bytes] = ()
    """Lines as they are, such as half an object."""

    def of(self, position: int, custom_id: str, request: Request) -> Play:
        """Return how the item at a position is answered."""
        return self.items[position] if position in self.items else self.each(custom_id, request)


@dataclass
class Rule:
    """Plays for requests of one route (any, without it) that `when` holds of; the last one is kept where it lasts."""

    plays: deque[Play]
    route: PlayRoute | None
    when: Callable[[Request], bool]
    lasts: bool

    def fits(self, route: PlayRoute, request: Request) -> bool:
        """Whether the rule has a play left for a request."""
        return bool(self.plays) and self.route in {None, route} and self.when(request)

    def take(self) -> Play:
        """Return the next play."""
        return self.plays[0] if self.lasts and len(self.plays) == 1 else self.plays.popleft()


class Script:
    """All rules, the oldest first; a request nobody wrote about is answered properly."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def add(self, rule: Rule) -> None:
        """Append a rule."""
        self._rules.append(rule)

    def clear(self) -> None:
        """Forget every rule."""
        self._rules.clear()

    def next(self, route: PlayRoute, request: Request) -> Play:
        """Return how a request is answered, and strike it off."""
        return next((rule.take() for rule in self._rules if rule.fits(route, request)), PROPER)
