"""Clients for language models: the makers' packages, with a deadline for the whole of each call.

The packages speak HTTP and know calls, parameters and errors. This module adds what they can't do (decision 0025): one
deadline for a whole call (their timeouts restart with every byte), closing the connection of a late call without
touching others, and one tree of errors whose messages hold neither key nor memory.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import socket
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import mktime_tz, parsedate_tz
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast
from urllib.parse import urlsplit

from nous_online.core.deadline import WORKERS, Deadline, pause_s, within
from nous_online.core.errors import DeadlineExceeded, InvalidInput, Unavailable, Unsupported
from nous_online.language.claude.replies import Failure, LLMError, Reply, Request, fields, kind_of_error, reply_of, said

if TYPE_CHECKING:
    import ssl

    import anthropic
    import httpx2
    from tenacity import RetryCallState

    from nous_online.core.settings import Settings
    from nous_online.language.claude.chat import Chat

T = TypeVar("T")
SDK = TypeVar("SDK")
ADDRESS = "https://api.anthropic.com"
ATTEMPTS = 3
CONNECT_S = 5.0
LEAST_S = 0.05  # left of a deadline, below which there is no further attempt
MOST_IDLE = 8
ALLOW_MORE = "allow online calls more in NOUS_CLAUDE_DEADLINE_S"
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 8.0
REDIRECTS = range(300, 400)
FIXES = {
    401: "check {key}",
    403: "use a key that may do this, or another model",
    404: "check the name of what was asked for, and {url}",
    413: "send less at once",
}
FIXES_OF_KIND = {
    Failure.QUOTA: "raise the limit of the account, or set NOUS_JUDGE=offline",
    Failure.TRANSIENT: "ask again later",
}


class Wire:
    """The current socket of a client, learned from the trace events of its connections.

    It holds no reference to the client, so that an unused client is collected and closed.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._is_cut = False

    def watch(self, request: httpx2.Request) -> None:
        """Record the socket that `request` opens, if it opens one."""
        request.extensions["trace"] = self._on_event

    def cut(self) -> None:
        """Shut down the current socket, and every later one."""
        self._is_cut = True
        if self._socket is not None:
            with suppress(OSError):  # it broke by itself
                # Closing does not wake a thread that waits for bytes; shutting down does, below TLS and at once.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _on_event(self, name: str, details: Mapping[str, Any]) -> None:
        if name.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = details["return_value"].get_extra_info("socket")
            if self._is_cut:
                self.cut()


class SingleConnection(Generic[SDK]):
    """A package's client with a connection of its own, so that cutting a late call ends no other."""

    def __init__(self, make: Callable[[httpx2.Client], SDK]) -> None:
        import httpx2

        self.wire, self.process = Wire(), os.getpid()
        http = httpx2.Client(
            verify=trusted(),
            follow_redirects=False,  # a redirect would send memories to an address nobody configured
            event_hooks={"request": [self.wire.watch]},
            limits=httpx2.Limits(max_connections=1, max_keepalive_connections=1),
        )
        self.close = weakref.finalize(self, http.close)
        self.sdk = make(http)


