"""Dagster's instance (home folder, database, settings), and the programs that `nous dev` and `nous demo` start."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.sql import SQL, Identifier

from nous_online import processes
from nous_online.core.errors import Unavailable
from nous_online.core.files import tighten
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import connect, open_url, prepare
from nous_online.database.schema import lock_schema
from nous_online.database.statements import statements
from nous_online.interfaces.request_checks import interface_token, with_token
from nous_online.processes import Program, child_folder, python_module

if TYPE_CHECKING:
    from dagster import DagsterInstance


INSTANCE = statements("nous_pipelines.orchestration", "instance.sql")


def home_folder() -> Path:
    """Return the folder of all files of Nous."""
    return (settings().home or postgres.default_home()).expanduser().absolute()


def prepare_dagster() -> Path:
    """Set the environment variables that Dagster reads, write its settings, create its database; return its home.

    Variables that are set stay as they are. Raises `Unavailable` when home or database can't be created.
    """
    home = home_folder() / "dagster"
    kept, shipped = home / "dagster.yaml", files("nous_pipelines.orchestration").joinpath("dagster.yaml")
    tighten(home_folder())
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not kept.exists() or kept.read_text("utf-8") != shipped.read_text("utf-8"):
            kept.write_text(shipped.read_text("utf-8"), "utf-8")
    except OSError as error:
        raise Unavailable(
            f"{home} can't be written to ({error}); allow that, or set NOUS_HOME to another folder"
        ) from error
    os.environ.setdefault("DAGSTER_HOME", str(home))
    if "NOUS_DAGSTER_DB_URL" not in os.environ:
        os.environ["NOUS_DAGSTER_DB_URL"] = dagster_url(open_url())
    return home


def dagster_url(memories_url: str) -> str:
    """Return the URL of Dagster's database on the server of the memories, and create the database if it is absent.

    On the embedded server its owner is the user who logs in for Dagster, also if an earlier version created it. Raises
    `Unavailable` when it can't be created.
    """
    parts, name = urlsplit(memories_url), dagster_name(memories_url)
    is_embedded = postgres.login_url(memories_url, postgres.DAGSTER_LOGIN) != memories_url
    try:
        owner = owner_of_dagster(memories_url)
        if owner is None:
            with connect(memories_url) as connection, suppress(psycopg.errors.DuplicateDatabase):
                connection.execute(SQL(INSTANCE["create_database"]).format(Identifier(name)))
        if is_embedded and owner != postgres.DAGSTER_LOGIN:
            with connect(urlunsplit(parts._replace(path=f"/{name}"))) as connection, connection.transaction():
                lock_schema(connection)  # another process may be handing it over as well
                connection.execute(INSTANCE["hand_over"])
    except psycopg.Error as error:
        message = (
            f"database {name!r} for Dagster can't be made ({str(error).strip()}); make it, or set NOUS_DAGSTER_DB_URL"
        )
        raise Unavailable(message) from error
    host = parts.netloc.replace(f"{parts.username}@", f"{postgres.DAGSTER_LOGIN}@") if is_embedded else parts.netloc
    return urlunsplit(("postgresql+psycopg2", host, f"/{name}", parts.query, ""))


def dagster_name(memories_url: str) -> str:
    """Return the name of Dagster's database."""
    return f"{urlsplit(memories_url).path.lstrip('/') or 'nous'}_dagster"


def owner_of_dagster(memories_url: str) -> str | None:
    """Return the owner of Dagster's database, None if there is no such database."""
    with connect(memories_url, role="nous_night") as connection:
        row = connection.execute(INSTANCE["find_database"], [dagster_name(memories_url)]).fetchone()
    return row[0] if row else None


@contextmanager
def dagster_instance() -> Iterator[DagsterInstance]:
    """Yield the Dagster instance that records all runs."""
    from dagster import DagsterInstance

    prepare_dagster()
    with DagsterInstance.get() as instance:
        yield instance


# --- programs, all on 127.0.0.1 ---

HOST = "127.0.0.1"
PORT = 3000
LOCATION = "nous_pipelines.definitions"
READY_TIMEOUT_S = 90.0
NAME = "dagster"


def start_interface(home: Path) -> Program:
    """Start Dagster's interface in the background unless it runs, and return it; `wait_for` waits until it answers."""
    program, known = dagster_program(PORT, token=interface_token()), processes.running(NAME, home=home)
    if known is None:
        processes.start(NAME, program.command, home=home, environment=program.environment)
        return program
    running_at, token = address(port_of(known.cmdline())), known.environ().get("NOUS_TOKEN", "")
    return replace(program, address=running_at, token=token, entrance=with_token(f"{running_at}/", token))


@contextmanager
def database_up() -> Generator[str]:
    """Yield the URL of the database, and stop the embedded server after the block if it was started for it."""
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
    """Return the program of Dagster's interface and daemon, at `port` or another that is free."""
    prepare_dagster()
    free = free_port(port)
    options = ["--port", str(free), *(["--read-only"] if read_only else [])]
    command = python_module("nous_pipelines.orchestration.interface_server", *options)
    entrance = with_token(f"{address(free)}/", token)
    return Program("Dagster", command, address(free), "/server_info", child_folder(), token, entrance)


def api_program(port: int, *, token: str) -> Program:
    """Return the program of the REST API, with the token in place of keys, at `port` or another that is free."""
    from nous_online.interfaces.api.application import command

    free = free_port(port)
    return Program("API", command(free), address(free), "/ready", child_folder(), token)


def console_program(port: int, *, token: str, read_only: bool = False) -> Program:
    """Return the program of the console, at `port` or another that is free."""
    from nous_online.interfaces.console.console_server import ALIVE, command

    free = free_port(port)
    entrance = with_token(f"{address(free)}/", token)
    command_line = command(free, read_only=read_only)
    return Program("Console", command_line, address(free), ALIVE, child_folder(), token, entrance)


def address(port: int) -> str:
    """Return the URL of a program."""
    return f"http://{HOST}:{port}"


def wait_for(program: Program, *, home: Path) -> None:
    """Wait until the interface answers; raise `Unavailable` when it ends, or does not answer in time."""
    ends_at = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < ends_at:
        if processes.running(NAME, home=home) is None:
            break
        if program.asked() == HTTPStatus.OK:
            return
        time.sleep(0.2)
    raise Unavailable(f"the interface did not come up at {program.address}; see {home / 'background' / f'{NAME}.log'}")


def port_of(arguments: list[str]) -> int:
    """Return the port in the command line of a running interface."""
    return int(arguments[arguments.index("--port") + 1])


def free_port(wanted: int) -> int:
    """Return `wanted` if it is free, else another one that is."""
    for port in (wanted, 0):
        with socket.socket() as candidate:
            # Without the option a port that was just closed counts as taken for a minute (TIME_WAIT).
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((HOST, port))
            except OSError:
                continue
            return candidate.getsockname()[1]
    raise Unavailable(f"no port is free on {HOST}")
