"""Dagster's interface, alone in the background or in front together with the REST API; always on 127.0.0.1."""

from __future__ import annotations

import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import httpx

from nous_online import processes
from nous_online.core.errors import Unavailable
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import open_url, prepare
from nous_online.interfaces.cli.command_line import EXTRAS
from nous_online.interfaces.request_checks import door_token, with_token
from nous_online.processes import Program, child_folder, python_module
from nous_pipelines.orchestration.instance import prepare_dagster

HOST = "127.0.0.1"
PORT = 3000
LOCATION = "nous_pipelines.definitions"
READY_TIMEOUT_S = 90.0
NAME = "dagster"


def command(port: int, *, read_only: bool = False) -> list[str]:
    """Return how to start the interface and the daemon."""
    options = ["--port", str(port), *(["--read-only"] if read_only else [])]
    return python_module("nous_pipelines.orchestration.interface_server", *options)


def start_interface(home: Path) -> Program:
    """Start the interface in the background, unless it runs; `wait_for` tells when it answers."""
    program, known = dagster_program(PORT, token=door_token()), processes.running(NAME, home=home)
    if known is None:
        processes.start(NAME, program.command, home=home, environment=program.environment)
        return program
    running_at, token = address(port_of(known.cmdline())), known.environ().get("NOUS_TOKEN", "")
    return replace(program, address=running_at, token=token, entrance=with_token(f"{running_at}/", token))


@contextmanager
def database_up() -> Generator[str]:
    """Start the embedded server where it is the one to use, yield the URL, and stop it if it was started for this."""
    home = settings().home or postgres.default_home()
    is_ours = settings().database_url is None and postgres.running(home) is None
    url = open_url()
    try:
        prepare(url)
        yield url
    finally:
        if is_ours:
            postgres.stop(home)


def dagster_program(port: int, *, token: str, read_only: bool = False) -> Program:
    """Return Dagster's interface and daemon as a program to run, at `port` or another that is free."""
    prepare_dagster()
    found = free_port(port)
    return Program(
        "Dagster",
        command(found, read_only=read_only),
        address(found),
        "/server_info",
        child_folder(),
        token,
        with_token(f"{address(found)}/", token),
    )


def api_program(port: int, *, token: str) -> Program:
    """Return the REST API, which asks for the token in place of keys, as a program to run, at `port` or a free one."""
    from nous_online.interfaces.api.application import command as api_command

    found = free_port(port)
    return Program("API", api_command(found), address(found), "/ready", child_folder(), token)


def console_program(port: int, *, token: str, read_only: bool = False) -> Program:
    """Return the console as a program to run, at `port` or another that is free."""
    from nous_online.interfaces.console.console_server import ALIVE
    from nous_online.interfaces.console.console_server import command as console_command

    found = free_port(port)
    entrance = with_token(f"{address(found)}/", token)
    command_line = console_command(found, read_only=read_only)
    return Program("Console", command_line, address(found), ALIVE, child_folder(), token, entrance)


def address(port: int) -> str:
    """Return where a program answers."""
    return f"http://{HOST}:{port}"


def has_api() -> bool:
    """Tell whether the extra `api` is installed."""
    return all(find_spec(module) for module in EXTRAS["api"])


def wait_for(program: Program, *, home: Path) -> None:
    """Wait until the interface answers; raise `Unavailable` when it ends or stays silent."""
    ends_at = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < ends_at:
        if processes.running(NAME, home=home) is None:
            break
        try:
            if httpx.get(f"{program.address}{program.probe}", timeout=2).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise Unavailable(f"the interface did not come up at {program.address}; see {home / 'background' / f'{NAME}.log'}")


def port_of(arguments: list[str]) -> int:
    """Return the port a running interface was started with."""
    return int(arguments[arguments.index("--port") + 1])


def free_port(wanted: int) -> int:
    """Return `wanted` if it is free, else another one that is."""
    for port in (wanted, 0):
        with socket.socket() as candidate:
            # what was just closed lingers for a minute, and is free all the same
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((HOST, port))
            except OSError:
                continue
            return candidate.getsockname()[1]
    raise Unavailable(f"no port is free on {HOST}")
