"""Who calls, for which agent, and until when: settled before anything else is done."""

from __future__ import annotations

import ipaddress
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Header, Request
from starlette.concurrency import run_in_threadpool

from nous_online.core.errors import DeadlineExceeded, NousError
from nous_online.core.policy import ApiPolicy
from nous_online.core.rights import WITHOUT_KEY, Rights
from nous_online.core.settings import settings
from nous_online.core.validation import ADMINISTRATOR
from nous_online.heart import Heart
from nous_online.interfaces.api import keys
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.api.limits import Limit
from nous_online.interfaces.api.problems import FORBIDDEN, KEY_REFUSED, UNAVAILABLE, InterfaceProblem
from nous_online.interfaces.api.turns import Turns
from nous_online.interfaces.request_checks import bearer_of, is_same

logger = logging.getLogger(__name__)
AGENT = r"^[A-Za-z0-9][A-Za-z0-9._@:/+-]{0,99}$"
"""Names that can stand in a header; a key of its own can name any other agent."""
SECONDS = r"^([1-9]|[1-5][0-9])(\.[0-9]{1,3})?$"
AGENT_HEADER, DEADLINE_HEADER, SESSION_HEADER = "X-Nous-Agent", "X-Nous-Deadline", "X-Nous-Session"
MOST_REMEMBERED = 10_000
MOST_LOOKED_UP = 4
"""Keys looked up at once that are new here, and as many that were good before: who guesses gets in nobody's way."""
DEADLINE_S = min(settings().deadline_s, ApiPolicy.longest_deadline_s)
READING = ("recall", "assemble_context", "predict")
"""What a key that may only read may call besides every GET."""
REFUSED_TOKEN = "send the token the server was started with (NOUS_TOKEN) as `Authorization: Bearer …`"  # noqa: S105
REFUSED_KEY = "send a valid key as `Authorization: Bearer nous_…`; `nous key create` makes one"

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
    """Who calls: an agent, or an administrator, under which name calls are counted, and how far it is believed."""

    agent_id: str
    counted_as: str
    rights: Rights
    key_id: str | None = None

    @property
    def is_admin(self) -> bool:
        """Whether it may act for any agent."""
        return self.agent_id == ADMINISTRATOR


@dataclass(frozen=True)
class ApiCall:
    """One call of an agent: its heart, and the moment by which it ends."""

    heart: Heart
    ends_at: float

    def left(self) -> float:
        """Return the seconds left for a verb; raise `DeadlineExceeded` when there are none."""
        return seconds_until(self.ends_at)


