"""Authentication, rate limits and deadlines: the FastAPI dependencies that run before every endpoint."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated

from anyio import CapacityLimiter, move_on_after, to_thread
from fastapi import Depends, Header, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool

from nous_online.core.errors import DeadlineExceeded, NousError
from nous_online.core.policy import ApiPolicy
from nous_online.core.rights import WITHOUT_KEY, Rights
from nous_online.core.settings import settings
from nous_online.core.validation import ADMINISTRATOR
from nous_online.heart import Heart
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.api.keys import NO_LOOKUP, REFUSED_KEY, KeyRecord, KeyRing, parse_key
from nous_online.interfaces.api.problems import (
    BUSY,
    FORBIDDEN,
    KEY_REFUSED,
    SHOWN_CHARACTERS,
    TOO_MANY,
    UNAVAILABLE,
    InterfaceProblem,
)
from nous_online.interfaces.request_checks import bearer_of, secrets_match
from nous_online.memories.status import UNNAMED

MINUTE_S = 60.0
MOST_COUNTED = 10_000
"""Callers whose calls are counted; beyond it the oldest is dropped, or made-up addresses would fill the memory."""
MOST_NAMED = 20
"""Unknown parameters of one query that a problem names."""


class RateLimit:
    """A limit on the calls of one caller in any minute."""

    def __init__(self, calls_per_minute: int, *, most_callers: int = MOST_COUNTED) -> None:
        self._most, self._most_callers = calls_per_minute, most_callers
        self._callers: OrderedDict[str, deque[float]] = OrderedDict()
        """When each caller made its calls, those of the last minute at least."""
        self._lock = threading.Lock()

    def count(self, caller: str) -> None:
        """Count a call; raise `InterfaceProblem` 429 with Retry-After beyond the limit."""
        with self._lock:
            calls = self._callers.setdefault(caller, deque())
            if len(self._callers) > self._most_callers:
                self._callers.popitem(last=False)
            self._refuse_beyond(calls)
            calls.append(time.monotonic())

    def check(self, caller: str) -> None:
        """Raise `InterfaceProblem` 429 if one more call would be beyond the limit; count nothing."""
        with self._lock:
            self._refuse_beyond(self._callers.get(caller, deque()))

    def _refuse_beyond(self, calls: deque[float]) -> None:
        now = time.monotonic()
        while calls and calls[0] <= now - MINUTE_S:
            calls.popleft()
        if len(calls) >= self._most:
            seconds = int(calls[0] + MINUTE_S - now) + 1  # rounded up: Retry-After is in whole seconds
            detail = f"more than {self._most} calls in a minute; wait {seconds} s"
            raise InterfaceProblem(TOO_MANY, detail, headers={"Retry-After": str(seconds)})


class CallerSlots:
    """Slots for the concurrent calls of each caller, and a limit on its calls that hold or await one.

    For one event loop; not safe to share between threads.
    """

    def __init__(self, slots: int, *, most: int) -> None:
        self._slots, self._most = slots, most
        self._free: dict[str, asyncio.Semaphore] = {}
        self._present: dict[str, int] = {}

    @asynccontextmanager
    async def slot(self, caller: str, *, seconds: float) -> AsyncGenerator[None]:
        """Hold one of a caller's slots for a block.

        Raises `InterfaceProblem` 503 where too many of its calls wait already, and `DeadlineExceeded` when none of its
        slots becomes free within `seconds`.
        """
        if self._present.get(caller, 0) >= self._most:
            raise InterfaceProblem(BUSY, f"{self._most} calls of this caller are under way already; send fewer at once")
        free = self._free.setdefault(caller, asyncio.Semaphore(self._slots))
        self._present[caller] = self._present.get(caller, 0) + 1
        try:
            try:
                async with asyncio.timeout(seconds):
                    await free.acquire()
            except TimeoutError as error:
                message = f"other calls of this caller took all of {seconds:.3g} s; send fewer at once, or try again"
                raise DeadlineExceeded(message) from error
            try:
                yield
            finally:
                free.release()
        finally:
            self._present[caller] -= 1
            if not self._present[caller]:  # or callers that come once would fill the memory
                del self._present[caller], self._free[caller]


logger = logging.getLogger(__name__)
AGENT = r"^[A-Za-z0-9][A-Za-z0-9._@:/+-]{0,99}$"
"""Names that can stand in a header; a key of its own can name any other agent."""
SECONDS = r"^([1-9]|[1-5][0-9])(\.[0-9]{1,3})?$"
NAMED_SECONDS = re.compile(SECONDS)
AGENT_HEADER, DEADLINE_HEADER, SESSION_HEADER = "X-Nous-Agent", "X-Nous-Deadline", "X-Nous-Session"
MOST_LOOKED_UP = 4
"""Concurrent lookups of unknown keys, and as many of keys that were valid before, which guessing can't delay."""
DEADLINE_S = min(settings().deadline_s, ApiPolicy.longest_deadline_s)
READING = ("recall", "assemble_context", "predict")
"""Operations that a read-only key may call besides every GET."""
REFUSED_TOKEN = "send the token the server was started with (NOUS_TOKEN) as `Authorization: Bearer …`"  # noqa: S105

