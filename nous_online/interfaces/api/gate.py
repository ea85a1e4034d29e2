"""The ASGI middleware before the application: request id, Host, body size and type, calls in flight, and metrics.

A caller is authenticated before its body is read, and a call counts as in flight only once its body has arrived: so
neither callers without a key nor slow ones hold slots that others need. Health checks bypass all limits.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from fastapi import Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from psycopg import Connection
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nous_online.core.errors import NousError
from nous_online.core.policy import ApiPolicy
from nous_online.database.connection import as_night
from nous_online.database.statements import statements
from nous_online.interfaces.api import keys, problems
from nous_online.interfaces.api.access import (
    DEADLINE_HEADER,
    Authenticator,
    Caller,
    CallerSlots,
    address_of,
    deadline_of,
)
from nous_online.interfaces.api.hearts import PROBE_S
from nous_online.interfaces.api.problems import InterfaceProblem, as_utf8, kind_of, problem_response
from nous_online.interfaces.request_checks import host_of
from nous_online.memories.contradictions import of_questions

SQL = statements("nous_online.interfaces.api", "lifecycle_metrics.sql")
MEMORY_S = 30.0
"""Scrapes within this time get the cached figures: the queries count over all agents."""
STATES = (
    "facts_active", "facts_superseded", "facts_archived", "episodes_raw", "episodes_summary", "episodes_compressed",
    "episodes_fossil", "episodes_archived",
)  # fmt: skip
FIGURES = {
    "agents": ("nous_agents", "Agents of this store."),
    "last_night": ("nous_last_night_timestamp_seconds", "When the last night that was applied ended."),
    "last_night_applied": ("nous_last_night_applied_timestamp_seconds", "When its changes were applied."),
    "episodes_waiting": ("nous_episodes_waiting", "Closed episodes that are not completed yet."),
    "episodes_failing": ("nous_episodes_failing", "Of them, those that failed so far."),
    "episodes_oldest": ("nous_episodes_oldest_due_seconds", "How long the oldest of those that are due has waited."),
    "contradictions_open": ("nous_contradictions_open", "Contradictions that wait for a decision."),
    "consumers_failing": (
        "nous_consumers_failing",
        "Consumers of events, webhooks among them, whose next event fails.",
    ),
    "webhooks": ("nous_webhooks", "Webhooks."),
    "database_bytes": ("nous_database_bytes", "How large the database is on disk."),
}
OF_REQUESTS = ("purpose", "model")
LABELLED: Mapping[str, tuple[type[GaugeMetricFamily | CounterMetricFamily], str, Sequence[str]]] = {
    "nous_memories": (GaugeMetricFamily, "Memories by state, after the last night each agent was in.", ["state"]),
    "nous_night_proposals": (
        GaugeMetricFamily,
        "What the last night wanted to change, and what became of it.",
        ["kind", "state"],
    ),
    "nous_llm_requests": (CounterMetricFamily, "Requests to language models.", OF_REQUESTS),
    "nous_llm_failures": (CounterMetricFamily, "Of them, those that failed.", OF_REQUESTS),
    "nous_llm_tokens": (CounterMetricFamily, "Tokens read and written.", [*OF_REQUESTS, "direction"]),
    "nous_llm_cost_usd": (CounterMetricFamily, "What they cost in US dollars.", OF_REQUESTS),
}
"""Metrics of several values, whose names, labels and values the queries return."""


class LifecycleCollector(Collector):
    """Queries the database when it is scraped; if that fails, `nous_lifecycle_up` is 0 and the rest is absent."""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._metrics: list[Metric] = []
        self._queried_at = -float("inf")

    def describe(self) -> Iterator[Metric]:
        """Yield nothing, so that registering the collector does not query the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, queried again once the cached ones expired."""
        with self._lock:
            if time.monotonic() - self._queried_at > MEMORY_S:
                self._metrics, self._queried_at = self._query(), time.monotonic()
            yield from self._metrics

    def _query(self) -> list[Metric]:
        is_up = GaugeMetricFamily("nous_lifecycle_up", "Whether the database told what follows.")
        try:
            with as_night(self._url(), seconds=PROBE_S) as connection:
                metrics = list(metrics_in(connection))
        except NousError:
            metrics = []
        is_up.add_metric([], 1.0 if metrics else 0.0)
        return [is_up, *metrics]


def metrics_in(connection: Connection[Any]) -> Iterator[Metric]:
    """Yield the lifecycle metrics of a database."""
    cursor = connection.execute(of_questions(SQL["figures"]))
    row = cursor.fetchone() or ()
    for column, value in zip(cursor.description or (), row, strict=True):
        if value is not None:
            yield GaugeMetricFamily(*FIGURES[column.name], value=value)
    families = {name: family(name, about, labels=labels) for name, (family, about, labels) in LABELLED.items()}
    for block in ("memories", "proposals", "requests"):
        for name, labels, value in connection.execute(SQL[block], {"keys": list(STATES)}).fetchall():
            families[name].add_metric(labels, value)
    yield from families.values()


# --- the gate ---

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The counters of one application."""

    def __init__(self, *, open_hearts: Callable[[], int], lifecycle: Collector | None = None) -> None:
        self._registry = CollectorRegistry()
        self.in_flight = Gauge("nous_http_in_flight", "Calls under way.", registry=self._registry)
        self._requests = Counter(
            "nous_http_requests", "Calls answered.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "nous_http_request_seconds", "How long calls took.", ("route",), buckets=BUCKETS_S, registry=self._registry
        )
        self._problems = Counter(
            "nous_http_problems", "Calls that failed, by problem.", ("kind",), registry=self._registry
        )
        hearts = Gauge("nous_hearts_open", "Agents kept open.", registry=self._registry)
        hearts.set_function(open_hearts)
        if lifecycle is not None:
            self._registry.register(lifecycle)

    def record_call(self, *, method: str, route: str, status: int, seconds: float, problem: str | None) -> None:
        """Count one call, and its problem if it failed."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if problem:
            self._problems.labels(problem).inc()

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)


logger = logging.getLogger(__name__)
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
ALWAYS_ANSWERED = frozenset({"/health", "/ready"})
"""Answered at any load, without reading a body: a supervisor that gets no answer would kill the process."""
MOST_DISCARDED = 16 * ApiPolicy.most_body_bytes
IDLE_S = 0.5
"""A body too large that brings nothing for so long is not waited for."""
FIXED_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Gate:
    """The outermost middleware: passes complete requests to the application, and answers all others with a problem."""

    def __init__(
        self, app: ASGIApp, *, hosts: frozenset[str] | None, authenticator: Authenticator, metrics: Metrics
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._authenticator = authenticator
        self._policy = authenticator.policy
        self._bodies = CallerSlots(self._policy.most_bodies, most=self._policy.most_in_flight)
        self._metrics = metrics
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        named = Headers(scope=scope).get("x-request-id", "")
        request_id = named if REQUEST_ID.fullmatch(named) else uuid.uuid4().hex  # a name that is safe to log
        state.update(request_id=request_id, arrived_at=time.monotonic(), problem=None)
        state.update(caller=None, claimed_key=None, agent=None)
        sent = SentResponse(send, request_id)
        try:
            await self._respond(scope, receive, sent, state)
        finally:
            self._record(scope, sent, state)

    async def _respond(self, scope: Scope, receive: Receive, sent: SentResponse, state: Mapping[str, Any]) -> None:
        try:
            if scope["path"] in ALWAYS_ANSWERED:
                self._check(scope)
                await self._app(scope, receive, sent)
                return
            body = await self._receive_body(scope, receive)
            if body is None:  # the caller disconnected
                return
            check_media_type(Headers(scope=scope), scope["method"], body)
            with self._in_flight_slot():
                await self._app(scope, replay(body, receive), sent)
        except InterfaceProblem as failure:
            await self._send_problem(failure, scope, receive, sent)
        except NousError as error:
            await self._send_problem(InterfaceProblem(kind_of(error), as_utf8(str(error))), scope, receive, sent)
        except Exception:  # the entry point of every call: none may end without an answer
            logger.exception("request %s failed", state["request_id"])
            detail = f"request {state['request_id']} failed; the log of the server says why"
            if not sent.status:  # once the status is sent, no other response can follow
                await self._send_problem(InterfaceProblem(problems.UNEXPECTED, detail), scope, receive, sent)

    async def _send_problem(
        self, failure: InterfaceProblem, scope: Scope, receive: Receive, sent: SentResponse
    ) -> None:
        state = scope["state"]
        state["problem"] = failure.kind.name
        response: Response = problem_response(
            failure.kind, str(failure), request_id=state["request_id"], headers=failure.headers
        )
        await response(scope, receive, sent)

    async def _receive_body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return what `_read_body` does; of a body that is too large, take in what is still on its way."""
        try:
            self._check(scope)
            return await self._read_body(Request(scope), receive)
        except InterfaceProblem as failure:
            # Who expects a 100 has sent nothing.
            if failure.kind is problems.TOO_LARGE and "expect" not in Headers(scope=scope):
                await discard_rest(receive, most=MOST_DISCARDED, seconds=self._policy.longest_body_s)
            raise

    async def _read_body(self, request: Request, receive: Receive) -> bytes | None:
        """Return the body of a request, None if the caller disconnected; a body is read for valid callers only."""
        policy, length = self._policy, request.headers.get("content-length", "0")
        if "transfer-encoding" not in request.headers and length == "0":  # no body is announced (RFC 9112, section 6)
            return await read_body(receive, most=policy.most_body_bytes, seconds=policy.longest_body_s)
        ends_at = deadline_of(request, request.headers.get(DEADLINE_HEADER))
        caller = await self._authenticator.authenticate(request, ends_at=ends_at)
        async with self._bodies.slot(caller.counted_as, seconds=policy.longest_body_s):
            return await read_body(receive, most=policy.most_body_bytes, seconds=policy.longest_body_s)

    @contextmanager
    def _in_flight_slot(self) -> Generator[None]:
        """Count a call as in flight for a block; raise `InterfaceProblem` beyond the limit."""
        if self._in_flight >= self._policy.most_in_flight:
            raise InterfaceProblem(
                problems.BUSY, f"{self._policy.most_in_flight} calls are under way already; try again"
            )
        self._in_flight += 1
        self._metrics.in_flight.set(self._in_flight)
        try:
            yield
        finally:
            self._in_flight -= 1
            self._metrics.in_flight.set(self._in_flight)

    def _check(self, scope: Scope) -> None:
        """Raise `InterfaceProblem` for a wrong Host, and for a Content-Length beyond the limit."""
        headers = Headers(scope=scope)
        if self._hosts is not None and host_of(headers.get("host", "")) not in self._hosts:
            raise InterfaceProblem(
                problems.MISDIRECTED, "the Host header names another server; call this one by its own name"
            )
        length = headers.get("content-length", "0")
        # Cut to 20 digits: int() refuses texts of thousands of digits with an error of its own.
        if length.isdecimal() and int(length[:20]) > self._policy.most_body_bytes:
            raise too_large(self._policy.most_body_bytes)

    def _record(self, scope: Scope, sent: SentResponse, state: Mapping[str, Any]) -> None:
        """Record a call in the metrics and the audit trail."""
        if not sent.status:
            return
        # The template of the route, not the path: a path may hold names, and each would be a series of its own.
        route = getattr(scope.get("route"), "path_format", None) or "unmatched"
        # Callers can invent methods, and each would be a series of its own too.
        method = scope["method"] if scope["method"] in METHODS else "other"
        seconds = time.monotonic() - state["arrived_at"]
        told: dict[str, Any] = {"method": method, "route": route, "status": sent.status, "problem": state["problem"]}
        self._metrics.record_call(**told, seconds=seconds)
        caller: Caller | None = state["caller"]
        keys.note_call(
            request=state["request_id"],
            key=state["claimed_key"] if caller is None else caller.key_id,
            agent=state["agent"],
            address=address_of(Request(scope)),
            **told,
            ms=round(seconds * 1000),
        )


