"""The FastAPI application, and how uvicorn serves it."""

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

from nous_online.core.errors import InvalidInput, NousError
from nous_online.core.policy import ApiPolicy
from nous_online.core.settings import settings
from nous_online.interfaces.api import bodies, problems
from nous_online.interfaces.api.access import Authenticator
from nous_online.interfaces.api.gate import Gate, LifecycleCollector, Metrics
from nous_online.interfaces.api.hearts import PROBE_S, Hearts, ReadinessProbe
from nous_online.interfaces.api.keys import show_trail
from nous_online.interfaces.api.server_routes import Consolidator, installed_consolidator, night_router, server_router
from nous_online.interfaces.api.verb_routes import verb_router
from nous_online.interfaces.request_checks import LOOPBACK_NAMES, is_loopback, listening, server_options
from nous_online.processes import python_module


@dataclass(frozen=True)
class Access:
    """Access rules of a server: keys or token, its host names, and limits."""

    requires_keys: bool = True
    token: str | None = field(default=None, repr=False)
    """Required as a bearer token where keys are not; None requires nothing."""
    hosts: frozenset[str] | None = None
    """Values allowed in the Host header; None allows any."""
    opens_metrics: bool = False
    """Whether `/metrics` needs no key: only on loopback without a proxy."""
    policy: ApiPolicy = field(default_factory=ApiPolicy)


def application(
    hearts: Hearts | None = None, *, access: Access | None = None, consolidator: Consolidator | None = None
) -> FastAPI:
    """Return the HTTP interface over these hearts; without any, over the database and embedder of the environment.

    `consolidator` runs nights; by default it is the one of the installed extra. Nothing is opened before the first
    call, so that the interface starts without its database and reports the problem.
    """
    hearts, access = Hearts() if hearts is None else hearts, access or Access()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        await run_in_threadpool(hearts.close)

    # FastAPI's documentation pages load scripts from a CDN into the origin where people would paste their keys.
    app = FastAPI(title=bodies.TITLE, version=bodies.version(), lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.access = access
    authenticator = app.state.authenticator = Authenticator(
        hearts, requires_keys=access.requires_keys, token=access.token, policy=access.policy
    )
    lifecycle = LifecycleCollector(lambda: hearts.database(seconds=PROBE_S).url)
    app.state.metrics = Metrics(open_hearts=lambda: len(hearts), lifecycle=lifecycle)
    app.state.readiness = ReadinessProbe(hearts, policy=access.policy)
    installed = installed_consolidator()
    app.state.consolidator = consolidator or (installed and installed())
    for router in (server_router, verb_router(), night_router):
        # `include_router` would build every route again, which takes most of a second at the first request.
        app.router.routes.extend(router.routes)
    app.add_exception_handler(NousError, problems.on_error)
    app.add_exception_handler(RequestValidationError, problems.on_invalid)
    app.add_exception_handler(HTTPException, problems.on_http_error)
    app.add_middleware(Gate, hosts=access.hosts, authenticator=authenticator, metrics=app.state.metrics)
    bodies.describe(app, requires_keys=access.requires_keys)
    return app


# --- serving ---


def command(port: int) -> list[str]:
    """Return the command that starts the interface on loopback without keys."""
    return python_module("nous_online.interfaces.cli", "api", "--port", str(port), "--no-keys")


def access_at(
    host: str,
    *,
    requires_keys: bool,
    names: Sequence[str] = (),
    has_proxy: bool = False,
    policy: ApiPolicy | None = None,
) -> Access:
    """Return the access rules for an address; raise `InvalidInput` for no keys on an address that is not loopback.

    On loopback only the names of this machine and those given are allowed as Host, which stops DNS rebinding by pages
    in a browser; elsewhere those given, or any.
    """
    if not requires_keys and not is_loopback(host):
        message = f"--no-keys serves this machine alone, and {host!r} is more; leave --no-keys out, or --host"
        raise InvalidInput(message)
    own = LOOPBACK_NAMES | {host.lower()} if is_loopback(host) else frozenset[str]()
    known = own | {name.lower() for name in names}
    token = settings().token
    return Access(
        requires_keys=requires_keys,
        token=None if token is None else token.get_secret_value(),
        hosts=known or None,
        # Behind a proxy, callers from anywhere reach a loopback address.
        opens_metrics=is_loopback(host) and not has_proxy,
        policy=policy or ApiPolicy(),
    )


def proxy_at(text: str) -> str:
    """Return a proxy's address or network in canonical form; raise `InvalidInput` for anything else."""
    try:
        return str(ipaddress.ip_network(text.strip(), strict=False))
    except ValueError as error:
        message = f"not a valid address of a proxy: {text!r} (want one such as 127.0.0.1 or 10.0.0.0/8)"
        raise InvalidInput(message) from error


def serve(access: Access, *, host: str, port: int, proxy: str | None = None) -> None:
    """Serve until SIGINT or SIGTERM; calls in flight are finished first."""
    import uvicorn

    listening(port, host=host).close()  # else uvicorn would say in lines of its own that the port is taken
    show_trail()
    places: dict[str, Any] = {"host": host, "port": port, "proxy": proxy}
    app, grace_s = application(access=access), access.policy.drain_s
    uvicorn.run(**server_options(app, grace_s=grace_s, log_level="info", ws="none", **places))
