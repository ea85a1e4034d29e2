"""Routes about the process and its nights: health, readiness, metrics; running, undoing and reading nights."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from functools import cache
from importlib.metadata import entry_points
from typing import Annotated, Any, Literal, Protocol

from fastapi import APIRouter, FastAPI, Path, Query, Request, Response
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from nous_online.core.errors import NousError
from nous_online.core.policy import ApiPolicy
from nous_online.interfaces.api.access import AnyNightCall, NightCall, authenticator_of
from nous_online.interfaces.api.bodies import Body, Flag, Name, Night, text_of
from nous_online.interfaces.api.gate import MEDIA_TYPE
from nous_online.interfaces.api.hearts import NOT_LOOKED_AT, PROBE_S, HealthCheck
from nous_online.interfaces.api.problems import FORBIDDEN, NO_EXTRA, InterfaceProblem, endpoints
from nous_online.interfaces.request_checks import bearer_of

CONSOLIDATORS_GROUP = "nous.consolidators"
RunState = Literal["running", "succeeded", "failed"]


@dataclass(frozen=True)
class UndoneNights:
    """What became of nights that were to be taken back."""

    undone: dict[str, int]
    """How many proposals of each night were taken back, newest first."""
    refused: dict[str, str]
    """Which proposals were not, and why. The range ended at their night: those before it stand as they were."""


@dataclass(frozen=True)
class Planned:
    """What a night would do, counted in its plan."""

    night: date
    deduped: int
    """Memories merged into others."""
    superseded: int
    compressed: int
    """Episodes condensed."""
    forgotten: int
    """Memories archived; none is deleted."""
    contradictions_found: int
    promoted: int
    demoted: int
    linked: int
    shared: int
    censors_retired: int
    procedures_flagged: int
    is_success: bool
    """Whether it would be applied: no check fails for all."""
    failures: tuple[str, ...]
    notices: tuple[str, ...]
    """Whom it would leave out, and why; all others have their night."""
    plan_hash: str
    was_applied: bool = False
    """Whether the night was applied before: the counts are of what is left, mostly nothing."""


@dataclass(frozen=True)
class Started:
    """A night that runs in the background, or is over."""

    run: str
    night: date
    state: RunState
    interface: str
    """Where the Dagster interface shows runs, when it is up: `nous dev` starts it."""
    counts: dict[str, int] | None = None
    failures: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    """Whom it left out, and why; it was applied for all others."""
    watch: str = ""
    """Where this answer can be asked for again."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "watch", f"/consolidate/{self.run}")


COUNTED = tuple(each.name for each in fields(Planned) if each.type == "int")
OTHER_NAMES = {
    "deduped": "retired", "compressed": "condensed", "forgotten": "archived", "contradictions_found": "contradictions",
}  # fmt: skip
"""What a plan calls its counts, where the interface calls them otherwise."""


def planned(night: date, plan_hash: str, counts: Mapping[str, int], **outcome: Any) -> Planned:
    """Return the response for a plan, with its counts by the names of the interface."""
    counted = {name: counts.get(OTHER_NAMES.get(name, name), 0) for name in COUNTED}
    return Planned(night=night, plan_hash=plan_hash, **counted, **outcome)


class Consolidator(Protocol):
    """Plans and runs nights over one database."""

    def plan(self, url: str, *, night: date | None, agent_id: str | None, seconds: float) -> Planned:
        """Return the plan of a night, changing nothing."""
        ...

    def start(self, url: str, *, night: date | None, agent_id: str | None) -> Started:
        """Start a night in the background."""
        ...

    def state(self, run: str) -> Started:
        """Return the state of a night started by this process; raise `NotFound` for any other run."""
        ...

    def report(self, url: str, *, night: date | None, agent_id: str | None, seconds: float) -> Mapping[str, Any]:
        """Return the report of a night, of all agents or of one alone; raise `NotFound` when it did not run."""
        ...

    def undo(
        self,
        url: str,
        *,
        nights: tuple[date, date],
        kind: str | None,
        agent_id: str | None,
        reason: str,
        seconds: float,
    ) -> UndoneNights:
        """Undo the nights from the first to the last, newest first, as far as nothing was built on them."""
        ...


