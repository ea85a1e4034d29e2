"""The client for Claude: every call ends by its own deadline, and every way to fail is an `LLMError`."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from nous_online.claude.failures import failure_of, late, pause_after
from nous_online.claude.lines import Lines, Taken
from nous_online.claude.reading import reply_of, said
from nous_online.claude.replies import Failure, LLMError, Reply, Request
from nous_online.deadline import Deadline, within
from nous_online.errors import DeadlineExceeded, InvalidInput, Unavailable

if TYPE_CHECKING:
    import httpx

    from nous_online.settings import Settings

T = TypeVar("T")
ADDRESS = "https://api.anthropic.com"
MESSAGES = "/v1/messages"
ATTEMPTS = 3
CONNECT_S = 5.0
LEAST_S = 0.05  # less is not worth another attempt
ALLOW_MORE = "allow online calls more in NOUS_CLAUDE_DEADLINE_S"


class Claude:
    """Claude behind one key and one address; safe to share between threads.

    Raises `InvalidInput` for a key or an address nothing can be sent with.
    """

    def __init__(self, key: str, *, base_url: str | None = None) -> None:
        self._key = checked_key(key)
        self._host = checked_host(base_url or ADDRESS)
        self._lines = Lines(self._key, base_url or ADDRESS)

    def __repr__(self) -> str:
        return f"Claude({self._host!r})"

    @property
    def account(self) -> str:
        """Whose batches are seen through this: the host, and the first digits of the SHA-256 of the key."""
        return f"{self._host} {hashlib.sha256(self._key.encode()).hexdigest()[:8]}"

    def ask(self, request: Request, *, deadline_s: float) -> Reply:
        """Return the complete answer; raise `LLMError`, by `deadline_s` seconds at the latest.

        What passes is asked again, up to three times in all, as far as the deadline allows.
        """
        return self.call(
            lambda client, left_s: reply_of(sent(client, "POST", MESSAGES, timeout=patience(left_s), json=request)),
            deadline_s=Deadline(deadline_s).seconds,  # here a time that is none is a mistake
            allow_more=ALLOW_MORE,
        )

    def call(
        self,
        work: Callable[[httpx.Client, float], T],
        *,
        deadline_s: float,
        attempts: int = ATTEMPTS,
        allow_more: str = "",
    ) -> T:
        """Return what `work` returns, which is given a client and the seconds left; raise `LLMError` and nothing else.

        `work` is tried again while its failure may pass and the deadline leaves time for the pause that is asked for.
        `allow_more` says how a person gives such a call more time.
        """
        if deadline_s <= 0:  # what several calls share was used up by the first
            raise late(self._host, deadline_s)
        deadline, line = Deadline(deadline_s), self._lines.take()
        try:
            return within(deadline_s, lambda: self._carry_out(work, line, deadline, attempts), name="Claude")
        except LLMError:
            raise
        except DeadlineExceeded:
            self._lines.cut(line)
        except Unavailable as error:  # too many late calls already
            self._lines.give_back(line)
            raise LLMError(str(error), Failure.TRANSIENT) from error
        raise late(self._host, deadline_s, allow_more=allow_more)

    def _carry_out(self, work: Callable[[httpx.Client, float], T], line: Taken, deadline: Deadline, attempts: int) -> T:
        """Try `work` as often as it may be tried, then give the line back, however late."""
        try:
            attempt = 0
            while True:
                attempt += 1
                try:
                    return work(line.client, deadline.remaining())
                except Exception as error:  # encoders and transports raise far more than one tree
                    failure = failure_of(error, host=self._host, key=self._key)
                    pause = pause_after(attempt, error, failure)
                is_late = pause is not None and time.monotonic() + pause + LEAST_S > deadline.began + deadline.seconds
                if pause is None or is_late or attempt == attempts:
                    raise failure  # out here it carries along no exception that holds the headers, and in them the key
                time.sleep(pause)
        finally:
            self._lines.give_back(line)


def claude_of(settings: Settings) -> Claude:
    """Return the client the settings name; raise `InvalidInput` when they name a key nothing can be sent with."""
    return Claude(settings.anthropic_api_key.get_secret_value(), base_url=settings.anthropic_base_url)


def sent(client: httpx.Client, method: str, path: str, *, timeout: httpx.Timeout, **given: Any) -> object:
    """Send a request with the `json` or `params` given, and return the JSON it is answered with.

    Raises `httpx.HTTPStatusError` for an answer that is no success, and `LLMError` for one that is no JSON.
    """
    answer = client.request(method, path, timeout=timeout, **given).raise_for_status()
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        form = said(answer.headers.get("content-type")) or "of no type"
        message = f"the answer is no JSON ({form}, {len(answer.content)} bytes); check ANTHROPIC_BASE_URL"
    raise LLMError(message, Failure.MALFORMED)


def patience(left_s: float, *, silence_s: float = float("inf")) -> httpx.Timeout:
    """Return how long to wait for a connection, and for each sign of life.

    It is a second more than is left where only the deadline counts, which then is what ends the call.
    """
    import httpx

    longest_s = min(left_s + 1, silence_s)
    return httpx.Timeout(longest_s, connect=min(longest_s, CONNECT_S))


def checked_key(key: str) -> str:
    """Return the key without the spaces around it; raise `InvalidInput` when no header could carry it."""
    key = key.strip()
    if not key:
        raise InvalidInput("ANTHROPIC_API_KEY is empty; set it, or set NOUS_JUDGE=offline")
    odd = [place for place, letter in enumerate(key, start=1) if not "!" <= letter <= "~"]
    if odd:
        message = f"ANTHROPIC_API_KEY has no usable character at place {odd[0]} of {len(key)}; copy it again"
        raise InvalidInput(message)
    return key


def checked_host(url: str) -> str:
    """Return host and port of an address, which may hold a password besides; raise `InvalidInput` without a host."""
    try:
        address = urlsplit(url)
        host, port = address.hostname, address.port
    except ValueError:  # its words quote what may be a password
        raise InvalidInput(f"ANTHROPIC_BASE_URL is no address; write it like {ADDRESS}") from None
    if address.scheme not in {"http", "https"} or not host:
        raise InvalidInput(f"ANTHROPIC_BASE_URL names no host to ask over HTTP; write it like {ADDRESS}")
    return f"{host}:{port}" if port else host