DeadlineHeader = Annotated[
    str | None,
    Header(
        alias=DEADLINE_HEADER,
        pattern=SECONDS,
        description="Seconds, from 1 to 59.999, after which the call ends with an answer or a problem.",
        examples=["10"],
    ),
]
AgentHeader = Annotated[
    str | None,
    Header(
        alias=AGENT_HEADER,
        pattern=AGENT,
        description="For an administrator: the agent to act for; NOUS_AGENT unless given.",
        examples=["aria"],
    ),
]
SessionHeader = Annotated[
    str | None,
    Header(
        alias=SESSION_HEADER,
        min_length=1,
        max_length=100,
        pattern=r"^[!-~]+$",
        description="The session the call belongs to, unless the body names one: its frame and censors count.",
        examples=["pr-918"],
    ),
]


@dataclass(frozen=True)
class Caller:
    """An authenticated caller: an agent or an administrator, the name its calls are counted under, and its rights."""

    agent_id: str
    counted_as: str
    rights: Rights
    key_id: str | None = None

    @property
    def is_admin(self) -> bool:
        return self.agent_id == ADMINISTRATOR


@dataclass(frozen=True)
class ApiCall:
    """One call of an agent: its heart, and its deadline on the monotonic clock."""

    heart: Heart
    ends_at: float

    def left(self) -> float:
        """Return the seconds until the deadline; raise `DeadlineExceeded` after it."""
        return seconds_until(self.ends_at)


class Authenticator:
    """Checks keys, enforces rate limits, and holds the slots of each agent."""

    def __init__(self, hearts: Hearts, *, requires_keys: bool, token: str | None, policy: ApiPolicy) -> None:
        self.hearts = hearts
        self.policy = policy
        self.requires_keys, self._token = requires_keys, token
        self.slots = CallerSlots(policy.most_of_an_agent, most=policy.most_waiting)
        self._keys = KeyRing(hearts.database, memory_s=policy.key_memory_s)
        self._calls = RateLimit(policy.calls_per_minute)
        self._strangers = RateLimit(policy.strangers_per_minute)
        self._looking_up_new, self._looking_up_known = CapacityLimiter(MOST_LOOKED_UP), CapacityLimiter(MOST_LOOKED_UP)

    @property
    def is_open(self) -> bool:
        return not self.requires_keys and self._token is None

    async def authenticate(self, request: Request, *, ends_at: float) -> Caller:
        """Return the caller of a request, and count the call.

        Raises `InterfaceProblem` 401 for a key that is missing, wrong, expired or revoked, and 429 beyond the rate
        limit: of a key, or of an address for calls without a valid key. Failed calls from an address do not limit
        valid keys used from it.
        """
        known: Caller | None = request.state.caller
        if known is not None:  # the gate authenticated it before it read the body; a call counts once
            return known
        if not self.requires_keys:
            if self._token is not None and not secrets_match(bearer_of(request.headers), self._token):
                self._strangers.count(address_of(request))
                raise InterfaceProblem(KEY_REFUSED, REFUSED_TOKEN)
            caller = Caller(ADMINISTRATOR, address_of(request), WITHOUT_KEY)
        else:
            record = await self._key_record(request, ends_at)
            caller = Caller(record.agent_id, f"{record.agent_id}/{record.id}", record.rights, record.id)
        self._calls.count(caller.counted_as)
        request.state.caller = caller
        return caller

    async def _key_record(self, request: Request, ends_at: float) -> KeyRecord:
        text = bearer_of(request.headers)
        key = parse_key(text)
        request.state.claimed_key = None if key is None else key.id  # for the audit trail, valid or not
        record = self._keys.cached(text)
        if record is not None:
            return record

        def look_up() -> KeyRecord:
            # A text in the form of a key is looked up even beyond the limit: it may be valid, whatever else fails
            # from that address.
            if key is None:
                self._strangers.check(address_of(request))
            try:
                record = self._keys.look_up(text, seconds=seconds_until(ends_at))
            except DeadlineExceeded:
                raise
            except NousError as error:
                logger.warning("a key can't be looked up: %s", error)
                raise InterfaceProblem(UNAVAILABLE, NO_LOOKUP) from error
            if record is None:
                self._strangers.count(address_of(request))
                raise InterfaceProblem(KEY_REFUSED, REFUSED_KEY)
            return record

        limiter = self._looking_up_known if self._keys.was_valid(text) else self._looking_up_new
        with move_on_after(seconds_until(ends_at)):  # for a place among the lookups; each ends by its own deadline
            return await to_thread.run_sync(look_up, limiter=limiter)
        raise DeadlineExceeded("other keys were looked up until the deadline came; try again")


def address_of(request: Request) -> str:
    """Return the address a call comes from; of IPv6 its /64 network, all of which one subscriber usually holds."""
    host = request.client.host if request.client else "unknown"
    try:
        address = ipaddress.ip_address(host.partition("%")[0])  # without the zone, as in fe80::1%eth0
    except ValueError:
        return host
    return host if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))  # noqa: PLR2004


