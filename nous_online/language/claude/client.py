"""Clients for language models: the makers' own packages, called so that every call ends by its deadline.

The packages speak HTTP, know the calls and their parameters, and raise what an answer means. What they can't do stands
here: a deadline over the whole of a call (theirs begin anew with every byte that comes), and cutting the connection of
a call that is late without touching another.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import socket
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast
from urllib.parse import urlsplit

from nous_online.core.deadline import WORKERS, Deadline, within
from nous_online.core.errors import DeadlineExceeded, InvalidInput, Unavailable, Unsupported
from nous_online.language.claude.failures import failure_of, late, may_pass_soon, pause_after
from nous_online.language.claude.message_parser import reply_of, said
from nous_online.language.claude.replies import Failure, LLMError, Reply, Request

if TYPE_CHECKING:
    import ssl

    import anthropic
    import httpx2

    from nous_online.core.settings import Settings
    from nous_online.language.claude.chat import Chat

T = TypeVar("T")
SDK = TypeVar("SDK")
ADDRESS = "https://api.anthropic.com"
ATTEMPTS = 3
CONNECT_S = 5.0
LEAST_S = 0.05  # less is not worth another attempt
MOST_IDLE = 8
ALLOW_MORE = "allow online calls more in NOUS_CLAUDE_DEADLINE_S"


class Wire:
    """The socket a client speaks through now, known by the events of its connections."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._is_cut = False

    def watch(self, request: httpx2.Request) -> None:
        """Learn of the socket `request` makes, if it makes one."""
        request.extensions["trace"] = self._on_event

    def cut(self) -> None:
        """End what is being sent or received, and whatever would be."""
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
    """A package's client with one connection of its own, so that cutting a late call ends no other one."""

    def __init__(self, make: Callable[[httpx2.Client], SDK]) -> None:
        import httpx2

        self.wire, self.process = Wire(), os.getpid()
        http = httpx2.Client(
            verify=trusted(),
            follow_redirects=False,  # memories go where they were meant to go, or nowhere
            event_hooks={"request": [self.wire.watch]},
            limits=httpx2.Limits(max_connections=1, max_keepalive_connections=1),
        )
        self.close = weakref.finalize(self, http.close)
        self.sdk = make(http)


class Client(ABC, Generic[SDK]):
    """One account at one address, spoken to through its maker's package; safe to share between threads.

    The package is loaded by `open` or by the first call. Raises `Unsupported` where it is not installed.
    """

    package: ClassVar[str]
    name: ClassVar[str]
    key_setting: ClassVar[str]
    url_setting: ClassVar[str]
    limits_say_when: ClassVar[bool]
    """Whether an answer that names no time to come back speaks of a limit of the account, rather than of the rate."""

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
        """Host and port that are asked."""
        return host_of(self.url)

    @property
    def account(self) -> str:
        """Whose batches are seen through this: the host, and the first digits of the SHA-256 of the key."""
        return f"{self.host} {hashlib.sha256(self.key.encode()).hexdigest()[:8]}"

    def open(self) -> None:
        """Load the package, and what every connection trusts."""
        import_module(self.package)
        # At DEBUG both packages write whole requests into the log, memories and all.
        logger = logging.getLogger(self.package)
        logger.setLevel(max(logger.level, logging.INFO))
        trusted()
        self.is_open = True

    def open_soon(self) -> None:
        """Load the package in a thread of its own, unless somebody uses it already."""
        module = sys.modules.get(self.package)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            self.open()
        elif not self.is_open:
            with suppress(Unavailable):  # too much late work goes on: the first call opens it
                WORKERS.take(self.name).give(self.open)

    def call(
        self, work: Callable[[SDK, float], T], *, deadline_s: float, attempts: int = ATTEMPTS, allow_more: str = ""
    ) -> T:
        """Return what `work` returns, which is given a client of the package and the seconds left.

        It is tried again while its failure may pass and the deadline leaves time for the pause that is asked for.
        Raises `LLMError` and nothing else; `allow_more` says how a person gives such a call more time.
        """
        if deadline_s <= 0:  # what several calls share was used up by the first
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
        """Try `work` as often as it may be tried; the packages themselves try once."""
        from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_before_delay

        def try_once() -> T:
            try:
                return work(line.sdk, deadline.remaining())
            except Exception as error:  # packages, encoders and transports raise far more than one tree
                failure = failure_of(error, self, key=self.key)
            raise failure  # out here it carries along no exception that holds the headers, and in them the key

        tries = Retrying(
            retry=retry_if_exception(may_pass_soon),
            stop=stop_after_attempt(attempts) | stop_before_delay(deadline.remaining() - LEAST_S),
            wait=pause_after,
            reraise=True,
        )
        return tries(try_once)

    def _take(self) -> SingleConnection[SDK]:
        """Return a line nobody else has."""
        self.open()
        with self._lock:
            mine = [line for line in self._idle if line.process == os.getpid()]  # a fork shares its parent's sockets
            line = mine.pop() if mine else None
            self._idle = mine
        try:
            return line or SingleConnection(self.make)
        except Exception as error:  # an address that is none after all
            failure = failure_of(error, self, key=self.key)
        raise failure

    def _give_back(self, lines: list[SingleConnection[SDK]]) -> None:
        """Keep a line for the next call, unless enough are kept."""
        with self._lock:
            kept = lines[: MOST_IDLE - len(self._idle)]
            self._idle += kept
        for line in lines[len(kept) :]:
            line.close()