class Client(ABC, Generic[SDK]):
    """One account at one address, called through the maker's package; safe to share between threads.

    The package is loaded by `open` or by the first call. Raises `Unsupported` where it is not installed.
    """

    package: ClassVar[str]
    name: ClassVar[str]
    key_setting: ClassVar[str]
    url_setting: ClassVar[str]
    limits_say_when: ClassVar[bool]
    """Whether a 429 without a time to retry means a limit of the account, rather than of the rate."""

    def __init__(self, key: str, url: str) -> None:
        if find_spec(self.package) is None:
            extra = "claude" if self.package == "anthropic" else self.package
            message = f"{self.name} is asked through the package {self.package!r}"
            raise Unsupported(f"{message}; run: pip install 'nous-pipelines[{extra}]', or set NOUS_JUDGE=offline")
        self.key, self.url = key, url
        self._lock = threading.Lock()
        self._idle: list[SingleConnection[SDK]] = []
        self.is_open = False
        """Whether the package is loaded: a call before that waits for it, which takes seconds."""

    @abstractmethod
    def make(self, http: httpx2.Client) -> SDK:
        """Return a client of the package that speaks through `http` and tries once."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.host!r})"

    @property
    def host(self) -> str:
        """Host and port of the server."""
        address = urlsplit(self.url)
        return f"{address.hostname}:{address.port}" if address.port else str(address.hostname)

    @property
    def place(self) -> str:
        """Name and host of the server, for messages."""
        return f"{self.name} at {self.host}"

    @property
    def account(self) -> str:
        """A name for the account, to which batches belong: the host and the first digits of the key's SHA-256."""
        return f"{self.host} {hashlib.sha256(self.key.encode()).hexdigest()[:8]}"

    def without_key(self, text: object) -> str:
        """Return a text from outside without the key, an empty text for any other value."""
        return text.replace(self.key, "[the key]") if isinstance(text, str) else ""

    def open(self) -> None:
        """Load the package and the trusted certificates."""
        import_module(self.package)
        # At DEBUG both packages write whole requests into the log, memories and all.
        logger = logging.getLogger(self.package)
        logger.setLevel(max(logger.level, logging.INFO))
        trusted()
        self.is_open = True

    def open_soon(self) -> None:
        """Load the package in a thread, unless it is loaded already."""
        module = sys.modules.get(self.package)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            self.open()
        elif not self.is_open:
            with suppress(Unavailable):  # all worker threads are busy; then the first call opens it
                WORKERS.take(self.name).give(self.open)

    def call(
        self, work: Callable[[SDK, float], T], *, deadline_s: float, attempts: int = ATTEMPTS, allow_more: str = ""
    ) -> T:
        """Return the result of `work`, which gets a client of the package and the seconds left.

        Transient failures are retried while the deadline leaves time for the pause. Raises `LLMError` and nothing else;
        `allow_more` says how a person gives such a call more time.
        """
        if deadline_s <= 0:  # earlier calls under the same deadline took all of it
            raise late(self, deadline_s)
        deadline, lines = Deadline(deadline_s), list[SingleConnection[SDK]]()

        def carry_out() -> T:
            lines.append(self._take())
            return self._carry_out(work, lines[0], deadline, attempts)

        try:
            found = within(deadline_s, carry_out, name=self.name)
        except DeadlineExceeded:
            for line in lines:
                line.wire.cut()
        except LLMError:
            self._give_back(lines)
            raise
        except Unavailable as error:  # too many late calls already
            raise LLMError(str(error), Failure.TRANSIENT) from error
        else:
            self._give_back(lines)
            return found
        raise late(self, deadline_s, allow_more=allow_more)

    def _carry_out(
        self, work: Callable[[SDK, float], T], line: SingleConnection[SDK], deadline: Deadline, attempts: int
    ) -> T:
        """Return the result of `work`, retried up to `attempts` times; the packages themselves try once."""
        from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_before_delay

        def try_once() -> T:
            try:
                return work(line.sdk, deadline.remaining())
            except Exception as error:  # packages, encoders and transports raise far more than one tree
                failure = failure_of(error, self)
            raise failure  # outside of `except`: as `__context__` the first exception would carry headers with the key

        tries = Retrying(
            # Only transient failures, unless the server says that a retry is no use.
            retry=retry_if_exception(lambda error: isinstance(error, LLMError) and error.may_pass_soon),
            stop=stop_after_attempt(attempts) | stop_before_delay(deadline.remaining() - LEAST_S),
            wait=pause_after,
            reraise=True,
        )
        return tries(try_once)

    def _take(self) -> SingleConnection[SDK]:
        """Return a connection that no other call uses."""
        self.open()
        with self._lock:
            mine = [line for line in self._idle if line.process == os.getpid()]  # a forked child must not use these
            line = mine.pop() if mine else None
            self._idle = mine
        try:
            return line or SingleConnection(self.make)
        except Exception as error:  # such as an address that `checked_url` did not reject
            failure = failure_of(error, self)
        raise failure

    def _give_back(self, lines: list[SingleConnection[SDK]]) -> None:
        """Keep a connection for the next call, unless enough are kept."""
        with self._lock:
            kept = lines[: MOST_IDLE - len(self._idle)]
            self._idle += kept
        for line in lines[len(kept) :]:
            line.close()


