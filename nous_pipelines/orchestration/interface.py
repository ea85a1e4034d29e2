"""Dagster's interface, alone in the background or in front together with the REST API; always on 127.0.0.1."""

from __future__ import annotations

import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx

from nous_online.core.errors import Unavailable
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import open_url, prepare
from nous_online.interfaces.cli.command_line import EXTRAS
from nous_online.processes import background
from nous_online.processes.children import child_folder, python_module
from nous_online.processes.foreground import WARNINGS_OFF, Program
from nous_pipelines.orchestration.instance import prepare_dagster

HOST = "127.0.0.1"
PORT = 3000
READY_TIMEOUT_S = 90.0
NAME = "dagster"


def command(port: int) -> list[str]:
    """Return how to start the interface and the daemon."""
    return python_module("dagster", "dev", "-m", "nous_pipelines.definitions", "-h", HOST, "-p", str(port))


def start_interface(home: Path) -> str:
    """Start the interface in the background and return its address; `wait_for` tells when it answers there."""
    prepare_dagster()
    known = background.running(NAME, home=home)
    port = port_of(known.cmdline()) if known is not None else free_port(PORT)
    background.start(NAME, command(port), home=home, environment=WARNINGS_OFF)
    return f"http://{HOST}:{port}"


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


def dagster_program(port: int) -> Program:
    """Return Dagster's interface and daemon as a program to run in front, at `port` or another that is free."""
    prepare_dagster()
    found = free_port(port)
    return Program("Dagster", command(found), f"http://{HOST}:{found}", "/server_info", child_folder())


def api_program(port: int) -> Program:
    """Return the REST API without keys as a program to run in front, at `port` or another that is free."""
    from nous_online.interfaces.api.api_server import command as api_command

    found = free_port(port)
    return Program("API", api_command(found), f"http://{HOST}:{found}", "/ready", child_folder())


def has_api() -> bool:
    """Tell whether the extra `api` is installed."""
    return all(find_spec(module) for module in EXTRAS["api"])


def wait_for(address: str, *, home: Path) -> None:
    """Wait until the interface answers; raise `Unavailable` when it ends or stays silent."""
    ends_at = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < ends_at:
        if background.running(NAME, home=home) is None:
            break
        try:
            if httpx.get(f"{address}/server_info", timeout=2).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise Unavailable(f"the interface did not come up at {address}; see {home / 'background' / f'{NAME}.log'}")


def port_of(arguments: list[str]) -> int:
    """Return the port a running interface was started with."""
    return int(arguments[arguments.index("-p") + 1])


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
