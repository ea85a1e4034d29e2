"""Whether the process lives, whether it can serve, what it counted, and where everything is."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from nous_online.core.errors import NousError
from nous_online.core.policy import ApiPolicy
from nous_online.interfaces.api import metrics
from nous_online.interfaces.api.access import door_of
from nous_online.interfaces.api.problems import InterfaceProblem
from nous_online.interfaces.api.readiness import LOOK_S, HealthCheck
from nous_online.interfaces.request_checks import bearer_of

router = APIRouter(tags=["server"])
UNTOLD = "not in order; the log of the server says why, and so does this to an administrator's key"


@dataclass(frozen=True)
class Health:
    """The process lives."""

    status: Literal["ok"] = "ok"


@dataclass(frozen=True)
class Readiness:
    """Whether calls can be served now, and what is in the way."""

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


@router.get("/", operation_id="get_links", summary="Find your way")
def links(request: Request) -> Links:
    """Return where everything is."""
    described = request.app.openapi()
    return Links(
        name=described["info"]["title"],
        version=described["info"]["version"],
        openapi="/openapi.json",
        health="/health",
        ready="/ready",
        metrics="/metrics",
        endpoints=[f"{method.upper()} {path}" for path, methods in described["paths"].items() for method in methods],
    )


@router.get("/health", operation_id="get_health", summary="See whether the process lives")
async def health() -> Health:
    """Return at once, whatever the database does."""
    return Health()


@router.get(
    "/ready",
    operation_id="get_readiness",
    summary="See whether calls can be served",
    responses={503: {"model": Readiness, "description": "Something is in the way; the checks say what."}},
)
async def ready(request: Request, response: Response) -> Readiness:
    """Look at the database, its schema and the embedder; what is wrong with them is told to administrators alone."""
    found = await request.app.state.readiness.looked()
    if not await is_administrator(request):
        found = tuple(replace(look, message="in order" if look.is_ok else UNTOLD) for look in found)
    is_ready = all(look.is_ok for look in found)
    if not is_ready:
        response.status_code = 503
        response.headers["Retry-After"] = str(ApiPolicy.retry_after_s)
    return Readiness(is_ready, found)


async def is_administrator(request: Request) -> bool:
    """Tell whether an administrator asks; a caller without a good key is told less, and not refused."""
    door = door_of(request)
    if door.is_open or not bearer_of(request.headers):
        return door.is_open
    try:
        return (await door.let_in(request, ends_at=time.monotonic() + LOOK_S)).is_admin
    except (InterfaceProblem, NousError):
        return False


@router.get(
    "/metrics",
    operation_id="get_metrics",
    summary="Read the metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def get_metrics(request: Request) -> Response:
    """Return what Prometheus may know; nothing of memories, and no agent's name. Needs a key unless on loopback."""
    if not request.app.state.access.opens_metrics:
        await door_of(request).let_in(request, ends_at=time.monotonic() + LOOK_S)
    return Response(await run_in_threadpool(request.app.state.metrics.text), media_type=metrics.MEDIA_TYPE)