@cache
def installed_consolidator() -> Callable[[], Consolidator] | None:
    """Return the factory of the installed `Consolidator`, None without the extra; cached, as it scans all packages."""
    return next((point.load() for point in entry_points(group=CONSOLIDATORS_GROUP)), None)


server_router, night_router = APIRouter(tags=["server"]), APIRouter(tags=["nights"])

# --- the routes ---

HIDDEN_MESSAGE = (
    "not in order; the log of the server says why, and so does this to an administrator's key that can be looked up"
)


@dataclass(frozen=True)
class Health:
    """The process lives."""

    status: Literal["ok"] = "ok"


@dataclass(frozen=True)
class Readiness:
    """Whether calls can be served now, and the checks that decide it."""

    is_ready: bool
    checks: tuple[HealthCheck, ...]


@dataclass(frozen=True)
class Links:
    """Where everything is."""

    name: str
    version: str
    openapi: str
    health: str
    ready: str
    metrics: str
    endpoints: list[str]


@server_router.get("/", operation_id="get_links", summary="Find your way")
def links(request: Request) -> Links:
    """Return the paths of everything."""
    app: FastAPI = request.app
    return Links(
        name=app.title,
        version=app.version,
        openapi="/openapi.json",
        health="/health",
        ready="/ready",
        metrics="/metrics",
        endpoints=[f"{method} {path}" for path, methods in endpoints(app).items() for method in methods],
    )


@server_router.get("/health", operation_id="get_health", summary="See whether the process lives")
async def health() -> Health:
    """Return at once; the database is not asked."""
    return Health()


@server_router.get(
    "/ready",
    operation_id="get_readiness",
    summary="See whether calls can be served",
    responses={503: {"model": Readiness, "description": "Something is in the way; the checks say what."}},
)
async def ready(request: Request, response: Response) -> Readiness:
    """Check the database, its schema and the embedder; only administrators see what is wrong with them."""
    found = await request.app.state.readiness.checks()
    if not await is_administrator(request):
        found = tuple(replace(check, message=hidden_message(check)) for check in found)
    is_ready = all(check.is_ok for check in found)
    if not is_ready:
        response.status_code = 503
        response.headers["Retry-After"] = str(ApiPolicy.retry_after_s)
    return Readiness(is_ready, found)


def hidden_message(check: HealthCheck) -> str:
    """Return what callers who are no administrators are told of a check."""
    if not check.is_ok:
        return HIDDEN_MESSAGE
    return NOT_LOOKED_AT if check.message == NOT_LOOKED_AT else "in order"


async def is_administrator(request: Request) -> bool:
    """Return whether the caller is an administrator; one without a valid key is not refused, but sees less."""
    authenticator = authenticator_of(request)
    if authenticator.is_open or not bearer_of(request.headers):
        return authenticator.is_open
    try:
        return (await authenticator.authenticate(request, ends_at=time.monotonic() + PROBE_S)).is_admin
    except NousError:
        return False