class Claude(Client["anthropic.Anthropic"]):
    """Claude behind one key and one address, through the package `anthropic`.

    Raises `InvalidInput` for an unusable key or address.
    """

    package, name = "anthropic", "Claude"
    key_setting, url_setting = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
    limits_say_when = True

    def __init__(self, key: str, *, base_url: str | None = None) -> None:
        super().__init__(checked_key(key, self.key_setting), checked_url(base_url or ADDRESS, self.url_setting))

    def make(self, http: httpx2.Client) -> anthropic.Anthropic:
        """Return a client of the package, with an address and no tracing whatever the environment says."""
        import anthropic

        return anthropic.Anthropic(
            api_key=self.key, base_url=self.url, http_client=http, max_retries=0, open_telemetry=False
        )

    def ask(self, request: Request, *, deadline_s: float) -> Reply:
        """Return the complete answer; raise `LLMError`, by `deadline_s` seconds at the latest.

        After a transient failure it is asked again, up to three times in all, as far as the deadline allows.
        """

        def create(sdk: anthropic.Anthropic, left_s: float) -> Reply:
            create_raw = cast("Any", sdk.messages.with_raw_response.create)  # a request is checked by the server
            return reply_of(json_of(create_raw(**request, timeout=patience(left_s)).http_response))

        # `Deadline` raises for a number of seconds that is not one.
        return self.call(create, deadline_s=Deadline(deadline_s).seconds, allow_more=ALLOW_MORE)


def json_of(answer: httpx2.Response) -> Any:
    """Return the JSON of an answer; raise `LLMError` where it is none, which the packages don't check."""
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        form = said(answer.headers.get("content-type")) or "of no type"
        message = f"the answer is no JSON ({form}, {len(answer.content)} bytes); check the address of the model"
    raise LLMError(message, Failure.MALFORMED)


def patience(left_s: float, *, silence_s: float = float("inf")) -> httpx2.Timeout:
    """Return the timeouts of one attempt: for the connection, and for the silence between two bytes.

    Without `silence_s` they are a second longer than what is left, so that the deadline ends the call.
    """
    import httpx2

    longest_s = min(left_s + 1, silence_s)
    return httpx2.Timeout(longest_s, connect=min(longest_s, CONNECT_S))


@cache
def trusted() -> ssl.SSLContext:
    """Return the TLS context of all connections; reading its certificates is the slowest part of a new connection."""
    import httpx2

    return httpx2.create_ssl_context()


def checked_key(key: str, setting: str) -> str:
    """Return the key without surrounding spaces; raise `InvalidInput` when it can't be sent in a header."""
    key = key.strip()
    if not key:
        raise InvalidInput(f"{setting} is empty; set it, or set NOUS_JUDGE=offline")
    odd = [place for place, letter in enumerate(key, start=1) if not "!" <= letter <= "~"]
    if odd:
        raise InvalidInput(f"{setting} has no usable character at place {odd[0]} of {len(key)}; copy it again")
    return key


def checked_url(url: str, setting: str) -> str:
    """Return an address unchanged; raise `InvalidInput`, without quoting it, when it is not one for HTTP."""
    try:
        address = urlsplit(url)
        found = address.hostname, address.port
    except ValueError:  # its message quotes the address, which may hold a password
        raise InvalidInput(f"{setting} is not an address; write it like {ADDRESS}") from None
    if address.scheme not in {"http", "https"} or not found[0]:
        raise InvalidInput(f"{setting} names no host to ask over HTTP; write it like {ADDRESS}")
    return url


def claude_of(settings: Settings) -> Claude:
    """Return the client for Claude by the settings; raise `InvalidInput` for an unusable key or address."""
    return Claude(settings.anthropic_api_key.get_secret_value(), base_url=settings.anthropic_base_url)


def model_client(settings: Settings) -> Claude | Chat:
    """Return the client for judge and writer by the settings; raise `InvalidInput` for an unusable key or address."""
    if settings.provider == "anthropic":
        return claude_of(settings)
    from nous_online.language.claude.chat import Chat

    return Chat(settings.llm_key.get_secret_value(), base_url=settings.llm_url)


