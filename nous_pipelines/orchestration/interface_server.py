"""Dagster's interface behind our gate, and its daemon beside it: what `nous dev`, `nous demo` and compose start.

Dagster takes mutations from the query string of a GET, and WebSockets of any origin: a web page could launch runs, and
every user of the machine as well. So a request passes the gate of pages first, and asks as Dagster's own pages do."""

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
from nous_online.interfaces.request_checks import BACKLOG, Connection, PageGate, interface_token, refusal, with_token
from nous_online.processes import WARNINGS_OFF, child_environment, child_folder, python_module
from nous_pipelines.nights import FIRST_NIGHT
from nous_pipelines.orchestration.instance import HOST, LOCATION, PORT, dagster_instance
from nous_pipelines.orchestration.night_ranges import first_night

ALIVE = "/server_info"
"""Names versions and nothing else: whoever waits for the interface asks it."""
GRAPHQL = "/graphql"
NOT_FRAMED = {"X-Frame-Options": "DENY"}
OWN_FILES = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; base-uri 'none'; object-src 'none'; frame-ancestors 'none'"
)
"""For pages of Dagster that bring no policy: its query editor has a script of its own inside."""


class DagsterGate(PageGate):
    """The outermost layer of Dagster's interface."""

    def __init__(self, app: ASGIApp, *, token: str, names: Iterable[str] = ()) -> None:
        super().__init__(app, token=token, alive=ALIVE, names=names)

    def wrap_send(self, send: Send) -> Send:
        """Keep what Dagster answers out of frames, and give its pages without a policy one."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(NOT_FRAMED)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.setdefault("Content-Security-Policy", OWN_FILES)
            await send(message)

        return sent

    def refuse_misuse(self, connection: HTTPConnection, *, is_read: bool) -> Response | None:
        """Return a refusal of a request that no page of Dagster sends: a query in a URL, or a body that is not JSON."""
        if is_read and connection.url.path == GRAPHQL and "query" in connection.query_params:
            return refusal(405, "a GET asks nothing of GraphQL; send the query as JSON, by POST")
        media_type = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not is_read and media_type != "application/json":
            return refusal(415, "the body is not said to be JSON; send it with Content-Type: application/json")
        return None


# --- interface and daemon ---

POLL_MS = 2000
"""How often the pages ask for news of assets: as under `dagster dev`."""
GRACE_S = 3
"""How long calls under way may take at the end; a page that is open would hold it up for ever."""
DAEMON_GRACE_S = 10
LOOK_S = 30.0
"""How long an imported history takes to be among the partitions."""


def main(
    *,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = HOST,
    port: Annotated[int, typer.Option(help="Where.")] = PORT,
    name: Annotated[list[str] | None, typer.Option(help="A name it goes by, besides those of this machine.")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show everything and change nothing.")] = False,
    no_daemon: Annotated[bool, typer.Option("--no-daemon", help="Without the daemon, which runs schedules.")] = False,
) -> None:
    """Serve Dagster's interface until SIGINT or SIGTERM, to whoever has the token; print it where it was drawn here."""
    keep_private()
    gc.freeze()  # what was imported stays, and is not passed through again by each look for garbage
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
            server = uvicorn.Server(configuration(gate, host=host, port=port))
            with nullcontext() if no_daemon else daemon_beside(server, location):
                server.run()
    except NousError as error:
        show_error(str(error))
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        return


@contextmanager
def code_server(instance: DagsterInstance) -> Generator[Path]:
    """Load our code location in a process of its own, for a block; yield the workspace file that says where it is.

    Interface and daemon share it, as under `dagster dev`: a daemon by itself loads everything anew once a minute, for
    5 s of processor time. It is started again when it ends, and ends when nobody asks it for long.
    """
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
    """Yield Dagster's interface over our one code location; its tables are made, so no daemon makes them too."""
    target = WorkspaceFileTarget([str(location)])
    with (
        WorkspaceProcessContext(instance, target, version=__version__, read_only=read_only) as workspace,
        following_the_first_night(workspace),
    ):
        yield DagsterWebserver(workspace, live_data_poll_rate=POLL_MS)


@contextmanager
def following_the_first_night(workspace: WorkspaceProcessContext) -> Generator[None]:
    """Load the nights again where their first memory is another; the daemon sees it within a minute."""
    ended, known = threading.Event(), first_night(datetime.now(UTC))

    def follow() -> None:
        first = known
        while not ended.wait(LOOK_S):
            found = first_night(datetime.now(UTC))
            if found not in (first, FIRST_NIGHT):  # the latter also where no server answers
                workspace.reload_code_location(LOCATION)
                first = found

    thread = threading.Thread(target=follow, name="first-night", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(GRACE_S)


def configuration(gate: DagsterGate, *, host: str, port: int) -> uvicorn.Config:
    """Return how the interface is served: connections that wait are closed in time, and no header names the caller."""
    return uvicorn.Config(
        gate,
        http=Connection,
        backlog=BACKLOG,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_S,
    )


@contextmanager
def daemon_beside(server: uvicorn.Server, location: Path) -> Generator[None]:
    """Run the daemon for a block, and stop the server when it ends by itself; raise `Unavailable` then."""
    process = subprocess.Popen(  # noqa: S603 (the command is ours)
        python_module("dagster._daemon", "run", "-w", str(location), "--log-level", "warning"),
        cwd=child_folder(),
        env=child_environment(**WARNINGS_OFF),
        stdin=subprocess.DEVNULL,
    )

    def stop_with_it() -> None:
        process.wait()
        server.should_exit = True

    threading.Thread(target=stop_with_it, name="daemon", daemon=True).start()
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
