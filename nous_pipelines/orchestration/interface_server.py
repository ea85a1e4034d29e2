"""Serves Dagster's interface behind our gate and runs its daemon; started by `nous dev`, `nous demo` and compose.

Dagster accepts mutations in the query string of a GET, and WebSockets of any origin: any web page, and any user of the
machine, could launch runs. So requests pass the gate of our pages, and have to be such as Dagster's own pages send.
"""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
import uvicorn
from dagster import DagsterInstance
from dagster._cli.proxy_server_manager import ProxyServerManager
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget, WorkspaceFileTarget
from dagster_webserver.version import __version__
from dagster_webserver.webserver import DagsterWebserver
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Send

from nous_online.core.errors import NousError, Unavailable
from nous_online.core.files import keep_private
from nous_online.core.settings import settings
from nous_online.interfaces.cli.output import show_error
from nous_online.interfaces.request_checks import PageGate, interface_token, refusal, server_options, with_token
from nous_online.processes import WARNINGS_OFF, child_environment, child_folder, python_module
from nous_pipelines.nights import FIRST_NIGHT
from nous_pipelines.orchestration.instance import HOST, LOCATION, PORT, dagster_instance
from nous_pipelines.orchestration.running import first_night

ALIVE = "/server_info"
"""A path that shows versions and nothing else, without a token, for programs that wait for the interface."""
GRAPHQL = "/graphql"
NOT_FRAMED = {"X-Frame-Options": "DENY"}
OWN_FILES = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; base-uri 'none'; object-src 'none'; frame-ancestors 'none'"
)
"""The policy for pages of Dagster without one; `unsafe-inline` since its query editor has an inline script."""


class DagsterGate(PageGate):
    """The outermost ASGI layer of Dagster's interface."""

    def __init__(self, app: ASGIApp, *, token: str, names: Iterable[str] = ()) -> None:
        super().__init__(app, token=token, alive=ALIVE, names=names)

    def wrap_send(self, send: Send) -> Send:
        """Add headers to responses: none may be framed, and pages without a content security policy get one."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(NOT_FRAMED)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.setdefault("Content-Security-Policy", OWN_FILES)
            await send(message)

        return send_with_headers

    def refuse_misuse(self, connection: HTTPConnection, *, is_read: bool) -> Response | None:
        """Return a refusal of requests that no page of Dagster sends: a query in a URL, or a body that is not JSON."""
        if is_read and connection.url.path == GRAPHQL and "query" in connection.query_params:
            return refusal(405, "a GET asks nothing of GraphQL; send the query as JSON, by POST")
        # A form of another site can send a POST without asking first, but not with this type.
        media_type = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not is_read and media_type != "application/json":
            return refusal(415, "the body is not said to be JSON; send it with Content-Type: application/json")
        return None


# --- interface and daemon ---

POLL_MS = 2000
"""How often pages poll for the state of assets; the value of `dagster dev`."""
SHOWN_CHARACTERS = 500
"""Of the error with which our code location could not be loaded."""
GRACE_S = 3  # for calls in progress at the end; an open page would never end its own
DAEMON_GRACE_S = 10
FIRST_NIGHT_POLL_S = 30.0
"""How often to look for an older first memory, such as after an import."""


def main(
    *,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = HOST,
    port: Annotated[int, typer.Option(help="Where.")] = PORT,
    name: Annotated[list[str] | None, typer.Option(help="A host name it has besides those of this machine.")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show everything and change nothing.")] = False,
    no_daemon: Annotated[bool, typer.Option("--no-daemon", help="Without the daemon, which runs schedules.")] = False,
) -> None:
    """Serve Dagster's interface to callers with the token until SIGINT or SIGTERM; print the token unless it is set."""
    keep_private()
    gc.freeze()  # excludes what was imported from garbage collection: every full collection would scan it for nothing
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    token = interface_token()
    if settings().token is None:
        sys.stdout.write(f"Dagster  {with_token(f'http://{HOST}:{port}/', token)}\n")
        sys.stdout.flush()
    try:
        with (
            dagster_instance() as instance,
            code_server(instance) as location,
            interface(instance, location, read_only=read_only) as application,
        ):
            gate = DagsterGate(application.create_asgi_app(), token=token, names=name or ())
            options = server_options(gate, grace_s=GRACE_S, host=host, port=port)
            server = uvicorn.Server(uvicorn.Config(**options))
            with nullcontext() if no_daemon else daemon_beside(server, location):
                server.run()
    except NousError as error:
        show_error(str(error))
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        return


@contextmanager
def code_server(instance: DagsterInstance) -> Generator[Path]:
    """Load our code location in a server process for a block; yield the workspace file with its address.

    The server is started again when it ends, and ends when it gets no requests for long.
    """
    # Shared by interface and daemon: a daemon without one loads everything once a minute, for 5 s of processor time.
    target = ModuleTarget(LOCATION, attribute=None, working_directory=str(child_folder()), location_name=LOCATION)
    with (
        ProxyServerManager(instance, target, code_server_log_level="WARNING") as servers,
        TemporaryDirectory(prefix="nous-dagster-") as folder,
    ):
        workspace = Path(folder) / "workspace.yaml"
        workspace.write_text(json.dumps({"load_from": servers.get_code_server_specs()}), "utf-8")
        yield workspace


@contextmanager
def interface(instance: DagsterInstance, location: Path, *, read_only: bool) -> Generator[DagsterWebserver]:
    """Yield Dagster's interface over our code location, with all tables of the instance created."""
    target = WorkspaceFileTarget([str(location)])
    with (
        WorkspaceProcessContext(instance, target, version=__version__, read_only=read_only) as workspace,
        reloading_for_older_memories(workspace),
    ):
        if failed := workspace.create_request_context().code_location_errors():
            said = " ".join(failed[0].message.split())[:SHOWN_CHARACTERS]
            raise Unavailable(f"Dagster can't load {LOCATION}: {said}")
        yield DagsterWebserver(workspace, live_data_poll_rate=POLL_MS)


@contextmanager
def reloading_for_older_memories(workspace: WorkspaceProcessContext) -> Generator[None]:
    """Reload the code location during a block when the first night changes; the daemon notices within a minute."""
    ended, known = threading.Event(), first_night(datetime.now(UTC))

    def poll() -> None:
        first = known
        while not ended.wait(FIRST_NIGHT_POLL_S):
            now_first = first_night(datetime.now(UTC))
            if now_first not in (first, FIRST_NIGHT):  # FIRST_NIGHT may mean that no server answers
                workspace.reload_code_location(LOCATION)
                first = now_first

    thread = threading.Thread(target=poll, name="first-night", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(GRACE_S)


@contextmanager
def daemon_beside(server: uvicorn.Server, location: Path) -> Generator[None]:
    """Run the daemon for a block; if it ends by itself, stop the server and raise `Unavailable`."""
    process = subprocess.Popen(  # noqa: S603 (the command is ours)
        python_module("dagster._daemon", "run", "-w", str(location), "--log-level", "warning"),
        cwd=child_folder(),
        env=child_environment(**WARNINGS_OFF),
        stdin=subprocess.DEVNULL,
    )

    def stop_server() -> None:
        process.wait()
        server.should_exit = True

    threading.Thread(target=stop_server, name="daemon", daemon=True).start()
    try:
        yield
        if process.poll() is not None:
            raise Unavailable(f"Dagster's daemon ended by itself, with exit code {process.returncode}; see its log")
    finally:
        process.terminate()
        try:
            process.wait(DAEMON_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()


if __name__ == "__main__":
    typer.run(main)