def failure_of(error: Exception, asked: Client[Any]) -> LLMError:
    """Return the `LLMError` for any exception of a call, without the key in its message."""
    import httpx2

    if isinstance(error, LLMError):
        return error
    response = getattr(error, "response", None)  # of the packages' errors, those of an answer alone have one
    if isinstance(response, httpx2.Response):
        return _answered(response, asked)
    cause = error.__cause__ if type(error).__name__ in {"APIConnectionError", "APITimeoutError"} else error
    if isinstance(cause, Unavailable):
        wait_s = None if isinstance(cause, DeadlineExceeded) else 0.0
        return LLMError(f"{asked.place} gave no answer: {cause}", Failure.TRANSIENT, wait_s=wait_s)
    lines = asked.without_key(str(cause or error)).splitlines()
    why = ": ".join([type(cause or error).__name__, *map(said, lines[:1])])
    if isinstance(cause, (httpx2.InvalidURL, httpx2.LocalProtocolError, httpx2.UnsupportedProtocol)):
        told = f"nothing can be sent to {asked.place} ({why}); check {asked.url_setting} and {asked.key_setting}"
        return LLMError(told, Failure.PERMANENT)
    if isinstance(cause, httpx2.HTTPError):
        told = f"{asked.place} can't be reached ({why}); check the network, or ask later"
        return LLMError(told, Failure.TRANSIENT)
    # A text or header that can't be encoded, an unknown parameter, a defect of ours: a retry fails too.
    told = f"the request to {asked.place} can't be sent ({why}); the same request can never be"
    return LLMError(told, Failure.PERMANENT)


def late(asked: Client[Any], deadline_s: float, *, allow_more: str = "") -> LLMError:
    """Return the failure of a call that missed its deadline; `allow_more` says how a person gives it more time."""
    told = f"there was no time left to ask {asked.place}"
    if deadline_s > 0:
        told = f"{asked.place} did not answer within {deadline_s:.3g} s, so the call was ended"
    more = f", or {allow_more}" if allow_more else ""
    return LLMError(f"{told}; ask again later{more}", Failure.TRANSIENT)


def pause_after(state: RetryCallState) -> float:
    """Return the seconds to wait after a failed attempt: doubled each time, and at least what the server asks for."""
    failure = state.outcome.exception() if state.outcome else None
    wait_s = failure.wait_s if isinstance(failure, LLMError) else None
    return max(pause_s(state.attempt_number, first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S), wait_s or 0.0)


def asked_to_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds an answer asks to wait, from either of its headers and in any of their forms."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        with suppress(ValueError):
            seconds = float(headers.get(name) or "")
            if math.isfinite(seconds):
                return max(seconds / unit, 0.0)
    date = parsedate_tz(headers.get("retry-after", ""))
    try:
        return None if date is None else max(mktime_tz(date) - time.time(), 0.0)
    except (ValueError, OverflowError):  # a date no calendar has
        return None


def _answered(response: httpx2.Response, asked: Client[Any]) -> LLMError:
    """Return the `LLMError` for an answer with an error status, with the way to fix it."""
    body: Mapping[str, Any] = {}
    with suppress(ValueError, RecursionError):  # an answer that is no JSON says nothing more than its status
        body = fields(response.json())
    status, reason = response.status_code, fields(body.get("error")) or body
    wait_s = asked_to_wait(response.headers)
    kind = kind_of_error(reason, status=status, says_when=wait_s is not None or not asked.limits_say_when)
    words = [said(reason.get("type")) or "no reason given", said(asked.without_key(reason.get("message")))]
    told = f"{asked.place} answered {status} ({': '.join(word for word in words if word)})"
    waits = "" if wait_s is None else f" and asks to wait {wait_s:.3g} s"
    fix = FIXES.get(status, "the same request will be refused again")
    if kind is not Failure.PERMANENT:
        fix = FIXES_OF_KIND[kind]
    elif status in REDIRECTS:
        fix = "set {url} to the address itself, redirects are not followed"
    fix = fix.format(key=asked.key_setting, url=asked.url_setting)
    is_no_use = response.headers.get("x-should-retry") == "false"
    return LLMError(f"{told}{waits}; {fix}", kind, status=status, wait_s=None if is_no_use else wait_s or 0.0)
