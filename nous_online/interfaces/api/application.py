"""The application: everything put together, for a server or for a test."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from nous_online.core.errors import NousError
from nous_online.core.policy import ApiPolicy
from nous_online.interfaces.api import openapi, problems
from nous_online.interfaces.api.access import Authenticator
from nous_online.interfaces.api.consolidation import Consolidator, installed_consolidator
from nous_online.interfaces.api.gate import Gate, Metrics
from nous_online.interfaces.api.hearts import LOOK_S, Hearts, ReadinessProbe
from nous_online.interfaces.api.lifecycle_metrics import LifecycleCollector
from nous_online.interfaces.api.server_routes import night_router, server_router
from nous_online.interfaces.api.verb_routes import verb_router


@dataclass(frozen=True)
class Access:
    """Who is let in: with keys or without, by which names the server goes, and how much at once."""

    requires_keys: bool = True
    token: str | None = field(default=None, repr=False)
    """What is asked for where no key is; None lets everybody in who reaches the door."""
    hosts: frozenset[str] | None = None
    """Names a Host header may give; None lets any pass."""
    opens_metrics: bool = False
    """Whether `/metrics` needs no key: where this machine alone can ask."""
    policy: ApiPolicy = field(default_factory=ApiPolicy)


def application(
    hearts: Hearts | None = None, *, access: Access | None = None, consolidator: Consolidator | None = None
) -> FastAPI:
    """Return the HTTP interface over these hearts; without any, over the database and embedder of the environment.

    `consolidator` runs nights; unless given, it is the one an installed extra brings. Nothing is opened before the
    first call, so that an interface whose database is away comes up and says so.
    """
    hearts, access = Hearts() if hearts is None else hearts, access or Access()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        await run_in_threadpool(hearts.close)

    # FastAPI's pages of the API run scripts from another host on the origin where people would paste their keys.
    app = FastAPI(title=openapi.TITLE, version=openapi.version(), lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.access = access
    door = app.state.door = Authenticator(
        hearts, requires_keys=access.requires_keys, token=access.token, policy=access.policy
    )
    lives = LifecycleCollector(lambda: hearts.database(seconds=LOOK_S).url)
    app.state.metrics = Metrics(open_hearts=lambda: len(hearts), lifecycle=lives)
    app.state.readiness = ReadinessProbe(hearts, policy=access.policy)
    installed = installed_consolidator()
    app.state.consolidator = consolidator or (installed and installed())
    for router in (server_router, verb_router(), night_router):
        # `include_router` makes every route anew at the first request, which then takes most of a second.
        app.router.routes.extend(router.routes)
    app.add_exception_handler(NousError, problems.on_error)
    app.add_exception_handler(problems.InterfaceProblem, problems.on_failure)
    app.add_exception_handler(RequestValidationError, problems.on_invalid)
    app.add_exception_handler(HTTPException, problems.on_http_error)
    app.add_middleware(Gate, hosts=access.hosts, door=door, metrics=app.state.metrics)
    openapi.describe(app, requires_keys=access.requires_keys)
    return app