def seconds_until(moment: float) -> float:
    """Return the seconds until a moment of the monotonic clock; raise `DeadlineExceeded` after it."""
    left = moment - time.monotonic()
    if left <= 0:
        raise DeadlineExceeded("the call took longer than its deadline and was ended; try again")
    return left


def deadline_of(request: Request, seconds: str | None) -> float:
    """Return when a call ends, of the monotonic clock, which started when it arrived: reading the body counts."""
    named = NAMED_SECONDS.fullmatch(seconds or "")  # another form is refused once its caller is known
    return request.state.arrived_at + (float(named[0]) if named else DEADLINE_S)


def agent_of(named: str | None, caller: Caller) -> str:
    """Return the agent a call is for; raise `InterfaceProblem` 403 where the key may not act for the agent named."""
    if caller.is_admin:
        return named or settings().agent
    if named not in (None, caller.agent_id):
        raise InterfaceProblem(
            FORBIDDEN, f"the key is another agent's than {named!r}; use that agent's, or an administrator's"
        )
    return caller.agent_id


def check_may_call(request: Request, caller: Caller) -> None:
    """Raise `InterfaceProblem` 403 for a write with a read-only key."""
    if not caller.rights.may_write and not is_reading(request):
        raise InterfaceProblem(FORBIDDEN, f"{caller.rights.holder} may only read; use one that may write")


def check_parameters(request: Request) -> None:
    """Raise `RequestValidationError` for query parameters that the route does not have, with those that it has."""
    if not request.query_params:
        return
    known = [each.alias for each in request.scope["route"].dependant.query_params]
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known][:MOST_NAMED]
    if unknown:
        raise RequestValidationError(
            [
                {
                    "type": "parameter_unknown",
                    "loc": ("query", name[:SHOWN_CHARACTERS]),
                    "ctx": {"hint": hint(name, known)},
                }
                for name in unknown
            ]
        )


def hint(name: str, known: Sequence[str]) -> str:
    """Return which parameter of a route is perhaps meant, and which there are."""
    if not known:
        return "this path takes no parameters of a query"
    meant = get_close_matches(name[:SHOWN_CHARACTERS], known, n=1)
    return f"{f'{meant[0]!r} is perhaps meant; ' if meant else ''}known: {', '.join(known)}"


def is_reading(request: Request) -> bool:
    return request.method == "GET" or request.scope["route"].operation_id in READING


def authenticator_of(request: Request) -> Authenticator:
    return request.app.state.authenticator


async def heart_call(
    request: Request, named: AgentHeader = None, seconds: DeadlineHeader = None, session: SessionHeader = None
) -> AsyncGenerator[ApiCall]:
    """Authenticate a call, wait for a slot of its agent, and yield the agent's heart, opened if need be."""
    authenticator = authenticator_of(request)
    ends_at = deadline_of(request, seconds)
    caller = await authenticator.authenticate(request, ends_at=ends_at)
    check_may_call(request, caller)
    check_parameters(request)
    agent_id = request.state.agent = agent_of(named, caller)
    async with authenticator.slots.slot(agent_id, seconds=seconds_until(ends_at)):
        heart = authenticator.hearts.find_open(agent_id)
        if heart is None:
            # An agent's key names its agent, which may be new. Others may have mistyped it, and reading creates none;
            # but an API without keys has one user, whose programs ask before they have stored anything.
            is_only_one = agent_id == UNNAMED and not authenticator.requires_keys
            must_exist = is_reading(request) and caller.is_admin and not is_only_one
            heart = await run_in_threadpool(
                authenticator.hearts.of, agent_id, seconds=seconds_until(ends_at), must_exist=must_exist
            )
        limited = heart.limited_to(caller.rights)
        yield ApiCall(limited if session is None else limited.session(session), ends_at)


@dataclass(frozen=True)
class NightCall:
    """One call about nights: the agent it may concern, None for all agents, and the seconds it may take."""

    agent_id: str | None
    is_admin: bool
    seconds: float


async def night_call(request: Request, named: AgentHeader = None) -> AsyncGenerator[NightCall]:
    """Authenticate a call about nights: of an agent about its own, of an administrator about all or the one named."""
    authenticator = authenticator_of(request)
    ends_at = request.state.arrived_at + authenticator.policy.night_deadline_s
    caller = await authenticator.authenticate(request, ends_at=ends_at)
    check_may_call(request, caller)
    check_parameters(request)
    agent_id = request.state.agent = None if caller.is_admin and named is None else agent_of(named, caller)
    async with authenticator.slots.slot(agent_id or ADMINISTRATOR, seconds=seconds_until(ends_at)):
        yield NightCall(agent_id, caller.is_admin, seconds_until(ends_at))


# FastAPI's default scope ends a dependency after the response is sent: a client that reads slowly would hold its slot.
HeartCall = Annotated[ApiCall, Depends(heart_call, scope="function")]
AnyNightCall = Annotated[NightCall, Depends(night_call, scope="function")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="A retry with the same key and content returns the first answer and changes nothing.",
    ),
]
