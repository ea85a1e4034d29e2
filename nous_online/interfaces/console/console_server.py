"""The application of the console, and its server: on loopback only, opened by the URL with a token that is printed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from nous_online.core.errors import NousError
from nous_online.core.policy import ApiPolicy
from nous_online.interfaces.api.problems import kind_of
from nous_online.interfaces.console import console_pages
from nous_online.interfaces.console.rendering import FORM_TOKEN, ConsoleState, page
from nous_online.interfaces.request_checks import HOST, PAGE_HEADERS, PageGate, listening, server_options, with_token
from nous_online.processes import python_module

ALIVE = "/health"
OWN_PAGES = {
    **PAGE_HEADERS,
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",
}
"""A page may load its own style sheet and script, and listen to `/events`; nothing else."""


def application(console: ConsoleState) -> FastAPI:
    """Return the console over these hearts; nothing is opened before the first page."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        await run_in_threadpool(console.hearts.close)

    app = FastAPI(title="Nous console", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.console = console
    # `include_router` builds each route again at the first request.
    app.router.routes.extend(console_pages.router.routes)
    app.add_api_route(ALIVE, lambda: {"status": "ok"}, methods=["GET"])
    for failure in (NousError, HTTPException):
        app.add_exception_handler(failure, on_failure)
    app.add_middleware(PageGate, token=console.token, alive=ALIVE, headers=OWN_PAGES)
    return app


async def on_failure(request: Request, error: Exception) -> HTMLResponse:
    """Answer with a page an error of ours, or what the framework refused: another path or method."""
    match error:
        case NousError():
            status, what = kind_of(error).status, str(error)
        case HTTPException():
            status, what = error.status_code, f"{request.method} {request.url.path}: {error.detail}"
        case _:
            raise error
    form: dict[str, str] = getattr(request.state, "form", {})
    others = {name: form[name] for name in form.keys() - {FORM_TOKEN, "text"}}
    return page(request, "problem.html", status=status, what=what, written=form.get("text"), others=others)


def command(port: int, *, read_only: bool) -> list[str]:
    """Return the command that starts the console of the agent in NOUS_AGENT."""
    options = ["--port", str(port), *(["--read-only"] if read_only else [])]
    return python_module("nous_online.interfaces.cli", "console", *options)


def serve(console: ConsoleState, *, port: int, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; `on_ready` gets the URL once the port is bound. Raises `Unavailable` if taken."""
    import uvicorn

    # Bound here, not by uvicorn: the URL is printed only once the port is ours, and port 0 gets its number.
    with listening(port) as listener:
        options = server_options(application(console), grace_s=ApiPolicy.drain_s, port=port, ws="none")
        server = uvicorn.Server(uvicorn.Config(**options))
        on_ready(with_token(f"http://{HOST}:{listener.getsockname()[1]}/", console.token))
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