class Authenticator:
    """Lets callers in: looks their keys up, remembers the good ones for a moment, counts calls, and gives turns."""

    def __init__(self, hearts: Hearts, *, requires_keys: bool, token: str | None, policy: ApiPolicy) -> None:
        self.hearts = hearts
        self.policy = policy
        self.requires_keys, self._token = requires_keys, token
        self.turns = Turns(policy.most_of_an_agent, most=policy.most_waiting)
        self._calls = Limit(policy.calls_per_minute)
        self._strangers = Limit(policy.strangers_per_minute)
        self._good: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()
        self._looking_up_new, self._looking_up_known = CapacityLimiter(MOST_LOOKED_UP), CapacityLimiter(MOST_LOOKED_UP)
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether everybody who reaches the door is let in."""
        return not self.requires_keys and self._token is None

    async def let_in(self, request: Request, *, ends_at: float) -> Caller:
        """Return who calls, counted once a call.

        Raises `InterfaceProblem` 401 for a key that is missing, wrong, expired or revoked, and 429 for one call too
        many: of a key, or of an address among those without a good key. A good key does not suffer from others that
        fail at its address.
        """
        known: Caller | None = request.state.caller
        if known is not None:
            return known
        if not self.requires_keys:
            self._check_token(request)
            caller = Caller(ADMINISTRATOR, address_of(request), WITHOUT_KEY)
        else:
            text = bearer_of(request.headers)
            request.state.claimed_key = claimed(text)
            limiter = self._looking_up_known if digest(text) in self._good else self._looking_up_new
            caller = self._remembered(text) or await to_thread.run_sync(
                self._looked_up, address_of(request), text, ends_at, limiter=limiter
            )
        self._calls.count(caller.counted_as)
        request.state.caller = caller
        return caller

    def _check_token(self, request: Request) -> None:
        """Raise `InterfaceProblem` 401 where a token is asked for in place of keys, and not sent."""
        if self._token is not None and not is_same(bearer_of(request.headers), self._token):
            self._strangers.count(address_of(request))
            raise InterfaceProblem(KEY_REFUSED, REFUSED_TOKEN)

    def _remembered(self, text: str) -> Caller | None:
        with self._lock:
            caller, until = self._good.get(digest(text), (None, 0.0))
        return caller if until > time.monotonic() else None

    def _looked_up(self, address: str, text: str, ends_at: float) -> Caller:
        """Look a key up under the rights of the agent it names; what is no key is looked up too, to take as long."""
        parsed = keys.parsed(text)
        if parsed is None:
            self._strangers.check(address)
        key = parsed or keys.DECOY
        try:
            database = self.hearts.database(seconds=seconds_until(ends_at))
            with database.transaction(key.agent_id, timeout_s=seconds_until(ends_at)) as connection:
                record = keys.found(connection, key)
        except DeadlineExceeded:
            raise
        except NousError as error:
            logger.warning("a key can't be looked up: %s", error)
            raise InterfaceProblem(
                UNAVAILABLE, "keys can't be looked up now; the log of the server says why"
            ) from error
        if parsed is None or record is None:
            with self._lock:
                self._good.pop(digest(text), None)
            self._strangers.count(address)
            raise InterfaceProblem(KEY_REFUSED, REFUSED_KEY)
        caller = Caller(key.agent_id, f"{key.agent_id}/{key.id}", record.rights, key.id)
        with self._lock:
            self._good[digest(text)] = (caller, time.monotonic() + self.policy.key_memory_s)
            while len(self._good) > MOST_REMEMBERED:
                self._good.popitem(last=False)
        return caller


def claimed(text: str) -> str | None:
    """Return which key a text claims to be, good or not, None where it is none at all."""
    key = keys.parsed(text)
    return None if key is None else key.id


def digest(text: str) -> bytes:
    """Return under what a key is remembered: nobody finds keys in a memory dump."""
    return sha256(text.encode("utf-8", "surrogateescape")).digest()


def address_of(request: Request) -> str:
    """Return where a call comes from; of IPv6 the network, since whoever has one address there has all of it."""
    host = request.client.host if request.client else "unknown"
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return host if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))  # noqa: PLR2004


def seconds_until(moment: float) -> float:
    """Return the seconds until a moment of the monotonic clock; raise `DeadlineExceeded` when it is over."""
    left = moment - time.monotonic()
    if left <= 0:
        raise DeadlineExceeded("the call took longer than its deadline and was ended; try again")
    return left


def agent_of(named: str | None, caller: Caller) -> str:
    """Return for which agent a call is; raise `InterfaceProblem` 403 where the key may not act for the agent named."""
    if caller.is_admin:
        return named or settings().agent
    if named not in (None, caller.agent_id):
        raise InterfaceProblem(
            FORBIDDEN, f"the key is another agent's than {named!r}; use that agent's, or an administrator's"
        )
    return caller.agent_id


def check_may_call(request: Request, caller: Caller) -> None:
    """Raise `InterfaceProblem` 403 where a key that may only read would write."""
    if not caller.rights.may_write and request.method != "GET" and request.scope["route"].operation_id not in READING:
        raise InterfaceProblem(FORBIDDEN, f"{caller.rights.holder} may only read; use one that may write")


def door_of(request: Request) -> Authenticator:
    """Return the door of the application that serves a request."""
    return request.app.state.door


async def heart_call(
    request: Request, named: AgentHeader = None, seconds: DeadlineHeader = None, session: SessionHeader = None
) -> AsyncGenerator[ApiCall]:
    """Let a caller in and, when it is its agent's turn, yield the heart of that, opened if need be."""
    door, ends_at = door_of(request), request.state.arrived_at + (DEADLINE_S if seconds is None else float(seconds))
    caller = await door.let_in(request, ends_at=ends_at)
    check_may_call(request, caller)
    agent_id = request.state.agent = agent_of(named, caller)
    async with door.turns.turn(agent_id, seconds=seconds_until(ends_at)):
        heart = door.hearts.known(agent_id)
        if heart is None:
            heart = await run_in_threadpool(door.hearts.of, agent_id, seconds=seconds_until(ends_at))
        limited = heart.limited_to(caller.rights)
        yield ApiCall(limited if session is None else limited.session(session), ends_at)


@dataclass(frozen=True)
class NightCall:
    """One call about nights: whom it may be about, None for all agents, and how long it may take."""

    agent_id: str | None
    is_admin: bool
    seconds: float


async def night_call(request: Request, named: AgentHeader = None) -> AsyncGenerator[NightCall]:
    """Let a caller in that asks about nights: an agent about its own, an administrator about all or the one named."""
    door = door_of(request)
    ends_at = request.state.arrived_at + door.policy.night_deadline_s
    caller = await door.let_in(request, ends_at=ends_at)
    check_may_call(request, caller)
    agent_id = request.state.agent = None if caller.is_admin and named is None else agent_of(named, caller)
    async with door.turns.turn(agent_id or ADMINISTRATOR, seconds=seconds_until(ends_at)):
        yield NightCall(agent_id, caller.is_admin, seconds_until(ends_at))


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
