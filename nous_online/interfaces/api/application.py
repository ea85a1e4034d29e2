"""The application, put together for a server or for a test: where it listens, whom it lets in, and how it stops."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from nous_online.core.errors import InvalidInput, NousError
from nous_online.core.policy import ApiPolicy
from nous_online.core.settings import settings
from nous_online.interfaces.api import bodies, problems
from nous_online.interfaces.api.access import Authenticator
from nous_online.interfaces.api.gate import Gate, LifecycleCollector, Metrics
from nous_online.interfaces.api.hearts import LOOK_S, Hearts, ReadinessProbe
from nous_online.interfaces.api.keys import show_trail
from nous_online.interfaces.api.server_routes import Consolidator, installed_consolidator, night_router, server_router
from nous_online.interfaces.api.verb_routes import verb_router
from nous_online.interfaces.request_checks import LOOPBACK_NAMES, is_loopback
from nous_online.processes import python_module


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
    app = FastAPI(title=bodies.TITLE, version=bodies.version(), lifespan=lifespan, docs_url=None, redoc_url=None)
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
    bodies.describe(app, requires_keys=access.requires_keys)
    return app


# --- serving ---

HOST, PORT = "127.0.0.1", 8420


def command(port: int) -> list[str]:
    """Return how to start the interface on this machine alone, without keys."""
    return python_module("nous_online.interfaces.cli", "api", "--port", str(port), "--no-keys")


def access_at(
    host: str,
    *,
    requires_keys: bool,
    names: Sequence[str] = (),
    has_proxy: bool = False,
    policy: ApiPolicy | None = None,
) -> Access:
    """Return who is let in at an address; raise `InvalidInput` where strangers could come in without a key.

    On loopback the server goes by the names of this machine, else a page in a browser could reach it by a name of its
    own (DNS rebinding); elsewhere by those that are named, or by any.
    """
    if not requires_keys and not is_loopback(host):
        message = f"--no-keys serves this machine alone, and {host!r} is more; leave --no-keys out, or --host"
        raise InvalidInput(message)
    own = LOOPBACK_NAMES | {host.lower()} if is_loopback(host) else frozenset[str]()
    known = own | {name.lower() for name in names}
    told = settings().token
    return Access(
        requires_keys=requires_keys,
        token=None if told is None else told.get_secret_value(),
        hosts=known or None,
        opens_metrics=is_loopback(host) and not has_proxy,
        policy=policy or ApiPolicy(),
    )


def proxy_at(text: str) -> str:
    """Return the address, or network, of a proxy; raise `InvalidInput` for what is neither."""
    try:
        return str(ipaddress.ip_network(text.strip(), strict=False))
    except ValueError as error:
        message = f"not a valid address of a proxy: {text!r} (want one such as 127.0.0.1 or 10.0.0.0/8)"
        raise InvalidInput(message) from error


def serve(access: Access, *, host: str, port: int, proxy: str | None = None) -> None:
    """Serve until SIGINT or SIGTERM; calls under way are finished first."""
    import uvicorn

    show_trail()
    uvicorn.run(**configuration(application(access=access), access.policy, host=host, port=port, proxy=proxy))


def configuration(app: ASGIApp, policy: ApiPolicy, *, host: str, port: int, proxy: str | None) -> dict[str, Any]:
    """Return how uvicorn serves.

    It would believe any program of this machine that names another address as its own, and calls are counted by
    address: only `proxy` is believed.
    """
    from nous_online.interfaces.request_checks import BACKLOG, Connection

    return dict(  # noqa: C408 (these are arguments)
        app=app,
        http=Connection,
        backlog=BACKLOG,
        host=host.strip("[]"),
        port=port,
        log_level="info",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=policy.drain_s,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy,
        ws="none",
    )