class Claude(Client["anthropic.Anthropic"]):
    """Claude behind one key and one address, by the package `anthropic`.

    Raises `InvalidInput` for a key or an address nothing can be sent with.
    """

    package, name = "anthropic", "Claude"
    key_setting, url_setting = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
    limits_say_when = True

    def __init__(self, key: str, *, base_url: str | None = None) -> None:
        super().__init__(checked_key(key, self.key_setting), checked_url(base_url or ADDRESS, self.url_setting))

    def make(self, http: httpx2.Client) -> anthropic.Anthropic:
        """Return a client of the package; the environment says neither where it asks nor who traces it."""
        import anthropic

        return anthropic.Anthropic(
            api_key=self.key, base_url=self.url, http_client=http, max_retries=0, open_telemetry=False
        )

    def ask(self, request: Request, *, deadline_s: float) -> Reply:
        """Return the complete answer; raise `LLMError`, by `deadline_s` seconds at the latest.

        What passes is asked again, up to three times in all, as far as the deadline allows.
        """

        def create(sdk: anthropic.Anthropic, left_s: float) -> Reply:
            create_raw = cast("Any", sdk.messages.with_raw_response.create)  # a request is checked by the server
            return reply_of(json_of(create_raw(**request, timeout=patience(left_s)).http_response))

        # Here a time that is none is a mistake.
        return self.call(create, deadline_s=Deadline(deadline_s).seconds, allow_more=ALLOW_MORE)


def json_of(answer: httpx2.Response) -> Any:
    """Return the JSON of an answer, which the packages don't check; raise `LLMError` where there is none."""
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        form = said(answer.headers.get("content-type")) or "of no type"
        message = f"the answer is no JSON ({form}, {len(answer.content)} bytes); check the address of the model"
    raise LLMError(message, Failure.MALFORMED)


def patience(left_s: float, *, silence_s: float = float("inf")) -> httpx2.Timeout:
    """Return how long to wait for a connection, and for each sign of life.

    It is a second more than is left where only the deadline counts, which then is what ends the call.
    """
    import httpx2

    longest_s = min(left_s + 1, silence_s)
    return httpx2.Timeout(longest_s, connect=min(longest_s, CONNECT_S))


@cache
def trusted() -> ssl.SSLContext:
    """Return what every line trusts; reading the certificates takes longer than all else a new line needs."""
    import httpx2

    return httpx2.create_ssl_context()


def checked_key(key: str, setting: str) -> str:
    """Return the key without the spaces around it; raise `InvalidInput` when no header could carry it."""
    key = key.strip()
    if not key:
        raise InvalidInput(f"{setting} is empty; set it, or set NOUS_JUDGE=offline")
    odd = [place for place, letter in enumerate(key, start=1) if not "!" <= letter <= "~"]
    if odd:
        raise InvalidInput(f"{setting} has no usable character at place {odd[0]} of {len(key)}; copy it again")
    return key


def checked_url(url: str, setting: str) -> str:
    """Return an address, which may hold a password; raise `InvalidInput` when nothing can be asked there."""
    try:
        address = urlsplit(url)
        found = address.hostname, address.port
    except ValueError:  # its words quote what may be a password
        raise InvalidInput(f"{setting} is not an address; write it like {ADDRESS}") from None
    if address.scheme not in {"http", "https"} or not found[0]:
        raise InvalidInput(f"{setting} names no host to ask over HTTP; write it like {ADDRESS}")
    return url


def host_of(url: str) -> str:
    """Return host and port of an address."""
    address = urlsplit(url)
    return f"{address.hostname}:{address.port}" if address.port else str(address.hostname)


def claude_of(settings: Settings) -> Claude:
    """Return the client for Claude the settings name; raise `InvalidInput` for a key nothing can be sent with."""
    return Claude(settings.anthropic_api_key.get_secret_value(), base_url=settings.anthropic_base_url)


def model_client(settings: Settings) -> Claude | Chat:
    """Return the client for whoever judges and writes; raise `InvalidInput` where nothing can be sent to it."""
    if settings.provider == "anthropic":
        return claude_of(settings)
    from nous_online.language.claude.chat import Chat

    return Chat(settings.llm_key.get_secret_value(), base_url=settings.llm_url)
