"""What every request passes first: its id, the host it names, its size and form, and how many are under way.

Whoever sends a body is looked at before it is read, and counts as under way after it has arrived: so nobody without a
key, and nobody slow, holds a place that others need. Whether the process lives can be asked whatever goes on."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
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
from nous_online.database.connection import as_night
from nous_online.database.statements import statements
from nous_online.interfaces.api import keys, problems
from nous_online.interfaces.api.access import Authenticator, Caller, Turns, address_of
from nous_online.interfaces.api.hearts import LOOK_S
from nous_online.interfaces.api.problems import InterfaceProblem, answer, kind_of, readable
from nous_online.interfaces.request_checks import host_of

SQL = statements("nous_online.interfaces.api", "lifecycle_metrics.sql")
MEMORY_S = 30.0
"""Whoever asks more often is told the same: what is counted is counted over all agents."""
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


class LifecycleCollector(Collector):
    """Asks the database when it is scraped; one that can't be asked is `nous_lifecycle_up` 0 and tells nothing."""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._found: list[Metric] = []
        self._looked_at = -float("inf")

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: what there is to tell is known when it is asked for."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield what the last look found, looking anew when that is over."""
        with self._lock:
            if time.monotonic() - self._looked_at > MEMORY_S:
                self._found, self._looked_at = self._look(), time.monotonic()
            yield from self._found

    def _look(self) -> list[Metric]:
        is_up = GaugeMetricFamily("nous_lifecycle_up", "Whether the database told what follows.")
        try:
            with as_night(self._url(), seconds=LOOK_S) as connection:
                found = list(metrics_in(connection))
        except NousError:
            found = []
        is_up.add_metric([], 1.0 if found else 0.0)
        return [is_up, *found]


def metrics_in(connection: Connection[Any]) -> Iterator[Metric]:
    """Yield what a database tells."""
    cursor = connection.execute(SQL["figures"])
    row = cursor.fetchone() or ()
    for column, value in zip(cursor.description or (), row, strict=True):
        if value is not None:
            yield GaugeMetricFamily(*FIGURES[column.name], value=value)
    memories = GaugeMetricFamily(
        "nous_memories", "Memories by state, after the last night each agent was in.", labels=["state"]
    )
    for state, count in connection.execute(SQL["memories"], {"keys": list(STATES)}).fetchall():
        memories.add_metric([state], count)
    proposals = GaugeMetricFamily(
        "nous_night_proposals", "What the last night wanted to change, and what became of it.", labels=["kind", "state"]
    )
    for kind, state, count in connection.execute(SQL["proposals"]).fetchall():
        proposals.add_metric([kind, state], count)
    yield memories
    yield proposals
    yield from requests_in(connection)


def requests_in(connection: Connection[Any]) -> Iterator[Metric]:
    """Yield what language models were asked, and what that cost."""
    labels = ["purpose", "model"]
    asked = CounterMetricFamily("nous_llm_requests", "Requests to language models.", labels=labels)
    failed = CounterMetricFamily("nous_llm_failures", "Of them, those that failed.", labels=labels)
    tokens = CounterMetricFamily("nous_llm_tokens", "Tokens read and written.", labels=[*labels, "direction"])
    cost = CounterMetricFamily("nous_llm_cost_usd", "What they cost in US dollars.", labels=labels)
    for purpose, model, count, failures, read, written, usd in connection.execute(SQL["requests"]).fetchall():
        asked.add_metric([purpose, model], count)
        failed.add_metric([purpose, model], failures)
        tokens.add_metric([purpose, model, "in"], read)
        tokens.add_metric([purpose, model, "out"], written)
        cost.add_metric([purpose, model], usd)
    yield from (asked, failed, tokens, cost)


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

    def answered(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Count one call."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def failed(self, kind: str) -> None:
        """Count one problem."""
        self._problems.labels(kind).inc()

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)