@server_router.get(
    "/metrics",
    operation_id="get_metrics",
    summary="Read the metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def get_metrics(request: Request) -> Response:
    """Return the metrics for Prometheus: no memories, no names of agents. Needs a key unless on loopback."""
    if not request.app.state.access.opens_metrics:
        await authenticator_of(request).authenticate(request, ends_at=time.monotonic() + PROBE_S)
    return Response(await run_in_threadpool(request.app.state.metrics.text), media_type=MEDIA_TYPE)


RunId = Annotated[str, Path(max_length=100, description="As POST /consolidate named it.")]
NIGHT = "Which night, as its date; the last one that is over, unless told."
EXTRA = "nights need the extra `pipelines`; run: pip install 'nous-pipelines[pipelines]'"


class ConsolidateBody(Body):
    """Which night is to be run, and whether in earnest."""

    model_config = ConfigDict(json_schema_extra={"example": {"dry_run": True}})

    dry_run: Flag = Field(default=False, description="Stop after the checks; change nothing, and tell the counts.")
    night: Night | None = Field(default=None, description=NIGHT)


class UndoNightsBody(Body):
    """Which nights are to be taken back, and why."""

    model_config = ConfigDict(json_schema_extra={"example": {"first": "2026-11-01", "last": "2026-11-20"}})

    first: Night = Field(description="The first night of the range.")
    last: Night = Field(description="The last one, with which it begins: nights are taken back newest first.")
    kind: Name | None = Field(default=None, description="One kind of proposal alone, such as merge.")
    reason: Annotated[str, text_of(1000)] = Field(
        default="taken back by the operator", description="Why; kept with the event of each change."
    )


def consolidator_of(request: Request) -> Consolidator:
    consolidator: Consolidator | None = request.app.state.consolidator
    if consolidator is None:
        raise InterfaceProblem(NO_EXTRA, EXTRA)
    return consolidator


def require_admin(call: NightCall) -> None:
    if not call.is_admin:
        raise InterfaceProblem(
            FORBIDDEN, "only an administrator's key may run nights; make one: nous key create --admin"
        )


def url_of(request: Request, call: NightCall) -> str:
    return authenticator_of(request).hearts.database(seconds=call.seconds).url


@night_router.post(
    "/consolidate",
    operation_id="consolidate",
    summary="Run a night, or see what it would do",
    responses={202: {"model": Started, "description": "The night runs in the background."}},
)
def consolidate(body: ConsolidateBody, request: Request, response: Response, call: AnyNightCall) -> Planned | Started:
    """With `dry_run`, count what the night would change; without it, start the night and say where to watch it.

    For an administrator: for all agents, or for the one named in `X-Nous-Agent`.
    """
    require_admin(call)
    consolidator, url = consolidator_of(request), url_of(request, call)
    if body.dry_run:
        return consolidator.plan(url, night=body.night, agent_id=call.agent_id, seconds=call.seconds)
    response.status_code = 202
    return consolidator.start(url, night=body.night, agent_id=call.agent_id)


@night_router.get("/consolidate/{run}", operation_id="get_consolidation", summary="See how a night stands")
def get_run(run: RunId, request: Request, call: AnyNightCall) -> Started:
    """Return the state of a night started here, and its counts when it has ended."""
    require_admin(call)
    return consolidator_of(request).state(run)


@night_router.post("/consolidate/undo", operation_id="undo_nights", summary="Take nights back")
def undo_nights(body: UndoNightsBody, request: Request, call: AnyNightCall) -> UndoneNights:
    """Take back what a range of nights changed, newest first: every row as it was, another event for each.

    For an administrator: of all agents, or of the one named in `X-Nous-Agent`. The range ends at the first night of
    which something is refused, because others built on it. Where the deadline comes first, what was taken back stays
    so; call it again.
    """
    require_admin(call)
    return consolidator_of(request).undo(
        url_of(request, call),
        nights=(body.first, body.last),
        kind=body.kind,
        agent_id=call.agent_id,
        reason=body.reason,
        seconds=call.seconds,
    )


REPORT: dict[str, Any] = {
    "night": "2026-11-20",
    "plan_hash": "9f2c4e1d",
    "counts": {"active_before": 120, "active_after": 117, "merges": 2, "retired": 3},
    "entries": [{"kind": "merge", "state": "applied", "reason": "the same, said twice"}],
    "cost_usd": 0.0,
}


@night_router.get(
    "/report",
    operation_id="get_report",
    summary="Read what a night did",
    responses={200: {"content": {"application/json": {"example": REPORT}}}},
)
def get_report(
    request: Request, call: AnyNightCall, night: Annotated[Night | None, Query(description=NIGHT)] = None
) -> dict[str, Any]:
    """Return what a night changed and why, what it left alone and why, and how to take it back.

    An agent's key reads what concerns that agent; an administrator's reads all, or the agent in `X-Nous-Agent`.
    """
    found = consolidator_of(request).report(
        url_of(request, call), night=night, agent_id=call.agent_id, seconds=call.seconds
    )
    return dict(found)