class SentResponse:
    """Wraps `send`: stores the status, and adds the headers of every response."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._headers = {**FIXED_HEADERS, "X-Request-Id": request_id}
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """Send one message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message).update(self._headers)
        await self._send(message)


async def read_body(receive: Receive, *, most: int, seconds: float) -> bytes | None:
    """Return a whole body, None if the caller disconnected; raise `InterfaceProblem` for one too large or too slow."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    raise too_large(most)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError as error:
        raise InterfaceProblem(
            problems.SLOW_REQUEST, f"the body did not arrive within {seconds:g} s; send it again"
        ) from error


async def discard_rest(receive: Receive, *, most: int, seconds: float) -> None:
    """Take in the rest of a body that is too large, while it keeps coming: a client that sends all before it reads the
    answer would find the connection reset instead (as with nginx's lingering_close)."""
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while size <= most:
                message = await asyncio.wait_for(receive(), IDLE_S)
                size += len(message.get("body", b""))
                if not message.get("more_body", False):  # the end, or the caller disconnected
                    return


def check_media_type(headers: Headers, method: str, body: bytes) -> None:
    """Raise `InterfaceProblem` unless a body is declared as JSON without a content encoding."""
    if method not in WITH_BODY or not body:
        return
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise InterfaceProblem(
            problems.NOT_JSON, "the body is not said to be JSON; send it with Content-Type: application/json"
        )
    # Not decompressed: a small body could expand beyond any limit.
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise InterfaceProblem(problems.NOT_JSON, "the body is compressed; send it as it is, without Content-Encoding")


def too_large(most: int) -> InterfaceProblem:
    """Return the problem of a body that is too large."""
    return InterfaceProblem(problems.TOO_LARGE, f"the body has more than {most:,} bytes; send less at once")


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that yields a body already read, then what the original yields (a disconnect)."""
    is_sent = False

    async def receive_again() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