logger = logging.getLogger(__name__)
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
ALWAYS_ANSWERED = frozenset({"/health", "/ready"})
"""Without a place, and without a body: a supervisor that hears nothing would end the process."""
FIXED_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Gate:
    """The outermost layer: lets through what can be answered, whole, and turns everything else into a problem."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str] | None, door: Authenticator, metrics: Metrics) -> None:
        self._app = app
        self._hosts = hosts
        self._door = door
        self._policy = door.policy
        self._bodies = Turns(self._policy.most_bodies, most=self._policy.most_in_flight)
        self._metrics = metrics
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        request_id = id_of(Headers(scope=scope))
        state.update(request_id=request_id, arrived_at=time.monotonic(), problem=None)
        state.update(caller=None, claimed_key=None, agent=None)
        sent = SentResponse(send, request_id)
        try:
            await self._answered(scope, receive, sent, state)
        finally:
            self._counted(scope, sent, state)

    async def _answered(self, scope: Scope, receive: Receive, sent: SentResponse, state: Mapping[str, Any]) -> None:
        try:
            self._check(scope)
            if scope["path"] in ALWAYS_ANSWERED:
                await self._app(scope, receive, sent)
                return
            body = await self._body_of(Request(scope), receive)
            if body is None:
                return
            check_form(Headers(scope=scope), scope["method"], body)
            with self._under_way():
                await self._app(scope, replayed(body, receive), sent)
        except InterfaceProblem as failure:
            await self._told(failure, scope, receive, sent)
        except NousError as error:
            await self._told(InterfaceProblem(kind_of(error), readable(str(error))), scope, receive, sent)
        except Exception:  # the entry point of every call: none may end without an answer
            logger.exception("request %s failed", state["request_id"])
            detail = f"request {state['request_id']} failed; the log of the server says why"
            if not sent.status:
                await self._told(InterfaceProblem(problems.UNEXPECTED, detail), scope, receive, sent)

    async def _told(self, failure: InterfaceProblem, scope: Scope, receive: Receive, sent: SentResponse) -> None:
        state = scope["state"]
        state["problem"] = failure.kind.name
        response: Response = answer(failure.kind, str(failure), request_id=state["request_id"], headers=failure.headers)
        await response(scope, receive, sent)

    async def _body_of(self, request: Request, receive: Receive) -> bytes | None:
        """Return the body of a request, None when the caller went away; one that is announced needs a good key."""
        policy = self._policy
        if not is_announced(request.headers):
            return await read_body(receive, most=policy.most_body_bytes, seconds=policy.longest_body_s)
        caller = await self._door.let_in(request, ends_at=request.state.arrived_at + policy.longest_deadline_s)
        async with self._bodies.turn(caller.counted_as, seconds=policy.longest_body_s):
            return await read_body(receive, most=policy.most_body_bytes, seconds=policy.longest_body_s)

    @contextmanager
    def _under_way(self) -> Generator[None]:
        """Count a call as under way; raise `InterfaceProblem` for one too many."""
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
        """Raise `InterfaceProblem` for another host's request, and for one that says it is too large."""
        headers = Headers(scope=scope)
        if self._hosts is not None and host_of(headers.get("host", "")) not in self._hosts:
            raise InterfaceProblem(
                problems.MISDIRECTED, "the Host header names another server; call this one by its own name"
            )
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length[:20]) > self._policy.most_body_bytes:
            raise too_large(self._policy.most_body_bytes)

    def _counted(self, scope: Scope, sent: SentResponse, state: Mapping[str, Any]) -> None:
        """Count a call, and note it, under the template of its route, never under its path: that may hold names."""
        if not sent.status:
            return
        route = getattr(scope.get("route"), "path_format", None) or "unmatched"
        method = scope["method"] if scope["method"] in METHODS else "other"
        seconds = time.monotonic() - state["arrived_at"]
        self._metrics.answered(method=method, route=route, status=sent.status, seconds=seconds)
        if state["problem"]:
            self._metrics.failed(state["problem"])
        caller: Caller | None = state["caller"]
        keys.note_call(
            request=state["request_id"],
            key=state["claimed_key"] if caller is None else caller.key_id,
            agent=state["agent"],
            address=address_of(Request(scope)),
            method=method,
            route=route,
            status=sent.status,
            problem=state["problem"],
            ms=round(seconds * 1000),
        )


class SentResponse:
    """What goes back: remembers the status, and adds the headers every answer has."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._headers = {**FIXED_HEADERS, "X-Request-Id": request_id}
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """Send one message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message).update(self._headers)
        await self._send(message)


def id_of(headers: Headers) -> str:
    """Return the id the caller gave its request if it is harmless, else a new one."""
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def is_announced(headers: Headers) -> bool:
    """Tell whether a body follows (RFC 9112, section 6)."""
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


async def read_body(receive: Receive, *, most: int, seconds: float) -> bytes | None:
    """Return a whole body, None when the caller went away; raise `InterfaceProblem` for one too large or too slow."""
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


def check_form(headers: Headers, method: str, body: bytes) -> None:
    """Raise `InterfaceProblem` for a body that is not said to be JSON, in no encoding but its own."""
    if method not in WITH_BODY or not body:
        return
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise InterfaceProblem(
            problems.NOT_JSON, "the body is not said to be JSON; send it with Content-Type: application/json"
        )
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise InterfaceProblem(problems.NOT_JSON, "the body is compressed; send it as it is, without Content-Encoding")


def too_large(most: int) -> InterfaceProblem:
    """Return how a request is refused that is too large."""
    return InterfaceProblem(problems.TOO_LARGE, f"the body has more than {most:,} bytes; send less at once")


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return how the application receives a body that was read already."""
    told = False

    async def receive_again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
